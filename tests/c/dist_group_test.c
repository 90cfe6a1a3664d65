// Groups of real processes: every collective against its definition, and the ways a group can fail.
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dist/group.h"
#include "test.h"

#define MOST 4

// A store in memory that the processes share.
typedef struct board_s {
  pthread_mutex_t lock;
  uint32_t used;
  struct {
    char key[TT_MEETING_KEY];
    int64_t count;
    size_t size;
    char data[256];
  } cells[64];
} board_t;

static uint32_t find(board_t *board, const char *key) {
  uint32_t i = 0;
  while (i < board->used && strcmp(board->cells[i].key, key) != 0) i++;
  if (i == board->used) {
    snprintf(board->cells[i].key, TT_MEETING_KEY, "%s", key);
    board->used++;
  }
  return i;
}
static tt_status_t publish(void *context, const char *key, const void *data, size_t size) {
  board_t *board = context;
  pthread_mutex_lock(&board->lock);
  uint32_t i = find(board, key);
  memcpy(board->cells[i].data, data, size);
  board->cells[i].size = size;
  pthread_mutex_unlock(&board->lock);
  return TT_OK_STATUS;
}
static tt_status_t look(void *context, const char *key, void *data, size_t size, bool *out_there) {
  board_t *board = context;
  pthread_mutex_lock(&board->lock);
  uint32_t i = find(board, key);
  *out_there = board->cells[i].size == size;
  if (*out_there) memcpy(data, board->cells[i].data, size);
  pthread_mutex_unlock(&board->lock);
  return TT_OK_STATUS;
}
static tt_status_t count(void *context, const char *key, int64_t *out_count) {
  board_t *board = context;
  pthread_mutex_lock(&board->lock);
  *out_count = ++board->cells[find(board, key)].count;
  pthread_mutex_unlock(&board->lock);
  return TT_OK_STATUS;
}

static board_t *make_board(void) {
  board_t *board =
      mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pthread_mutexattr_t attr;
  pthread_mutexattr_init(&attr);
  pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(&board->lock, &attr);
  return board;
}

static tt_status_t join(board_t *board, uint32_t rank, uint32_t size, double timeout,
                        tt_group_t **out_group) {
  static const uint32_t everyone[MOST] = {0, 1, 2, 3};
  tt_store_t store = {board, publish, look, count};
  tt_meeting_t meeting;
  TT_RETURN_IF_ERROR(tt_meeting_begin(&store, rank, size, timeout, &meeting));
  return tt_group_create(&meeting, everyone, size, out_group);
}

// Runs body(group) in `size` processes; a process's exit status is its count of failures.
static void run(uint32_t size, double timeout, void (*body)(tt_group_t *)) {
  board_t *board = make_board();
  pid_t pids[MOST];
  fflush(stdout);
  for (uint32_t rank = 0; rank < size; rank++) {
    if ((pids[rank] = fork()) == 0) {
      tt_test_failures = 0;
      tt_group_t *group = NULL;
      EXPECT_OK(join(board, rank, size, timeout, &group));
      if (group) body(group);
      tt_group_destroy(group);
      fflush(stdout);
      _exit(tt_test_failures);
    }
  }
  for (uint32_t rank = 0; rank < size; rank++) {
    int status = 0;
    waitpid(pids[rank], &status, 0);
    bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    EXPECT(killed || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
  }
  munmap(board, sizeof *board);
}

// Descriptors of the collectives that the tests call most.
static tt_status_t run_barrier(tt_group_t *group) {
  return tt_group_run(group, &(tt_collective_t){.dtype = TT_U8});
}
static tt_status_t run_one(tt_group_t *group, tt_collective_kind_t kind, tt_dtype_t dtype,
                           tt_reduce_op_t op, const void *in, void *out, size_t elements,
                           uint32_t root) {
  return tt_group_run(group, &(tt_collective_t){.kind = kind,
                                                .dtype = dtype,
                                                .op = op,
                                                .root = root,
                                                .in = in,
                                                .out = out,
                                                .elements = elements});
}
static tt_status_t run_all_reduce(tt_group_t *group, tt_dtype_t dtype, tt_reduce_op_t op,
                                  const void *in, void *out, size_t elements) {
  return run_one(group, TT_COLLECTIVE_ALL_REDUCE, dtype, op, in, out, elements, 0);
}
// Of int32 lists; the greatest wins where something is reduced.
static tt_status_t run_lists(tt_group_t *group, tt_collective_kind_t kind, const void *in,
                             const void *const *ins, void *out, void *const *outs,
                             const size_t *lengths) {
  return tt_group_run(group, &(tt_collective_t){.kind = kind,
                                                .dtype = TT_S32,
                                                .op = TT_REDUCE_MAX,
                                                .in = in,
                                                .ins = ins,
                                                .out = out,
                                                .outs = outs,
                                                .in_lengths = lengths,
                                                .out_lengths = lengths});
}

static float value(uint32_t rank, size_t i) { return (float)((rank + 1) * (i % 1000 + 1)); }

static void all_reduce_sizes(tt_group_t *group) {
  uint32_t rank = tt_group_rank(group), size = tt_group_size(group);
  const size_t counts[] = {0, 1, 7, 1000, 300001, 1 << 20};
  float *data = malloc(sizeof *data << 20);
  for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
    for (size_t i = 0; i < counts[c]; i++) data[i] = value(rank, i);
    EXPECT_OK(run_all_reduce(group, TT_F32, TT_REDUCE_SUM, data, data, counts[c]));
    size_t wrong = 0;
    for (size_t i = 0; i < counts[c]; i++) {
      float want = 0;
      for (uint32_t k = 0; k < size; k++) want += value(k, i);
      wrong += data[i] != want;
    }
    EXPECT_INT(wrong, 0);
  }
  free(data);
}

