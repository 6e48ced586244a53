#include "sim/whatif/step_replay.h"

#include <algorithm>
#include <cassert>
#include <functional>
#include <numeric>

namespace orrery {

StepReplay::StepReplay(const StepGraph& graph, const std::function<double(const RunNode&)>& time)
    : graph_(graph),
      ends_(graph.nodes.size()),
      first_(graph.nodes.size() + 1),
      by_end_(graph.nodes.size()),
      new_ends_(graph.nodes.size()),
      is_changed_(graph.nodes.size()),
      is_queued_(graph.nodes.size()) {
  for (std::uint32_t i = 0; i < ends_.size(); ++i) {
    times_.push_back(time(graph.nodes[i]));
    ends_[i] = ready(i) + times_[i];
    for (const std::uint32_t before : graph.nodes[i].after) ++first_[before + 1];
  }
  std::partial_sum(first_.begin(), first_.end(), first_.begin());
  next_.resize(first_.back());
  std::vector<std::uint32_t> at(first_.begin(), first_.end() - 1);
  for (std::uint32_t i = 0; i < ends_.size(); ++i) {
    for (const std::uint32_t before : graph.nodes[i].after) next_[at[before]++] = i;
  }
  std::iota(by_end_.begin(), by_end_.end(), 0U);
  std::stable_sort(by_end_.begin(), by_end_.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return ends_[a] > ends_[b]; });
}

double StepReplay::ready(std::uint32_t node) const {
  double ready = 0;
  for (const std::uint32_t before : graph_.nodes[node].after)
    ready = std::max(ready, is_changed_[before] ? new_ends_[before] : ends_[before]);
  return ready;
}

// Replays a node, and queues those that wait for it if it ends at another time now.
void StepReplay::follow(std::uint32_t node, bool measured) {
  const double end = ready(node) + (measured ? graph_.nodes[node].time : times_[node]);
  if (end == ends_[node]) return;
  new_ends_[node] = end;
  is_changed_[node] = true;
  changed_.push_back(node);
  for (std::uint32_t i = first_[node]; i < first_[node + 1]; ++i) {
    if (is_queued_[next_[i]]) continue;
    is_queued_[next_[i]] = true;
    queued_.push_back(next_[i]);
    std::push_heap(queued_.begin(), queued_.end(), std::greater<>());
  }
}

// Every node comes after those that it waits for, so that the lowest index is replayed first.
double StepReplay::with_measured(std::span<const std::uint32_t> nodes) {
  assert(std::ranges::is_sorted(nodes));
  auto measured = nodes.begin();
  while (measured != nodes.end() || !queued_.empty()) {
    const bool takes_measured = measured != nodes.end() && (queued_.empty() || *measured <= queued_.front());
    const std::uint32_t node = takes_measured ? *measured++ : queued_.front();
    if (!queued_.empty() && queued_.front() == node) {
      std::pop_heap(queued_.begin(), queued_.end(), std::greater<>());
      queued_.pop_back();
      is_queued_[node] = false;
    }
    follow(node, takes_measured);
  }
  const double last = last_end();
  for (const std::uint32_t node : changed_) is_changed_[node] = false;
  changed_.clear();
  return last;
}

double StepReplay::last_end() const {
  double last = 0;
  for (const std::uint32_t node : changed_) last = std::max(last, new_ends_[node]);
  const auto same = std::find_if(by_end_.begin(), by_end_.end(), [&](std::uint32_t i) { return !is_changed_[i]; });
  return same == by_end_.end() ? last : std::max(last, ends_[*same]);
}

}  // namespace orrery
