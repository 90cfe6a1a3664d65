// The program: ops, regions, attributes and types as StableHLO text in the generic form, which the
// parser reads. Values are numbered per region in the order of their definition; the printer keeps
// a stack of those that are open and gives each a name of its own.
#include <string.h>

#include "base/alloc.h"
#include "ir/graph.h"
#include "softtpu/plugin/bytecode.h"

// Types in types, lists in lists, regions in regions: all recurse on our stack.
#define MAX_DEPTH 200

typedef struct value_s {
  uint32_t id, result;  // "%id#result"; result NO_RESULT: "%id"
  uint64_t type;
} value_t;
#define NO_RESULT UINT32_MAX

typedef struct printer_s {
  tt__bytecode_t *b;
  tt_text_t t;
  value_t *values;  // of the regions that are open, innermost last
  uint32_t value_count, value_capacity;
  uint32_t next;  // the next value of the innermost region to be defined
  uint32_t ids;
  uint32_t depth;
} printer_t;

// --- text ---

static void put(printer_t *p, const char *text, size_t size) { tt_text_put(&p->t, text, size); }

static void put_quoted(printer_t *p, tt_slice_t text) { tt_text_quoted(&p->t, text.at, text.size); }

// --- types ---

enum { TYPE_COMPLEX = 1, TYPE_FUNCTION = 8, TYPE_TENSOR = 20, TYPE_TENSOR_ENCODED = 21 };

// By VHLO's numbers; NULL: not a plain element type that we have.
static const char *const elements[] = {
    [0] = "i1",     [2] = "bf16",  [3] = "f16",  [4] = "f32",   [5] = "f64",   [6] = "f8E4M3FN",
    [7] = "f8E5M2", [9] = "index", [10] = "i4",  [11] = "i8",   [12] = "i16",  [13] = "i32",
    [14] = "i64",   [15] = "ui4",  [16] = "ui8", [17] = "ui16", [18] = "ui32", [19] = "ui64",
};

static bool is_vhlo(const tt__bytecode_t *b, const tt__entry_t *entry) {
  return entry->custom && tt_slice_is(b->dialects[entry->dialect], "vhlo");
}

// The type's data behind its number; fails for types that are not of VHLO.
static tt_status_t type_entry(printer_t *p, uint64_t index, tt__cursor_t *out, uint64_t *out_code) {
  if (index >= p->b->type_count) return tt__bytecode_broken("a type's number");
  const tt__entry_t *entry = &p->b->types[index];
  if (!is_vhlo(p->b, entry)) {
    tt_slice_t name = p->b->dialects[entry->dialect];
    return TT_ERROR(UNIMPLEMENTED, "a type of the dialect %.*s", (int)name.size, name.at);
  }
  *out = entry->data;
  *out_code = tt__cursor_varint(out);
  return TT_OK_STATUS;
}

static tt_status_t print_type(printer_t *p, uint64_t index) {
  tt__cursor_t c;
  uint64_t code;
  TT_RETURN_IF_ERROR(type_entry(p, index, &c, &code));
  if (code < sizeof elements / sizeof *elements && elements[code]) {
    put(p, elements[code], strlen(elements[code]));
    return TT_OK_STATUS;
  }
  if (++p->depth > MAX_DEPTH) return tt__bytecode_broken("types inside types");
  tt_status_t status = TT_OK_STATUS;
  if (code == TYPE_COMPLEX) {
    put(p, "complex<", 8);
    status = print_type(p, tt__cursor_varint(&c));
  } else if (code == TYPE_TENSOR || code == TYPE_TENSOR_ENCODED) {
    put(p, "tensor<", 7);
    if (code == TYPE_TENSOR_ENCODED) (void)tt__cursor_varint(&c);
    uint64_t rank = tt__cursor_varint(&c);
    for (uint64_t i = 0; c.ok && i < rank; i++) {
      int64_t dim = tt__cursor_signed(&c);
      if (dim < 0) {
        put(p, "?x", 2);
      } else {
        tt_text_format(&p->t, "%lldx", (long long)dim);
      }
    }
    status = print_type(p, tt__cursor_varint(&c));
  } else {
    return TT_ERROR(UNIMPLEMENTED, "the type with VHLO number %llu", (unsigned long long)code);
  }
  put(p, ">", 1);
  p->depth--;
  if (!status && !c.ok) status = tt__bytecode_broken("a type");
  return status;
}

