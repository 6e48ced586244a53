// PlanBuilder: which ranks of a stage do different work, and so are classes of their own.
#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/partition/rank_groups.h"
#include "models/planner/plan_builder.h"
#include "models/spec/sequence.h"
#include "models/spec/stragglers.h"

namespace orrery {

// Ranks of a stage do different work where the first member of every expert group has the busy experts, or where the
// blocks of a context ring differ. Classes of one rank each meet in every group: nothing is folded. Replicas of a stage
// are not folded either; they are slots of their own.
void PlanBuilder::tell_classes_apart() {
  classes_ = {{}};
  const std::vector<double> slow = slowdowns(spec_);
  const bool uneven = unevenly_loaded(spec_), ring = !ring_is_alike();
  const bool lags = std::any_of(slow.begin(), slow.end(), [](double s) { return s > 1; });
  if (uneven && ring)
    throw Error(
        "model.moe.imbalance: not built yet with context parallelism whose ranks differ; choose zigzag or uniform");
  if (ring && lags)
    throw Error("cluster.stragglers: not built yet with context parallelism whose ranks differ; choose zigzag");
  if (uneven) {
    const GroupTable& table = plan_.dimensions[static_cast<std::size_t>(Dimension::expert)];
    plan_.class_of_rank.assign(static_cast<std::size_t>(plan_.ranks), 1);
    for (const auto& group : table.groups) plan_.class_of_rank[group.front()] = 0;
    plan_.meeting = {Dimension::expert, Dimension::model, Dimension::world};
    classes_ = {{", busiest experts", ExpertLoad::busiest, 0}, {", other experts", ExpertLoad::others, 0}};
  }
  const bool of_one_rank = uneven && plan_.ranks == spec_.strategy.pipeline * std::ssize(classes_);
  if (ring || of_one_rank || !spec_.strategy.stage_replicas.empty()) meet_everywhere();
  if (ring) {
    for (const Coordinates& c : coordinates(spec_.strategy))
      plan_.class_of_rank.push_back(static_cast<std::uint16_t>(c.context / spec_.strategy.context_ulysses));
    classes_.clear();
    for (std::int64_t block = 0; block < spec_.strategy.context_ring; ++block)
      classes_.push_back({fmt::format(", context {}", block), ExpertLoad::busiest, block});
  }
  // The slices of each tensor rank go to other ranks, so that each tensor rank is a class.
  if (spec_.strategy.row_parts() > 1) {
    for (const Coordinates& c : coordinates(spec_.strategy))
      plan_.class_of_rank.push_back(static_cast<std::uint16_t>(c.tensor));
    classes_.clear();
    for (std::int64_t t = 0; t < spec_.strategy.tensor; ++t)
      classes_.push_back({.name = fmt::format(", tensor {}", t)});
  }
  const bool master = row_.master && spec_.strategy.data > 1;
  if (lags || master || row_.servers) tell_ranks_apart(slow, master);
}

void PlanBuilder::meet_everywhere() {
  plan_.meeting.clear();
  for (std::size_t d = 0; d < kDimensions; ++d) plan_.meeting.push_back(static_cast<Dimension>(d));
}

// The values of a coordinate, sorted by how ranks lag there: `first` names for each value the first one at which ranks
// with the same other coordinates lag alike, `lags` says whether any rank lags at it.
struct Alike {
  std::vector<std::int64_t> first;
  std::vector<bool> lags;
};

static Alike alike(const std::vector<Coordinates>& at, const std::vector<double>& slow, std::int64_t Coordinates::*axis,
                   std::int64_t values) {
  using Others = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>;
  std::vector<std::map<Others, double>> lags(static_cast<std::size_t>(values));
  for (std::size_t r = 0; r < slow.size(); ++r) {
    if (slow[r] == 1) continue;
    Coordinates others = at[r];
    const std::int64_t value = std::exchange(others.*axis, 0);
    lags[static_cast<std::size_t>(value)][{others.data, others.tensor, others.context, others.pipeline}] = slow[r];
  }
  Alike result;
  for (const auto& own : lags) {
    result.first.push_back(std::find(lags.begin(), lags.end(), own) - lags.begin());
    result.lags.push_back(!own.empty());
  }
  return result;
}

// ", replica 3", ", replica 3 and 2 alike", ", other replicas"; nothing where all are alike.
static std::string class_name(std::string_view what, std::string_view others, const Alike& all, std::int64_t value) {
  const auto at = static_cast<std::size_t>(value);
  const auto same = std::count(all.first.begin(), all.first.end(), all.first[at]);
  if (same == std::ssize(all.first)) return "";
  if (!all.lags[at]) return fmt::format(", {}", others);
  return fmt::format(", {} {}{}", what, all.first[at], same > 1 ? fmt::format(" and {} alike", same - 1) : "");
}

// Makes every value of the coordinate a class of its own.
static void keep_apart(Alike& all) {
  std::iota(all.first.begin(), all.first.end(), 0);
  all.lags.assign(all.lags.size(), true);
}

// Replicas whose same places lag alike form one class, and so do places of a tensor and of a context group, unless some
// of the plan's groups hold a part of such a group alone: grids, copies of key and value heads, rings of Ulysses
// groups. So every group of a class's first rank holds the first ranks of other classes.
void PlanBuilder::tell_ranks_apart(const std::vector<double>& slow, bool master) {
  const Strategy& s = spec_.strategy;
  const std::vector<Coordinates> at = coordinates(s);
  const Alike replicas = alike(at, slow, &Coordinates::data, s.data);
  Alike tensors = alike(at, slow, &Coordinates::tensor, s.tensor);
  Alike contexts = alike(at, slow, &Coordinates::context, s.context);
  const bool lags = std::any_of(slow.begin(), slow.end(), [](double times) { return times > 1; });
  if (lags && (s.on_grid() || context_.kv_copies > 1)) keep_apart(tensors);
  if (lags && s.context_ring > 1 && s.context_ulysses > 1) keep_apart(contexts);
  std::map<std::string, std::uint16_t> known;
  classes_.clear();
  for (std::int64_t r = 0; r < plan_.ranks; ++r) {
    RankClass c;
    if (r >= plan_.workers()) {
      c = {", servers", ExpertLoad::busiest, 0, Duty::server};
    } else {
      if (master) c.duty = at[r].data == 0 ? Duty::master : Duty::replica;
      if (master) c.name = c.duty == Duty::master ? ", master" : ", replicas";
      if (row_.servers) c.name = ", workers";
      c.name += class_name("replica", "other replicas", replicas, at[r].data);
      c.name += class_name("tensor", "other tensor ranks", tensors, at[r].tensor);
      c.name += class_name("context", "other context ranks", contexts, at[r].context);
    }
    const auto [it, fresh] = known.try_emplace(c.name, static_cast<std::uint16_t>(classes_.size()));
    if (fresh) classes_.push_back(c);
    plan_.class_of_rank.push_back(it->second);
  }
  meet_everywhere();
}

}  // namespace orrery
