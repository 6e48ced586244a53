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

// Who hands out a replay's blocks and counts their bytes.
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

// The states of one rank slot that its stack keeps as a tensor a weight, where the plan has one buffer for all weights
// of a chunk: torch.optim's moments, made at the first update among what the first step has freed, and autograd's
// gradients, each made by its weight's first backward of a step and given up at the update. What they lie between
// decides how much of its segments the allocator can use again.
class StateTensors {
 public:
  // frames: of the slot. Gradients are kept so only where they are as wide as weights; wider sums have a buffer.
  StateTensors(const Plan& plan, const std::vector<std::uint32_t>& frames, bool moments, bool gradients,
               BlockSource& blocks);

  bool has_moments(std::uint32_t state) const { return moments_ && weights_.count(state) != 0; }
  // All lazy slots of a chunk's state frame, weight by weight.
  void take_moments(std::uint32_t state, Picoseconds now);

  bool has_gradients() const { return gradient_width_ > 0; }
  // What task t makes or gives up. made: the block of a gradient that it adds to a sum not yet there, if one can be
  // had: that block becomes the sum.
  void change_gradients(TaskId t, const std::function<std::optional<BlockId>()>& made, Picoseconds now);
  // Of a chunk's, the last ones first, until no more than so many bytes are left.
  void give_gradients(std::uint32_t state, Bytes left);

 private:
  const Plan& plan_;
  BlockSource& blocks_;
  const bool moments_;
  Bytes gradient_width_ = 0;
  std::map<std::uint32_t, std::vector<std::int64_t>> weights_;          // elements, by state frame
  std::map<std::uint32_t, std::map<std::int64_t, BlockId>> gradients_;  // likewise, by place in the chunk's buffers
};

}  // namespace orrery
