// Two passes: the survey notes where functions begin, then main is read, and every call reads its
// function's text again with the arguments bound. That spares a symbol table of bodies and gives
// the inlining that one-function graphs need anyway.
// StableHLO text -> graph: modules, functions, regions, names. Calls are inlined while reading.
#include "ir/parse.h"

#include "base/alloc.h"
#include "base/hash.h"

// Inlining could grow a text exponentially; no honest program comes near these.
enum { MOST_CALLS = 1 << 17, MOST_VALUES = 1 << 24 };

bool tt__parse_grow(tt__parser_t *ps, void **array, uint32_t *capacity, uint32_t count,
                    size_t element_size) {
  return tt__arena_grow(&ps->scratch, array, capacity, count, count + 1, element_size);
}

static uint32_t hash_of(tt_slice_t s) {
  return (uint32_t)tt_hash_bytes(TT_HASH_SEED, s.at, s.size);
}

// A later name hides an earlier one of the same text, until it is popped.
tt_status_t tt__parse_bind(tt__parser_t *ps, tt_slice_t name, const tt_value_t *values,
                           uint32_t count) {
  if (!tt__parse_grow(ps, (void **)&ps->names, &ps->name_capacity, ps->name_count,
                      sizeof *ps->names)) {
    return tt__no_memory();
  }
  uint32_t hash = hash_of(name), *bucket = &ps->buckets[hash % TT__BUCKETS];
  tt__name_t *n = &ps->names[ps->name_count];
  *n = (tt__name_t){name, hash, *bucket, count == 1 ? values[0] : TT_NO_VALUE, count, NULL};
  if (count != 1) {
    n->many = tt_arena_copy(&ps->scratch, values, count * sizeof *values);
    if (!n->many) return tt__no_memory();
  }
  *bucket = ++ps->name_count;
  return TT_OK_STATUS;
}

// Forgets the names bound since there were `count`.
static void unbind(tt__parser_t *ps, uint32_t count) {
  while (ps->name_count > count) {
    const tt__name_t *n = &ps->names[--ps->name_count];
    ps->buckets[n->hash % TT__BUCKETS] = n->next;
  }
}

static bool is_value_char(char ch) {
  return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9') ||
         ch == '_' || ch == '$' || ch == '.' || ch == '-';
}

tt_status_t tt__parse_value_name(tt__parser_t *ps, tt_slice_t *out) {
  TT_RETURN_IF_ERROR(tt__parse_need(ps, "%"));
  const char *start = ps->p;
  while (ps->p < ps->end && is_value_char(*ps->p)) ps->p++;
  *out = (tt_slice_t){start, (size_t)(ps->p - start)};
  return out->size ? TT_OK_STATUS : tt__parse_fail(ps, start, "expected a value's name");
}

// Entries below name_floor are older than any entry of the function being read: a bucket's chain
// may stop there.
tt_status_t tt__parse_value(tt__parser_t *ps, tt_value_t *out) {
  tt_slice_t name;
  int64_t index = 0;
  tt__parse_space(ps);
  const char *start = ps->p;
  TT_RETURN_IF_ERROR(tt__parse_value_name(ps, &name));
  if (ps->p < ps->end && *ps->p == '#') {
    ps->p++;
    TT_RETURN_IF_ERROR(tt__parse_int(ps, &index));
  }
  uint32_t hash = hash_of(name);
  for (uint32_t i = ps->buckets[hash % TT__BUCKETS]; i > ps->name_floor;) {
    const tt__name_t *n = &ps->names[i - 1];
    if (n->hash == hash && n->text.size == name.size &&
        memcmp(n->text.at, name.at, name.size) == 0) {
      if (index < 0 || index >= n->count) return tt__parse_fail(ps, start, "no such result");
      *out = n->count == 1 ? n->one : n->many[index];
      return TT_OK_STATUS;
    }
    i = n->next;
  }
  return tt__parse_fail(ps, start, "%%%.*s is not defined here",
                        (int)(name.size > 40 ? 40 : name.size), name.at);
}

// Regions and calls nest on our stack.
static tt_status_t enter(tt__parser_t *ps) {
  if (++ps->depth > TT__MOST_DEPTH) return tt__parse_fail(ps, NULL, "nested too deeply");
  return TT_OK_STATUS;
}

