// Gives values memory. A buffer's tenants follow one another in time: a step may write where a
// value that dies in it was read (in place), where a donated input or an output lies idle, or into
// the arena. Times are unique and grow along the program, so every question about two lives is a
// comparison of numbers. Then the arena's buffers get offsets, as rectangles in time and address
// that must not overlap.
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "softtpu/plan_internal.h"

static tt_status_t new_buffer(tt__planner_t *p, size_t bytes, uint32_t begin, uint32_t end,
                              uint32_t *out_buffer) {
  if (!tt_grow((void **)&p->buffers, &p->buffer_capacity, p->buffer_count + 1, sizeof *p->buffers))
    return tt__plan_no_memory();
  p->buffers[p->buffer_count] = (tt__buffer_t){
      .bytes = bytes, .begin = begin, .end = end, .occupant = TT_NO_VALUE, .writable = true};
  *out_buffer = p->buffer_count++;
  return TT_OK_STATUS;
}

tt_status_t tt__buffer_fixed(tt__planner_t *p, size_t bytes, uint32_t base, uint64_t offset,
                             bool writable, uint32_t *out_buffer) {
  TT_RETURN_IF_ERROR(new_buffer(p, bytes, 0, 0, out_buffer));
  tt__buffer_t *b = &p->buffers[*out_buffer];
  b->fixed = true;
  b->writable = writable;
  b->ref = (tt__ref_t){base, offset};
  return TT_OK_STATUS;
}

static size_t value_bytes(const tt__planner_t *p, tt_value_t v) {
  return tt_type_bytes(tt_graph_type(p->graph, v));
}

// From when on the step's results are in memory: a chain's members take turns.
static uint32_t begin_of(const tt__step_t *s) { return s->chain_rows ? s->chain_begin : s->time; }

// Whether write `w` of the step may go over what the buffer holds now: it is no longer needed when
// the step begins, or the step itself is its last reader and reads each place before it writes
// there. A chain's members overlap in time, so for them "begins" means the chain's begin.
static bool can_write(const tt__planner_t *p, uint32_t buffer, const tt__step_t *s, uint32_t w) {
  const tt__buffer_t *b = &p->buffers[buffer];
  if (!b->writable) return false;
  if (b->busy < begin_of(s)) return true;
  if (b->busy != s->time) return false;
  if (b->occupant != TT_NO_VALUE && p->values[b->occupant].spread) return false;
  bool found = false;
  for (uint32_t r = 0; r < s->read_count; r++) {
    if (tt__plan_root(p, s->reads[r]) != b->occupant) continue;
    if (!s->inplace[r * s->write_count + w]) return false;
    found = true;
  }
  return found;
}

static bool is_input(const tt__planner_t *p, const tt__buffer_t *b) {
  return b->fixed && b->ref.base >= TT__BASE_INPUT &&
         b->ref.base < TT__BASE_INPUT + p->plan->input_count;
}

// v moves in: from now on the buffer is busy until v's last use.
static void occupy(tt__planner_t *p, uint32_t buffer, tt_value_t v) {
  tt__buffer_t *b = &p->buffers[buffer];
  tt__value_t *info = &p->values[v];
  info->buffer = buffer;
  if (is_input(p, b)) p->plan->written[b->ref.base - TT__BASE_INPUT] = true;
  b->occupant = v;
  b->busy = info->last;
  if (info->last > b->end) b->end = info->last;
}

// A donated input of the output's size whose memory is free by the time of `s`.
static bool find_donor(tt__planner_t *p, const tt__step_t *s, uint32_t w, size_t bytes,
                       const int32_t *aliases, uint32_t *out_buffer) {
  const tt_block_t *main = p->graph->main;
  for (uint32_t j = 0; j < main->arg_count; j++) {
    if (p->graph->donations[j] != TT_DONATE) continue;
    tt_value_t arg = main->args[j];
    uint32_t buffer = p->values[arg].buffer;
    if (p->buffers[buffer].bytes != bytes || !can_write(p, buffer, s, w)) continue;
    bool taken = false;
    for (uint32_t o = 0; o < p->plan->output_count; o++) taken |= aliases[o] == (int32_t)j;
    if (taken) continue;
    *out_buffer = buffer;
    return true;
  }
  return false;
}

