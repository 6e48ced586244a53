// PlanBuilder: stages that several ranks run together, each on its own samples of every micro-batch (DAPPLE, Fan et al.
// 2021, arXiv:2007.01045: a stage is replicated where that balances the pipeline, and micro-batches are cut and put
// together again between stages of unlike replicas).
#include <algorithm>

#include <fmt/format.h>

#include "models/partition/rank_groups.h"
#include "models/planner/plan_builder.h"

namespace orrery {

// Enters a replica of a stage: from now on blocks and groups are those of its ranks.
void PlanBuilder::enter(std::int64_t stage, std::int64_t replica) {
  stage_ = stage;
  replica_ = replica;
  const Strategy& s = spec_.strategy;
  if (s.stage_replicas.empty()) return;
  context_.share(s.replicas_of(stage));
  const std::vector<Coordinates> at = coordinates(s);
  const auto own = [&](const Coordinates& c) {
    return c.pipeline == stage && c.replica == replica && (s.row_parts() == 1 || c.tensor == class_);
  };
  first_rank_ = std::find_if(at.begin(), at.end(), own) - at.begin();
}

// Slices of rows that cross the boundary after a virtual stage, at the end that is being built: one for every rank of
// the other stage that has rows of this rank, in the order of those ranks. A stage's ranks have equally many rows of a
// micro-batch, one rank after the other: replica by replica, and within one the tensor ranks where sequences are cut
// over those.
std::vector<Slice> PlanBuilder::slices_over(std::size_t boundary, bool upstream) const {
  const Strategy& s = spec_.strategy;
  const std::int64_t hops = upstream ? context_.hop : -context_.hop;
  if (s.stage_replicas.empty()) return {{hops, 0, context_.local_rows}};
  const std::int64_t other = schedule_.stage_of[boundary + (upstream ? 1 : 0)], parts = s.row_parts();
  const std::int64_t ours = context_.local_rows, theirs = ours * s.replicas_of(stage_) / s.replicas_of(other);
  const std::int64_t begin = (replica_ * parts + row_part()) * ours, end = begin + ours;
  const GroupTable& pipeline = plan_.dimensions[static_cast<std::size_t>(Dimension::pipeline)];
  const auto members = pipeline.groups[pipeline.member_of[first_rank_]];
  const std::vector<Coordinates> at = coordinates(s);
  const auto place = [&](std::int64_t stage, std::int64_t cell) {
    const auto there = [&](std::int32_t rank) {
      const Coordinates& c = at[rank];
      return c.pipeline == stage && c.replica == cell / parts && (parts == 1 || c.tensor == cell % parts);
    };
    return std::find_if(members.begin(), members.end(), there) - members.begin();
  };
  const std::int64_t here = place(stage_, begin / ours);
  std::vector<Slice> slices;
  for (std::int64_t cell = begin / theirs; cell * theirs < end; ++cell) {
    const std::int64_t first = std::max(begin, cell * theirs), last = std::min(end, (cell + 1) * theirs);
    slices.push_back({place(other, cell) - here, first - begin, last - first});
  }
  return slices;
}

// Whether this stage and one of another number of ranks hold the word table: all ranks of both reduce its gradient
// together, once a step, and cut its states.
bool PlanBuilder::shares_table_unlike() const {
  const bool end = stage_ == 0 || at_last_stage();
  return spec_.model.tied_embeddings && !context_.ends_meet && end && spec_.strategy.ends_unlike();
}

}  // namespace orrery
