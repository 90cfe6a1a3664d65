// Groups of several hosts: making one, ending one, and messages.
#include "dist/far.h"

#include <string.h>

#include "base/alloc.h"
#include "dist/internal.h"

static bool far_init(tt_far_t *far, const uint32_t *host_of, uint32_t rank, uint32_t size) {
  far->host = host_of[rank];
  for (uint32_t k = 0; k < size; k++) {
    if (host_of[k] >= far->host_count) far->host_count = host_of[k] + 1;
  }
  far->host_of = tt_alloc(sizeof *far->host_of * (2 * (size_t)size + far->host_count + 1));
  if (!far->host_of) return false;
  far->order = far->host_of + size;
  far->starts = far->order + size;
  memcpy(far->host_of, host_of, sizeof *host_of * size);
  uint32_t at = 0;
  for (uint32_t h = 0; h < far->host_count; h++) {
    far->starts[h] = at;
    for (uint32_t k = 0; k < size; k++) {
      if (host_of[k] == h) far->order[at++] = k;
    }
  }
  far->starts[far->host_count] = at;
  return true;
}

tt_status_t tt_group_create_far(const tt_meeting_t *meeting, const tt_link_t links[2],
                                tt_group_t *local, const uint32_t *host_of,
                                tt_group_t **out_group) {
  uint32_t size = meeting->size;
  tt_group_t *group = tt_alloc_zeroed(sizeof *group);
  tt_peer_t *peers = tt_alloc_zeroed(sizeof *peers * size);
  tt_far_t *far = tt_alloc_zeroed(sizeof *far);
  if (!group || !peers || !far || !far_init(far, host_of, meeting->rank, size)) {
    tt_free(group);
    tt_free(peers);
    tt_free(far);
    links[0].close(links[0].context);
    links[1].close(links[1].context);
    tt_group_destroy(local);
    return TT_ERROR(OUT_OF_MEMORY, "tpu_dist: no memory for a group of %u", size);
  }
  far->collectives = links[0];
  far->messages = links[1];
  far->local = local;
  *group = (tt_group_t){.rank = meeting->rank, .size = size, .fd = -1, .peers = peers, .far = far};
  pthread_mutex_init(&group->broken_lock, NULL);
  for (uint32_t k = 0; k < size; k++) {
    peers[k].name = k;
    peers[k].pidfd = -1;
    tt__peer_init(&peers[k]);
  }
  group->timeout_s = meeting->timeout_s;
  *out_group = group;
  return TT_OK_STATUS;
}

void tt__far_leave(tt_group_t *group, const char *reason) {
  tt_far_t *far = group->far;
  far->collectives.abort(far->collectives.context);
  far->messages.abort(far->messages.context);
  tt__group_leave(far->local, reason);
}

void tt__far_destroy(tt_group_t *group) {
  tt_far_t *far = group->far;
  far->collectives.close(far->collectives.context);
  far->messages.close(far->messages.context);
  tt_group_destroy(far->local);
  tt_free(far->host_of);
  tt_free(far);
}

tt_status_t tt__far_fail(tt_group_t *group, tt_status_t status) {
  tt__far_leave(group, tt_status_message(status));
  return tt__group_break(group, status);
}

static tt_status_t link_failure(tt_group_t *group, const char *what, tt_status_t status) {
  return tt__far_fail(group,
                      tt_status_annotate(status, "tpu_dist: %s on rank %u", what, group->rank));
}

// --- messages -----------------------------------------------------------------------------------

// A message is its envelope, then its data.
static double timeout_of(const tt_group_t *group, const tt_message_t *message) {
  return tt__timeout(group, message->timeout_s);
}

tt_status_t tt__far_send(tt_group_t *group, const tt_message_t *message) {
  tt_link_t *link = &group->far->messages;
  tt_envelope_t envelope = tt__envelope(message);
  const tt_part_t parts[2] = {{message->peer, &envelope, sizeof envelope},
                              {message->peer, message->data, tt__message_bytes(&envelope)}};
  tt_status_t status = link->exchange(link->context, parts, parts[1].bytes ? 2 : 1, NULL, 0,
                                      message->tag, timeout_of(group, message));
  return status ? link_failure(group, "send", status) : TT_OK_STATUS;
}

static tt_status_t receive_part(tt_group_t *group, const tt_message_t *message, uint32_t from,
                                void *data, size_t bytes) {
  tt_link_t *link = &group->far->messages;
  const tt_part_t part = {from, data, bytes};
  if (!bytes) return TT_OK_STATUS;
  tt_status_t status =
      link->exchange(link->context, NULL, 0, &part, 1, message->tag, timeout_of(group, message));
  return status ? link_failure(group, "receive", status) : TT_OK_STATUS;
}

static tt_status_t receive_data(tt_group_t *group, const tt_message_t *message,
                                const tt_envelope_t *envelope, uint32_t from) {
  size_t bytes = tt__message_bytes(envelope);
  tt_status_t wrong = tt__envelope_check(group, from, envelope, message);
  if (!wrong) return receive_part(group, message, from, message->data, bytes);
  // It is taken off the link all the same, which goes on.
  void *dropped = tt_alloc(bytes);
  if (!dropped) return tt__far_fail(group, wrong);
  tt_status_t status = receive_part(group, message, from, dropped, bytes);
  tt_free(dropped);
  return tt_status_join(wrong, status);
}

tt_status_t tt__far_receive(tt_group_t *group, const tt_message_t *message) {
  tt_envelope_t envelope;
  TT_RETURN_IF_ERROR(receive_part(group, message, message->peer, &envelope, sizeof envelope));
  return receive_data(group, message, &envelope, message->peer);
}

tt_status_t tt__far_receive_any(tt_group_t *group, const tt_message_t *message,
                                uint32_t *out_from) {
  tt_link_t *link = &group->far->messages;
  tt_envelope_t envelope;
  tt_status_t status = link->receive_any(link->context, &envelope, sizeof envelope, message->tag,
                                         timeout_of(group, message), out_from);
  return status ? link_failure(group, "receive from any rank", status)
                : receive_data(group, message, &envelope, *out_from);
}

void tt__far_stop_receiving(tt_group_t *group) {
  tt_link_t *link = &group->far->messages;
  link->stop_receiving(link->context);
}
