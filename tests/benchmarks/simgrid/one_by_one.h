#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "models/base/units.h"
#include "sim/engine/fair_share.h"
#include "tests/sim/engine/random_flows.h"

namespace orrery::test {

// Follows every flow of FairShare by itself: what is left of each, from one end to the next.
class OneByOne {
 public:
  explicit OneByOne(FairShare& share) : share_(share) {}

  void start(std::uint32_t name, std::int64_t length, const RandomFlow& flow) {
    running_.push_back({name, share_.add_flow(flow.uses, flow.limit), length, 0});
  }

  std::vector<std::uint32_t> next() {
    share_.update();
    Picoseconds first = std::numeric_limits<Picoseconds>::max();
    for (Running& r : running_) {
      r.rate = share_.rate(r.flow);
      if (r.rate > 0) first = std::min(first, (r.left + r.rate - 1) / r.rate);
    }
    std::vector<std::uint32_t> ended;
    for (Running& r : running_) r.left -= r.rate * first;
    std::erase_if(running_, [&](const Running& r) {
      if (r.left > 0) return false;
      ended.push_back(r.name);
      share_.remove_flow(r.flow);
      return true;
    });
    if (!ended.empty()) now_ += first;
    std::sort(ended.begin(), ended.end());
    return ended;
  }

  Picoseconds now() const { return now_; }

 private:
  struct Running {
    std::uint32_t name;
    FlowId flow;
    std::int64_t left;
    Rate rate;
  };
  FairShare& share_;
  std::vector<Running> running_;
  Picoseconds now_ = 0;
};

}  // namespace orrery::test