// The step at a time by bisection; NULL: the time is inside a region, or nobody's.
static const tt__step_t *step_at(const tt__seq_t *seq, uint32_t time) {
  uint32_t low = 0, high = seq->count;
  while (low < high) {
    uint32_t mid = low + (high - low) / 2;
    if (seq->steps[mid]->time_end < time)
      low = mid + 1;
    else
      high = mid;
  }
  return low < seq->count && seq->steps[low]->time == time ? seq->steps[low] : NULL;
}

// Whether some output of so many bytes gets memory of its own whatever is donated.
static bool outputs_left(const tt__planner_t *p, size_t bytes, const uint32_t *targets,
                         const int32_t *aliases) {
  int64_t left = 0;
  for (uint32_t o = 0; o < p->plan->output_count; o++) {
    const tt__buffer_t *b = &p->buffers[targets[o]];
    left += aliases[o] < 0 && b->bytes == bytes && !b->lent;
  }
  for (uint32_t j = 0; j < p->plan->input_count; j++) {
    const tt__buffer_t *b = &p->buffers[p->values[p->graph->main->args[j]].buffer];
    if (b->bytes != bytes || p->graph->donations[j] != TT_DONATE) continue;
    bool taken = false;
    for (uint32_t o = 0; o < p->plan->output_count; o++) taken |= aliases[o] == (int32_t)j;
    left -= !taken;
  }
  return left > 0;
}

// Where the last reader of `v` turns it into an output in place (a gradient that is scaled before
// it is returned), the output's own memory, idle until then, holds `v` too.
static bool find_lender(tt__planner_t *p, const tt__seq_t *seq, const tt__step_t *s, uint32_t w,
                        size_t bytes, const uint32_t *targets, const int32_t *aliases,
                        uint32_t *out_buffer) {
  tt_value_t v = s->writes[w];
  const tt__step_t *last = step_at(seq, p->values[v].last);
  if (!last || last == s || last->region_count) return false;
  for (uint32_t x = 0; x < last->write_count; x++) {
    uint32_t target = p->values[last->writes[x]].target;
    if (!target || aliases[target - 1] >= 0) continue;
    uint32_t buffer = targets[target - 1];
    if (p->buffers[buffer].bytes != bytes || !can_write(p, buffer, s, w)) continue;
    bool inplace = false;
    for (uint32_t r = 0; r < last->read_count; r++)
      inplace |= tt__plan_root(p, last->reads[r]) == v && last->inplace[r * last->write_count + x];
    if (!inplace || !outputs_left(p, bytes, targets, aliases)) continue;
    *out_buffer = buffer;
    return true;
  }
  return false;
}

// In order of preference: the output's own place, a dying operand's, an idle output's, the arena.
static tt_status_t assign_write(tt__planner_t *p, const tt__seq_t *seq, tt__step_t *s, uint32_t w,
                                uint32_t *targets, int32_t *aliases) {
  tt_value_t v = s->writes[w];
  tt__value_t *info = &p->values[v];
  size_t bytes = value_bytes(p, v);
  if (info->last < s->time_end) info->last = s->time_end;
  if (info->target) {
    uint32_t o = info->target - 1, donor;
    if (aliases && aliases[o] < 0 && !p->buffers[targets[o]].lent &&
        find_donor(p, s, w, bytes, aliases, &donor)) {
      targets[o] = donor;
      aliases[o] = (int32_t)(p->buffers[donor].ref.base - TT__BASE_INPUT);
    }
    if (can_write(p, targets[o], s, w)) {
      occupy(p, targets[o], v);
      return TT_OK_STATUS;
    }
  }
  for (uint32_t r = 0; r < s->read_count; r++) {
    if (!s->inplace[r * s->write_count + w]) continue;
    tt_value_t u = tt__plan_root(p, s->reads[r]);
    const tt__value_t *from = &p->values[u];
    if (!from->reusable || from->last != s->time) continue;
    const tt__buffer_t *b = &p->buffers[from->buffer];
    if (b->occupant != u || b->bytes < bytes || !can_write(p, from->buffer, s, w)) continue;
    occupy(p, from->buffer, v);
    return TT_OK_STATUS;
  }
  uint32_t buffer;
  if (aliases && bytes && find_lender(p, seq, s, w, bytes, targets, aliases, &buffer))
    p->buffers[buffer].lent = true;
  else
    TT_RETURN_IF_ERROR(new_buffer(p, bytes, begin_of(s), info->last, &buffer));
  occupy(p, buffer, v);
  info->reusable = true;
  return TT_OK_STATUS;
}

