#include "models/cost/kernel_time.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/cost/few_rows.h"
#include "models/cost/generation_figures.h"

namespace orrery {

int kernels_of(const Work& work, const Profile& profile) {
  const int all = kernels_of(work);
  if (!profile.generates) return all;
  // The kernel that rotates queries and keys writes keys and values to the cache too.
  const auto* cast = std::get_if<Cast>(&work);
  const bool fused = (cast != nullptr && !cast->own_kernel) || std::holds_alternative<Residual>(work) ||
                     std::holds_alternative<SoftCap>(work);
  // A recurrence over a prompt is a chain of Triton kernels (flash-linear-attention, gated_delta_rule/chunk.py).
  return fused ? 0 : std::holds_alternative<Scan>(work) ? all : std::min(1, all);
}

namespace {

bool linear(const Gemm& g) { return g.heads == 0; }

Precision storage_precision(Precision p) { return is_eight_bit(p) ? Precision::bf16 : p; }

struct KernelTime {
  const Op& op;
  Bytes width;
  const Gpu& gpu;
  const Profile& profile;
  std::string_view attention;

  double bandwidth() const {
    return gpu.memory_GBps * 1e9 * (profile.generates ? generation_figures().memory_part : profile.memory.fraction);
  }
  // Returns the least time of a matrix product that moves this many bytes of operands and result. A product with few
  // rows is bound by reading its weights from memory, not by its FLOPs.
  Seconds memory_time(double bytes) const {
    const double start = profile.generates ? generation_figures().product_start_us * kMicrosecond : 0;
    return start + bytes / bandwidth();
  }

  // Returns the part of the time of a result's memory traffic that is not hidden behind a product's arithmetic. A tile
  // writes its result, and reads the values that the result is added to, when its product is done, and all tiles of a
  // wave do so at the same time.
  Seconds exposed_result(double elements, Bytes bytes, bool accumulate) const {
    return profile.gemm.exposed_result * elements * static_cast<double>(bytes) * (accumulate ? 2 : 1) / bandwidth();
  }

  // Returns the time in which a multiprocessor turns a tile's stored weights into operands of the product: two
  // instructions a weight, the conversion of the code and the product with the scale (Kim et al. 2022, 2211.10017,
  // section 3.3: whole numbers become fp16 by bit operations on several at a time). Every tile of the result converts
  // the weights that it reads, so that a product with more rows converts them more often. Its time is hidden behind
  // the memory's where the product has few rows. fp32's peak counts two operations an instruction.
  Seconds conversion(const WeightFormat& format, double weights) const {
    if (reads_codes(format, op.precision)) return 0;
    constexpr double kInstructions = 2;
    return 2 * kInstructions * weights / (peak_flops(gpu, Precision::fp32) / gpu.sms);
  }

  // Returns the rows of a tile. Kernels that widen weights are made for few rows, by steps of the tensor cores' 16
  // (Frantar et al. 2024, Marlin, 2408.11743, section 3.3). Products in fp32 run on CUDA cores, in tiles from 32 x 32
  // on (the names of cuBLAS's kernels: sgemm_32x32_sliced1x4).
  std::int64_t rows_of(const Tile& tile, const Gemm& g) const {
    constexpr std::int64_t kTensorCores = 16, kCudaCores = 32;
    const bool fp32 = op.precision == Precision::fp32;
    if (!fp32 && reads_codes(g.weights, op.precision)) return tile.rows;
    const std::int64_t step = fp32 ? kCudaCores : kTensorCores;
    return std::min<std::int64_t>(tile.rows, ceil_div(g.m * g.pieces, step) * step);
  }

  // Returns the part of their peak that products of eight bits and fewer reach, over the tiles' efficiency.
  double narrow_part() const {
    if (!is_eight_bit(op.precision)) return 1;
    return profile.gemm.narrow_gain * (op.precision == Precision::nvfp4 ? profile.gemm.four_bit_part : 1);
  }

