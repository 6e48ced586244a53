#include "viz/read/event_facts.h"

#include <gtest/gtest.h>

using namespace orrery;

TEST(EventFacts, IdsAndRoles) {
  const std::string_view text =
      R"([{"ph": "X", "cat": "kernel", "args": {"grid": [1, 2], "External id" : 12, "correlation": 33}, "name": "a"})";
  const EventIds ids = ids_of_event(text, 1);
  EXPECT_EQ(ids.role, EventIds::Role::kernel);
  EXPECT_EQ(ids.external, 12u);
  EXPECT_EQ(ids.correlation, 33u);
  EXPECT_EQ(ids_of_event(R"({"cat": "hip_runtime"})", 0).role, EventIds::Role::launch);
  EXPECT_EQ(ids_of_event(R"({"cat": "Operator"})", 0).role, EventIds::Role::op);
  for (const char* broken :
       {"", "{", "[]", R"({"cat)", R"({"args": {"correlation": )", R"({"args": {"correlation": "x"}})"})
    EXPECT_EQ(ids_of_event(broken, 0).correlation, 0u) << broken;
  EXPECT_EQ(ids_of_event(text, 1'000'000).correlation, 0u);
}

TEST(EventFacts, ShapesAreThoseOfAPlan) {
  EXPECT_EQ(
      shape_of_event(
          R"({"name": "aten::mm", "args": {"Input Dims": [[512, 256], [256, 1024]], "Input type": ["c10::BFloat16", "c10::BFloat16"]}})"),
      "gemm 1024x512x256");
  EXPECT_EQ(
      shape_of_event(
          R"({"name": "nccl", "args": {"Collective name": "_reduce_scatter_base", "In msg nelems": 1000, "Out msg nelems": 500, "dtype": "Float"}})"),
      "reduce_scatter 4000 bytes");
  EXPECT_EQ(shape_of_event(R"({"name": "mlp up", "args": {"kind": "gemm/output bf16", "sizes": [1, 2, 3]}})"),
            "gemm 3x2x1");
  for (const char* none :
       {"", "{", "[]", R"({"name": 3, "args": {}})", R"({"name": "aten::mm"})",
        R"({"name": "aten::mm", "args": {"Input Dims": []}})",
        R"({"name": "n", "args": {"Collective name": "_allgather_base", "In msg nelems": 1e30, "dtype": "Float"}})",
        R"({"name": "n", "args": {"Collective name": "unheard of", "In msg nelems": 3, "dtype": "Float"}})"})
    EXPECT_EQ(shape_of_event(none), "") << none;
}
