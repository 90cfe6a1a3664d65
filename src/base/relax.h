// What a thread does between two looks at a word that another one will change.
#ifndef TT_BASE_RELAX_H_
#define TT_BASE_RELAX_H_

static inline void tt_relax(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

#endif  // TT_BASE_RELAX_H_
