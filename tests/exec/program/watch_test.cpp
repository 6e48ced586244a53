#include "exec/program/watch.h"

#include <filesystem>
#include <future>

#include <gtest/gtest.h>

#include "models/load/load_spec.h"
#include "models/plan/unfold.h"
#include "models/planner/make_plan.h"
#include "models/spec/spec.h"
#include "tests/temporary_folder.h"

namespace orrery {
namespace {

TEST(Watch, GivesUpOnARankThatNobodyElseWatches) {
  const test::TemporaryFolder temporary;
  const std::string folder = temporary.path("watch");
  std::filesystem::create_directories(folder);
  const Plan plan = unfold(make_plan(load_spec(ORRERY_SOURCE_DIR "/examples/cpu-small.yaml")));
  ProgressRing quick(progress_file(folder, 0), 0, "hash"), silent(progress_file(folder, 1), 1, "hash");
  ProgressRing third(progress_file(folder, 2), 2, "hash"), fourth(progress_file(folder, 3), 3, "hash");
  for (ProgressRing* done : {&quick, &third, &fourth}) done->finish();
  silent.enter(LaneKind::compute, 0, 0);
  std::promise<Fault> given_up;
  const Watch watch(folder, plan, 1, {.hang = 0.1}, [&](const Fault& f) { given_up.set_value(f); });
  const Fault fault = given_up.get_future().get();
  EXPECT_EQ(fault.rank, 1);
  EXPECT_EQ(fault.exit_code, kRankLost);
  std::filesystem::remove_all(folder);
}

TEST(Watch, EndsQuietlyWithItsOwner) {
  const Plan plan = unfold(make_plan(load_spec(ORRERY_SOURCE_DIR "/examples/cpu-small.yaml")));
  const test::TemporaryFolder temporary;
  const Watch watch(temporary.path(), plan, 1, {.hang = 1000}, [](const Fault&) { FAIL(); });
}

}  // namespace
}  // namespace orrery
