#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "models/plan.h"

namespace orrery {

// One entry of a rank's pipeline order: run this phase of this chunk for this micro-batch.
struct Action {
  Phase phase = Phase::forward;
  std::int32_t chunk = 0;
  std::int32_t micro_batch = 0;
};

// What a micro-batch takes on one stage: forward, the input gradient's part of backward, the weight gradient's. In any
// unit; a whole backward takes the latter two.
struct PhaseTimes {
  std::int64_t forward = 1, input = 1, weight = 1;
};

// What a schedule is asked for: p stages, m micro-batches, v chunks (virtual stages) a stage. Orders that are searched
// fit the times of the virtual stages; empty: all ones.
struct ScheduleShape {
  std::int64_t stages = 1;
  std::int64_t micro_batches = 1;
  std::int64_t chunks = 1;
  std::vector<PhaseTimes> times;
};

// The order of actions of every stage, and where each virtual stage lives: virtual stage k (in model order) is chunk
// chunk_of[k] of stage stage_of[k].
struct Schedule {
  std::vector<std::vector<Action>> order;
  std::vector<std::int32_t> stage_of;
  std::vector<std::int32_t> chunk_of;
};

// A pipeline schedule: a row of the table in schedules.cpp.
struct ScheduleRow {
  std::string_view name;
  std::string_view about;
  bool chunked;  // uses virtual stages
  bool splits;   // runs weight gradients apart from the rest of backward
  std::vector<std::vector<Action>> (*orders)(const ScheduleShape& shape);
};

const std::vector<ScheduleRow>& schedule_rows();
const ScheduleRow& find_schedule(std::string_view name);  // throws Error listing the known names
Schedule make_schedule(std::string_view name, const ScheduleShape& shape);

bool splits_backward(const Schedule& schedule);

}  // namespace orrery