// Statements up to the closing brace; the last one returns.
static tt_status_t statements(tt__parser_t *ps, tt_value_t **out_returns, uint32_t *out_count) {
  bool done = false;
  *out_returns = NULL;
  *out_count = 0;
  while (!tt__parse_take(ps, "}")) {
    if (done) return tt__parse_fail(ps, NULL, "expected '}' after the return");
    TT_RETURN_IF_ERROR(tt__parse_statement(ps, out_returns, out_count, &done));
    if (ps->graph->value_count > MOST_VALUES) {
      return tt__parse_fail(ps, NULL, "the program has more than %d values", MOST_VALUES);
    }
  }
  return done ? TT_OK_STATUS : tt__parse_fail(ps, NULL, "a block does not return");
}

// "(%a: type {attributes} loc, ...)" of a region.
static tt_status_t region_arguments(tt__parser_t *ps, tt_block_t *block) {
  TT_RETURN_IF_ERROR(tt__parse_need(ps, "("));
  while (!tt__parse_take(ps, ")")) {
    tt_slice_t name;
    tt_type_t type;
    tt_value_t v;
    uint32_t location;
    if (block->arg_count) TT_RETURN_IF_ERROR(tt__parse_need(ps, ","));
    TT_RETURN_IF_ERROR(tt__parse_value_name(ps, &name));
    TT_RETURN_IF_ERROR(tt__parse_need(ps, ":"));
    TT_RETURN_IF_ERROR(tt__parse_type(ps, &type));
    TT_RETURN_IF_ERROR(tt__parse_location(ps, &location));
    TT_RETURN_IF_ERROR(tt_graph_argument(ps->graph, block, type, &v));
    TT_RETURN_IF_ERROR(tt__parse_bind(ps, name, &v, 1));
  }
  return TT_OK_STATUS;
}

// Body of a region whose '{' and arguments are done; leaves its scope. After a failure the parser's
// state does not matter any more.
static tt_status_t region_body(tt__parser_t *ps, tt_block_t *block, uint32_t names) {
  tt_block_t *around = ps->block;
  tt_value_t *returns;
  uint32_t count;
  ps->block = block;
  TT_RETURN_IF_ERROR(statements(ps, &returns, &count));
  ps->block = around;
  ps->depth--;
  unbind(ps, names);
  return tt_graph_return(ps->graph, block, returns, count);
}

tt_status_t tt__parse_region(tt__parser_t *ps, tt_block_t **out) {
  uint32_t names = ps->name_count;
  TT_RETURN_IF_ERROR(enter(ps));
  TT_RETURN_IF_ERROR(tt__parse_need(ps, "{"));
  TT_RETURN_IF_ERROR(tt_graph_block(ps->graph, ps->block, out));
  if (tt__parse_take(ps, "^")) {
    (void)tt__parse_identifier(ps);
    if (tt__parse_peek(ps) == '(') TT_RETURN_IF_ERROR(region_arguments(ps, *out));
    TT_RETURN_IF_ERROR(tt__parse_need(ps, ":"));
  }
  return region_body(ps, *out, names);
}

tt_status_t tt__parse_region_with(tt__parser_t *ps, const tt_slice_t *names, const tt_type_t *types,
                                  uint32_t count, tt_block_t **out) {
  uint32_t bound = ps->name_count;
  TT_RETURN_IF_ERROR(enter(ps));
  TT_RETURN_IF_ERROR(tt_graph_block(ps->graph, ps->block, out));
  for (uint32_t i = 0; i < count; i++) {
    tt_value_t v;
    TT_RETURN_IF_ERROR(tt_graph_argument(ps->graph, *out, types[i], &v));
    TT_RETURN_IF_ERROR(tt__parse_bind(ps, names[i], &v, 1));
  }
  TT_RETURN_IF_ERROR(tt__parse_need(ps, "{"));
  return region_body(ps, *out, bound);
}