static void every_dtype(tt_group_t *group) {
  uint32_t rank = tt_group_rank(group), size = tt_group_size(group);
  int64_t i = rank + 1, sum = 0;
  EXPECT_OK(run_all_reduce(group, TT_S64, TT_REDUCE_SUM, &i, &sum, 1));
  EXPECT_INT(sum, size * (size + 1) / 2);
  uint16_t bf16 = 0x3f80;  // 1.0
  EXPECT_OK(run_all_reduce(group, TT_BF16, TT_REDUCE_AVG, &bf16, &bf16, 1));
  EXPECT_INT(bf16, 0x3f80);
  uint8_t bits = (uint8_t)(1u << rank);
  EXPECT_OK(run_all_reduce(group, TT_U8, TT_REDUCE_BOR, &bits, &bits, 1));
  EXPECT_INT(bits, (1 << size) - 1);
  uint8_t yes = rank == 0;
  EXPECT_OK(run_all_reduce(group, TT_I1, TT_REDUCE_SUM, &yes, &yes, 1));
  EXPECT_INT(yes, 1);
  double d = rank == 1 ? (double)NAN : (double)rank, low = 0;
  EXPECT_OK(run_all_reduce(group, TT_F64, TT_REDUCE_MIN, &d, &low, 1));
  EXPECT(isnan(low));
  EXPECT_ERROR(run_all_reduce(group, TT_F64, TT_REDUCE_BAND, &d, &low, 1), "band");
  EXPECT_OK(run_barrier(group));
}

