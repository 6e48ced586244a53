// PlanBuilder: stages that several ranks run together, each on its own samples of every micro-batch (DAPPLE, Fan et al.
// 2021, arXiv:2007.01045: a stage is replicated where that balances the pipeline, and micro-batches are cut and put
// together again between stages of unlike replicas).
#include <algorithm>

#include <fmt/format.h>

#include "models/groups.h"
#include "models/plan_builder.h"

namespace orrery {

// From now on blocks and groups are those of this rank of a stage.
void PlanBuilder::enter(std::int64_t stage, std::int64_t replica) {
  stage_ = stage;
  replica_ = replica;
  if (spec_.strategy.stage_replicas.empty()) return;
  context_.share(spec_.strategy.replicas_of(stage));
  const std::vector<Coordinates> at = coordinates(spec_.strategy);
  const auto own = [&](const Coordinates& c) { return c.pipeline == stage && c.replica == replica; };
  first_rank_ = std::find_if(at.begin(), at.end(), own) - at.begin();
}

// What crosses the boundary after a virtual stage, at the end that is being built: one slice for every rank of the
// other stage that has samples of this one's, in their order.
std::vector<Slice> PlanBuilder::slices_over(std::size_t boundary, bool upstream) const {
  const Strategy& s = spec_.strategy;
  const std::int64_t hops = upstream ? context_.hop : -context_.hop;
  if (s.stage_replicas.empty()) return {{hops, 0, context_.local_rows}};
  const std::int64_t other = schedule_.stage_of[boundary + (upstream ? 1 : 0)];
  const std::int64_t theirs = s.micro_batch / s.replicas_of(other), ours = context_.batch, begin = replica_ * ours;
  const std::int64_t sample = context_.local_rows / ours;
  std::vector<Slice> slices;
  for (std::int64_t peer = begin / theirs; peer * theirs < begin + ours; ++peer) {
    const std::int64_t first = std::max(begin, peer * theirs), end = std::min(begin + ours, (peer + 1) * theirs);
    const std::int64_t ahead = s.place_of(other) + peer - s.place_of(stage_) - replica_;
    slices.push_back({ahead, (first - begin) * sample, (end - first) * sample});
  }
  return slices;
}

// What replicas of stages cannot do, or not yet.
void PlanBuilder::refuse_replicas() const {
  const Strategy& s = spec_.strategy;
  const auto refuse = [&](bool asked, std::string_view key, std::string_view what) {
    if (asked) refuse_key(key, fmt::format("not built yet with strategy.stage_replicas: {}", what));
  };
  refuse(schedule_.copies > 1 || asynchronous() || !schedule_.moves.empty() || schedule_.spreads_vocabulary(),
         "strategy.schedule", "choose dapple, or another that has one copy of the model and updates it once a step");
  refuse(s.sequence_parallel, "strategy.sequence_parallel", "set it to false");
  refuse(s.context > 1, "strategy.context", "choose 1");
  refuse(s.on_grid(), "strategy.tensor_kind", "choose 1d");
  refuse(spec_.model.moe.has_value(), "model.moe", "choose a model without experts");
  refuse(spec_.model.tied_embeddings && !context_.ends_meet, "model.tied_embeddings",
         "the ends of the pipeline would share a word table; set it to false");
  refuse(spec_.model.mtp_layers > 0, "model.mtp_layers", "set it to 0");
  refuse(row_.hybrid || row_.master || row_.servers, "strategy.sharding", "choose none, zero1, zero2, zero3 or fsdp");
  refuse(s.offload.any(), "strategy.offload", "leave it out");
  refuse(spec_.software.gradient_average == "copy", "software",
         "a stack that averages gradients in buckets of its own; choose another");
  refuse(!spec_.cluster.stragglers.empty() || spec_.cluster.straggler_share > 0, "cluster.stragglers", "leave it out");
}

}  // namespace orrery
