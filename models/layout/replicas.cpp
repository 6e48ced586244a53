#include "models/layout/replicas.h"

#include <algorithm>

#include "models/partition/rank_groups.h"

namespace orrery {

void enter(Draft& draft, std::int64_t stage, std::int64_t replica) {
  draft.at.stage = stage;
  draft.at.replica = replica;
  const Strategy& s = draft.facts.spec.strategy;
  if (s.stage_replicas.empty()) return;
  draft.context.divide_among(s.replicas_of(stage));
  const std::vector<Coordinates> at = coordinates(s);
  const auto own = [&](const Coordinates& c) {
    return c.pipeline == stage && c.replica == replica && (s.row_parts() == 1 || c.tensor == draft.at.rank_kind);
  };
  draft.at.first_rank = std::find_if(at.begin(), at.end(), own) - at.begin();
}

std::vector<Slice> slices_over(const Draft& draft, std::size_t boundary, bool upstream) {
  const BlockContext& context = draft.context;
  const Strategy& s = draft.facts.spec.strategy;
  const std::int64_t hops = upstream ? context.stage_step : -context.stage_step;
  if (s.stage_replicas.empty()) return {{hops, 0, context.local_rows}};
  const std::int64_t other = draft.schedule.stage_of[boundary + (upstream ? 1 : 0)], parts = s.row_parts();
  const std::int64_t ours = context.local_rows, theirs = ours * s.replicas_of(draft.at.stage) / s.replicas_of(other);
  const std::int64_t begin = (draft.at.replica * parts + draft.row_part()) * ours, end = begin + ours;
  const GroupTable& pipeline = draft.plan.dimensions[static_cast<std::size_t>(Dimension::pipeline)];
  const auto members = pipeline.groups[pipeline.member_of[draft.at.first_rank]];
  const std::vector<Coordinates> at = coordinates(s);
  const auto place = [&](std::int64_t stage, std::int64_t cell) {
    const auto there = [&](std::int32_t rank) {
      const Coordinates& c = at[rank];
      return c.pipeline == stage && c.replica == cell / parts && (parts == 1 || c.tensor == cell % parts);
    };
    return std::find_if(members.begin(), members.end(), there) - members.begin();
  };
  const std::int64_t here = place(draft.at.stage, begin / ours);
  std::vector<Slice> slices;
  for (std::int64_t cell = begin / theirs; cell * theirs < end; ++cell) {
    const std::int64_t first = std::max(begin, cell * theirs), last = std::min(end, (cell + 1) * theirs);
    slices.push_back({place(other, cell) - here, first - begin, last - first});
  }
  return slices;
}

bool shares_table_unlike(const Draft& draft) {
  const bool end = draft.at.stage == 0 || draft.at_last_stage();
  return draft.facts.spec.model.tied_embeddings && !draft.context.ends_meet && end &&
         draft.facts.spec.strategy.ends_unlike();
}

}  // namespace orrery
