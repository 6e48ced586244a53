#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/spec/spec.h"
#include "sim/predict/predict.h"
#include "viz/timeline/timeline.h"

namespace orrery {

// A simulated training step with its plan. Dependencies of tasks, and so their slack, are known only from the plan; a
// trace does not contain them.
// first: whether it is the first step of a run, in whose course states such as an optimizer's moments are allocated.
// memory: of a step that was taken from a simulated run of several, the trace of the step alone, whose use of memory is
// shown.
struct Step {
  Spec spec;
  Prediction prediction;
  bool first = false;
  std::shared_ptr<const Trace> memory = nullptr;
};

// The timeline of a simulated step, and for each task the event that shows it. The bar of a transfer begins when all
// ranks of the transfer are ready; a bar of kind `wait` before it shows how long this rank waited for the other ranks.
// Times are relative to the start of the step.
struct StepTimeline {
  std::shared_ptr<const Step> step;
  Timeline timeline;
  std::vector<EventId> event_of_task;
};

// Options for opening a spec file (model, cluster and strategy): keys to set to other values ("strategy.tensor=4"), the
// path of a measured profile that replaces the built-in one, and whether to simulate every rank or only one of each
// class of ranks that do the same.
struct SpecOptions {
  std::vector<std::string> overrides;
  std::string profile;
  bool unfold = false;
  bool operator==(const SpecOptions&) const = default;
};

// Simulates a step of a spec that already contains options.overrides.
std::shared_ptr<const Step> predict_step(const Spec& spec, const SpecOptions& options = {},
                                         const std::atomic<bool>* stop = nullptr);
StepTimeline timeline_of(std::shared_ptr<const Step> step);

Kind kind_of(const Op& op);
Kind kind_of(Dimension group);  // of transfers in groups of a dimension of parallelism

// The events of the tasks on the critical path, and the slack of every event: the time by which it could be longer
// without delaying the end of the step; -1 for events that show waiting instead of a task.
struct CriticalPath {
  std::vector<EventId> path;
  std::vector<Picoseconds> slack;
};
CriticalPath critical_path_of(const StepTimeline& s);

// Returns the largest buffers of a process at a time, as texts such as "1.50 GiB logits (activations)", the largest
// first; at most `most`.
std::vector<std::string> alive_at(const StepTimeline& s, std::uint32_t process, Picoseconds time, std::size_t most);

}  // namespace orrery
