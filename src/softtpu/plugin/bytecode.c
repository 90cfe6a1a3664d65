// The container: sections, strings, names, and where attributes and types are. The bytes come from
// anybody: every count and size is checked against what is left, and a cursor that has run out
// gives zeros until somebody looks at `ok`.
#include "softtpu/plugin/bytecode.h"

#include <string.h>

// Sections that this reads; a file has them in any order, others are skipped.
enum {
  SECTION_STRING,
  SECTION_DIALECT,
  SECTION_DATA,
  SECTION_OFFSETS,
  SECTION_IR,
  SECTION_COUNT = 9
};

tt_status_t tt__bytecode_broken(const char *what) {
  return TT_ERROR(INVALID_ARGUMENT, "the program's bytecode is malformed: %s", what);
}

uint64_t tt__cursor_byte(tt__cursor_t *c) {
  if (c->at < c->end) return *c->at++;
  c->ok = false;
  return 0;
}

// The first byte's trailing zeros say how many bytes follow.
uint64_t tt__cursor_varint(tt__cursor_t *c) {
  uint64_t first = tt__cursor_byte(c);
  if (first & 1) return first >> 1;
  int more = first ? __builtin_ctzll(first) : 8;
  if (c->end - c->at < more) {
    c->ok = false;
    return 0;
  }
  uint64_t value = 0;
  memcpy(&value, c->at, (size_t)more);
  c->at += more;
  return first ? value << (7 - more) | first >> (more + 1) : value;
}

