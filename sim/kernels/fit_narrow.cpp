#include "sim/kernels/fit_narrow.h"

#include <algorithm>
#include <vector>

#include "models/cost/generation_figures.h"
#include "models/cost/kernel_time.h"
#include "models/cost/profile.h"
#include "sim/kernels/fit_numbers.h"

namespace orrery {
namespace {

struct NarrowRow {
  Gpu gpu;
  Gemm product;
  Seconds cast = 0, measured = 0;
};

const Gemm& product_of(const KernelRow& row) { return std::get<Gemm>(row.ops.back().work); }

Seconds cast_time(const KernelRow& row, const Gpu& gpu, const Profile& profile) {
  const Gemm& g = product_of(row);
  Op op;
  op.work = Cast{.elements = g.m * g.k, .from = 2, .to = 1, .own_kernel = true};
  return kernel_time(op, 2, gpu, profile, "");
}

void add_rows_of(const std::string& name, const std::vector<const KernelRow*>& all, std::vector<NarrowRow>& rows) {
  const Gpu gpu = find_gpu(name);
  const Profile profile = generating(find_profile(gpu));
  const std::size_t n = std::min(kFitNarrowRows, all.size());
  for (std::size_t i = 0; i < n; ++i) {
    const KernelRow& row = *all[i * all.size() / n];
    rows.push_back({gpu, product_of(row), cast_time(row, gpu, profile), row.measured});
  }
}

}  // namespace

bool is_of(const KernelRow& row, const KernelFamily<NarrowProductLaw>& family) {
  return row.kind == "gemm, few rows" && row.precision == "nvfp4" && row.framework == family.framework &&
         std::find(family.gpus.begin(), family.gpus.end(), row.gpu) != family.gpus.end();
}

bool is_used_to_fit_narrow(const KernelRow& row, const KernelLaws& laws) {
  return !is_judged(row) &&
         std::any_of(laws.narrow.begin(), laws.narrow.end(), [&](const auto& family) { return is_of(row, family); });
}

Seconds time_of_narrow(const KernelRow& row, const Gpu& gpu, const NarrowProductLaw& law) {
  return cast_time(row, gpu, generating(find_profile(gpu))) + narrow_product_time(product_of(row), gpu, law);
}

std::optional<Seconds> time_of_narrow(const KernelRow& row, const Gpu& gpu, const KernelLaws& laws) {
  const auto family =
      std::find_if(laws.narrow.begin(), laws.narrow.end(), [&](const auto& one) { return is_of(row, one); });
  if (family == laws.narrow.end()) return std::nullopt;
  return time_of_narrow(row, gpu, family->law);
}

void fit_narrow(const KernelRows& rows, KernelFamily<NarrowProductLaw>& family) {
  std::vector<NarrowRow> fitted;
  for (const std::string& gpu : family.gpus) {
    std::vector<const KernelRow*> all;
    for (const KernelRow& row : rows.rows)
      if (row.gpu == gpu && is_of(row, family) && !is_judged(row)) all.push_back(&row);
    if (!all.empty()) add_rows_of(gpu, all, fitted);
  }
  if (fitted.empty()) return;
  const auto error = [&](const NarrowProductLaw& law) {
    double sum = 0;
    for (const NarrowRow& r : fitted) sum += off(r.cast + narrow_product_time(r.product, r.gpu, law), r.measured);
    return sum;
  };
  for (int again = 0; again < 2; ++again) minimise(family.law, free_numbers(kNarrowKeys), error);
}

}  // namespace orrery
