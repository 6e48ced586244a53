#include <string>
#include <variant>

#include <gtest/gtest.h>

#include "tests/sim/cost/priced.h"

namespace orrery {
namespace {

// A calibration measures how much longer compute takes while the device adds up arrays. Collectives that are made of
// chunk moves add with kernels of the device's own, so they slow compute by that much; a library's collectives do not.
TEST(Costs, MovesThatAddSlowComputeAsMeasured) {
  const auto pressure = [](const std::string& algorithm, double slowdown) {
    Priced p("data: 8, global_batch: 8, sharding: none");
    for (Op& op : p.plan.ops)
      if (auto* c = std::get_if<Collective>(&op.work)) c->algorithm = algorithm;
    Profile profile = find_profile(p.spec.cluster.gpu);
    profile.measured.sum_slowdown = slowdown;
    p.costs = costs_of(p.plan, p.spec, profile);
    for (TaskId t = 0; t < p.plan.task_count(); ++t) {
      const auto* c = std::get_if<Collective>(&p.plan.op_of(t).work);
      if (c != nullptr && c->kind == CollectiveKind::all_reduce && c->bytes > 1000) return p.of(t).pressure;
    }
    return 0U;
  };
  EXPECT_EQ(pressure("ring_all_reduce", 2.5), 65536U * 3 / 2);  // 65536: compute takes twice as long
  EXPECT_LT(pressure("ring_all_reduce", 1), 65536U);
  EXPECT_EQ(pressure("library", 2.5), pressure("library", 1));
}

}  // namespace
}  // namespace orrery
