#include "dist/process_group.h"

#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "dist/far.h"
#include "dist/lane.h"
#include "dist/replicas.h"
#include "dist/route.h"
#include "dist/work.h"

// Staging memory that an idle group holds on to, for collectives and for each direction and peer.
#define KEPT_FOR_COLLECTIVES (((size_t)64 << 20) + 4096)
#define KEPT_FOR_MESSAGES ((size_t)4 << 20)

struct tt_process_group_s {
  tt_replica_set_t *replicas;  // of an imagined group, which has nothing else
  tt_group_t *group;
  tt_lane_t *collectives;
  tt_routes_t *messages;
  _Atomic double timeout_s;
};

// A tensor of the job with its own copy of the metadata, and the lane's memory it is staged in.
typedef struct side_s {
  tt_tensor_t tensor;
  tt_snapshot_t *snapshot;  // inputs: the dense value at submission
  const char *from;         // inputs: the value, in the device's own memory (held) or staged
  char *to;                 // what gets new contents: where they are written, likewise
  bool held;
  tt_buffer_t *made;  // the device memory that `to` is
  size_t elements, bytes;
  int64_t dims[2 * 16];
} side_t;

typedef struct task_s {
  tt_lane_task_t lane;
  tt_process_group_t *owner;
  tt_lane_t *runs_on;
  tt_route_t *route;  // of a message
  tt_work_t *work;
  tt_job_kind_t kind;
  tt_reduce_op_t op;
  tt_dtype_t dtype;
  uint32_t root, tag, in_count, out_count;
  side_t *ins, *outs;
  size_t *in_splits, *out_splits;
  double timeout_s;
} task_t;

// --- making a task ------------------------------------------------------------------------------

static size_t elements_of(const tt_tensor_t *t) {
  size_t n = 1;
  for (uint32_t d = 0; d < t->rank; d++) n *= (size_t)t->sizes[d];
  return n;
}

static void task_destroy(task_t *task) {
  for (uint32_t i = 0; i < task->in_count + task->out_count; i++) {
    side_t *side = i < task->in_count ? &task->ins[i] : &task->outs[i - task->in_count];
    if (side->held) tt_snapshot_drop(side->snapshot);
    tt_buffer_release(side->made);
    tt_snapshot_release(side->snapshot);
    if (side->tensor.storage) tt_storage_release(side->tensor.storage);
  }
  tt_work_release(task->work);
  tt_free(task->ins);
  tt_free(task->outs);
  tt_free(task->in_splits);
  tt_free(task);
}

static tt_status_t side_init(side_t *side, const tt_tensor_t *tensor, bool input) {
  if (tensor->rank > 16) {
    return TT_ERROR(INVALID_ARGUMENT, "tpu_dist: a tensor of rank %u; at most 16", tensor->rank);
  }
  side->tensor = *tensor;
  tt_storage_retain(tensor->storage);
  memcpy(side->dims, tensor->sizes, tensor->rank * sizeof *side->dims);
  memcpy(side->dims + 16, tensor->strides, tensor->rank * sizeof *side->dims);
  side->tensor.sizes = side->dims;
  side->tensor.strides = side->dims + 16;
  side->elements = elements_of(tensor);
  side->bytes = side->elements * tt_dtype_size((tt_dtype_t)tensor->dtype);
  return input ? tt_eager_snapshot(tensor, &side->snapshot) : TT_OK_STATUS;
}

static const char *name_of(tt_job_kind_t kind) {
  static const char *const names[] = {
      [TT_JOB_BARRIER] = "barrier",       [TT_JOB_ALL_REDUCE] = "all_reduce",
      [TT_JOB_REDUCE] = "reduce",         [TT_JOB_BROADCAST] = "broadcast",
      [TT_JOB_ALL_GATHER] = "all_gather", [TT_JOB_REDUCE_SCATTER] = "reduce_scatter",
      [TT_JOB_ALL_TO_ALL] = "all_to_all", [TT_JOB_GATHER] = "gather",
      [TT_JOB_SCATTER] = "scatter",       [TT_JOB_SEND] = "send",
      [TT_JOB_RECEIVE] = "recv",          [TT_JOB_RECEIVE_ANY] = "recv",
  };
  return names[kind];
}

