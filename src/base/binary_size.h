// Sizes of memory for people, in powers of 1024 as memory is sold: "1.5625 GiB", "23,040 bytes".
#pragma once
#include <cstdint>
#include <string>

namespace octavo {

/// At most four decimals, none that is zero.
[[nodiscard]] std::string binary_size(std::uint64_t bytes);
/// "1,024"
[[nodiscard]] std::string grouped(std::uint64_t number);

}  // namespace octavo
