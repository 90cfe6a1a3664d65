#include "base/alloc.h"
#include "ir/graph.h"
#include "ir/parse.h"
#include "test.h"

// A constant's own attribute is one more than its dictionary has: a reading has room for
// TT__MOST_ATTRS in all.
TEST(a_full_dictionary_leaves_no_room) {
  char text[8192];
  size_t size = 0;
  uint32_t count = 0;
  size += (size_t)snprintf(text, sizeof text,
                           "func.func @main() -> tensor<f32> {\n%%0 = stablehlo.constant {");
  for (uint32_t k = 0; k < TT_ATTR_COUNT && count < TT__MOST_ATTRS; k++) {
    if (tt_attr_kinds[k] != TT_ATTR_KIND_INTS || k == TT_ATTR_PRECISION_CONFIG ||
        k == TT_ATTR_REPLICA_GROUPS) {
      continue;
    }
    size += (size_t)snprintf(text + size, sizeof text - size, "%s%s = [1]", count ? ", " : "",
                             tt_attr_names[k]);
    count++;
  }
  static const tt_attr_key_t numbers[] = {TT_ATTR_DIMENSION,
                                          TT_ATTR_IOTA_DIMENSION,
                                          TT_ATTR_IS_STABLE,
                                          TT_ATTR_EXPONENT_BITS,
                                          TT_ATTR_MANTISSA_BITS,
                                          TT_ATTR_K,
                                          TT_ATTR_INDEX_VECTOR_DIM,
                                          TT_ATTR_INDICES_ARE_SORTED,
                                          TT_ATTR_UNIQUE_INDICES,
                                          TT_ATTR_LOWER,
                                          TT_ATTR_LEFT_SIDE,
                                          TT_ATTR_UNIT_DIAGONAL,
                                          TT_ATTR_INDEX,
                                          TT_ATTR_VERSION,
                                          TT_ATTR_CHANNEL_ID,
                                          TT_ATTR_SPLIT_COUNT};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers && count < TT__MOST_ATTRS; i++) {
    size += (size_t)snprintf(text + size, sizeof text - size, ", %s = 1 : i64",
                             tt_attr_names[numbers[i]]);
    count++;
  }
  EXPECT_INT(count, TT__MOST_ATTRS);
  size += (size_t)snprintf(text + size, sizeof text - size,
                           "} dense<0.0> : tensor<f32>\nreturn %%0 : tensor<f32>\n}\n");
  tt_graph_t *graph;
  EXPECT_ERROR(tt_graph_parse(text, size, &graph), "too many attributes");
  EXPECT_INT(tt_alloc_live(), 0);
}

TEST(a_value_is_given_once) {
  static const char text[] =
      "func.func @main() -> tensor<f32> {\n"
      "%0 = stablehlo.constant {value = dense<1.0> : tensor<f32>} dense<0.0> : tensor<f32>\n"
      "return %0 : tensor<f32>\n}\n";
  tt_graph_t *graph;
  EXPECT_ERROR(tt_graph_parse(text, sizeof text - 1, &graph), "attribute value is given twice");
  EXPECT_INT(tt_alloc_live(), 0);
}

TEST_MAIN(a_full_dictionary_leaves_no_room, a_value_is_given_once)