// Even or given cuts of one tensor into a part a rank. As elsewhere, only all_to_all asks that the
// rows come out even: the others take any shape of the right number of elements.
static tt_status_t splits_init(const task_t *task, size_t *out, const int64_t *splits,
                               size_t elements, size_t rows) {
  uint32_t size = tt_group_size(task->owner->group);
  bool by_rows = task->kind == TT_JOB_ALL_TO_ALL;
  if (!splits && (by_rows ? rows : elements) % size) {
    return TT_ERROR(INVALID_ARGUMENT, "tpu_dist: %s: %zu %s cannot be cut evenly for %u ranks",
                    name_of(task->kind), by_rows ? rows : elements, by_rows ? "rows" : "elements",
                    size);
  }
  size_t row = rows ? elements / rows : 0, sum = 0;
  for (uint32_t k = 0; k < size; k++) {
    if (splits && splits[k] < 0) {
      return TT_ERROR(INVALID_ARGUMENT, "tpu_dist: %s: a split of %lld rows", name_of(task->kind),
                      (long long)splits[k]);
    }
    out[k] = splits ? (size_t)splits[k] * row : elements / size;
    sum += out[k];
  }
  if (sum != elements) {
    return TT_ERROR(INVALID_ARGUMENT, "tpu_dist: %s: the splits cover %zu of %zu elements",
                    name_of(task->kind), sum, elements);
  }
  return TT_OK_STATUS;
}

static size_t rows_of(const tt_tensor_t *t) { return t->rank ? (size_t)t->sizes[0] : 1; }

// Fills a list with one length a rank: of the list's tensors, or of the one tensor's parts.
static tt_status_t lengths_init(const task_t *task, size_t *out, const side_t *sides,
                                uint32_t count, const int64_t *splits) {
  uint32_t size = tt_group_size(task->owner->group);
  if (count == 0) return TT_OK_STATUS;
  if (count == 1 && (size > 1 || splits)) {
    return splits_init(task, out, splits, sides->elements, rows_of(&sides->tensor));
  }
  if (count != size) {
    return TT_ERROR(INVALID_ARGUMENT, "tpu_dist: %s: %u tensors given for %u ranks",
                    name_of(task->kind), count, size);
  }
  for (uint32_t k = 0; k < size; k++) out[k] = sides[k].elements;
  return TT_OK_STATUS;
}

static bool cuts_inputs(tt_job_kind_t kind) {
  return kind == TT_JOB_REDUCE_SCATTER || kind == TT_JOB_ALL_TO_ALL || kind == TT_JOB_SCATTER;
}
static bool cuts_outputs(tt_job_kind_t kind) {
  return kind == TT_JOB_ALL_GATHER || kind == TT_JOB_ALL_TO_ALL || kind == TT_JOB_GATHER;
}

static tt_status_t check_part(const task_t *task, uint32_t rank, size_t part, size_t whole) {
  if (part == whole) return TT_OK_STATUS;
  return TT_ERROR(INVALID_ARGUMENT,
                  "tpu_dist: %s: the part of rank %u has %zu elements, the tensor for it %zu",
                  name_of(task->kind), rank, part, whole);
}

// What goes to or comes from one rank is as long for all.
static tt_status_t check_parts(const task_t *task, const size_t *parts, uint32_t count,
                               size_t whole) {
  uint32_t size = tt_group_size(task->owner->group);
  for (uint32_t k = 0; count && k < size; k++) {
    TT_RETURN_IF_ERROR(check_part(task, k, parts[k], whole));
  }
  return TT_OK_STATUS;
}