int64_t tt__cursor_signed(tt__cursor_t *c) {
  uint64_t value = tt__cursor_varint(c);
  return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

tt__cursor_t tt__cursor_take(tt__cursor_t *c, uint64_t size) {
  if (size > (uint64_t)(c->end - c->at)) {
    c->ok = false;
    return (tt__cursor_t){c->end, c->end, false};
  }
  tt__cursor_t part = {c->at, c->at + size, true};
  c->at += size;
  return part;
}

// Alignment is counted from the file's start and filled with bytes of no meaning.
uint64_t tt__cursor_section(tt__cursor_t *c, const unsigned char *start, tt__cursor_t *out_data) {
  uint64_t id = tt__cursor_byte(c);
  uint64_t size = tt__cursor_varint(c);
  if (id & 0x80) {
    uint64_t alignment = tt__cursor_varint(c);
    while (c->ok && alignment > 1 && (uint64_t)(c->at - start) % alignment) tt__cursor_byte(c);
  }
  *out_data = tt__cursor_take(c, size);
  return id & 0x7f;
}

// A table of `count` items, which cannot be more than the bytes they are read from.
static void *table(tt__bytecode_t *b, tt__cursor_t *c, uint64_t count, size_t item) {
  if (!c->ok || count > (uint64_t)(c->end - c->at) + 1) {
    c->ok = false;
    return NULL;
  }
  void *items = tt_arena_zeroed(&b->arena, (size_t)count * item);
  if (!items) c->ok = false;
  return items;
}

// Sizes come last string first, then all characters; each ends in a zero.
static tt_status_t read_strings(tt__bytecode_t *b, tt__cursor_t c) {
  b->string_count = tt__cursor_varint(&c);
  b->strings = table(b, &c, b->string_count, sizeof *b->strings);
  const unsigned char *end = c.end;
  for (uint64_t i = b->string_count; c.ok && i-- > 0;) {
    uint64_t size = tt__cursor_varint(&c);
    if (size == 0 || c.at > end || size > (uint64_t)(end - c.at)) {
      return tt__bytecode_broken("a string's size");
    }
    end -= size;
    b->strings[i] = (tt_slice_t){(const char *)end, (size_t)size - 1};
  }
  return c.ok ? TT_OK_STATUS : tt__bytecode_broken("strings");
}

static tt_slice_t string_at(tt__bytecode_t *b, tt__cursor_t *c, uint64_t index) {
  if (index < b->string_count) return b->strings[index];
  c->ok = false;
  return (tt_slice_t){"", 0};
}

// Dialects, then the names of ops in groups by dialect.
static tt_status_t read_dialects(tt__bytecode_t *b, tt__cursor_t c) {
  b->dialect_count = tt__cursor_varint(&c);
  b->dialects = table(b, &c, b->dialect_count, sizeof *b->dialects);
  for (uint64_t i = 0; c.ok && i < b->dialect_count; i++) {
    uint64_t name = tt__cursor_varint(&c);
    b->dialects[i] = string_at(b, &c, name >> 1);
    tt__cursor_t version;
    if (name & 1) (void)tt__cursor_section(&c, b->start, &version);
  }
  uint64_t count = tt__cursor_varint(&c), at = 0;
  b->ops = table(b, &c, count, sizeof *b->ops);
  b->op_count = count;
  while (c.ok && at < count) {
    uint64_t dialect = tt__cursor_varint(&c), group = tt__cursor_varint(&c);
    if (dialect >= b->dialect_count || group > count - at) return tt__bytecode_broken("op names");
    for (uint64_t i = 0; c.ok && i < group; i++) {
      uint64_t name = tt__cursor_varint(&c);
      if (b->version >= 5) name >>= 1;
      b->ops[at++] = (tt__op_name_t){(uint32_t)dialect, string_at(b, &c, name)};
    }
  }
  return c.ok ? TT_OK_STATUS : tt__bytecode_broken("dialects");
}

// Sizes stand in the section of offsets; the data follow one another in the section of data.
static tt_status_t read_entries(tt__bytecode_t *b, tt__cursor_t *c, tt__cursor_t *data,
                                tt__entry_t *entries, uint64_t count) {
  uint64_t at = 0;
  while (c->ok && at < count) {
    uint64_t dialect = tt__cursor_varint(c), group = tt__cursor_varint(c);
    if (dialect >= b->dialect_count || group > count - at) return tt__bytecode_broken("entries");
    for (uint64_t i = 0; c->ok && i < group; i++) {
      uint64_t size = tt__cursor_varint(c);
      entries[at++] =
          (tt__entry_t){(uint32_t)dialect, (size & 1) != 0, tt__cursor_take(data, size >> 1)};
    }
  }
  return c->ok && data->ok ? TT_OK_STATUS : tt__bytecode_broken("attributes and types");
}

static tt_status_t read_tables(tt__bytecode_t *b, tt__cursor_t offsets, tt__cursor_t data) {
  b->attr_count = tt__cursor_varint(&offsets);
  b->type_count = tt__cursor_varint(&offsets);
  b->attrs = table(b, &offsets, b->attr_count, sizeof *b->attrs);
  b->types = table(b, &offsets, b->type_count, sizeof *b->types);
  if (!offsets.ok) return tt__bytecode_broken("attributes and types");
  TT_RETURN_IF_ERROR(read_entries(b, &offsets, &data, b->attrs, b->attr_count));
  return read_entries(b, &offsets, &data, b->types, b->type_count);
}

// A section that is missing is empty, and its table too.
tt_status_t tt__bytecode_read(tt__bytecode_t *b, const char *code, size_t size) {
  b->start = (const unsigned char *)code;
  tt__cursor_t c = {b->start + 4, b->start + size, true}, sections[SECTION_COUNT] = {{0}};
  b->version = tt__cursor_varint(&c);
  while (c.ok && tt__cursor_byte(&c)) {
  }  // who wrote it
  while (c.ok && c.at < c.end) {
    tt__cursor_t data;
    uint64_t id = tt__cursor_section(&c, b->start, &data);
    if (c.ok && id < SECTION_COUNT) sections[id] = data;
  }
  if (!c.ok) return tt__bytecode_broken("sections");
  if (b->version != 4) {
    return TT_ERROR(UNIMPLEMENTED, "MLIR bytecode of version %llu; version 4 is read (VHLO 0.14)",
                    (unsigned long long)b->version);
  }
  TT_RETURN_IF_ERROR(read_strings(b, sections[SECTION_STRING]));
  TT_RETURN_IF_ERROR(read_dialects(b, sections[SECTION_DIALECT]));
  TT_RETURN_IF_ERROR(read_tables(b, sections[SECTION_OFFSETS], sections[SECTION_DATA]));
  b->ir = sections[SECTION_IR];
  return b->ir.at ? TT_OK_STATUS : tt__bytecode_broken("no program");
}
