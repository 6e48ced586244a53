#include "sim/kernels/fit_experts.h"

#include <algorithm>
#include <map>
#include <vector>

#include "models/cost/kernel_time.h"
#include "models/cost/profile.h"
#include "sim/kernels/fit_numbers.h"

namespace orrery {
namespace {

constexpr int kRounds = 4;  // rounds of the rates and the shape

Seconds time_of_others(const KernelRow& row, const Gpu& gpu, Profile profile) {
  profile.generates = true;
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

// The rows of one kind of GPU in one format.
struct ExpertSample {
  Gpu gpu;
  std::string format;
  std::vector<ExpertRow> rows;

  double error(const ExpertLaw& law) const {
    double sum = 0;
    for (const ExpertRow& r : rows) sum += off(r.others + time_of_products(*r.row, gpu, law), r.row->measured);
    return sum / static_cast<double>(rows.size());
  }
};

std::vector<ExpertSample> samples_of(const KernelRows& rows, const KernelFamily<ExpertLaw>& family) {
  std::map<std::pair<std::string, std::string>, std::vector<const KernelRow*>> by_format;
  for (const KernelRow& row : rows.rows) {
    if (is_used_to_fit(row, family)) by_format[{row.gpu, row.precision}].push_back(&row);
  }
  std::vector<ExpertSample> samples;
  for (const auto& [key, all] : by_format) {
    ExpertSample sample{.gpu = find_gpu(key.first), .format = key.second, .rows = {}};
    const Profile profile = find_profile(sample.gpu);
    const std::size_t n = std::min(kFitRowsOfExperts, all.size());
    for (std::size_t i = 0; i < n; ++i) {
      const KernelRow* row = all[i * all.size() / n];
      sample.rows.push_back({row, time_of_others(*row, sample.gpu, profile)});
    }
    samples.push_back(std::move(sample));
  }
  return samples;
}

double sum_of_errors(const std::vector<ExpertSample>& samples, const ExpertLaw& law) {
  double sum = 0;
  for (const ExpertSample& s : samples) sum += s.error(law);
  return sum;
}

}  // namespace

static bool holds(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

static bool is_of(const KernelRow& row, const KernelFamily<ExpertLaw>& family) {
  return row.kind.starts_with("experts") && row.framework == family.framework && holds(family.gpus, row.gpu);
}

static bool is_chosen(const KernelRow& row, const KernelFamily<ExpertLaw>& family) {
  return family.kernels.empty() || holds(family.kernels, row.kernel) ||
         holds(family.kernels, row.kernel + "/" + row.precision);
}

bool is_used_to_fit(const KernelRow& row, const KernelFamily<ExpertLaw>& family) {
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
  return time_of_others(row, gpu, find_profile(gpu)) + time_of_products(row, gpu, law);
}

void fit_experts(const KernelRows& rows, KernelFamily<ExpertLaw>& family) {
  const std::vector<ExpertSample> samples = samples_of(rows, family);
  if (samples.empty()) return;
  const auto error = [&](const ExpertLaw& law) { return sum_of_errors(samples, law); };
  const auto numbers = free_numbers(kExpertRateKeys);
  const auto fit_rates = [&] {
    for (std::size_t i = 0; i < numbers.size(); i += 2) minimise(family.law, {numbers[i], numbers[i + 1]}, error);
  };
  for (int round = 0; round < kRounds; ++round) {
    fit_rates();
    minimise(family.law, free_numbers(kExpertShapeKeys), error);
  }
  fit_rates();
}

}  // namespace orrery