static tt_status_t task_check(const task_t *task) {
  uint32_t rank = tt_group_rank(task->owner->group), size = tt_group_size(task->owner->group);
  for (uint32_t i = 0; i < task->in_count + task->out_count; i++) {
    const side_t *side = i < task->in_count ? &task->ins[i] : &task->outs[i - task->in_count];
    if (side->tensor.dtype != task->dtype) {
      return TT_ERROR(INVALID_ARGUMENT, "tpu_dist: %s: tensors of %s and %s in one call",
                      name_of(task->kind), tt_dtype_text(task->dtype),
                      tt_dtype_text((tt_dtype_t)side->tensor.dtype));
    }
  }
  if (task->root >= size) {
    return TT_ERROR(INVALID_ARGUMENT, "tpu_dist: %s: invalid rank %d in a group of %u",
                    name_of(task->kind), (int)task->root, size);
  }
  switch ((int)task->kind) {
    case TT_JOB_ALL_REDUCE:
    case TT_JOB_REDUCE:
      return tt_reduce_check(task->dtype, task->op);
    case TT_JOB_ALL_GATHER:
      return check_part(task, rank, task->out_splits[rank], task->ins[0].elements);
    case TT_JOB_REDUCE_SCATTER:
      TT_RETURN_IF_ERROR(tt_reduce_check(task->dtype, task->op));
      return check_part(task, rank, task->in_splits[rank], task->outs[0].elements);
    case TT_JOB_GATHER:
      return check_parts(task, task->out_splits, task->out_count, task->ins[0].elements);
    case TT_JOB_SCATTER:
      return check_parts(task, task->in_splits, task->in_count, task->outs[0].elements);
    default:
      return TT_OK_STATUS;
  }
}

static tt_status_t task_fill(task_t *task, const tt_job_t *job) {
  uint32_t size = tt_group_size(task->owner->group);
  task->ins = tt_alloc_zeroed(sizeof(side_t) * (job->in_count + 1));
  task->outs = tt_alloc_zeroed(sizeof(side_t) * (job->out_count + 1));
  task->in_splits = tt_alloc_zeroed(2 * sizeof(size_t) * size);
  if (!task->ins || !task->outs || !task->in_splits) {
    return TT_ERROR(OUT_OF_MEMORY, "tpu_dist: no memory for a job of %u tensors",
                    job->in_count + job->out_count);
  }
  task->out_splits = task->in_splits + size;
  TT_RETURN_IF_ERROR(tt_work_create(task->timeout_s, &task->work));
  for (; task->in_count < job->in_count; task->in_count++) {
    TT_RETURN_IF_ERROR(side_init(&task->ins[task->in_count], &job->ins[task->in_count], true));
  }
  for (; task->out_count < job->out_count; task->out_count++) {
    TT_RETURN_IF_ERROR(side_init(&task->outs[task->out_count], &job->outs[task->out_count], false));
  }
  task->dtype = (tt_dtype_t)(job->in_count    ? job->ins[0].dtype
                             : job->out_count ? job->outs[0].dtype
                                              : TT_U8);
  if (cuts_inputs(job->kind)) {
    TT_RETURN_IF_ERROR(
        lengths_init(task, task->in_splits, task->ins, task->in_count, job->in_splits));
  }
  if (cuts_outputs(job->kind)) {
    TT_RETURN_IF_ERROR(
        lengths_init(task, task->out_splits, task->outs, task->out_count, job->out_splits));
  }
  return task_check(task);
}

// --- running one --------------------------------------------------------------------------------

// One pointer a rank into a list's memory (`single` tensor: its parts).
static void pointers(const task_t *task, const char **out, const side_t *sides, uint32_t count,
                     const size_t *lengths) {
  uint32_t size = tt_group_size(task->owner->group);
  size_t at = 0, element = tt_dtype_size(task->dtype);
  for (uint32_t k = 0; k < size; k++) {
    const side_t *side = &sides[count == 1 ? 0 : k];
    const char *data = count == 0 ? NULL : side->snapshot ? side->from : side->to;
    out[k] = data && count == 1 ? data + at * element : data;
    at += lengths[k];
  }
}

