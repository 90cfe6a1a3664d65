// Reads the few fields of a serialized CompileOptionsProto that matter here, by hand: protocol
// buffers' wire format is a list of (number, type, value), and unknown numbers are skipped.
#include <string.h>

#include "base/alloc.h"
#include "softtpu/plugin/plugin.h"

typedef struct reader_s {
  const unsigned char *at, *end;
  bool ok;
} reader_t;

// One field of a message: its number, and its value as an integer or as bytes.
typedef struct field_s {
  uint64_t number, value;
  reader_t bytes;
} field_t;

// Seven bits a byte, lowest first; more than ten bytes are malformed.
static uint64_t read_varint(reader_t *r) {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (r->at >= r->end) break;
    unsigned char byte = *r->at++;
    value |= (uint64_t)(byte & 0x7f) << shift;
    if (!(byte & 0x80)) return value;
  }
  r->ok = false;
  return 0;
}

// False at the end, and where r->ok has turned false.
static bool read_field(reader_t *r, field_t *field) {
  if (!r->ok || r->at >= r->end) return false;
  uint64_t key = read_varint(r);
  *field = (field_t){.number = key >> 3};
  uint64_t size = 0;
  switch (key & 7) {
    case 0:
      field->value = read_varint(r);
      return r->ok;
    case 1:
      size = 8;
      break;
    case 5:
      size = 4;
      break;
    case 2:
      size = read_varint(r);
      break;
    default:
      r->ok = false;
  }
  if (!r->ok || size > (uint64_t)(r->end - r->at)) {
    r->ok = false;
    return false;
  }
  field->bytes = (reader_t){r->at, r->at + size, true};
  r->at += size;
  return true;
}

// More ids than a client can have devices are dropped; their number no longer fits then.
static void add_id(tt_soft_options_t *options, uint64_t id) {
  if (options->id_count < sizeof options->ids / sizeof *options->ids) {
    options->ids[options->id_count++] = (int64_t)id;
  }
}

// DeviceAssignmentProto: 1 replicas, 2 computations, 3 a ComputationDevice each, whose field 1
// lists the devices of its replicas. Here in partition-major order; parse turns it around.
static bool read_assignment(reader_t r, tt_soft_options_t *options) {
  field_t field, device, id;
  options->id_count = 0;
  while (read_field(&r, &field)) {
    if (field.number != 3) continue;
    while (read_field(&field.bytes, &device)) {
      if (device.number != 1) continue;
      if (device.bytes.at) {
        id.bytes = device.bytes;
        while (id.bytes.ok && id.bytes.at < id.bytes.end) {
          add_id(options, read_varint(&id.bytes));
        }
      } else {
        add_id(options, device.value);
      }
    }
    if (!field.bytes.ok) return false;
  }
  return r.ok;
}

// Only where the ids are as many as the counts say; the product of two 32-bit counts needs 64 bits.
static void to_replica_major(tt_soft_options_t *options) {
  uint64_t replicas = options->replica_count, partitions = options->partition_count;
  if (replicas < 2 || partitions < 2 || options->id_count != replicas * partitions) return;
  int64_t turned[sizeof options->ids / sizeof *options->ids];
  for (uint64_t p = 0; p < partitions; p++) {
    for (uint64_t r = 0; r < replicas; r++) {
      turned[r * partitions + p] = options->ids[p * replicas + r];
    }
  }
  memcpy(options->ids, turned, sizeof(int64_t) * options->id_count);
}

tt_status_t tt__soft_options_parse(const char *bytes, size_t size, tt_soft_options_t *out_options) {
  memset(out_options, 0, sizeof *out_options);
  reader_t r = {(const unsigned char *)bytes, (const unsigned char *)bytes + size, true};
  field_t field, build;
  bool ok = true;
  while (read_field(&r, &field)) {
    if (field.number != 3) continue;  // executable_build_options
    while (read_field(&field.bytes, &build)) {
      if (build.number == 4) out_options->replica_count = (uint32_t)build.value;
      if (build.number == 5) out_options->partition_count = (uint32_t)build.value;
      if (build.number == 6) out_options->spmd = build.value != 0;
      if (build.number == 9) ok = ok && read_assignment(build.bytes, out_options);
    }
    ok = ok && field.bytes.ok;
  }
  if (!ok || !r.ok) return TT_ERROR(INVALID_ARGUMENT, "the compile options are malformed");
  to_replica_major(out_options);
  return TT_OK_STATUS;
}

// --- writing ---

// The buffers below have room for ten bytes a number.
static void write_varint(char *bytes, size_t *size, uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes[(*size)++] = (char)(value | 0x80);
  bytes[(*size)++] = (char)value;
}

// The message that read_assignment reads: counts, then a list of ids for each partition.
char *tt__soft_assignment_bytes(const tt_soft_executable_t *executable, size_t *out_size) {
  uint32_t count = executable->device_count;
  tt_pjrt_logical_id_t last = executable->logical_ids[count ? count - 1 : 0];
  uint32_t replicas = (uint32_t)last.replica + 1, partitions = (uint32_t)last.partition + 1;
  char *bytes = tt_alloc(32 + (size_t)count * 24 + (size_t)partitions * 24);
  char *list = tt_alloc(16 + (size_t)replicas * 12);
  size_t size = 0;
  if (bytes && list) {
    write_varint(bytes, &size, 1 << 3);
    write_varint(bytes, &size, replicas);
    write_varint(bytes, &size, 2 << 3);
    write_varint(bytes, &size, partitions);
    for (uint32_t p = 0; p < partitions; p++) {
      size_t list_size = 0, header_size = 0;
      char header[16];
      for (uint32_t r = 0; r < replicas; r++) {
        const tt_soft_device_t *device = executable->devices[r * partitions + p];
        write_varint(list, &list_size, device ? device->device.ordinal : r * partitions + p);
      }
      write_varint(header, &header_size, 1 << 3 | 2);
      write_varint(header, &header_size, list_size);
      write_varint(bytes, &size, 3 << 3 | 2);
      write_varint(bytes, &size, header_size + list_size);
      memcpy(bytes + size, header, header_size);
      memcpy(bytes + size + header_size, list, list_size);
      size += header_size + list_size;
    }
  }
  tt_free(list);
  *out_size = size;
  if (size > 0) return bytes;
  tt_free(bytes);
  return NULL;
}
