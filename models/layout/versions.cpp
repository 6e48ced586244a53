#include "models/layout/versions.h"

namespace orrery {

bool updates_by_step(const Draft& draft) {
  return find_schedule(draft.facts.spec.strategy.schedule).updates == Updates::every_step;
}

void add_versions(Draft& draft, Chunk& chunk) {
  Plan& plan = draft.plan;
  chunk.versions = {chunk.state};
  if (!draft.asynchronous()) return;
  const auto& order = draft.schedule.order;
  const bool of_first = draft.facts.spec.strategy.vertical_sync || updates_by_step(draft);
  draft.layout.versions =
      weight_versions(order[draft.at.stage], order[of_first ? 0 : draft.at.stage], plan.update_every);
  if (draft.layout.versions.kept == 1) return;
  BlockBuffer weights = plan.blocks[plan.frames[chunk.state].block].buffers[kParameters];
  weights.name = "older parameters";
  const auto block = static_cast<std::uint32_t>(plan.blocks.size());
  plan.blocks.push_back({.name = "version", .role = BlockRole::version, .buffers = {weights}});
  while (static_cast<std::int64_t>(chunk.versions.size()) < draft.layout.versions.kept)
    chunk.versions.push_back(draft.add_frame(block));
}

std::uint32_t version(const Chunk& chunk, std::int64_t updates) {
  return chunk.versions[static_cast<std::size_t>(updates) % chunk.versions.size()];
}

std::uint32_t weights_of(const Draft& draft, const Chunk& chunk, std::int32_t micro_batch) {
  return draft.asynchronous() ? version(chunk, draft.layout.versions.met[static_cast<std::size_t>(micro_batch)])
                              : kNone;
}

}  // namespace orrery