static tt_collective_t collective_of(const task_t *task) {
  static const tt_collective_kind_t kinds[] = {
      [TT_JOB_BARRIER] = TT_COLLECTIVE_BARRIER,
      [TT_JOB_ALL_REDUCE] = TT_COLLECTIVE_ALL_REDUCE,
      [TT_JOB_REDUCE] = TT_COLLECTIVE_REDUCE,
      [TT_JOB_BROADCAST] = TT_COLLECTIVE_BROADCAST,
      [TT_JOB_ALL_GATHER] = TT_COLLECTIVE_ALL_GATHER,
      [TT_JOB_REDUCE_SCATTER] = TT_COLLECTIVE_REDUCE_SCATTER,
      [TT_JOB_ALL_TO_ALL] = TT_COLLECTIVE_ALL_TO_ALL,
      [TT_JOB_GATHER] = TT_COLLECTIVE_GATHER,
      [TT_JOB_SCATTER] = TT_COLLECTIVE_SCATTER,
  };
  return (tt_collective_t){.kind = kinds[task->kind],
                           .dtype = task->dtype,
                           .op = task->op,
                           .root = task->root,
                           .timeout_s = task->timeout_s};
}

static tt_status_t run_each(const task_t *task, tt_group_t *g) {
  tt_collective_t c = collective_of(task);
  for (uint32_t i = 0; i < task->in_count; i++) {
    c.in = task->ins[i].from;
    c.out = task->ins[i].to;
    c.elements = task->ins[i].elements;
    TT_RETURN_IF_ERROR(tt_group_run(g, &c));
  }
  return TT_OK_STATUS;
}

static tt_message_t message_of(const task_t *task, const side_t *side) {
  return (tt_message_t){.data = side->snapshot ? (void *)(uintptr_t)side->from : side->to,
                        .elements = side->elements,
                        .dtype = task->dtype,
                        .peer = task->root,
                        .tag = task->tag,
                        .timeout_s = task->timeout_s};
}

static tt_status_t run_messages(const task_t *task, tt_group_t *g, uint32_t *out_source) {
  for (uint32_t i = 0; i < task->in_count; i++) {
    tt_message_t message = message_of(task, &task->ins[i]);
    TT_RETURN_IF_ERROR(tt_group_send(g, &message));
  }
  for (uint32_t i = 0; i < task->out_count; i++) {
    tt_message_t message = message_of(task, &task->outs[i]);
    *out_source = task->root;
    TT_RETURN_IF_ERROR(task->kind == TT_JOB_RECEIVE_ANY
                           ? tt_group_receive_any(g, &message, out_source)
                           : tt_group_receive(g, &message));
  }
  return TT_OK_STATUS;
}

static tt_status_t run_lists(const task_t *task, tt_group_t *g) {
  uint32_t size = tt_group_size(g);
  const char **ins = tt_alloc(2 * sizeof(char *) * size);
  if (!ins) return TT_ERROR(OUT_OF_MEMORY, "tpu_dist: no memory for %u pointers", size);
  const char **outs = ins + size;
  pointers(task, ins, task->ins, task->in_count, task->in_splits);
  pointers(task, outs, task->outs, task->out_count, task->out_splits);
  tt_collective_t c = collective_of(task);
  c.ins = (const void *const *)(const void *)ins;
  c.outs = (void *const *)(void *)outs;
  if (task->in_count) c.in = task->ins[0].from;
  if (task->out_count) c.out = task->outs[0].to;
  if (task->kind == TT_JOB_GATHER) {
    c.elements = task->ins[0].elements;
  } else if (task->kind == TT_JOB_SCATTER) {
    c.elements = task->outs[0].elements;
  } else {
    c.in_lengths = task->in_splits;
    c.out_lengths = task->out_splits;
  }
  tt_status_t status = tt_group_run(g, &c);
  tt_free(ins);
  return status;
}