// A while's results are its carried state: condition and body read and write it in place. The
// condition may not reuse that memory, since the body reads it after; its one returned value goes
// to the step's scratch. A branch writes its returns to the step's results.
static tt_status_t assign_regions(tt__planner_t *p, tt__step_t *s) {
  uint32_t *targets = TT_ARENA_ARRAY(&p->scratch, uint32_t, s->write_count + 1);
  if (!targets) return tt__plan_no_memory();
  bool loop = s->node->op == TT_OP_WHILE;
  for (uint32_t w = 0; w < s->write_count; w++) targets[w] = p->values[s->writes[w]].buffer;
  for (uint32_t k = 0; k < s->region_count; k++) {
    const tt_block_t *block = s->node->regions[k];
    bool condition = loop && k == 0;
    for (uint32_t i = 0; loop && i < block->arg_count; i++) {
      tt__value_t *arg = &p->values[block->args[i]];
      if (arg->last < s->time) arg->last = s->time;
      occupy(p, targets[i], block->args[i]);
      arg->reusable = !condition;
    }
    if (!loop) {
      for (uint32_t w = 0; w < s->write_count; w++) p->buffers[targets[w]].busy = s->time;
    }
    TT_RETURN_IF_ERROR(tt__buffer_assign(p, block, &s->regions[k],
                                         condition ? &s->scratch_buffer : targets, NULL));
  }
  for (uint32_t w = 0; w < s->write_count; w++) {
    occupy(p, targets[w], s->writes[w]);
  }
  return TT_OK_STATUS;
}

static tt_status_t run_copy(const tt__step_t *s, const tt__run_t *run) {
  memmove(tt__at(run, s->out[0]), tt__at(run, s->in[0]), s->cost);
  return TT_OK_STATUS;
}

// A copy between buffers, which have no values: the refs are patched by number in resolve.
static tt_status_t append_copy(tt__planner_t *p, tt__seq_t *seq, uint32_t from, uint32_t to,
                               size_t bytes) {
  tt__step_t *s;
  TT_RETURN_IF_ERROR(tt__plan_step(p, run_copy, "copy", NULL, 0, 0, &s));
  uint32_t *pair = TT_ARENA_ARRAY(p->arena, uint32_t, 2);
  tt__step_t **steps = TT_ARENA_ARRAY(p->arena, tt__step_t *, seq->count + 1);
  s->in = TT_ARENA_ARRAY(p->arena, tt__ref_t, 2);
  if (!pair || !steps || !s->in) return tt__plan_no_memory();
  s->out = s->in + 1;
  pair[0] = from;
  pair[1] = to;
  s->data = pair;
  s->cost = bytes;
  memcpy(steps, seq->steps, sizeof *steps * seq->count);
  steps[seq->count] = s;
  seq->steps = steps;
  seq->count++;
  return TT_OK_STATUS;
}

