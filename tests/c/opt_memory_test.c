// Building, hashing, cloning, printing, parsing and optimising with the nth allocation failing, for
// all n: a clean out-of-memory status or success, and nothing left behind.
#include "base/alloc.h"
#include "ir/build.h"
#include "opt/opt.h"
#include "test.h"

static tt_status_t build(tt_graph_t *g) {
  tt_value_t x, w, value, index, sorted[1];
  TT_RETURN_IF_ERROR(tt_graph_argument(g, g->main, (tt_type_t){TT_F32, 2, (int64_t[]){4, 6}}, &x));
  TT_RETURN_IF_ERROR(tt_graph_argument(g, g->main, (tt_type_t){TT_F32, 2, (int64_t[]){6, 4}}, &w));
  tt_build_t b = tt_build_on(g, g->main);
  tt_value_t t = tt_emit_transpose(&b, x, (int64_t[]){1, 0});
  t = tt_emit_binary(&b, TT_OP_ADD, t, tt_emit_scalar(&b, TT_F32, 1));
  t = tt_emit_transpose(&b, t, (int64_t[]){1, 0});
  tt_value_t y = tt_emit_matmul(&b, t, w, TT_F32);
  for (int i = 0; i < 40; i++) y = tt_emit_binary(&b, TT_OP_MULTIPLY, y, y);
  tt_emit_arg_reduce(&b, true, y, 1, TT_S32, true, &value, &index);
  tt_emit_sort(&b, &y, 1, 1, true, sorted);
  tt_value_t along = tt_emit_take_along(&b, y, tt_emit_convert(&b, index, TT_S64), 1);
  tt_value_t returns[] = {value, sorted[0], along};
  TT_RETURN_IF_ERROR(tt_build_finish(&b));
  return tt_graph_return(g, g->main, returns, 3);
}

static tt_status_t everything(void) {
  tt_graph_t *g = NULL, *copy = NULL, *parsed = NULL;
  char *text = NULL;
  size_t size;
  tt_status_t s = tt_graph_create("memory", &g);
  if (!s) s = build(g);
  if (!s) s = tt_graph_clone(g, &copy);
  if (!s) s = tt_graph_verify(copy);
  if (!s) s = tt_graph_print(g, &text, &size);
  if (!s) s = tt_graph_parse(text, size, &parsed);
  if (!s) s = tt_opt_run(g);
  if (!s) s = tt_opt_run(parsed);
  if (!s) s = tt_expand_chlo(parsed);
  if (!s) (void)tt_graph_hash(parsed);
  tt_free(text);
  tt_graph_destroy(g);
  tt_graph_destroy(copy);
  tt_graph_destroy(parsed);
  return s;
}

TEST(every_allocation_may_fail) {
  int64_t n = 1;
  for (bool failed = true; failed; n++) {
    tt_alloc_fail_at(n);
    tt_status_t s = everything();
    tt_alloc_fail_at(0);
    failed = s != TT_OK_STATUS;
    if (failed) EXPECT_INT(tt_status_code(s), TT_OUT_OF_MEMORY);
    tt_status_release(s);
    EXPECT_INT(tt_alloc_live(), 0);
  }
  EXPECT(n > 20);
}

TEST_MAIN(every_allocation_may_fail)
