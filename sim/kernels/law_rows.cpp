#include "sim/kernels/law_rows.h"

#include <algorithm>
#include <cmath>

#include "sim/kernels/fit_narrow.h"

namespace orrery {
namespace {

// How many copies of a layer a benchmark calls in turn, so that weights come from memory unless all copies fit into the
// L2 cache: TensorRT-LLM's up to five, until they exceed it; vLLM's and SGLang's six, SGLang's with the other operand
// (NVIDIA aiconfigurator 095f58a, collector/helper.py and collector/*/collect_gemm.py, which measured the rows).
constexpr double kCopiesOfTrtllm = 5, kCopiesOfOthers = 6;
bool cached_weights(const KernelRow& row, const Gemm& g, double width, const Gpu& gpu) {
  const double weights = width * static_cast<double>(g.n) * static_cast<double>(g.k);
  const double cache = held_in_cache(gpu);
  if (row.framework == "trtllm") return std::min(kCopiesOfTrtllm, std::ceil(cache / weights)) * weights <= cache;
  const double other = row.framework == "sglang" ? width * static_cast<double>(g.m) * static_cast<double>(g.k) : 0;
  return kCopiesOfOthers * (weights + other) <= cache;
}

// The cast of an operand, which is in the time of a measured product. TensorRT-LLM's scale of a whole tensor is found
// before anything is cast: it reads two bytes of an element twice and writes one, and its smallest takes as long as
// four kernels (8.6 us on B200 for 1 x 32 elements, rows computescale, where the smallest rows scale_matrix take 1.8 us
// and the start of a fitted product 2.1 us). Others scale rows or blocks in one kernel, which reads two and writes one.
OperandCast cast_of(const KernelRow& row) {
  return row.framework == "trtllm" && row.precision == "fp8" ? OperandCast{4, 5} : OperandCast{1, 3};
}

}  // namespace

std::optional<ProductRow> product_row(const KernelRow& row, const Gpu& gpu) {
  if (!row.kind.starts_with("gemm") || row.ops.empty()) return std::nullopt;
  const Op& op = row.ops.back();
  const Gemm* g = std::get_if<Gemm>(&op.work);
  if (g == nullptr || op.precision == Precision::nvfp4) return std::nullopt;
  ProductRow r{.product = *g, .eight_bit = op.precision == Precision::fp8, .measured = row.measured};
  r.cached = cached_weights(row, *g, r.eight_bit ? 1 : 2, gpu);
  if (r.eight_bit && !gpu.tflops.contains("fp8")) return std::nullopt;
  if (r.eight_bit) r.cast = cast_of(row);
  return r;
}

std::optional<AttentionRow> attention_row(const KernelRow& row) {
  if (row.ops.size() != 1) return std::nullopt;
  const FlashAttention* a = std::get_if<FlashAttention>(&row.ops.front().work);
  if (a == nullptr || a->direction != Direction::forward || a->cached > 0 || a->merges) return std::nullopt;
  return AttentionRow{*a, row.measured};
}

std::optional<Seconds> time_by_laws(const KernelRow& row, const Gpu& gpu, const KernelLaws& laws) {
  const auto rates = laws.rates.find(row.gpu);
  if (rates == laws.rates.end()) return std::nullopt;
  if (const auto time = time_of_narrow(row, gpu, laws)) return time;
  const auto usable = [](Seconds time) { return std::isfinite(time) && time > 0 ? std::optional(time) : std::nullopt; };
  if (const auto* family = family_of(laws.products, row.gpu)) {
    const auto product = product_row(row, gpu);
    if (product && (product->eight_bit ? rates->second.fp8 : rates->second.bf16) > 0)
      return usable(time_of(*product, gpu, rates->second, family->law));
  }
  if (const auto* family = family_of(laws.attention, row.gpu)) {
    const auto attention = attention_row(row);
    if (attention && rates->second.attention > 0) return usable(time_of(*attention, gpu, rates->second, family->law));
  }
  return std::nullopt;
}

bool is_used_to_fit(const KernelRow& row, const KernelLaws& laws) { return !is_judged(row) && is_fitted(row, laws); }

bool is_fitted(const KernelRow& row, const KernelLaws& laws) {
  const auto is_one_of = [&](const auto* family) {
    return family != nullptr && row.framework == family->framework &&
           (family->kernels.empty() ||
            std::find(family->kernels.begin(), family->kernels.end(), row.kernel) != family->kernels.end());
  };
  if (row.kind == "gemm, sustained") return false;
  const bool wide = row.precision == "bfloat16" || row.precision == "half" || row.precision == "float16";
  if (row.kind.starts_with("gemm"))
    return (wide || row.precision == "fp8") && is_one_of(family_of(laws.products, row.gpu));
  return row.kind == "attention, causal" && wide && is_one_of(family_of(laws.attention, row.gpu));
}

}  // namespace orrery
