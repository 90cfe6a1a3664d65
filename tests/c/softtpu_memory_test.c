#include "base/alloc.h"
#include "softtpu/memory.h"
#include "test.h"

// A limit that no machine has must not lead past the last size class.
TEST(absurd_sizes_are_refused) {
  static _Atomic uint64_t completed;
  tt_memory_t memory;
  tt_memory_init(&memory, 0, INT64_MAX / 2, &completed);
  for (int bits = 46; bits < 62; bits++) {
    void *data;
    tt_status_t status = tt_memory_allocate(&memory, ((size_t)1 << bits) + 1, false, &data);
    EXPECT_INT(tt_status_code(status), TT_OUT_OF_MEMORY);
    tt_status_release(status);
  }
  EXPECT_INT(memory.in_use, 0);
  EXPECT_INT(memory.reserved, 0);
  tt_memory_deinit(&memory);
  EXPECT_INT(tt_alloc_live(), 0);
}

TEST(blocks_come_back_in_queue_order) {
  static _Atomic uint64_t completed;
  tt_memory_t memory;
  void *first, *second, *third;
  tt_memory_init(&memory, 0, 1 << 20, &completed);
  EXPECT_OK(tt_memory_allocate(&memory, 1000, true, &first));
  tt_memory_free(&memory, first, 1000, 1);
  // Work 1 may still use the block: only work enqueued after it may have it.
  EXPECT_OK(tt_memory_allocate(&memory, 1000, true, &second));
  EXPECT(second != first);
  EXPECT_OK(tt_memory_allocate(&memory, 1000, false, &third));
  EXPECT(third == first);
  tt_memory_free(&memory, second, 1000, 0);
  tt_memory_free(&memory, third, 1000, 1);
  atomic_store(&completed, 1);
  EXPECT_INT(memory.in_use, 0);
  tt_memory_deinit(&memory);
  EXPECT_INT(tt_alloc_live(), 0);
}

TEST_MAIN(absurd_sizes_are_refused, blocks_come_back_in_queue_order)