// A counted list.
static tt_status_t print_types(printer_t *p, tt__cursor_t *c) {
  uint64_t count = tt__cursor_varint(c);
  for (uint64_t i = 0; c->ok && i < count; i++) {
    if (i) put(p, ", ", 2);
    TT_RETURN_IF_ERROR(print_type(p, tt__cursor_varint(c)));
  }
  return c->ok ? TT_OK_STATUS : tt__bytecode_broken("a list of types");
}

// --- attributes ---

enum {
  ATTR_ARRAY = 1,
  ATTR_BOOLEAN,
  ATTR_DIRECTION,
  ATTR_COMPARE_TYPE,
  ATTR_API_VERSION,
  ATTR_DICTIONARY,
  ATTR_FFT,
  ATTR_FLOAT,
  ATTR_INTEGER,
  ATTR_ALIAS,
  ATTR_PRECISION,
  ATTR_ALGORITHM,
  ATTR_DISTRIBUTION,
  ATTR_STRING,
  ATTR_TENSOR,
  ATTR_TRANSPOSE,
  ATTR_TYPE,
  ATTR_ENDS,
};

#define ENUM_SIZE 6
static const char *const enums[ATTR_ENDS][ENUM_SIZE] = {
    [ATTR_DIRECTION] = {"EQ", "NE", "GE", "GT", "LE", "LT"},
    [ATTR_COMPARE_TYPE] = {"NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"},
    [ATTR_FFT] = {"FFT", "IFFT", "RFFT", "IRFFT"},
    [ATTR_PRECISION] = {"DEFAULT", "HIGH", "HIGHEST"},
    [ATTR_ALGORITHM] = {"DEFAULT", "THREE_FRY", "PHILOX"},
    [ATTR_DISTRIBUTION] = {NULL, "UNIFORM", "NORMAL"},
    [ATTR_TRANSPOSE] = {"TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"},
};

// The attribute's data behind its number, or 0 where it is not of VHLO.
static uint64_t attr_entry(printer_t *p, uint64_t index, tt__cursor_t *out) {
  *out = (tt__cursor_t){NULL, NULL, false};
  if (index >= p->b->attr_count || !is_vhlo(p->b, &p->b->attrs[index])) return 0;
  *out = p->b->attrs[index].data;
  return tt__cursor_varint(out);
}

// A string attribute's text, empty where it is none.
static tt_slice_t string_attr(printer_t *p, uint64_t index) {
  tt__cursor_t c;
  uint64_t string = p->b->string_count;
  if (attr_entry(p, index, &c) == ATTR_STRING) string = tt__cursor_varint(&c);
  return c.ok && string < p->b->string_count ? p->b->strings[string] : (tt_slice_t){"", 0};
}

// The name in a dictionary of MLIR's own: a string attribute of the builtin dialect.
static tt_slice_t builtin_string(printer_t *p, uint64_t index) {
  enum { BUILTIN_STRING = 2 };
  if (index >= p->b->attr_count) return (tt_slice_t){"", 0};
  const tt__entry_t *entry = &p->b->attrs[index];
  tt__cursor_t c = entry->data;
  if (!entry->custom || tt__cursor_varint(&c) != BUILTIN_STRING) return (tt_slice_t){"", 0};
  uint64_t string = tt__cursor_varint(&c);
  return c.ok && string < p->b->string_count ? p->b->strings[string] : (tt_slice_t){"", 0};
}

