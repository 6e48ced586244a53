#include "sim/kernels/fit_experts.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "models/cost/generation_figures.h"
#include "models/cost/kernel_time.h"
#include "models/cost/profile.h"
#include "sim/kernels/fit_numbers.h"

namespace orrery {
namespace {

// The laws with which the search begins: kernels with long tiles, with short ones, and ones that wait for their loop.
constexpr ExpertLaw kBegins[] = {
    {.fraction = 0.6, .start_us = 8, .half_rows = 20, .prologue_us = 0.5, .depth_us = 0.1, .passed_ns = 1},
    {.fraction = 0.3, .start_us = 5, .half_rows = 5, .prologue_us = 1.5, .depth_us = 0.3, .passed_ns = 5},
    {.fraction = 0.5, .start_us = 3, .half_rows = 80, .prologue_us = 0.2, .depth_us = 0.8, .passed_ns = 4}};

Seconds time_of_others(const KernelRow& row, const Gpu& gpu, const Profile& profile) {
  Seconds sum = 0;
  for (const Op& op : row.ops) {
    if (!std::holds_alternative<GroupedGemm>(op.work)) sum += kernel_time(op, 2, gpu, profile, "");
  }
  return sum;
}

Seconds time_of_products(const KernelRow& row, const Gpu& gpu, const ExpertLaw& law) {
  Seconds sum = 0;
  for (const Op& op : row.ops) {
    if (const auto* g = std::get_if<GroupedGemm>(&op.work)) sum += experts_time(*g, op.precision, gpu, law);
  }
  return sum;
}

struct ExpertRow {
  const KernelRow* row;
  Seconds others;
};

// Rows of one kind of GPU and format, of few tokens or of many.
struct ExpertSample {
  Gpu gpu;
  double peak_share;  // that the law's fraction is of
  std::vector<ExpertRow> rows;

  double error(const ExpertLaw& law) const {
    ExpertLaw here = law;
    here.fraction *= peak_share;
    double sum = 0;
    for (const ExpertRow& r : rows) sum += off(r.others + time_of_products(*r.row, gpu, here), r.row->measured);
    return sum / static_cast<double>(rows.size());
  }
};

ExpertSample sample_of(const std::vector<const KernelRow*>& all, ExpertFormat format, const KernelLaws& laws) {
  const Gpu gpu = find_gpu(all.front()->gpu);
  ExpertSample sample{.gpu = gpu, .peak_share = peak_share(format, gpu, laws), .rows = {}};
  const Profile profile = generating(find_profile(sample.gpu));
  const std::size_t n = std::min(kFitRowsOfExperts, all.size());
  for (std::size_t i = 0; i < n; ++i) {
    const KernelRow* row = all[i * all.size() / n];
    sample.rows.push_back({row, time_of_others(*row, sample.gpu, profile)});
  }
  return sample;
}

std::optional<ExpertFormat> format_of(const KernelRow& row) {
  for (const Op& op : row.ops) {
    if (const auto* g = std::get_if<GroupedGemm>(&op.work)) return expert_format(op.precision, g->weights);
  }
  return {};
}

using SamplesByFormat = std::map<ExpertFormat, std::vector<ExpertSample>>;

SamplesByFormat samples_of(const KernelRows& rows, const KernelFamily<ExpertLaws>& family, const KernelLaws& laws) {
  std::map<std::tuple<ExpertFormat, std::string, std::string>, std::vector<const KernelRow*>> alike;
  for (const KernelRow& row : rows.rows) {
    const auto format = is_used_to_fit(row, family) ? format_of(row) : std::nullopt;
    if (format) alike[{*format, row.gpu, row.kind}].push_back(&row);
  }
  SamplesByFormat samples;
  for (const auto& [key, all] : alike) {
    const auto format = std::get<ExpertFormat>(key);
    samples[format].push_back(sample_of(all, format, laws));
  }
  return samples;
}

ExpertLaw fitted(const std::vector<ExpertSample>& samples) {
  const auto error = [&](const ExpertLaw& law) {
    double sum = 0;
    for (const ExpertSample& s : samples) sum += s.error(law);
    return sum;
  };
  std::optional<ExpertLaw> best;
  for (ExpertLaw law : kBegins) {
    for (int again = 0; again < 2; ++again) minimise(law, free_numbers(kExpertKeys), error);
    if (!best || error(law) < error(*best)) best = law;
  }
  return best.value();
}

}  // namespace

static bool holds(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

static bool is_of(const KernelRow& row, const KernelFamily<ExpertLaws>& family) {
  const bool known = row.framework == family.framework || holds(family.kernels, row.kernel);
  return row.kind.starts_with("experts") && known && holds(family.gpus, row.gpu);
}

static bool is_chosen(const KernelRow& row, const KernelFamily<ExpertLaws>& family) {
  return family.kernels.empty() || holds(family.kernels, row.kernel) ||
         holds(family.kernels, row.kernel + "/" + row.precision);
}

bool is_used_to_fit(const KernelRow& row, const KernelFamily<ExpertLaws>& family) {
  return is_of(row, family) && is_chosen(row, family) && !is_judged(row);
}

bool is_used_to_fit_experts(const KernelRow& row, const KernelLaws& laws) {
  return std::any_of(laws.experts.begin(), laws.experts.end(),
                     [&](const auto& family) { return is_used_to_fit(row, family); });
}

bool is_passed_over(const KernelRow& row, const KernelLaws& laws) {
  return std::any_of(laws.experts.begin(), laws.experts.end(),
                     [&](const auto& family) { return is_of(row, family) && !is_chosen(row, family); });
}

Seconds time_of_experts(const KernelRow& row, const Gpu& gpu, const ExpertLaw& law) {
  return time_of_others(row, gpu, generating(find_profile(gpu))) + time_of_products(row, gpu, law);
}

void fit_experts(const KernelRows& rows, const KernelLaws& laws, KernelFamily<ExpertLaws>& family) {
  for (const auto& [format, samples] : samples_of(rows, family, laws)) family.law[format] = fitted(samples);
}

}  // namespace orrery
