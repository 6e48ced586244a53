#include "viz/draw/scene.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "models/base/input_file.h"
#include "tests/temporary_folder.h"
#include "tests/viz/events.h"
#include "viz/draw/scene_cache.h"

using namespace orrery;

namespace {

namespace fs = std::filesystem;

// A folder with a trace large enough to be kept, and a cache of its own.
class SceneCache : public testing::Test {
 protected:
  SceneCache() {
    const char* const before = std::getenv("XDG_CACHE_HOME");
    before_ = before == nullptr ? "" : before;
    setenv("XDG_CACHE_HOME", folder_.path("cache").c_str(), 1);
    write(trace_, 60'000);
  }
  ~SceneCache() override {
    before_.empty() ? unsetenv("XDG_CACHE_HOME") : setenv("XDG_CACHE_HOME", before_.c_str(), 1);
  }

  static void write(const std::string& path, int events) {
    std::ofstream out(path);
    out << "{\"orreryPasses\":[\"prefill\",\"prefill\",\"decode "
           "1\"],\n\"traceEvents\":[{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"args\":{\"name\":\"rank 3\"}}";
    for (int i = 0; i < events; ++i)
      out << ",\n{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k" << i % 5 << "\",\"pid\":1,\"tid\":" << i % 3
          << ",\"ts\":" << i * 3 << ",\"dur\":2.5,\"args\":{\"phase\":\"forward\",\"micro-batch\":" << i % 7
          << ",\"layer\":2,\"note\":\"what makes an event as long as those of a profiler are\"}}";
    out << "]}\n";
  }

  std::shared_ptr<const Scene> open() { return open_scenes({trace_})[0]; }
  // The one file of the cache.
  std::string kept() const {
    for (const auto& e : fs::directory_iterator(cache_folder())) return e.path().string();
    return "";
  }

  test::TemporaryFolder folder_;
  std::string trace_ = folder_.path("trace.json"), before_;
};

}  // namespace

TEST_F(SceneCache, ATraceComesBackAsItWasRead) {
  const auto read = open();
  put_in_cache(*read);
  const std::string key = cache_key({trace_});
  ASSERT_NE(key, "");
  const auto again = scene_from_cache(key, {trace_});
  ASSERT_NE(again, nullptr);
  const Timeline &a = read->timeline(), &b = again->timeline();
  ASSERT_EQ(a.events(), b.events());
  EXPECT_EQ(a.end, b.end);
  EXPECT_EQ(b.processes[0].name, "rank 3");
  for (EventId e = 0; e < a.events(); e += 97) {
    EXPECT_EQ(a.begins[e], b.begins[e]);
    EXPECT_EQ(a.name(e), b.name(e));
    EXPECT_EQ(a.place(e).micro_batch, b.place(e).micro_batch);
    EXPECT_EQ(a.labels[a.label[e]].phase, b.labels[b.label[e]].phase);
    EXPECT_EQ(details_of(a, e), details_of(b, e));
  }
  EXPECT_EQ(b.phases, (std::vector<std::string>{"prefill", "decode"}));
  EXPECT_EQ(a.pass_of_batch, b.pass_of_batch);
  EXPECT_EQ(read->bands[0].size(), again->bands[0].size());
  EXPECT_FALSE(again->bands[0].empty());
  std::vector<Cell> x(500), y(500);
  const TimeScale scale{0, a.end, 500};
  render_track(a, a.tracks[0], read->prepared->pyramids[0], scale, x);
  render_track(b, b.tracks[0], again->prepared->pyramids[0], scale, y);
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_EQ(x[i].share, y[i].share);
  EXPECT_EQ(compute_times(a, read->prepared->areas), compute_times(b, again->prepared->areas));
}

TEST_F(SceneCache, AChangedTraceIsReadAgain) {
  put_in_cache(*open());
  write(trace_, 61'000);
  EXPECT_EQ(scene_from_cache(cache_key({trace_}), {trace_}), nullptr);
  EXPECT_EQ(open()->timeline().events(), 61'000u);
}

TEST_F(SceneCache, ABrokenCacheIsIgnoredAndReplaced) {
  const auto read = open();
  put_in_cache(*read);
  const std::string path = kept(), whole = read_input(path, kMostMeasurements);
  std::ofstream(path, std::ios::binary) << whole.substr(0, whole.size() - 100);
  const auto again = open();
  EXPECT_EQ(again->timeline().events(), 60'000u);
  EXPECT_FALSE(fs::exists(path));
  put_in_cache(*again);
  EXPECT_EQ(read_input(path, kMostMeasurements), whole);
}

TEST_F(SceneCache, WhatIsSmallOrCannotBeWrittenIsNotKept) {
  write(trace_, 100);
  EXPECT_EQ(cache_key({trace_}), "");
  put_in_cache(*open());
  EXPECT_FALSE(fs::exists(cache_folder()));
  write(trace_, 60'000);
  std::ofstream(folder_.path("cache")) << "no folder";
  const auto scene = open();
  EXPECT_NO_THROW(put_in_cache(*scene));
}

TEST(Scene, IsPreparedToBeDrawn) {
  const auto scene = open_scenes({std::string(ORRERY_SOURCE_DIR) + "/examples/gpt-64-gpus.yaml"})[0];
  EXPECT_EQ(scene->prepared->pyramids.size(), scene->timeline().tracks.size());
  ASSERT_EQ(scene->runs.size(), scene->timeline().processes.size());
  EXPECT_FALSE(scene->runs[0].empty());
}

TEST(Scene, KnowsThePeakOfACounterAndWhenMemoryRunsOut) {
  Document d;
  d.timeline = two_lanes();
  d.timeline.processes[0].capacity = 9;
  d.timeline.processes[0].counters.push_back({"other", {"x"}, {0}, {100}});
  const Scene s(std::move(d), 1);
  EXPECT_EQ(s.peaks[0][0].peak.bytes, 10);
  EXPECT_EQ(s.peaks[0][0].peak.time, 20'000'000);
  EXPECT_EQ(s.peaks[0][0].above, 20'000'000);
  EXPECT_EQ(s.peaks[0][1].above, -1);  // the counter is no memory counter
}

// Legends name these categories alone.
TEST(Scene, KnowsWhichCategoriesOfMemoryAreEverInUse) {
  TimelineBuilder b;
  for (int p = 0; p < 2; ++p) {
    Process process;
    process.counters.push_back(
        {"memory", {"parameters", "gradients", "activations"}, {0, 5}, {1, 0, 0, 1, 0, p * 1.0}});
    b.add_process(std::move(process));
  }
  b.add({0, 10, b.add_thread(0, "compute", 0), b.label("a", Kind::forward), 0});
  const Scene scene({"", b.finish(0), nullptr, {}}, 1);
  EXPECT_EQ(scene.memory_seen, (std::vector<bool>{true, false, true}));
}
