#include "sim/memory/replay.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/load/load_spec.h"
#include "sim/predict/predict.h"

namespace orrery {
namespace {

// A plan that does not fit is replayed as if it did: its peak says how much is missing, whatever the device holds.
TEST(Memory, PeakDoesNotDependOnWhetherItFits) {
  for (const char* strategy : {"data: 1, global_batch: 2", "data: 4, sharding: fsdp, global_batch: 8",
                               "tensor: 2, pipeline: 2, data: 1, global_batch: 4"}) {
    const Spec spec = parse_spec(
        std::string("model: {name: small, layers: 4, hidden: 1024, heads: 16, feed_forward: 4096, vocab: 32000}\n"
                    "sequence: 1024\ncluster: {node: dgx-h100, nodes: 1}\nsoftware: megatron-core\nstrategy: {") +
            strategy + "}\n",
        "case");
    const Prediction p = predict(spec);
    const auto peak_of = [&](double share) {
      const Bytes room = static_cast<Bytes>(share * static_cast<double>(p.report.memory.peak));
      return replay_memory(p.plan, p.trace, {.capacity = room, .workspace = 32 << 20});
    };
    const auto roomy = peak_of(100);
    EXPECT_FALSE(roomy.front().out_of_memory);
    for (const double share : {0.0, 0.1, 0.3, 0.6, 0.9}) {
      const auto tight = peak_of(share);
      for (std::size_t s = 0; s < tight.size(); ++s) {
        const auto peak = static_cast<double>(roomy[s].peak);
        EXPECT_NEAR(static_cast<double>(tight[s].peak), peak, 0.05 * peak) << strategy << " room " << share;
      }
    }
    EXPECT_TRUE(peak_of(0.5).front().out_of_memory) << strategy;
  }
}

// On a full device, which gives cached segments back, less memory is reserved when the last micro-batch has ended than
// at the peak; with room to spare nothing is given back, and both are the same.
TEST(Memory, UpdateSeesWhatFullDevicesKeep) {
  const Spec spec = parse_spec(
      "model: {name: small, layers: 8, hidden: 1024, heads: 16, feed_forward: 4096, vocab: 32000}\nsequence: 2048\n"
      "cluster: {node: dgx-h100, nodes: 1}\nsoftware: nanotron\n"
      "strategy: {tensor: 4, pipeline: 2, data: 1, micro_batch: 4, global_batch: 16}\n",
      "case");
  const Prediction p = predict(spec);
  const auto first = [&](Bytes capacity) {
    const MemoryOptions options = {
        .capacity = capacity, .collectives_hold_tensors = true, .moments_by_weight = true, .host_part = 0.1};
    return replay_memory(p.plan, p.trace, options).front();
  };
  const SlotMemory roomy = first(Bytes{1} << 40);
  EXPECT_EQ(roomy.retries, 0);
  EXPECT_EQ(roomy.update_reserved, roomy.peak_reserved);
  const SlotMemory full = first(roomy.peak_reserved - roomy.peak_reserved / 20);
  ASSERT_FALSE(full.out_of_memory);
  EXPECT_GT(full.retries, 0);
  EXPECT_LT(full.update_reserved, full.peak_reserved);
}

// ZeRO-R's defragmentation (1910.02054, section 6.3): inputs that recomputed layers keep, taken between buffers that
// come and go, cut the allocator's segments, and a request fails that is smaller than what is free. Side by side in
// memory taken beforehand they leave room for it. (States are flat here: they cut no segments.)
TEST(Memory, ContiguousPlacementAvoidsFragmentation) {
  struct Case {
    int vocab, micro_batch;
  };
  for (const auto& [vocab, micro_batch] : {Case{50257, 18}, Case{8192, 28}}) {
    const auto memory = [&, v = vocab, b = micro_batch](bool contiguous) {
      const Spec spec = parse_spec(
          fmt::format("model: {{name: gpt-4b, layers: 44, hidden: 2560, heads: 32, feed_forward: 10240, gated: false, "
                      "vocab: {}, positions: learned, norm: layernorm, bias: true, tied_embeddings: true}}\n"
                      "sequence: 1024\ncluster: {{node: dgx-2, nodes: 1}}\nsoftware: {{profile: "
                      "deepspeed-megatron-2021, context_MiB: 500, moments: flat, gradients: flat}}\n"
                      "strategy: {{data: 16, sharding: zero2, micro_batch: {}, precision: fp16, gradient_precision: "
                      "fp16, recompute: full, contiguous_activations: {}}}\n",
                      v, b, contiguous),
          "case");
      return predict(spec).report.memory;
    };
    const MemoryReport scattered = memory(false), contiguous = memory(true);
    const SlotMemory& m = scattered.ranks.front().memory;
    EXPECT_FALSE(scattered.fits) << vocab;
    EXPECT_TRUE(m.out_of_memory);
    EXPECT_LE(m.refused, m.free_then);
    EXPECT_LT(scattered.peak, scattered.usable);
    EXPECT_TRUE(contiguous.fits) << vocab;
    EXPECT_FALSE(contiguous.ranks.front().memory.out_of_memory);
    EXPECT_NEAR(static_cast<double>(contiguous.peak) / static_cast<double>(scattered.peak), 1, 0.01);
  }
}

// MPT-1B with 20 samples a GPU, as MosaicML's llm-foundry trained it on H100: with flash-attention's loss it has room,
// with fp32 logits it has not.
TEST(Memory, LossOnSixteenBitLogitsLeavesRoom) {
  const auto fits = [](const char* on) {
    const Spec spec = parse_spec(
        fmt::format("model: {{name: MPT-1b, layers: 24, hidden: 2048, heads: 16, feed_forward: 8192, gated: false, "
                    "vocab: 50368, positions: learned, norm: layernorm, bias: true, tied_embeddings: true}}\n"
                    "sequence: 2048\ncluster: {{node: dgx-h100, nodes: 8}}\nsoftware: {{profile: pytorch-fsdp, "
                    "fused_cross_entropy: true, fused_loss_on: {}}}\nstrategy: {{data: 64, sharding: fsdp, "
                    "micro_batch: 20, precision: bf16, gradient_precision: fp32}}\n",
                    on),
        "case");
    return predict(spec).report.memory.fits;
  };
  EXPECT_TRUE(fits("logits"));
  EXPECT_FALSE(fits("copy"));
}

// Models that according to DeepSpeed's authors fit V100 GPUs of 32 GB in DGX-2 nodes of 1.5 TB (2101.06840; DeepSpeed's
// post of 2021-03-08 on ZeRO-3 Offload; 2104.07857), and the same models without the technique that makes them fit.
TEST(Memory, PublishedModelsFit) {
  struct Claim {
    const char* shape;
    int nodes, gpus;
    const char* strategy;
    bool fits;
  };
  const Claim claims[] = {
      {"layers: 65, hidden: 4096, feed_forward: 16384, heads: 32", 1, 1, "offload: {optimizer: cpu, gradients: cpu}",
       true},  // 13 B
      {"layers: 65, hidden: 4096, feed_forward: 16384, heads: 32", 1, 1, "offload: {optimizer: none}", false},
      {"layers: 50, hidden: 8192, feed_forward: 32768, heads: 64", 1, 1,
       "sharding: zero3, offload: {optimizer: cpu, gradients: cpu, parameters: cpu, activations: cpu}", true},  // 40 B
      {"layers: 50, hidden: 8192, feed_forward: 32768, heads: 64", 1, 1,
       "offload: {optimizer: cpu, gradients: cpu, activations: cpu}", false},
      {"layers: 128, hidden: 25600, feed_forward: 102400, heads: 160", 16, 256,
       "sharding: zero3, offload: {optimizer: cpu, gradients: cpu, parameters: cpu, activations: cpu, tiling: 4}",
       true},  // 1 T
      {"layers: 128, hidden: 25600, feed_forward: 102400, heads: 160", 16, 256,
       "sharding: zero3, offload: {activations: cpu, tiling: 4}", false},
      {"layers: 160, hidden: 32768, feed_forward: 131072, heads: 256", 32, 512,
       "sharding: zero3, offload: {optimizer: cpu, gradients: cpu, parameters: cpu, activations: cpu, tiling: 4}",
       true},  // 2 T
      {"layers: 160, hidden: 32768, feed_forward: 131072, heads: 256", 16, 256,
       "sharding: zero3, offload: {optimizer: cpu, gradients: cpu, parameters: cpu, activations: cpu, tiling: 4}",
       false},
      {"layers: 128, hidden: 25600, feed_forward: 102400, heads: 160", 1, 16,
       "sharding: zero3, offload: {optimizer: nvme, gradients: nvme, parameters: nvme, activations: cpu, tiling: 4}",
       true},
      {"layers: 128, hidden: 25600, feed_forward: 102400, heads: 160", 1, 16,
       "sharding: zero3, offload: {optimizer: cpu, gradients: cpu, parameters: cpu, activations: cpu, tiling: 4}",
       false},
  };
  for (const Claim& c : claims) {
    const Spec spec = parse_spec(
        fmt::format("model: {{name: gpt, {}, gated: false, vocab: 50257, positions: learned, norm: layernorm, bias: "
                    "true, tied_embeddings: true}}\nsequence: 1024\ncluster: {{node: dgx-2, nodes: {}}}\ngpus: {}\n"
                    "software: deepspeed-megatron-2021\nstrategy: {{micro_batch: 2, precision: fp16, "
                    "gradient_precision: fp16, recompute: full, {}}}\n",
                    c.shape, c.nodes, c.gpus, c.strategy),
        "claim");
    EXPECT_EQ(predict(spec).report.memory.fits, c.fits) << c.shape << ", " << c.gpus << " GPUs, " << c.strategy;
  }
}

}  // namespace
}  // namespace orrery