// Raw data as hexadecimal digits, splat or not: the parser tells by the size.
static tt_status_t print_tensor(printer_t *p, tt__cursor_t *c) {
  uint64_t type = tt__cursor_varint(c);
  tt__cursor_t data = tt__cursor_take(c, tt__cursor_varint(c));
  static const char digits[] = "0123456789ABCDEF";
  put(p, "dense<", 6);
  if (data.at < data.end) put(p, "\"0x", 3);
  for (const unsigned char *at = data.at; at < data.end; at++) {
    char pair[2] = {digits[*at >> 4], digits[*at & 15]};
    put(p, pair, 2);
  }
  if (data.at < data.end) put(p, "\"", 1);
  put(p, "> : ", 4);
  return print_type(p, type);
}

// By VHLO's number. The look at `failed` ends recursions that print without end: attributes may
// refer to one another in circles.
static tt_status_t print_attr(printer_t *p, uint64_t index) {
  if (p->t.failed) return tt__bytecode_broken("it spells too long a text");
  tt__cursor_t c;
  uint64_t code = attr_entry(p, index, &c);
  if (code == 0 || code >= ATTR_ENDS) {
    return TT_ERROR(UNIMPLEMENTED, "an attribute with VHLO number %llu", (unsigned long long)code);
  }
  switch (code) {
    case ATTR_ARRAY: {
      uint64_t count = tt__cursor_varint(&c);
      if (++p->depth > MAX_DEPTH) return tt__bytecode_broken("lists inside lists");
      put(p, "[", 1);
      for (uint64_t i = 0; c.ok && i < count; i++) {
        if (i) put(p, ", ", 2);
        TT_RETURN_IF_ERROR(print_attr(p, tt__cursor_varint(&c)));
      }
      put(p, "]", 1);
      p->depth--;
      break;
    }
    case ATTR_BOOLEAN:
      tt_text_format(&p->t, "%s", tt__cursor_varint(&c) ? "true" : "false");
      break;
    case ATTR_API_VERSION:
      tt_text_format(&p->t, "%llu : i32", (unsigned long long)tt__cursor_varint(&c));
      break;
    case ATTR_FLOAT: {
      (void)tt__cursor_varint(&c);  // f32: the only place of one is epsilon
      uint32_t bits = (uint32_t)tt__cursor_signed(&c);
      float value;
      memcpy(&value, &bits, sizeof value);
      tt_text_format(&p->t, "%.9e : f32", (double)value);
      break;
    }
    case ATTR_INTEGER: {
      tt__cursor_t type;
      uint64_t element = 0;
      TT_RETURN_IF_ERROR(type_entry(p, tt__cursor_varint(&c), &type, &element));
      bool narrow = element == 10 || element == 11 || element == 15 || element == 16;
      tt_text_format(
          &p->t, "%lld",
          narrow ? (long long)(int8_t)tt__cursor_byte(&c) : (long long)tt__cursor_signed(&c));
      break;
    }
    case ATTR_STRING:
      put_quoted(p, string_attr(p, index));
      return TT_OK_STATUS;
    case ATTR_TENSOR:
      return print_tensor(p, &c);
    default: {
      uint64_t value = tt__cursor_varint(&c);
      const char *name = value < ENUM_SIZE ? enums[code][value] : NULL;
      if (!name) return tt__bytecode_broken("an attribute's value");
      put(p, name, strlen(name));
    }
  }
  return c.ok ? TT_OK_STATUS : tt__bytecode_broken("an attribute");
}

// What the parser has a use for.
static bool is_wanted(printer_t *p, tt_slice_t name, uint64_t value) {
  tt__cursor_t c;
  if (attr_entry(p, value, &c) == ATTR_DICTIONARY) return false;
  for (uint32_t k = 0; k < TT_ATTR_COUNT; k++) {
    if (tt_slice_is(name, tt_attr_names[k])) return true;
  }
  return false;
}

// An op's attributes: MLIR's own dictionary.
typedef struct dictionary_s {
  tt__cursor_t pairs;
  uint64_t count;
} dictionary_t;

