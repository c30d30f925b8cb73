// Numbers for people, and back.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "octavo/result.h"

namespace octavo {

/// "98.4 MB": decimal units, three figures.
[[nodiscard]] std::string human_bytes(std::uint64_t bytes);
/// "134.5 M"
[[nodiscard]] std::string human_count(std::uint64_t count);
/// "2GiB", "512M", "1.5GB" or plain bytes. K, M, G, T and KiB, ... are powers of 1024; kB, MB, ... of 1000.
[[nodiscard]] Result<std::uint64_t> parse_bytes(std::string_view text);

}  // namespace octavo
