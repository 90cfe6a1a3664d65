#include "schema.hpp"

#include <ATen/core/function_schema.h>
#include <ATen/core/jit_type.h>

namespace tt {
namespace {

using c10::TypeKind;

ArgKind kind_of_list(const c10::TypePtr &element) {
  switch (element->kind()) {
    case TypeKind::TensorType:
      return ArgKind::kTensors;
    case TypeKind::OptionalType:
      return ArgKind::kOptionalTensors;
    case TypeKind::IntType:
    case TypeKind::SymIntType:
      return ArgKind::kInts;
    case TypeKind::FloatType:
      return ArgKind::kFloats;
    case TypeKind::BoolType:
      return ArgKind::kBools;
    case TypeKind::NumberType:
      return ArgKind::kScalars;
    default:
      return ArgKind::kOther;
  }
}

ArgKind kind_of(c10::TypePtr type) {
  if (auto optional = type->cast<c10::OptionalType>()) type = optional->getElementType();
  switch (type->kind()) {
    case TypeKind::TensorType:
      return ArgKind::kTensor;
    case TypeKind::NumberType:
      return ArgKind::kScalar;
    case TypeKind::IntType:
    case TypeKind::SymIntType:
      return ArgKind::kInt;
    case TypeKind::FloatType:
      return ArgKind::kFloat;
    case TypeKind::BoolType:
      return ArgKind::kBool;
    case TypeKind::ScalarTypeType:
      return ArgKind::kDtype;
    case TypeKind::LayoutType:
    case TypeKind::MemoryFormatType:
      return ArgKind::kEnum;
    case TypeKind::DeviceObjType:
      return ArgKind::kDevice;
    case TypeKind::StringType:
      return ArgKind::kString;
    case TypeKind::GeneratorType:
      return ArgKind::kGenerator;
    case TypeKind::ListType:
      return kind_of_list(type->castRaw<c10::ListType>()->getElementType());
    default:
      return ArgKind::kOther;
  }
}

int16_t find_alias(const c10::FunctionSchema &schema, const c10::AliasInfo &alias) {
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    const c10::AliasInfo *info = schema.arguments()[i].alias_info();
    if (info && info->isWrite() && info->beforeSets() == alias.beforeSets()) {
      return static_cast<int16_t>(i);
    }
  }
  return -1;
}

// PyTorch lets these write through expanded tensors, or read their value first.
bool may_overlap(const std::string &name) {
  for (const char *one : {"fill_", "zero_", "tril_", "triu_", "masked_fill_", "index_fill_",
                          "index_put_", "_index_put_impl_", "conj_physical_"}) {
    if (name.substr(6) == one) return true;
  }
  return false;
}

std::unique_ptr<Entry> entry_find(const char *overload, uint16_t op, tt_variant_t variant) {
  std::string name = overload;
  if (name.empty()) return nullptr;
  size_t dot = name.find('.');
  std::string suffix = dot == std::string::npos ? "" : name.substr(dot + 1);
  auto handle = c10::Dispatcher::singleton().findSchema({"aten::" + name.substr(0, dot), suffix});
  return handle ? std::make_unique<Entry>(*handle, op, variant) : nullptr;
}

// Which argument of `form` gives each argument of `functional`: the one of the same name.
void map_arguments(Entry &form, const Entry &functional) {
  for (const auto &wanted : functional.handle.schema().arguments()) {
    auto found = form.handle.schema().argumentIndexWithName(wanted.name());
    form.functional_arg.push_back(static_cast<int16_t>(found.value_or(-1)));
  }
}

}  // namespace

Entry::Entry(c10::OperatorHandle op_handle, uint16_t op_index, uint8_t op_variant)
    : handle(op_handle),
      op(op_index),
      variant(op_variant),
      checks_overlap(op_variant != TT_FUNCTIONAL && !may_overlap(op_handle.operator_name().name)) {
  const auto &schema = handle.schema();
  for (const auto &argument : schema.arguments()) {
    kinds.push_back(kind_of(argument.real_type()));
    mutated.push_back(argument.alias_info() && argument.alias_info()->isWrite());
  }
  for (const auto &result : schema.returns()) {
    returned.push_back(result.alias_info() ? find_alias(schema, *result.alias_info())
                                           : int16_t{-1});
  }
}

EntryTable &entry_table() {
  static EntryTable table;
  return table;
}

void entry_table_build() {
  EntryTable &table = entry_table();
  table.resize(tt_aten_op_count);
  for (uint32_t i = 0; i < tt_aten_op_count; ++i) {
    const tt_aten_op_t &op = tt_aten_ops[i];
    auto index = static_cast<uint16_t>(i);
    if (!(op.flags & TT_ATEN_INPLACE_ONLY)) {
      table[i][TT_FUNCTIONAL] = entry_find(op.functional, index, TT_FUNCTIONAL);
    }
    table[i][TT_INPLACE] = entry_find(op.inplace, index, TT_INPLACE);
    table[i][TT_OUT] = entry_find(op.out, index, TT_OUT);
    for (int form : {TT_INPLACE, TT_OUT}) {
      if (table[i][form] && table[i][TT_FUNCTIONAL]) {
        map_arguments(*table[i][form], *table[i][TT_FUNCTIONAL]);
      }
    }
  }
}

}  // namespace tt