// Empty where the attribute is no dictionary.
static dictionary_t open_dictionary(printer_t *p, uint64_t index) {
  enum { BUILTIN_DICTIONARY = 1 };
  dictionary_t d = {{NULL, NULL, true}, 0};
  if (index >= p->b->attr_count || !p->b->attrs[index].custom) return d;
  d.pairs = p->b->attrs[index].data;
  if (tt__cursor_varint(&d.pairs) == BUILTIN_DICTIONARY) d.count = tt__cursor_varint(&d.pairs);
  return d;
}

static bool next_pair(printer_t *p, dictionary_t *d, tt_slice_t *out_name, uint64_t *out_value) {
  if (d->count == 0 || !d->pairs.ok) return false;
  d->count--;
  *out_name = builtin_string(p, tt__cursor_varint(&d->pairs));
  *out_value = tt__cursor_varint(&d->pairs);
  return d->pairs.ok;
}

// By value: the search does not move the caller's dictionary.
static bool find_attr(printer_t *p, dictionary_t d, const char *wanted, uint64_t *out_value) {
  tt_slice_t name;
  while (next_pair(p, &d, &name, out_value)) {
    if (tt_slice_is(name, wanted)) return true;
  }
  return false;
}

static tt_status_t print_attrs(printer_t *p, dictionary_t d) {
  tt_slice_t name;
  uint64_t value;
  const char *between = "";
  put(p, " <{", 3);
  while (next_pair(p, &d, &name, &value)) {
    bool symbol = tt_slice_is(name, "callee") || tt_slice_is(name, "decomposition");
    if (!symbol && !is_wanted(p, name, value)) continue;
    tt_text_format(&p->t, "%s", between);
    between = ", ";
    put(p, name.at, name.size);
    put(p, " = ", 3);
    if (symbol) {
      tt_slice_t target = string_attr(p, value);
      put(p, "@", 1);
      put_quoted(p, target);
    } else {
      TT_RETURN_IF_ERROR(print_attr(p, value));
    }
  }
  put(p, "}>", 2);
  return TT_OK_STATUS;
}

// --- ops ---

enum {
  HAS_ATTRS = 1,
  HAS_RESULTS = 2,
  HAS_OPERANDS = 4,
  HAS_REGIONS = 16,
  HAS_ORDERS = 32,
  KNOWN = HAS_ATTRS | HAS_RESULTS | HAS_OPERANDS | HAS_REGIONS | HAS_ORDERS,
};

// One op, its regions still to be read. Lists are in the bytecode's arena.
typedef struct op_s {
  tt__op_name_t name;
  dictionary_t attrs;
  uint32_t id;
  uint64_t result_count, operand_count, region_count;
  value_t *operands;
  uint64_t *results;  // types
  bool isolated;
} op_t;

static tt_status_t print_op(printer_t *p, tt__cursor_t *c);

static void put_value(printer_t *p, const value_t *value) {
  tt_text_format(&p->t, value->result == NO_RESULT ? "%%%u" : "%%%u#%u", value->id, value->result);
}

// The next value of the innermost region. An id of 0 marks places that are not defined yet.
static tt_status_t define(printer_t *p, uint32_t id, uint32_t result, uint64_t type) {
  if (p->next >= p->value_count) return tt__bytecode_broken("more values than announced");
  p->values[p->next++] = (value_t){id, result, type};
  return TT_OK_STATUS;
}

// In which order a value's uses are listed means nothing to us.
static void skip_orders(tt__cursor_t *c, uint64_t value_count) {
  uint64_t lists = value_count > 1 ? tt__cursor_varint(c) : 1;
  for (uint64_t i = 0; c->ok && i < lists; i++) {
    if (value_count > 1) (void)tt__cursor_varint(c);
    for (uint64_t n = tt__cursor_varint(c) >> 1; c->ok && n > 0; n--) (void)tt__cursor_varint(c);
  }
}

