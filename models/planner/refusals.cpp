#include "models/planner/refusals.h"

#include <fmt/format.h>

#include "models/layout/versions.h"

namespace orrery {
namespace {

// Throws the Error that rejects the value of a key. what: the rule of the schedule that the value breaks. why: the
// reason, and what the user can do.
void refuse_with(const Draft& draft, std::string_view key, std::string_view what, std::string_view why) {
  throw Error(fmt::format("{}{}: {} {}; {}", source_of(draft.facts.spec, key), key, draft.facts.spec.strategy.schedule,
                          what, why));
}

}  // namespace

std::string source_of(const Spec& spec, std::string_view key) {
  for (const Origin& o : spec.origins) {
    if (o.key.starts_with(key) && o.from.find(':') != std::string::npos) return o.from + ": ";
  }
  return "";
}

void refuse_virtual_stages(const Spec& spec) {
  const Strategy& s = spec.strategy;
  const auto chunks_of = [&] { return s.schedule == "file" ? 0 : find_schedule(s.schedule).chunks; };
  const std::int64_t chunks = said_at(spec, "strategy.schedule", chunks_of);
  if (s.virtual_stages > 1 && (chunks == 1 || s.pipeline == 1)) {
    throw Error(
        fmt::format("{}strategy.virtual_stages: {} needs a pipeline of several stages and a schedule with chunks, "
                    "e.g. interleaved; not pipeline: {} with {}",
                    source_of(spec, "strategy.virtual_stages"), s.virtual_stages, s.pipeline, s.schedule));
  }
  if (chunks > 1 && s.virtual_stages != chunks)
    throw Error(fmt::format("{}strategy.virtual_stages: {} has {} a stage, in a pipeline of several stages; not {}",
                            source_of(spec, "strategy.virtual_stages"), s.schedule, chunks, s.virtual_stages));
}

void refuse_odd_copies(const Draft& draft) {
  const Strategy& s = draft.facts.spec.strategy;
  const std::int64_t copies = draft.schedule.copies;
  const auto refuse = [&](std::string_view key, std::string_view of) {
    refuse_with(draft, key, fmt::format("runs {} copies of the model in opposite directions", copies),
                fmt::format("choose a multiple of {} {}", copies, of));
  };
  if (s.pipeline % copies != 0) refuse("strategy.pipeline", "stages");
  if (s.micro_batches() % copies != 0) refuse("strategy.global_batch", "micro-batches");
}

void refuse_short_steps(const Draft& draft) {
  if (updates_by_step(draft) && draft.plan.update_every < draft.facts.spec.strategy.pipeline)
    refuse_with(draft, "strategy.global_batch", "updates weights while micro-batches are on their way",
                "two versions are enough for steps of at least as many micro-batches as stages: choose more of them, "
                "or a schedule that updates after each");
}

}  // namespace orrery
