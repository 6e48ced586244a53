#include "models/schedule/dualpipe.h"

#include <array>
#include <deque>

#include <fmt/format.h>

#include "models/base/error.h"

namespace orrery {
namespace {

// Builds the order of a rank: appends actions, counts each chunk's micro-batches, and keeps the weight gradients that
// were postponed.
class DualPipeOrder {
 public:
  std::vector<Action> actions;

  void forward(std::int32_t chunk, bool woven = false) {
    actions.push_back({Phase::forward, chunk, forwards_[chunk]++, woven});
  }
  void backward(std::int32_t chunk) { actions.push_back({Phase::backward, chunk, backwards_[chunk]++}); }
  void input_gradient(std::int32_t chunk) {
    weights_.push_back({Phase::weight_gradient, chunk, backwards_[chunk]});
    actions.push_back({Phase::input_gradient, chunk, backwards_[chunk]++});
  }
  void weight_gradient() {
    actions.push_back(weights_.front());
    weights_.pop_front();
  }
  void woven(std::int32_t forward_chunk, std::int32_t backward_chunk) {
    forward(forward_chunk, true);
    backward(backward_chunk);
  }

 private:
  std::array<std::int32_t, 2> forwards_ = {}, backwards_ = {};
  std::deque<Action> weights_;
};

}  // namespace

std::vector<Action> dualpipe_order(std::int64_t half_ranks, std::int64_t half_rank, std::int64_t micro_batches) {
  if (micro_batches < 2 * half_ranks)
    throw Error(fmt::format("strategy.schedule: needs at least {} micro-batches over each copy of the model, not {}",
                            2 * half_ranks, micro_batches));
  const std::int64_t to_middle = half_ranks - half_rank - 1, from_end = half_rank + 1;
  DualPipeOrder order;
  for (std::int64_t i = 0; i < 2 * to_middle; ++i) order.forward(0);
  for (std::int64_t i = 0; i < from_end; ++i) {
    order.forward(0);
    order.forward(1);
  }
  for (std::int64_t i = 0; i < to_middle; ++i) {
    order.input_gradient(1);
    order.weight_gradient();
    order.forward(1);
  }
  for (std::int64_t i = 0; i < micro_batches - 2 * half_ranks + from_end; ++i) {
    // The paper's table overlaps every pair of passes; DeepSeek's program does not overlap the very first pair on the
    // middle rank.
    order.woven(0, 1);
    order.woven(1, 0);
  }
  for (std::int64_t i = 0; i < to_middle; ++i) {
    order.backward(1);
    order.woven(1, 0);
  }
  // The last backwards alternate between the two chunks. In the first half of them backward is complete; in the second
  // half only input gradients run, and their weight gradients are postponed.
  for (std::int64_t i = 0; i < 2 * from_end; ++i) {
    const auto chunk = static_cast<std::int32_t>(1 - i % 2);
    i < from_end ? order.backward(chunk) : order.input_gradient(chunk);
  }
  for (std::int64_t i = 0; i < to_middle; ++i) {
    order.weight_gradient();
    order.input_gradient(0);
  }
  for (std::int64_t i = 0; i < from_end; ++i) order.weight_gradient();
  return order.actions;
}

}  // namespace orrery
