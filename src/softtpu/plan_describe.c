// A listing of a plan's kernels, one a line: kind, op, where it reads and writes.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "softtpu/plan_internal.h"
#include "softtpu/plan_rows.h"
#include "softtpu/tile.h"

typedef struct text_s {
  char *data;
  uint32_t size, capacity;
  bool failed;
} text_t;

static void put(text_t *t, const char *format, ...) TT_PRINTF(2, 3);
static void put(text_t *t, const char *format, ...) {
  char line[256];
  va_list args;
  va_start(args, format);
  int n = vsnprintf(line, sizeof line, format, args);
  va_end(args);
  if (n < 0 || t->failed) return;
  uint32_t length = (uint32_t)n < sizeof line ? (uint32_t)n : (uint32_t)sizeof line - 1;
  if (!tt_grow((void **)&t->data, &t->capacity, t->size + length + 1, 1)) {
    t->failed = true;
    return;
  }
  memcpy(t->data + t->size, line, length + 1);
  t->size += length;
}

static void put_ref(text_t *t, const tt_plan_t *plan, tt__ref_t ref) {
  if (ref.base == TT__BASE_ARENA) {
    put(t, " arena+%llu", (unsigned long long)ref.offset);
  } else if (ref.base == TT__BASE_NONE) {
    put(t, " constant");
  } else if (ref.base < TT__BASE_INPUT + plan->input_count) {
    put(t, " in%u", ref.base - TT__BASE_INPUT);
  } else {
    put(t, " out%u", ref.base - TT__BASE_INPUT - plan->input_count);
  }
}

static void put_seq(text_t *t, const tt_plan_t *plan, const tt__seq_t *seq, int depth) {
  for (uint32_t i = 0; i < seq->count; i++) {
    const tt__step_t *s = seq->steps[i];
    put(t, "%*s%s", depth * 2, "", s->kind);
    if (s->node) put(t, " %s", tt_op_infos[s->node->op].text);
    if (strcmp(s->kind, "tile") == 0) {
      const tt__tile_t *tile = s->data;
      put(t, " %lld points, %u ops", (long long)tile->total, tile->instr_count);
    }
    put(t, ":");
    bool copy = strcmp(s->kind, "copy") == 0;
    for (uint32_t r = 0; r < s->read_count + copy; r++) put_ref(t, plan, s->in[r]);
    put(t, " ->");
    for (uint32_t w = 0; w < s->write_count + copy; w++) put_ref(t, plan, s->out[w]);
    put(t, "\n");
    if (strcmp(s->kind, "rows") == 0) {
      const tt__chain_t *c = s->data;
      const tt__seq_t members = {c->members, c->count};
      put_seq(t, plan, &members, depth + 1);
    }
    for (uint32_t k = 0; k < s->region_count; k++) {
      put(t, "%*sregion\n", depth * 2 + 1, "");
      put_seq(t, plan, &s->regions[k], depth + 1);
    }
  }
}

char *tt_plan_describe(const tt_plan_t *plan) {
  text_t t = {0};
  put(&t, "%s", plan->reference ? "reference\n" : "");
  put_seq(&t, plan, &plan->main, 0);
  if (t.failed) {
    tt_free(t.data);
    return NULL;
  }
  return t.data;
}
