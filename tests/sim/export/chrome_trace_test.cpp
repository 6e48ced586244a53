#include "sim/export/chrome_trace.h"

#include <zlib.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "models/base/error.h"
#include "sim/engine/simulate.h"
#include "tests/sim/small_plans.h"
#include "tests/temporary_folder.h"

namespace orrery {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class ChromeTrace : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.path(name); }
  Json written(const Plan& plan, const Trace& trace, std::span<const MemorySample> samples = {}) const {
    write_chrome_trace(path("a.json"), plan, trace, samples);
    return Json::parse(text_of(path("a.json")));
  }

  test::TemporaryFolder folder_;
};

// Nanoseconds of a time printed in microseconds.
std::int64_t ns(const Json& us) { return std::llround(us.get<double>() * 1000); }
Picoseconds ps(const Json& us) { return std::llround(us.get<double>() * 1e6); }
std::pair<int, int> thread_of(const Json& event) { return {event["pid"], event["tid"]}; }

struct Events {
  explicit Events(const Json& trace) {
    for (const Json& e : trace["traceEvents"]) {
      const std::string phase = e["ph"], kind = e.value("cat", "");
      if (phase == "s" || phase == "f") flows[{kind, e["id"]}].push_back(e);
      if (phase == "C") counters.push_back(e);
      if (phase == "M" && e["name"] == "thread_name") threads.insert(thread_of(e));
      if (phase != "X") continue;
      slices[thread_of(e)].push_back(e);
      if (kind == "kernel") kernels.emplace(e["args"]["correlation"], e);
      if (kind == "wait") waits.emplace(e["args"]["task"], e);
      if (e["name"] == "cudaLaunchKernel") launches.emplace(e["args"]["correlation"], e);
    }
  }
  std::multimap<TaskId, Json> kernels, launches, waits;
  std::map<std::pair<std::string, TaskId>, std::vector<Json>> flows;
  std::map<std::pair<int, int>, std::vector<Json>> slices;
  std::set<std::pair<int, int>> threads;
  std::vector<Json> counters;
};

void check_spans(const Events& events, const Plan& plan, const Trace& trace) {
  ASSERT_EQ(events.kernels.size(), plan.task_count());
  ASSERT_EQ(events.launches.size(), plan.task_count());
  std::size_t waits = 0;
  for (TaskId t = 0; t < plan.task_count(); ++t) {
    const Span& span = trace.spans[t];
    ASSERT_EQ(events.kernels.count(t), 1U) << t;
    ASSERT_EQ(events.launches.count(t), 1U) << t;
    const Json& kernel = events.kernels.find(t)->second;
    const Json& args = kernel["args"];
    EXPECT_EQ(kernel["pid"], plan.slot_of(t));
    EXPECT_EQ(args["stream"], kernel["tid"]);
    EXPECT_GT(args["stream"], 0);
    EXPECT_EQ(ps(args["issued"]), span.issued);
    EXPECT_EQ(ps(args["entered"]), span.entered);
    EXPECT_EQ(ps(args["matched"]), span.matched);
    EXPECT_EQ(ps(args["ended"]), span.ended);
    EXPECT_EQ(ns(kernel["ts"]), (span.entered + 500) / 1000);
    EXPECT_EQ(ns(kernel["ts"]) + ns(kernel["dur"]), (span.ended + 500) / 1000);
    EXPECT_EQ(args["op"], plan.op_of(t).name);
    const Json& launch = events.launches.find(t)->second;
    EXPECT_EQ(ns(launch["ts"]) + ns(launch["dur"]), (span.issued + 500) / 1000);
    // The cause given for a task ended when the task entered.
    const Json cause = args.value("cause task", Json());
    EXPECT_EQ(cause.is_null() ? span.issued : trace.spans[cause.get<TaskId>()].ended, span.entered) << t;
    if (span.matched == span.entered) continue;
    ++waits;
    const TaskId last = events.waits.find(t)->second["args"]["for task"];
    EXPECT_EQ(trace.spans[last].entered, span.matched);
  }
  EXPECT_EQ(events.waits.size(), waits);
}

// On every thread slices lie beside or inside each other, and every thread has a name.
void check_nesting(Events& events) {
  for (auto& [thread, slices] : events.slices) {
    EXPECT_TRUE(events.threads.contains(thread));
    std::stable_sort(slices.begin(), slices.end(), [](const Json& a, const Json& b) {
      return std::pair(ns(a["ts"]), -ns(a["dur"])) < std::pair(ns(b["ts"]), -ns(b["dur"]));
    });
    std::vector<std::int64_t> open;
    for (const Json& slice : slices) {
      const std::int64_t start = ns(slice["ts"]), end = start + ns(slice["dur"]);
      EXPECT_GE(slice["dur"], 0);
      while (!open.empty() && open.back() <= start) open.pop_back();
      EXPECT_TRUE(open.empty() || end <= open.back()) << slice;
      open.push_back(end);
    }
  }
}