// "{tf.aliasing_output = 0 : i32, ...}" of main's newest argument.
static tt_status_t argument_attributes(tt__parser_t *ps, bool is_main) {
  if (!tt__parse_take(ps, "{")) return TT_OK_STATUS;
  while (!tt__parse_take(ps, "}")) {
    if (tt__parse_take(ps, ",")) continue;
    tt_slice_t name = tt__parse_identifier(ps);
    if (name.size == 0 && tt__parse_peek(ps) == '"')
      TT_RETURN_IF_ERROR(tt__parse_string(ps, &name));
    if (!tt__parse_take(ps, "=")) {
      if (name.size == 0) return tt__parse_fail(ps, NULL, "expected an attribute");
      continue;
    }
    int32_t *donation = is_main ? &ps->graph->donations[ps->graph->main->arg_count - 1] : NULL;
    if (donation && tt_slice_is(name, "tf.aliasing_output")) {
      int64_t output;
      TT_RETURN_IF_ERROR(tt__parse_int(ps, &output));
      if (output < 0 || output > UINT16_MAX) return tt__parse_fail(ps, NULL, "no such output");
      *donation = (int32_t)output + 1;
      if (tt__parse_take(ps, ":")) (void)tt__parse_identifier(ps);
    } else if (donation && tt_slice_is(name, "jax.buffer_donor")) {
      if (tt__parse_word(ps, "true")) *donation = TT_DONATE;
      TT_RETURN_IF_ERROR(tt__parse_skip(ps));
    } else {
      TT_RETURN_IF_ERROR(tt__parse_skip(ps));
    }
  }
  return TT_OK_STATUS;
}

// A function's "(%arg0: type {..}, ...)": main's arguments are made, a callee's are `args`.
static tt_status_t parameters(tt__parser_t *ps, bool is_main, const tt_value_t *args,
                              uint32_t count) {
  uint32_t n = 0;
  TT_RETURN_IF_ERROR(tt__parse_need(ps, "("));
  for (; !tt__parse_take(ps, ")"); n++) {
    tt_slice_t name;
    tt_type_t type;
    tt_value_t v;
    uint32_t location;
    if (n) TT_RETURN_IF_ERROR(tt__parse_need(ps, ","));
    TT_RETURN_IF_ERROR(tt__parse_value_name(ps, &name));
    TT_RETURN_IF_ERROR(tt__parse_need(ps, ":"));
    const char *at = ps->p;
    TT_RETURN_IF_ERROR(tt__parse_type(ps, &type));
    if (is_main) {
      TT_RETURN_IF_ERROR(tt_graph_argument(ps->graph, ps->block, type, &v));
    } else {
      if (n >= count || !tt_type_equal(&type, tt_graph_type(ps->graph, args[n]))) {
        return tt__parse_fail(ps, at, "a call does not fit parameter %u", n);
      }
      v = args[n];
    }
    TT_RETURN_IF_ERROR(argument_attributes(ps, is_main));
    TT_RETURN_IF_ERROR(tt__parse_location(ps, &location));
    TT_RETURN_IF_ERROR(tt__parse_bind(ps, name, &v, 1));
  }
  return is_main || n == count ? TT_OK_STATUS
                               : tt__parse_fail(ps, NULL,
                                                "a call has %u arguments, "
                                                "the function %u",
                                                count, n);
}

// Skips one bracketed group whose bracket is next. Angle brackets do not count: '->' has one.
static tt_status_t skip_group(tt__parser_t *ps) {
  int depth = 0;
  const char *start = ps->p;
  tt_slice_t ignored;
  for (; tt__parse_peek(ps) != '\0'; ps->p++) {
    if (*ps->p == '"') {
      TT_RETURN_IF_ERROR(tt__parse_string(ps, &ignored));
      ps->p--;
      continue;
    }
    depth += *ps->p == '(' || *ps->p == '[' || *ps->p == '{';
    depth -= *ps->p == ')' || *ps->p == ']' || *ps->p == '}';
    if (depth <= 0) {
      ps->p++;
      return TT_OK_STATUS;
    }
  }
  return tt__parse_fail(ps, start, "a bracket is not closed");
}

// "-> (types) attributes {...}" between a function's parameters and its body.
static tt_status_t skip_results(tt__parser_t *ps) {
  if (tt__parse_take(ps, "->")) {
    tt_type_t type;
    if (tt__parse_peek(ps) == '(') {
      TT_RETURN_IF_ERROR(skip_group(ps));
    } else {
      TT_RETURN_IF_ERROR(tt__parse_type(ps, &type));
    }
  }
  if (tt__parse_word(ps, "attributes")) TT_RETURN_IF_ERROR(skip_group(ps));
  return TT_OK_STATUS;
}

