// One HTTP request for text at work: its prompts are submitted, their events become the answer, whole or streamed.
// A client that leaves takes its requests with it.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "octavo/request.h"
#include "server/openai_response.h"
#include "server/service.h"

namespace octavo {

class Generation : public std::enable_shared_from_this<Generation> {
 public:
  /// Answers the exchange in any case: with an error at once, or later from the engine's events.
  /// `default_max_tokens`: used if the call has none; lowered to what fits.
  static void start(Service& service, std::shared_ptr<Exchange> exchange, const GenerationCall& call,
                    std::vector<TextPrompt> prompts, std::unique_ptr<AnswerFormat> format,
                    std::uint32_t default_max_tokens);

  Generation(Service& service, std::shared_ptr<Exchange> exchange, const GenerationCall& call,
             std::vector<TextPrompt> prompts, std::unique_ptr<AnswerFormat> format);
  ~Generation();
  Generation(const Generation&) = delete;
  Generation& operator=(const Generation&) = delete;

 private:
  struct Choice {
    OutputEvent whole;  // everything so far, if not streaming; else only usage and timings
    std::size_t text_offset = 0;
    bool started = false;
  };

  [[nodiscard]] std::optional<ApiError> submit(std::uint32_t default_max_tokens);
  [[nodiscard]] ApiError told(const Error& error) const;
  void on_event(std::size_t prompt, OutputEvent event);
  void stream(std::size_t prompt, std::size_t index, OutputEvent& event);
  void collect(std::size_t index, OutputEvent&& event);
  void complete();
  void fail(const Error& error);
  void abort();

  [[nodiscard]] Json envelope(Json choices, bool chunk) const;
  [[nodiscard]] Usage usage() const;
  void log(const char* how) const;

  Service& service_;
  std::shared_ptr<Exchange> exchange_;
  GenerationCall call_;
  std::vector<TextPrompt> prompts_;
  std::unique_ptr<AnswerFormat> format_;
  std::string id_, model_;
  std::int64_t created_;
  std::vector<RequestId> requests_;  // [prompts submitted]
  std::vector<Choice> choices_;      // [prompt][n]
  std::size_t ended_ = 0;            // prompts
  bool done_ = false;                // answered or given up
};

}  // namespace octavo