  // Returns the time of a product. Its tiles are spread over the GPU's multiprocessors in waves; a partly filled last
  // wave costs between its share of a complete wave and a complete wave (the profile's `smoothing`).
  Seconds product(const Gemm& g, const Tile& tile, std::int64_t splits, double peak, double fraction) const {
    const double tiles =
        static_cast<double>(ceil_div(g.m * g.pieces, tile.rows) * ceil_div(g.n, tile.columns) * g.batch * splits);
    const double waves = tiles / gpu.sms;
    const double smooth = profile.gemm.smoothing;
    const double counted = smooth * std::max(1.0, waves) + (1 - smooth) * std::ceil(waves);
    const double k = static_cast<double>(ceil_div(g.k, splits));
    const double flops = 2.0 * static_cast<double>(rows_of(tile, g)) * static_cast<double>(tile.columns) * k;
    double rate = peak / gpu.sms * tile.efficiency;
    rate *= fraction;
    const double partial = splits == 1 ? 0
                                       : profile.memory.start_us * kMicrosecond +
                                             8.0 * static_cast<double>(splits * g.m * g.n * g.batch) / bandwidth();
    const double pieces = static_cast<double>(g.pieces);
    const double converted = conversion(g.weights, static_cast<double>(tile.columns) * k);
    return counted * (profile.gemm.prologue_us * kMicrosecond + flops / rate + converted) / pieces + partial;
  }

  // Returns the bytes of a product's operands and result. An element in NVFP4 takes half a byte, and 16 elements share
  // a scale of one byte.
  double bytes_of(const Gemm& g, bool eight_bit) const {
    const double bytes = cost_of(g, eight_bit ? 1 : width).bytes;
    if (op.precision != Precision::nvfp4 || !eight_bit || !profile.generates) return bytes;
    const std::int64_t narrow = g.m + (g.weights.narrow() ? 0 : g.n);
    return bytes - static_cast<double>(g.k * narrow) * static_cast<double>(g.batch) * (1 - 0.5625);
  }

  // Returns the time of the products of linear layers that have the same input and run one after another.
  Seconds one_by_one(const Gemm& g) const {
    Gemm first = g, other = g;
    first.apart = other.apart = 1;
    const auto outputs = g.role == Gemm::Role::weight_gradient  ? &Gemm::m
                         : g.role == Gemm::Role::input_gradient ? &Gemm::k
                                                                : &Gemm::n;
    first.*outputs -= (g.apart - 1) * g.apart_outputs;
    other.*outputs = g.apart_outputs;
    assert(first.*outputs > 0 && other.*outputs > 0);
    return (*this)(first) + static_cast<double>(g.apart - 1) * (*this)(other);
  }

  // Returns the least time of a product of generated text: what it takes with as many rows as laws of few rows are for.
  Seconds least_by_law(Gemm g) const {
    if (!profile.generates || g.m < kFewRows) return 0;
    g.m = kFewRows - 1;
    return by_law(g).value_or(0);
  }

  // Returns the time of a product of generated text with few rows by a law that is fitted to such products.
  std::optional<Seconds> by_law(const Gemm& g) const {
    if (profile.narrow_products && has_narrow_product_law(g, op.precision))
      return narrow_product_time(g, gpu, *profile.narrow_products);
    if (!profile.products || !has_product_law(g, op.precision)) return std::nullopt;
    const auto& [rates, law] = *profile.products;
    const bool eight_bit = is_eight_bit(op.precision);
    if (eight_bit && rates.fp8 == 0) return std::nullopt;
    return product_time(g, eight_bit, false, {}, gpu, rates, law);
  }

