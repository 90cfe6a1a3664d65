// Compile options as a protocol buffer, written by hand: a handful of fields.
#include <string.h>

#include "base/alloc.h"
#include "pjrt/internal.h"

typedef struct writer_s {
  char *bytes;
  uint32_t size, capacity;
  bool ok;
} writer_t;

static void put_byte(writer_t *w, unsigned value) {
  if (w->ok && w->size == w->capacity) {
    w->ok = tt_grow((void **)&w->bytes, &w->capacity, w->size + 1, 1);
  }
  if (w->ok) w->bytes[w->size++] = (char)value;
}

static void put_varint(writer_t *w, uint64_t value) {
  for (; value >= 0x80; value >>= 7) put_byte(w, (unsigned)(value & 0x7f) | 0x80);
  put_byte(w, (unsigned)value);
}

static void put_int(writer_t *w, unsigned field, int64_t value) {
  put_varint(w, (uint64_t)field << 3);
  put_varint(w, (uint64_t)value);
}

static void put_bytes(writer_t *w, unsigned field, const void *bytes, size_t size) {
  put_varint(w, (uint64_t)field << 3 | 2);
  put_varint(w, size);
  for (size_t i = 0; i < size; i++) put_byte(w, ((const unsigned char *)bytes)[i]);
}

static void put_message(writer_t *w, unsigned field, writer_t *message) {
  put_bytes(w, field, message->bytes, message->size);
  w->ok = w->ok && message->ok;
  tt_free(message->bytes);
}

// Device i holds replica i / partitions, partition i % partitions.
static void put_assignment(writer_t *w, uint32_t replicas, uint32_t partitions) {
  writer_t assignment = {.ok = true};
  put_int(&assignment, 1, replicas);
  put_int(&assignment, 2, partitions);
  for (uint32_t p = 0; p < partitions; p++) {
    writer_t ids = {.ok = true}, computation = {.ok = true};
    for (uint32_t r = 0; r < replicas; r++) put_varint(&ids, (uint64_t)r * partitions + p);
    put_message(&computation, 1, &ids);
    put_message(&assignment, 3, &computation);
  }
  put_message(w, 9, &assignment);
}

// A map entry from a flag's name to an OptionOverrideProto: 1 text, 2 boolean, 3 integer.
static void put_override(writer_t *w, const char *name, const char *value) {
  writer_t entry = {.ok = true}, option = {.ok = true};
  put_bytes(&entry, 1, name, strlen(name));
  if (strcmp(value, "true") == 0 || strcmp(value, "false") == 0) {
    put_int(&option, 2, value[0] == 't');
  } else {
    put_bytes(&option, 1, value, strlen(value));
  }
  put_message(&entry, 2, &option);
  put_message(w, 7, &entry);
}

tt_status_t tt__options_encode(const tt_compile_options_t *options, char **out_bytes,
                               size_t *out_size) {
  uint32_t replicas = options->replica_count ? options->replica_count : 1;
  uint32_t partitions = options->partition_count ? options->partition_count : 1;
  writer_t all = {.ok = true}, build = {.ok = true};
  put_int(&build, 1, -1);  // no preferred device
  put_int(&build, 4, replicas);
  put_int(&build, 5, partitions);
  if (options->spmd) put_int(&build, 6, 1);
  if (replicas * partitions > 1) put_assignment(&build, replicas, partitions);
  if (options->shardy) put_int(&build, 19, 1);
  if (options->optimization_level) put_int(&build, 24, options->optimization_level);
  put_message(&all, 3, &build);
  if (options->portable) put_int(&all, 4, 1);
  for (uint32_t i = 0; i < options->override_count; i++) {
    put_override(&all, options->names[i], options->values[i]);
  }
  if (!all.ok) {
    tt_free(all.bytes);
    return TT_ERROR(OUT_OF_MEMORY, "no memory for compile options");
  }
  *out_bytes = all.bytes;
  *out_size = all.size;
  return TT_OK_STATUS;
}