// Brings every returned value that is not in its target there. A source that another copy
// overwrites is saved first.
static tt_status_t copy_returns(tt__planner_t *p, const tt_block_t *block, tt__seq_t *seq,
                                uint32_t *targets, int32_t *aliases) {
  uint32_t n = block->return_count, end = p->values[tt__plan_root(p, block->returns[0])].last;
  uint32_t *from = TT_ARENA_ARRAY(&p->scratch, uint32_t, n);
  if (!from) return tt__plan_no_memory();
  for (uint32_t i = 0; i < n; i++) {
    tt_value_t v = tt__plan_root(p, block->returns[i]);
    from[i] = p->values[v].buffer;
    const tt__buffer_t *b = &p->buffers[from[i]];
    // A donated argument returned as it is.
    if (aliases && aliases[i] < 0 && from[i] != targets[i] && b->occupant == v &&
        b->ref.base >= TT__BASE_INPUT && p->values[v].reusable &&
        p->graph->values[v].node == NULL) {
      int32_t j = (int32_t)(b->ref.base - TT__BASE_INPUT);
      bool taken = p->graph->donations[j] != TT_DONATE;
      for (uint32_t o = 0; o < n; o++) taken |= aliases[o] == j;
      if (!taken) {
        aliases[i] = j;
        targets[i] = from[i];
      }
    }
  }
  for (uint32_t i = 0; i < n; i++) {
    if (from[i] == targets[i]) continue;
    bool overwritten = false;
    for (uint32_t j = 0; j < n; j++) overwritten |= targets[j] == from[i] && from[j] != targets[j];
    if (!overwritten) continue;
    size_t bytes = value_bytes(p, block->returns[i]);
    uint32_t saved = 0;
    TT_RETURN_IF_ERROR(new_buffer(p, bytes, end, end, &saved));
    TT_RETURN_IF_ERROR(append_copy(p, seq, from[i], saved, bytes));
    from[i] = saved;
  }
  for (uint32_t i = 0; i < n; i++) {
    if (from[i] == targets[i]) continue;
    TT_RETURN_IF_ERROR(append_copy(p, seq, from[i], targets[i], value_bytes(p, block->returns[i])));
  }
  return TT_OK_STATUS;
}

tt_status_t tt__buffer_assign(tt__planner_t *p, const tt_block_t *block, tt__seq_t *seq,
                              uint32_t *targets, int32_t *aliases) {
  for (uint32_t i = 0; i < seq->count; i++) {
    tt__step_t *s = seq->steps[i];
    if (s->scratch_bytes)
      TT_RETURN_IF_ERROR(new_buffer(p, s->scratch_bytes, s->time, s->time_end, &s->scratch_buffer));
    for (uint32_t w = 0; w < s->write_count; w++)
      TT_RETURN_IF_ERROR(assign_write(p, seq, s, w, targets, aliases));
    if (s->region_count) TT_RETURN_IF_ERROR(assign_regions(p, s));
  }
  if (block->return_count == 0) return TT_OK_STATUS;
  return copy_returns(p, block, seq, targets, aliases);
}

static int by_begin(const void *a, const void *b) {
  const tt__buffer_t *x = *(tt__buffer_t *const *)a, *y = *(tt__buffer_t *const *)b;
  if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
  return x->bytes != y->bytes ? (x->bytes > y->bytes ? -1 : 1) : (x < y ? -1 : x > y);
}

// The smallest gap between the buffers alive, kept sorted by offset, that holds `bytes`.
static uint32_t best_gap(tt__buffer_t **active, uint32_t count, size_t bytes,
                         uint64_t *out_offset) {
  uint64_t cursor = 0, best = UINT64_MAX;
  uint32_t place = count;
  for (uint32_t i = 0; i < count; i++) {
    uint64_t gap = active[i]->ref.offset - cursor;
    if (gap >= bytes && gap < best) {
      best = gap;
      place = i;
      *out_offset = cursor;
    }
    cursor = active[i]->ref.offset + tt_align_up(active[i]->bytes, 64);
  }
  if (best == UINT64_MAX) *out_offset = cursor;
  return place;
}

// In order of time: each buffer gets the smallest gap between those alive. Returns the arena's
// size.
static uint64_t pack_by_time(tt__buffer_t **all, uint32_t count, tt__buffer_t **active) {
  uint32_t alive = 0;
  uint64_t top = 0;
  qsort(all, count, sizeof *all, by_begin);
  for (uint32_t i = 0; i < count; i++) {
    tt__buffer_t *b = all[i];
    uint32_t kept = 0;
    for (uint32_t k = 0; k < alive; k++)
      if (active[k]->end >= b->begin) active[kept++] = active[k];
    alive = kept;
    uint64_t bytes = tt_align_up(b->bytes, 64);
    uint32_t place = best_gap(active, alive, bytes, &b->ref.offset);
    memmove(active + place + 1, active + place, sizeof *active * (alive - place));
    active[place] = b;
    alive++;
    if (b->ref.offset + bytes > top) top = b->ref.offset + bytes;
  }
  return top;
}

