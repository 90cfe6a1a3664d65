// A minimal test harness: TEST(name) { EXPECT(...); }  TEST_MAIN(name1, name2) runs them in order.
#ifndef TT_TESTS_TEST_H_
#define TT_TESTS_TEST_H_

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"

static int tt_test_failures;

#define EXPECT(cond)                                             \
  do {                                                           \
    if (!(cond)) {                                               \
      printf("%s:%d: expected %s\n", __FILE__, __LINE__, #cond); \
      tt_test_failures++;                                        \
    }                                                            \
  } while (0)

#define EXPECT_INT(a, b)                                                                  \
  do {                                                                                    \
    long long tt_a_ = (long long)(a), tt_b_ = (long long)(b);                             \
    if (tt_a_ != tt_b_) {                                                                 \
      printf("%s:%d: %s is %lld, expected %lld\n", __FILE__, __LINE__, #a, tt_a_, tt_b_); \
      tt_test_failures++;                                                                 \
    }                                                                                     \
  } while (0)

#define EXPECT_STR(a, b)                                                                \
  do {                                                                                  \
    const char *tt_a_ = (a), *tt_b_ = (b);                                              \
    if (strcmp(tt_a_, tt_b_) != 0) {                                                    \
      printf("%s:%d: %s is\n%s\nexpected\n%s\n", __FILE__, __LINE__, #a, tt_a_, tt_b_); \
      tt_test_failures++;                                                               \
    }                                                                                   \
  } while (0)

// Consumes a status that must be OK.
#define EXPECT_OK(expr)                                                               \
  do {                                                                                \
    tt_status_t tt_e_ = (expr);                                                       \
    if (tt_e_) {                                                                      \
      printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #expr, tt_status_message(tt_e_)); \
      tt_test_failures++;                                                             \
      tt_status_release(tt_e_);                                                       \
    }                                                                                 \
  } while (0)

// Consumes a status that must be a failure whose message contains `text`.
#define EXPECT_ERROR(expr, text)                                            \
  do {                                                                      \
    tt_status_t tt_e_ = (expr);                                             \
    if (!tt_e_ || !strstr(tt_status_message(tt_e_), (text))) {              \
      printf("%s:%d: %s: \"%s\" lacks \"%s\"\n", __FILE__, __LINE__, #expr, \
             tt_status_message(tt_e_), (text));                             \
      tt_test_failures++;                                                   \
    }                                                                       \
    tt_status_release(tt_e_);                                               \
  } while (0)

#define TEST(name) static void name(void)
#define TEST_MAIN(...)                                                    \
  int main(void) {                                                        \
    void (*const tests[])(void) = {__VA_ARGS__};                          \
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) tests[i](); \
    if (tt_test_failures) printf("%d failures\n", tt_test_failures);      \
    return tt_test_failures != 0;                                         \
  }

#endif  // TT_TESTS_TEST_H_
