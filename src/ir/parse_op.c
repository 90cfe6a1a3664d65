// One statement: results, op, operands, attributes, regions, types.
#include "ir/parse.h"

static const struct {
  const char *text;
  size_t size;
} op_names[TT_OP_COUNT] = {
#define OP(name, text, operands, results, regions, traits, infer) {text, sizeof text - 1},
#include "ir/ops.def"
#undef OP
};

// Cuts "stablehlo." or "chlo." off.
static tt_slice_t without_dialect(tt_slice_t name) {
  for (size_t i = 0; i < name.size; i++) {
    if (name.at[i] == '.') return (tt_slice_t){name.at + i + 1, name.size - i - 1};
  }
  return name;
}

// TT_OP_COUNT: no op of the table. chlo's ops exist under chlo's name only, while any op may come
// under it.
static tt_op_t op_of(tt_slice_t name) {
  tt_slice_t s = without_dialect(name);
  bool chlo = s.at - name.at == 5 && memcmp(name.at, "chlo.", 5) == 0;
  bool stablehlo = s.at - name.at == 10 && memcmp(name.at, "stablehlo.", 10) == 0;
  for (uint32_t op = 0; op < TT_OP_COUNT && (chlo || stablehlo); op++) {
    if (op_names[op].size != s.size || memcmp(op_names[op].text, s.at, s.size) != 0) continue;
    return chlo || !tt__op_is_chlo(op) ? (tt_op_t)op : TT_OP_COUNT;
  }
  return TT_OP_COUNT;
}

static tt_status_t add_operand(tt__parser_t *ps, tt__reading_t *r, tt_value_t v) {
  if (!tt__parse_grow(ps, (void **)&r->operands, &r->operand_capacity, r->operand_count,
                      sizeof v)) {
    return tt__no_memory();
  }
  r->operands[r->operand_count++] = v;
  return TT_OK_STATUS;
}

static tt_status_t add_region(tt__parser_t *ps, tt__reading_t *r, tt_block_t *block) {
  if (!tt__parse_grow(ps, (void **)&r->regions, &r->region_capacity, r->region_count,
                      sizeof block)) {
    return tt__no_memory();
  }
  r->regions[r->region_count++] = block;
  return TT_OK_STATUS;
}

static tt_status_t add_type(tt__parser_t *ps, tt_type_t **list, uint32_t *count,
                            uint32_t *capacity) {
  tt_type_t type;
  TT_RETURN_IF_ERROR(tt__parse_type(ps, &type));
  if (!tt__parse_grow(ps, (void **)list, capacity, *count, sizeof type)) return tt__no_memory();
  (*list)[(*count)++] = type;
  return TT_OK_STATUS;
}

// "t", "t, t" or "(t, t)".
static tt_status_t type_list(tt__parser_t *ps, tt_type_t **list, uint32_t *count,
                             uint32_t *capacity) {
  if (!tt__parse_take(ps, "(")) {
    do TT_RETURN_IF_ERROR(add_type(ps, list, count, capacity));
    while (tt__parse_take(ps, ","));
    return TT_OK_STATUS;
  }
  while (!tt__parse_take(ps, ")")) {
    if (*count) TT_RETURN_IF_ERROR(tt__parse_need(ps, ","));
    TT_RETURN_IF_ERROR(add_type(ps, list, count, capacity));
  }
  return TT_OK_STATUS;
}

// What follows the ':'.
static tt_status_t read_types(tt__parser_t *ps, tt__reading_t *r) {
  tt_type_t *list = NULL;
  uint32_t count = 0, capacity = 0;
  r->has_types = true;
  TT_RETURN_IF_ERROR(type_list(ps, &list, &count, &capacity));
  r->functional = tt__parse_take(ps, "->");
  if (!r->functional) {
    r->types = list;
    r->type_count = count;
    return TT_OK_STATUS;
  }
  r->operand_types = list;
  r->operand_type_count = count;
  return type_list(ps, &r->types, &r->type_count, &r->type_capacity);
}

