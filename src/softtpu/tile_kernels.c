// Chooses the kernels' level once.
#include <pthread.h>

#include "softtpu/kernels/kernels.h"

static tt__kernels_t table;
static pthread_once_t once = PTHREAD_ONCE_INIT;

// Every level fills the whole table; files of one level never call those of another.
#define FILL(l)                      \
  do {                               \
    table.level = #l;                \
    tt__kernels_map_##l(&table);     \
    tt__kernels_compare_##l(&table); \
    tt__kernels_convert_##l(&table); \
    tt__kernels_math_##l(&table);    \
    tt__kernels_complex_##l(&table); \
    tt__kernels_reduce_##l(&table);  \
    tt__kernels_arg_##l(&table);     \
    tt__kernels_gemm_##l(&table);    \
  } while (0)

static void choose(void) {
#ifdef TT_HAVE_avx512
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512cd")) {
    FILL(avx512);
    return;
  }
#endif
#ifdef TT_HAVE_avx2
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("bmi2")) {
    FILL(avx2);
    return;
  }
#endif
  FILL(portable);
}

const tt__kernels_t *tt__kernels(void) {
  pthread_once(&once, choose);
  return &table;
}
