#include "viz/timeline/event_kind.h"

#include <gtest/gtest.h>

using namespace orrery;

TEST(EventKind, GroupsAreKnownByPyTorchsNamesToo) {
  EXPECT_EQ(group_kind("tensor"), Kind::tensor);
  EXPECT_EQ(group_kind("mesh_dp"), Kind::data);
  EXPECT_EQ(group_kind("PIPELINE_pp"), Kind::pipeline);
  EXPECT_EQ(group_kind("default_pg"), Kind::communication);
  EXPECT_EQ(group_kind("TENSOR_MODEL_PARALLEL_GROUP"), Kind::tensor);
  EXPECT_EQ(group_kind("DATA_PARALLEL_GROUP_WITH_CP"), Kind::data);
  EXPECT_EQ(group_kind("EXPERT_DATA_PARALLEL_GROUP"), Kind::data);
  EXPECT_EQ(group_kind("mesh_fsdp"), Kind::data);
}

// A prediction colours collectives by their dimension; in the trace of its run they have the same kind.
TEST(EventKind, GroupsOfOwnTracesHaveTheKindsOfAPrediction) {
  EXPECT_EQ(group_kind("expert"), Kind::expert);
  EXPECT_EQ(group_kind("expert-data"), Kind::data);
  EXPECT_EQ(group_kind("expert-replicate"), Kind::data);
  EXPECT_EQ(group_kind("expert-tensor"), Kind::expert);
  EXPECT_EQ(group_kind("ulysses"), Kind::context);
  EXPECT_EQ(group_kind("vocabulary"), Kind::pipeline);
  EXPECT_EQ(group_kind("world"), Kind::data);
}

TEST(EventKind, OnlyPlainGroupsAreCoordinates) {
  EXPECT_EQ(group_coordinate("tensor"), 1);
  EXPECT_EQ(group_coordinate("mesh_dp"), 0);
  EXPECT_EQ(group_coordinate("expert"), 4);
  for (const char* other : {"expert_data", "embedding", "model", "default_pg", "mesh_", ""})
    EXPECT_EQ(group_coordinate(other), -1) << other;
}

TEST(EventKind, EventsByWhatTheirProfilerSays) {
  struct Row {
    EventWords words;
    Kind kind;
  };
  for (const Row& r : {Row{{"some_kernel", "kernel", "", "", ""}, Kind::other},
                       {{"ampere_bf16_s16816gemm_bf16_128x128", "kernel", "", "", ""}, Kind::product},
                       {{"pytorch_flash::flash_fwd_kernel", "kernel", "", "", ""}, Kind::attention},
                       {{"triton_poi_fused_add_0", "kernel", "", "", ""}, Kind::pointwise},
                       {{"multi_tensor_apply_kernel FusedAdamMathFunctor", "kernel", "", "", ""}, Kind::optimizer},
                       {{"qkv", "kernel", "forward", "", "gemm/output bf16"}, Kind::forward},
                       {{"qkv", "kernel", "backward", "", "gemm/input_gradient bf16"}, Kind::backward},
                       {{"qkv", "kernel", "backward", "", "gemm/output bf16"}, Kind::recompute},
                       {{"update", "kernel", "step", "", ""}, Kind::optimizer},
                       {{"ncclDevKernel_AllReduce_Sum_f32", "kernel", "", "tensor", ""}, Kind::tensor},
                       {{"ncclDevKernel_SendRecv", "kernel", "", "", ""}, Kind::communication},
                       {{"Memcpy HtoD", "gpu_memcpy", "", "", ""}, Kind::copy},
                       {{"nccl:all_reduce", "gpu_user_annotation", "", "", ""}, Kind::host},
                       {{"ProfilerStep#5", "gpu_user_annotation", "", "", ""}, Kind::host},
                       {{"Context Sync", "cuda_sync", "", "", ""}, Kind::wait},
                       {{"aten::mm", "cpu_op", "", "", ""}, Kind::host},
                       {{"aten::mm", "Operator", "", "", ""}, Kind::host},
                       {{"hipLaunchKernel", "hip_runtime", "", "", ""}, Kind::host},
                       {{"ampere_bf16_s16816gemm", "Kernel", "", "", ""}, Kind::product},
                       {{"forward-compute", "forward-compute", "", "", ""}, Kind::forward},
                       {{"backward-compute", "", "", "", ""}, Kind::backward},
                       {{"forward-recv", "forward-recv", "", "", ""}, Kind::pipeline},
                       {{"forward-send-backward-recv", "", "", "", ""}, Kind::pipeline},
                       {{"grads-reduce-scatter", "", "", "", ""}, Kind::data},
                       {{"layernorm-grads-all-reduce", "", "", "", ""}, Kind::tensor},
                       {{"all-grads-sync", "", "", "", ""}, Kind::data},
                       {{"non-tensor-parallel-grads-all-reduce", "", "", "", ""}, Kind::tensor},
                       {{"conditional-embedder-grads-all-reduce", "", "", "", ""}, Kind::pipeline},
                       {{"optimizer-clip-main-grad", "", "", "", ""}, Kind::optimizer},
                       {{"forward-looking", "", "", "", ""}, Kind::other},
                       {{"gc", "gc", "", "", ""}, Kind::other},
                       {{"wait for stage 1", "wait", "", "", ""}, Kind::wait}})
    EXPECT_EQ(kind_of_event(r.words), r.kind) << r.words.name;
}
