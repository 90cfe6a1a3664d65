// Dense data: nested lists, splats, and strings of hexadecimal bytes.
#include <stdlib.h>

#include "base/half.h"
#include "ir/parse.h"

// An integer literal's magnitude and sign, or a float's bits written in hexadecimal.
typedef struct number_s {
  uint64_t magnitude;
  double real;
  bool negative, hex, is_real;
} number_t;

// Copied to a buffer: strtod needs a final zero, and no literal is longer.
static tt_status_t read_number(tt__parser_t *ps, number_t *out) {
  tt__parse_space(ps);
  const char *start = ps->p;
  char text[128];
  size_t n = 0;
  *out = (number_t){0};
  while (ps->p < ps->end && n + 1 < sizeof text) {
    char ch = *ps->p;
    bool part = (ch >= '0' && ch <= '9') || (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') ||
                ch == '.' || ch == '-' || ch == '+';
    if (!part) break;
    text[n++] = ch;
    ps->p++;
  }
  text[n] = '\0';
  char *digits = text, *stop;
  out->negative = *digits == '-';
  digits += out->negative;
  if (*digits < '0' || *digits > '9') return tt__parse_fail(ps, start, "expected a number");
  out->hex = digits[0] == '0' && digits[1] == 'x';
  // Only a point makes a float: 1e5 is not MLIR's way of writing one, but is taken.
  out->is_real = !out->hex && strpbrk(digits, ".eE") != NULL;
  if (out->is_real) {
    out->real = strtod(digits, &stop);
    if (out->negative) out->real = -out->real;
  } else {
    unsigned long long u = 0;
    bool overflow = false;
    for (stop = digits + (out->hex ? 2 : 0); *stop; stop++) {
      int base = out->hex ? 16 : 10, d;
      if (*stop >= '0' && *stop <= '9') {
        d = *stop - '0';
      } else if (out->hex && (*stop | 32) >= 'a' && (*stop | 32) <= 'f') {
        d = (*stop | 32) - 'a' + 10;
      } else {
        break;
      }
      overflow |= __builtin_mul_overflow(u, (unsigned)base, &u);
      overflow |= __builtin_add_overflow(u, (unsigned)d, &u);
    }
    if (overflow) return tt__parse_fail(ps, start, "the number does not fit 64 bits");
    out->magnitude = u;
  }
  return *stop ? tt__parse_fail(ps, start, "'%.40s' is no number", text) : TT_OK_STATUS;
}

// 4-bit values fill a byte, sign- or zero-extended, as everywhere in memory.
static tt_status_t read_int(tt__parser_t *ps, tt_dtype_t dtype, unsigned char *out) {
  const char *start = ps->p;
  number_t n;
  TT_RETURN_IF_ERROR(read_number(ps, &n));
  uint32_t bits = tt_dtype_infos[dtype].bits;
  // Signless types: both readings of the bits may be written.
  uint64_t largest = UINT64_MAX >> (64 - bits), lowest = UINT64_C(1) << (bits - 1);
  if (n.is_real || n.magnitude > (n.negative ? lowest : largest)) {
    return tt__parse_fail(ps, start, "the number is no %s", tt_dtype_text(dtype));
  }
  uint64_t value = n.negative ? 0 - n.magnitude : n.magnitude;
  if (dtype == TT_S4) value = (uint64_t)((int64_t)(value << 60) >> 60);
  if (dtype == TT_U4) value &= 15;
  memcpy(out, &value, tt_dtype_size(dtype));
  return TT_OK_STATUS;
}

// Hexadecimal literals are bit patterns, MLIR's way to write NaN and infinities.
static tt_status_t read_real(tt__parser_t *ps, tt_dtype_t dtype, unsigned char *out) {
  const char *start = ps->p;
  number_t n;
  TT_RETURN_IF_ERROR(read_number(ps, &n));
  if (n.hex) {
    if (n.negative || n.magnitude > UINT64_MAX >> (64 - tt_dtype_infos[dtype].bits)) {
      return tt__parse_fail(ps, start, "the bits are no %s", tt_dtype_text(dtype));
    }
    memcpy(out, &n.magnitude, tt_dtype_size(dtype));
    return TT_OK_STATUS;
  }
  double whole = n.negative ? -(double)n.magnitude : (double)n.magnitude;
  tt__element_double(dtype, n.is_real ? n.real : whole, out);
  return TT_OK_STATUS;
}

// One byte a pred and at least one an integer, as in memory; the two parts of a complex number
// follow one another.
static tt_status_t read_element(tt__parser_t *ps, tt_dtype_t dtype, unsigned char *out) {
  switch (tt_dtype_class(dtype)) {
    case TT_CLASS_PRED: {
      bool yes = tt__parse_word(ps, "true") || tt__parse_word(ps, "1");
      bool no = !yes && (tt__parse_word(ps, "false") || tt__parse_word(ps, "0"));
      *out = yes;
      return yes || no ? TT_OK_STATUS : tt__parse_fail(ps, NULL, "expected true or false");
    }
    case TT_CLASS_SIGNED:
    case TT_CLASS_UNSIGNED:
      return read_int(ps, dtype, out);
    case TT_CLASS_FLOAT:
      return read_real(ps, dtype, out);
    case TT_CLASS_COMPLEX:
      break;
  }
  tt_dtype_t part = tt_dtype_real(dtype);
  TT_RETURN_IF_ERROR(tt__parse_need(ps, "("));
  TT_RETURN_IF_ERROR(read_real(ps, part, out));
  TT_RETURN_IF_ERROR(tt__parse_need(ps, ","));
  TT_RETURN_IF_ERROR(read_real(ps, part, out + tt_dtype_size(part)));
  return tt__parse_need(ps, ")");
}

// The lists' nesting must follow the shape. An odometer instead of recursion: counts[d] elements of
// the open list at depth d have been read. Writes as many elements as the type has, never more.
static tt_status_t read_lists(tt__parser_t *ps, const tt_type_t *type, unsigned char *out) {
  int64_t counts[TT_MAX_RANK] = {0};
  uint32_t depth = 0;
  size_t one = tt_dtype_size(type->dtype);
  for (;;) {
    if (depth < type->rank && tt__parse_take(ps, "[")) {
      counts[depth++] = 0;
      if (type->dims[depth - 1] != 0) continue;
    } else {
      if (depth != type->rank) return tt__parse_fail(ps, NULL, "the lists do not have the shape");
      TT_RETURN_IF_ERROR(read_element(ps, type->dtype, out));
      out += one;
    }
    // Close every list that is full, then step in the one that is not.
    bool closed_empty = depth > 0 && type->dims[depth - 1] == 0;
    for (; depth > 0; depth--) {
      if (!closed_empty && ++counts[depth - 1] < type->dims[depth - 1]) break;
      closed_empty = false;
      TT_RETURN_IF_ERROR(tt__parse_need(ps, "]"));
    }
    if (depth == 0) return TT_OK_STATUS;
    TT_RETURN_IF_ERROR(tt__parse_need(ps, ","));
  }
}

// i1 is packed eight to a byte, least significant bit first.
static tt_status_t unpack_bits(tt__parser_t *ps, const unsigned char *packed, size_t size,
                               int64_t elements, const void **out, size_t *out_size) {
  bool splat = size == 1 && elements > 8;
  if (!splat && size != ((size_t)elements + 7) / 8) {
    return tt__parse_fail(ps, NULL, "%zu bytes for %lld bits", size, (long long)elements);
  }
  size_t count = splat ? 1 : (size_t)elements;
  unsigned char *bytes = tt_arena_alloc(&ps->scratch, count);
  if (!bytes) return tt__no_memory();
  for (size_t i = 0; i < count; i++) bytes[i] = packed[i / 8] >> (i % 8) & 1;
  *out = bytes;
  *out_size = count;
  return TT_OK_STATUS;
}

// Raw little-endian bytes: the whole tensor, or one element for a splat.
static tt_status_t read_hex(tt__parser_t *ps, const tt_type_t *type, const void **out,
                            size_t *out_size) {
  const char *start = ++ps->p;
  while (ps->p < ps->end && *ps->p != '"') ps->p++;
  size_t digits = (size_t)(ps->p - start);
  if (ps->p == ps->end || digits < 2 || start[0] != '0' || start[1] != 'x' || digits % 2) {
    return tt__parse_fail(ps, start, "expected an even number of hexadecimal digits after 0x");
  }
  ps->p++;
  size_t size = (digits - 2) / 2, one = tt_dtype_size(type->dtype);
  unsigned char *bytes = tt_arena_alloc(&ps->scratch, size);
  if (!bytes) return tt__no_memory();
  for (size_t i = 0; i < size; i++) {
    int high = tt__parse_hex(start[2 + 2 * i]), low = tt__parse_hex(start[3 + 2 * i]);
    if (high < 0 || low < 0) return tt__parse_fail(ps, start + 2 + 2 * i, "no hexadecimal digit");
    bytes[i] = (unsigned char)(high * 16 + low);
  }
  if (type->dtype == TT_I1) {
    return unpack_bits(ps, bytes, size, tt_type_elements(type), out, out_size);
  }
  if (size != one && size != tt_type_bytes(type)) {
    return tt__parse_fail(ps, start, "%zu bytes, the type needs %zu", size, tt_type_bytes(type));
  }
  *out = bytes;
  *out_size = size;
  return TT_OK_STATUS;
}

// The data between the angle brackets, ps->p at its first character.
static tt_status_t read_data(tt__parser_t *ps, const tt_type_t *type, const char *stop,
                             const void **out, size_t *out_size) {
  char ch = tt__parse_peek(ps);
  size_t bytes = tt_type_bytes(type), one = tt_dtype_size(type->dtype);
  if (ps->p >= stop) {
    if (bytes) return tt__parse_fail(ps, NULL, "the data is missing");
    *out = "";
    *out_size = 0;
    return TT_OK_STATUS;
  }
  if (ch == '"') return read_hex(ps, type, out, out_size);
  bool lists = ch == '[';
  // An element takes at least two characters with its comma: absurd types ask for no memory.
  if (lists && (size_t)tt_type_elements(type) > (size_t)(stop - ps->p)) {
    return tt__parse_fail(ps, NULL, "the data is shorter than its type");
  }
  unsigned char *data = tt_arena_alloc(&ps->scratch, lists ? bytes : one);
  if (!data) return tt__no_memory();
  *out = data;
  *out_size = lists ? bytes : one;
  return lists ? read_lists(ps, type, data) : read_element(ps, type->dtype, data);
}

// Reads backwards: the end of the data is found by its bracket (a quoted string may contain one),
// the type after it is read, and then the data by the type.
tt_status_t tt__parse_dense(tt__parser_t *ps, tt_type_t *out_type, const void **out_bytes,
                            size_t *out_size) {
  if (!tt__parse_word(ps, "dense")) {
    return tt__parse_fail(ps, NULL, "expected dense<...> (resources are not supported)");
  }
  TT_RETURN_IF_ERROR(tt__parse_need(ps, "<"));
  // The type says how to read the data and comes after it.
  const char *data = ps->p, *stop;
  bool quoted = false;
  for (stop = data; stop < ps->end && (quoted || *stop != '>'); stop++) quoted ^= *stop == '"';
  if (stop == ps->end) return tt__parse_fail(ps, data, "the data does not end");
  ps->p = stop + 1;
  TT_RETURN_IF_ERROR(tt__parse_need(ps, ":"));
  TT_RETURN_IF_ERROR(tt__parse_type(ps, out_type));
  const char *after = ps->p;
  ps->p = data;
  TT_RETURN_IF_ERROR(read_data(ps, out_type, stop, out_bytes, out_size));
  tt__parse_space(ps);
  if (ps->p != stop) return tt__parse_fail(ps, NULL, "expected '>'");
  ps->p = after;
  return TT_OK_STATUS;
}
