#include "base/alloc.h"
#include "base/arena.h"
#include "base/dtype.h"
#include "base/status.h"
#include "test.h"

static tt_status_t fails(int n) { return TT_ERROR(INDEX, "index %d is out of range", n); }

static tt_status_t propagates(void) {
  TT_RETURN_IF_ERROR(TT_OK_STATUS);
  TT_RETURN_IF_ERROR(fails(7));
  return TT_OK_STATUS;
}

TEST(status_carries_code_and_message) {
  tt_status_t s = propagates();
  EXPECT_INT(tt_status_code(s), TT_INDEX);
  EXPECT_STR(tt_status_message(s), "index 7 is out of range");
  EXPECT_STR(tt_status_exception(s), "IndexError");
  s = tt_status_annotate(s, "aten::%s", "select");
  EXPECT_STR(tt_status_message(s), "aten::select: index 7 is out of range");
  tt_status_t copy = tt_status_clone(s);
  EXPECT_STR(tt_status_message(copy), tt_status_message(s));
  EXPECT_INT(tt_status_code(copy), TT_INDEX);
  s = tt_status_join(s, copy);
  tt_status_release(s);
  EXPECT_STR(tt_status_message(TT_OK_STATUS), "");
  EXPECT_INT(tt_status_code(TT_OK_STATUS), TT_OK);
  EXPECT_STR(tt_code_name(TT_LINALG), "LINALG");
  EXPECT_INT(tt_alloc_live(), 0);
}

TEST(internal_errors_say_where) {
  tt_status_t s = TT_ERROR(INTERNAL, "internal: broken");
  EXPECT(strstr(tt_status_message(s), "base_status_test.c:") != NULL);
  tt_status_release(s);
}

TEST(status_survives_without_memory) {
  tt_alloc_fail_at(1);
  tt_status_t s = TT_ERROR(VALUE, "bad");
  tt_alloc_fail_at(0);
  EXPECT_INT(tt_status_code(s), TT_OUT_OF_MEMORY);
  s = tt_status_annotate(s, "context");
  EXPECT_INT(tt_status_code(s), TT_OUT_OF_MEMORY);
  tt_status_release(s);
  s = TT_ERROR(VALUE, "bad");
  tt_alloc_fail_at(1);
  s = tt_status_annotate(s, "context");
  tt_alloc_fail_at(0);
  EXPECT_STR(tt_status_message(s), "bad");
  tt_status_release(s);
  EXPECT_INT(tt_alloc_live(), 0);
}

TEST(alloc_counts_and_fails_on_request) {
  void *a = tt_alloc(0), *b = tt_alloc_aligned(64, 100);
  EXPECT(a && b && (uintptr_t)b % 64 == 0);
  EXPECT_INT(tt_alloc_live(), 2);
  tt_alloc_fail_at(2);
  void *c = tt_alloc_zeroed(8), *d = tt_alloc(8), *e = tt_strdup("ok");
  EXPECT(c && !d && e);
  tt_free(a);
  tt_free(b);
  tt_free(c);
  tt_free(d);
  tt_free(e);
  EXPECT_INT(tt_alloc_live(), 0);
  uint32_t *list = NULL, capacity = 0;
  EXPECT(tt_grow((void **)&list, &capacity, 100, sizeof *list) && capacity >= 100);
  tt_free(list);
}

TEST(arena_hands_out_aligned_memory) {
  tt_arena_t arena;
  tt_arena_init(&arena, 1024);
  char *first = tt_arena_string(&arena, "hello", 5);
  EXPECT_STR(first, "hello");
  for (int i = 0; i < 1000; i++) {
    char *p = tt_arena_alloc(&arena, (size_t)i);
    EXPECT(p && (uintptr_t)p % 16 == 0);
    memset(p, i, (size_t)i);
  }
  EXPECT_STR(first, "hello");
  EXPECT(tt_arena_alloc(&arena, SIZE_MAX - 8) == NULL);
  EXPECT(arena.used >= 499500);
  tt_arena_reset(&arena);
  EXPECT_INT(tt_alloc_live(), 1);
  EXPECT_INT(arena.used, 0);
  int *zeros = tt_arena_zeroed(&arena, 4000);
  EXPECT(zeros && zeros[999] == 0);
  tt_arena_deinit(&arena);
  EXPECT_INT(tt_alloc_live(), 0);
}

TEST(dtypes_parse_their_own_names) {
  for (int d = 0; d < TT_DTYPE_COUNT; d++) {
    const char *text = tt_dtype_text((tt_dtype_t)d);
    EXPECT_INT(tt_dtype_parse(text, strlen(text)), d);
  }
  EXPECT_INT(tt_dtype_parse("f31", 3), TT_DTYPE_NONE);
  EXPECT_INT(tt_dtype_real(TT_C128), TT_F64);
  EXPECT(tt_dtype_is_int(TT_U4) && !tt_dtype_is_int(TT_I1));
}

TEST_MAIN(status_carries_code_and_message, internal_errors_say_where,
          status_survives_without_memory, alloc_counts_and_fails_on_request,
          arena_hands_out_aligned_memory, dtypes_parse_their_own_names)
