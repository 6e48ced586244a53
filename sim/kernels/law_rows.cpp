#include "sim/kernels/law_rows.h"

#include <algorithm>
#include <cmath>

namespace orrery {
namespace {

// How often a benchmark has the same weights, so that they come from memory: TensorRT-LLM's up to five times, until all
// copies exceed the L2 cache; vLLM's and SGLang's six times, SGLang's with the other operand.
bool cached_weights(const KernelRow& row, const Gemm& g, double width, const Gpu& gpu) {
  const double weights = width * static_cast<double>(g.n) * static_cast<double>(g.k);
  const double cache = gpu.l2_MB * 1048576.0;
  if (row.framework == "trtllm") return std::min(5.0, std::ceil(cache / weights)) * weights <= cache;
  const double other = row.framework == "sglang" ? width * static_cast<double>(g.m) * static_cast<double>(g.k) : 0;
  return 6 * (weights + other) <= cache;
}

// TensorRT-LLM's scale of a whole tensor is found before anything is cast: it reads the operand twice, and its smallest
// cast takes as long as four kernels. Others scale rows or blocks, in one kernel.
OperandCast cast_of(const KernelRow& row) {
  return row.framework == "trtllm" && row.precision == "fp8" ? OperandCast{4, 5} : OperandCast{1, 3};
}

}  // namespace

std::optional<ProductRow> product_row(const KernelRow& row, const Gpu& gpu) {
  if (!row.kind.starts_with("gemm") || row.ops.empty()) return std::nullopt;
  const Op& op = row.ops.back();
  const Gemm* g = std::get_if<Gemm>(&op.work);
  if (g == nullptr) return std::nullopt;
  ProductRow r{.product = *g, .eight_bit = op.precision == Precision::fp8, .measured = row.measured};
  r.cached = cached_weights(row, *g, r.eight_bit ? 1 : 2, gpu);
  if (r.eight_bit) r.cast = cast_of(row);
  return r;
}

std::optional<AttentionRow> attention_row(const KernelRow& row) {
  if (row.ops.size() != 1) return std::nullopt;
  const FlashAttention* a = std::get_if<FlashAttention>(&row.ops.front().work);
  if (a == nullptr) return std::nullopt;
  return AttentionRow{*a, row.measured};
}

std::optional<Seconds> time_by_laws(const KernelRow& row, const Gpu& gpu, const KernelLaws& laws) {
  const auto rates = laws.rates.find(row.gpu);
  if (rates == laws.rates.end()) return std::nullopt;
  if (const auto* family = family_of(laws.products, row.gpu)) {
    const auto product = product_row(row, gpu);
    if (product && (product->eight_bit ? rates->second.fp8 : rates->second.bf16) > 0)
      return time_of(*product, gpu, rates->second, family->law);
  }
  if (const auto* family = family_of(laws.attention, row.gpu)) {
    const auto attention = attention_row(row);
    if (attention && rates->second.attention > 0) return time_of(*attention, gpu, rates->second, family->law);
  }
  return std::nullopt;
}

bool is_fitted(const KernelRow& row, const KernelLaws& laws) {
  const auto is_one_of = [&](const auto* family) {
    return family != nullptr && row.framework == family->framework &&
           (family->kernels.empty() ||
            std::find(family->kernels.begin(), family->kernels.end(), row.kernel) != family->kernels.end());
  };
  if (row.kind == "gemm, sustained") return false;
  if (row.kind.starts_with("gemm")) return row.precision != "fp8_block" && is_one_of(family_of(laws.products, row.gpu));
  return row.kind == "attention, causal" && is_one_of(family_of(laws.attention, row.gpu));
}

}  // namespace orrery
