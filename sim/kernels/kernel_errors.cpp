#include "sim/kernels/kernel_errors.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/base/error.h"
#include "models/cost/generation_figures.h"
#include "models/cost/kernel_time.h"
#include "models/cost/nccl/model.h"
#include "sim/kernels/fit_experts.h"
#include "sim/kernels/quantile.h"
#include "sim/print/table.h"

namespace orrery {
namespace {

struct Ratio {
  double value = 1;  // predicted over measured time of a kernel
  double work = 0;
  bool judged = false;
};

template <class Takes>
std::vector<double> values_of(const std::vector<Ratio>& ratios, const Takes& takes) {
  std::vector<double> values;
  for (const Ratio& r : ratios) {
    if (takes(r)) values.push_back(r.value);
  }
  return values;
}

double median_error(std::vector<double> ratios, double level, double share = 0.5) {
  for (double& r : ratios) r = std::abs(r / level - 1);
  return quantile_of(std::move(ratios), share);
}

struct KnownGpu {
  Gpu gpu;
  Profile profile;

  std::map<std::string, Profile> by_framework;

  // The constants of experts in a framework for inference.
  const Profile& of_experts(const std::string& framework) {
    const auto [at, is_new] = by_framework.try_emplace(framework, profile);
    if (!is_new) return at->second;
    at->second = generating(profile);
    at->second.experts = find_expert_laws(framework, gpu);
    return at->second;
  }
};

// The GPU with this name and its built-in constants; nullopt if either is not known.
std::optional<KnownGpu> known_gpu(const std::string& name) {
  try {
    KnownGpu known{find_gpu(name), {}, {}};
    known.profile = find_profile(known.gpu);
    return known;
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Predicted seconds of a collective of GPUs of one node, which reach each other as the GPU's kind does in a node of 8.
Seconds collective_time(const KernelRow& row, const Gpu& gpu) {
  Cluster cluster{.gpu = gpu, .gpus_per_node = std::max(8, row.ranks)};
  cluster.nvlink_domain = default_nvlink_domain(gpu, cluster.gpus_per_node);
  NcclTopology topology = nccl_topology(cluster, 1, row.ranks);
  topology.nccl_minor = row.nccl_minor;
  const auto& collective = std::get<Collective>(row.ops.front().work);
  const NcclModel model = nccl_model(topology);
  const NcclChoice choice = nccl_choose(model, collective.kind, collective.bytes);
  return nccl_kernel(model, collective.kind, choice, collective.bytes);
}

// Predicted seconds of a row's ops; nullopt if the GPU does not have a rate for one of them. For attention, the
// constants of cuDNN's kernels, the fastest of the frameworks', are used if the GPU has them.
std::optional<double> predicted(const KernelRow& row, KnownGpu& known) {
  double sum = 0;
  if (row.nccl_minor > 0) return collective_time(row, known.gpu);
  const bool experts = row.kind.starts_with("experts");
  const Profile& profile = experts ? known.of_experts(row.framework) : known.profile;
  try {
    for (const Op& op : row.ops) sum += kernel_time(op, 2, known.gpu, profile, "cudnn");
  } catch (const Error&) {
    return std::nullopt;
  }
  return sum;
}

KernelErrors errors_of(const std::vector<Ratio>& ratios) {
  KernelErrors e;
  e.rows = std::ssize(ratios);
  const auto all = [](const Ratio&) { return true; };
  std::vector<double> work;
  for (const Ratio& r : ratios) work.push_back(r.work);
  const double middle = quantile_of(work, 0.5);
  e.error = median_error(values_of(ratios, all), 1);
  e.small = median_error(values_of(ratios, [&](const Ratio& r) { return r.work < middle; }), 1);
  e.large = median_error(values_of(ratios, [&](const Ratio& r) { return r.work >= middle; }), 1);
  e.level = quantile_of(values_of(ratios, all), 0.5);
  const std::vector<double> judged = values_of(ratios, [](const Ratio& r) { return r.judged; });
  const std::vector<double> others = values_of(ratios, [](const Ratio& r) { return !r.judged; });
  if (judged.empty() || others.empty()) return e;
  const double level = quantile_of(others, 0.5);
  e.swept = median_error(judged, level);
  e.swept_p90 = median_error(judged, level, 0.9);
  return e;
}

// Identifies kernels that are judged together: kind of kernel, precision, framework, GPU.
using Key = std::tuple<std::string, std::string, std::string, std::string>;

// The median, over all other GPUs, of the level (median of predicted over measured time) for the same kind of kernel,
// precision and framework; nullopt if no other GPU has one.
std::optional<double> level_elsewhere(const std::map<Key, KernelErrors>& all, const Key& key) {
  std::vector<double> levels;
  for (const auto& [other, e] : all) {
    const bool same = std::get<0>(other) == std::get<0>(key) && std::get<1>(other) == std::get<1>(key) &&
                      std::get<2>(other) == std::get<2>(key);
    if (same && std::get<3>(other) != std::get<3>(key)) levels.push_back(e.level);
  }
  if (levels.empty()) return std::nullopt;
  return quantile_of(std::move(levels), 0.5);
}

}  // namespace

KernelReport predict_kernels(KernelRows rows, const std::function<void(std::string_view)>& progress) {
  KernelReport report;
  report.not_covered = std::move(rows.not_covered);
  std::map<std::string, std::optional<KnownGpu>> gpus;
  std::map<Key, std::vector<Ratio>> ratios;
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    const KernelRow& row = rows.rows[i];
    if (i % 4096 == 0 && progress) progress(fmt::format("{} of {} kernels", i, rows.rows.size()));
    auto known = gpus.find(row.gpu);
    if (known == gpus.end()) known = gpus.emplace(row.gpu, known_gpu(row.gpu)).first;
    if (is_passed_over(row, built_in_kernel_laws())) {
      ++report.not_covered[fmt::format("{} in {}: {} chooses other kernels on {}", row.kernel, row.precision,
                                       row.framework, row.gpu)];
      continue;
    }
    if (!known->second) {
      ++report.not_covered[row.gpu + ": a GPU without built-in kernel times"];
      continue;
    }
    const auto time = predicted(row, *known->second);
    if (time && !(std::isfinite(*time) && *time > 0)) {
      ++report.not_covered[row.gpu + ": no finite time is predicted"];
      continue;
    }
    if (!time) {
      ++report.not_covered[fmt::format("{}: {} has no rate", row.gpu, row.precision)];
      continue;
    }
    Ratio ratio{.value = *time / row.measured, .judged = is_judged(row)};
    for (const Op& op : row.ops) {
      const Cost cost = cost_of(op.work, 2);
      ratio.work += cost.flops > 0 ? cost.flops : cost.bytes;
      if (const auto* c = std::get_if<Collective>(&op.work)) ratio.work = static_cast<double>(c->bytes);
    }
    ratios[{row.kind, row.precision, row.framework, row.gpu}].push_back(ratio);
  }
  std::map<Key, KernelErrors> by_key;
  for (const auto& [key, list] : ratios) by_key[key] = errors_of(list);
  for (auto& [key, e] : by_key) {
    std::tie(e.kind, e.precision, e.framework, e.gpu) = key;
    const auto elsewhere = level_elsewhere(by_key, key);
    const auto all = [](const Ratio&) { return true; };
    e.unseen = elsewhere ? median_error(values_of(ratios[key], all), *elsewhere) : -1;
    report.errors.push_back(e);
  }
  return report;
}

std::vector<Section> kernel_sections(const KernelReport& report) {
  Table t;
  t.columns = {{"kernels", "", Align::left},
               {"precision", "", Align::left},
               {"framework", "", Align::left},
               {"GPU", "", Align::left},
               {"rows", ""},
               {"level", ""},
               {"error", "%"},
               {"small", "%"},
               {"large", "%"},
               {"swept", "%"},
               {"9 of 10", "%"},
               {"unseen", "%"}};
  const auto percent = [](double share) { return share < 0 ? "-" : fmt::format("{:.1f}", 100 * share); };
  for (const KernelErrors& e : report.errors)
    t.rows.push_back({e.kind, e.precision, e.framework, e.gpu, fmt::format("{}", e.rows),
                      fmt::format("{:.2f}", e.level), percent(e.error), percent(e.small), percent(e.large),
                      percent(e.swept), percent(e.swept_p90), percent(e.unseen)});
  Section errors{
      "Kernels, predicted against measured",
      {},
      t,
      {"level: predicted over measured, the median; error: median without sign, of the half of rows with less work and",
       "with more; swept: every fifth group of shapes after the level of the others; unseen: after other GPUs' level"}};
  Section left_out{"Not covered", {}, {{{"rows"}, {"kernels", "", Align::left}}, {}}, {}};
  for (const auto& [what, rows] : report.not_covered) left_out.table.rows.push_back({fmt::format("{}", rows), what});
  return {std::move(errors), law_errors_section(report.laws), std::move(left_out)};
}

std::string kernels_text(const KernelReport& report, const Style& style) {
  std::string text;
  for (const Section& section : kernel_sections(report))
    text += (text.empty() || section.is_empty() ? "" : "\n") + text_of(section, style);
  return text;
}

std::string kernels_json(const KernelReport& report) {
  const auto or_none = [](double share) {
    return share < 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(share);
  };
  nlohmann::ordered_json json = {{"schema", "orrery.kernels/1"}, {"kernels", nlohmann::ordered_json::array()}};
  for (const KernelErrors& e : report.errors) {
    json["kernels"].push_back({{"kind", e.kind},
                               {"precision", e.precision},
                               {"framework", e.framework},
                               {"gpu", e.gpu},
                               {"rows", e.rows},
                               {"level", e.level},
                               {"median_error", e.error},
                               {"median_error_small", e.small},
                               {"median_error_large", e.large},
                               {"median_error_swept", or_none(e.swept)},
                               {"p90_error_swept", or_none(e.swept_p90)},
                               {"median_error_unseen", or_none(e.unseen)}});
  }
  json["laws"] = law_errors_json(report.laws);
  json["not_covered"] = report.not_covered;
  return json.dump(2) + '\n';
}

}  // namespace orrery
