#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "models/planner/step_part.h"

namespace orrery {

// Activations of a micro-batch that another stage keeps between its forward and its backward (eviction: BPipe).
class ActivationMoves : public StepPart {
 public:
  ActivationMoves(Draft& draft, TaskWriter& writer);

  void begin_slot() override;
  bool issue(const Crossing& crossing) override;
  void issued(const Op& op, std::uint32_t frame, TaskId task) override;

 private:
  // One buffer that leaves or comes back in one message, and the frame that it belongs to.
  struct Parcel {
    std::uint32_t frame = kNone;
    std::uint16_t slot = 0;
    Bytes bytes = 0;
  };
  std::vector<Parcel> parcels_of(const ActivationMove& move) const;
  std::uint32_t guest_frame(const std::vector<Parcel>& parcels, std::int32_t micro_batch);
  void move(const Crossing& crossing);

  std::vector<char> alive_;                       // by buffer id: allocated and not freed
  std::map<std::int32_t, std::uint32_t> guests_;  // frames of activations kept for another stage, by move
  std::map<std::pair<std::int32_t, int>, std::vector<Parcel>> parcels_;  // parcels, by move and rank class
};

}  // namespace orrery
