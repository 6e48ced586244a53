#include "sim/export/kineto.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace orrery {
namespace {

// Ranks 0..n-1, all in one group of every dimension.
Plan one_group(std::int32_t n, std::int64_t representative) {
  Plan plan;
  plan.ranks = n;
  const std::vector<std::int32_t> one(n, 0);
  plan.dimensions.assign(kDimensions, {GroupList(one, 1), one});
  plan.classes = {{.name = "only", .representative = representative}};
  return plan;
}

nlohmann::json arguments(const Plan& plan, const Op& op) {
  return nlohmann::json::parse("{" + kernel_arguments(plan, 0, op) + "}");
}

TEST(Kineto, NamesKernelsAsNcclDoes) {
  struct Row {
    Work work;
    std::string_view name;
  };
  const Row rows[] = {
      {Collective{CollectiveKind::all_reduce, Dimension::data, 64, 4}, "ncclDevKernel_AllReduce_Sum_f32"},
      {Collective{CollectiveKind::all_reduce, Dimension::data, 64, 2}, "ncclDevKernel_AllReduce_Sum_bf16"},
      {Collective{CollectiveKind::reduce_scatter, Dimension::data, 64, 1}, "ncclDevKernel_ReduceScatter_Sum_u8"},
      {Collective{CollectiveKind::all_gather, Dimension::data, 64, 2}, "ncclDevKernel_AllGather"},
      {Collective{CollectiveKind::broadcast, Dimension::data, 64, 2, 0, "ring"}, "ncclDevKernel_Broadcast_RING"},
      {Collective{CollectiveKind::reduce_scatter, Dimension::tensor, 64, 2, 0, kCopyEngines},
       "Memcpy PtoP (Device -> Device)"},
      {Collective{CollectiveKind::reduce, Dimension::data, 64, 4}, "ncclDevKernel_Reduce_Sum_f32"},
      {Collective{CollectiveKind::all_to_all, Dimension::expert, 64, 2}, "ncclDevKernel_SendRecv"},
      {Transfer{}, "ncclDevKernel_SendRecv"},
      {Gemm{}, "some op"},
  };
  for (const Row& row : rows) EXPECT_EQ(kernel_name({.name = "some op", .work = row.work}), row.name);
  const Op half = {.work = rows[1].work, .precision = Precision::fp16};
  EXPECT_EQ(kernel_name(half), "ncclDevKernel_AllReduce_Sum_f16");
}

TEST(Kineto, CountsElementsInAndOut) {
  struct Row {
    CollectiveKind kind;
    std::int64_t in, out;
  };
  const Plan plan = one_group(4, 1);
  for (const Row& row : {Row{CollectiveKind::all_reduce, 32, 32}, Row{CollectiveKind::all_gather, 8, 32},
                         Row{CollectiveKind::reduce_scatter, 32, 8}, Row{CollectiveKind::all_to_all, 32, 32}}) {
    const auto args = arguments(plan, {.name = "c", .work = Collective{row.kind, Dimension::tensor, 64, 2}});
    EXPECT_EQ(args["In msg nelems"], row.in);
    EXPECT_EQ(args["Out msg nelems"], row.out);
    EXPECT_EQ(args["Group size"], 4);
    EXPECT_EQ(args["dtype"], "BFloat16");
    EXPECT_EQ(args["Process Group Name"], "tensor 0");
    EXPECT_EQ(args["Process Group Description"], "tensor");
    EXPECT_EQ(args["Process Group Ranks"], "[0, 1, 2, 3]");
    EXPECT_EQ(args["bytes"], 64);
  }
}

TEST(Kineto, NamesBothEndsOfATransfer) {
  const auto ends = [](std::int64_t rank, bool send, std::int64_t offset) {
    const auto args = arguments(one_group(4, rank), {.work = Transfer{send, offset, 64}});
    return std::tuple<std::string, int, int>(args["Collective name"], args["Src Rank"], args["Dst Rank"]);
  };
  EXPECT_EQ(ends(1, true, 1), std::tuple("send", 1, 2));
  EXPECT_EQ(ends(2, false, -1), std::tuple("recv", 1, 2));
  EXPECT_EQ(ends(3, true, 1), std::tuple("send", 3, 0));
  EXPECT_EQ(ends(0, false, -1), std::tuple("recv", 3, 0));
}

TEST(Kineto, CutsLongListsOfRanks) {
  const Op op = {.work = Collective{CollectiveKind::all_reduce, Dimension::world, 64, 2}};
  const std::string all = arguments(one_group(30, 0), op)["Process Group Ranks"];
  EXPECT_TRUE(all.ends_with("28, 29]")) << all;
  const std::string cut = arguments(one_group(4096, 0), op)["Process Group Ranks"];
  EXPECT_TRUE(cut.ends_with("28, ..., 4095]")) << cut;
}

TEST(Kineto, EscapesText) {
  for (const std::string text : {"plain", "a \"b\" \\ c", "line\nbreak\ttab\x01", "µ-batch"}) {
    EXPECT_EQ(nlohmann::json::parse(json_string(text)), text);
  }
  EXPECT_EQ(nlohmann::json::parse(json_string("bad \xff byte")), "bad \xef\xbf\xbd byte");
}

}  // namespace
}  // namespace orrery
