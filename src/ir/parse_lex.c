// The parser's lowest part: characters, words, numbers, types.
#include <stdarg.h>
#include <stdio.h>

#include "ir/location.h"
#include "ir/parse.h"

// Counts lines only now that a failure needs them: reading stays a matter of pointers.
tt_status_t tt__parse_fail(tt__parser_t *ps, const char *at, const char *format, ...) {
  char detail[256];
  va_list args;
  va_start(args, format);
  vsnprintf(detail, sizeof detail, format, args);
  va_end(args);
  if (!at) {
    tt__parse_space(ps);
    at = ps->p;
  }
  int line = 1, column = 1;
  for (const char *q = ps->text; q < at; q++) {
    column = *q == '\n' ? 1 : column + 1;
    line += *q == '\n';
  }
  return TT_ERROR(INVALID_ARGUMENT, "StableHLO text, %d:%d: %s", line, column, detail);
}

void tt__parse_space(tt__parser_t *ps) {
  for (; ps->p < ps->end; ps->p++) {
    char ch = *ps->p;
    if (ch == '/' && ps->end - ps->p > 1 && ps->p[1] == '/') {
      while (ps->p < ps->end && *ps->p != '\n') ps->p++;
      if (ps->p == ps->end) return;
    } else if (ch != ' ' && ch != '\n' && ch != '\t' && ch != '\r') {
      return;
    }
  }
}

char tt__parse_peek(tt__parser_t *ps) {
  tt__parse_space(ps);
  return ps->p < ps->end ? *ps->p : '\0';
}

static bool is_word(char ch) {
  return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9') ||
         ch == '_' || ch == '$' || ch == '.';
}

bool tt__parse_take(tt__parser_t *ps, const char *s) {
  tt__parse_space(ps);
  size_t n = strlen(s);
  if ((size_t)(ps->end - ps->p) < n || memcmp(ps->p, s, n) != 0) return false;
  ps->p += n;
  return true;
}

// Unlike take, not where the text goes on as a longer identifier.
bool tt__parse_word(tt__parser_t *ps, const char *s) {
  tt__parse_space(ps);
  size_t n = strlen(s), left = (size_t)(ps->end - ps->p);
  if (left < n || memcmp(ps->p, s, n) != 0 || (left > n && is_word(ps->p[n]))) return false;
  ps->p += n;
  return true;
}

tt_status_t tt__parse_need(tt__parser_t *ps, const char *s) {
  if (tt__parse_take(ps, s)) return TT_OK_STATUS;
  return tt__parse_fail(ps, NULL, "expected '%s'", s);
}

tt_slice_t tt__parse_identifier(tt__parser_t *ps) {
  tt__parse_space(ps);
  tt_slice_t s = {ps->p, 0};
  while (ps->p < ps->end && is_word(*ps->p)) ps->p++;
  s.size = (size_t)(ps->p - s.at);
  return s;
}

int tt__parse_hex(char ch) {
  if (ch >= '0' && ch <= '9') return ch - '0';
  if (ch >= 'a' && ch <= 'f') return ch - 'a' + 10;
  if (ch >= 'A' && ch <= 'F') return ch - 'A' + 10;
  return -1;
}

// Past the closing quote; false: there is none.
static bool skip_string(tt__parser_t *ps) {
  for (ps->p++; ps->p < ps->end; ps->p++) {
    if (*ps->p == '\\' && ps->end - ps->p > 1) {
      ps->p++;
    } else if (*ps->p == '"') {
      ps->p++;
      return true;
    }
  }
  return false;
}

// MLIR's escapes: \\, \", \n, \t and two hexadecimal digits. A copy in scratch with a final zero.
tt_status_t tt__parse_string(tt__parser_t *ps, tt_slice_t *out) {
  TT_RETURN_IF_ERROR(tt__parse_peek(ps) == '"' ? TT_OK_STATUS
                                               : tt__parse_fail(ps, NULL, "expected a string"));
  const char *start = ps->p;
  if (!skip_string(ps)) return tt__parse_fail(ps, start, "the string does not end");
  size_t size = (size_t)(ps->p - start) - 2;
  char *text = tt_arena_alloc(&ps->scratch, size + 1);
  if (!text) return tt__no_memory();
  size_t n = 0;
  for (const char *q = start + 1, *last = start + 1 + size; q < last; q++) {
    if (*q != '\\' || q + 1 >= last) {
      text[n++] = *q;
      continue;
    }
    q++;
    int high = tt__parse_hex(*q), low = q + 1 < last ? tt__parse_hex(q[1]) : -1;
    if (high >= 0 && low >= 0) {
      text[n++] = (char)(high * 16 + low);
      q++;
    } else {
      text[n++] = *q == 'n' ? '\n' : *q == 't' ? '\t' : *q;
    }
  }
  text[n] = '\0';
  *out = (tt_slice_t){text, n};
  return TT_OK_STATUS;
}

tt_status_t tt__parse_symbol(tt__parser_t *ps, tt_slice_t *out) {
  TT_RETURN_IF_ERROR(tt__parse_need(ps, "@"));
  if (ps->p < ps->end && *ps->p == '"') return tt__parse_string(ps, out);
  tt_slice_t s = {ps->p, 0};
  while (ps->p < ps->end && (is_word(*ps->p) || *ps->p == '-')) ps->p++;
  s.size = (size_t)(ps->p - s.at);
  *out = s;
  return s.size ? TT_OK_STATUS : tt__parse_fail(ps, s.at, "expected a symbol's name");
}

