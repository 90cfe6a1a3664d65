#include "dist/replicas.h"

#include <string.h>

#include "base/alloc.h"
#include "eager/capture.h"

struct tt_replica_set_s {
  uint32_t rank, size, world;  // rank: this process's in the group
  int64_t *ids;                // world: every group's replicas, row by row
};

tt_status_t tt_replica_set_create(const int64_t *ranks, uint32_t count, uint32_t world,
                                  uint32_t rank, tt_replica_set_t **out_set) {
  int64_t stride = count > 1 ? ranks[1] - ranks[0] : 1;
  bool even = count > 0 && rank < count && stride > 0 && world % (stride * count) == 0;
  for (uint32_t k = 0; even && k < count; k++) even = ranks[k] == ranks[0] + k * stride;
  even = even && ranks[0] >= 0 && ranks[0] % (stride * count) < stride && ranks[0] < world;
  if (!even) {
    return TT_ERROR(UNIMPLEMENTED,
                    "tpu_dist: %u of %u imagined ranks that are not one dimension of a mesh", count,
                    world);
  }
  tt_replica_set_t *set = tt_alloc_zeroed(sizeof *set);
  int64_t *ids = tt_alloc(sizeof *ids * world);
  if (!set || !ids) {
    tt_free(set);
    tt_free(ids);
    return TT_ERROR(OUT_OF_MEMORY, "tpu_dist: no memory for %u replicas", world);
  }
  *set = (tt_replica_set_t){rank, count, world, ids};
  for (int64_t block = 0; block < world; block += stride * count) {
    for (int64_t first = block; first < block + stride; first++) {
      for (uint32_t k = 0; k < count; k++) *ids++ = first + k * stride;
    }
  }
  *out_set = set;
  return TT_OK_STATUS;
}

void tt_replica_set_destroy(tt_replica_set_t *set) {
  if (!set) return;
  tt_free(set->ids);
  tt_free(set);
}

// --- parts of tensors ---------------------------------------------------------------------------

static int64_t elements_of(const tt_tensor_t *t) {
  int64_t n = 1;
  for (uint32_t d = 0; d < t->rank; d++) n *= t->sizes[d];
  return n;
}

static bool is_dense(const tt_tensor_t *t) {
  int64_t stride = 1;
  for (uint32_t d = t->rank; d-- > 0; stride *= t->sizes[d]) {
    if (t->sizes[d] != 1 && t->strides[d] != stride) return false;
  }
  return true;
}

// A list of one tensor a rank, or the rows of one tensor that has room for all.
typedef struct parts_s {
  const tt_tensor_t *tensors;
  bool listed;
  int64_t count;  // elements of a part
} parts_t;

static const int64_t one_stride[1] = {1};

static tt_tensor_t part_of(const parts_t *p, uint32_t k) {
  if (p->listed) return p->tensors[k];
  tt_tensor_t part = *p->tensors;
  part.rank = 1;
  part.sizes = &p->count;
  part.strides = one_stride;
  part.offset += k * p->count;
  return part;
}

static tt_status_t parts_init(const tt_replica_set_t *set, const tt_tensor_t *tensors,
                              uint32_t count, parts_t *out_parts) {
  parts_t p = {tensors, count == set->size && (count > 1), 0};
  if (!p.listed && count == 1 && elements_of(tensors) % set->size == 0 && is_dense(tensors)) {
    p.count = elements_of(tensors) / set->size;
    *out_parts = p;
    return TT_OK_STATUS;
  }
  bool even = p.listed;
  for (uint32_t k = 0; even && k < count; k++) {
    p.count = elements_of(tensors);
    even = elements_of(&tensors[k]) == p.count && tensors[k].dtype == tensors->dtype;
  }
  *out_parts = p;
  if (even) return TT_OK_STATUS;
  return TT_ERROR(UNIMPLEMENTED,
                  "tpu_dist: %u tensors of %lld elements for %u imagined ranks: the parts must be "
                  "even and dense",
                  count, (long long)(count ? elements_of(tensors) : 0), set->size);
}

// A tensor with a row for each rank. The caller releases its storage.
static tt_status_t make_rows(const tt_replica_set_t *set, const parts_t *like, int64_t *elements,
                             tt_tensor_t *out_rows) {
  *elements = like->count * set->size;
  tt_dtype_t dtype = (tt_dtype_t)like->tensors->dtype;
  *out_rows = (tt_tensor_t){
      .sizes = elements, .strides = one_stride, .rank = 1, .dtype = like->tensors->dtype};
  return tt_storage_create(tt_storage_device(like->tensors->storage),
                           (size_t)*elements * tt_dtype_size(dtype), &out_rows->storage);
}

