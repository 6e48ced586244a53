#include "models/layout/rank_kinds.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/layout/alike_ranks.h"
#include "models/layout/lags.h"
#include "models/layout/surroundings.h"
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

// Largest numbers of classes of ranks that slow ranks may cause: kMostExactClasses without simplification
// (simplify_lags), kMostClasses with it. A plan of 256 classes of Llama 3.1 405B, of 16 micro-batches each, takes about
// two seconds and 200 MB.
constexpr std::int64_t kMostExactClasses = 512, kMostClasses = 256;
// The largest number of classes of ranks that are told apart because their transfers go other ways.
constexpr std::int64_t kMostPlaces = 128;

// Returns for each worker a number of how slow ranks affect it and where its transfers go (surroundings(), may be
// empty); 0: it is ordinary.
static std::vector<std::uint32_t> marks_of(const std::vector<Lag>& felt, const std::vector<std::uint32_t>& around) {
  std::map<std::pair<Lag, std::uint32_t>, std::uint32_t> known = {{{Lag{1}, 0}, 0}};
  std::vector<std::uint32_t> marks;
  for (std::size_t r = 0; r < felt.size(); ++r) {
    const std::pair<Lag, std::uint32_t> own = {felt[r], around.empty() ? 0 : around[r]};
    marks.push_back(known.try_emplace(own, static_cast<std::uint32_t>(known.size())).first->second);
  }
  return marks;
}

// Returns the name of every worker's class (alike_ranks). If there are too many, ranks whose transfers go other ways
// are one class, and then slow ranks are taken to be alike. The list is empty if nothing tells ranks of a kind apart,
// or only what would make too many classes.
static std::vector<std::string> names_of_classes(const Draft& draft, const std::vector<std::string>& kinds,
                                                 const std::vector<double>& slow,
                                                 const std::vector<std::uint32_t>& around) {
  const Strategy& s = draft.facts.spec.strategy;
  std::vector<Lag> felt = lags_felt(draft.facts.spec.cluster, slow);
  if (!around.empty()) {
    std::vector<std::string> names = alike_ranks(draft, kinds, marks_of(felt, around), kMostPlaces);
    if (!names.empty()) return names;
  }
  if (std::ranges::none_of(slow, [](double times) { return times > 1; })) return {};
  const bool whole_groups = !s.on_grid() && draft.context.kv_copies == 1;
  const std::int64_t most = whole_groups ? kMostExactClasses : std::numeric_limits<std::int64_t>::max();
  std::vector<std::string> names = alike_ranks(draft, kinds, marks_of(felt, {}), most);
  if (names.empty() && whole_groups) {
    const GroupTable& groups = draft.plan.dimensions[static_cast<std::size_t>(Dimension::tensor)];
    simplify_lags(draft, groups, std::max<std::int64_t>(2, kMostClasses / s.pipeline - 1), felt);
    names = alike_ranks(draft, kinds, marks_of(felt, {}), most);
  }
  if (names.empty())
    throw Error(
        fmt::format("cluster.stragglers: more than {} classes of ranks would differ, since groups of experts or "
                    "shards have a part of the replicas; name fewer slow ranks",
                    kMostExactClasses));
  return names;
}

// Divides kinds of ranks by their slowdowns, by where their transfers go, and by their roles.
static void tell_ranks_apart(Draft& draft, const std::vector<double>& slow, const std::vector<std::uint32_t>& around,
                             bool master) {
  Plan& plan = draft.plan;
  std::vector<std::string> kinds;
  for (std::int64_t r = 0; r < plan.workers(); ++r) kinds.push_back(draft.kinds[plan.kind_of(r)].name);
  std::vector<std::string> names = names_of_classes(draft, kinds, slow, around);
  if (names.empty() && !master && !draft.facts.row.servers) return;
  if (names.empty()) names = std::move(kinds);
  std::map<std::string, std::uint16_t> known;
  std::vector<RankKind> all;
  std::vector<std::uint16_t> kind_of_rank;
  for (std::int64_t r = 0; r < plan.ranks; ++r) {
    RankKind c = {", servers", ExpertLoad::busiest, 0, Duty::server};
    if (r < plan.workers()) {
      c = draft.kinds[plan.kind_of(r)];
      c.name = draft.facts.row.servers ? ", workers" : "";
      if (master) c.duty = draft.coordinates[r].data == 0 ? Duty::master : Duty::replica;
      if (master) c.name = c.duty == Duty::master ? ", master" : ", replicas";
      c.name += names[static_cast<std::size_t>(r)];
    }
    const auto [it, fresh] = known.try_emplace(c.name, static_cast<std::uint16_t>(all.size()));
    if (fresh) all.push_back(c);
    kind_of_rank.push_back(it->second);
  }
  draft.kinds = std::move(all);
  plan.kind_of_rank = std::move(kind_of_rank);
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
  const bool workers_alone =
      !draft.facts.row.servers && spec.strategy.stage_replicas.empty() && !has_second_apart(spec);
  const std::vector<std::uint32_t> around = workers_alone ? surroundings(draft) : std::vector<std::uint32_t>{};
  if (lags || master || draft.facts.row.servers || !around.empty()) tell_ranks_apart(draft, slow, around, master);
}

}  // namespace orrery
