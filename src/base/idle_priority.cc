#include "base/idle_priority.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace octavo {

void take_idle_priority() {
  const sched_param none{};
  ::pthread_setschedparam(::pthread_self(), SCHED_IDLE, &none);
  constexpr int kThisThread = 1, kIdleClass = 3 << 13;
  ::syscall(SYS_ioprio_set, kThisThread, 0, kIdleClass);
}

void end_idle_priority(pthread_t thread) {
  const sched_param none{};
  ::pthread_setschedparam(thread, SCHED_OTHER, &none);
}

}  // namespace octavo
