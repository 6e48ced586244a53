#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "models/base/units.h"
#include "models/plan/plan.h"
#include "sim/memory/allocator.h"

namespace orrery {

// The source that hands out the blocks of a replay and counts their bytes.
class BlockSource {
 public:
  BlockSource() = default;
  BlockSource(const BlockSource&) = delete;
  BlockSource& operator=(const BlockSource&) = delete;
  virtual ~BlockSource() = default;
  virtual BlockId take(Bytes bytes, Category category, Picoseconds now) = 0;
  virtual void give(BlockId block, Category category) = 0;
  virtual Bytes size(BlockId block) const = 0;
};

// The states of one rank slot that its stack keeps as one tensor for each weight, where the plan has one buffer for all
// weights of a chunk: torch.optim's moments, made at the first update among the blocks that the first step has freed,
// and autograd's gradients, each made by the first backward of its weight in a step and given up at the update. The
// blocks between which these tensors lie decide how much of its segments the allocator can use again.
class StateTensors {
 public:
  // frames: the frames of the slot. Gradients are kept by weight only where they are as wide as weights; wider sums
  // have a buffer.
  StateTensors(const Plan& plan, const std::vector<std::uint32_t>& frames, bool moments, bool gradients,
               BlockSource& blocks);

  bool has_moments(std::uint32_t state) const { return moments_ && weights_.count(state) != 0; }
  // Takes the moments of a chunk, all lazy slots of the chunk's state frame, weight by weight.
  void take_moments(std::uint32_t state, Picoseconds now);

  bool has_gradients() const { return gradient_width_ > 0; }
  // Makes or gives up the gradients that task t makes or gives up. made: returns the block of a gradient that the task
  // adds to a sum not yet there, if one can be had: that block becomes the sum.
  void change_gradients(TaskId t, const std::function<std::optional<BlockId>()>& made, Picoseconds now);
  // Gives up gradients of a chunk, the last ones first, until no more than `left` bytes are held.
  void give_gradients(std::uint32_t state, Bytes left);

 private:
  const Plan& plan_;
  BlockSource& blocks_;
  const bool moments_;
  Bytes gradient_width_ = 0;
  std::map<std::uint32_t, std::vector<std::int64_t>> weights_;  // elements of each weight, by state frame

  // block of each gradient, by state frame and place in the chunk's buffers
  std::map<std::uint32_t, std::map<std::int64_t, BlockId>> gradients_;
};

}  // namespace orrery
