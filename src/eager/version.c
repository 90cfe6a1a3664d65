#include "eager/internal.h"

static tt__version_t *free_list;

tt__version_t *tt__version_make(const tt__layout_t *layout, tt_buffer_t *buffer) {
  tt__version_t *v = free_list;
  if (v) {
    free_list = v->next_free;
  } else {
    v = tt_alloc(sizeof *v);
    if (!v) return NULL;
  }
  *v = (tt__version_t){.refs = 1, .layout = layout, .buffer = buffer};
  return v;
}

void tt__version_release(tt__version_t *v) {
  if (!v || --v->refs > 0) return;
  if (v->window) tt__window_forget(v->window, v);
  if (v->buffer) tt_buffer_release(v->buffer);
  tt_status_release(v->error);
  v->next_free = free_list;
  free_list = v;
}

tt_status_t tt__version_settle(tt__version_t *v) {
  if (__builtin_expect(v->buffer != NULL, 1)) return TT_OK_STATUS;
  if (v->window) {
    tt__version_retain(v);  // a reader's interest keeps it among the window's outputs
    tt_status_t s = tt__window_flush(v->window);
    if (!s && !v->buffer) s = tt_status_clone(v->error);
    v->refs--;
    if (s || v->buffer) return s;
  }
  if (v->error) return tt_status_clone(v->error);
  return TT_ERROR(INTERNAL, "internal: a value is neither computed nor pending; please report");
}
