#include "models/planner/asynchronous.h"

#include <variant>

#include "models/layout/versions.h"

namespace orrery {

bool ends_update(const Draft& draft, const Action& action) {
  return draft.asynchronous() && action.phase == Phase::backward &&
         (action.micro_batch + 1) % draft.plan.update_every == 0;
}

// Returns the id of the frame (instance of buffers) of the next update, which reads the version of the weights in frame
// `from` and writes the version in frame `to`.
std::uint32_t AsynchronousUpdates::update_frame(const Chunk& chunk, std::uint32_t from, std::uint32_t to) {
  const auto [it, fresh] = draft_.blocks.try_emplace("update", static_cast<std::uint32_t>(plan_.blocks.size()));
  if (fresh) plan_.blocks.push_back({.name = "update", .role = BlockRole::update});
  const std::uint32_t frame = draft_.add_frame(it->second);
  Frame& f = plan_.frames[frame];
  f.state = chunk.state;
  f.previous = from;
  f.weights = to;
  f.micro_batch = static_cast<std::int32_t>((updates_ + 1) * plan_.update_every - 1);
  return frame;
}

void AsynchronousUpdates::copy_weights(const Chunk& chunk, std::uint32_t frame) {
  const Op copy = {.name = "copy weights",
                   .work = Cast{chunk.weights.all, context_.width, context_.width},
                   .phase = Phase::step,
                   .optimizer = true,
                   .operands = {{Scope::previous, Access::read, kParameters, -1}, state(kParameters, Access::write)}};
  writer_.emit(copy, frame);
}

std::uint32_t AsynchronousUpdates::begin(const Chunk& chunk, bool in_place) {
  const std::uint32_t from = version(chunk, updates_), to = version(chunk, updates_ + 1);
  const std::uint32_t frame = update_frame(chunk, from, to);
  if (in_place && from != to) copy_weights(chunk, frame);
  return frame;
}

void AsynchronousUpdates::end_slot() {
  for (const Chunk& chunk : chunks_) {
    const std::uint32_t newest = version(chunk, updates_);
    if (newest != chunk.state) copy_weights(chunk, update_frame(chunk, newest, chunk.state));
  }
}

static Op wait(const char* name) { return Op{.name = name, .work = Wait{}, .host_waits = true}; }

void RunAhead::issued(const Op& op, std::uint32_t frame, TaskId task) {
  const auto* transfer = std::get_if<Transfer>(&op.work);
  if ((transfer != nullptr && transfer->send) || op.lane == LaneKind::hand_over)
    sent_[plan_.frames[frame].micro_batch].push_back(task);
}

void RunAhead::before_block(const Pass& pass) {
  const std::int64_t before = pass.action.micro_batch - kMicroBatchesAhead;
  if (pass.at > 0 || !sent_.contains(before)) return;
  const Chunk& chunk = chunks_[pass.action.chunk];
  writer_.emit(wait("wait for sent output"), chunk.frame_of(pass.action.micro_batch, pass.entry()), sent_.at(before));
}

void RunAhead::end_step() {
  std::vector<TaskId> all;
  for (const auto& [micro_batch, tasks] : sent_) all.insert(all.end(), tasks.begin(), tasks.end());
  writer_.emit(wait("wait for all sent output"), chunks_.front().state, all);
}

}  // namespace orrery