static int by_bytes(const void *a, const void *b) {
  const tt__buffer_t *x = *(tt__buffer_t *const *)a, *y = *(tt__buffer_t *const *)b;
  if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
  if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
  return x < y ? -1 : x > y;
}

// The largest first, each at the lowest place that is free all its time. Less waste, more work.
static uint64_t pack_by_size(tt__buffer_t **all, uint32_t count, tt__buffer_t **placed) {
  uint64_t top = 0;
  qsort(all, count, sizeof *all, by_bytes);
  for (uint32_t i = 0; i < count; i++) {
    tt__buffer_t *b = all[i];
    uint64_t bytes = tt_align_up(b->bytes, 64), cursor = 0;
    for (uint32_t k = 0; k < i; k++) {
      const tt__buffer_t *other = placed[k];
      if (other->begin > b->end || other->end < b->begin) continue;
      if (other->ref.offset >= cursor + bytes) break;
      uint64_t end = other->ref.offset + tt_align_up(other->bytes, 64);
      if (end > cursor) cursor = end;
    }
    b->ref.offset = cursor;
    if (cursor + bytes > top) top = cursor + bytes;
    uint32_t place = i;
    while (place > 0 && placed[place - 1]->ref.offset > cursor) {
      placed[place] = placed[place - 1];
      place--;
    }
    placed[place] = b;
  }
  return top;
}

// Packing by size is quadratic: tried only where a megabyte or more could be saved, and not for
// programs of very many buffers.
enum { PACK_LEAST_BYTES = 1 << 20, PACK_MOST_BUFFERS = 4096 };

// A buffer of a chain's member lives until the chain ends: another band may still need it. by_time
// sorts and writes the same arrays again where it wins.
tt_status_t tt__buffer_pack(tt__planner_t *p) {
  tt__buffer_t **all = TT_ARENA_ARRAY(&p->scratch, tt__buffer_t *, p->buffer_count + 1);
  tt__buffer_t **active = TT_ARENA_ARRAY(&p->scratch, tt__buffer_t *, p->buffer_count + 1);
  if (!all || !active) return tt__plan_no_memory();
  uint32_t count = 0;
  for (uint32_t i = 0; i < p->buffer_count; i++) {
    tt__buffer_t *b = &p->buffers[i];
    if (b->fixed) continue;
    const tt__step_t *last = step_at(&p->plan->main, b->end);
    if (last && last->chain_rows) b->end = last->chain_end;
    b->ref = (tt__ref_t){TT__BASE_ARENA, 0};
    if (b->bytes) all[count++] = b;
  }
  uint64_t top = pack_by_time(all, count, active);
  if (top >= PACK_LEAST_BYTES && count <= PACK_MOST_BUFFERS) {
    uint64_t other = pack_by_size(all, count, active);
    top = other < top ? other : pack_by_time(all, count, active);
  }
  p->plan->arena_bytes = top;
  return TT_OK_STATUS;
}

void tt__buffer_resolve(tt__planner_t *p, const tt__seq_t *seq) {
  for (uint32_t i = 0; i < seq->count; i++) {
    tt__step_t *s = seq->steps[i];
    if (s->run == run_copy) {
      const uint32_t *pair = s->data;
      s->in[0] = p->buffers[pair[0]].ref;
      s->out[0] = p->buffers[pair[1]].ref;
      continue;
    }
    for (uint32_t r = 0; r < s->read_count; r++)
      s->in[r] = p->buffers[p->values[tt__plan_root(p, s->reads[r])].buffer].ref;
    for (uint32_t w = 0; w < s->write_count; w++)
      s->out[w] = p->buffers[p->values[s->writes[w]].buffer].ref;
    if (s->scratch_bytes) s->scratch = p->buffers[s->scratch_buffer].ref;
    for (uint32_t k = 0; k < s->region_count; k++) tt__buffer_resolve(p, &s->regions[k]);
  }
}
