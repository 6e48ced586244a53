#include "sim/launch/graph_scope.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

// The two keys of the spec, and the remarks, after a launch file says these two things; "-": it says nothing.
std::string graphs(const std::string& impl, const std::string& scope) {
  SpecValues v;
  if (impl != "-") v.set("launch.graph_impl", impl, Said::stated, "run.sh:1");
  if (scope != "-") v.set("launch.graph_scope", scope, Said::stated, "run.sh:2");
  std::vector<std::string> remarks;
  resolve_graphs(v, remarks);
  EXPECT_EQ(v.find("launch.graph_impl"), nullptr);
  EXPECT_EQ(v.find("launch.graph_scope"), nullptr);
  return v.text("software.cuda_graphs") + " " + v.text("software.cuda_graph_scope") +
         (remarks.empty() ? "" : " " + remarks.front());
}

TEST(GraphScope, IsWhatTheLaunchFileSays) {
  EXPECT_EQ(graphs("-", "-"), " ");
  EXPECT_EQ(graphs("-", "attn"), " ") << "graphs are off unless an implementation is named";
  EXPECT_EQ(graphs("none", "full_iteration"), "false ");
  EXPECT_EQ(graphs("transformer_engine", "attn moe_router moe_preprocess"), "true attention_and_router");
  EXPECT_EQ(graphs("transformer_engine", "[moe_router, moe_preprocess]"), "true router");
  EXPECT_EQ(graphs("local", "attn"), "true attention");
  EXPECT_EQ(graphs("local", "-"), "true layer");
  EXPECT_EQ(graphs("local", "full"), "true layer");
  EXPECT_EQ(graphs("full_iteration", "-"), "true step");
  EXPECT_EQ(graphs("local", "full_iteration"), "true step");
  EXPECT_EQ(graphs("local", "full_iteration_inference"), "false ") << "it holds nothing of training";
}

TEST(GraphScope, IsRemarkedOnWhereItIsNotModelled) {
  EXPECT_EQ(graphs("transformer_engine", "mamba"),
            "false  run.sh:2: graphs of 'mamba' are not modelled: taken as none");
  EXPECT_EQ(graphs("transformer_engine", "attn mlp"),
            "true attention run.sh:2: graphs of 'mlp' are not modelled: taken as none");
}

}  // namespace
}  // namespace orrery