static void data_movement(tt_group_t *group) {
  uint32_t rank = tt_group_rank(group), size = tt_group_size(group);
  int32_t word = rank == 1 ? 77 : 0;
  EXPECT_OK(run_one(group, TT_COLLECTIVE_BROADCAST, TT_S32, TT_REDUCE_SUM, &word, &word, 1, 1));
  EXPECT_INT(word, 77);
  // uneven all_gather: rank k has k + 1 elements
  int32_t mine[MOST], got[MOST][MOST];
  void *outs[MOST];
  size_t counts[MOST];
  for (uint32_t k = 0; k < size; k++) {
    mine[k] = (int32_t)(10 * rank + k);
    outs[k] = got[k];
    counts[k] = k + 1;
  }
  EXPECT_OK(run_lists(group, TT_COLLECTIVE_ALL_GATHER, mine, NULL, NULL, outs, counts));
  for (uint32_t k = 0; k < size; k++) EXPECT_INT(got[k][k], 11 * k);
  // reduce_scatter of the same lists
  const void *ins[MOST];
  for (uint32_t k = 0; k < size; k++) ins[k] = got[k];
  int32_t part[MOST] = {0};
  EXPECT_OK(run_lists(group, TT_COLLECTIVE_REDUCE_SCATTER, NULL, ins, part, NULL, counts));
  EXPECT_INT(part[rank], (int32_t)(11 * rank));
  // all_to_all: element k of mine goes to rank k
  for (uint32_t k = 0; k < size; k++) {
    ins[k] = &mine[k];
    counts[k] = 1;
  }
  EXPECT_OK(run_lists(group, TT_COLLECTIVE_ALL_TO_ALL, NULL, ins, NULL, outs, counts));
  for (uint32_t k = 0; k < size; k++) EXPECT_INT(got[k][0], 10 * k + rank);
  EXPECT_OK(run_lists(group, TT_COLLECTIVE_GATHER, &mine[1], NULL, NULL, outs, counts));
  if (rank == 0) EXPECT_INT(got[size - 1][0], 10 * (size - 1) + 1);
  EXPECT_OK(run_lists(group, TT_COLLECTIVE_SCATTER, NULL, ins, &word, NULL, counts));
  EXPECT_INT(word, rank);
  EXPECT_OK(
      run_one(group, TT_COLLECTIVE_REDUCE, TT_S32, TT_REDUCE_MAX, &mine[0], &word, 1, size - 1));
  if (rank == size - 1) EXPECT_INT(word, 10 * (size - 1));
}

// Arrays longer than a slot, of uneven lengths.
static void large_movement(tt_group_t *group) {
  enum { LONG = 300001 };
  uint32_t rank = tt_group_rank(group), size = tt_group_size(group);
  int32_t *mine = malloc(MOST * LONG * sizeof *mine), *got = malloc(MOST * LONG * sizeof *got);
  size_t counts[MOST], wrong = 0;
  void *outs[MOST];
  const void *ins[MOST];
  for (size_t i = 0; i < MOST * LONG; i++) mine[i] = (int32_t)(i % 1000 + 1000 * rank);
  for (uint32_t k = 0; k < size; k++) {
    counts[k] = LONG - k;
    outs[k] = got + k * LONG;
    ins[k] = mine + k * LONG;
  }
  EXPECT_OK(run_lists(group, TT_COLLECTIVE_ALL_GATHER, mine, NULL, NULL, outs, counts));
  for (uint32_t k = 0; k < size; k++) {
    for (size_t i = 0; i < counts[k]; i++)
      wrong += got[k * LONG + i] != (int32_t)(i % 1000 + 1000 * k);
  }
  EXPECT_INT(wrong, 0);
  EXPECT_OK(run_lists(group, TT_COLLECTIVE_REDUCE_SCATTER, NULL, ins, got, NULL, counts));
  for (size_t i = 0; i < counts[rank]; i++)
    wrong += got[i] != (int32_t)((i + rank * LONG) % 1000 + 1000 * (size - 1));
  EXPECT_INT(wrong, 0);
  EXPECT_OK(run_one(group, TT_COLLECTIVE_BROADCAST, TT_S32, TT_REDUCE_SUM, mine, got, LONG, 1));
  for (size_t i = 0; rank != 1 && i < LONG; i++) wrong += got[i] != (int32_t)(i % 1000 + 1000);
  EXPECT_INT(wrong, 0);
  free(mine);
  free(got);
}

static tt_status_t send_words(tt_group_t *group, int32_t *words, size_t count, uint32_t to,
                              uint32_t tag) {
  return tt_group_send(group, &(tt_message_t){words, count, TT_S32, to, tag, 0});
}
static tt_status_t receive_words(tt_group_t *group, int32_t *words, size_t count, uint32_t from,
                                 uint32_t tag) {
  return tt_group_receive(group, &(tt_message_t){words, count, TT_S32, from, tag, 0});
}