  Seconds operator()(const Gemm& g) const {
    if (g.apart > 1) return one_by_one(g);
    if (const auto time = by_law(g)) return *time;
    const bool eight_bit = linear(g) && is_eight_bit(op.precision);
    const double peak = peak_flops(gpu, linear(g) ? op.precision : storage_precision(op.precision));
    const double fraction = (g.batch > 1 ? profile.gemm.batched_fraction : 1) * (eight_bit ? narrow_part() : 1);
    Seconds best = std::numeric_limits<double>::max();
    for (const Tile& tile : profile.gemm.tiles) {
      for (const std::int64_t splits : {1, 2, 4, 8}) best = std::min(best, product(g, tile, splits, peak, fraction));
    }
    const double elements = static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.batch);
    // For a linear layer's product, the part of the time to write the result that arithmetic does not hide is added. It
    // is not added for the products of unfused attention, whose measured rate already includes it.
    if (linear(g)) best += exposed_result(elements, g.result_bytes, g.accumulate);
    return std::max({best, memory_time(bytes_of(g, eight_bit)), least_by_law(g)});
  }

  // Returns the time of the products of all experts of a layer. Whether they run as one kernel per expert on several
  // streams or as one grouped kernel, together they fill the multiprocessors, so they are timed as one batched product.
  // A grouped kernel reaches the rate of a single product; streams of kernels do not (grouped_fraction).
  Seconds operator()(const GroupedGemm& g) const {
    if (const ExpertLaw* law = law_of(profile.experts, op.precision, g.weights))
      return experts_time(g, op.precision, gpu, *law);
    const std::int64_t rows = std::max<std::int64_t>(1, ceil_div(g.rows, g.groups));
    const bool weights = g.role == Gemm::Role::weight_gradient, input = g.role == Gemm::Role::input_gradient;
    const Gemm one = {.m = weights ? g.out : rows,
                      .n = input || weights ? g.in : g.out,
                      .k = weights ? rows
                           : input ? g.out
                                   : g.in,
                      .batch = g.groups,
                      .result_bytes = g.result_bytes,
                      .weights = g.weights};
    const double fraction = (g.one_kernel ? 1 : profile.gemm.grouped_fraction) * narrow_part();
    Seconds best = std::numeric_limits<double>::max();
    for (const Tile& tile : profile.gemm.tiles)
      best = std::min(best, product(one, tile, 1, peak_flops(gpu, op.precision), fraction));
    const double elements = static_cast<double>(one.m) * static_cast<double>(one.n) * static_cast<double>(one.batch);
    best += exposed_result(elements, g.result_bytes, g.accumulate);
    const double part = !profile.generates || !is_eight_bit(op.precision) ? 1
                        : op.precision == Precision::nvfp4                ? 0.28
                                                                          : 0.5;
    const double read =
        g.weights.narrow() ? static_cast<double>(weight_bytes(g.weights, g.groups * g.out, g.in, g.groups)) : 0;
    return std::max(best, memory_time(read + part * (cost_of(g, width).bytes - read)));
  }

  // Returns the time of Muon's orthogonalization of all matrices; each Newton-Schulz iteration has three matrix
  // products.
  Seconds operator()(const Orthogonalize& o) const {
    const std::int64_t m = std::min(o.rows, o.columns), n = std::max(o.rows, o.columns);
    const auto time = [&](std::int64_t columns, std::int64_t inner) {
      return (*this)(Gemm{.m = m, .n = columns, .k = inner, .result_bytes = width});
    };
    return static_cast<double>(o.iterations * o.matrices) * (time(m, n) + time(m, m) + time(n, m));
  }

  double eight_bit_gain(const EightBitGain& gain, bool forward) const {
    if (op.precision == Precision::mxfp8) return forward ? gain.block_forward : gain.block_backward;
    return forward ? gain.tensor_forward : gain.tensor_backward;
  }

  Seconds attention_time(const FlashAttention& a, double flops, double keys, std::int64_t head_dim) const {
    const AttentionKernel& kernel = find_attention(profile, attention);
    const AttentionHead head = head_of(kernel, head_dim);
    const bool forward = a.direction == Direction::forward;
    const double dropout = !a.drops ? 1 : forward ? kernel.forward_dropout : kernel.backward_dropout;
    const double rate = peak_flops(gpu, storage_precision(op.precision)) * dropout *
                        (a.eight_bit ? eight_bit_gain(head.eight_bit_gain, forward) : 1) *
                        (forward ? head.forward_fraction : head.backward_fraction);
    const double more = (forward ? head.forward_keys : head.backward_keys) / keys;
    return kernel.start_us * kMicrosecond + flops * (1 + more) / rate;
  }

