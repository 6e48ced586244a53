#include "sim/picture/shown_ranks.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "models/layout/uncut_place.h"

namespace orrery {
namespace {

// The number of ranks that a picture keeps in each dimension of parallelism. Of the pipeline stages the first
// `first_stages` and the last `last_stages` are kept.
struct KeptRanks {
  std::int64_t data, context, replicas, tensor, first_stages, last_stages, servers;

  bool keeps(const Coordinates& at, std::int64_t stages) const {
    const bool stage = at.pipeline < first_stages || at.pipeline >= stages - last_stages;
    return stage && at.data < data && at.context < context && at.replica < replicas && at.tensor < tensor;
  }
};

std::int64_t most_replicas(const Strategy& s) {
  std::int64_t most = 1;
  for (std::int64_t stage = 0; stage < s.pipeline; ++stage) most = std::max(most, s.replicas_of(stage));
  return most;
}

KeptRanks choose_ranks(const Strategy& s, std::int64_t servers) {
  KeptRanks kept = {s.data, s.context, most_replicas(s), s.tensor, s.pipeline, 0, servers};
  if (s.gpus() + servers <= kMostShown) return kept;
  kept.servers = std::min<std::int64_t>(servers, kMostShown / 8);
  const std::int64_t room = kMostShown - kept.servers;
  const auto fit = [&](std::int64_t others, std::int64_t count) {
    return std::clamp<std::int64_t>(room / std::max<std::int64_t>(1, others), 1, count);
  };
  const std::int64_t stage = s.tensor * kept.replicas;  // ranks of a stage with the same data and context coordinates
  kept.data = fit(s.pipeline * stage * s.context, s.data);
  kept.context = fit(s.pipeline * stage * kept.data, s.context);
  const std::int64_t stages = std::max(fit(stage, s.pipeline), std::min<std::int64_t>(2, s.pipeline));
  if (stages < s.pipeline) {
    kept.last_stages = stages / 2;
    kept.first_stages = stages - kept.last_stages;
  }
  kept.replicas = fit(stages * s.tensor, kept.replicas);
  kept.tensor = fit(stages * kept.replicas, s.tensor);
  return kept;
}

std::string left_out_text(const Strategy& s, const KeptRanks& kept, std::int64_t shown, std::int64_t all) {
  if (shown == all) return "";
  std::string text = fmt::format("{} of {} ranks are shown", shown, all);
  const auto add = [&](std::int64_t count, std::int64_t of, std::string_view what) {
    if (count < of)
      text += fmt::format("{} {} of {} {}", text.find(':') == std::string::npos ? ":" : ",", count, of, what);
  };
  add(kept.data, s.data, "data-parallel replicas");
  add(kept.context, s.context, "context ranks");
  add(kept.first_stages + kept.last_stages, s.pipeline, "stages (the first and the last)");
  add(kept.replicas, most_replicas(s), "replicas of a stage");
  add(kept.tensor, s.tensor, "tensor ranks");
  add(kept.servers, s.servers(), "parameter servers");
  return text + ". Groups of which members are left out say so.";
}

ShownRank shown_rank(const Spec& spec, const Plan& plan, std::int64_t rank, std::uint32_t slot) {
  ShownRank shown = {.rank = rank, .slot = slot, .server = rank >= plan.workers()};
  shown.node = plan.seat_of(rank) / std::max(1, spec.cluster.gpus_per_node);
  if (shown.server) return shown;
  const GroupPosition tensor = position_in(plan, Dimension::tensor, rank);
  shown.tensor = tensor.index;
  shown.tensors = tensor.size;
  if (spec.model.moe) shown.expert = position_in(plan, Dimension::expert, rank).index;
  return shown;
}

}  // namespace

ShownRanks shown_ranks(const Spec& spec, const Plan& plan) {
  const Strategy& s = spec.strategy;
  const KeptRanks kept = choose_ranks(s, plan.servers);
  const std::vector<Coordinates> at = coordinates(s);
  const std::vector<std::uint32_t> slots = slots_of_ranks(plan);
  ShownRanks result;
  std::vector<StageRanks> stages(static_cast<std::size_t>(s.pipeline));
  for (std::int64_t stage = 0; stage < s.pipeline; ++stage)
    stages[static_cast<std::size_t>(stage)].name = fmt::format("stage {}", stage);
  std::int64_t shown = 0;
  for (std::int64_t r = 0; r < std::ssize(at); ++r) {  // not the ranks that hold a frozen model alone
    const auto i = static_cast<std::size_t>(r);
    if (!kept.keeps(at[i], s.pipeline)) continue;
    ShownRank rank = shown_rank(spec, plan, r, slots[i]);
    rank.at = at[i];
    stages[static_cast<std::size_t>(at[i].pipeline)].ranks.push_back(rank);
    ++shown;
  }
  const auto order = [](const ShownRank& r) { return std::tuple(r.at.data, r.at.replica, r.at.context, r.at.tensor); };
  for (StageRanks& stage : stages) {
    std::ranges::sort(stage.ranks, {}, order);
    if (!stage.ranks.empty()) result.stages.push_back(std::move(stage));
  }
  StageRanks servers = {.name = "servers"};
  for (std::int64_t r = plan.workers(); r < plan.workers() + kept.servers; ++r)
    servers.ranks.push_back(shown_rank(spec, plan, r, slots[static_cast<std::size_t>(r)]));
  shown += kept.servers;
  if (kept.servers > 0) result.stages.push_back(std::move(servers));
  result.left_out = left_out_text(s, kept, shown, plan.ranks);
  return result;
}

std::string coordinates_text(const Spec& spec, const ShownRank& rank) {
  const Strategy& s = spec.strategy;
  if (rank.server) return "";
  std::string text;
  const auto add = [&](bool several, std::string_view letter, std::int64_t index) {
    if (several) text += fmt::format("{}{}{}", text.empty() ? "" : " ", letter, index);
  };
  add(rank.tensors > 1, "t", rank.tensor);
  // The layers of a 2.5D tensor grid (q x q x d, with d layers) hold the same weights, and each layer is a tensor
  // group.
  add(s.tensor > rank.tensors, "x", rank.at.tensor / rank.tensors);
  add(s.context > 1, "c", rank.at.context);
  add(s.data > 1, "d", rank.at.data);
  add(s.replicas_of(rank.at.pipeline) > 1, "r", rank.at.replica);
  add(spec.model.moe && s.expert > 1, "e", rank.expert);
  return text;
}

}  // namespace orrery
