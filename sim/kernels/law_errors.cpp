#include "sim/kernels/law_errors.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/kernels/fit_laws.h"
#include "sim/kernels/law_rows.h"
#include "sim/kernels/quantile.h"
#include "sim/print/table.h"

namespace orrery {
namespace {

struct LawRatio {
  double value = 1, unseen = 0;  // predicted over measured; unseen 0: no other GPU tells of it
  double work = 0;
  bool shared_saw = false;
};

struct LawKey {
  std::string kind, precision, framework, kernel, gpu;
  bool fitted = false;
  auto operator<=>(const LawKey&) const = default;
};

template <class Value>
double middle_of(const std::vector<LawRatio>& ratios, double share, const Value& value) {
  std::vector<double> values;
  for (const LawRatio& r : ratios) {
    if (const std::optional<double> v = value(r)) values.push_back(*v);
  }
  return quantile_of(std::move(values), share);
}

LawErrors law_errors_of(const LawKey& key, const std::vector<LawRatio>& ratios) {
  LawErrors e{.gpu = key.gpu,
              .kind = key.kind,
              .precision = key.precision,
              .framework = key.framework,
              .kernel = key.kernel,
              .fitted = key.fitted,
              .rows = std::ssize(ratios)};
  using Found = std::optional<double>;
  const auto error = [](const LawRatio& r) { return Found(std::abs(r.value - 1)); };
  e.level = middle_of(ratios, 0.5, [](const LawRatio& r) { return Found(r.value); });
  e.error = middle_of(ratios, 0.5, error);
  e.p90 = middle_of(ratios, 0.9, error);
  const double work = middle_of(ratios, 0.5, [](const LawRatio& r) { return Found(r.work); });
  e.small = middle_of(ratios, 0.5, [&](const LawRatio& r) { return r.work < work ? error(r) : Found(); });
  e.large = middle_of(ratios, 0.5, [&](const LawRatio& r) { return r.work >= work ? error(r) : Found(); });
  const auto told = [](const LawRatio& r) { return r.unseen > 0; };
  if (std::none_of(ratios.begin(), ratios.end(), told)) return e;
  e.unseen_level = middle_of(ratios, 0.5, [&](const LawRatio& r) { return told(r) ? Found(r.unseen) : Found(); });
  e.unseen =
      middle_of(ratios, 0.5, [&](const LawRatio& r) { return told(r) ? Found(std::abs(r.unseen - 1)) : Found(); });
  e.shared_saw = std::any_of(ratios.begin(), ratios.end(), [](const LawRatio& r) { return r.shared_saw; });
  return e;
}

// A GPU and the laws for it with and without its own numbers.
struct LawJudge {
  Gpu gpu;
  const KernelLaws& laws;
  const LawsWithoutGpu* without;