// Which of the job's tensors get new contents: the inputs themselves where outs are not given
// apart.
static side_t *written(const task_t *task, uint32_t *out_count) {
  bool root = task->root == tt_group_rank(task->owner->group);
  bool each = task->kind == TT_JOB_ALL_REDUCE || (task->kind == TT_JOB_BROADCAST && !root) ||
              (task->kind == TT_JOB_REDUCE && root);
  *out_count = each ? task->in_count : task->out_count;
  return each ? task->ins : task->outs;
}

static tt_status_t write_back(const task_t *task) {
  uint32_t count;
  side_t *sides = written(task, &count);
  for (uint32_t i = 0; i < count; i++) {
    tt_buffer_t *made = sides[i].made;
    sides[i].made = NULL;
    TT_RETURN_IF_ERROR(made ? tt_eager_replace(&sides[i].tensor, made)
                            : tt_eager_upload(&sides[i].tensor, sides[i].to));
  }
  return TT_OK_STATUS;
}

static char *carve(char **at, size_t bytes) {
  char *here = *at;
  *at += tt_align_up(bytes, 64);
  return here;
}

// Gives every side its place: the device's own memory where that is the host's, else the lane's,
// which inputs are read into.
static tt_status_t stage(task_t *task) {
  uint32_t count;
  side_t *sides = written(task, &count);
  size_t total = 64;
  for (uint32_t i = 0; i < task->in_count; i++) {
    side_t *side = &task->ins[i];
    const void *data = NULL;
    TT_RETURN_IF_ERROR(tt_snapshot_hold(side->snapshot, &data));
    side->from = data;
    side->held = data != NULL;
    if (!data) total += tt_align_up(side->bytes, 64);
  }
  for (uint32_t i = 0; i < count; i++) {
    void *data = NULL;
    TT_RETURN_IF_ERROR(tt_eager_allocate(&sides[i].tensor, &data, &sides[i].made));
    sides[i].to = data;
    if (!data) total += tt_align_up(sides[i].bytes, 64);
  }
  char *at = tt_lane_scratch(task->runs_on, total);
  if (!at) return TT_ERROR(OUT_OF_MEMORY, "tpu_dist: no host memory for %zu bytes", total);
  for (uint32_t i = 0; i < task->in_count; i++) {
    side_t *side = &task->ins[i];
    if (side->held) continue;
    char *place = carve(&at, side->bytes);
    side->from = place;
    TT_RETURN_IF_ERROR(tt_snapshot_read(side->snapshot, place, side->bytes));
  }
  for (uint32_t i = 0; i < count; i++) {
    if (!sides[i].made) sides[i].to = carve(&at, sides[i].bytes);
  }
  return TT_OK_STATUS;
}

static tt_status_t task_work(task_t *task, uint32_t *out_source) {
  tt_group_t *g = task->owner->group;
  TT_RETURN_IF_ERROR(stage(task));
  switch (task->kind) {
    case TT_JOB_BARRIER: {
      tt_collective_t barrier = collective_of(task);
      TT_RETURN_IF_ERROR(tt_group_run(g, &barrier));
      break;
    }
    case TT_JOB_ALL_REDUCE:
    case TT_JOB_REDUCE:
    case TT_JOB_BROADCAST:
      TT_RETURN_IF_ERROR(run_each(task, g));
      break;
    case TT_JOB_SEND:
    case TT_JOB_RECEIVE:
    case TT_JOB_RECEIVE_ANY:
      TT_RETURN_IF_ERROR(run_messages(task, g, out_source));
      break;
    case TT_JOB_ALL_GATHER:
    case TT_JOB_REDUCE_SCATTER:
    case TT_JOB_ALL_TO_ALL:
    case TT_JOB_GATHER:
    case TT_JOB_SCATTER:
      TT_RETURN_IF_ERROR(run_lists(task, g));
      break;
  }
  return write_back(task);
}

