#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/spec/spec.h"
#include "sim/predict/predict.h"
#include "viz/timeline/timeline.h"

namespace orrery {

// A simulated step with all that is known of it: the one source of what only a plan knows (dependencies, slack).
struct Step {
  Spec spec;
  Prediction prediction;
};

// Its timeline, and which event shows which task. Bars of transfers begin when they are matched; before that a bar of
// kind wait shows for how long this end waited for the others. Times are the step's own: 0 is its start.
struct StepTimeline {
  std::shared_ptr<const Step> step;
  Timeline timeline;
  std::vector<EventId> event_of_task;
};

// How a spec is opened: keys set otherwise ("strategy.tensor=4"), a measured profile's path in the place of the
// built-in one, every rank instead of one of each class.
struct SpecOptions {
  std::vector<std::string> overrides;
  std::string profile;
  bool unfold = false;
  bool operator==(const SpecOptions&) const = default;
};

// options.overrides are the caller's to load the spec with.
std::shared_ptr<const Step> predict_step(const Spec& spec, const SpecOptions& options = {});
StepTimeline timeline_of(std::shared_ptr<const Step> step);

Kind kind_of(const Op& op);

// Tasks along the critical path, as events. slack: by event, how much longer it could take without the step taking
// longer; -1 for events that are no task (waiting).
struct CriticalPath {
  std::vector<EventId> path;
  std::vector<Picoseconds> slack;
};
CriticalPath critical_path_of(const StepTimeline& s);

// The largest buffers alive on a process at a time, "1.50 GiB logits (activations)", the largest first.
std::vector<std::string> alive_at(const StepTimeline& s, std::uint32_t process, Picoseconds time, std::size_t most);

}  // namespace orrery
