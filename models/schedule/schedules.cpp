#include "models/schedule/schedules.h"

#include <algorithm>

namespace orrery {

using Order = std::vector<Action>;

Schedule place_chunks(ChunkPlacement placement, const ScheduleShape& shape, std::int64_t copies) {
  Schedule schedule;
  schedule.copies = placement == ChunkPlacement::both_ways ? copies : 1;
  for (std::int64_t k = 0; k < shape.stages * shape.chunks * schedule.copies; ++k) {
    const std::int64_t chunk = k / shape.stages;
    const std::int64_t ahead = schedule.copies > 1 ? chunk / 2 * (2 * shape.stages / schedule.copies) : 0;
    const std::int64_t at = (k + ahead) % shape.stages;
    const bool back = placement != ChunkPlacement::in_turn && chunk % 2 == 1;
    schedule.stage_of.push_back(static_cast<std::int32_t>(back ? shape.stages - 1 - at : at));
    schedule.chunk_of.push_back(static_cast<std::int32_t>(chunk));
  }
  return schedule;
}

Schedule place_chunks(const ScheduleRow& row, const ScheduleShape& shape) {
  Schedule schedule = place_chunks(row.placement, shape, row.copies);
  if (row.vocabulary_barriers == 0 || shape.stages == 1) return schedule;
  schedule.input_chunk = static_cast<std::int32_t>(shape.chunks);
  schedule.output_chunk = schedule.input_chunk + 1;
  schedule.barriers = row.vocabulary_barriers;
  return schedule;
}

Schedule make_schedule(std::string_view name, const ScheduleShape& shape) {
  const ScheduleRow& row = find_schedule(name);
  Schedule schedule = place_chunks(row, shape);
  schedule.order = row.orders(shape);
  if (row.moves != nullptr) schedule.moves = row.moves(schedule.order);
  return schedule;
}

std::int64_t hop(const Schedule& schedule, std::size_t boundary) {
  const std::int64_t from = schedule.stage_of[boundary], to = schedule.stage_of[boundary + 1];
  const std::int64_t stages = 1 + *std::max_element(schedule.stage_of.begin(), schedule.stage_of.end());
  return from == to ? 0 : (from + 1) % stages == to ? 1 : -1;
}

bool ends_meet(const Schedule& schedule) {
  return schedule.copies > 1 || schedule.stage_of.front() == schedule.stage_of[schedule.virtual_stages() - 1];
}

std::int64_t model_copies(std::string_view schedule) {
  const ScheduleRow* row = schedule_in_table(schedule);
  return row == nullptr ? 1 : row->copies;
}

bool spreads_vocabulary(std::string_view schedule) {
  const ScheduleRow* row = schedule_in_table(schedule);
  return row != nullptr && row->vocabulary_barriers > 0;
}

bool splits_backward(const Schedule& schedule) {
  return std::any_of(schedule.order.begin(), schedule.order.end(), [](const Order& order) {
    return std::any_of(order.begin(), order.end(), [](const Action& a) { return a.phase == Phase::weight_gradient; });
  });
}

bool is_mirrored(const Schedule& schedule) {
  const std::size_t count = schedule.order.size();
  for (std::size_t s = 0; s < count / 2; ++s) {
    const Order &one = schedule.order[s], &other = schedule.order[count - 1 - s];
    const bool same =
        std::equal(one.begin(), one.end(), other.begin(), other.end(), [](const Action& a, const Action& b) {
          return a.phase == b.phase && a.chunk == 1 - b.chunk && a.woven == b.woven;
        });
    if (!same) return false;
  }
  return true;
}

}  // namespace orrery