static tt_status_t read_results(printer_t *p, tt__cursor_t *c, op_t *op) {
  op->result_count = tt__cursor_varint(c);
  if (op->result_count > (uint64_t)(c->end - c->at)) return tt__bytecode_broken("results");
  op->results = TT_ARENA_ARRAY(&p->b->arena, uint64_t, op->result_count);
  if (!op->results) return TT_ERROR(OUT_OF_MEMORY, "no host memory for a program");
  for (uint64_t i = 0; i < op->result_count; i++) {
    op->results[i] = tt__cursor_varint(c);
  }
  return TT_OK_STATUS;
}

static tt_status_t read_operands(printer_t *p, tt__cursor_t *c, op_t *op) {
  op->operand_count = tt__cursor_varint(c);
  if (op->operand_count > (uint64_t)(c->end - c->at)) return tt__bytecode_broken("operands");
  op->operands = TT_ARENA_ARRAY(&p->b->arena, value_t, op->operand_count);
  if (!op->operands) return TT_ERROR(OUT_OF_MEMORY, "no host memory for a program");
  for (uint64_t i = 0; i < op->operand_count; i++) {
    uint64_t index = tt__cursor_varint(c);
    if (index >= p->value_count || p->values[index].id == 0) {
      return tt__bytecode_broken("an operand that is not defined yet");
    }
    op->operands[i] = p->values[index];
  }
  return TT_OK_STATUS;
}

// Everything up to the regions, whose data follow. Results are defined before the regions are read,
// as MLIR numbers them.
static tt_status_t read_op(printer_t *p, tt__cursor_t *c, op_t *op) {
  uint64_t name = tt__cursor_varint(c), mask = tt__cursor_byte(c);
  (void)tt__cursor_varint(c);  // location
  if (!c->ok || name >= p->b->op_count) return tt__bytecode_broken("an op");
  if (mask & ~(uint64_t)KNOWN) {
    return TT_ERROR(UNIMPLEMENTED, "successors or properties in bytecode");
  }
  *op = (op_t){.name = p->b->ops[name], .id = ++p->ids};
  if (mask & HAS_ATTRS) op->attrs = open_dictionary(p, tt__cursor_varint(c));
  if (mask & HAS_RESULTS) TT_RETURN_IF_ERROR(read_results(p, c, op));
  if (mask & HAS_OPERANDS) TT_RETURN_IF_ERROR(read_operands(p, c, op));
  if (mask & HAS_ORDERS) skip_orders(c, op->result_count);
  if (mask & HAS_REGIONS) {
    uint64_t count = tt__cursor_varint(c);
    op->region_count = count >> 1;
    op->isolated = count & 1;
  }
  if (!c->ok) return tt__bytecode_broken("an op");
  for (uint64_t i = 0; i < op->result_count; i++) {
    TT_RETURN_IF_ERROR(
        define(p, op->id, op->result_count > 1 ? (uint32_t)i : NO_RESULT, op->results[i]));
  }
  return TT_OK_STATUS;
}

// --- regions ---

// What a block's arguments are printed as.
typedef tt_status_t (*arguments_fn_t)(printer_t *p, const op_t *op, const value_t *args,
                                      uint64_t count);

static tt_status_t read_block(printer_t *p, tt__cursor_t *c, const op_t *op, arguments_fn_t begin) {
  uint64_t header = tt__cursor_varint(c), count = 0;
  uint32_t first = p->next;
  if (header & 1) {
    count = tt__cursor_varint(c);
    for (uint64_t i = 0; c->ok && i < count; i++) {
      uint64_t type = tt__cursor_varint(c);
      if (type & 1) (void)tt__cursor_varint(c);  // location
      TT_RETURN_IF_ERROR(define(p, ++p->ids, NO_RESULT, type >> 1));
    }
    if (tt__cursor_byte(c)) skip_orders(c, count);
  }
  if (begin) TT_RETURN_IF_ERROR(begin(p, op, p->values + first, count));
  for (uint64_t i = 0; c->ok && i < header >> 1; i++) TT_RETURN_IF_ERROR(print_op(p, c));
  return c->ok ? TT_OK_STATUS : tt__bytecode_broken("a block");
}