// Written operand types are redundant; one that disagrees means that we misread something.
static tt_status_t check_operand_types(tt__parser_t *ps, const tt__reading_t *r) {
  if (!r->functional) return TT_OK_STATUS;
  if (r->operand_type_count != r->operand_count) {
    return tt__parse_fail(ps, r->start, "%u operands, %u operand types", r->operand_count,
                          r->operand_type_count);
  }
  for (uint32_t i = 0; i < r->operand_count; i++) {
    if (tt_type_equal(&r->operand_types[i], tt_graph_type(ps->graph, r->operands[i]))) continue;
    return tt__parse_fail(ps, r->start, "operand %u is not of the type written", i);
  }
  return TT_OK_STATUS;
}

// "[0:2, 1:5:2]"
static tt_status_t slice_ranges(tt__parser_t *ps, tt__reading_t *r) {
  int64_t all[3][TT_MAX_RANK];
  uint32_t n = 0;
  bool strided = false;
  TT_RETURN_IF_ERROR(tt__parse_need(ps, "["));
  for (; !tt__parse_take(ps, "]"); n++) {
    if (n) TT_RETURN_IF_ERROR(tt__parse_need(ps, ","));
    if (n == TT_MAX_RANK) return tt__parse_fail(ps, NULL, "too many ranges");
    TT_RETURN_IF_ERROR(tt__parse_int(ps, &all[0][n]));
    TT_RETURN_IF_ERROR(tt__parse_need(ps, ":"));
    TT_RETURN_IF_ERROR(tt__parse_int(ps, &all[1][n]));
    all[2][n] = 1;
    if (tt__parse_take(ps, ":")) TT_RETURN_IF_ERROR(tt__parse_int(ps, &all[2][n]));
    strided |= all[2][n] != 1;
  }
  static const tt_attr_key_t keys[] = {TT_ATTR_START_INDICES, TT_ATTR_LIMIT_INDICES,
                                       TT_ATTR_STRIDES};
  for (int i = 0; i < (strided ? 3 : 2); i++) {
    int64_t *copy = tt_arena_copy(&ps->scratch, all[i], n * sizeof *copy);
    if (!copy) return tt__no_memory();
    TT_RETURN_IF_ERROR(tt__parse_add_ints(ps, r, keys[i], copy, n));
  }
  return TT_OK_STATUS;
}

typedef struct name_list_s {
  tt_slice_t *at;
  uint32_t count, capacity;
} name_list_t;

static tt_status_t add_name(tt__parser_t *ps, name_list_t *l, tt_slice_t name) {
  if (!tt__parse_grow(ps, (void **)&l->at, &l->capacity, l->count, sizeof name)) {
    return tt__no_memory();
  }
  l->at[l->count++] = name;
  return TT_OK_STATUS;
}

// "(%x: type, %y: type)"
static tt_status_t typed_names(tt__parser_t *ps, name_list_t *names, tt_type_t **types,
                               uint32_t *type_count, uint32_t *type_capacity) {
  uint32_t location;
  TT_RETURN_IF_ERROR(tt__parse_need(ps, "("));
  for (bool first = true; !tt__parse_take(ps, ")"); first = false) {
    tt_slice_t name;
    if (!first) TT_RETURN_IF_ERROR(tt__parse_need(ps, ","));
    TT_RETURN_IF_ERROR(tt__parse_value_name(ps, &name));
    TT_RETURN_IF_ERROR(add_name(ps, names, name));
    TT_RETURN_IF_ERROR(tt__parse_need(ps, ":"));
    TT_RETURN_IF_ERROR(add_type(ps, types, type_count, type_capacity));
    TT_RETURN_IF_ERROR(tt__parse_location(ps, &location));
  }
  return TT_OK_STATUS;
}

