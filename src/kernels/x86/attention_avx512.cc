#include "kernels/x86/v16_avx512.h"
//
#include "kernels/x86/attention_entries.h"
