#include "models/planner/matrix_optimizers.h"

#include <algorithm>

namespace orrery {
namespace {

bool is_layer(const Draft& draft, const Entry& e) { return draft.plan.blocks[e.block].role == BlockRole::layer; }

Op exchange(const char* name, const Draft& draft, CollectiveKind kind, std::int64_t elements) {
  const Bytes width = draft.context.width;
  return {.name = name,
          .work = Collective{.kind = kind, .group = Dimension::data, .bytes = elements * width, .width = width},
          .phase = Phase::step,
          .lane = LaneKind::data_gather,
          .operands = {state(kBuckets, Access::read_write)}};
}

}  // namespace

std::vector<TaskId> orthogonalize(const Draft& draft, TaskWriter& writer, const Chunk& chunk,
                                  const std::vector<TaskId>& after) {
  const std::int64_t ranks = draft.group_size(Dimension::data);
  const bool sharded = draft.shards(Dimension::data) > 1;
  const auto layers = std::ranges::count_if(chunk.entries, [&](const Entry& e) { return is_layer(draft, e); });
  // All ranks of a class share one plan, which is that of the rank with the most matrices to orthogonalize: for each
  // kind of matrix (such as the MLP's up projection), the number of layers divided by the number of data ranks, rounded
  // up.
  std::int64_t own = ceil_div(layers, ranks);
  std::vector<TaskId> ready = after;
  for (const Entry& entry : chunk.entries) {
    const Block& block = draft.plan.blocks[entry.block];
    if (!is_layer(draft, entry)) continue;
    std::int64_t elements = 0;
    for (const LocalParameter& p : block.parameters) elements += p.in > 1 && !p.frozen ? p.out * p.in : 0;
    if (elements == 0) continue;
    const auto move = [&](const char* name, CollectiveKind kind, std::int64_t n) {
      ready = {writer.emit(exchange(name, draft, kind, n), chunk.state, ready)};
    };
    if (sharded) move("momentum by matrix", CollectiveKind::all_to_all, ceil_div(elements, ranks));
    for (const LocalParameter& p : block.parameters) {
      if (p.in == 1 || p.frozen || own == 0) continue;
      const Op op = {.name = "orthogonalize " + p.name,
                     .work = Orthogonalize{p.out, p.in, 1, 5},
                     .phase = Phase::step,
                     .precision = draft.facts.spec.strategy.precision,
                     .optimizer = true,
                     .operands = {state(kBuckets, Access::read_write)}};
      ready = {writer.emit(op, chunk.state, ready)};
    }
    own = std::max<std::int64_t>(0, own - 1);
    if (sharded) move("updates by shard", CollectiveKind::all_to_all, ceil_div(elements, ranks));
    if (!sharded && ranks > 1) move("gather updates", CollectiveKind::all_gather, elements);
  }
  return ready;
}

}  // namespace orrery
