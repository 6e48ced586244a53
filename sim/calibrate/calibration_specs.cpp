#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "sim/calibrate/calibration.h"

namespace orrery {
namespace {

// A model and a micro-batch, which together determine the shapes of the matrix products.
struct Shape {
  std::int64_t hidden, heads, kv_heads, feed_forward, vocab, sequence, micro_batch;
  std::int64_t head_dim = 0;  // head dimension of the model; 0: hidden / heads
};

// Shapes of models for CPU ranks. Hidden sizes and numbers of tokens together form a grid; the MLP widths and numbers
// of heads vary from shape to shape.
constexpr Shape kShapes[] = {
    {64, 2, 1, 176, 512, 32, 2},   {64, 4, 4, 256, 256, 64, 4},     {64, 2, 2, 96, 2048, 256, 4},
    {128, 4, 2, 352, 1024, 64, 1}, {128, 2, 2, 512, 384, 128, 2},   {128, 4, 4, 256, 512, 128, 8},
    {256, 8, 4, 704, 256, 32, 2},  {256, 4, 4, 1024, 512, 128, 2},  {256, 8, 2, 640, 1024, 256, 4},
    {512, 8, 8, 1408, 512, 64, 1}, {512, 16, 4, 2048, 1024, 64, 4}, {512, 8, 4, 1024, 256, 256, 3},
};
// Indices in kShapes of the two shapes of a quick calibration. The specs made for these shapes have every kind of op
// and transfer.
constexpr std::size_t kQuick[] = {3, 4};
// Number of steps of a quick calibration: the first three warm up, and the middle half of the rest counts.
constexpr std::int64_t kQuickSteps = 10;

// Limits of the product of hidden size and tokens of a micro-batch, by which the number of steps to run is chosen: a
// step below kShortStep takes about a tenth of a second, a step above kLongStep a second or more.
constexpr std::int64_t kShortStep = std::int64_t{128} * 256, kLongStep = std::int64_t{512} * 512;

// Shapes for GPUs: complete layers, and the parts of larger layers that tensor parallelism gives to one rank.
constexpr Shape kGpuShapes[] = {
    {1024, 16, 8, 2816, 32000, 1024, 2},   {1024, 16, 16, 4096, 50304, 2048, 4},
    {1536, 12, 4, 4096, 32000, 2048, 1},   {2048, 16, 16, 5632, 32000, 2048, 2},
    {2048, 16, 4, 8192, 128256, 4096, 1},  {2048, 32, 8, 5632, 16000, 8192, 1},
    {2560, 20, 20, 6912, 50304, 1024, 8},  {3072, 24, 8, 8192, 64128, 2048, 2},
    {4096, 32, 8, 14336, 32000, 4096, 1},  {4096, 16, 4, 7168, 16000, 4096, 1, 128},
    {4096, 32, 32, 11008, 32000, 2048, 4}, {4096, 32, 8, 14336, 32000, 8192, 2},
    {5120, 40, 10, 13824, 32000, 4096, 2}, {8192, 16, 2, 7168, 32000, 4096, 1, 128},
    {8192, 64, 8, 28672, 32000, 4096, 1},
};
constexpr std::int64_t kGpuSteps = 14;

// Types of layers, as parts of a spec's text. Together they contain every op in which layers of models differ.
constexpr std::string_view kLlama = "gated: true, norm: rmsnorm, positions: rope, bias: false";
constexpr std::string_view kGpt =
    "gated: false, norm: layernorm, positions: learned, bias: true, tied_embeddings: true";
constexpr std::string_view kDropout = "gated: false, norm: layernorm, positions: learned, bias: true, dropout: 0.1";

constexpr std::string_view kExposed = "overlap: {gradient_reduce: false, parameter_gather: false, pipeline: false}";

CalibrationSpec spec(const std::string& name, const Shape& s, std::string_view kind, std::int64_t layers,
                     std::int64_t ranks, const std::string& strategy) {
  CalibrationSpec c;
  c.name = fmt::format("{}: hidden {}, {} tokens", name, s.hidden, s.sequence * s.micro_batch);
  c.text = fmt::format(
      "model: {{name: calibration, layers: {}, hidden: {}, heads: {}, kv_heads: {}, {}feed_forward: {}, vocab: {}, "
      "{}}}\n"
      "sequence: {}\ncluster: {{node: localhost}}\ngpus: {}\nsoftware: {{profile: orrery, batched_p2p: false}}\n"
      "strategy: {{precision: fp32, gradient_precision: fp32, micro_batch: {}, {}}}\n",
      layers, s.hidden, s.heads, s.kv_heads, s.head_dim > 0 ? fmt::format("head_dim: {}, ", s.head_dim) : "",
      s.feed_forward, s.vocab, kind, s.sequence, ranks, s.micro_batch, strategy);
  const std::int64_t size = s.hidden * s.sequence * s.micro_batch;
  c.steps = size <= kShortStep ? 24 : size <= kLongStep ? 16 : 10;
  return c;
}

// The key global_batch of a spec in which each of `data` data-parallel ranks has `micro_batches` micro-batches.
std::string batch(const Shape& s, std::int64_t data, std::int64_t micro_batches) {
  return fmt::format("global_batch: {}, ", s.micro_batch * data * micro_batches);
}

// Adds to a calibration the specs with all kinds of compute for one shape of model. Gradients are reduced in one
// transfer or in buckets, never at the same time as compute.
void add_compute(std::vector<CalibrationSpec>& specs, const Shape& s, std::int64_t ranks, std::size_t number) {
  const double buckets[] = {0, 0.25, 1, 4};
  const std::string data =
      fmt::format("{}data: {}, bucket_MiB: {}, {}", batch(s, ranks, 2), ranks, buckets[number % 4], kExposed);
  specs.push_back(spec("llama", s, kLlama, 1, ranks, data));
  specs.push_back(spec("gpt", s, kGpt, 1, ranks, data + ", attention: unfused, sharding: zero1"));
  if (number % 3 == 0) specs.push_back(spec("dropout", s, kDropout, 1, ranks, data));
}

// Adds to a calibration, for one shape of model, specs with tensor, context and pipeline parallelism and with sharded
// states, so that the transfers of all these are measured.
void add_transfers(std::vector<CalibrationSpec>& specs, const Shape& s, std::int64_t ranks) {
  if (s.heads % ranks == 0 && s.kv_heads % ranks == 0) {
    const std::string tensor = fmt::format("{}tensor: {}, {}", batch(s, 1, 2), ranks, kExposed);
    specs.push_back(spec("tensor", s, kLlama, 2, ranks, tensor + ", sequence_parallel: false"));
    specs.push_back(spec("sequence", s, kLlama, 2, ranks, tensor + ", sequence_parallel: true"));
  }
  if (s.heads % ranks == 0 && s.sequence % (2 * ranks) == 0) {
    const std::string context = fmt::format("{}context: {}, {}", batch(s, 1, 2), ranks, kExposed);
    specs.push_back(spec("ring", s, kLlama, 2, ranks, context));
    if (s.kv_heads % ranks == 0 || ranks % s.kv_heads == 0)
      specs.push_back(spec("heads", s, kLlama, 2, ranks, context + ", context_kind: ulysses"));
  }
  specs.push_back(
      spec("pipeline", s, kLlama, ranks, ranks, fmt::format("{}pipeline: {}, {}", batch(s, 1, 4), ranks, kExposed)));
  specs.push_back(spec("shards", s, kLlama, 2, ranks,
                       fmt::format("{}data: {}, sharding: zero3, {}", batch(s, ranks, 2), ranks, kExposed)));
}

// Adds to a calibration, for one shape of model, specs with experts that are distributed over the ranks, and specs with
// offloaded states or activations, in which the host of every rank copies while the rank computes.
void add_families(std::vector<CalibrationSpec>& specs, const Shape& s, std::int64_t ranks) {
  const std::string data = fmt::format("{}data: {}, {}", batch(s, ranks, 2), ranks, kExposed);
  const auto experts = [&](std::int64_t count, std::int64_t top_k, std::int64_t width, const char* more) {
    return fmt::format("{}, moe: {{experts: {}, top_k: {}, feed_forward: {}{}}}", kLlama, count, top_k, width, more);
  };
  specs.push_back(spec("experts", s, experts(2 * ranks, 2, s.feed_forward / 2, ""), 2, ranks,
                       fmt::format("{}, expert: {}", data, ranks)));
  specs.push_back(spec("capacity", s, experts(4 * ranks, 1, s.feed_forward, ", capacity_factor: 1.25"), 1, ranks,
                       fmt::format("{}, expert: {}, sharding: zero1", data, ranks)));
  specs.push_back(
      spec("offload", s, kLlama, 2, ranks, data + ", sharding: zero2, offload: {optimizer: cpu, gradients: cpu}"));
  specs.push_back(spec("parameters", s, kLlama, 2, ranks,
                       data + ", sharding: zero3, offload: {optimizer: cpu, gradients: cpu, parameters: cpu}"));
  specs.push_back(spec("disks", s, kLlama, 2, ranks,
                       data + ", sharding: zero3, offload: {optimizer: nvme, gradients: nvme, parameters: nvme}"));
  specs.push_back(spec("activations", s, kLlama, 3, ranks, data + ", offload: {activations: cpu}"));
}

// Adds to a calibration, for one shape of model, specs in which transfers run at the same time as compute.
void add_overlapped(std::vector<CalibrationSpec>& specs, const Shape& s, std::int64_t ranks) {
  const std::string data = fmt::format("{}data: {}", batch(s, ranks, 2), ranks);
  specs.push_back(spec("overlapped", s, kLlama, 4, ranks, data + ", bucket_MiB: 1"));
  specs.push_back(spec("overlapped shards", s, kLlama, 4, ranks, data + ", sharding: zero3"));
}

CalibrationSpec gpu_spec(const std::string& name, const Shape& s, std::string_view kind, const std::string& strategy) {
  CalibrationSpec c = spec(name, s, kind, 1, 1, strategy);
  const std::string cpu = "precision: fp32, gradient_precision: fp32";
  const bool given = strategy.find("gradient_precision") != std::string::npos;
  c.text.replace(c.text.find(cpu), cpu.size(), given ? "precision: bf16" : "precision: bf16, gradient_precision: fp32");
  c.steps = kGpuSteps;
  return c;
}

// The FLOP/s that a Hopper GPU is assumed to reach in the bf16 matrix products of a calibration step, fewer than the
// 690 to 820e12 that models/profiles/h200.json has for large products on an H200.
constexpr double kProductRate = 600e12;
constexpr double kMostCalibrationSteps = 2000;

}  // namespace

std::int64_t settled_steps(const Plan& plan, double settle) {
  double flops = 1;
  for (TaskId t = plan.classes[0].begin; t < plan.classes[0].end; ++t) {
    const Op& op = plan.op_of(t);
    if (std::holds_alternative<Gemm>(op.work)) flops += shape_of(op.work, plan.element_bytes).amount;
  }
  return static_cast<std::int64_t>(std::min(kMostCalibrationSteps, settle * kProductRate / flops));
}

std::vector<CalibrationSpec> calibration_specs(std::int64_t ranks, bool quick) {
  std::vector<CalibrationSpec> specs;
  for (std::size_t i = 0; i < std::size(kShapes); ++i) {
    if (quick && std::find(std::begin(kQuick), std::end(kQuick), i) == std::end(kQuick)) continue;
    add_compute(specs, kShapes[i], ranks, i);
    if (ranks > 1 && i % 3 == 1) add_transfers(specs, kShapes[i], ranks);
    if (ranks > 1 && i % 3 == 1 && !quick) add_families(specs, kShapes[i], ranks);
    if (ranks > 1 && i % 6 == 4) add_overlapped(specs, kShapes[i], ranks);
  }
  // This shape has few tokens and many weights, so that its specs have the largest messages, of 64 MiB and more.
  const Shape wide = {1024, 8, 8, 4096, 2048, 32, 1};
  if (!quick && ranks > 1) {
    const std::string data = fmt::format("{}data: {}, {}", batch(wide, ranks, 1), ranks, kExposed);
    specs.push_back(spec("wide", wide, kLlama, 1, ranks, data + ", bucket_MiB: 1000000"));
    specs.push_back(spec("wide shards", wide, kLlama, 1, ranks, data + ", sharding: zero1, bucket_MiB: 1000000"));
    specs.push_back(spec("wide buckets", wide, kLlama, 1, ranks, data + ", sharding: zero1, bucket_MiB: 16"));
  }
  if (quick) {
    for (CalibrationSpec& c : specs) c.steps = kQuickSteps;
  }
  return specs;
}

std::vector<CalibrationSpec> gpu_calibration_specs(bool quick) {
  std::vector<CalibrationSpec> specs;
  for (std::size_t i = 0; i < std::size(kGpuShapes); i += quick ? 3 : 1) {
    const Shape& s = kGpuShapes[i];
    const std::string strategy = batch(s, 1, 2) + "data: 1";
    specs.push_back(gpu_spec("llama", s, kLlama, strategy));
    if (i % 3 == 0) specs.push_back(gpu_spec("gpt", s, kGpt, strategy));
    if (i % 6 == 3) specs.push_back(gpu_spec("unfused", s, kGpt, strategy + ", attention: unfused"));
    // These specs have weight gradients that are written and not accumulated (as in FSDP), casts of parameters (which
    // FSDP makes with one rank too), recomputed ops, sums and updates over bf16 gradients, and dropout.
    if (i % 3 == 1) specs.push_back(gpu_spec("units", s, kLlama, strategy + ", sharding: fsdp, recompute: full"));
    if (i % 4 == 2) specs.push_back(gpu_spec("narrow", s, kLlama, strategy + ", gradient_precision: bf16"));
    if (i % 6 == 1) specs.push_back(gpu_spec("dropout", s, kDropout, strategy));
  }
  return specs;
}

}  // namespace orrery