// From the function's '(' to its '}', wherever the parser was; the caller puts p back.
static tt_status_t function_body(tt__parser_t *ps, const tt__function_t *f, bool is_main,
                                 const tt_value_t *args, uint32_t count, tt_value_t **out_values,
                                 uint32_t *out_count) {
  TT_RETURN_IF_ERROR(enter(ps));
  ps->p = f->signature;
  TT_RETURN_IF_ERROR(parameters(ps, is_main, args, count));
  TT_RETURN_IF_ERROR(skip_results(ps));
  TT_RETURN_IF_ERROR(tt__parse_need(ps, "{"));
  TT_RETURN_IF_ERROR(statements(ps, out_values, out_count));
  ps->depth--;
  return TT_OK_STATUS;
}

// A function that calls itself runs into MOST_DEPTH. Names of the caller are hidden by name_floor
// while the callee is read.
tt_status_t tt__parse_call(tt__parser_t *ps, tt_slice_t name, tt_block_t *block,
                           const tt_value_t *args, uint32_t arg_count, tt_value_t **out_values,
                           uint32_t *out_count) {
  uint32_t i = 0;
  while (i < ps->function_count && (ps->functions[i].name.size != name.size ||
                                    memcmp(ps->functions[i].name.at, name.at, name.size) != 0)) {
    i++;
  }
  if (i == ps->function_count) {
    return tt__parse_fail(ps, NULL, "function @%.*s is not defined",
                          (int)(name.size > 60 ? 60 : name.size), name.at);
  }
  if (++ps->calls > MOST_CALLS) return tt__parse_fail(ps, NULL, "too many calls");
  const char *back = ps->p;
  uint32_t floor = ps->name_floor, names = ps->name_count;
  tt_block_t *around = ps->block;
  ps->name_floor = names;
  ps->block = block;
  TT_RETURN_IF_ERROR(
      function_body(ps, &ps->functions[i], false, args, arg_count, out_values, out_count));
  unbind(ps, names);
  ps->name_floor = floor;
  ps->block = around;
  ps->p = back;
  return TT_OK_STATUS;
}

// To the end of the line, or further where brackets are open there.
static tt_status_t skip_line(tt__parser_t *ps) {
  int depth = 0;
  tt_slice_t ignored;
  for (; ps->p < ps->end && (depth > 0 || *ps->p != '\n'); ps->p++) {
    if (*ps->p == '"') {
      TT_RETURN_IF_ERROR(tt__parse_string(ps, &ignored));
      ps->p--;
      continue;
    }
    depth += *ps->p == '(' || *ps->p == '[' || *ps->p == '{';
    depth -= *ps->p == ')' || *ps->p == ']' || *ps->p == '}';
  }
  return TT_OK_STATUS;
}

// Two of them mean something to us: how many devices the program is for.
static tt_status_t module_attributes(tt__parser_t *ps) {
  TT_RETURN_IF_ERROR(tt__parse_need(ps, "{"));
  while (!tt__parse_take(ps, "}")) {
    if (tt__parse_take(ps, ",")) continue;
    tt_slice_t name = tt__parse_identifier(ps);
    bool replicas = tt_slice_is(name, "mhlo.num_replicas");
    bool partitions = tt_slice_is(name, "mhlo.num_partitions");
    if (name.size == 0) return tt__parse_fail(ps, NULL, "expected an attribute");
    if (!tt__parse_take(ps, "=")) continue;
    if (replicas || partitions) {
      int64_t n;
      TT_RETURN_IF_ERROR(tt__parse_int(ps, &n));
      if (n < 1 || n > INT32_MAX) return tt__parse_fail(ps, NULL, "not a number of devices");
      *(replicas ? &ps->graph->replica_count : &ps->graph->partition_count) = (uint32_t)n;
    }
    if (tt__parse_peek(ps) != ',' && tt__parse_peek(ps) != '}')
      TT_RETURN_IF_ERROR(tt__parse_skip(ps));
  }
  return TT_OK_STATUS;
}

static tt_status_t module_header(tt__parser_t *ps) {
  uint32_t location;
  if (tt__parse_peek(ps) == '@') {
    tt_slice_t name;
    TT_RETURN_IF_ERROR(tt__parse_symbol(ps, &name));
    ps->graph->name = tt_arena_string(&ps->graph->arena, name.at, name.size);
    if (!ps->graph->name) return tt__no_memory();
  }
  if (tt__parse_word(ps, "attributes")) TT_RETURN_IF_ERROR(module_attributes(ps));
  TT_RETURN_IF_ERROR(tt__parse_location(ps, &location));
  return tt__parse_need(ps, "{");
}

