// A listing of a plan's kernels, one a line: kind, op, where it reads and writes.
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "softtpu/plan_internal.h"
#include "softtpu/plan_rows.h"
#include "softtpu/tile.h"

static void put_ref(tt_text_t *t, const tt_plan_t *plan, tt__ref_t ref) {
  if (ref.base == TT__BASE_ARENA) {
    tt_text_format(t, " arena+%llu", (unsigned long long)ref.offset);
  } else if (ref.base == TT__BASE_NONE) {
    tt_text_format(t, " constant");
  } else if (ref.base < TT__BASE_INPUT + plan->input_count) {
    tt_text_format(t, " in%u", ref.base - TT__BASE_INPUT);
  } else {
    tt_text_format(t, " out%u", ref.base - TT__BASE_INPUT - plan->input_count);
  }
}

static void put_seq(tt_text_t *t, const tt_plan_t *plan, const tt__seq_t *seq, int depth) {
  for (uint32_t i = 0; i < seq->count; i++) {
    const tt__step_t *s = seq->steps[i];
    tt_text_format(t, "%*s%s", depth * 2, "", s->kind);
    if (s->node) tt_text_format(t, " %s", tt_op_infos[s->node->op].text);
    if (strcmp(s->kind, "tile") == 0) {
      const tt__tile_t *tile = s->data;
      tt_text_format(t, " %lld points, %u ops", (long long)tile->total, tile->instr_count);
    }
    tt_text_format(t, ":");
    bool copy = strcmp(s->kind, "copy") == 0;
    for (uint32_t r = 0; r < s->read_count + copy; r++) put_ref(t, plan, s->in[r]);
    tt_text_format(t, " ->");
    for (uint32_t w = 0; w < s->write_count + copy; w++) put_ref(t, plan, s->out[w]);
    tt_text_format(t, "\n");
    if (strcmp(s->kind, "rows") == 0) {
      const tt__chain_t *c = s->data;
      const tt__seq_t members = {c->members, c->count};
      put_seq(t, plan, &members, depth + 1);
    }
    for (uint32_t k = 0; k < s->region_count; k++) {
      tt_text_format(t, "%*sregion\n", depth * 2 + 1, "");
      put_seq(t, plan, &s->regions[k], depth + 1);
    }
  }
}

char *tt_plan_describe(const tt_plan_t *plan) {
  tt_text_t t = {0};
  tt_text_format(&t, "%s", plan->reference ? "reference\n" : "");
  put_seq(&t, plan, &plan->main, 0);
  tt_text_put(&t, "", 1);
  if (t.failed) {
    tt_free(t.data);
    return NULL;
  }
  return t.data;
}
