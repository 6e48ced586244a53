#pragma once

#include <optional>

#include "models/cost/kernel_laws.h"
#include "sim/kernels/kernel_rows.h"

namespace orrery {

// A measured product, as the law of products takes it.
struct ProductRow {
  Gemm product;
  bool eight_bit = false, cached = false;
  OperandCast cast;
  double measured = 0;
};
struct AttentionRow {
  FlashAttention attention;
  double measured = 0;
};

// Returns nothing for a row that is no product, or no attention.
std::optional<ProductRow> product_row(const KernelRow& row, const Gpu& gpu);
std::optional<AttentionRow> attention_row(const KernelRow& row);

inline Seconds time_of(const ProductRow& row, const Gpu& gpu, const KernelRates& rates, const ProductLaw& law) {
  return product_time(row.product, row.eight_bit, row.cached, row.cast, gpu, rates, law);
}
inline Seconds time_of(const AttentionRow& row, const Gpu& gpu, const KernelRates& rates, const AttentionLaw& law) {
  return attention_time(row.attention, gpu, rates, law);
}

// Returns the time of a row by the laws of its GPU; nothing if there are none for it, or their time is not finite and
// positive.
std::optional<Seconds> time_by_laws(const KernelRow& row, const Gpu& gpu, const KernelLaws& laws);

// Whether the laws are fitted to rows like this one: causal attention and products in 16 and 8 bits, of the frameworks
// that the families name.
bool is_fitted(const KernelRow& row, const KernelLaws& laws);
bool is_used_to_fit(const KernelRow& row,
                    const KernelLaws& laws);  // and whether it is one of those, which no judging uses
inline bool is_attention(const KernelRow& row) { return row.kind.starts_with("attention"); }

}  // namespace orrery
