// For work in the background that nobody waits for.
#pragma once
#include <pthread.h>

namespace octavo {

/// The calling thread runs, and reads from disks, where nobody else wants to, and very little where everybody does.
void take_idle_priority();

/// `thread` is as important as others again: whoever waits for its end may need a core for it.
void end_idle_priority(pthread_t thread);

}  // namespace octavo