// Notes where the function is and skips it.
static tt_status_t note_function(tt__parser_t *ps) {
  tt__function_t f;
  if (!tt__parse_word(ps, "public") && !tt__parse_word(ps, "private")) {
    (void)tt__parse_word(ps, "nested");
  }
  TT_RETURN_IF_ERROR(tt__parse_symbol(ps, &f.name));
  if (tt__parse_peek(ps) != '(') return tt__parse_fail(ps, NULL, "expected '('");
  f.signature = ps->p;
  TT_RETURN_IF_ERROR(skip_group(ps));
  TT_RETURN_IF_ERROR(skip_results(ps));
  if (tt__parse_peek(ps) != '{') return tt__parse_fail(ps, NULL, "the function has no body");
  TT_RETURN_IF_ERROR(skip_group(ps));
  uint32_t location;
  TT_RETURN_IF_ERROR(tt__parse_location(ps, &location));
  if (!tt__parse_grow(ps, (void **)&ps->functions, &ps->function_capacity, ps->function_count,
                      sizeof f)) {
    return tt__no_memory();
  }
  ps->functions[ps->function_count++] = f;
  return TT_OK_STATUS;
}

// Everything at the top: modules, functions, attribute aliases (#...) and type aliases (!...),
// whose contents nothing here needs.
static tt_status_t survey(tt__parser_t *ps) {
  int depth = 0;
  for (char ch; (ch = tt__parse_peek(ps)) != '\0';) {
    uint32_t location;
    const char *start = ps->p;
    if (ch == '#' || ch == '!' || tt__parse_word(ps, "sdy.mesh")) {
      TT_RETURN_IF_ERROR(skip_line(ps));
    } else if (tt__parse_word(ps, "module")) {
      if (++depth > 1) return tt__parse_fail(ps, start, "modules inside modules are not supported");
      TT_RETURN_IF_ERROR(module_header(ps));
    } else if (tt__parse_word(ps, "func.func")) {
      TT_RETURN_IF_ERROR(note_function(ps));
    } else if (ch == '}' && depth > 0) {
      ps->p++;
      depth--;
      TT_RETURN_IF_ERROR(tt__parse_location(ps, &location));
    } else if (ch == '{' && depth == 0) {
      break;  // "{-# resources #-}" at the end of the file
    } else {
      return tt__parse_fail(ps, start, "expected a module or function");
    }
  }
  return depth == 0 ? TT_OK_STATUS : tt__parse_fail(ps, NULL, "the module is not closed");
}

// The function called main, or the first, is the program. An argument may alias only an output that
// exists, which is known when the body has been read.
static tt_status_t parse_all(tt__parser_t *ps) {
  ps->buckets = tt_arena_zeroed(&ps->scratch, TT__BUCKETS * sizeof *ps->buckets);
  if (!ps->buckets) return tt__no_memory();
  TT_RETURN_IF_ERROR(survey(ps));
  if (ps->function_count == 0) return tt__parse_fail(ps, ps->text, "there is no function");
  const tt__function_t *f = &ps->functions[0];
  for (uint32_t i = 0; i < ps->function_count; i++) {
    if (tt_slice_is(ps->functions[i].name, "main")) f = &ps->functions[i];
  }
  tt_value_t *returns;
  uint32_t count;
  TT_RETURN_IF_ERROR(function_body(ps, f, true, NULL, 0, &returns, &count));
  for (uint32_t i = 0; i < ps->graph->main->arg_count; i++) {
    if (ps->graph->donations[i] > (int32_t)count) {
      return tt__parse_fail(ps, ps->text, "argument %u aliases output %d, which is not there", i,
                            ps->graph->donations[i] - 1);
    }
  }
  return tt_graph_return(ps->graph, ps->graph->main, returns, count);
}

tt_status_t tt_graph_parse(const char *text, size_t size, tt_graph_t **out_graph) {
  TT_RETURN_IF_ERROR(tt_graph_create(NULL, out_graph));
  tt__parser_t ps = {.text = text, .p = text, .end = text + size, .graph = *out_graph};
  ps.block = ps.graph->main;
  tt_arena_init(&ps.scratch, 32768);
  tt_status_t s = parse_all(&ps);
  tt_arena_deinit(&ps.scratch);
  if (s) {
    tt_graph_destroy(*out_graph);
    *out_graph = NULL;
  }
  return s;
}
