#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "models/planner/step_part.h"

namespace orrery {

// The planner's class for activation eviction (BPipe): another pipeline stage, the partner, keeps activations of a
// micro-batch between forward and backward.
class ActivationEviction : public StepPart {
 public:
  ActivationEviction(Draft& draft, TaskWriter& writer);

  void begin_slot() override;
  bool issue(const StageTransfer& transfer) override;
  void issued(const Op& op, std::uint32_t frame, TaskId task) override;

 private:
  // A buffer of activations that is sent to another stage, or back, in one message, and the frame (the buffers of one
  // block and micro-batch) that it belongs to.
  struct EvictedBuffer {
    std::uint32_t frame = kNone;
    std::uint16_t slot = 0;
    Bytes bytes = 0;
  };
  std::vector<EvictedBuffer> evicted_by(const Eviction& move) const;
  std::uint32_t frame_of_evicted(const std::vector<EvictedBuffer>& evicted, std::int32_t micro_batch);
  void move(const StageTransfer& transfer);

  std::vector<char> alive_;  // for each activation buffer (by id), whether it is allocated now
  // for each eviction (index in Schedule::moves), the id of the frame (instance of buffers) with the activations that
  // this stage keeps for its partner stage
  std::map<std::int32_t, std::uint32_t> frames_;
  // for each eviction (index in Schedule::moves) and kind of ranks (ranks of one stage that do the same work), the
  // evicted buffers
  std::map<std::pair<std::int32_t, int>, std::vector<EvictedBuffer>> evicted_;
};

}  // namespace orrery
