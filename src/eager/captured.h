// A captured program's inside, shared by capture.c (recording) and programs.c (finding, running).
#ifndef TT_EAGER_CAPTURED_H_
#define TT_EAGER_CAPTURED_H_

#include "eager/window.h"

#define TT__UNCHANGED UINT32_MAX

// A storage of the inputs, or one that an open capture adopted.
typedef struct tt__kept_s {
  tt_storage_t *storage;   // only while capturing
  tt__version_t *version;  // what it held when the capture began; afterwards a stand-in
  uint32_t input;          // an input tensor that has it; TT__UNCHANGED: adopted
  uint32_t value;          // the number of the value that it holds at the end, or TT__UNCHANGED
  uint32_t place;          // that value's place among the program's results
  bool given_up;           // the caller had no further use for it when it ran first
} tt__kept_t;

// A new storage of the outputs.
typedef struct tt__fresh_s {
  uint32_t value, place;
  size_t bytes;
} tt__fresh_t;

// Whose memory a program may use: bits.
enum { TT__DONATE_WRITTEN = 1, TT__DONATE_GIVEN_UP = 2, TT__DONATE_ALL = 3 };

struct tt_capture_s {
  int device;
  bool failed;        // a value was read meanwhile
  bool open;          // storages that are no inputs may be written: they are adopted
  bool located;       // the program is to know its Python lines
  const char *place;  // the line that makes the present call
  tt__window_t *window;
  tt_arena_t arena;
  tt_tensor_t *inputs;  // as they were; what they point to is gone but for a host scalar's handle
  uint32_t input_count, host_count;  // host_count: of the inputs, host scalars
  tt_capture_output_t *outputs;
  uint32_t output_count;
  tt__kept_t *storages;  // of the inputs, each once; then those that were adopted
  uint32_t storage_count, storage_capacity;
  tt__fresh_t *fresh;
  uint32_t fresh_count;
  uint32_t *sources;  // of each external: an input storage, or TT__UNCHANGED: a constant
  tt__fused_t *programs[TT__DONATE_ALL + 1];
  bool ran;       // `given_up` is known
  uint64_t *key;  // of the inputs (tt__key_inputs)
  uint32_t key_count;
};

// Finds or makes the program that may use the memory of those inputs.
tt_status_t tt__capture_program(tt_capture_t *capture, unsigned donate) TT_MUST_USE;

// Before a value is read on the host: an error where this thread is capturing and the value is an
// input's, which each run of the program has another of.
tt_status_t tt__capture_look(const tt_storage_t *storage) TT_MUST_USE;

// What tells one program's inputs from another's: types, strides, offsets, which of them share a
// storage and how the storages' values are laid out.
typedef struct tt__key_s {
  uint64_t *words;
  uint32_t count, capacity;
  uint64_t few[256];
} tt__key_t;
void tt__key_init(tt__key_t *key);
void tt__key_deinit(tt__key_t *key);
bool tt__key_inputs(tt__key_t *key, const tt_tensor_t *inputs, uint32_t count) TT_MUST_USE;
// The sizes, then strides, of the input whose part of a key begins at `facts`, and the next input's
// part.
const uint64_t *tt__key_sizes(const uint64_t *facts);
const uint64_t *tt__key_next(const uint64_t *facts);

#endif  // TT_EAGER_CAPTURED_H_
