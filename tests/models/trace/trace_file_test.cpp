#include "models/trace/trace_file.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "tests/temporary_folder.h"

namespace orrery {
namespace {

const test::TemporaryFolder kTraceFolder;
const std::string kTraceFile = kTraceFolder.path("trace_file.run");

RankRun sample(std::size_t steps, std::size_t tasks) {
  RankRun run{.plan_hash = "abc", .rank = 3, .ranks = 8, .device = "a \"device\"\n", .library = "Open MPI 4.1.4"};
  run.clock_offset = -5;
  run.clock_uncertainty = 7;
  for (std::size_t k = 0; k < steps; ++k) {
    MeasuredStep& step = run.steps.emplace_back();
    step.begin = static_cast<Picoseconds>(k) * 1'000'000'000'000'000;
    for (std::size_t t = 0; t < tasks; ++t) {
      const auto at = step.begin + static_cast<Picoseconds>(t * 10);
      step.spans.push_back({at, at + 1, at + 5});
    }
    step.end = step.begin + static_cast<Picoseconds>(tasks * 10);
    step.sizes = {static_cast<std::int64_t>(k), 40, 7};
    run.losses.push_back(1.0 / static_cast<double>(k + 3));
  }
  run.memory = {1, 2, 3, 4, 5, {0, 6, 7}, 8, {9, 10, 11, 12, 13, 14}};
  return run;
}

std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

void put(const std::string& text) { std::ofstream(kTraceFile, std::ios::binary) << text; }

std::string error_of_reading() {
  try {
    read_rank_run(kTraceFile);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(RankRun, ComesBackAsItWas) {
  for (const std::size_t steps : {0U, 1U, 5U}) {
    for (const std::size_t tasks : {0U, 1U, 1000U}) {
      RankRun run = sample(steps, tasks);
      if (steps > 1) run.losses[1] = std::numeric_limits<double>::quiet_NaN();  // a diverged one
      write_rank_run(kTraceFile, run);
      const RankRun back = read_rank_run(kTraceFile);
      EXPECT_EQ(back.source, run.source);
      EXPECT_EQ(back.plan_hash, "abc");
      EXPECT_EQ(back.rank, 3);
      EXPECT_EQ(back.ranks, 8);
      EXPECT_EQ(back.device, run.device);
      EXPECT_EQ(back.library, run.library);
      EXPECT_EQ(back.clock_offset, -5);
      EXPECT_EQ(back.clock_uncertainty, 7);
      EXPECT_EQ(back.memory.capacity, 1);
      EXPECT_EQ(back.memory.peak_task, 8U);
      EXPECT_EQ(back.memory.at_peak, run.memory.at_peak);
      ASSERT_EQ(back.steps.size(), steps);
      ASSERT_EQ(back.losses.size(), steps);
      for (std::size_t k = 0; k < steps; ++k) {
        EXPECT_EQ(back.steps[k].begin, run.steps[k].begin);
        EXPECT_EQ(back.steps[k].end, run.steps[k].end);
        EXPECT_EQ(back.steps[k].sizes, run.steps[k].sizes);
        ASSERT_EQ(back.steps[k].spans.size(), tasks);
        for (std::size_t t = 0; t < tasks; ++t) EXPECT_EQ(back.steps[k].spans[t].ended, run.steps[k].spans[t].ended);
        if (k == 1)
          EXPECT_TRUE(std::isnan(back.losses[k]));
        else
          EXPECT_EQ(back.losses[k], run.losses[k]);
      }
    }
  }
}

TEST(RankRun, ABrokenFileIsOneClearError) {
  write_rank_run(kTraceFile, sample(2, 3));
  const std::string whole = text_of(kTraceFile);
  const std::size_t header = whole.find('\n') + 1;
  const auto says = [&](const std::string& text, const std::string& what) {
    put(text);
    const std::string error = error_of_reading();
    EXPECT_TRUE(error.starts_with(kTraceFile + ": no whole result of a rank: ")) << error;
    EXPECT_NE(error.find(what), std::string::npos) << error;
  };
  for (std::size_t size = header; size < whole.size(); ++size) says(whole.substr(0, size), "length");
  for (std::size_t size = 0; size + 1 < header; ++size) says(whole.substr(0, size), "no header");
  says(whole + "x", "length");
  says("{}\n", "schema");
  says("{\"schema\": \"orrery.rank/2\"}\n", "its schema is not orrery.rank/1");
  says(std::string(4096, '\0'), "no header");
  std::string changed = whole;
  changed.replace(changed.find("\"tasks\":3"), 9, "\"tasks\":9");
  says(changed, "length");
  changed = whole;
  changed.replace(changed.find("\"tasks\":3"), 9, "\"tasks\":-1");
  says(changed, "header: tasks: -1 is not between");
  changed = whole;
  changed[header + 8 + 7] = '\x80';  // the end of step 0 is far before its begin
  says(changed, "a time runs backwards");
  std::filesystem::remove(kTraceFile);
  EXPECT_EQ(error_of_reading(), kTraceFile + ": no whole result of a rank: it cannot be read");
}

}  // namespace
}  // namespace orrery