static void point_to_point(tt_group_t *group) {
  uint32_t rank = tt_group_rank(group);
  size_t count = 400000;  // longer than a ring
  int32_t *data = malloc(count * sizeof *data), early = 5;
  if (rank == 0) {
    for (size_t i = 0; i < count; i++) data[i] = (int32_t)i;
    EXPECT_OK(send_words(group, &early, 1, 1, 9));  // another tag: waits aside
    EXPECT_OK(send_words(group, data, count, 1, 0));
    EXPECT_OK(send_words(group, &early, 1, 1, 1));
    EXPECT_OK(send_words(group, &early, 1, 1, 1));
  } else if (rank == 1) {
    EXPECT_OK(receive_words(group, data, count, 0, 0));
    EXPECT_INT(data[count - 1], count - 1);
    int32_t tagged = 0;
    uint32_t from = 99;
    tt_message_t any = {&tagged, 1, TT_S32, 0, 9, 0};
    EXPECT_OK(tt_group_receive_any(group, &any, &from));
    EXPECT_INT(tagged, 5);
    EXPECT_INT(from, 0);
    EXPECT_ERROR(receive_words(group, data, 2, 0, 1), "sent 1 x i32, rank 1 expects 2 x i32");
    EXPECT_ERROR(tt_group_receive(group, &(tt_message_t){data, 1, TT_F32, 0, 1, 0}),
                 "sent 1 x i32, rank 1 expects 1 x f32");
    EXPECT_ERROR(receive_words(group, data, 2, 99, 1), "names rank 99");
    EXPECT_OK(send_words(group, &early, 1, 1, 3));  // to itself
    EXPECT_OK(receive_words(group, &tagged, 1, 1, 3));
    EXPECT_INT(tagged, early);
  }
  free(data);
  EXPECT_OK(run_barrier(group));
}

// One thread a tag, of which the last comes first.
enum { TAGS = 4 };
typedef struct stream_s {
  tt_group_t *group;
  uint32_t tag;
  pthread_t thread;
} stream_t;

static void *receive_stream(void *argument) {
  stream_t *stream = argument;
  int32_t words[1000];
  for (int32_t i = 0; i < 200; i++) {
    EXPECT_OK(receive_words(stream->group, words, 1000, 0, stream->tag));
    EXPECT_INT(words[999], i * TAGS + (int32_t)stream->tag);
  }
  return NULL;
}
static void *send_stream(void *argument) {
  stream_t *stream = argument;
  int32_t words[1000];
  for (int32_t i = 0; i < 200; i++) {
    words[999] = i * TAGS + (int32_t)stream->tag;
    EXPECT_OK(send_words(stream->group, words, 1000, 1, stream->tag));
  }
  return NULL;
}

static void streams(tt_group_t *group) {
  uint32_t rank = tt_group_rank(group);
  stream_t all[TAGS];
  int32_t go = 1;
  if (rank < 2) {
    for (uint32_t t = 0; t < TAGS; t++) {
      all[t] = (stream_t){.group = group, .tag = t};
      // The first tag is only sent when what comes after it was received.
      if (rank == 0 && t == 0) continue;
      pthread_create(&all[t].thread, NULL, rank ? receive_stream : send_stream, &all[t]);
    }
    for (uint32_t t = 1; t < TAGS; t++) pthread_join(all[t].thread, NULL);
    if (rank == 1) EXPECT_OK(send_words(group, &go, 1, 0, 77));
    if (rank == 0) {
      EXPECT_OK(receive_words(group, &go, 1, 1, 77));
      send_stream(&all[0]);
    } else {
      pthread_join(all[0].thread, NULL);
    }
  }
  EXPECT_OK(run_barrier(group));
}

// Who waits for what will not come learns that nobody is there for it any more.
static void deafness(tt_group_t *group) {
  if (tt_group_rank(group) == 1) {
    tt_group_stop_receiving(group);
    int32_t word;
    EXPECT_ERROR(receive_words(group, &word, 1, 0, 0), "was destroyed");
  } else {
    usleep(300000);
  }
}

static void disagreement(tt_group_t *group) {
  double data[8] = {0};
  bool odd = tt_group_rank(group) == 1;
  tt_status_t status =
      run_all_reduce(group, odd ? TT_F64 : TT_F32, TT_REDUCE_SUM, data, data, odd ? 4 : 8);
  EXPECT(strstr(tt_status_message(status), "8 x f32") != NULL);
  EXPECT(strstr(tt_status_message(status), "4 x f64") != NULL);
  tt_status_release(status);
  EXPECT_ERROR(run_barrier(group), "disagree");  // a broken group stays broken
}

