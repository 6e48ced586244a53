#include "viz/predicted/first_step.h"

#include <fmt/format.h>

#include "models/base/error.h"
#include "sim/predict/run_steps.h"
#include "sim/print/text.h"

namespace orrery {
namespace {

// Both steps have the memory of the step that was predicted, whose host begins it with its first task: how far a host
// is ahead of a later step's begin is a matter of launch queues, which the engine does not bound.
StepTimeline timeline_of_one(const Step& from, Prediction prediction, bool first) {
  Spec spec = from.spec;
  spec.steps = 1;
  const auto memory = std::make_shared<const Trace>(from.prediction.trace);
  StepTimeline made = timeline_of(std::make_shared<const Step>(Step{spec, std::move(prediction), first, memory}));
  made.timeline.title = first ? "first step" : "steady step";
  return made;
}

}  // namespace

std::pair<StepTimeline, StepTimeline> first_and_steady(const Step& step, const std::atomic<bool>* stop) {
  if (step.spec.generation)
    throw Error("generated text has no first step: its passes over prompts and of one token are all in the timeline");
  RunSteps run = steps_of_run(step.spec, step.prediction, stop);
  auto first = timeline_of_one(step, std::move(run.first), true);
  auto steady = timeline_of_one(step, std::move(run.steady), false);
  steady.timeline.remarks.push_back(fmt::format("it ends {} after the step before it; memory at the first step's times",
                                                time_text(seconds(run.period))));
  return {std::move(first), std::move(steady)};
}

}  // namespace orrery