// reduce's "reducer(%l0: t, %r0: t) (%l1: t, %r1: t) { ... }": pairs, one an input; the region's
// arguments are all left ones, then all right ones.
static tt_status_t reducer(tt__parser_t *ps, tt__reading_t *r) {
  name_list_t names = {0};
  tt_type_t *types = NULL;
  uint32_t count = 0, capacity = 0;
  while (tt__parse_peek(ps) == '(') {
    TT_RETURN_IF_ERROR(typed_names(ps, &names, &types, &count, &capacity));
  }
  if (count % 2) return tt__parse_fail(ps, NULL, "a reducer's arguments come in pairs");
  tt_slice_t *ordered = TT_ARENA_ARRAY(&ps->scratch, tt_slice_t, count);
  tt_type_t *ordered_types = TT_ARENA_ARRAY(&ps->scratch, tt_type_t, count);
  if (!ordered || !ordered_types) return tt__no_memory();
  for (uint32_t i = 0; i < count; i++) {
    uint32_t to = i / 2 + (i % 2) * (count / 2);
    ordered[to] = names.at[i];
    ordered_types[to] = types[i];
  }
  tt_block_t *block;
  TT_RETURN_IF_ERROR(tt__parse_region_with(ps, ordered, ordered_types, count, &block));
  return add_region(ps, r, block);
}

// reduce's "applies stablehlo.add": the region is made up.
static tt_status_t applied_body(tt__parser_t *ps, tt__reading_t *r, tt_slice_t name) {
  tt_op_t op = op_of(name);
  if (op == TT_OP_COUNT || r->operand_count < 2) {
    return tt__parse_fail(ps, r->start, "a reduction by '%.*s'",
                          (int)(name.size > 40 ? 40 : name.size), name.at);
  }
  tt_type_t scalar = {tt_graph_type(ps->graph, r->operands[0])->dtype, 0, NULL};
  tt_block_t *block;
  tt_value_t args[2], result;
  TT_RETURN_IF_ERROR(tt_graph_block(ps->graph, ps->block, &block));
  TT_RETURN_IF_ERROR(tt_graph_argument(ps->graph, block, scalar, &args[0]));
  TT_RETURN_IF_ERROR(tt_graph_argument(ps->graph, block, scalar, &args[1]));
  tt_node_spec_t spec = {.op = op, .operands = args, .operand_count = 2};
  TT_RETURN_IF_ERROR(tt_graph_append(ps->graph, block, &spec, &result));
  TT_RETURN_IF_ERROR(tt_graph_return(ps->graph, block, &result, 1));
  return add_region(ps, r, block);
}

// A while's regions come after its types: "cond { ... } do { ... }".
static tt_status_t while_regions(tt__parser_t *ps, tt__reading_t *r, const name_list_t *names) {
  if (names->count != r->type_count) {
    return tt__parse_fail(ps, r->start, "%u loop variables, %u types", names->count, r->type_count);
  }
  if (tt__parse_word(ps, "attributes")) TT_RETURN_IF_ERROR(tt__parse_dictionary(ps, r));
  for (int i = 0; i < 2; i++) {
    tt_block_t *block;
    if (!tt__parse_word(ps, i ? "do" : "cond")) {
      return tt__parse_fail(ps, NULL, "expected '%s'", i ? "do" : "cond");
    }
    TT_RETURN_IF_ERROR(tt__parse_region_with(ps, names->at, r->types, names->count, &block));
    TT_RETURN_IF_ERROR(add_region(ps, r, block));
  }
  return TT_OK_STATUS;
}

