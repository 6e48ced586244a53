#include "models/layout/rank_kinds.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/layout/lags.h"
#include "models/partition/rank_groups.h"
#include "models/spec/asynchrony.h"
#include "models/spec/sequence.h"
#include "models/spec/stragglers.h"

namespace orrery {

void add_servers(Draft& draft) {
  Plan& plan = draft.plan;
  if (!draft.facts.row.servers) return;
  const Cluster& c = draft.facts.spec.cluster;
  const std::int64_t workers = plan.ranks, node = std::max(1, c.gpus_per_node), nodes = ceil_div(workers, node);
  const ParameterServer& p = *draft.facts.spec.strategy.parameter_server;
  plan.servers = p.servers * p.replicas;
  plan.copies = p.replicas;
  plan.servers_beside = p.colocated;
  plan.asynchronous_workers = asynchronous_workers(draft.facts.spec.strategy);
  plan.ranks += plan.servers;
  for (std::int64_t i = 0; i < plan.servers; ++i) {
    const std::int64_t s = (i + i / p.servers) % p.servers;
    plan.server_seats.push_back(p.colocated ? std::min(s % nodes * node + s / nodes % node, workers - 1)
                                            : (nodes + s) * node);
  }
  for (std::size_t d = 0; d < kDimensions; ++d) {
    GroupTable& table = plan.dimensions[d];
    const auto own = static_cast<std::int32_t>(table.groups.size());
    // The parameter servers form one group of dimension `model`, in which they sum the gradient norm.
    const bool together = static_cast<Dimension>(d) == Dimension::model;
    for (std::int64_t r = workers; r < plan.ranks; ++r) {
      const std::int32_t group = static_cast<Dimension>(d) == Dimension::world ? 0
                                 : together                                    ? own
                                            : own + static_cast<std::int32_t>(r - workers);
      if (group == static_cast<std::int32_t>(table.groups.size())) table.groups.add_list();
      table.groups.add_to_last(static_cast<std::int32_t>(r));  // the dimension `world` has one group of all ranks
      table.member_of.push_back(group);
    }
  }
}

// Returns whether ranks that hold different parts of the sequence do the same work in every layer.
static bool ring_is_alike(const Draft& draft) {
  const Spec& spec = draft.facts.spec;
  const auto alike = [&](std::int64_t w) { return blocks_are_alike(spec.strategy, spec.sequence, w); };
  const auto alike_in = [&](const Model& m) { return !m.sliding_window || alike(m.sliding_window->window); };
  return alike(0) && alike_in(spec.model) && (!has_second_beside(spec) || alike_in(spec.second->model));
}

static void meet_everywhere(Draft& draft) {
  draft.plan.meeting.clear();
  for (std::size_t d = 0; d < kDimensions; ++d) draft.plan.meeting.push_back(static_cast<Dimension>(d));
}

// Returns whether every process group of a dimension of parallelism contains ranks of several classes. If only some
// groups do, the plan treats every group as if all its ranks were of one class, because otherwise ranks of the same
// class would wait for different classes.
static bool all_are_mixed(const GroupTable& table, const std::vector<std::uint16_t>& class_of) {
  for (const auto& group : table.groups) {
    const auto differs = [&](std::int32_t r) { return class_of[r] != class_of[group.front()]; };
    if (std::none_of(group.begin(), group.end(), differs)) return false;
  }
  return true;
}

// The result of comparing ranks by one of their coordinates, such as the data-parallel index. Two values of the
// coordinate are alike if ranks that differ in this coordinate alone have the same slowdowns. For each value, `first`
// is the smallest value that is alike, and `lags` says whether any rank with this value is slow.
struct Alike {
  std::vector<std::int64_t> first;
  std::vector<bool> lags;
};

static Alike alike(const std::vector<Coordinates>& at, const std::vector<Lag>& felt, std::int64_t Coordinates::*axis,
                   std::int64_t values) {
  using Others = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>;
  std::vector<std::map<Others, Lag>> lags(static_cast<std::size_t>(values));
  for (std::size_t r = 0; r < felt.size(); ++r) {
    if (felt[r] == Lag{1}) continue;
    Coordinates others = at[r];
    const std::int64_t value = std::exchange(others.*axis, 0);
    lags[static_cast<std::size_t>(value)][{others.data, others.tensor, others.context, others.pipeline}] = felt[r];
  }
  Alike result;
  for (const auto& own : lags) {
    result.first.push_back(std::find(lags.begin(), lags.end(), own) - lags.begin());
    result.lags.push_back(!own.empty());
  }
  return result;
}

// Returns the part that one coordinate of a class's ranks (such as the data-parallel index) contributes to the name of
// the class: ", replica 3", ", replica 3 and 2 alike", ", other replicas"; empty if the ranks are alike for all values
// of the coordinate.
static std::string class_name(std::string_view what, std::string_view others, const Alike& all, std::int64_t value) {
  const auto at = static_cast<std::size_t>(value);
  const auto same = std::count(all.first.begin(), all.first.end(), all.first[at]);
  if (same == std::ssize(all.first)) return "";
  if (!all.lags[at]) return fmt::format(", {}", others);
  return fmt::format(", {} {}{}", what, all.first[at], same > 1 ? fmt::format(" and {} alike", same - 1) : "");
}

// Largest numbers of classes of ranks that slow ranks may cause: kMostExactClasses without simplification
// (simplify_lags), kMostClasses with it. A plan of 256 classes of Llama 3.1 405B, of 16 micro-batches each, takes about
// two seconds and 200 MB.
constexpr std::int64_t kMostExactClasses = 512, kMostClasses = 256;

static std::int64_t values_of(const Alike& all) {
  return std::ssize(std::set<std::int64_t>(all.first.begin(), all.first.end()));
}

// Changes the result of a comparison by one coordinate (such as the tensor-parallel index) as if all values of the
// coordinate were different, so that the ranks of each value form classes of their own.
static void keep_apart(Alike& all) {
  std::iota(all.first.begin(), all.first.end(), 0);
  all.lags.assign(all.lags.size(), true);
}

// Divides ranks into classes by their slowdowns. Data-parallel replicas are in one class if their ranks at the same
// positions have the same slowdowns; tensor ranks, and context ranks, are compared in the same way. Every process group
// of a class's first rank must contain the first ranks of the other classes. If there are slow ranks, tensor or context
// ranks are therefore never put into one class where some process groups have only a part of a tensor or context group
// (grids, ranks with the same key/value heads, rings of Ulysses groups).
static void tell_ranks_apart(Draft& draft, const std::vector<double>& slow, bool master) {
  Plan& plan = draft.plan;
  const Strategy& s = draft.facts.spec.strategy;
  const std::vector<Coordinates>& at = draft.coordinates;
  std::vector<Lag> felt = lags_felt(draft.facts.spec.cluster, slow);
  Alike replicas = alike(at, felt, &Coordinates::data, s.data);
  Alike tensors = alike(at, felt, &Coordinates::tensor, s.tensor);
  Alike contexts = alike(at, felt, &Coordinates::context, s.context);
  const bool lags = std::any_of(slow.begin(), slow.end(), [](double times) { return times > 1; });
  if (lags && (s.on_grid() || draft.context.kv_copies > 1)) keep_apart(tensors);
  if (lags && s.context_ring > 1 && s.context_ulysses > 1) keep_apart(contexts);
  const std::int64_t places = values_of(contexts) * s.pipeline;
  const bool whole_groups = !s.on_grid() && draft.context.kv_copies == 1;
  if (whole_groups && values_of(replicas) * values_of(tensors) * places > kMostExactClasses) {
    const GroupTable& groups = plan.dimensions[static_cast<std::size_t>(Dimension::tensor)];
    simplify_lags(draft, groups, std::max<std::int64_t>(2, kMostClasses / places - 1), felt);
    replicas = alike(at, felt, &Coordinates::data, s.data);
    tensors = alike(at, felt, &Coordinates::tensor, s.tensor);
  }
  std::map<std::string, std::uint16_t> known;
  draft.kinds.clear();
  for (std::int64_t r = 0; r < plan.ranks; ++r) {
    RankKind c;
    if (r >= plan.workers()) {
      c = {", servers", ExpertLoad::busiest, 0, Duty::server};
    } else {
      if (master) c.duty = at[r].data == 0 ? Duty::master : Duty::replica;
      if (master) c.name = c.duty == Duty::master ? ", master" : ", replicas";
      if (draft.facts.row.servers) c.name = ", workers";
      c.name += class_name("replica", "other replicas", replicas, at[r].data);
      c.name += class_name("tensor", "other tensor ranks", tensors, at[r].tensor);
      c.name += class_name("context", "other context ranks", contexts, at[r].context);
    }
    const auto [it, fresh] = known.try_emplace(c.name, static_cast<std::uint16_t>(draft.kinds.size()));
    if (fresh) draft.kinds.push_back(c);
    plan.kind_of_rank.push_back(it->second);
  }
  meet_everywhere(draft);
}

void tell_kinds_apart(Draft& draft) {
  const Spec& spec = draft.facts.spec;
  Plan& plan = draft.plan;
  draft.kinds = {{}};
  const std::vector<double> slow = slowdowns(spec);
  const bool uneven = unevenly_loaded(spec), ring = !ring_is_alike(draft);
  const bool lags = std::any_of(slow.begin(), slow.end(), [](double s) { return s > 1; });
  if (uneven && ring)
    throw Error(
        "model.moe.imbalance: not built yet with context parallelism whose ranks differ; choose zigzag or uniform");
  if (ring && lags)
    throw Error("cluster.stragglers: not built yet with context parallelism whose ranks differ; choose zigzag");
  if (uneven) {
    const GroupTable& table = plan.dimensions[static_cast<std::size_t>(Dimension::expert)];
    plan.kind_of_rank.assign(static_cast<std::size_t>(plan.ranks), 1);
    for (const auto& group : table.groups) plan.kind_of_rank[group.front()] = 0;
    for (std::size_t d = 0; d < kDimensions; ++d)
      if (all_are_mixed(plan.dimensions[d], plan.kind_of_rank)) plan.meeting.push_back(static_cast<Dimension>(d));
    draft.kinds = {{", busiest experts", ExpertLoad::busiest, 0}, {", other experts", ExpertLoad::others, 0}};
  }
  const bool of_one_rank = uneven && plan.ranks == spec.strategy.pipeline * std::ssize(draft.kinds);
  if (ring || of_one_rank || !spec.strategy.stage_replicas.empty()) meet_everywhere(draft);
  if (ring) {
    for (const Coordinates& c : draft.coordinates)
      plan.kind_of_rank.push_back(static_cast<std::uint16_t>(c.context / spec.strategy.context_ulysses));
    draft.kinds.clear();
    for (std::int64_t block = 0; block < spec.strategy.context_ring; ++block)
      draft.kinds.push_back({fmt::format(", context {}", block), ExpertLoad::busiest, block});
  }
  // Tensor ranks hold different rows of a micro-batch here, and the ranks of the next stage to which they send them
  // differ. The tensor ranks of a stage therefore do different work, and each of them forms a class of its own.
  if (spec.strategy.row_parts() > 1) {
    for (const Coordinates& c : draft.coordinates) plan.kind_of_rank.push_back(static_cast<std::uint16_t>(c.tensor));
    draft.kinds.clear();
    for (std::int64_t t = 0; t < spec.strategy.tensor; ++t)
      draft.kinds.push_back({.name = fmt::format(", tensor {}", t)});
  }
  const bool master = draft.facts.row.master && spec.strategy.data > 1;
  if (lags || master || draft.facts.row.servers) tell_ranks_apart(draft, slow, master);
}

}  // namespace orrery
