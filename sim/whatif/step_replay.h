#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "sim/whatif/step_graph.h"

namespace orrery {

// Replays of one step in which most nodes take the same times, and begin as soon as those that they wait for have
// ended. A replay in which a few nodes take their measured times follows only the nodes that end at another time then,
// so that a thousand replays, one for each rank of a large run, take little longer than a few.
class StepReplay {
 public:
  // graph: must outlive this object. time: the time of each node, where it does not take its measured time.
  StepReplay(const StepGraph& graph, const std::function<double(const RunNode&)>& time);

  // Returns the step time if the nodes with these indices, in ascending order, take their measured times: what
  // replayed() returns.
  double with_measured(std::span<const std::uint32_t> nodes);

 private:
  double ready(std::uint32_t node) const;
  void follow(std::uint32_t node, bool measured);
  double last_end() const;

  const StepGraph& graph_;
  std::vector<double> times_, ends_;         // of each node, where none takes its measured time
  std::vector<std::uint32_t> first_, next_;  // the nodes that wait for node i: next_[first_[i]] to next_[first_[i + 1]]
  std::vector<std::uint32_t> by_end_;        // all nodes, the one that ends last first
  std::vector<double> new_ends_;             // ends of the nodes in changed_
  std::vector<bool> is_changed_, is_queued_;
  std::vector<std::uint32_t> changed_, queued_;
};

}  // namespace orrery