  // Returns the heads for which a kernel computes sparse attention over those that it is given: FlashMLA's, which the
  // stacks of served models call, has tiles of 64 heads on Hopper and of 128 on Blackwell, filled with zeros (vLLM,
  // v1/attention/backends/mla/flashmla_sparse.py, of prompts and of new tokens; SGLang, _forward_flashmla_sparse).
  double padded_heads(const FlashAttention& a) const {
    const std::int64_t arch = gpu.compute_capability / 10, tile = arch == 9 ? 64 : arch == 10 ? 128 : 1;
    if (!profile.generates || a.chosen == 0) return 1;
    return static_cast<double>(ceil_div(a.heads, tile) * tile) / static_cast<double>(a.heads);
  }

  Seconds operator()(const FlashAttention& a) const {
    if (a.pairs == 0)  // no query of the op attends to any key
      return find_attention(profile, attention).start_us * kMicrosecond;
    // Backward in 8 bits does not skip the keys before a sliding window, which forward and backward in 16 bits do:
    // 1.87 ms in mxfp8, 1.49 ms in fp8 and 0.44 ms in bf16 with a window of 128 of 4,096 tokens, and times that grow
    // with the square of the sequence (GB300, cuDNN 9.24: NVIDIA/cudnn-frontend,
    // benchmark/sdpa_benchmark_training/results, gpt_oss, 2026-06).
    FlashAttention walked = a;
    if (a.eight_bit && a.direction == Direction::backward) walked.window = 0;
    const Cost cost = cost_of(walked, width);
    const Seconds time = attention_time(a, cost.flops * padded_heads(a), keys_per_query(walked), a.head_dim) +
                         merged_bytes(a, width) / bandwidth();
    // With few queries and a long key/value cache, attention is bound by reading the cache from memory.
    const double start = generation_figures().attention_start_us * kMicrosecond;
    if (a.cached == 0) return time;
    return std::max({time, start + cost.bytes / bandwidth(), a.on_cuda_cores ? start + vector_time(cost.flops) : 0});
  }

  // Returns the time of attention on CUDA cores, which multiply in fp32 what they convert from the cache's format.
  Seconds vector_time(double flops) const {
    return flops / (generation_figures().vector_part * peak_flops(gpu, Precision::fp32));
  }

  Seconds start(int kernels) const { return profile.memory.start_us * kMicrosecond * kernels; }

  Seconds operator()(const Convolution& c) const {
    return start(kernels_of(c)) +
           cost_of(c, width).bytes / (gpu.memory_GBps * 1e9 * profile.recurrence.convolution_fraction);
  }
  Seconds operator()(const Scan& s) const {
    const Cost cost = cost_of(s, width);
    const double rate = peak_flops(gpu, storage_precision(op.precision)) * profile.recurrence.scan_fraction;
    return start(kernels_of(s)) + std::max(cost.flops / rate, cost.bytes / bandwidth());
  }
  // Returns the time of the index of sparse attention, which scores all tokens and chooses those that attention reads.
  // The scores are products of many small heads, which run at the rate of batched products; choosing the tokens with
  // the highest scores reads and writes the scores in memory. Generation keeps the keys in fp8, in which the products
  // are then made (DeepSeek-V3.2-Exp, inference/kernel.py, fp8_index) on GPUs that have it.
  Seconds operator()(const IndexScores& i) const {
    const Cost cost = cost_of(i, width);
    const bool eight_bit = i.cached_row > 0 && gpu.tflops.contains("fp8");
    const double rate = peak_flops(gpu, eight_bit ? Precision::fp8 : storage_precision(op.precision)) *
                        profile.gemm.tiles.front().efficiency * profile.gemm.batched_fraction;
    return start(kernels_of(i)) + cost.flops / rate + cost.bytes / bandwidth();
  }
  Seconds operator()(const Collective&) const { return 0; }
  Seconds operator()(const Transfer&) const { return 0; }

