#include "sim/cost/costs.h"

#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/cost/nccl/model.h"
#include "models/load/load_spec.h"
#include "models/planner/make_plan.h"
#include "models/spec/stragglers.h"
#include "sim/engine/simulate.h"
#include "tests/sim/cost/priced.h"

namespace orrery {
namespace {

// Stages 0 and 1 lie on one node, 2 and 3 on the other; with virtual stages the last also sends to the first, and
// BPipe's stages evict activations to their mirror images.
TEST(Costs, BothEndsOfAHopCostWhatTheHopDoes) {
  for (const char* strategy : {"tensor: 4, pipeline: 4, data: 1, virtual_stages: 2, global_batch: 8",
                               "tensor: 4, pipeline: 4, data: 1, global_batch: 8",
                               "tensor: 4, pipeline: 4, data: 1, schedule: bpipe, global_batch: 8",
                               "tensor: 2, pipeline: 8, data: 1, virtual_stages: 2, global_batch: 8"}) {
    const Priced p(strategy);
    for (std::uint32_t m = 0; m < p.plan.matches.size(); ++m) {
      const auto members = p.plan.members_of(m);
      const auto node = [&](TaskId t) { return p.plan.classes[p.plan.slot_of(t)].representative / 8; };
      for (const TaskId t : members) ASSERT_EQ(p.of(t).duration, p.of(members.front()).duration) << strategy;
      if (std::holds_alternative<Transfer>(p.plan.op_of(members.front()).work)) {
        ASSERT_EQ(p.of(members.front()).nic > 0, node(members.front()) != node(members.back())) << strategy;
      }
    }
  }
}

// NCCL keeps buffers for every communicator that a rank has: the pipeline's too, beside those of its groups.
TEST(Costs, CommunicatorsAddTheirBuffers) {
  const std::string alone = ", micro_batch: 1, global_batch: 2, clip: 0", one = "node: dgx-h100, nodes: 1";
  const auto bytes = [&](const std::string& degrees) {
    return Priced(degrees + alone, "megatron-core", one).costs.nccl_bytes;
  };
  const Bytes pipeline = bytes("pipeline: 2, data: 1").front(), tensor = bytes("tensor: 2, data: 1").front();
  EXPECT_EQ(bytes("data: 1").front(), 0);
  EXPECT_GT(pipeline, 0);
  EXPECT_GT(tensor, 0);
  EXPECT_EQ(bytes("pipeline: 2, tensor: 2, data: 1").front(), pipeline + tensor);
}

TEST(Costs, CudaGraphsIssueForNothing) {
  const Priced p("data: 2, global_batch: 4", "{profile: nanotron, cuda_graphs: true}");
  for (TaskId t = 0; t < p.plan.task_count(); ++t) ASSERT_EQ(p.of(t).issue, 0);
}

// Transfers with user buffers are launched with the product, in as many calls as without them; copies round the ring
// use no multiprocessors.
TEST(Costs, UserBuffersCostNoCallsAndRingsNoMultiprocessors) {
  const auto with = [](const char* overlap) {
    return Priced(std::string("tensor: 4, data: 1, global_batch: 1, overlap: {tensor: ") + overlap + "}",
                  "{profile: megatron-core, layer_us: 0}", "node: dgx-h100, nodes: 1");
  };
  const Priced whole = with("false"), pieces = with("true");
  const auto products = [](const Priced& p) {
    Picoseconds sum = 0;
    for (TaskId t = p.plan.classes[0].begin; t < p.plan.classes[0].end; ++t) {
      if (std::holds_alternative<Gemm>(p.plan.op_of(t).work)) sum += p.of(t).issue - 4'000'000;  // the launch itself
    }
    return sum;
  };
  EXPECT_EQ(products(pieces), products(whole));
  int rings = 0;
  for (TaskId t = pieces.plan.classes[0].begin; t < pieces.plan.classes[0].end; ++t) {
    const auto* c = std::get_if<Collective>(&pieces.plan.op_of(t).work);
    if (c == nullptr || c->group != Dimension::tensor) continue;
    const bool ring = c->kind == CollectiveKind::shift;
    rings += ring ? 1 : 0;
    EXPECT_EQ(pieces.of(t).pressure == 0, ring) << pieces.plan.op_of(t).name;
    EXPECT_EQ(pieces.of(t).issue == 4'000'000, c->algorithm != "library") << pieces.plan.op_of(t).name;
  }
  EXPECT_EQ(rings, 16 * 4 * 3);  // layers, products that gather, ranks but one
}

// Every call of the framework costs the same, a collective's too; compiled code calls nothing.
TEST(Costs, HostPaysPerCall) {
  const std::string strategy = "tensor: 2, data: 1, global_batch: 1";
  const auto with = [&](const char* keys) { return Priced(strategy, std::string("{profile: orrery, ") + keys + "}"); };
  const Priced free = with("call_us: 0"), paid = with("call_us: 10"), compiled = with("call_us: 10, compile: true");
  for (TaskId t = 0; t < free.plan.task_count(); ++t) {
    const int calls = calls_of(free.plan.op_of(t).work);
    ASSERT_EQ(paid.of(t).issue - free.of(t).issue, calls * Picoseconds{10'000'000}) << free.plan.op_of(t).name;
    ASSERT_EQ(compiled.of(t).issue, free.of(t).issue);
  }
}

// The device's launch time beyond the host's own time is recognised by its share of a layer's. The overhead of far
// stages is host time, except where the host runs ahead.
TEST(Costs, FarStagesLeaveTheHostItsPart) {
  const char* strategy = "tensor: 4, pipeline: 4, data: 1, global_batch: 4";
  const auto parts = [&](const std::string& keys) {
    const Costs p =
        Priced(strategy,
               "{profile: nanotron, launch_us: 0, collective_launch_us: 0, call_us: 0, layer_us: 1000, " + keys + "}")
            .costs;
    return std::pair(std::round(p.host_part * 1e6) / 1e6, std::round(p.filling_part * 1e6) / 1e6);
  };
  EXPECT_EQ(parts("host_layer_us: 0, far_stage_layer_us: 0"), std::pair(1.0, 1.0));
  EXPECT_EQ(parts("host_layer_us: 0, far_stage_layer_us: 250"), std::pair(1.0, 0.5));
  EXPECT_EQ(parts("host_layer_us: 600, far_stage_layer_us: 0"), std::pair(0.6, 0.6));
  EXPECT_EQ(parts("host_layer_us: 600, far_stage_layer_us: 250"), std::pair(0.8, 0.3));
  EXPECT_EQ(parts("cuda_graphs: true"), std::pair(1.0, 1.0));
}

// Each node but the first of a tensor group adds a quarter to what far stages cost a layer for each tensor rank.
TEST(Costs, FarStagesCostMoreOverSeveralNodes) {
  const auto beside_own = [](int tensor) {
    const Priced p(fmt::format("tensor: {}, pipeline: 2, global_batch: 8", tensor),
                   "{profile: nanotron, launch_us: 0, collective_launch_us: 0, call_us: 0, layer_us: 1000, "
                   "host_layer_us: 0, far_stage_layer_us: 250}",
                   "gpu: h100-sxm, gpus_per_node: 4, nodes: 8, nics: 4, nic_Gbps: 400");
    return std::round(1e6 * (1 / p.costs.filling_part - 1)) / 1e6;
  };
  EXPECT_EQ(beside_own(4), 0.25 * 4);
  EXPECT_EQ(beside_own(8), 0.25 * 8 * 1.25);
  EXPECT_EQ(beside_own(16), 0.25 * 16 * 1.75);
}

// A stack that calls the reduction after the weight gradient has it begin after that, though the reduction does not
// read the weight gradient.
TEST(Costs, CollectivesWaitForWhatWasCalledBeforeThem) {
  const auto exposed = [](const char* overlaps) {
    const Spec spec = parse_spec(
        "model: {name: wide, layers: 4, hidden: 8192, heads: 64, feed_forward: 32768, vocab: 32000}\nsequence: 2048\n"
        "cluster: {node: dgx-h100, nodes: 1}\n"
        "software: {profile: orrery, tensor_reduce_overlaps_wgrad: " +
            std::string(overlaps) + "}\nstrategy: {tensor: 8, data: 1, sequence_parallel: false, global_batch: 1}\n",
        "case");
    const Plan plan = make_plan(spec);
    return seconds(simulate(plan, costs_of(plan, spec, find_profile(spec.cluster.gpu)).timing).step_time);
  };
  EXPECT_GT(exposed("false"), exposed("true"));
}

// A host calls one op after another: no op waits for all of its layer's host time.
TEST(Costs, ALayersHostTimeIsSpreadOverItsOps) {
  const Priced p("data: 1, global_batch: 1", "{profile: orrery, layer_us: 1000, launch_us: 0}");
  for (const Block& block : p.plan.blocks) {
    if (block.role != BlockRole::layer) continue;
    for (const std::uint32_t op : block.forward) {
      EXPECT_GT(p.costs.timing.rows[0][op].issue, 0);
      EXPECT_LT(p.costs.timing.rows[0][op].issue, 200'000'000);
    }
  }
}

// With blocking receives, a pipeline whose host is slower than its device takes m + p - 1 times the host time of a
// micro-batch; without them, host time hides in the bubble.
TEST(Costs, BlockingReceivesKeepHostTimeOutOfBubbles) {
  const auto step = [](const char* blocking) {
    const Priced p(
        "tensor: 4, pipeline: 4, data: 1, global_batch: 4",
        std::string("{profile: orrery, layer_us: 1000, launch_us: 0, collective_launch_us: 0, blocking_receives: ") +
            blocking + "}");
    return seconds(simulate(p.plan, p.costs.timing).step_time);
  };
  EXPECT_NEAR(step("true") / ((4 + 3) * 4 * 2 * 1e-3), 1, 0.08);
  EXPECT_LT(step("false"), 0.85 * step("true"));
}

// Autograd makes the calls of backward, which cost their share of a call; recomputed ops are called as in forward.
TEST(Costs, CallsOfAutogradTakeTheirShare) {
  const auto with = [](const char* share) {
    return Priced("data: 1, global_batch: 1, recompute: full",
                  std::string("{profile: orrery, call_us: 10, launch_us: 0, backward_call_share: ") + share + "}");
  };
  const Priced whole = with("1"), half = with("0.5");
  int halved = 0, again = 0;
  for (TaskId t = 0; t < whole.plan.task_count(); ++t) {
    const Op& op = whole.plan.op_of(t);
    const bool backward = op.phase == Phase::backward && !op.recompute;
    ASSERT_EQ((backward ? 2 : 1) * half.of(t).issue, whole.of(t).issue) << op.name;
    halved += backward ? 1 : 0;
    again += op.recompute ? 1 : 0;
  }
  EXPECT_GT(halved, 0);
  EXPECT_GT(again, 0);
}

// A host that waits for its device before every forward cannot run ahead into the next micro-batch: each takes the host
// time of its forward calls, then the device time of its backward.
TEST(Costs, BlockingForwardsEndRunningAhead) {
  const auto step = [](const char* blocking, int micro_batches) {
    const Priced p(
        fmt::format("data: 1, micro_batch: 2, global_batch: {}", 2 * micro_batches),
        fmt::format("{{profile: orrery, call_us: 60, backward_call_share: 0, blocking_forwards: {}}}", blocking));
    return seconds(simulate(p.plan, p.costs.timing).step_time);
  };
  const Seconds each = (step("true", 8) - step("true", 4)) / 4;
  EXPECT_NEAR((step("true", 2) - step("true", 1)) / each, 1, 0.01);
  EXPECT_LT((step("false", 8) - step("false", 4)) / 4, 0.9 * each);
}

// One call for all parameters: each tensor goes round the ring by itself.
TEST(Costs, CoalescedTensorsGoRoundOneByOne) {
  const auto reduction = [](const Priced& p) {
    for (TaskId t = 0; t < p.plan.task_count(); ++t) {
      const auto* c = std::get_if<Collective>(&p.plan.op_of(t).work);
      if (c != nullptr && c->kind == CollectiveKind::reduce_scatter) return std::pair(*c, seconds(p.of(t).duration));
    }
    return std::pair(Collective{}, Seconds{0});
  };
  const std::string strategy = "data: 16, global_batch: 16, sharding: zero1, bucket_MiB: 1000000";
  const auto [many, slow] = reduction(Priced(strategy, "{profile: nanotron, shards_all_reduce: false}"));
  const auto [one, fast] =
      reduction(Priced(strategy, "{profile: nanotron, shards_all_reduce: false, sharded_in_one_bucket: false}"));
  EXPECT_EQ(many.bytes, one.bytes);
  EXPECT_EQ(one.tensors, 1);
  EXPECT_GE(many.tensors, 16 * 6);  // each of 16 layers has four matrices and two norms
  const NcclModel model = nccl_model(nccl_topology(Priced(strategy, "nanotron").spec.cluster, 2, 8));
  EXPECT_NEAR(slow - fast, static_cast<double>(many.tensors - 1) * nccl_next_tensor(model, many.kind), 1e-9);
}

// Layers that run again in backward are called again; every rank of the job may be waited for once a step.
TEST(Costs, HostPaysForRecomputedLayersAndForRanks) {
  const auto issue = [](const std::string& strategy, const std::string& software) {
    const Priced p(strategy, "{profile: orrery, step_us: 0, " + software + "}");
    Picoseconds sum = 0;
    for (TaskId t = 0; t < p.plan.classes[0].end; ++t) sum += p.of(t).issue;
    return sum;
  };
  const std::string full = "data: 1, global_batch: 1, recompute: full", two = "data: 16, global_batch: 16";
  EXPECT_EQ(issue(full, "layer_us: 10") - issue(full, "layer_us: 0"), 3 * 16 * 10'000'000);
  EXPECT_EQ(issue(two, "rank_us: 10") - issue(two, "rank_us: 0"), 16 * 10'000'000);
}

// A job waits for the slowest of its GPUs, which differ in the speed of products; the profile includes the spread
// within one node.
TEST(Costs, ProductsOfLargeJobsTakeLonger) {
  const Priced node("data: 8, global_batch: 16"), job("data: 16, global_batch: 32");
  const double slower = slowest_beyond_a_node(find_profile(job.spec.cluster.gpu).spread, 16);
  EXPECT_GT(slower, 1.001);
  int products = 0, streams = 0;
  ASSERT_EQ(node.plan.ops.size(), job.plan.ops.size());
  for (std::size_t i = 0; i < job.plan.ops.size(); ++i) {
    const auto one = static_cast<double>(node.costs.timing.rows[0][i].duration);
    const auto all = static_cast<double>(job.costs.timing.rows[0][i].duration);
    if (std::holds_alternative<Gemm>(job.plan.ops[i].work)) {
      EXPECT_GT(all, one);
      EXPECT_LE(all, slower * one + 1);
      ++products;
    }
    if (std::holds_alternative<Normalize>(job.plan.ops[i].work)) {
      EXPECT_EQ(all, one);
      ++streams;
    }
  }
  EXPECT_GT(products * streams, 0);
}

// A stack's release of NCCL decides what its collectives may be.
TEST(Costs, OldReleasesOfNcclHaveNoLl128) {
  const auto with_ll128 = [](const std::string& software) {
    const Priced p("tensor: 8, data: 2, micro_batch: 8, global_batch: 16", software);
    return std::count_if(p.costs.notes.begin(), p.costs.notes.end(),
                         [](const TransferNote& n) { return n.algorithm.ends_with("/ll128"); });
  };
  EXPECT_GT(with_ll128("{profile: megatron-core, nccl_minor: 20}"), 0);
  EXPECT_EQ(with_ll128("{profile: megatron-core, nccl_minor: 4}"), 0);
}

TEST(Costs, BlockingLaunchesLeaveTheDeviceIdleInBetween) {
  const Priced free("data: 2, global_batch: 4", "{profile: orrery, blocking_launches: false}");
  const Priced blocking("data: 2, global_batch: 4", "{profile: orrery, blocking_launches: true}");
  for (TaskId t = 0; t < free.plan.task_count(); ++t) {
    ASSERT_EQ(blocking.of(t).issue, 0);
    ASSERT_EQ(blocking.of(t).duration, free.of(t).duration + free.of(t).issue);
  }
}

// Between nodes a share and a gather over NVLink are faster than the whole over one NIC.
TEST(Costs, ScatteredSendsCrossNodesOnce) {
  const std::string stages =
      "tensor: 4, sequence_parallel: false, pipeline: 4, data: 1, micro_batch: 4, global_batch: 8";
  const Priced whole(stages, "{profile: orrery, scattered_sends: none}");
  const Priced forward(stages, "{profile: orrery, scattered_sends: activations}");
  const Priced both(stages, "{profile: orrery, scattered_sends: all}");
  int hops = 0;
  for (TaskId t = 0; t < whole.plan.task_count(); ++t) {
    const Op& op = whole.plan.op_of(t);
    if (!std::holds_alternative<Transfer>(op.work) || whole.of(t).nic == 0) continue;
    ++hops;
    ASSERT_LT(both.of(t).duration, whole.of(t).duration);
    ASSERT_EQ(forward.of(t).duration < whole.of(t).duration, op.phase == Phase::forward);
  }
  EXPECT_GT(hops, 0);
  const Priced sharded("tensor: 4, sequence_parallel: true, pipeline: 4, data: 1, global_batch: 8",
                       "{profile: orrery, scattered_sends: all}");
  const Priced plain("tensor: 4, sequence_parallel: true, pipeline: 4, data: 1, global_batch: 8",
                     "{profile: orrery, scattered_sends: none}");
  for (TaskId t = 0; t < plain.plan.task_count(); ++t) ASSERT_EQ(sharded.of(t).duration, plain.of(t).duration);
}

// A server's NIC carries what all workers push: Psi g W / (S B), B what a NIC reaches; until the workers' own NICs are
// what is full.
TEST(Costs, ServersAreAsSlowAsTheirNics) {
  // bandwidth reached on a NIC of 400 Gb/s, models/cost/nccl/point_to_point.cpp
  constexpr double kReached = 0.98 * 48e9;
  const auto push = [](int servers, const char* colocated) {
    const Priced p(fmt::format("data: 16, global_batch: 16, bucket_MiB: 100000, sharding: parameter-server, "
                               "parameter_server: {{servers: {}, colocated: {}}}",
                               servers, colocated),
                   "megatron-core", "node: dgx-h100, nodes: 66");
    for (TaskId t = 0; t < p.plan.task_count(); ++t) {
      const auto* c = std::get_if<Collective>(&p.plan.op_of(t).work);
      if (c == nullptr || c->kind != CollectiveKind::push) continue;
      EXPECT_GT(p.of(t).nic, 0U);
      return std::pair(seconds(p.of(t).duration), static_cast<double>(c->bytes));
    }
    return std::pair(0.0, 0.0);
  };
  for (const int servers : {1, 2, 4, 8, 16}) {
    const auto [time, bytes] = push(servers, "false");
    EXPECT_NEAR(time, bytes * 16 / servers / kReached, 0.01 * time + 4e-5) << servers;
    // With servers on the workers' machines, half of the workers are near.
    EXPECT_NEAR(push(servers, "true").first, bytes * 8 / servers / kReached, 0.01 * time + 4e-5) << servers;
  }
  const auto [time, bytes] = push(64, "false");
  EXPECT_NEAR(time, bytes / kReached, 0.01 * time + 4e-5);
}

// A chain brings every server's machine the sums of R - 1 others, after the workers' pushes: Psi (W + R - 1) / (S B),
// and R - 1 hops.
TEST(Costs, ChainsCostAHopForEveryCopy) {
  constexpr double kReached = 0.98 * 48e9;
  const auto service = [](int copies, CollectiveKind kind) {
    const Priced p(fmt::format("data: 16, clip: 0, global_batch: 16, bucket_MiB: 100000, sharding: parameter-server, "
                               "parameter_server: {{servers: 4, colocated: false, replicas: {}}}",
                               copies),
                   "megatron-core", "node: dgx-h100, nodes: 6");
    for (TaskId t = 0; t < p.plan.task_count(); ++t) {
      const auto* c = std::get_if<Collective>(&p.plan.op_of(t).work);
      if (c != nullptr && c->kind == kind) return std::pair(seconds(p.of(t).duration), static_cast<double>(c->bytes));
    }
    return std::pair(0.0, 0.0);
  };
  for (const int copies : {1, 2, 3, 4}) {
    const auto [push, bytes] = service(copies, CollectiveKind::push);
    EXPECT_NEAR(push, bytes * (16 + copies - 1) / 4 / kReached, 0.01 * push + 4e-5 * copies) << copies;
    EXPECT_EQ(service(copies, CollectiveKind::pull), service(1, CollectiveKind::pull));
  }
  EXPECT_GT(service(4, CollectiveKind::push).first, service(1, CollectiveKind::push).first);
}

// A straggler's compute takes as many times as long; nothing else does.
TEST(Costs, StragglersComputeSlowly) {
  const std::string strategy = "data: 4, global_batch: 4";
  Spec spec = parse_spec(
      "model: {name: small, layers: 2, hidden: 256, heads: 4, feed_forward: 512, vocab: 1000}\nsequence: 256\n"
      "cluster: {node: dgx-h100, nodes: 1, stragglers: [{rank: 2, slowdown: 3}]}\nstrategy: {data: 4, global_batch: "
      "4}\n",
      "case");
  const Plan plan = make_plan(spec);
  const Costs costs = costs_of(plan, spec, find_profile(spec.cluster.gpu));
  ASSERT_EQ(plan.classes.size(), 2U);
  for (std::uint32_t op = 0; op < plan.ops.size(); ++op) {
    const OpTiming &slow = costs.timing.of(1, op), &other = costs.timing.of(0, op);
    const double times = plan.ops[op].lane == LaneKind::compute ? 3 : 1;
    EXPECT_NEAR(static_cast<double>(slow.duration), times * static_cast<double>(other.duration), 4)
        << plan.ops[op].name;
    EXPECT_EQ(slow.issue, other.issue);
  }
}

// Parameters trained in eight bits are gathered in eight bits: half the bytes of bf16.
TEST(Costs, EightBitParametersAreGatheredAsSuch) {
  const auto gathered = [](const std::string& software) {
    const Priced p("data: 16, global_batch: 16, sharding: zero1, precision: fp8", software);
    Bytes sum = 0;
    for (TaskId t = 0; t < p.plan.task_count(); ++t) {
      const Op& op = p.plan.op_of(t);
      if (op.name == "gather parameters") sum += std::get<Collective>(op.work).bytes;
    }
    return sum;
  };
  EXPECT_EQ(2 * gathered("{profile: orrery, gathers_eight_bit: true}"),
            gathered("{profile: orrery, gathers_eight_bit: false}"));
}

// On EFA only the job's nodes count, not further nodes of the cluster.
TEST(Costs, NodesThatAJobDoesNotUseSlowNoCollective) {
  const std::string strategy = "tensor: 1, data: 16, sharding: zero3, global_batch: 16";
  const Priced two(strategy, "megatron-core", "node: aws-p5, nodes: 2"),
      many(strategy, "megatron-core", "node: aws-p5, nodes: 64");
  ASSERT_EQ(two.plan.task_count(), many.plan.task_count());
  for (TaskId t = 0; t < two.plan.task_count(); ++t) ASSERT_EQ(many.of(t).duration, two.of(t).duration);
}

}  // namespace
}  // namespace orrery
