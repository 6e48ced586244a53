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

// An interface that hands out memory blocks during a replay of allocations and counts their bytes by category.
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

// The gradients and optimizer moments of one class of ranks that the framework keeps as one tensor for each weight,
// although the plan has one buffer for all weights of a chunk of layers. torch.optim makes moments at the first update,
// in memory that the first step has freed. Autograd makes a gradient in the first backward of its weight in a step, and
// the update frees it. The addresses of these tensors decide how much of its segments the allocator can use again.
class StateTensors {
 public:
  // frames: the sets of buffers (frames of the plan) of one class of ranks. Gradients are one tensor for each weight
  // only if they have the precision of the weights; gradients that are summed in a wider data type are one buffer.
  StateTensors(const Plan& plan, const std::vector<std::uint32_t>& frames, bool moments, bool gradients,
               BlockSource& blocks);

  bool has_moments(std::uint32_t state) const { return moments_ && weights_.count(state) != 0; }
  // Allocates the optimizer moments of a chunk of layers, one weight after another. state: the chunk's set of buffers
  // for weights and optimizer states.
  void take_moments(std::uint32_t state, Picoseconds now);

  bool has_gradients() const { return gradient_width_ > 0; }
  // Allocates or frees the gradients that task t makes or discards. made: is called if the task adds to a gradient sum
  // that does not exist yet; returns the memory block of a gradient that can become the sum, if there is one.
  void change_gradients(TaskId t, const std::function<std::optional<BlockId>()>& made, Picoseconds now);
  // Frees gradients of a chunk of layers (given by `state`), beginning with the last weight, until at most `left` bytes
  // of them are allocated.
  void give_gradients(std::uint32_t state, Bytes left);

 private:
  const Plan& plan_;
  BlockSource& blocks_;
  const bool moments_;
  Bytes gradient_width_ = 0;
  // Number of elements of each weight of a chunk of layers; the key is the id of the chunk's set of buffers (state
  // frame).
  std::map<std::uint32_t, std::vector<std::int64_t>> weights_;

  // Memory block of each gradient, by the id of the chunk's set of buffers (state frame), then by the index of the
  // weight in the chunk.
  std::map<std::uint32_t, std::map<std::int64_t, BlockId>> gradients_;
};

}  // namespace orrery
