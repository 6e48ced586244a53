#include "viz/read/load.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "models/base/error.h"
#include "models/load/load_spec.h"
#include "sim/export/chrome_trace.h"
#include "sim/generate/generated_steps.h"
#include "tests/temporary_folder.h"
#include "viz/timeline/bands.h"
#include "viz/timeline/compare.h"

using namespace orrery;
using test::TemporaryFolder;

namespace {

const std::string kSpec = std::string(ORRERY_SOURCE_DIR) + "/examples/gpt-64-gpus.yaml";

std::string write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

std::string message(const std::vector<std::string>& paths) {
  try {
    open_inputs(paths);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST(Load, ASimulatedStepComesBackFromItsFile) {
  const TemporaryFolder folder;
  const auto documents = open_inputs({kSpec});
  ASSERT_EQ(documents.size(), 1u);
  const Document& d = documents[0];
  const Prediction& p = d.step->prediction;
  for (const std::string name : {"/step.json", "/step.json.gz"}) {
    const std::string path = folder.path() + name;
    write_chrome_trace(path, p.plan, p.trace, memory_samples(d.step->spec, p.plan, p.costs, p.trace, p.profile));
    const Document read = open_trace({path});
    EXPECT_TRUE(read.timeline.remarks.empty());
    EXPECT_EQ(read.timeline.source, "simulated");
    EXPECT_EQ(read.timeline.arrows.size(), d.timeline.arrows.size());
    const Matching m = match(ComparedSide(d.timeline), ComparedSide(read.timeline));
    EventId tasks = 0;
    for (EventId e = 0; e < d.timeline.events(); ++e) {
      if (d.timeline.kind(e) == Kind::wait) continue;
      ++tasks;
      ASSERT_NE(m.there[e], kNoEvent) << d.timeline.name(e);
      EXPECT_LE(std::abs(d.timeline.ends[e] - d.timeline.begins[e] -
                         (read.timeline.ends[m.there[e]] - read.timeline.begins[m.there[e]])),
                2000);
    }
    EXPECT_EQ(m.matched, tasks);
    ASSERT_EQ(read.timeline.processes[0].counters.size(), 1u);
    EXPECT_EQ(read.timeline.processes[0].counters[0].values, d.timeline.processes[0].counters[0].values);
  }
}

// The passes of a generated text, and its keys and values, are in its file as in the timeline of its spec.
TEST(Load, AGeneratedTextComesBackFromItsFile) {
  const TemporaryFolder folder;
  const StepTimeline predicted = timeline_of(predict_step(parse_spec(
      "{model: llama-3.1-8b, workload: generate, generate: {batch: 4, input: 512, output: 4, chunk: 256}, cluster: "
      "{node: dgx-h100, nodes: 1}, software: vllm, strategy: {tensor: 2, pipeline: 2, data: 2}}",
      "t.yaml")));
  const Spec& spec = predicted.step->spec;
  const Prediction& p = predicted.step->prediction;
  const std::vector<GenerationPass> passes = generation_passes(*spec.generation);
  write_chrome_trace(folder.path() + "/text.json", p.plan, p.trace, {},
                     {.passes = names_of(spec, passes), .cache = cache_use(spec, p.plan, passes)});
  const Timeline read = open_trace({folder.path() + "/text.json"}).timeline, &t = predicted.timeline;
  EXPECT_EQ(read.phases, t.phases);
  EXPECT_EQ(read.pass_of_batch, t.pass_of_batch);
  ASSERT_EQ(read.processes.size(), t.processes.size());
  for (std::size_t i = 0; i < t.processes.size(); ++i) {
    const std::vector<Band> bands = bands_of(read, read.tracks[read.processes[i].tracks[0]]);
    const std::vector<Band> expected = bands_of(t, t.tracks[t.processes[i].tracks[0]]);
    ASSERT_EQ(bands.size(), expected.size());
    for (std::size_t b = 0; b < bands.size(); ++b) {
      EXPECT_EQ(name_of(read, bands[b]), name_of(t, expected[b]));
      EXPECT_LE(std::abs(bands[b].begin - expected[b].begin), 2000);
      EXPECT_LE(std::abs(bands[b].end - expected[b].end), 2000);
    }
    ASSERT_EQ(read.processes[i].counters.size(), 1u);
    EXPECT_EQ(read.processes[i].counters[0].name, kCacheCounter);
    EXPECT_EQ(read.processes[i].counters[0].series, t.processes[i].counters.back().series);
    EXPECT_EQ(read.processes[i].counters[0].values, t.processes[i].counters.back().values);
  }
}

TEST(Load, RankFilesAreOneTrace) {
  const TemporaryFolder folder;
  std::vector<std::string> files;
  for (int rank = 0; rank < 3; ++rank)
    files.push_back(
        write(folder.path() + "/run_rank" + std::to_string(rank) + ".json",
              R"({"distributedInfo": {"rank": )" + std::to_string(rank) +
                  R"(}, "traceEvents": [{"ph":"X","name":"k","cat":"kernel","pid":0,"tid":1,"ts":5,"dur":3}]})"));
  const auto together = open_inputs(files);
  ASSERT_EQ(together.size(), 1u);
  EXPECT_EQ(together[0].timeline.processes.size(), 3u);
  EXPECT_EQ(together[0].timeline.processes[2].rank, 2);
  EXPECT_EQ(open_inputs({folder.path()}).size(), 1u);
  std::filesystem::rename(files[1], folder.path() + "/other.json");
  EXPECT_EQ(open_inputs({files[0], folder.path() + "/other.json"}).size(), 2u);
}

TEST(Load, ReportsAreBarsOfShares) {
  const TemporaryFolder folder;
  const auto d = open_inputs({kSpec});
  const std::string path = write(folder.path() + "/report.json", to_json(d[0].step->prediction.report));
  const auto report = open_inputs({path});
  ASSERT_EQ(report.size(), 1u);
  EXPECT_NEAR(seconds(report[0].timeline.end), d[0].step->prediction.report.step_time_s, 1e-6);
  EXPECT_EQ(report[0].timeline.processes.size(), 1 + d[0].step->prediction.report.memory.ranks.size());
  EXPECT_EQ(report[0].timeline.remarks.size(), 1u);
}

// The output of `orrery search --json` is shown as the reports of its strategies, one below the other.
TEST(Load, SearchesAreTheReportsOfTheirStrategies) {
  const TemporaryFolder folder;
  const auto d = open_inputs({kSpec});
  const std::string report = to_json(d[0].step->prediction.report);
  const std::string path = write(folder.path() + "/search.json",
                                 "{\"schema\": \"orrery.search/1\", \"model\": \"small\", \"strategies\": "
                                 "[{\"name\": \"TP1\", \"report\": " +
                                     report + "}, {\"name\": \"TP2\", \"report\": " + report + "}]}");
  const auto search = open_inputs({path});
  ASSERT_EQ(search.size(), 1u);
  const auto& processes = search[0].timeline.processes;
  const std::size_t ranks = d[0].step->prediction.report.memory.ranks.size();
  ASSERT_EQ(processes.size(), 2 * (1 + ranks));
  EXPECT_EQ(processes[0].name, "1. TP1");
  EXPECT_EQ(processes[1 + ranks].name, "2. TP2");
  EXPECT_NE(message({write(folder.path() + "/none.json", "{\"schema\": \"orrery.search/1\", \"strategies\": []}")})
                .find("shows no strategies"),
            std::string::npos);
}

TEST(Load, SaysWhatIsWrongWithAFile) {
  const TemporaryFolder folder;
  EXPECT_NE(message({"/nowhere/trace.json"}).find("cannot be read"), std::string::npos);
  EXPECT_NE(message({write(folder.path() + "/empty.json", "")}).find("is empty"), std::string::npos);
  EXPECT_NE(message({write(folder.path() + "/odd.json", "{\"a\": 1}")}).find("is no trace"), std::string::npos);
  EXPECT_NE(message({write(folder.path() + "/none.json", "[]")}).find("no events"), std::string::npos);
  EXPECT_NE(message({write(folder.path() + "/r.json", "{\"schema\": \"orrery.report/2\"}")})
                .find("r.json: source: is missing; a report of"),
            std::string::npos);
}

TEST(Load, ACutArchiveIsReadUpToTheCut) {
  const TemporaryFolder folder;
  const auto d = open_inputs({kSpec});
  const Prediction& p = d[0].step->prediction;
  const std::string path = folder.path() + "/step.json.gz";
  write_chrome_trace(path, p.plan, p.trace);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  const Document cut = open_trace({path});
  EXPECT_GT(cut.timeline.events(), 100u);
  ASSERT_GE(cut.timeline.remarks.size(), 2u);
  const auto& remarks = cut.timeline.remarks;
  EXPECT_TRUE(std::any_of(remarks.begin(), remarks.end(), [](const std::string& r) {
    return r.find("the compressed data is cut short or damaged") != std::string::npos;
  }));
}

TEST(Load, CancelStopsIt) {
  EXPECT_THROW(open_trace({std::string(ORRERY_SOURCE_DIR) + "/tests/data/import/kineto_rank0.json"},
                          [](double) { return false; }),
               Cancelled);
}

// Each of two files has two ranks. Their rows are in the order of the files, and rank 10 comes after rank 2.
TEST(Load, RanksOfSeveralFilesAreInOrder) {
  const TemporaryFolder folder;
  for (const int first : {0, 2, 10}) {
    std::string events;
    for (const int rank : {first, first + 1})
      events += fmt::format(R"({{"ph": "M", "name": "process_name", "pid": {0}, "args": {{"name": "rank {0}"}}}},)"
                            R"({{"ph": "X", "name": "k", "cat": "kernel", "pid": {0}, "tid": 1, "ts": 1, "dur": 1}},)",
                            rank);
    write(folder.path(fmt::format("rank{}.json", first)), "[" + events + "{}]");
  }
  const auto documents = open_inputs({folder.path()});
  ASSERT_EQ(documents.size(), 1U);
  std::vector<Process> shown = documents[0].timeline.processes;
  std::ranges::stable_sort(shown, {}, &Process::order);
  std::vector<std::string> names;
  for (const Process& p : shown) names.push_back(p.name);
  EXPECT_EQ(names, (std::vector<std::string>{"rank 0", "rank 1", "rank 2", "rank 3", "rank 10", "rank 11"}));
}

TEST(Load, RankNamesAreFoldedAway) {
  EXPECT_EQ(without_rank("a/step_rank12.json.gz"), "a/step_.json.gz");
  EXPECT_EQ(without_rank("rank_3/step.json"), "rank_3/step.json");
  EXPECT_EQ(without_rank("franks.json"), "franks.json");
}