// dst and src have as many elements; src's shape is taken for both where dst is a row.
static tt_status_t copy_part(const tt_tensor_t *dst, const tt_tensor_t *src) {
  tt_tensor_t to = *dst, from = *src;
  int64_t elements = elements_of(src);
  if (dst->rank == 1 && is_dense(src)) {
    from.rank = 1, from.sizes = &elements, from.strides = one_stride;
  } else if (src->rank == 1 && is_dense(dst)) {
    to.rank = 1, to.sizes = &elements, to.strides = one_stride;
  }
  return tt_eager_copy(&to, &from);
}

static tt_status_t copy_parts(const tt_replica_set_t *set, const parts_t *to, const parts_t *from) {
  for (uint32_t k = 0; k < set->size; k++) {
    tt_tensor_t dst = part_of(to, k), src = part_of(from, k);
    TT_RETURN_IF_ERROR(copy_part(&dst, &src));
  }
  return TT_OK_STATUS;
}

// --- in a capture -------------------------------------------------------------------------------

static tt_op_t op_of(tt_reduce_op_t op, tt_dtype_t dtype) {
  bool truth = dtype == TT_I1;
  switch (op) {
    case TT_REDUCE_PRODUCT:
      return truth ? TT_OP_AND : TT_OP_MULTIPLY;
    case TT_REDUCE_MIN:
      return truth ? TT_OP_AND : TT_OP_MINIMUM;
    case TT_REDUCE_MAX:
      return truth ? TT_OP_OR : TT_OP_MAXIMUM;
    case TT_REDUCE_BAND:
      return TT_OP_AND;
    case TT_REDUCE_BOR:
      return TT_OP_OR;
    case TT_REDUCE_BXOR:
      return TT_OP_XOR;
    case TT_REDUCE_SUM:
    case TT_REDUCE_AVG:
    case TT_REDUCE_OP_COUNT:
      break;
  }
  return truth ? TT_OP_OR : TT_OP_ADD;
}

static tt_replicas_t how_of(const tt_replica_set_t *set, const tt_job_t *job, tt_dtype_t dtype,
                            tt_replicas_kind_t kind) {
  return (tt_replicas_t){kind,
                         op_of(job->op, dtype),
                         job->op == TT_REDUCE_AVG ? set->size : 1,
                         {set->ids, set->world / set->size, set->size}};
}

// The same groups with their `root`-th replica first.
static int64_t *rooted(const tt_replica_set_t *set, uint32_t root) {
  int64_t *ids = tt_alloc(sizeof *ids * set->world);
  for (uint32_t row = 0; ids && row < set->world; row += set->size) {
    ids[row] = set->ids[row + root];
    for (uint32_t k = 0, at = row + 1; k < set->size; k++) {
      if (k != root) ids[at++] = set->ids[row + k];
    }
  }
  return ids;
}

// One tensor in place at a time. A reduction to one rank may write the others' too.
static tt_status_t record_each(const tt_replica_set_t *set, const tt_job_t *job) {
  bool broadcast = job->kind == TT_JOB_BROADCAST;
  if (broadcast && job->root >= set->size) {
    return TT_ERROR(VALUE, "tpu_dist: root %u in a group of %u", job->root, set->size);
  }
  int64_t *ids = broadcast ? rooted(set, job->root) : NULL;
  if (broadcast && !ids) return TT_ERROR(OUT_OF_MEMORY, "tpu_dist: no memory for a broadcast");
  tt_status_t status = TT_OK_STATUS;
  for (uint32_t i = 0; !status && i < job->in_count; i++) {
    const tt_tensor_t *t = &job->ins[i];
    tt_dtype_t dtype = (tt_dtype_t)t->dtype;
    tt_replicas_t how =
        how_of(set, job, dtype, broadcast ? TT_REPLICAS_BROADCAST : TT_REPLICAS_ALL_REDUCE);
    if (broadcast) how.groups.ids = ids;
    if (!broadcast) status = tt_reduce_check(dtype, job->op);
    if (!status) status = tt_eager_replicas(&how, t, t);
  }
  tt_free(ids);
  return status;
}

