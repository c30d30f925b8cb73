// Bodies of requests: JSON of any shape becomes a request or a sentence, nothing else.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "server/errors.h"
#include "server/field_reader.h"
#include "server/openai_request.h"

namespace {

constexpr std::uint32_t kVocabSize = 1000;

void require(bool condition) {
  if (!condition) std::abort();
}

template <class Call>
void check(const octavo::Result<Call>& call) {
  if (!call) {
    require(!call.error().message.empty());
    require(octavo::to_api_error(call.error()).status == 400);
    require(!octavo::to_text(octavo::error_body(octavo::to_api_error(call.error()))).empty());
    return;
  }
  const octavo::SamplingParams& params = call->params;
  require(params.n >= 1 && params.n <= 128);
  require(params.temperature >= 0 && params.temperature <= 100);
  require(params.top_p > 0 && params.top_p <= 1);
  for (const auto& [id, bias] : params.logit_bias) {
    require(id.value >= 0 && static_cast<std::uint32_t>(id.value) < kVocabSize && bias >= -100 && bias <= 100);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto body = octavo::parse_json({reinterpret_cast<const char*>(data), size});
  if (!body) return 0;
  check(octavo::parse_completion(*body, kVocabSize));
  const auto chat = octavo::parse_chat(*body, kVocabSize);
  check(chat);
  if (chat) require(!octavo::to_text(chat->messages).empty());
  return 0;
}
