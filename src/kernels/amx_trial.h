// Asks the system for AMX tiles, then tries them.
#pragma once
#include <string>

namespace octavo {

/// Why tiles are not used here; empty: they are, with the bits of AVX-512 and faster. Only where missing_for_amx() is
/// empty. The first products run in a child process: where a hypervisor shows tiles that it does not run, the child
/// dies, not we. Once per process; any thread.
[[nodiscard]] const std::string& amx_trial();

}  // namespace octavo