// Room for a region's values on top of those that are open.
static tt_status_t open_values(printer_t *p, uint64_t count) {
  if (count > UINT32_MAX / 2 - p->value_count ||
      !tt_grow((void **)&p->values, &p->value_capacity, p->value_count + (uint32_t)count,
               sizeof *p->values)) {
    return TT_ERROR(OUT_OF_MEMORY, "no host memory for a program's values");
  }
  if (count) memset(p->values + p->value_count, 0, sizeof *p->values * (size_t)count);
  p->next = p->value_count;
  p->value_count += (uint32_t)count;
  return TT_OK_STATUS;
}

static tt_status_t read_region(printer_t *p, tt__cursor_t *c, const op_t *op,
                               arguments_fn_t begin) {
  uint64_t blocks = tt__cursor_varint(c);
  if (blocks != 1)
    return TT_ERROR(UNIMPLEMENTED, "a region of %llu blocks", (unsigned long long)blocks);
  uint64_t count = tt__cursor_varint(c);
  if (!c->ok || count > (uint64_t)(c->end - c->at)) return tt__bytecode_broken("a region");
  if (++p->depth > MAX_DEPTH) return tt__bytecode_broken("regions inside regions");
  uint32_t outer_next = p->next, outer_count = p->value_count;
  TT_RETURN_IF_ERROR(open_values(p, count));
  TT_RETURN_IF_ERROR(read_block(p, c, op, begin));
  p->next = outer_next;
  p->value_count = outer_count;
  p->depth--;
  return TT_OK_STATUS;
}

// Isolated regions are a section of their own and number their values from zero.
static tt_status_t read_isolated(printer_t *p, tt__cursor_t *c, const op_t *op,
                                 arguments_fn_t begin) {
  tt__cursor_t inner;
  (void)tt__cursor_section(c, p->b->start, &inner);
  if (!c->ok) return tt__bytecode_broken("an isolated region");
  value_t *values = p->values;
  uint32_t count = p->value_count, capacity = p->value_capacity, next = p->next;
  p->values = NULL;
  p->value_count = p->value_capacity = p->next = 0;
  tt_status_t status = read_region(p, &inner, op, begin);
  tt_free(p->values);
  p->values = values;
  p->value_count = count;
  p->value_capacity = capacity;
  p->next = next;
  return status;
}

static tt_status_t begin_region(printer_t *p, const op_t *op, const value_t *args, uint64_t count) {
  (void)op;
  put(p, "{\n", 2);
  if (count) put(p, "^bb0(", 5);
  for (uint64_t i = 0; i < count; i++) {
    if (i) put(p, ", ", 2);
    put_value(p, &args[i]);
    put(p, ": ", 2);
    TT_RETURN_IF_ERROR(print_type(p, args[i].type));
  }
  if (count) put(p, "):\n", 3);
  return TT_OK_STATUS;
}

// --- functions ---

// What the caller says about an argument: which of its memory may be reused.
static tt_status_t print_donation(printer_t *p, uint64_t dictionary) {
  tt__cursor_t c;
  if (attr_entry(p, dictionary, &c) != ATTR_DICTIONARY) return TT_OK_STATUS;
  uint64_t count = tt__cursor_varint(&c);
  for (uint64_t i = 0; c.ok && i < count; i++) {
    tt_slice_t name = string_attr(p, tt__cursor_varint(&c));
    uint64_t value = tt__cursor_varint(&c);
    bool alias = tt_slice_is(name, "tf.aliasing_output");
    if (!alias && !tt_slice_is(name, "jax.buffer_donor")) continue;
    tt_text_format(&p->t, " {%s = ", alias ? "tf.aliasing_output" : "jax.buffer_donor");
    TT_RETURN_IF_ERROR(print_attr(p, value));
    tt_text_format(&p->t, "%s}", alias ? " : i32" : "");
  }
  return TT_OK_STATUS;
}

