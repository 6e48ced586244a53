// Statistics of the errors of predicted published steps, for each publication and for each technique that steps use.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "models/schedule/schedules.h"
#include "models/spec/sharding.h"
#include "sim/published/predict.h"

namespace orrery {
namespace {

ErrorSummary summary_of(const std::string& source, const std::vector<const Miss*>& list) {
  ErrorSummary s;
  s.source = source;
  s.rows = list.size();
  std::vector<double> sizes;
  const auto n = static_cast<double>(list.size());
  for (const Miss* r : list) {
    sizes.push_back(std::abs(r->error));
    s.bias += r->error / n;
    s.mean += std::abs(r->error) / n;
    s.null_mean += std::abs(r->null_error) / n;
  }
  std::sort(sizes.begin(), sizes.end());
  s.median = (sizes[(sizes.size() - 1) / 2] + sizes[sizes.size() / 2]) / 2;
  s.p90 = sizes[(sizes.size() - 1) * 9 / 10];
  s.worst = sizes.back();
  return s;
}

std::string sharding_of(const Strategy& s) {
  if (s.data * s.context == 1) return "";
  return s.sharding == Sharding::none ? "DDP" : std::string(name_of(s.sharding));
}

std::string recompute_of(const Recompute& r) {
  if (r.layer) return "recompute, full";
  return r.any() ? "recompute, selective" : "";
}

std::string context_of(const Strategy& s) { return s.context == 1 ? "" : "context, " + s.context_kind; }

std::string tensor_of(const Strategy& s) {
  if (s.tensor == 1) return "";
  return s.tensor_kind == "1d" && s.sequence_parallel ? "tensor and sequence" : "tensor, " + s.tensor_kind;
}

}  // namespace

std::vector<std::string> techniques_in(const Spec& spec) {
  const Strategy& s = spec.strategy;
  const bool three = s.tensor > 1 && s.pipeline > 1 && s.data > 1;
  std::vector<std::string> all = {sharding_of(s),
                                  tensor_of(s),
                                  context_of(s),
                                  s.pipeline == 1 ? "" : "pipeline, " + s.schedule,
                                  recompute_of(s.recompute),
                                  s.offload.any() ? "offload" : "",
                                  spec.model.moe ? "experts" : "",
                                  s.expert > 1 ? "expert parallelism" : "",
                                  spec.model.mla ? "latent attention" : "",
                                  spec.model.mtp_layers > 0 ? "multi-token prediction" : "",
                                  three ? "3D: data, tensor, pipeline" : "",
                                  three && s.context > 1 && s.expert > 1 ? "5D: with context and expert" : "",
                                  "precision, " + std::string(name_of(s.precision))};
  std::erase(all, "");
  return all;
}

std::vector<ErrorSummary> summarize(const std::vector<Miss>& list) {
  std::map<std::string, std::vector<const Miss*>> by_source;
  std::vector<const Miss*> all;
  for (const Miss& r : list) {
    by_source[r.of->row.source].push_back(&r);
    all.push_back(&r);
  }
  std::vector<ErrorSummary> result;
  result.reserve(by_source.size() + 1);
  for (const auto& [source, rows] : by_source) result.push_back(summary_of(source, rows));
  if (by_source.size() > 1) result.push_back(summary_of("all", all));
  return result;
}

std::vector<ErrorSummary> summarize_by_technique(const std::vector<Miss>& list) {
  std::map<std::string, std::vector<const Miss*>> by_technique;
  std::map<std::string, std::set<std::string>> sources;
  for (const Miss& r : list) {
    for (const std::string& technique : r.of->techniques) {
      by_technique[technique].push_back(&r);
      sources[technique].insert(r.of->row.source);
    }
  }
  std::vector<ErrorSummary> result;
  for (const auto& [technique, rows] : by_technique) {
    result.push_back(summary_of(technique, rows));
    result.back().sources = sources[technique].size();
  }
  return result;
}

}  // namespace orrery
