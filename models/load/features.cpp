#include "models/load/features.h"

#include <algorithm>
#include <optional>

#include "models/base/error.h"
#include "models/partition/layers_of_stages.h"
#include "models/partition/rank_groups.h"
#include "models/schedule/schedule_file.h"
#include "models/spec/sequence.h"

namespace orrery::feature::is {
namespace {

// Returns a spec's schedule: the stage of every chunk, and the order of each stage's forward and backward passes
// (actions). It is computed without the passes' durations, because they shift passes in time, but change neither which
// passes are overlapped nor which stage runs them. Returns nothing if no order can be made.
std::optional<Schedule> ordered(const Spec& spec) {
  const Strategy& s = spec.strategy;
  ScheduleShape shape = {.stages = s.pipeline,
                         .micro_batches = s.micro_batches(),
                         .chunks = s.virtual_stages,
                         .woven = s.overlap.micro_batches};
  try {
    if (s.schedule == "file") {
      if (s.schedule_text.empty()) return std::nullopt;
      return parse_schedule(s.schedule_text, s.schedule_file, shape);
    }
    shape.group = interleave_group(spec);
    shape.extra_warm_up = s.extra_warm_up;
    const ScheduleRow& row = find_schedule(s.schedule);
    Schedule result = place_chunks(row, shape);
    result.order = row.orders(shape);
    if (row.moves != nullptr) result.moves = row.moves(result.order);
    return result;
  } catch (const Error&) {
    return std::nullopt;
  }
}

template <class Which>
bool weaves(const Spec& spec, Which which) {
  const ScheduleRow* row = schedule(spec);
  if (row == nullptr || !(row->weaving == Weaving::always || spec.strategy.overlap.micro_batches)) return false;
  const std::optional<Schedule> schedule = ordered(spec);
  const auto woven_so = [&](const Action& a, const Action& b) { return a.woven && which(a, b); };
  return schedule && std::ranges::any_of(schedule->order, [&](const std::vector<Action>& actions) {
           return std::ranges::adjacent_find(actions, woven_so) != actions.end();
         });
}

}  // namespace

bool uneven_nodes(const Spec& spec) {
  const Strategy& s = spec.strategy;
  if (!s.zero_quantize.any()) return false;
  const ShardingRow& row = row_of(s.sharding);
  const auto tables = make_groups(s, row.shards_optimizer, row.hybrid, 1, false, spec.cluster.gpus_per_node);
  const GroupList& groups = tables[static_cast<std::size_t>(Dimension::data_in_node)].groups;
  for (const auto& group : groups) {
    if (group.size() != groups.front().size()) return true;
  }
  return false;
}

const ShardingRow& sharding(const Spec& spec) { return row_of(spec.strategy.sharding); }
const ScheduleRow* schedule(const Spec& spec) { return schedule_in_table(spec.strategy.schedule); }

bool ring_of_parts(const Spec& spec) {
  const Strategy& s = spec.strategy;
  return s.context > 1 && (s.context_ring > 1 || s.micro_batch > 1);
}

bool both_ends(const Spec& spec) {
  if (spec.strategy.pipeline == 1) return false;
  if (const ScheduleRow* row = schedule(spec); row != nullptr)
    return row->placement != ChunkPlacement::in_turn || row->vocabulary_barriers > 0;
  const std::optional<Schedule> own = ordered(spec);
  return own && ends_meet(*own);
}

bool ends_apart(const Spec& spec) {
  const bool apart = spec.strategy.pipeline > 1 && !both_ends(spec) && spec.strategy.ends_unlike();
  return spec.model.tied_embeddings && apart;
}

bool copies_out_of_step(const Spec& spec) {
  if (!runs_both_ways(spec.strategy.schedule)) return false;
  const std::optional<Schedule> schedule = ordered(spec);
  return schedule && !is_mirrored(*schedule);
}

bool evicted(const Spec& spec) {
  if (const ScheduleRow* row = schedule(spec); row == nullptr || row->moves == nullptr) return false;
  const std::optional<Schedule> schedule = ordered(spec);
  return schedule && !schedule->moves.empty();
}

bool woven(const Spec& spec) {
  return weaves(spec, [](const Action&, const Action&) { return true; });
}
bool woven_chunk(const Spec& spec) {
  return weaves(spec, [](const Action& a, const Action& b) { return a.chunk == b.chunk; });
}

bool order_of_training(const Spec& spec) {
  const ScheduleRow* row = schedule(spec);
  return row == nullptr || row->copies > 1 || row->vocabulary_barriers > 0 || row->updates != Updates::flush ||
         row->moves != nullptr || woven(spec);
}

// Returns whether ranks of one stage of a model on ranks of its own do unlike work.
static bool works_unlike(const Spec& spec) {
  const auto unlike = [&](std::int64_t window) { return !blocks_are_alike(spec.strategy, spec.sequence, window); };
  return unevenly_loaded(spec) || unlike(0) || (spec.model.sliding_window && unlike(spec.model.sliding_window->window));
}

bool unlike_ranks(const Spec& spec) {
  return works_unlike(spec) || (has_second_apart(spec) && works_unlike(second_spec(spec)));
}

bool copied_gradients(const Spec& spec) { return averaging(spec, sharding(spec)) == Averaging::copy; }

bool state_on_disk(const Spec& spec) {
  const Offload& o = spec.strategy.offload;
  return behind_host(o.optimizer) || behind_host(o.parameters) || behind_host(o.gradients);
}

}  // namespace orrery::feature::is