// "func.func @name(arguments) -> (results) {"
static tt_status_t begin_function(printer_t *p, const op_t *op, const value_t *args,
                                  uint64_t count) {
  uint64_t value, type = 0, code = 0;
  tt__cursor_t attrs = {NULL, NULL, false}, c;
  if (!find_attr(p, op->attrs, "sym_name", &value)) return tt__bytecode_broken("a function's name");
  put(p, "func.func @", 11);
  put_quoted(p, string_attr(p, value));
  if (find_attr(p, op->attrs, "arg_attrs", &value) && attr_entry(p, value, &attrs) == ATTR_ARRAY) {
    if (tt__cursor_varint(&attrs) != count) attrs.ok = false;
  }
  put(p, "(", 1);
  for (uint64_t i = 0; i < count; i++) {
    if (i) put(p, ", ", 2);
    put_value(p, &args[i]);
    put(p, ": ", 2);
    TT_RETURN_IF_ERROR(print_type(p, args[i].type));
    if (attrs.ok) TT_RETURN_IF_ERROR(print_donation(p, tt__cursor_varint(&attrs)));
  }
  put(p, ") -> (", 6);
  if (!find_attr(p, op->attrs, "function_type", &value) || attr_entry(p, value, &c) != ATTR_TYPE) {
    return tt__bytecode_broken("a function's type");
  }
  type = tt__cursor_varint(&c);
  TT_RETURN_IF_ERROR(type_entry(p, type, &c, &code));
  if (code != TYPE_FUNCTION) return tt__bytecode_broken("a function's type");
  for (uint64_t i = tt__cursor_varint(&c); c.ok && i > 0; i--) (void)tt__cursor_varint(&c);
  TT_RETURN_IF_ERROR(print_types(p, &c));
  put(p, ") {\n", 4);
  return TT_OK_STATUS;
}

// --- one op ---

// "add_v1" is stablehlo.add, but for what is of other dialects.
static void put_name(printer_t *p, const op_t *op) {
  tt_slice_t name = op->name.name;
  for (size_t i = name.size; i-- > 2;) {
    if (name.at[i - 1] == 'v' && name.at[i - 2] == '_') {
      name.size = i - 2;
      break;
    }
  }
  bool func = tt_slice_is(name, "call");
  put(p, func ? "\"func." : "\"stablehlo.", func ? 6 : 11);
  put(p, name.at, name.size);
  put(p, "\"", 1);
}

static tt_status_t print_regions(printer_t *p, tt__cursor_t *c, const op_t *op) {
  for (uint64_t r = 0; r < op->region_count; r++) {
    tt_text_format(&p->t, "%s", r ? ", " : " (");
    TT_RETURN_IF_ERROR(op->isolated ? read_isolated(p, c, op, begin_region)
                                    : read_region(p, c, op, begin_region));
    put(p, "}", 1);
  }
  if (op->region_count) put(p, ")", 1);
  return TT_OK_STATUS;
}

// One statement in the generic form.
static tt_status_t print_plain(printer_t *p, tt__cursor_t *c, const op_t *op) {
  if (op->result_count == 1) tt_text_format(&p->t, "%%%u = ", op->id);
  if (op->result_count > 1)
    tt_text_format(&p->t, "%%%u:%llu = ", op->id, (unsigned long long)op->result_count);
  put_name(p, op);
  put(p, "(", 1);
  for (uint64_t i = 0; i < op->operand_count; i++) {
    if (i) put(p, ", ", 2);
    put_value(p, &op->operands[i]);
  }
  put(p, ")", 1);
  TT_RETURN_IF_ERROR(print_attrs(p, op->attrs));
  TT_RETURN_IF_ERROR(print_regions(p, c, op));
  put(p, " : (", 4);
  for (uint64_t i = 0; i < op->operand_count; i++) {
    if (i) put(p, ", ", 2);
    TT_RETURN_IF_ERROR(print_type(p, op->operands[i].type));
  }
  put(p, ") -> (", 6);
  for (uint64_t i = 0; i < op->result_count; i++) {
    if (i) put(p, ", ", 2);
    TT_RETURN_IF_ERROR(print_type(p, op->results[i]));
  }
  put(p, ")\n", 2);
  return TT_OK_STATUS;
}

