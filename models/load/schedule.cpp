// This file has the rules about the options of pipeline schedules.
#include <string>

#include "models/load/reader.h"
#include "models/partition/layers_of_stages.h"
#include "models/schedule/schedules.h"

namespace orrery {
namespace {

bool takes_turns(const Strategy& s) {
  const ScheduleRow* row = schedule_in_table(s.schedule);
  return row != nullptr && row->takes_turns;
}

Broken interleave_rules(const Spec& spec) {
  const Strategy& s = spec.strategy;
  if (!takes_turns(s) || s.pipeline == 1) return {};
  // Megatron-Core's rule for interleaved schedules: as many micro-batches as there are stages, or more, must pass
  // through a chunk in one group, because a stage would otherwise idle before its next chunk.
  const std::int64_t group = interleave_group(spec), rest = s.micro_batches() % group;
  if (s.interleave_group != 0 && group < s.pipeline)
    return broken("interleave_group", "interleave_group: {} is less than pipeline: {}", group, s.pipeline);
  if (interleaves(spec, s.pipeline, s.micro_batches())) return {};
  if (group == s.pipeline) {
    return broken("global_batch",
                  "schedule: interleaved needs micro-batches in multiples of pipeline: {}; global_batch: {} gives {}",
                  s.pipeline, s.global_batch, s.micro_batches());
  }
  return broken("global_batch",
                "global_batch: {} gives {} micro-batches; interleaved turns of {} leave too few over: {}",
                s.global_batch, s.micro_batches(), group, rest);
}

}  // namespace

Broken schedule_rules(const Spec& spec) {
  if (Broken b = replica_rules(spec); !b.what.empty()) return b;
  return interleave_rules(spec);
}

}  // namespace orrery
