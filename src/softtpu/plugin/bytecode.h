// Programs in MLIR bytecode, which JAX and other clients of the interface send: read and written
// out as StableHLO text for our parser. Serves VHLO up to version 0.14, where every op carries its
// attributes by name; the plugin announces that version, so that clients go down to it.
#ifndef TT_SOFTTPU_PLUGIN_BYTECODE_H_
#define TT_SOFTTPU_PLUGIN_BYTECODE_H_

#include "base/arena.h"
#include "base/text.h"

static inline bool tt__bytecode_is(const char *code, size_t size) {
  return size >= 4 && (unsigned char)code[0] == 'M' && (unsigned char)code[1] == 'L' &&
         (unsigned char)code[2] == 0xef && (unsigned char)code[3] == 'R';
}

// Caller frees *out_text.
tt_status_t tt__bytecode_print(const char *code, size_t size, char **out_text,
                               size_t *out_size) TT_MUST_USE;

// --- shared by bytecode*.c ---

// Reads past the end clear `ok` and give zero.
typedef struct tt__cursor_s {
  const unsigned char *at, *end;
  bool ok;
} tt__cursor_t;

// An attribute or type that has not been looked at yet: they refer to each other by number, in any
// order, so they are decoded where they are used.
typedef struct tt__entry_s {
  uint32_t dialect;
  bool custom;  // in the dialect's own encoding; text otherwise
  tt__cursor_t data;
} tt__entry_t;

// An op of the program's own table: which dialect's, and its name there.
typedef struct tt__op_name_s {
  uint32_t dialect;
  tt_slice_t name;
} tt__op_name_t;

// The tables in front of a program. Thread-compatible; the code is borrowed while it lives, and
// what the slices point to.
typedef struct tt__bytecode_s {
  tt_arena_t arena;
  const unsigned char *start;
  uint64_t version;
  tt_slice_t *strings, *dialects;
  tt__op_name_t *ops;
  tt__entry_t *attrs, *types;
  uint64_t string_count, dialect_count, op_count, attr_count, type_count;
  tt__cursor_t ir;
} tt__bytecode_t;

// MLIR's encodings: a byte, a variable-length number, one with the sign in its lowest bit, and the
// next `size` bytes as a cursor of their own.
uint64_t tt__cursor_byte(tt__cursor_t *c);
uint64_t tt__cursor_varint(tt__cursor_t *c);
int64_t tt__cursor_signed(tt__cursor_t *c);
tt__cursor_t tt__cursor_take(tt__cursor_t *c, uint64_t size);
// The next section: its number, and its data.
uint64_t tt__cursor_section(tt__cursor_t *c, const unsigned char *start, tt__cursor_t *out_data);

// Reads the tables and finds the program; attributes and types stay encoded. The arena is the
// caller's: initialised before, freed after, failure or not.
tt_status_t tt__bytecode_read(tt__bytecode_t *b, const char *code, size_t size) TT_MUST_USE;
// INVALID_ARGUMENT, naming what is malformed.
tt_status_t tt__bytecode_broken(const char *what) TT_MUST_USE;

#endif  // TT_SOFTTPU_PLUGIN_BYTECODE_H_