static tt_status_t print_module(printer_t *p, tt__cursor_t *c, const op_t *op) {
  uint64_t value;
  put(p, "module", 6);
  if (find_attr(p, op->attrs, "sym_name", &value)) {
    put(p, " @", 2);
    put_quoted(p, builtin_string(p, value));
  }
  put(p, " {\n", 3);
  TT_RETURN_IF_ERROR(op->isolated ? read_isolated(p, c, op, NULL) : read_region(p, c, op, NULL));
  put(p, "}\n", 2);
  return TT_OK_STATUS;
}

// Where arrays lie is no concern of a program for one device: meshes are left away, and a
// constraint is its operand.
static tt_status_t skip_sharding(printer_t *p, const op_t *op) {
  if (op->region_count == 0 && op->result_count == 0) return TT_OK_STATUS;
  if (op->region_count == 0 && op->result_count == 1 && op->operand_count == 1) {
    p->values[p->next - 1] = op->operands[0];
    return TT_OK_STATUS;
  }
  return TT_ERROR(UNIMPLEMENTED, "the operation sdy.%.*s", (int)op->name.name.size,
                  op->name.name.at);
}

static tt_status_t print_op(printer_t *p, tt__cursor_t *c) {
  op_t op;
  TT_RETURN_IF_ERROR(read_op(p, c, &op));
  tt_slice_t dialect = p->b->dialects[op.name.dialect];
  if (tt_slice_is(dialect, "builtin") && tt_slice_is(op.name.name, "module")) {
    if (op.region_count != 1) return tt__bytecode_broken("a module");
    return print_module(p, c, &op);
  }
  if (tt_slice_is(dialect, "sdy")) return skip_sharding(p, &op);
  if (!tt_slice_is(dialect, "vhlo")) {
    return TT_ERROR(UNIMPLEMENTED, "the operation %.*s.%.*s", (int)dialect.size, dialect.at,
                    (int)op.name.name.size, op.name.name.at);
  }
  if (tt_slice_is(op.name.name, "func_v1")) {
    if (op.region_count != 1) return tt__bytecode_broken("a function");
    TT_RETURN_IF_ERROR(op.isolated ? read_isolated(p, c, &op, begin_function)
                                   : read_region(p, c, &op, begin_function));
    put(p, "}\n", 2);
    return TT_OK_STATUS;
  }
  return print_plain(p, c, &op);
}

// The text may be 400 times the bytecode's size (constants double, names repeat) and a megabyte:
// more is an attempt to fill our memory.
tt_status_t tt__bytecode_print(const char *code, size_t size, char **out_text, size_t *out_size) {
  tt__bytecode_t b = {0};
  const size_t limit = ((size_t)1 << 20) + (size < SIZE_MAX / 1024 ? size * 400 : SIZE_MAX / 2);
  printer_t p = {.b = &b, .t.limit = limit};
  tt_arena_init(&b.arena, 64 << 10);
  tt_status_t status = tt__bytecode_read(&b, code, size);
  if (!status) status = read_block(&p, &b.ir, NULL, NULL);
  put(&p, "", 1);
  if (!status && p.t.failed) {
    status = TT_ERROR(OUT_OF_MEMORY, "no host memory for the text of %zu bytes of bytecode", size);
  }
  tt_arena_deinit(&b.arena);
  tt_free(p.values);
  if (status) {
    tt_free(p.t.data);
    return status;
  }
  *out_text = p.t.data;
  *out_size = p.t.size - 1;
  return TT_OK_STATUS;
}
