// Errors: a status in the interface's clothes. The caller destroys each, but the one for want of
// memory, which is static and may be "destroyed" any number of times.
#include <string.h>

#include "base/alloc.h"
#include "softtpu/plugin/plugin.h"

struct tt_pjrt_error_s {
  const tt_pjrt_error_functions_t *functions;  // first: part of the interface
  tt_code_t code;
  char *message;  // NULL: there was no memory for it
};

static const struct {
  tt_code_t ours;
  int theirs;
} pairs[] = {
#define CODE(ours, theirs) {TT_##ours, TT_PJRT_##theirs},
#include "pjrt/pjrt_codes.def"
#undef CODE
};
#define PAIR_COUNT (sizeof pairs / sizeof *pairs)

// The first pair of a code counts, in either direction.
static int pjrt_code(tt_code_t ours) {
  for (size_t i = 0; i < PAIR_COUNT; i++) {
    if (pairs[i].ours == ours) return pairs[i].theirs;
  }
  return TT_PJRT_UNKNOWN;
}

tt_code_t tt__soft_code(int theirs) {
  if (theirs == TT_PJRT_OK) return TT_OK;
  for (size_t i = 0; i < PAIR_COUNT; i++) {
    if (pairs[i].theirs == theirs) return pairs[i].ours;
  }
  return TT_UNKNOWN;
}

static void destroy(tt_pjrt_error_t *error);

static void message(const tt_pjrt_error_t *error, const char **out_text, size_t *out_size) {
  *out_text = error->message ? error->message : "out of host memory";
  *out_size = strlen(*out_text);
}

static int code(const tt_pjrt_error_t *error) { return pjrt_code(error->code); }

static void for_each_payload(const tt_pjrt_error_t *error, void *visitor, void *context) {
  (void)error;
  (void)visitor;
  (void)context;
}

static const tt_pjrt_error_functions_t functions = {
    sizeof functions, sizeof(tt_pjrt_error_t), NULL, destroy, message, code, for_each_payload,
};

// What is returned when there is no memory to make an error.
static tt_pjrt_error_t last_resort = {&functions, TT_OUT_OF_MEMORY, NULL};

static void destroy(tt_pjrt_error_t *error) {
  if (!error || error == &last_resort) return;
  tt_free(error->message);
  tt_free(error);
}

tt_pjrt_error_t *tt__soft_error(tt_status_t status) {
  if (!status) return NULL;
  tt_pjrt_error_t *error = tt_alloc(sizeof *error);
  if (error) {
    error->functions = &functions;
    error->code = tt_status_code(status);
    error->message = tt_strdup(tt_status_message(status));
  }
  tt_status_release(status);
  return error ? error : &last_resort;
}

int tt__soft_error_code(const tt_pjrt_error_t *error) { return (int)error->code; }

void tt__soft_Error_Destroy(tt_pjrt_ref_args_t *a) {
  if (a && TT_PJRT_HAS(a, self)) destroy(a->self);
}

void tt__soft_Error_Message(tt_pjrt_text_args_t *a) {
  if (a && TT_PJRT_HAS(a, size)) message(a->self, &a->text, &a->size);
}

tt_pjrt_error_t *tt__soft_Error_GetCode(tt_pjrt_int_args_t *a) {
  TT_SOFT_CHECK(a, value);
  a->value = code(a->self);
  return NULL;
}
