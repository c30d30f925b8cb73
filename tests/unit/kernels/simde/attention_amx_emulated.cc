// Attention on AMX tiles, on any x86-64 with AVX2, see avx512_emulated.cc.
#include "unit/kernels/simde/avx512_shim.h"
//
#define amx amx_emulated
#include "unit/kernels/simde/amx_tiles_emulated.h"
//
#define avx512 avx512_emulated
#include "kernels/x86/attention_amx.cc"
