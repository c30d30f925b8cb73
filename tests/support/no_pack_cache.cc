// Part of every unit test program: none touches the cache of whoever runs it. Tests of the pack cache name a folder of
// their own (support/pack_folder.h).
#include <cstdlib>

namespace {
[[maybe_unused]] const int kOff = ::setenv("OCTAVO_CACHE", "off", 1);
}
