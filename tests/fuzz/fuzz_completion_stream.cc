// Any bytes as a streamed completion, whole and in pieces: the same answer, or the same error.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "cli/completion_stream.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  octavo::CompletionStream whole, pieces;
  whole.add(text, 1);
  for (std::size_t at = 0; at < size; at += 7) pieces.add(text.substr(at, 7), 1);
  const octavo::StreamedAnswer one = whole.finish(), other = pieces.finish();
  if (one.error != other.error || one.output_tokens != other.output_tokens) __builtin_trap();
  if (one.error.empty() && !one.first_ms) __builtin_trap();
  (void)octavo::error_message(text);
  return 0;
}
