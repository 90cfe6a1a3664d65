// Collectives between the replicas of a captured program, as an op of the engine's own.
#include "eager/capture.h"
#include "eager/window.h"

// replicas_(out, in, [kind, op, divisor, group size], ids)
enum { OUT, IN, HOW, IDS, ARGUMENTS };
enum { KIND, OP, DIVISOR, GROUP_SIZE, HOW_COUNT };

static tt_value_t average(tt_build_t *b, tt_value_t sum, int64_t divisor) {
  if (divisor == 1) return sum;
  tt_value_t by = tt_emit_splat_int(b, tt_build_dtype(b, sum), 0, NULL, divisor);
  return tt_emit_binary(b, TT_OP_DIVIDE, sum, by);
}

void tt__lower_replicas(tt_lower_t *L, int param) {
  (void)param;
  uint32_t count, id_count;
  const int64_t *how = tt_lower_ints(L, HOW, &count), *ids = tt_lower_ints(L, IDS, &id_count);
  uint32_t size = (uint32_t)how[GROUP_SIZE];
  tt_replica_groups_t groups = {ids, id_count / size, size};
  tt_op_t op = (tt_op_t)how[OP];
  tt_value_t x = tt_lower_tensor(L, IN), result = TT_NO_VALUE;
  const tt_tensor_t *in = tt_lower_meta(L, IN);
  int64_t elements = 1;
  for (uint32_t d = 0; d < in->rank; d++) elements *= in->sizes[d];
  switch ((tt_replicas_kind_t)how[KIND]) {
    case TT_REPLICAS_ALL_REDUCE:
      result = average(L->b, tt_emit_all_reduce(L->b, op, x, &groups), how[DIVISOR]);
      break;
    case TT_REPLICAS_BROADCAST:
      result = tt_emit_collective_broadcast(L->b, x, &groups);
      break;
    case TT_REPLICAS_ALL_GATHER:
      result = tt_emit_all_gather(L->b, tt_emit_reshape(L->b, x, 1, &elements), &groups);
      break;
    case TT_REPLICAS_REDUCE_SCATTER:
      x = tt_emit_reshape(L->b, x, 1, &elements);
      result = average(L->b, tt_emit_reduce_scatter(L->b, op, x, &groups), how[DIVISOR]);
      break;
    case TT_REPLICAS_ALL_TO_ALL:
      result = tt_emit_all_to_all(L->b, tt_emit_reshape(L->b, x, 1, &elements), &groups);
      break;
  }
  tt_lower_return(L, 0, tt_emit_reshape(L->b, result, L->outs[0].rank, L->outs[0].sizes));
}

tt_status_t tt_eager_replicas(const tt_replicas_t *how, const tt_tensor_t *out,
                              const tt_tensor_t *in) {
  int device = tt_storage_device(out->storage);
  TT_CHECK(tt_capture_is_open(device));
  const int64_t facts[HOW_COUNT] = {how->kind, how->op, how->divisor, how->groups.size};
  const tt_arg_t args[ARGUMENTS] = {
      [OUT] = {.kind = TT_ARG_TENSOR, .u.tensor = out},
      [IN] = {.kind = TT_ARG_TENSOR, .u.tensor = in},
      [HOW] = {.kind = TT_ARG_INTS, .count = HOW_COUNT, .u.ints = facts},
      [IDS] = {.kind = TT_ARG_INTS,
               .count = how->groups.count * how->groups.size,
               .u.ints = how->groups.ids},
  };
  tt_call_t call = {TT__OP_REPLICAS, TT_INPLACE, ARGUMENTS, (int8_t)device, args};
  tt_outs_t outs;
  TT_RETURN_IF_ERROR(tt__record(&call, &outs));
  tt_outs_deinit(&outs);
  tt__capture_window(device)->replicas = args[IDS].count;
  return TT_OK_STATUS;
}