// A bare word among the operands of the short form.
static tt_status_t short_word(tt__parser_t *ps, tt__reading_t *r, tt_slice_t *applies) {
  tt__parse_space(ps);
  const char *start = ps->p;
  tt_slice_t word = tt__parse_identifier(ps);
  if (tt__parse_take(ps, "=")) return tt__parse_keyword(ps, r, word);
  if (tt_slice_is(word, "init")) return tt__parse_need(ps, ":");
  if (tt_slice_is(word, "across") || tt_slice_is(word, "attributes")) return TT_OK_STATUS;
  if (tt_slice_is(word, "applies")) {
    *applies = tt__parse_identifier(ps);
    return TT_OK_STATUS;
  }
  if (r->op == TT_OP_COMPARE) {
    int64_t value;
    bool second = r->attr_count > 0;
    ps->p = start;
    TT_RETURN_IF_ERROR(tt__parse_enum(
        ps, "comparison", second ? tt__parse_compare_types : tt__parse_directions, &value));
    return tt__parse_add_int(ps, r, second ? TT_ATTR_COMPARE_TYPE : TT_ATTR_COMPARISON_DIRECTION,
                             value);
  }
  return tt__parse_fail(ps, start, "'%.*s' is not understood",
                        (int)(word.size > 40 ? 40 : word.size), word.at);
}

// "%a" or a while's "%name = %a".
static tt_status_t short_operand(tt__parser_t *ps, tt__reading_t *r, name_list_t *loop_names) {
  tt_value_t v;
  if (r->op == TT_OP_WHILE) {
    tt_slice_t name;
    TT_RETURN_IF_ERROR(tt__parse_value_name(ps, &name));
    TT_RETURN_IF_ERROR(tt__parse_need(ps, "="));
    TT_RETURN_IF_ERROR(add_name(ps, loop_names, name));
  }
  TT_RETURN_IF_ERROR(tt__parse_value(ps, &v));
  return add_operand(ps, r, v);
}

// composite's name.
static tt_status_t short_string(tt__parser_t *ps, tt__reading_t *r) {
  tt_slice_t s;
  TT_RETURN_IF_ERROR(tt__parse_string(ps, &s));
  if (r->op != TT_OP_COMPOSITE) {
    return tt__parse_fail(ps, NULL, "a string is not expected here");
  }
  return tt__parse_add(ps, r, tt_attr_string(TT_ATTR_NAME, s.at, (uint32_t)s.size));
}

// custom_call's target; a function for call and composite.
static tt_status_t short_symbol(tt__parser_t *ps, tt__reading_t *r) {
  tt_slice_t s;
  TT_RETURN_IF_ERROR(tt__parse_symbol(ps, &s));
  if (r->op == TT_OP_CUSTOM_CALL) {
    return tt__parse_add(ps, r, tt_attr_string(TT_ATTR_CALL_TARGET_NAME, s.at, (uint32_t)s.size));
  }
  r->callee = s;
  return TT_OK_STATUS;
}

// reduce's short form pairs each input with its initial value; inputs go first.
static tt_status_t unpair(tt__parser_t *ps, tt__reading_t *r) {
  tt_value_t *ordered = TT_ARENA_ARRAY(&ps->scratch, tt_value_t, r->operand_count);
  if (!ordered) return tt__no_memory();
  for (uint32_t i = 0; i < r->operand_count; i++) {
    ordered[i / 2 + (i % 2) * (r->operand_count / 2)] = r->operands[i];
  }
  if (r->operand_count % 2) return tt__parse_fail(ps, r->start, "an initial value is missing");
  r->operands = ordered;
  return TT_OK_STATUS;
}

