// The layouts extension: every array here is row-major, so a layout is the text that says so.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "softtpu/plugin/plugin.h"

char *tt__soft_layout_text(uint32_t rank) {
  size_t size = 3 + 12 * (size_t)rank;
  char *text = tt_alloc(size);
  if (!text) return NULL;
  int at = snprintf(text, size, "{");
  for (uint32_t i = rank; i-- > 0;) {
    at += snprintf(text + at, size - (size_t)at, i + 1 == rank ? "%u" : ",%u", i);
  }
  snprintf(text + at, size - (size_t)at, "}");
  return text;
}

static tt_pjrt_error_t *destroy(tt_pjrt_ref_args_t *a) {
  TT_SOFT_CHECK(a, self);
  tt_free(a->self);
  return NULL;
}

// The text itself, which the layout keeps.
static tt_pjrt_error_t *serialize(tt_pjrt_bytes_args_t *a) {
  TT_SOFT_CHECK(a, deleter);
  a->bytes = a->self;
  a->size = strlen(a->bytes);
  a->owner = NULL;
  a->deleter = tt_free;  // of NULL
  return NULL;
}

static tt_pjrt_error_t *make(uint32_t rank, void **out_layout) {
  *out_layout = tt__soft_layout_text(rank);
  if (!*out_layout) return tt__soft_error(TT_ERROR(OUT_OF_MEMORY, "no host memory for a layout"));
  return NULL;
}

static tt_pjrt_error_t *default_layout(tt_pjrt_default_layout_args_t *a) {
  TT_SOFT_CHECK(a, layout);
  return make((uint32_t)a->rank, &a->layout);
}

static tt_pjrt_error_t *buffer(tt_pjrt_get_args_t *a) {
  TT_SOFT_CHECK(a, result);
  return make(((tt_array_t *)a->self)->rank, &a->result);
}

static tt_pjrt_error_t *outputs(tt_pjrt_count_args_t *a) {
  TT_SOFT_CHECK(a, items);
  tt_soft_executable_t *executable = a->self;
  a->count = executable->program->output_count;
  a->items = executable->layouts;
  return NULL;
}

static tt_pjrt_error_t *parameters(tt_pjrt_count_args_t *a) {
  TT_SOFT_CHECK(a, items);
  tt_soft_executable_t *executable = a->self;
  a->count = executable->program->input_count;
  a->items = executable->layouts + executable->program->output_count;
  return NULL;
}

const tt_pjrt_layouts_t tt__soft_layouts = {
    .base = {sizeof tt__soft_layouts, TT_PJRT_EXTENSION_LAYOUTS, NULL},
    .destroy = destroy,
    .serialize = serialize,
    .client_default = default_layout,
    .buffer = buffer,
    .topology_default = default_layout,
    .outputs = outputs,
    .parameters = parameters,
};
