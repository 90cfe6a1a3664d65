// What a thread does between two looks at a word that another one will change.
#ifndef TT_BASE_RELAX_H_
#define TT_BASE_RELAX_H_

// Tells the core that this is a spin: it leaves the execution units to its other thread, saves
// power, and does not pay for reordered loads when the loop ends. A no-op on other machines.
static inline void tt_relax(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

#endif  // TT_BASE_RELAX_H_