// Everything after the name of a short form. Brackets and commas only separate.
static tt_status_t short_form(tt__parser_t *ps, tt__reading_t *r) {
  name_list_t loop_names = {0};
  tt_slice_t applies = {NULL, 0};
  bool more = true;
  while (more && !r->has_types) {
    char ch = tt__parse_peek(ps);
    if (ch == ',' || ch == '(' || ch == ')') {
      ps->p++;
    } else if (ch == '%') {
      TT_RETURN_IF_ERROR(short_operand(ps, r, &loop_names));
    } else if (ch == ':') {
      ps->p++;
      TT_RETURN_IF_ERROR(read_types(ps, r));
    } else if (ch == '{') {
      TT_RETURN_IF_ERROR(tt__parse_dictionary(ps, r));
    } else if (ch == '[' && r->op == TT_OP_SLICE) {
      TT_RETURN_IF_ERROR(slice_ranges(ps, r));
    } else if (ch == '@') {
      TT_RETURN_IF_ERROR(short_symbol(ps, r));
    } else if (ch == '"') {
      TT_RETURN_IF_ERROR(short_string(ps, r));
    } else if ((ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z')) {
      TT_RETURN_IF_ERROR(short_word(ps, r, &applies));
    } else {
      more = false;
    }
  }
  TT_RETURN_IF_ERROR(r->has_types ? TT_OK_STATUS : tt__parse_fail(ps, NULL, "expected ':'"));
  if (r->op == TT_OP_WHILE) return while_regions(ps, r, &loop_names);
  if (r->op != TT_OP_REDUCE) return TT_OK_STATUS;
  TT_RETURN_IF_ERROR(unpair(ps, r));
  if (applies.size) return applied_body(ps, r, applies);
  if (!tt__parse_word(ps, "reducer")) return tt__parse_fail(ps, NULL, "expected 'reducer'");
  return reducer(ps, r);
}

// "(operands) <{properties}> ({regions}) {attributes} : types"
static tt_status_t generic_form(tt__parser_t *ps, tt__reading_t *r) {
  TT_RETURN_IF_ERROR(tt__parse_need(ps, "("));
  while (!tt__parse_take(ps, ")")) {
    tt_value_t v;
    if (r->operand_count) TT_RETURN_IF_ERROR(tt__parse_need(ps, ","));
    TT_RETURN_IF_ERROR(tt__parse_value(ps, &v));
    TT_RETURN_IF_ERROR(add_operand(ps, r, v));
  }
  if (tt__parse_peek(ps) == '<') TT_RETURN_IF_ERROR(tt__parse_dictionary(ps, r));
  if (tt__parse_take(ps, "(")) {
    while (!tt__parse_take(ps, ")")) {
      tt_block_t *block;
      if (r->region_count) TT_RETURN_IF_ERROR(tt__parse_need(ps, ","));
      TT_RETURN_IF_ERROR(tt__parse_region(ps, &block));
      TT_RETURN_IF_ERROR(add_region(ps, r, block));
    }
  }
  if (tt__parse_peek(ps) == '{') TT_RETURN_IF_ERROR(tt__parse_dictionary(ps, r));
  TT_RETURN_IF_ERROR(tt__parse_need(ps, ":"));
  return read_types(ps, r);
}

// constant's data: "dense<...> : type", which is the result's type, too.
static tt_status_t constant_form(tt__parser_t *ps, tt__reading_t *r) {
  const void *bytes;
  size_t size;
  if (tt__parse_peek(ps) == '{') TT_RETURN_IF_ERROR(tt__parse_dictionary(ps, r));
  if (!tt__parse_grow(ps, (void **)&r->types, &r->type_capacity, 0, sizeof *r->types)) {
    return tt__no_memory();
  }
  TT_RETURN_IF_ERROR(tt__parse_dense(ps, &r->types[0], &bytes, &size));
  r->type_count = 1;
  if (size > UINT32_MAX) return tt__parse_fail(ps, r->start, "the data has more than 4 GiB");
  return tt__parse_add(ps, r, tt_attr_bytes(TT_ATTR_VALUE, bytes, (uint32_t)size));
}

// Writes out the defaults that no consumer should have to know.
static tt_status_t add_defaults(tt__parser_t *ps, tt__reading_t *r) {
  tt_attr_t *found = NULL;
  bool indexed = r->op == TT_OP_GATHER || r->op == TT_OP_SCATTER;
  if (!indexed && r->op != TT_OP_SORT) return TT_OK_STATUS;
  tt_attr_key_t key = indexed ? TT_ATTR_INDEX_VECTOR_DIM : TT_ATTR_DIMENSION;
  for (uint32_t i = 0; i < r->attr_count; i++) {
    if (r->attrs[i].key == key) found = &r->attrs[i];
  }
  if (!found) {
    TT_RETURN_IF_ERROR(tt__parse_add_int(ps, r, key, indexed ? 0 : -1));
    found = &r->attrs[r->attr_count - 1];
  }
  // sort counts negative dimensions from the end
  if (!indexed && found->u.i < 0 && r->operand_count) {
    found->u.i += tt_graph_type(ps->graph, r->operands[0])->rank;
  }
  return TT_OK_STATUS;
}

// A rule's complaint gets the op's place in the text in front.
static tt_status_t append(tt__parser_t *ps, tt__reading_t *r, tt_value_t **out, uint32_t *count) {
  TT_RETURN_IF_ERROR(add_defaults(ps, r));
  // select writes its predicate's type before the result's
  if (r->op == TT_OP_SELECT && !r->functional && r->type_count == 2) {
    r->types++;
    r->type_count = 1;
  }
  tt_node_spec_t spec = {.op = r->op,
                         .operands = r->operands,
                         .operand_count = r->operand_count,
                         .attrs = r->attrs,
                         .attr_count = r->attr_count,
                         .regions = r->regions,
                         .region_count = r->region_count,
                         .types = r->types,
                         .type_count = r->type_count};
  static const tt_type_t none;
  if (!spec.types) spec.types = &none;  // "no results" is an answer, too
  tt_value_t first;
  tt_status_t s = tt_graph_append(ps->graph, ps->block, &spec, &first);
  if (s && tt_status_code(s) != TT_OUT_OF_MEMORY) {
    tt_status_t place = tt__parse_fail(ps, r->start, "%s", tt_status_message(s));
    tt_status_release(s);
    return place;
  }
  if (s) return s;
  tt_node_t *node = ps->block->nodes[ps->block->node_count - 1];
  node->location = r->location;
  *count = node->result_count;
  *out = TT_ARENA_ARRAY(&ps->scratch, tt_value_t, *count);
  if (!*out) return tt__no_memory();
  for (uint32_t i = 0; i < *count; i++) (*out)[i] = first + i;
  return TT_OK_STATUS;
}

// A composite's decomposition becomes its region.
static tt_status_t decompose(tt__parser_t *ps, tt__reading_t *r) {
  tt_block_t *block;
  tt_value_t *args = TT_ARENA_ARRAY(&ps->scratch, tt_value_t, r->operand_count), *returns;
  uint32_t count;
  if (!args) return tt__no_memory();
  TT_RETURN_IF_ERROR(tt_graph_block(ps->graph, ps->block, &block));
  for (uint32_t i = 0; i < r->operand_count; i++) {
    TT_RETURN_IF_ERROR(
        tt_graph_argument(ps->graph, block, *tt_graph_type(ps->graph, r->operands[i]), &args[i]));
  }
  TT_RETURN_IF_ERROR(
      tt__parse_call(ps, r->callee, block, args, r->operand_count, &returns, &count));
  TT_RETURN_IF_ERROR(tt_graph_return(ps->graph, block, returns, count));
  return add_region(ps, r, block);
}

// Annotations for partitioners: on one program for given devices they pass their operand on.
static bool names_identity(const tt__reading_t *r) {
  static const char *const targets[] = {"Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape",
                                        "annotate_device_placement"};
  if (tt_slice_is(r->name, "sdy.sharding_constraint")) return r->operand_count == 1;
  if (r->op != TT_OP_CUSTOM_CALL || r->operand_count != 1) return false;
  for (uint32_t i = 0; i < r->attr_count; i++) {
    if (r->attrs[i].key != TT_ATTR_CALL_TARGET_NAME) continue;
    tt_slice_t target = {r->attrs[i].u.string, r->attrs[i].count};
    for (int k = 0; k < 4; k++) {
      if (tt_slice_is(target, targets[k])) return true;
    }
  }
  return false;
}

// Statements that the table does not know and the parser does.
static bool is_outside_table(tt_slice_t name) {
  static const char *const names[] = {"return",      "func.return", "stablehlo.return",
                                      "call",        "func.call",   "sdy.sharding_constraint",
                                      "chlo.square", "chlo.tan",    "stablehlo.dot"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (tt_slice_is(name, names[i])) return true;
  }
  return false;
}

static tt_status_t refuse(tt__parser_t *ps, const tt__reading_t *r) {
  return tt__parse_fail(ps, r->start, "operation '%.*s' is not supported",
                        (int)(r->name.size > 60 ? 60 : r->name.size), r->name.at);
}

// Ops outside ops.def that are one or two of those inside.
static tt_status_t rewrite(tt__parser_t *ps, tt__reading_t *r) {
  static const int64_t zero = 0, one = 1;
  if (tt_slice_is(r->name, "chlo.square") && r->operand_count == 1) {
    r->op = TT_OP_MULTIPLY;
    TT_RETURN_IF_ERROR(add_operand(ps, r, r->operands[0]));
  } else if (tt_slice_is(r->name, "chlo.tan")) {
    r->op = TT_OP_TAN;
  } else if (tt_slice_is(r->name, "stablehlo.dot") && r->operand_count == 2) {
    bool matrix = tt_graph_type(ps->graph, r->operands[0])->rank == 2;
    r->op = TT_OP_DOT_GENERAL;
    TT_RETURN_IF_ERROR(
        tt__parse_add_ints(ps, r, TT_ATTR_LHS_CONTRACTING_DIMENSIONS, matrix ? &one : &zero, 1));
    TT_RETURN_IF_ERROR(tt__parse_add_ints(ps, r, TT_ATTR_RHS_CONTRACTING_DIMENSIONS, &zero, 1));
  }
  return r->op == TT_OP_COUNT ? refuse(ps, r) : TT_OK_STATUS;
}

static bool is_call(const tt__reading_t *r) {
  return tt_slice_is(r->name, "call") || tt_slice_is(r->name, "func.call");
}

static bool is_return(const tt__reading_t *r) {
  return tt_slice_is(r->name, "return") || tt_slice_is(r->name, "func.return") ||
         tt_slice_is(r->name, "stablehlo.return");
}

// The op's name has been read; everything up to its location follows.
static tt_status_t read_form(tt__parser_t *ps, tt__reading_t *r, bool generic) {
  if (generic) return generic_form(ps, r);
  if (r->op == TT_OP_CONSTANT) return constant_form(ps, r);
  if (tt_slice_is(r->name, "sdy.sharding_constraint")) {
    tt_value_t v;
    TT_RETURN_IF_ERROR(tt__parse_value(ps, &v));
    TT_RETURN_IF_ERROR(add_operand(ps, r, v));
    TT_RETURN_IF_ERROR(tt__parse_need(ps, "<"));
    while (!tt__parse_take(ps, ">")) {
      TT_RETURN_IF_ERROR(tt__parse_skip(ps));
      if (!tt__parse_take(ps, ",") && tt__parse_peek(ps) != '>') {
        return tt__parse_fail(ps, NULL, "expected '>'");
      }
    }
    TT_RETURN_IF_ERROR(tt__parse_need(ps, ":"));
    return read_types(ps, r);
  }
  // "return" without values has no types
  if (is_return(r) && tt__parse_peek(ps) != '%') return TT_OK_STATUS;
  return short_form(ps, r);
}

// Names must account for all results, "%a:2" for two of them; no names at all are fine.
static tt_status_t bind_results(tt__parser_t *ps, const name_list_t *names, const int64_t *counts,
                                const tt_value_t *values, uint32_t count, const char *start) {
  uint32_t at = 0;
  for (uint32_t i = 0; i < names->count; i++) {
    if (counts[i] < 0 || counts[i] > (int64_t)(count - at)) {
      return tt__parse_fail(ps, start, "the operation has %u results", count);
    }
    TT_RETURN_IF_ERROR(tt__parse_bind(ps, names->at[i], values + at, (uint32_t)counts[i]));
    at += (uint32_t)counts[i];
  }
  if (names->count && at != count) {
    return tt__parse_fail(ps, start, "the operation has %u results", count);
  }
  return TT_OK_STATUS;
}

// "%a, %b:2 ="
static tt_status_t read_results(tt__parser_t *ps, name_list_t *names, int64_t **counts) {
  uint32_t capacity = 0;
  if (tt__parse_peek(ps) != '%') return TT_OK_STATUS;
  do {
    tt_slice_t name;
    int64_t count = 1;
    TT_RETURN_IF_ERROR(tt__parse_value_name(ps, &name));
    if (tt__parse_take(ps, ":")) TT_RETURN_IF_ERROR(tt__parse_int(ps, &count));
    if (!tt__parse_grow(ps, (void **)counts, &capacity, names->count, sizeof count)) {
      return tt__no_memory();
    }
    (*counts)[names->count] = count;
    TT_RETURN_IF_ERROR(add_name(ps, names, name));
  } while (tt__parse_take(ps, ","));
  return tt__parse_need(ps, "=");
}

// Refuses an unknown op before its operands: the message names the cause, not its consequence.
static tt_status_t read_op(tt__parser_t *ps, tt__reading_t *r) {
  tt__parse_space(ps);
  r->start = ps->p;
  bool generic = tt__parse_peek(ps) == '"';
  if (generic) {
    TT_RETURN_IF_ERROR(tt__parse_string(ps, &r->name));
  } else {
    r->name = tt__parse_identifier(ps);
  }
  if (r->name.size == 0) return tt__parse_fail(ps, r->start, "expected an operation");
  r->op = op_of(r->name);
  if (r->op == TT_OP_COUNT && !is_outside_table(r->name)) return refuse(ps, r);
  TT_RETURN_IF_ERROR(read_form(ps, r, generic));
  TT_RETURN_IF_ERROR(tt__parse_location(ps, &r->location));
  return check_operand_types(ps, r);
}

tt_status_t tt__parse_statement(tt__parser_t *ps, tt_value_t **out_returns,
                                uint32_t *out_return_count, bool *out_done) {
  name_list_t names = {0};
  int64_t *counts = NULL;
  tt__reading_t r = {.op = TT_OP_COUNT};
  tt_value_t *values;
  uint32_t count;
  TT_RETURN_IF_ERROR(read_results(ps, &names, &counts));
  TT_RETURN_IF_ERROR(read_op(ps, &r));
  if (is_return(&r)) {
    *out_done = true;
    *out_returns = r.operands;
    *out_return_count = r.operand_count;
    return names.count ? tt__parse_fail(ps, r.start, "a return has no results") : TT_OK_STATUS;
  }
  if (is_call(&r)) {
    TT_RETURN_IF_ERROR(
        tt__parse_call(ps, r.callee, ps->block, r.operands, r.operand_count, &values, &count));
  } else if (names_identity(&r)) {
    values = r.operands;
    count = 1;
  } else {
    TT_RETURN_IF_ERROR(rewrite(ps, &r));
    if (r.op == TT_OP_COMPOSITE && r.region_count == 0) TT_RETURN_IF_ERROR(decompose(ps, &r));
    TT_RETURN_IF_ERROR(append(ps, &r, &values, &count));
  }
  return bind_results(ps, &names, counts, values, count, r.start);
}