static void task_run(tt_lane_task_t *lane, bool cancelled) {
  task_t *task = (task_t *)(void *)lane;
  tt_route_t *route = task->route;
  uint32_t source = 0;
  tt_status_t status = cancelled ? TT_ERROR(UNAVAILABLE,
                                            "tpu_dist: the process group was destroyed before "
                                            "this operation began")
                                 : task_work(task, &source);
  tt_work_finish(task->work, status, source);
  task_destroy(task);
  if (route) tt_route_leave(route);
}

// --- the group ----------------------------------------------------------------------------------

typedef struct hello_s {
  tt_record_t record;
  char host[TT_HOST_ID];
} hello_t;

// Joins the hosts: `local` (taken over) is this one's group.
static tt_status_t connect_hosts(const tt_meeting_t *meeting, tt_group_t *local,
                                 const uint32_t *host_of, tt_link_fn_t link, void *context,
                                 tt_group_t **out_group) {
  tt_link_t links[2];
  tt_status_t status = link(context, "collectives", &links[0]);
  if (!status) {
    status = link(context, "messages", &links[1]);
    if (status) links[0].close(links[0].context);
  }
  if (!status) return tt_group_create_far(meeting, links, local, host_of, out_group);
  tt_group_destroy(local);
  return tt_status_annotate(status, "tpu_dist: rank %u of %u cannot reach the other hosts",
                            meeting->rank, meeting->size);
}

// Finds the ranks of this host and connects them; then the hosts.
static tt_status_t connect(const tt_meeting_t *meeting, tt_link_fn_t link, void *context,
                           tt_group_t **out_group) {
  hello_t mine = {0}, *all = tt_alloc(sizeof *all * meeting->size);
  uint32_t *members = tt_alloc(2 * sizeof *members * meeting->size), count = 0, hosts = 0;
  uint32_t *host_of = members + meeting->size;
  tt_status_t status = TT_OK_STATUS;
  if (!all || !members) status = TT_ERROR(OUT_OF_MEMORY, "tpu_dist: no memory for a meeting");
  tt_host_id(mine.host);
  status = tt_meeting_round(meeting, "hello", status, &mine.record, sizeof mine, all, NULL, NULL);
  for (uint32_t k = 0; !status && k < meeting->size; k++) {
    if (memcmp(all[k].host, mine.host, TT_HOST_ID) == 0) members[count++] = k;
    uint32_t first = 0;
    while (memcmp(all[first].host, all[k].host, TT_HOST_ID) != 0) first++;
    host_of[k] = first == k ? hosts++ : host_of[first];
  }
  tt_group_t *group = NULL;
  if (!status) status = tt_group_create(meeting, members, count, &group);
  if (!status && count < meeting->size) {
    status = connect_hosts(meeting, group, host_of, link, context, &group);
  }
  if (!status) *out_group = group;
  tt_free(all);
  tt_free(members);
  return status;
}

tt_status_t tt_process_group_create(const tt_store_t *store, uint32_t rank, uint32_t size,
                                    double timeout_s, tt_link_fn_t link, void *link_context,
                                    tt_process_group_t **out_group) {
  if (size == 0 || rank >= size) {
    return TT_ERROR(VALUE, "tpu_dist: rank %u in a group of %u", rank, size);
  }
  tt_process_group_t *group = tt_alloc_zeroed(sizeof *group);
  if (!group) return TT_ERROR(OUT_OF_MEMORY, "tpu_dist: no memory for a group of %u", size);
  group->timeout_s = timeout_s;
  tt_meeting_t meeting;
  tt_status_t status = tt_meeting_begin(store, rank, size, timeout_s, &meeting);
  if (!status) status = connect(&meeting, link, link_context, &group->group);
  if (!status) status = tt_lane_create(KEPT_FOR_COLLECTIVES, &group->collectives);
  if (!status) status = tt_routes_create(KEPT_FOR_MESSAGES, &group->messages);
  if (status) {
    tt_process_group_destroy(group);
    return status;
  }
  *out_group = group;
  return TT_OK_STATUS;
}