// Every arrow has a tail and then a head, each inside a slice; one per task and one per send.
void check_flows(const Events& events, const Plan& plan) {
  std::size_t sends = 0;
  for (TaskId t = 0; t < plan.task_count(); ++t) {
    const auto* transfer = std::get_if<Transfer>(&plan.op_of(t).work);
    sends += transfer != nullptr && transfer->send;
  }
  EXPECT_EQ(events.flows.size(), plan.task_count() + sends);
  for (const auto& [key, ends] : events.flows) {
    ASSERT_EQ(ends.size(), 2U) << key.first << key.second;
    EXPECT_EQ(ends[0]["ph"], "s");
    EXPECT_EQ(ends[1]["ph"], "f");
    EXPECT_EQ(ends[1]["bp"], "e");
    EXPECT_LE(ns(ends[0]["ts"]), ns(ends[1]["ts"]));
    for (const Json& end : ends) {
      const auto& slices = events.slices.at(thread_of(end));
      EXPECT_TRUE(std::any_of(slices.begin(), slices.end(), [&](const Json& s) {
        return ns(s["ts"]) <= ns(end["ts"]) && ns(end["ts"]) <= ns(s["ts"]) + ns(s["dur"]);
      })) << end;
    }
    if (key.first != "transfer") continue;
    EXPECT_NE(ends[0]["pid"], ends[1]["pid"]);
  }
}

TEST_F(ChromeTrace, HoldsEveryTaskOnce) {
  Picoseconds issue = 0;  // now and then the host is late
  for (const std::string& strategy : small_strategies()) {
    SCOPED_TRACE(strategy);
    const Plan plan = small_plan(strategy);
    const Trace trace = simulate(plan, random_timing(plan, 5, issue));
    Events events(written(plan, trace));
    check_spans(events, plan, trace);
    check_nesting(events);
    check_flows(events, plan);
    issue = 30'000'000 - issue;
  }
}

// The trace has the names and arguments that Meta's Holistic Trace Analysis needs.
TEST_F(ChromeTrace, SuitsHolisticTraceAnalysis) {
  const Plan plan = small_plan(small_strategies()[1]);
  write_chrome_trace(path("a.json"), plan, simulate(plan, random_timing(plan, 5, 1'000'000)), {},
                     {.file_per_slot = true, .device = "H100"});
  for (const RankClass& slot : plan.classes) {
    const std::string text = text_of(path("a_rank" + std::to_string(slot.representative) + ".json"));
    std::smatch rank;
    ASSERT_TRUE(std::regex_search(text, rank, std::regex(R"re("rank":\s+(\d+))re")));
    EXPECT_EQ(rank[1], std::to_string(slot.representative));
    const Json trace = Json::parse(text);
    EXPECT_EQ(trace["schemaVersion"], 1);
    EXPECT_EQ(trace["displayTimeUnit"], "ms");
    EXPECT_EQ(trace["distributedInfo"]["backend"], "nccl");
    EXPECT_EQ(trace["distributedInfo"]["world_size"], 8);
    EXPECT_EQ(trace["deviceProperties"][0]["name"], "H100");
    const Events events(trace);
    EXPECT_EQ(events.kernels.size(), slot.end - slot.begin);
    for (const auto& [task, kernel] : events.kernels) {
      const Work& work = plan.op_of(task).work;
      const bool moves = std::holds_alternative<Collective>(work) || std::holds_alternative<Transfer>(work);
      EXPECT_EQ(std::regex_search(kernel["name"].get<std::string>(), std::regex("^nccl.*")), moves);
      EXPECT_EQ(kernel["args"].contains("Process Group Ranks"), moves);
    }
    for (const auto& [key, ends] : events.flows) EXPECT_EQ(key.first, "ac2g");  // no arrow into another file
    int steps = 0;
    for (const Json& e : trace["traceEvents"]) steps += e["name"] == "ProfilerStep#0" && e["cat"] == "user_annotation";
    EXPECT_EQ(steps, 1);
  }
  EXPECT_EQ(folder_.files(), 2);
}

TEST_F(ChromeTrace, CountsMemory) {
  const Plan plan = small_plan(small_strategies()[1]);
  const std::vector<MemorySample> samples = {
      {0, 0, {1, 2, 3, 4, 5, 6}}, {1500, 0, {7, 0, 0, 0, 0, 0}}, {2'000'000, 1, {8, 0, 0, 0, 0, 0}}};
  const Events events(written(plan, simulate(plan, random_timing(plan, 5, 0)), samples));
  ASSERT_EQ(events.counters.size(), 3U);
  EXPECT_EQ(events.counters[0]["args"]["workspace"], 6);
  EXPECT_EQ(ns(events.counters[1]["ts"]), 2);
  EXPECT_EQ(events.counters[1]["args"]["parameters"], 7);
  EXPECT_EQ(events.counters[2]["pid"], 1);
}

