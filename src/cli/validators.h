// Checks of option values that CLI11 lets through or words badly. The option's name is put before the message.
#pragma once
#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>

namespace octavo {

/// Digits only, within [least, most]: no sign (which would wrap), no fraction, no exponent.
[[nodiscard]] CLI::Validator whole_number(std::uint64_t least = 0,
                                          std::uint64_t most = std::numeric_limits<std::uint64_t>::max());

/// The word "auto", or what `other` accepts.
[[nodiscard]] CLI::Validator auto_or(CLI::Validator other);

/// A float that is neither nan nor infinite: strtof would let both through, and no range check refuses a nan.
[[nodiscard]] CLI::Validator finite();

}  // namespace octavo