  template <typename MemoryBound>
  Seconds operator()(const MemoryBound& work) const {
    const Cost cost = cost_of(work, width);
    const double vector_peak = peak_flops(gpu, Precision::fp32) * profile.vector_fraction;
    return profile.memory.start_us * kMicrosecond * kernels_of(op.work, profile) +
           std::max(cost.bytes / bandwidth(), cost.flops / vector_peak);
  }
};

// Turns the formula for an op into a law (Law in measured_times.h), by which the time of a size that was not measured
// follows from measured samples of other sizes. An op type whose formula needs more than sizes and an amount of work
// has no law.
struct LawOf {
  // computes the time of the op as the plan has it, with the plan's data type
  KernelTime planned;
  // computes the time of the same op in the data type in which calibration measures it (16 or 32 bits)
  KernelTime sampled;

  // The measured samples are products that ran as one kernel each. The law (from measured sizes to other sizes)
  // therefore computes the time of a sample without pieces, tiles and products apart, even if the planned product has
  // them.
  Law operator()(const Gemm& g) const {
    if (!linear(g)) return {};
    const auto of_sample = [time = sampled, one = g](const std::vector<double>& sizes, double) mutable {
      one.m = std::llround(sizes[0]);
      one.n = std::llround(sizes[1]);
      one.k = std::llround(sizes[2]);
      one.pieces = one.tiles = one.apart = 1;
      one.weights = {};
      return time(one);
    };
    return {of_sample, planned(g)};
  }
  // The samples of attention were measured without dropout and with keys for every query. The law (from measured sizes
  // to other sizes) therefore computes the time of a sample without dropout, even if the planned attention has dropout.
  Law operator()(FlashAttention a) const {
    const Seconds task = planned(a);
    a.drops = false;
    const auto of_sample = [time = sampled, a](const std::vector<double>& sizes, double flops) {
      return time.attention_time(a, flops, sizes[2] / 2, std::llround(sizes[3]));
    };
    return {of_sample, task};
  }
  Law operator()(const GroupedGemm&) const { return {}; }
  Law operator()(const Convolution&) const { return {}; }
  Law operator()(const Scan&) const { return {}; }
  Law operator()(const IndexScores&) const { return {}; }
  Law operator()(const PlaceCopy&) const { return {}; }
  Law operator()(const Orthogonalize&) const { return {}; }
  Law operator()(const Collective&) const { return {}; }
  Law operator()(const Transfer&) const { return {}; }
  template <typename MemoryBound>
  Law operator()(const MemoryBound& work) const {
    const Seconds start = planned.profile.memory.start_us * kMicrosecond * kernels_of(work);
    const auto of_bytes = [start, bandwidth = planned.bandwidth()](double bytes) { return start + bytes / bandwidth; };
    return {[of_bytes](const std::vector<double>&, double bytes) { return of_bytes(bytes); },
            of_bytes(cost_of(work, planned.width).bytes)};
  }
};

}  // namespace

Seconds kernel_time(const Op& op, Bytes width, const Gpu& gpu, const Profile& profile, std::string_view attention) {
  if (kernels_of(op.work) == 0 || op.within) return 0;
  const bool formulas = has_formulas(profile);
  const bool sampled = !profile.measured.ops.empty();
  Op plain;
  plain.precision = storage_precision(op.precision);
  const LawOf law_of{{op, width, gpu, profile, attention}, {plain, width, gpu, profile, attention}};
  const Law law = formulas && sampled ? std::visit(law_of, op.work) : Law();
  const auto measured = !sampled                ? std::nullopt
                        : profile.rest_built_in ? covered_time(profile.measured, op.work, width, law)
                                                : measured_time(profile.measured, op.work, width, law);
  if (measured) return *measured;
  if (!formulas && !moves(op)) {
    throw Error(fmt::format("{}: has no sample of '{}' ({}); calibrate again, or choose another strategy", profile.name,
                            shape_of(op.work, width).kind, op.name));
  }
  return std::visit(KernelTime{op, width, gpu, profile, attention}, op.work);
}

}  // namespace orrery
