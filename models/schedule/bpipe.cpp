#include "models/schedule/bpipe.h"

#include <algorithm>
#include <map>

namespace orrery {
namespace {

std::int64_t most_kept(const std::vector<Action>& order) {
  std::int64_t now = 0, most = 0;
  for (const Action& a : order) {
    now += a.phase == Phase::forward ? 1 : -1;
    most = std::max(most, now);
  }
  return most;
}

// Returns the moves of one stage in BPipe: the micro-batches whose activations it sends to its partner stage and gets
// back, in the order in which it sends them. room: number of micro-batches whose activations the stage may keep.
std::vector<Eviction> moves_of(const std::vector<Action>& order, std::int64_t room) {
  std::vector<Eviction> moves;
  if (most_kept(order) <= room) return moves;
  // for each micro-batch whose activations the partner holds, the index of the move that sent them
  std::map<std::int32_t, std::size_t> away;
  std::int64_t here = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto back = i + 1 < order.size() && order[i + 1].phase == Phase::backward
                          ? away.find(order[i + 1].micro_batch)
                          : away.end();
    if (back != away.end()) {
      moves[back->second].returns = static_cast<std::int32_t>(i + 1);
      away.erase(back);
      ++here;
    }
    here += order[i].phase == Phase::forward ? 1 : -1;
    const bool needed = i + 1 == order.size() || order[i + 1].micro_batch == order[i].micro_batch;
    if (order[i].phase != Phase::forward || here < room || needed) continue;
    away[order[i].micro_batch] = moves.size();
    moves.push_back({.micro_batch = order[i].micro_batch, .leaves = static_cast<std::int32_t>(i)});
    --here;
  }
  return moves;
}

}  // namespace

std::vector<Eviction> balance_activations(const std::vector<std::vector<Action>>& orders) {
  const auto stages = static_cast<std::int32_t>(orders.size());
  std::vector<Eviction> all;
  for (std::int32_t stage = 0; 2 * stage < stages - 1; ++stage) {
    for (Eviction move : moves_of(orders[stage], (stages + 3) / 2)) {
      move.stage = stage;
      move.partner = stages - 1 - stage;
      all.push_back(move);
    }
  }
  return all;
}

}  // namespace orrery