  std::optional<LawRatio> operator()(const KernelRow& row) const {
    const auto time = time_by_laws(row, gpu, laws);
    if (!time) return std::nullopt;
    LawRatio ratio{.value = *time / row.measured, .work = cost_of(row.ops.back().work, 2).flops};
    if (without == nullptr || row.ops.back().precision == Precision::nvfp4)
      return ratio;  // whose laws leave no GPU out
    const LawsWithoutGpu::Family& family = is_attention(row) ? without->attention : without->products;
    if (const auto unseen = family.told ? time_by_laws(row, gpu, without->laws) : std::nullopt) {
      ratio.unseen = *unseen / row.measured;
      ratio.shared_saw = family.saw;
    }
    return ratio;
  }
};

// Returns what is known of a GPU without it, from the number of rows of each GPU that a law is fitted to.
template <class Law>
LawsWithoutGpu::Family family_without(const std::vector<KernelFamily<Law>>& families, const KernelLaws& laws,
                                      const std::map<std::string, std::int64_t>& rows, const std::string& gpu,
                                      bool refit) {
  const auto* family = family_of(families, gpu);
  if (family == nullptr) return {};
  const auto tells = [&](const std::string& other) {
    return other != gpu && (refit ? rows.contains(other) : laws.rates.contains(other));
  };
  return {.told = std::any_of(family->gpus.begin(), family->gpus.end(), tells),
          .saw = !refit || !is_refitted(rows, family->gpus, gpu)};
}

}  // namespace

LawsWithout laws_without_each(const KernelRows& rows, const KernelLaws& laws, bool refit,
                              const std::function<void(std::string_view)>& progress) {
  LawsWithout all;
  const RowsToFit to_fit = rows_to_fit_of(rows, laws);
  for (const auto& [gpu, rates] : laws.rates) {
    LawsWithoutGpu without{.laws = refit ? fit_kernel_laws(rows, laws, gpu, progress) : laws,
                           .products = family_without(laws.products, laws, to_fit.products, gpu, refit),
                           .attention = family_without(laws.attention, laws, to_fit.attention, gpu, refit)};
    const KernelRates told = rates_from_others(without.laws, gpu);
    without.laws.rates[gpu] = told;
    all.emplace(gpu, std::move(without));
  }
  return all;
}

std::vector<LawErrors> judge_laws(const KernelRows& rows, const KernelLaws& laws, const LawsWithout& without) {
  std::map<std::string, LawJudge> judges;
  for (const auto& [gpu, rates] : laws.rates) {
    const auto at = without.find(gpu);
    judges.emplace(gpu, LawJudge{find_gpu(gpu), laws, at == without.end() ? nullptr : &at->second});
  }
  std::map<LawKey, std::vector<LawRatio>> ratios;
  for (const KernelRow& row : rows.rows) {
    const auto judge = judges.find(row.gpu);
    if (!is_judged(row) || judge == judges.end()) continue;
    const auto ratio = judge->second(row);
    if (!ratio) continue;
    const bool attention = is_attention(row), fitted = is_fitted(row, laws);
    ratios[{row.kind, row.precision, row.framework, attention ? row.kernel : "", row.gpu, fitted}].push_back(*ratio);
    if (fitted)
      ratios[{attention ? "attention" : "all products", "", row.framework, "", row.gpu, true}].push_back(*ratio);
  }
  std::vector<LawErrors> errors;
  for (const auto& [key, list] : ratios) errors.push_back(law_errors_of(key, list));
  return errors;
}

Section law_errors_section(const std::vector<LawErrors>& errors) {
  Table t;
  t.columns = {{"kernels", "", Align::left},
               {"precision", "", Align::left},
               {"framework", "", Align::left},
               {"GPU", "", Align::left},
               {"rows", ""},
               {"level", ""},
               {"error", "%"},
               {"9 of 10", "%"},
               {"small", "%"},
               {"large", "%"},
               {"unseen level", ""},
               {"unseen", "%"}};
  const auto percent = [](double share) { return share < 0 ? "-" : fmt::format("{:.1f}", 100 * share); };
  for (const LawErrors& e : errors) {
    const std::string framework = e.framework + (e.kernel.empty() ? "" : ' ' + e.kernel) + (e.fitted ? " *" : "");
    t.rows.push_back({e.kind, e.precision, framework, e.gpu, fmt::format("{}", e.rows), fmt::format("{:.2f}", e.level),
                      percent(e.error), percent(e.p90), percent(e.small), percent(e.large),
                      e.unseen < 0 ? "-" : fmt::format("{:.2f}", e.unseen_level),
                      percent(e.unseen) + (e.shared_saw ? " +" : "")});
  }
  if (t.rows.empty()) return {};
  return {"Laws of kernels alone, on groups of shapes that they are not fitted to",
          {},
          t,
          {"*: fitted to other rows of these kernels; unseen: the GPU's rates from other GPUs and its data sheet;",
           "+: the numbers that GPUs share are still fitted to its rows too"}};
}

nlohmann::ordered_json law_errors_json(const std::vector<LawErrors>& errors) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const LawErrors& e : errors) {
    nlohmann::ordered_json json = {{"kind", e.kind},
                                   {"precision", e.precision},
                                   {"framework", e.framework},
                                   {"kernel", e.kernel},
                                   {"gpu", e.gpu},
                                   {"fitted", e.fitted},
                                   {"rows", e.rows},
                                   {"level", e.level},
                                   {"median_error", e.error},
                                   {"p90_error", e.p90},
                                   {"median_error_small", e.small},
                                   {"median_error_large", e.large}};
    if (e.unseen >= 0) {
      json["level_unseen"] = e.unseen_level;
      json["median_error_unseen"] = e.unseen;
      json["unseen_shared_fitted_to_gpu"] = e.shared_saw;
    }
    list.push_back(json);
  }
  return list;
}

}  // namespace orrery