tt_status_t tt_process_group_imagine(const int64_t *ranks, uint32_t count, uint32_t world,
                                     uint32_t rank, tt_process_group_t **out_group) {
  tt_process_group_t *group = tt_alloc_zeroed(sizeof *group);
  if (!group) return TT_ERROR(OUT_OF_MEMORY, "tpu_dist: no memory for a group of %u", count);
  tt_status_t status = tt_replica_set_create(ranks, count, world, rank, &group->replicas);
  if (status) {
    tt_free(group);
    return status;
  }
  *out_group = group;
  return TT_OK_STATUS;
}

// The jobs of an imagined group are done at once.
static tt_status_t submit_imagined(tt_process_group_t *group, const tt_job_t *job,
                                   tt_work_t **out_work) {
  TT_RETURN_IF_ERROR(tt_replica_set_run(group->replicas, job));
  TT_RETURN_IF_ERROR(tt_work_create(0, out_work));
  tt_work_finish(*out_work, TT_OK_STATUS, 0);
  return TT_OK_STATUS;
}

void tt_process_group_destroy(tt_process_group_t *group) {
  if (!group) return;
  if (group->group) tt_group_stop_receiving(group->group);
  tt_lane_destroy(group->collectives);
  tt_routes_destroy(group->messages);
  tt_group_destroy(group->group);
  tt_replica_set_destroy(group->replicas);
  tt_free(group);
}

void tt_process_group_abort(tt_process_group_t *group) {
  if (group->group) tt_group_abort(group->group);
}

void tt_process_group_set_timeout(tt_process_group_t *group, double timeout_s) {
  atomic_store(&group->timeout_s, timeout_s);
}

static bool is_message(tt_job_kind_t kind) {
  return kind == TT_JOB_SEND || kind == TT_JOB_RECEIVE || kind == TT_JOB_RECEIVE_ANY;
}

// Gives the task to the thread that runs it.
static tt_status_t start(task_t *task, const tt_job_t *job) {
  tt_process_group_t *group = task->owner;
  task->runs_on = group->collectives;
  if (is_message(job->kind)) {
    tt_route_key_t key = {(uint32_t)job->kind, job->root, job->tag};
    TT_RETURN_IF_ERROR(tt_routes_enter(group->messages, key, &task->route));
    task->runs_on = tt_route_lane(task->route);
  }
  tt_lane_push(task->runs_on, &task->lane);
  return TT_OK_STATUS;
}

tt_status_t tt_process_group_submit(tt_process_group_t *group, const tt_job_t *job,
                                    tt_work_t **out_work) {
  if (group->replicas) return submit_imagined(group, job, out_work);
  task_t *task = tt_alloc_zeroed(sizeof *task);
  if (!task) return TT_ERROR(OUT_OF_MEMORY, "tpu_dist: no memory for a job");
  task->lane.run = task_run;
  task->owner = group;
  task->kind = job->kind;
  task->op = job->op;
  task->root = job->root;
  task->tag = job->tag;
  task->timeout_s = job->timeout_s > 0 ? job->timeout_s : group->timeout_s;
  tt_status_t status = task_fill(task, job);
  tt_work_t *work = task->work;
  if (!status) {
    tt_work_retain(work);  // before the task can end
    status = start(task, job);
    if (status) tt_work_release(work);
  }
  if (status) {
    task_destroy(task);
    return status;
  }
  *out_work = work;
  return TT_OK_STATUS;
}