// One array in, one out; lists go through arrays that hold a row for each rank.
static tt_status_t record_rows(const tt_replica_set_t *set, const tt_job_t *job,
                               tt_replicas_kind_t kind) {
  parts_t ins = {0}, outs = {0};
  tt_tensor_t in = *job->ins, out = *job->outs;
  int64_t in_elements, out_elements;
  tt_storage_t *made[2] = {NULL, NULL};
  tt_status_t status = TT_OK_STATUS;
  if (kind != TT_REPLICAS_ALL_GATHER) status = parts_init(set, job->ins, job->in_count, &ins);
  if (!status && kind != TT_REPLICAS_REDUCE_SCATTER)
    status = parts_init(set, job->outs, job->out_count, &outs);
  if (!status && ins.listed) {
    status = make_rows(set, &ins, &in_elements, &in);
    if (!status) made[0] = in.storage;
    parts_t rows = {&in, false, ins.count};
    if (!status) status = copy_parts(set, &rows, &ins);
  }
  if (!status && outs.listed) {
    status = make_rows(set, &outs, &out_elements, &out);
    if (!status) made[1] = out.storage;
  }
  tt_replicas_t how = how_of(set, job, (tt_dtype_t)in.dtype, kind);
  if (!status) status = tt_eager_replicas(&how, &out, &in);
  parts_t rows = {&out, false, outs.count};
  if (!status && outs.listed) status = copy_parts(set, &outs, &rows);
  for (int i = 0; i < 2; i++) {
    if (made[i]) tt_storage_release(made[i]);
  }
  return status;
}

// --- outside ------------------------------------------------------------------------------------

// As if every rank held what this one holds. A reduction is left undone: whose values would it add?
static tt_status_t imagine(const tt_replica_set_t *set, const tt_job_t *job) {
  parts_t ins, outs;
  bool gathers = job->kind == TT_JOB_ALL_GATHER || job->kind == TT_JOB_GATHER;
  bool cuts = job->kind == TT_JOB_REDUCE_SCATTER || job->kind == TT_JOB_SCATTER;
  if (job->in_count == 0 || job->out_count == 0) return TT_OK_STATUS;
  if (gathers) {
    TT_RETURN_IF_ERROR(parts_init(set, job->outs, job->out_count, &outs));
    for (uint32_t k = 0; k < set->size; k++) {
      tt_tensor_t to = part_of(&outs, k);
      TT_RETURN_IF_ERROR(copy_part(&to, job->ins));
    }
  } else if (cuts) {
    TT_RETURN_IF_ERROR(parts_init(set, job->ins, job->in_count, &ins));
    tt_tensor_t from = part_of(&ins, set->rank);
    return copy_part(job->outs, &from);
  } else if (job->kind == TT_JOB_ALL_TO_ALL) {
    TT_RETURN_IF_ERROR(parts_init(set, job->ins, job->in_count, &ins));
    TT_RETURN_IF_ERROR(parts_init(set, job->outs, job->out_count, &outs));
    return copy_parts(set, &outs, &ins);
  }
  return TT_OK_STATUS;
}

static bool even_splits(const tt_replica_set_t *set, const int64_t *splits) {
  for (uint32_t k = 1; splits && k < set->size; k++) {
    if (splits[k] != splits[0]) return false;
  }
  return true;
}

tt_status_t tt_replica_set_run(const tt_replica_set_t *set, const tt_job_t *job) {
  static const char *const names[] = {"gather", "scatter", "send", "recv", "recv from any rank"};
  if (job->kind == TT_JOB_BARRIER) return TT_OK_STATUS;
  const tt_tensor_t *any = job->in_count ? job->ins : job->outs;
  if (!tt_capture_is_open(tt_storage_device(any->storage))) return imagine(set, job);
  if (!even_splits(set, job->in_splits) || !even_splits(set, job->out_splits)) {
    return TT_ERROR(UNIMPLEMENTED, "tpu_dist: all_to_all with uneven splits in one program");
  }
  switch (job->kind) {
    case TT_JOB_ALL_REDUCE:
    case TT_JOB_REDUCE:
    case TT_JOB_BROADCAST:
      return record_each(set, job);
    case TT_JOB_ALL_GATHER:
      return record_rows(set, job, TT_REPLICAS_ALL_GATHER);
    case TT_JOB_REDUCE_SCATTER:
      TT_RETURN_IF_ERROR(tt_reduce_check((tt_dtype_t)any->dtype, job->op));
      return record_rows(set, job, TT_REPLICAS_REDUCE_SCATTER);
    case TT_JOB_ALL_TO_ALL:
      return record_rows(set, job, TT_REPLICAS_ALL_TO_ALL);
    case TT_JOB_BARRIER:
    case TT_JOB_GATHER:
    case TT_JOB_SCATTER:
    case TT_JOB_SEND:
    case TT_JOB_RECEIVE:
    case TT_JOB_RECEIVE_ANY:
      break;
  }
  return TT_ERROR(UNIMPLEMENTED,
                  "tpu_dist: %s differs between the ranks, and the replicas of one program do the "
                  "same",
                  names[job->kind - TT_JOB_GATHER]);
}
