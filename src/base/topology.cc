#include "base/topology.h"

#include <hwloc.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <fstream>
#include <memory>

namespace octavo {
namespace {

struct TopologyEnd {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<hwloc_topology, TopologyEnd>;

struct BitmapEnd {
  void operator()(hwloc_bitmap_t bitmap) const { hwloc_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<hwloc_bitmap_s, BitmapEnd>;

Topology load_topology() {
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) return nullptr;
  Topology owned(topology);
  hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_type_filter(topology, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
  return hwloc_topology_load(topology) == 0 ? std::move(owned) : nullptr;
}

}  // namespace

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const auto colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown CPU";
}

std::uint32_t threads_or_cores(std::uint32_t asked) { return asked == 0 ? usable_cores() : asked; }

std::vector<std::uint32_t> cpus_in_order() {
  const Topology topology = load_topology();
  if (topology == nullptr) return {};
  const Bitmap allowed(hwloc_bitmap_alloc());
  if (hwloc_get_cpubind(topology.get(), allowed.get(), HWLOC_CPUBIND_THREAD) != 0) return {};

  struct Cpu {
    std::uint32_t id;
    unsigned nth;  // hardware thread of its core
    int kind;      // larger: faster
  };
  std::vector<Cpu> cpus;
  for (hwloc_obj_t core = nullptr;
       (core = hwloc_get_next_obj_by_type(topology.get(), HWLOC_OBJ_CORE, core)) != nullptr;) {
    unsigned nth = 0;
    for (int cpu = hwloc_bitmap_first(core->cpuset); cpu >= 0; cpu = hwloc_bitmap_next(core->cpuset, cpu)) {
      if (hwloc_bitmap_isset(allowed.get(), static_cast<unsigned>(cpu)) == 0) continue;
      const int kind = hwloc_cpukinds_get_by_cpuset(topology.get(), core->cpuset, 0);
      cpus.push_back({static_cast<std::uint32_t>(cpu), nth++, kind});
    }
  }
  std::ranges::stable_sort(cpus,
                           [](const Cpu& a, const Cpu& b) { return a.nth != b.nth ? a.nth < b.nth : a.kind > b.kind; });
  std::vector<std::uint32_t> ids;
  ids.reserve(cpus.size());
  for (const Cpu& cpu : cpus) ids.push_back(cpu.id);
  return ids;
}

bool bind_to_cpu(std::uint32_t cpu) {
  if (cpu >= CPU_SETSIZE) return false;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  return ::pthread_setaffinity_np(::pthread_self(), sizeof(set), &set) == 0;
}

}  // namespace octavo