// As many in all, cut in another way.
static void other_parts(tt_group_t *group) {
  bool odd = tt_group_rank(group) == 1;
  int32_t mine[3] = {0}, got[4];
  size_t lengths[2] = {odd ? 1 : 3, odd ? 3 : 1};
  void *outs[2] = {got, got + lengths[0]};
  EXPECT_ERROR(run_lists(group, TT_COLLECTIVE_ALL_GATHER, mine, NULL, NULL, outs, lengths),
               " calls all_gather number 1 of 4 x i32 (op max, root 0), rank");
  EXPECT_ERROR(run_barrier(group), "with parts of other lengths");
}

static void death(tt_group_t *group) {
  if (tt_group_rank(group) == 1) raise(SIGKILL);
  EXPECT_ERROR(run_barrier(group), "rank 1");
}

static void silence(tt_group_t *group) {
  if (tt_group_rank(group) == 1) {
    usleep(1500000);
    return;
  }
  EXPECT_ERROR(run_barrier(group), "rank 1 did not answer within the timeout of 0.5 s");
}

static void abortion(tt_group_t *group) {
  if (tt_group_rank(group) == 1) tt_group_abort(group);
  EXPECT_ERROR(run_barrier(group), "rank 1");
}

// What can be wrong while a group is made; each fails at once or after the timeout, saying why.
TEST(meetings) {
  board_t *board = make_board();
  tt_group_t *group = NULL;
  EXPECT_ERROR(join(board, 0, 2, 0.2, &group), "no sign of rank 1 within 0.2 s");
  EXPECT_ERROR(join(board, 0, 2, 0.2, &group), "another process is rank 0 of 2 already");
  munmap(board, sizeof *board);
  board = make_board();
  tt_store_t store = {board, publish, look, count};
  tt_meeting_t first, second;
  EXPECT_OK(tt_meeting_begin(&store, 0, 2, 0.2, &first));
  EXPECT_OK(tt_meeting_begin(&store, 1, 3, 0.2, &second));
  tt_record_t mine = {0}, all[3];
  EXPECT_ERROR(tt_meeting_round(&first, "a", TT_OK_STATUS, &mine, sizeof mine, all, NULL, NULL),
               "no sign of rank 1");
  EXPECT_ERROR(tt_meeting_round(&second, "a", TT_OK_STATUS, &mine, sizeof mine, all, NULL, NULL),
               "rank 1 says 3, rank 0 says 2");
  EXPECT_ERROR(tt_meeting_round(&first, "b", TT_ERROR(UNKNOWN, "no luck"), &mine, sizeof mine, all,
                                NULL, NULL),
               "no luck");
  second.size = 2;
  EXPECT_ERROR(tt_meeting_round(&second, "b", TT_OK_STATUS, &mine, sizeof mine, all, NULL, NULL),
               "rank 0 failed: no luck");
  munmap(board, sizeof *board);
}

TEST(collectives) {
  for (uint32_t size = 1; size <= MOST; size++) run(size, 60, all_reduce_sizes);
  run(2, 60, every_dtype);
  run(4, 60, every_dtype);
  run(2, 60, data_movement);
  run(3, 60, data_movement);
  run(4, 60, data_movement);
  run(2, 60, large_movement);
  run(4, 60, large_movement);
  run(2, 60, point_to_point);
  run(3, 60, point_to_point);
  run(2, 60, streams);
  run(3, 60, streams);
}

// The slots carry large arrays where the ranks may not read each other's memory.
TEST(without_pulling) {
  setenv("TORCHTPU_DIST_PULL", "0", 1);
  for (uint32_t size = 2; size <= MOST; size++) run(size, 60, all_reduce_sizes);
  run(2, 60, large_movement);
  run(3, 60, large_movement);
  unsetenv("TORCHTPU_DIST_PULL");
}

TEST(failures) {
  run(2, 60, disagreement);
  run(3, 60, disagreement);
  run(2, 60, other_parts);
  run(2, 60, death);
  run(3, 60, death);
  run(2, 0.5, silence);
  run(3, 60, abortion);
  run(2, 60, deafness);
}

TEST_MAIN(meetings, collectives, without_pulling, failures)
