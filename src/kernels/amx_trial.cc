#include "kernels/amx_trial.h"

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/float_mode.h"
#include "kernels/entries.h"
#include "kernels/gemm_trial.h"

namespace octavo {
namespace {

constexpr std::uint32_t kRows = 64;
constexpr GemmTrial::Exponents kExponents = {60, 110};

/// Linux gives the tile registers' state to those who ask (ARCH_REQ_XCOMP_PERM of XTILEDATA), once a process.
bool may_use_tiles() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

struct Trials {
  GemmTrial all[3] = {{WeightFormat::kQ4_1, kRows, kExponents},
                      {WeightFormat::kQ8_0, kRows, kExponents},
                      {WeightFormat::kBF16, kRows, kExponents}};
};

/// Between fork and _exit nothing is allocated.
std::string try_in_child(Trials& trials) {
  for (GemmTrial& trial : trials.all) trial.run(avx512::gemm, false);
  const pid_t child = ::fork();
  if (child < 0) return std::string("cannot be tried: fork: ") + std::strerror(errno);
  if (child == 0) {
    bool same = true;
    for (GemmTrial& trial : trials.all) {
      trial.run(amx::gemm, true);
      same = same && trial.same();
    }
    ::_exit(same ? 0 : 1);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return std::string("cannot be tried: waitpid: ") + std::strerror(errno);
  }
  if (WIFSIGNALED(status)) return std::string("a trial ended with ") + ::strsignal(WTERMSIG(status));
  return status == 0 ? "" : "tiles give other bits than AVX-512 on this CPU";
}

std::string measure() {
  if (!may_use_tiles()) return std::string("the operating system refuses tile registers: ") + std::strerror(errno);
  const FloatMode mode;
  Trials trials;
  if (std::string why = try_in_child(trials); !why.empty()) return why;
  double vectors = 0, tiles = 0;  // seconds; of each format the best of a few, in turn
  for (GemmTrial& trial : trials.all) {
    double vector = 1, tile = 1;
    for (int i = 0; i < 8; ++i) {
      vector = std::min(vector, trial.seconds(avx512::gemm));
      tile = std::min(tile, trial.seconds(amx::gemm));
    }
    vectors += vector, tiles += tile;
  }
  return tiles < vectors ? "" : "tiles are no faster than AVX-512 on this CPU";
}

}  // namespace

const std::string& amx_trial() {
  static const std::string result = measure();
  return result;
}

}  // namespace octavo
