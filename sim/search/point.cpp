// The part of class Space (the search space) that writes a strategy (Point) as a spec, as overrides of a spec, as text
// and as a report.
#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/layers/blocks.h"
#include "models/partition/rank_groups.h"
#include "models/schedule/schedules.h"
#include "models/spec/sharding.h"
#include "sim/predict/predict.h"
#include "sim/search/search.h"

namespace orrery {

Recompute recompute_of(std::string_view parts, const Software& software) {
  Recompute result;
  for (std::size_t start = 0; start <= parts.size();) {
    const std::size_t end = std::min(parts.find(", ", start), parts.size());
    add_recompute(result, parts.substr(start, end - start), software);
    start = end + 2;
  }
  return result;
}

void set_context_kind(Strategy& s, std::string_view kind) {
  if (kind == "mixed") return;
  s.context_kind = kind;
  s.context_ring = kind == "ulysses" ? 1 : s.context;
  s.context_ulysses = kind == "ulysses" ? s.context : 1;
}

// Whether, on a stage and on its mirror stage, the backward passes of the pipeline's two copies of the model reach the
// same weights in the same order.
bool Space::reduces_in_one_order(const RankLayout& l, const ScheduleRow& schedule) const {
  const std::tuple key{schedule.name, l.pipeline, l.micro_batches};
  {
    const std::lock_guard lock(cuts_->mutex);
    const auto known = cuts_->mirrored.find(key);
    if (known != cuts_->mirrored.end()) return known->second;
  }
  const bool mirrored = is_mirrored(make_schedule(schedule.name, {l.pipeline, l.micro_batches, schedule.chunks}));
  const std::lock_guard lock(cuts_->mutex);
  cuts_->mirrored.emplace(key, mirrored);
  return mirrored;
}

// Whether the planner makes the same plan with this memory plan as with sharding `none`: no other rank holds the same
// weights, and nothing is offloaded.
bool Space::shards_nothing_here(const RankLayout& l, const MemoryPlan& cell) const {
  if (l.replicas() > 1 || cell.offload != "none") return false;
  Strategy s = base_.strategy;
  s.tensor = l.tensor;
  s.context = l.context;
  s.data = l.data;
  s.expert = l.expert;
  s.expert_tensor = l.expert_tensor;
  s.schedule = cell.schedule;
  s.sharding = cell.sharding;
  return shards_nothing(s, has_experts(base_));
}

Spec Space::spec_of(const Point& point) const {
  const auto& [l, c, f] = point;
  Spec spec = base_;
  Strategy& s = spec.strategy;
  spec.gpus = gpus_;
  spec.cluster.failures.reset();  // removed, because failures are no part of a single step (goodput.h)
  s.tensor = l.tensor;
  s.context = l.context;
  s.pipeline = l.pipeline;
  s.data = l.data;
  s.expert = l.expert;
  s.expert_tensor = l.expert_tensor;
  s.micro_batch = l.micro_batch;
  set_context_kind(s, l.context_kind);
  s.sequence_parallel = l.sequence_parallel;
  s.schedule = c.schedule;
  s.virtual_stages = c.virtual_stages;
  s.sharding = c.sharding;
  s.shard_group = c.shard_group;
  s.recompute = recompute_of(c.recompute, spec.software);
  if (c.recompute_layers >= 0) s.recompute.layers = c.recompute_layers;
  set_offload(s.offload, c.offload);
  set_activations(s.offload, c);
  s.rank_order = f.rank_order;
  s.overlap.gradient_reduce = f.gradient_reduce;
  s.overlap.parameter_gather = f.parameter_gather;
  s.overlap.tensor = l.overlap_tensor;
  s.overlap.pipeline = f.pipeline;
  s.overlap.expert = l.overlap_expert;
  if (!bucket_given_) s.bucket_MiB = bucket_habit(spec.software, s);
  return spec;
}

// Keeps only the last, which takes effect, of all overrides ("KEY=VALUE") that set the same key.
static std::vector<std::string> last_of_each_key(const std::vector<std::string>& list) {
  const auto key_of = [](const std::string& o) { return std::string_view(o).substr(0, o.find('=') + 1); };
  std::vector<std::string> result;
  for (auto it = list.begin(); it != list.end(); ++it) {
    const auto again = [&](const std::string& later) { return key_of(later) == key_of(*it); };
    if (std::none_of(it + 1, list.end(), again)) result.push_back(*it);
  }
  return result;
}

std::vector<std::string> Space::overrides_of(const Point& point) const {
  const auto& [l, c, f] = point;
  std::vector<std::string> list = overrides_;
  list.insert(list.end(), {
                              fmt::format("gpus={}", gpus_),
                              fmt::format("strategy.tensor={}", l.tensor),
                              fmt::format("strategy.sequence_parallel={}", l.sequence_parallel),
                              fmt::format("strategy.pipeline={}", l.pipeline),
                              fmt::format("strategy.virtual_stages={}", c.virtual_stages),
                              fmt::format("strategy.schedule={}", c.schedule),
                              fmt::format("strategy.context={}", l.context),
                              fmt::format("strategy.data={}", l.data),
                              fmt::format("strategy.rank_order={}", f.rank_order),
                              fmt::format("strategy.sharding={}", name_of(c.sharding)),
                              fmt::format("strategy.micro_batch={}", l.micro_batch),
                              fmt::format("strategy.recompute={}",
                                          c.recompute == "none" ? "none" : fmt::format("[{}]", c.recompute)),
                              fmt::format("strategy.overlap.gradient_reduce={}", f.gradient_reduce),
                              fmt::format("strategy.overlap.parameter_gather={}", f.parameter_gather),
                              fmt::format("strategy.overlap.tensor={}", l.overlap_tensor),
                              fmt::format("strategy.overlap.pipeline={}", f.pipeline),
                          });
  if (l.context > 1 && l.context_kind != "mixed")
    list.push_back(fmt::format("strategy.context_kind={}", l.context_kind));
  if (c.shard_group > 0 || !shard_group_.open) list.push_back(fmt::format("strategy.shard_group={}", c.shard_group));
  if (c.recompute_layers >= 0) list.push_back(fmt::format("strategy.recompute_layers={}", c.recompute_layers));
  const std::vector<std::string> away = offload_overrides(c);
  list.insert(list.end(), away.begin(), away.end());
  if (has_experts(base_)) {
    list.push_back(fmt::format("strategy.expert={}", l.expert));
    list.push_back(fmt::format("strategy.expert_tensor={}", l.expert_tensor));
    list.push_back(fmt::format("strategy.overlap.expert={}", l.overlap_expert));
  }
  return last_of_each_key(list);
}

std::string Space::text_of(const Point& point) const {
  const auto& [l, c, f] = point;
  const Software& w = base_.software;
  std::string text = fmt::format("TP{}{}", l.tensor, l.sequence_parallel ? " SP" : "");
  if (l.context > 1) text += fmt::format(" CP{} {}", l.context, l.context_kind);
  text += fmt::format(" PP{}", l.pipeline);
  if (c.virtual_stages > 1) text += fmt::format(" VP{}", c.virtual_stages);
  text += fmt::format(" DP{}", l.data);
  if (has_experts(base_)) text += fmt::format(" EP{} ETP{}", l.expert, l.expert_tensor);
  text += fmt::format(" MB{}", l.micro_batch);
  if (l.pipeline > 1) text += fmt::format(" {}", c.schedule);
  text += fmt::format(" {}", name_of(c.sharding));
  if (c.shard_group > 0) text += fmt::format("({})", c.shard_group);
  text += offload_text(c);
  if (c.recompute != "none") text += fmt::format(", recompute {}", c.recompute);
  if (c.recompute_layers >= 0) text += fmt::format(" of {} layers a stage", c.recompute_layers);
  if (effective_order(l, f.rank_order) != effective_order(l, w.layout.rank_order))
    text += fmt::format(", {}", f.rank_order);
  if (f.gradient_reduce != reduces_beside(w, c.sharding))
    text += f.gradient_reduce ? ", reduce under backward" : ", reduce after backward";
  if (f.parameter_gather != w.communication.overlap_parameter_gather)
    text += f.parameter_gather ? ", gather under forward" : ", gather before forward";
  if (f.pipeline != w.communication.overlap_pipeline)
    text += f.pipeline ? ", sends overlapped" : ", sends not overlapped";
  if (l.overlap_tensor) text += ", tensor overlap";
  if (l.overlap_expert) text += ", expert overlap";
  return text;
}

Evaluation evaluate_within(const Space& space, const Profile& profile, const Point& point, Picoseconds latest,
                           const std::atomic<bool>* stop) {
  const Spec spec = space.spec_of(point);
  try {
    const std::string broken = rule_broken_by(spec, space.path());
    if (!broken.empty()) return {{}, false, broken};
    Evaluation result{report_within(spec, profile, latest, stop), false, {}};
    result.late = !result.report;
    return result;
  } catch (const Error& error) {
    return {{}, false, error.what()};
  }
}

std::optional<Report> evaluate(const Space& space, const Profile& profile, const Point& point, std::string* why,
                               const std::atomic<bool>* stop) {
  Evaluation result = evaluate_within(space, profile, point, std::numeric_limits<Picoseconds>::max(), stop);
  if (why != nullptr && !result.report) *why = result.refused;
  return std::move(result.report);
}

Point point_at(const Space& space, const std::vector<RankLayout>& layouts, const SearchPosition& place) {
  const auto [l, g, c, f, away] = place;
  const RankLayout& layout = layouts[static_cast<std::size_t>(l)];
  const MemoryPlan group = space.groups(layout)[static_cast<std::size_t>(g)];
  MemoryPlan cell = space.cells_of(layout, group)[static_cast<std::size_t>(c)];
  cell.activation_layers = away;
  return {layout, cell, space.features(layout, cell)[static_cast<std::size_t>(f)]};
}

std::string why_nothing(const Space& space, const Profile& profile, const std::vector<RankLayout>& layouts) {
  for (const RankLayout& layout : layouts) {
    if (space.groups(layout).empty()) continue;
    const std::int64_t place = &layout - layouts.data();
    std::string why;
    evaluate(space, profile, point_at(space, layouts, {place, 0, 0, 0, -1}), &why);
    if (!why.empty()) return why;
  }
  std::string broken = rule_broken_by(space.base(), space.path());
  if (!broken.empty()) return broken;
  return fmt::format("{}: no strategy for {} GPUs has the degrees, batch and schedule that are given", space.path(),
                     space.gpus());
}

}  // namespace orrery
