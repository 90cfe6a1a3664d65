// What the bridge needs to know of each registered dispatcher entry, worked out once at
// registration.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "aten/lower.h"

namespace tt {

enum class ArgKind : uint8_t {
  kTensor,
  kTensors,
  kOptionalTensors,
  kScalar,
  kInt,
  kFloat,
  kBool,
  kInts,
  kFloats,
  kBools,
  kScalars,
  kDtype,
  kEnum,
  kDevice,
  kString,
  kGenerator,
  kOther,
};

struct Entry {
  c10::OperatorHandle handle;
  uint16_t op;
  uint8_t variant;
  std::vector<ArgKind> kinds;
  std::vector<bool> mutated;      // by argument
  bool checks_overlap;            // a written tensor may not overlap itself or another argument
  std::vector<int16_t> returned;  // the argument that return i aliases, -1: a new value
  std::vector<int16_t>
      functional_arg;  // this form's argument for argument i of the functional form, -1: none

  Entry(c10::OperatorHandle handle, uint16_t op, uint8_t variant);
};

// Indexed by op and variant; null where the running torch has no such overload.
using EntryTable = std::vector<std::array<std::unique_ptr<Entry>, 3>>;
EntryTable &entry_table();

// Fills the table from tt_aten_ops.
void entry_table_build();

}  // namespace tt
