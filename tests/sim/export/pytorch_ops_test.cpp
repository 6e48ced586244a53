#include "sim/export/pytorch_ops.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace orrery {
namespace {

using nlohmann::json;

json mm(std::int64_t m, std::int64_t k, std::int64_t n) {
  return {{"name", "aten::mm"},
          {"args", {{"Input Dims", {{m, k}, {k, n}}}, {"Input type", {"c10::BFloat16", "c10::BFloat16"}}}}};
}

std::string kind_or_reason(const Recognised& r) {
  return std::holds_alternative<WorkShape>(r) ? std::get<WorkShape>(r).kind : std::get<std::string>(r);
}

// Both orders in which autograd multiplies a weight's gradient give the same shape, (out, in, tokens).
TEST(PyTorchOps, ProductsTakeTheirRoleFromTheirShape) {
  Products forward;
  add_product(mm(4096, 512, 1536), forward);  // tokens, in, out
  const auto sizes = [&](const json& op) {
    return std::get<WorkShape>(recognise(op, {.backward = true}, forward)).sizes;
  };
  EXPECT_EQ(kind_or_reason(recognise(mm(4096, 512, 1536), {}, forward)), "gemm/output bf16");
  EXPECT_EQ(kind_or_reason(recognise(mm(4096, 1536, 512), {.backward = true}, forward)), "gemm/input_gradient bf16");
  EXPECT_EQ(kind_or_reason(recognise(mm(1536, 4096, 512), {.backward = true}, forward)), "gemm/weight_gradient bf16");
  EXPECT_EQ(kind_or_reason(recognise(mm(512, 4096, 1536), {.backward = true}, forward)), "gemm/weight_gradient bf16");
  EXPECT_EQ(sizes(mm(1536, 4096, 512)), sizes(mm(512, 4096, 1536)));
  EXPECT_EQ(kind_or_reason(recognise(mm(4096, 512, 1536), {.backward = true}, forward)),
            "gemm/output bf16");                                                                       // recomputed
  EXPECT_EQ(kind_or_reason(recognise(mm(7, 8, 9), {.backward = true}, forward)), "gemm/output bf16");  // not told
}

// The trace has no forward product of these sizes: the node of autograd received a gradient (tokens, out), 4096 x 1536.
TEST(PyTorchOps, ProductsTakeTheirRoleFromTheGradientOfTheirNode) {
  const OperatorPlace node{.backward = true, .gradient = {4096, 1536}};
  const WorkShape input = std::get<WorkShape>(recognise(mm(4096, 1536, 512), node, {}));
  EXPECT_EQ(input.kind, "gemm/input_gradient bf16");
  const WorkShape weight = std::get<WorkShape>(recognise(mm(1536, 4096, 512), node, {}));
  const WorkShape transposed = std::get<WorkShape>(recognise(mm(512, 4096, 1536), node, {}));
  EXPECT_EQ(weight.kind, "gemm/weight_gradient bf16");
  EXPECT_EQ(transposed.kind, "gemm/weight_gradient bf16");
  EXPECT_EQ(weight.sizes, (std::vector<double>{1536, 512, 4096}));  // out, in, tokens
  EXPECT_EQ(transposed.sizes, weight.sizes);
}

TEST(PyTorchOps, ProductsOfManyMatricesAreAKindOfTheirOwn) {
  using Dims = std::vector<std::int64_t>;
  const json bmm = {
      {"name", "aten::bmm"},
      {"args", {{"Input Dims", {Dims{16, 45, 20}, Dims{16, 20, 160}}}, {"Input type", {"float", "float"}}}}};
  const WorkShape shape = std::get<WorkShape>(recognise(bmm, {}, {}));
  EXPECT_EQ(shape.kind, "gemm/batched fp32");
  EXPECT_EQ(shape.sizes, (std::vector<double>{45, 160, 20, 16}));
  EXPECT_EQ(shape.amount, 2.0 * 45 * 160 * 20 * 16);
  json added = bmm;
  added["name"] = "aten::baddbmm";
  added["args"]["Input Dims"] = {Dims{16, 45, 160}, Dims{16, 45, 20}, Dims{16, 20, 160}};
  added["args"]["Input type"] = {"float", "float", "float"};
  EXPECT_EQ(std::get<WorkShape>(recognise(added, {}, {})).sizes, shape.sizes);
}

TEST(PyTorchOps, TheActivationOfAProductIsNoPartOfItsShape) {
  using Dims = std::vector<std::int64_t>;
  const json op = {{"name", "aten::_addmm_activation"},
                   {"args",
                    {{"Input Dims", {Dims{1536}, Dims{4096, 512}, Dims{512, 1536}}},
                     {"Input type", {"c10::Half", "c10::Half", "c10::Half"}}}}};
  const WorkShape shape = std::get<WorkShape>(recognise(op, {}, {}));
  EXPECT_EQ(shape.kind, "gemm/output bf16");
  EXPECT_EQ(shape.sizes, (std::vector<double>{4096, 1536, 512}));
  EXPECT_EQ(precision_of(op), "fp16");
  EXPECT_EQ(precision_of(mm(1, 2, 3)), "bf16");
  EXPECT_EQ(precision_of({{"name", "aten::mm"}}), "");
}

// Plans ask for an fp32 product whose result is fp32 too under this name.
TEST(PyTorchOps, ResultsAreAsWideAsInputs) {
  json op = mm(4096, 512, 1536);
  for (json& type : op["args"]["Input type"]) type = "float";
  EXPECT_EQ(kind_or_reason(recognise(op, {}, {})), "gemm/output fp32");
}

// A grouped product has as many rows as tokens were sent to experts, and the ends of each expert's rows as its third
// input.
TEST(PyTorchOps, GroupedProductsTakeTheirRoleFromTheirShape) {
  using Dims = std::vector<std::int64_t>;
  const auto grouped = [](const Dims& a, const Dims& b) -> json {
    return {{"name", "aten::_grouped_mm"},
            {"args", {{"Input Dims", {a, b, Dims{8}}}, {"Input type", {"c10::BFloat16", "c10::BFloat16", "int"}}}}};
  };
  Products forward;
  add_product(grouped({16384, 512}, {8, 512, 1536}), forward);
  const auto shape = [&](const json& op, bool backward) {
    return std::get<WorkShape>(recognise(op, {.backward = backward}, forward));
  };
  const WorkShape output = shape(grouped({16384, 512}, {8, 512, 1536}), false);
  EXPECT_EQ(output.kind, "grouped gemm/output bf16");
  EXPECT_EQ(output.sizes, (std::vector<double>{16384, 1536, 512, 8}));
  const WorkShape input = shape(grouped({16384, 1536}, {8, 1536, 512}), true);
  EXPECT_EQ(input.kind, "grouped gemm/input_gradient bf16");
  EXPECT_EQ(input.sizes, output.sizes);
  const WorkShape weight = shape(grouped({512, 16384}, {16384, 1536}), true);
  EXPECT_EQ(weight.kind, "grouped gemm/weight_gradient bf16");
  EXPECT_EQ(weight.sizes, output.sizes);
  EXPECT_EQ(shape(grouped({16384, 512}, {8, 512, 1536}), true).kind, output.kind);  // recomputed
  EXPECT_NE(kind_or_reason(recognise(grouped({7, 8}, {8, 8, 9}), {.backward = true}, forward)).find("cannot be told"),
            std::string::npos);
}

TEST(PyTorchOps, RefusalsSayWhy) {
  const auto reason = [](const json& op) { return kind_or_reason(recognise(op, {}, {})); };
  EXPECT_TRUE(reason({{"name", "aten::sort"}}).starts_with("aten::sort: no op of a plan"));
  EXPECT_TRUE(reason({{"name", "aten::mm"}}).starts_with("aten::mm: without shapes; record with record_shapes"));
  EXPECT_NE(
      reason({{"name", "aten::mm"}, {"args", {{"Input Dims", {json::array(), json::array()}}}}}).find("record_shapes"),
      std::string::npos);
  json wide = mm(1, 2, 3);
  wide["args"]["Input type"] = {"double", "double"};
  EXPECT_NE(reason(wide).find("neither 16 nor 32"), std::string::npos);
  const json q = {4, 128, 8, 64};
  json attention = {{"name", "aten::_flash_attention_forward"},
                    {"args",
                     {{"Input Dims", {q, q, q}},
                      {"Input type", {"c10::Half", "c10::Half", "c10::Half"}},
                      {"Concrete Inputs", {"", "", "", "", "", "", "", "0.", "False"}}}}};
  EXPECT_NE(reason(attention).find("not causal"), std::string::npos);
  attention["args"]["Concrete Inputs"][8] = "True";
  EXPECT_EQ(reason(attention), "attention/forward bf16");
}

TEST(PyTorchOps, CollectivesHaveOneName) {
  EXPECT_EQ(collective_of_torch("_allgather_base"), "all_gather");
  EXPECT_EQ(collective_of_torch("allgather_into_tensor_coalesced"), "all_gather");
  EXPECT_EQ(collective_of_torch("_broadcast_oop"), "broadcast");
  EXPECT_EQ(collective_of_torch("recv"), "message");
  EXPECT_EQ(collective_of_torch("barrier"), "");
}

TEST(PyTorchOps, TypesHaveWidths) {
  EXPECT_EQ(element_bytes("c10::BFloat16"), 2);
  EXPECT_EQ(element_bytes("Float"), 4);
  EXPECT_EQ(element_bytes("ComplexHalf"), 0);
}

}  // namespace
}  // namespace orrery
