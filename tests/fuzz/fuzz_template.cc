// Any bytes as a chat template and its context: the part before the first NUL is the template, the rest the context.
#include <cstdint>
#include <string_view>

#include "octavo/chat_template.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = input.find('\0');
  const std::string_view context =
      end == input.npos ? "{\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}]}" : input.substr(end + 1);
  const auto parsed = octavo::ChatTemplate::parse(input.substr(0, end));
  if (parsed) (void)parsed->render(context, octavo::parse_local_time("2026-01-15T12:34:56").value());
  return 0;
}