// Passes of a generation, here all micro-batches, have their names before the events, and their cache as a counter.
TEST_F(ChromeTrace, NamesPassesAndCountsTheirCache) {
  const Plan plan = small_plan(small_strategies()[1]);
  std::vector<std::vector<Bytes>> cache;
  for (std::size_t s = 0; s < plan.classes.size(); ++s) cache.push_back({static_cast<Bytes>(s + 7)});
  write_chrome_trace(path("a.json"), plan, simulate(plan, random_timing(plan, 5, 0)), {},
                     {.passes = {"prefill"}, .cache = cache});
  const std::string text = text_of(path("a.json"));
  EXPECT_LT(text.find("\"orreryPasses\""), text.find("\"traceEvents\""));
  const Json trace = Json::parse(text);
  EXPECT_EQ(trace["orreryPasses"].size(), static_cast<std::size_t>(plan.micro_batches));
  EXPECT_EQ(trace["orreryPasses"][0], "prefill");
  const Events events(trace);
  ASSERT_EQ(events.counters.size(), plan.classes.size());
  EXPECT_EQ(events.counters[1]["name"], "keys and values");
  EXPECT_EQ(events.counters[1]["args"]["in use"], 8);
}

TEST_F(ChromeTrace, IsTheSameCompressed) {
  const Plan plan = small_plan(small_strategies()[0]);
  const Trace trace = simulate(plan, random_timing(plan, 5, 0));
  fs::create_directory(path("plain"));
  fs::create_directory(path("packed"));
  write_chrome_trace(path("plain/a.json"), plan, trace);
  write_chrome_trace(path("packed/a.json.gz"), plan, trace);
  const std::string plain = text_of(path("plain/a.json"));
  std::string packed(2 * plain.size(), ' ');
  gzFile file = gzopen(path("packed/a.json.gz").c_str(), "rb");
  packed.resize(static_cast<std::size_t>(gzread(file, packed.data(), static_cast<unsigned>(packed.size()))));
  gzclose(file);
  EXPECT_EQ(packed, plain);
}

TEST_F(ChromeTrace, NamesFilesByRank) {
  const Plan plan = small_plan(small_strategies()[0]);
  const Trace trace = simulate(plan, random_timing(plan, 5, 0));
  for (const char* name : {"b.json.gz", "c.json", "d"}) {
    write_chrome_trace(path(name), plan, trace, {}, {.file_per_slot = true});
  }
  for (const char* name : {"b_rank0.json.gz", "c_rank0.json", "d_rank0.json"}) EXPECT_TRUE(fs::exists(path(name)));
}

TEST_F(ChromeTrace, SaysWhatItCannotWrite) {
  const Plan plan = small_plan(small_strategies()[0]);
  const Trace trace = simulate(plan, random_timing(plan, 5, 0));
  EXPECT_THROW(write_chrome_trace(path("none/a.json"), plan, trace), Error);
}

// Two stages of two ranks: a product and a send; a receive that waits, and a kernel with an awkward name.
Plan two_stages() {
  Plan plan;
  plan.ranks = 4;
  plan.micro_batches = 1;
  plan.dimensions.resize(kDimensions);
  const std::vector<std::int32_t> pipeline_of = {0, 1, 0, 1};
  plan.dimensions[static_cast<std::size_t>(Dimension::pipeline)] = {GroupList(pipeline_of, 2), pipeline_of};
  plan.classes = {{.name = "stage 0", .representative = 0, .multiplicity = 2, .begin = 0, .end = 2},
                  {.name = "stage 1", .stage = 1, .representative = 2, .multiplicity = 2, .begin = 2, .end = 4}};
  plan.blocks = {{.name = "layer"}};
  plan.ops = {{.name = "qkv", .work = Gemm{128, 192, 64}},
              {.name = "send activation", .work = Transfer{true, 1, 16384}, .lane = LaneKind::send_next},
              {.name = "receive activation", .work = Transfer{false, -1, 16384}, .lane = LaneKind::receive_previous},
              {.name = "the \"awkward\" \\ one", .work = Add{8192}, .phase = Phase::backward, .host_waits = true}};
  plan.frames = {{.block = 0, .slot = 0, .layer = 0, .micro_batch = 0},
                 {.block = 0, .slot = 1, .layer = 1, .chunk = 1}};
  const std::uint32_t lanes = kLanes;
  plan.tasks = {{0, 0, 0, 0},
                {1, 0, static_cast<std::uint32_t>(LaneKind::send_next), 0, 0},
                {2, 1, lanes + static_cast<std::uint32_t>(LaneKind::receive_previous), 1, 0},
                {3, 1, lanes, 1},
                {.first_dependency = 2}};
  plan.dependencies = {0, 2};
  plan.matches = {{0, 2}};
  plan.match_members = {1, 2};
  return plan;
}

TEST_F(ChromeTrace, LooksAsItAlwaysDid) {
  const Plan plan = two_stages();
  const Timing timing = {{0, 0},
                         {{{10'000'000, 1'500'000}, {2'000'400, 500'000}, {0, 1'000'000}, {999'600, 1'000'000}}}};
  write_chrome_trace(path("two_stages.json"), plan, simulate(plan, timing),
                     std::vector<MemorySample>{{1'000'000, 1, {4096, 0, 0, 16384, 0, 0}}}, {.device = "none"});
  EXPECT_EQ(text_of(path("two_stages.json")), text_of(ORRERY_SOURCE_DIR "/tests/data/two_stages.json"));
}

}  // namespace
}  // namespace orrery
