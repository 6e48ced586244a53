// Checkpoints (strategy.checkpoint): their bytes, and what writing them costs.
#include <fmt/format.h>

#include "tests/metamorphic/relations.h"

namespace orrery::test {
namespace {

double to_double(std::int64_t n) { return static_cast<double>(n); }

Json with_checkpoint(const Json& spec, std::int64_t every, bool asynchronous, double write_GBps) {
  const Json disks = {{"TB", 30}, {"read_GBps", 20}, {"write_GBps", write_GBps}};
  return with(with(spec, "cluster.nvme", disks), "strategy.checkpoint",
              {{"every", every}, {"to", "nvme"}, {"asynchronous", asynchronous}});
}

}  // namespace

void checkpoints(Checks& checks, const Subject& s) {
  const Spec& spec = s.run.spec;
  const std::int64_t every = s.draw.of({1, 20, 500});
  const Json waiting = with_checkpoint(s.spec, every, false, 10), beside = with_checkpoint(s.spec, every, true, 10);
  const Run *a = checks.simulate(waiting), *b = checks.simulate(beside);
  const Run* slow = checks.simulate(with_checkpoint(s.spec, every, false, 5));
  if (a == nullptr || b == nullptr || slow == nullptr)
    return checks.violated("checkpoint refused", checks.refusal, waiting);
  const CheckpointCost &cost = *a->report.checkpoint, &async = *b->report.checkpoint;
  const auto expect = [&](bool holds, std::string_view what) {
    if (!holds) checks.violated("checkpoint", std::string(what), waiting);
  };
  expect(close(a->report.step_time_s, b->report.step_time_s, 1e-12), "its writing changes the other steps");
  expect(cost.bytes == async.bytes && cost.bytes == slow->report.checkpoint->bytes, "bytes depend on how they go");
  if (!spec.model.lora && spec.model.frozen.empty())
    expect(to_double(cost.bytes) >=
               .999 * to_double(checkpoint_width(spec)) * to_double(parameter_count(spec.model, spec.sequence)),
           "not all weights are written");
  expect(async.stall <= cost.stall * (1 + 1e-12) || cost.writing > to_double(every) * a->report.step_time_s,
         "beside the step it holds the step up longer");
  expect(close(slow->report.checkpoint->writing, 2 * cost.writing, 1e-9), "half the rate, not twice the time");
  expect(cost.stall >= cost.writing && async.stall >= async.copies, "shorter than what it waits for");
  expect(cost.step_share >= 0 && cost.step_share < 1 && cost.run_share < 1, "shares");
}

}  // namespace orrery::test
