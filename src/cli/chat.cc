// octavo chat: a conversation on the terminal, or over piped lines.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/chat_prompt.h"
#include "cli/commands.h"
#include "cli/common.h"
#include "cli/requests.h"
#include "cli/sampling.h"

namespace octavo {
namespace {

struct ChatOptions {
  EngineOptions engine;
  SamplingParams params;
  std::string system;
};

volatile std::sig_atomic_t interrupted = 0;

/// Ctrl-C from now on sets the flag and wakes a read; it does not end the program.
void catch_interrupt() {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted = 1; };
  sigaction(SIGINT, &action, nullptr);
}

class Chat {
 public:
  Chat(Engine& engine, const ChatOptions& options)
      : engine_(engine), options_(options), terminal_(isatty(STDIN_FILENO) == 1) {
    reset();
  }

  Result<> run() {
    OCTAVO_CHECK_OK(chat_prompt(engine_, {{"user", ""}}));  // a model that cannot chat says so at once
    catch_interrupt();
    if (terminal_) fmt::print("{}: /reset forgets, /exit or Ctrl-D leaves, Ctrl-C stops an answer\n", name());
    while (const auto line = read_line()) {
      if (*line == "/exit") break;
      if (line->empty()) continue;
      if (*line == "/reset") {
        reset();
        continue;
      }
      messages_.push_back({"user", *line});
      if (const auto answered = answer(); !answered) {
        messages_.pop_back();
        fmt::print(stderr, "octavo chat: {}{}\n", answered.error().message,
                   answered.error().code == ErrorCode::kContextLength ? " (/reset starts anew)" : "");
        if (!terminal_) return answered;
      }
    }
    return Ok{};
  }

 private:
  [[nodiscard]] const std::string& name() const { return engine_.report().model.name; }

  void reset() {
    messages_.clear();
    if (!options_.system.empty()) messages_.push_back({"system", options_.system});
  }

  /// The next line; none at the end of input. Ctrl-C throws away what was typed.
  std::optional<std::string> read_line() {
    char* buffer = nullptr;
    std::size_t capacity = 0;
    ssize_t length = -1;
    do {
      interrupted = 0;
      if (terminal_) fmt::print("> ");
      std::fflush(stdout);
      errno = 0;
      length = getline(&buffer, &capacity, stdin);
      if (interrupted != 0) {
        std::clearerr(stdin);
        fmt::print("\n");
      }
    } while (length < 0 && interrupted != 0);
    std::optional<std::string> line;
    if (length >= 0) line.emplace(buffer, static_cast<std::size_t>(length));
    std::free(buffer);  // NOLINT: getline(3) allocates
    if (!line && terminal_) fmt::print("\n");
    while (line && !line->empty() && (line->back() == '\n' || line->back() == '\r')) line->pop_back();
    return line;
  }

  /// Streams the answer to the conversation so far and remembers it.
  Result<> answer() {
    Request request;
    request.params = options_.params;
    OCTAVO_TRY(request.prompt, chat_prompt(engine_, messages_));
    const std::uint32_t longest = engine_.report().max_model_len;
    const auto used = static_cast<std::uint32_t>(std::min<std::size_t>(request.prompt.size(), longest));
    request.params.max_tokens = std::min(request.params.max_tokens, std::max(longest - used, 1U));

    EventQueue queue;
    interrupted = 0;
    OCTAVO_TRY(const RequestId id, engine_.submit(std::move(request), queue.sink(0)));
    std::string text;
    std::optional<Error> error;
    for (bool last = false, aborted = false; !last;) {
      if (interrupted != 0 && !aborted) {
        engine_.abort(id);
        aborted = true;
      }
      const auto item = queue.pop(std::chrono::milliseconds(50));
      if (!item) continue;
      std::cout << item->event.text << std::flush;
      text += item->event.text;
      error = item->event.error;
      last = item->event.last;
    }
    std::cout << std::endl;
    if (error) return *std::move(error);
    messages_.push_back({"assistant", text});
    return Ok{};
  }

  Engine& engine_;
  const ChatOptions& options_;
  bool terminal_;
  std::vector<ChatMessage> messages_;
};

}  // namespace

Command chat_command(CLI::App& program) {
  auto options = std::make_shared<ChatOptions>();
  options->params.max_tokens = 1024;
  options->params.temperature = 0.7F;
  options->params.top_p = 0.9F;
  CLI::App* app = program.add_subcommand("chat", "Talk with a model");
  app->add_option("--system", options->system, "system prompt");
  add_sampling_options(*app, options->params);
  add_engine_options(*app, options->engine, ModelWord::kPositional);
  return {app, [options]() -> Result<> {
            OCTAVO_TRY(const std::unique_ptr<Engine> engine, load_engine(options->engine));
            return Chat(*engine, *options).run();
          }};
}

}  // namespace octavo