// Accumulates downwards, so that INT64_MIN needs no case of its own.
tt_status_t tt__parse_int(tt__parser_t *ps, int64_t *out) {
  tt__parse_space(ps);
  const char *start = ps->p;
  bool negative = ps->p < ps->end && *ps->p == '-';
  if (negative) ps->p++;
  const char *digits = ps->p;
  int64_t value = 0;
  for (; ps->p < ps->end && *ps->p >= '0' && *ps->p <= '9'; ps->p++) {
    int digit = *ps->p - '0';
    if (__builtin_mul_overflow(value, 10, &value) || __builtin_sub_overflow(value, digit, &value)) {
      return tt__parse_fail(ps, start, "the integer does not fit 64 bits");
    }
  }
  if (ps->p == digits) return tt__parse_fail(ps, start, "expected an integer");
  if (!negative && value == INT64_MIN) {
    return tt__parse_fail(ps, start, "the integer does not fit 64 bits");
  }
  *out = negative ? value : -value;
  return TT_OK_STATUS;
}

// "complex<f32>" or a plain word.
static tt_dtype_t element_type(tt__parser_t *ps) {
  const char *start = ps->p;
  while (ps->p < ps->end && is_word(*ps->p)) ps->p++;
  if (ps->p - start == 7 && memcmp(start, "complex", 7) == 0 && ps->p < ps->end && *ps->p == '<') {
    while (ps->p < ps->end && *ps->p != '>') ps->p++;
    if (ps->p < ps->end) ps->p++;
  }
  return tt_dtype_parse(start, (size_t)(ps->p - start));
}

// A static ranked tensor. "2x3xf32" is not one identifier for us: digits, 'x', digits, 'x', a word.
tt_status_t tt__parse_type(tt__parser_t *ps, tt_type_t *out) {
  int64_t dims[TT_MAX_RANK];
  tt__parse_space(ps);
  const char *start = ps->p;
  *out = (tt_type_t){TT_F32, 0, NULL};
  if (!tt__parse_word(ps, "tensor")) {
    return tt__parse_fail(ps, start,
                          "expected a tensor type (tuples, tokens and quantised types "
                          "are not supported)");
  }
  TT_RETURN_IF_ERROR(tt__parse_need(ps, "<"));
  while (ps->p < ps->end && ((*ps->p >= '0' && *ps->p <= '9') || *ps->p == '?')) {
    if (*ps->p == '?') return tt__parse_fail(ps, NULL, "dynamic dimensions are not supported");
    if (out->rank == TT_MAX_RANK) return tt__parse_fail(ps, NULL, "more than 64 dimensions");
    TT_RETURN_IF_ERROR(tt__parse_int(ps, &dims[out->rank++]));
    if (ps->p == ps->end || *ps->p != 'x') return tt__parse_fail(ps, NULL, "expected 'x'");
    ps->p++;
  }
  const char *element = ps->p;
  out->dtype = element_type(ps);
  if (out->dtype == TT_DTYPE_NONE) {
    return tt__parse_fail(ps, element, "element type '%.*s' is not supported",
                          (int)(ps->p - element > 40 ? 40 : ps->p - element), element);
  }
  // A sharding or layout may follow; bounds belong to dynamic dimensions, which are refused above.
  if (tt__parse_take(ps, ",")) TT_RETURN_IF_ERROR(tt__parse_skip(ps));
  TT_RETURN_IF_ERROR(tt__parse_need(ps, ">"));
  out->dims = tt_arena_copy(&ps->scratch, dims, out->rank * sizeof *dims);
  if (!out->dims) return tt__no_memory();
  tt_status_t s = tt__type_check(out);
  if (!s) return TT_OK_STATUS;
  tt_status_release(s);
  return tt__parse_fail(ps, start, "the tensor is too large");
}

// Counts brackets of all kinds as one: what is skipped has been written by a printer, and a
// mismatch shows at the next token. The '>' of an arrow closes nothing.
tt_status_t tt__parse_skip(tt__parser_t *ps) {
  int depth = 0;
  tt__parse_space(ps);
  const char *start = ps->p;
  for (; ps->p < ps->end; tt__parse_space(ps)) {
    char ch = *ps->p;
    if (ch == '"') {
      if (!skip_string(ps)) return tt__parse_fail(ps, start, "a string does not end");
      continue;
    }
    bool arrow = ch == '-' && ps->end - ps->p > 1 && ps->p[1] == '>';
    if (arrow) {
      ps->p += 2;
      continue;
    }
    if (depth == 0 && (ch == ',' || ch == ')' || ch == ']' || ch == '}' || ch == '>')) {
      return TT_OK_STATUS;
    }
    depth += ch == '(' || ch == '[' || ch == '{' || ch == '<';
    depth -= ch == ')' || ch == ']' || ch == '}' || ch == '>';
    ps->p++;
  }
  return tt__parse_fail(ps, start, "a value does not end");
}

// The name of loc("name") is kept, file positions and fused locations are skipped.
tt_status_t tt__parse_location(tt__parser_t *ps, uint32_t *out) {
  *out = 0;
  const char *start = ps->p;
  if (!tt__parse_word(ps, "loc")) return TT_OK_STATUS;
  if (!tt__parse_take(ps, "(")) {
    ps->p = start;
    return TT_OK_STATUS;
  }
  if (tt__parse_peek(ps) == '"') {
    tt_slice_t name;
    TT_RETURN_IF_ERROR(tt__parse_string(ps, &name));
    *out = tt_location_append(ps->graph, name.at, name.size);
  }
  while (tt__parse_peek(ps) != ')') {
    TT_RETURN_IF_ERROR(tt__parse_skip(ps));
    if (tt__parse_take(ps, ",")) continue;
    if (tt__parse_peek(ps) != ')') return tt__parse_fail(ps, start, "the location does not end");
  }
  return tt__parse_need(ps, ")");
}
