#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "models/plan/plan.h"
#include "models/trace/trace.h"
#include "sim/memory/host_times.h"
#include "sim/memory/replay_moments.h"

namespace orrery {

// Returns whether the tasks and buffers of two classes of ranks are equal, up to the numbers of tasks, buffers and
// frames. frames: for each class, its frames.
bool equal_plans(const Plan& plan, std::uint32_t slot, std::uint32_t other,
                 const std::vector<std::vector<std::uint32_t>>& frames);

// The replays of classes of ranks that other classes of the same pipeline stage may share. plan, trace, frames (for
// each class, its frames): must outlive this object.
class SharedReplays {
 public:
  SharedReplays(const Plan& plan, const Trace& trace, const std::vector<std::vector<std::uint32_t>>& frames);

  // Returns the class among those before whose replay a class has as well, if there is one. Must be called for one
  // class after the other.
  std::optional<std::uint32_t> find(std::uint32_t slot, const HostTimes& host);
  // Returns whether later classes may share the replay of a class.
  bool wants(std::uint32_t slot) const;
  // Adds the replay of a class, of which `moments` were noted.
  void add(std::uint32_t slot, ReplayMoments moments);

 private:
  struct Known {
    std::uint32_t slot = 0, alike = 0;  // a class, and the first one whose plan is equal
    ReplayMoments moments;
  };
  std::uint32_t first_alike(std::uint32_t slot) const;

  const Plan& plan_;
  const Trace& trace_;
  const std::vector<std::vector<std::uint32_t>>& frames_;
  std::map<std::int64_t, std::int64_t> left_;  // for each stage, its classes that find() was not yet called for
  std::map<std::int64_t, std::vector<Known>> known_;
  std::uint32_t alike_ = 0;  // first_alike() of the class that find() was last called for
};

}  // namespace orrery
