// Which of the machine's CPUs compute threads take, by hwloc.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace octavo {

/// The processor, as the system names it.
[[nodiscard]] std::string cpu_name();

/// Cores this process may use: affinity and cgroup CPU quota, at least 1.
[[nodiscard]] std::uint32_t usable_cores();

/// How many compute threads to start: as asked, or one for each usable core if that is 0.
[[nodiscard]] std::uint32_t threads_or_cores(std::uint32_t asked);

/// The CPUs that this process may use, in the order in which pinned threads take them: one hardware thread of each
/// core, the fastest kind of core first, then the others. Empty if the system does not tell.
[[nodiscard]] std::vector<std::uint32_t> cpus_in_order();

/// Binds the calling thread to one CPU. False: the system refuses.
bool bind_to_cpu(std::uint32_t cpu);

}  // namespace octavo
