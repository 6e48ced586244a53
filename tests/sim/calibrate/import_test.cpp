// Import of measurements by other tools, in files as these tools write them (tests/data/import), and broken files.
#include "sim/calibrate/import.h"

#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "models/base/error.h"
#include "models/base/input_file.h"
#include "models/base/output_file.h"
#include "models/load/load_spec.h"
#include "models/planner/make_plan.h"
#include "sim/cli/commands.h"
#include "sim/export/chrome_trace.h"
#include "sim/memory/live_memory.h"
#include "sim/predict/predict.h"
#include "tests/sim/fake_runs.h"
#include "tests/temporary_folder.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

const std::string kImports = ORRERY_SOURCE_DIR "/tests/data/import/";

std::int64_t all_refused(const std::map<std::string, std::int64_t>& refused) {
  std::int64_t sum = 0;
  for (const auto& [reason, rows] : refused) sum += rows;
  return sum;
}

const TransferTable& table_of(const Profile& p, const std::string& kind, std::int64_t ranks, std::int64_t nodes) {
  const TransferTable* table = find_transfers(p.measured, kind, ranks, nodes);
  if (table == nullptr) throw Error("no table of " + kind);
  return *table;
}

Profile profile_of_files(const std::vector<std::string>& names) {
  std::vector<Imported> files;
  for (const std::string& name : names) files.push_back(import_file(kImports + name));
  std::map<std::string, std::int64_t> refused;
  return profile_of(files, refused);
}

TEST(ImportNcclTests, TakesTheOutOfPlaceTimes) {
  const Imported file = import_file(kImports + "all_reduce_8.txt");
  ASSERT_EQ(file.transfers.size(), 6U);
  EXPECT_TRUE(file.refused.empty());
  const TransferRow& last = file.transfers.back();
  EXPECT_EQ(last.kind, "all_reduce");
  EXPECT_EQ(last.ranks, 8);
  EXPECT_EQ(last.nodes, 1);
  EXPECT_EQ(last.bytes, 1 << 30);
  EXPECT_DOUBLE_EQ(last.seconds, 3981.5e-6);
  EXPECT_EQ(file.fingerprint.at("device"), "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(file.fingerprint.at("nccl"), "22809");
}

// Old output of nccl-tests: the operator column is empty, an error replaces a count, the collective's name is only in
// the file name, and a launcher has prefixed the lines.
TEST(ImportNcclTests, ReadsOldOutputUnderMpirun) {
  const Imported file = import_file(kImports + "all_gather_old.txt");
  ASSERT_EQ(file.transfers.size(), 2U);
  EXPECT_EQ(file.refused.at("no bytes were moved"), 1);
  EXPECT_EQ(file.transfers[1].kind, "all_gather");
  EXPECT_EQ(file.transfers[1].ranks, 16);
  EXPECT_EQ(file.transfers[1].nodes, 2);
  EXPECT_DOUBLE_EQ(file.transfers[1].seconds, 778.6e-6);
}

TEST(ImportNcclTests, ReadsSeveralTestsAndRefusesRows) {
  const Imported file = import_file(kImports + "mixed_srun.txt");
  ASSERT_EQ(file.transfers.size(), 3U);
  EXPECT_EQ(file.transfers[0].kind, "message");
  EXPECT_EQ(file.transfers[0].ranks, 2);
  EXPECT_EQ(file.transfers[0].nodes, 2);
  EXPECT_DOUBLE_EQ(file.transfers[1].seconds, 120.4e-6);
  EXPECT_EQ(file.transfers[2].kind, "all_to_all");
  EXPECT_EQ(file.transfers[2].ranks, 4);
  EXPECT_EQ(file.refused.at("the result was wrong"), 1);
  EXPECT_EQ(file.refused.at("gather_perf measures nothing that a plan has"), 1);
}

TEST(ImportNcclTests, ReadsJson) {
  const Imported file = import_file(kImports + "reduce_scatter.json");
  ASSERT_EQ(file.transfers.size(), 2U);
  EXPECT_EQ(file.transfers[0].kind, "reduce_scatter");
  EXPECT_EQ(file.transfers[0].ranks, 8);
  EXPECT_EQ(file.transfers[0].nodes, 2);
  EXPECT_DOUBLE_EQ(file.transfers[0].seconds, 41.5e-6);
  EXPECT_DOUBLE_EQ(file.transfers[1].seconds, 60.25e-6);  // in place: there is no other
  EXPECT_EQ(file.refused.at("the result was wrong"), 1);
  EXPECT_EQ(file.fingerprint.at("device"), "NVIDIA B200");
}

TEST(ImportNcclTests, KnowsProgramsByTheirNames) {
  const std::pair<const char*, const char*> names[] = {{"/opt/all_reduce_perf", "all_reduce"},
                                                       {"reduce_scatter_perf_mpi", "reduce_scatter"},
                                                       {"reduce_perf", "reduce"},
                                                       {"all-gather-16.txt", "all_gather"},
                                                       {"alltoall_perf", "all_to_all"},
                                                       {"sendrecv_perf", "message"},
                                                       {"broadcast_perf", "broadcast"},
                                                       {"scatter_perf", ""},
                                                       {"results.txt", ""}};
  for (const auto& [program, kind] : names) EXPECT_EQ(nccl_tests_kind(program), kind) << program;
}

// The log contains the tuning table that NCCL 2.28.9 computed for two nodes of eight H100: our port computes the same
// one.
TEST(ImportNcclLog, TheTableIsThePortsOwn) {
  const Imported file = import_file(kImports + "nccl_h100_2.log");
  ASSERT_EQ(file.nccl.size(), 1U);
  const LoggedNccl& logged = file.nccl.front();
  EXPECT_EQ(logged.ranks, 16);
  EXPECT_EQ(logged.nodes, 2);
  EXPECT_EQ(logged.version, "2.21.5+cuda12.4");
  EXPECT_TRUE(file.refused.empty());
  const NcclModel ported = nccl_model(nccl_topology(find_cluster("dgx-h100", 2), 2, 8));
  NcclModel applied = ported;
  applied.graphs = {};
  apply(logged, applied);
  EXPECT_EQ(applied.graphs.ring.channels, ported.graphs.ring.channels);
  EXPECT_EQ(applied.graphs.collective_channels, 16);
  for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather}) {
    for (Bytes bytes = 1 << 10; bytes <= 1 << 30; bytes *= 8) {
      const NcclChoice a = nccl_choose(ported, kind, bytes), b = nccl_choose(applied, kind, bytes);
      EXPECT_EQ(a.algorithm, b.algorithm) << bytes;
      EXPECT_NEAR(a.seconds / b.seconds, 1, 0.01) << bytes;
    }
  }
}

TEST(ImportNcclLog, ReadsTheOldHeaderAndCountsWhatIsNotModelled) {
  const Imported file = import_file(kImports + "nccl_2.18.log");
  ASSERT_EQ(file.nccl.size(), 1U);
  const NcclModel model{.table = *file.nccl.front().table};
  EXPECT_DOUBLE_EQ(model.row(CollectiveKind::all_reduce, NcclAlgorithm::ring, NcclProtocol::simple).latency_us, 42.6);
  EXPECT_DOUBLE_EQ(model.row(CollectiveKind::all_reduce, NcclAlgorithm::tree, NcclProtocol::ll).bandwidth_GBps, 9.1);
  EXPECT_EQ(file.refused.at("CollNetDirect is an algorithm that is not modelled"), 1);
  EXPECT_EQ(file.nccl.front().ring->intra, NcclPath::sys);
}

TEST(ImportNcclLog, OutlivesTheProfile) {
  Profile p;
  p.rest_built_in = true;
  p.nccl = import_file(kImports + "nccl_h100_2.log").nccl;
  const test::TemporaryFolder folder;
  const std::string path = folder.path("nccl_profile");
  std::ofstream(path) << to_json(p);
  const Profile again = load_profile(path);
  ASSERT_EQ(again.nccl.size(), 1U);
  EXPECT_EQ(to_json(again), to_json(p));
}

// The duration of a collective on two ranks is that on the rank that entered last.
TEST(ImportKineto, CollectivesTakeTheShorterEnd) {
  const Profile p = profile_of_files({"kineto_rank0.json", "kineto_rank1.json"});
  const TransferTable& table = table_of(p, "all_reduce", 2, 1);
  ASSERT_EQ(table.samples.size(), 1U);
  EXPECT_EQ(table.samples[0].bytes, 2 * 12582912);
  EXPECT_NEAR(table.samples[0].seconds, 150e-6, 1e-12);
  EXPECT_EQ(table.samples[0].count, 2);
  EXPECT_NEAR(table_of(p, "all_gather", 2, 1).samples[0].seconds, 20e-6, 1e-12);
}

TEST(ImportKineto, OneRankOfTwoCannotTellWaiting) {
  std::map<std::string, std::int64_t> refused;
  const Profile p = profile_of({import_file(kImports + "kineto_rank0.json")}, refused);
  EXPECT_TRUE(p.measured.transfers.empty());
  // also refused: exp, a product without shapes, a kernel without an op
  EXPECT_EQ(all_refused(refused), 4 + 2 + 2 + 1);
}

TEST(ImportKineto, KernelsAreOpsOfAPlan) {
  const Profile p = profile_of_files({"kineto_rank0.json"});
  std::map<std::string, std::map<std::vector<double>, OpSample>> by_kind;
  for (const OpTable& table : p.measured.ops) {
    for (const OpSample& sample : table.samples) by_kind[table.kind][sample.sizes] = sample;
  }
  const auto check = [&](const char* kind, const std::vector<double>& sizes, double us, std::int64_t count) {
    ASSERT_EQ(by_kind[kind].count(sizes), 1U) << kind;
    EXPECT_NEAR(by_kind[kind][sizes].seconds, us * 1e-6, 1e-12) << kind;
    EXPECT_EQ(by_kind[kind][sizes].count, count) << kind;
  };
  check("gemm/output bf16", {8192, 1024, 1024}, 40.5, 4);
  check("gemm/input_gradient bf16", {8192, 1024, 3072}, 101, 2);
  check("gemm/weight_gradient bf16", {3072, 1024, 8192}, 110, 2);  // with the kernel that adds its parts
  check("attention/forward bf16", {64, 2048, 2048, 64}, 180, 4);
  check("attention/backward bf16", {64, 2048, 2048, 64}, 418, 2);
  check("norm/layer/forward bf16", {8192, 1024}, 22, 4);
  check("norm/layer/backward bf16", {8192, 1024}, 55, 2);
  check("activation/gelu/forward bf16", {8192, 4096}, 55, 4);
  check("residual/forward bf16", {8192, 1024}, 20, 4);
}

// A trace of `orrery run --trace` is imported unchanged; the timeline of a prediction is refused as a measurement.
TEST(ImportKineto, OurOwnTraces) {
  const Plan plan = small_plan(small_strategies()[0]);
  Trace trace = simulate(plan, random_timing(plan, 3, 2'000'000));
  const test::TemporaryFolder folder;
  const std::string path = folder.path("own.json.gz");
  write_chrome_trace(path, plan, trace, live_memory(plan, trace), {.device = "a device"});
  EXPECT_THROW(import_file(path), Error);
  trace.source = "measured";
  write_chrome_trace(path, plan, trace, live_memory(plan, trace), {.device = "a device"});
  const Imported file = import_file(path);
  std::size_t computing = 0;
  for (TaskId t = 0; t < plan.task_count(); ++t) computing += moves(plan.op_of(t)) ? 0 : 1;
  EXPECT_GT(file.ops.size(), computing * 8 / 10);  // a few do nothing
  EXPECT_LE(file.ops.size(), computing);
  EXPECT_EQ(file.fingerprint.at("device"), "a device");
}

// An imported table of times is used for predictions of the imported sizes, and of no others.
TEST(ImportProfile, RoundTripThroughAPrediction) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path("cluster.json");
  const Outcome outcome =
      import_command({.out = path, .imports = {kImports + "all_reduce_8.txt", kImports + "mixed_srun.txt"}});
  EXPECT_NE(outcome.text.find("9 samples"), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("1: the result was wrong"), std::string::npos) << outcome.text;
  const Spec spec = parse_spec(
      "model: {name: small, layers: 4, hidden: 1024, heads: 16, feed_forward: 4096, vocab: 32000}\n"
      "sequence: 2048\ncluster: {node: dgx-h100, nodes: 1}\n"
      "strategy: {tensor: 8, sequence_parallel: false, data: 1, micro_batch: 4, global_batch: 4}\n",
      "case");
  const Prediction ours = predict(spec), measured = predict(spec, false, path);
  const Profile profile = load_profile(path);
  EXPECT_EQ(measured.report.remarks.size(), ours.report.remarks.size());  // none about the device
  EXPECT_EQ(fingerprint_of(profile, "files"), "all_reduce_8.txt, mixed_srun.txt");
  EXPECT_EQ(fingerprint_of(profile, "refused: the result was wrong"), "1");
  int found = 0;
  for (std::size_t i = 0; i < ours.plan.ops.size(); ++i) {
    const auto* c = std::get_if<Collective>(&ours.plan.ops[i].work);
    const Seconds before = seconds(ours.costs.timing.rows[0][i].duration),
                  after = seconds(measured.costs.timing.rows[0][i].duration);
    if (c != nullptr && c->group == Dimension::tensor && c->bytes == 16777216) {  // a row of the table
      EXPECT_NEAR(after, 131.4e-6, 1e-11);
      ++found;
    } else if (c == nullptr || c->bytes < 524288) {  // smaller than half the table's smallest
      EXPECT_EQ(before, after) << ours.plan.ops[i].name;
    }
  }
  EXPECT_GT(found, 0);
}

TEST(ImportProfile, AnotherDeviceIsRemarked) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path("other.json");
  import_command({.out = path, .imports = {kImports + "all_reduce_8.txt"}});
  const Spec spec = parse_spec(
      "model: {name: small, layers: 2, hidden: 256, heads: 4, feed_forward: 1024, vocab: 1024}\nsequence: 128\n"
      "cluster: {node: dgx-a100, nodes: 1}\nstrategy: {data: 8, global_batch: 8}\n",
      "case");
  const Report report = predict(spec, false, path).report;
  ASSERT_FALSE(report.remarks.empty());
  EXPECT_NE(report.remarks.back().find("measured on NVIDIA H100"), std::string::npos) << report.remarks.back();
}

struct Broken {
  const char *name, *text, *error;
};

// Each error is one line with the place, the problem, and the remedy.
TEST(ImportFile, BrokenFilesAreErrors) {
  const std::string header =
      "#  Rank 0 Pid 1 on a device 0 [0x07] X\n#  Rank 1 Pid 1 on a device 1 [0x08] X\n"
      "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n";
  const std::string nan = header + "1024 256 float sum -1 nan 1 1 0 5.0 1 1 0\n",
                    cut = header + "1024 256 float sum -1 5.0 1\n",
                    nameless = header + "1024 256 float sum -1 5.0 1 1 0 5.0 1 1 0\n", empty = header,
                    nobody = "# size count type redop root time algbw busbw #wrong\n1024 256 float sum -1 5 1 1 0\n";
  const Broken cases[] = {
      {"all_reduce.txt", nan.c_str(), ":4: 'time' is 'nan', no figure"},
      {"all_reduce.txt", cut.c_str(), ":4: a row of 7 figures under a header of 13 columns"},
      {"all_reduce.txt", empty.c_str(), ":3: there is no row below the header"},
      {"all_reduce.txt", nobody.c_str(), ":2: how many ranks took part is not said"},
      {"all_reduce.txt", "1024 256 float sum -1 5 1 1 0 (busbw)\n", ":1: a row of figures before the header"},
      {"all_reduce.txt", "busbw\n", ":1: there is no header"},
      {"x.txt", nameless.c_str(), ":4: which collective this is is not said"},
      {"x.txt", "hello\n", ": is neither output of nccl-tests"},
      {"x.txt", "", ": is neither output of nccl-tests"},
      {"x.json", "{\"results\": [\n{\"size\": 1,", ":2: is no JSON: it ends too soon"},
      {"x.json", "{\n\"results\": NaN}", ":2: is no JSON: write it again"},
      {"x.json", "{\"a\": 1}", ": is no output of nccl-tests -J"},
      {"x.json",
       R"({"args":["all_reduce_perf"],"config":{"nthreads":1,"ngpus":2,"devices":[{"hostname":"a"}]},"results":[{"size":4,"out_of_place":{"time":"nan"}}]})",
       ": results[0].out_of_place: 'time' is \"nan\", no figure"},
      {"x.json", R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "args": {}}]})",
       ": the kernel 'k' has no duration"},
      {"x.json", "{\"traceEvents\": [\n{\"ph\": \"X\",\n", ":3: is no JSON: it ends too soon"},
      {"x.json", R"({"traceEvents": 3})", ""},
      {"x.log", "a:1:2 [0] NCCL INFO     AllReduce |  1.0/  2.0 |\n",
       ":1: a row of the tuning table before its header"},
      {"x.log",
       "a:1:2 [0] NCCL INFO Latency/AlgBw | Ring/ LL | Ring/ LL128 | Ring/Simple |\na:1:2 [0] NCCL INFO AllReduce | "
       "1.0/2.0 |\n",
       ":2: a row of 1 figures in a tuning table of 3 columns"},
      {"x.log",
       "a:1:2 [0] NCCL INFO Latency/AlgBw | Ring/ LL | Ring/ LL128 | Ring/Simple |\na:1:2 [0] NCCL INFO AllReduce | "
       "nan/2.0 | 1/1 | 1/1 |\n",
       ":2: 'nan/2.0' is no latency/bandwidth"},
      {"x.log", "NCCL INFO 99999999999 coll channels\n", ":1: '99999999999' is no number of channels"},
      {"x.log", "NCCL INFO comm 0x1 rank 0 nRanks 99999999999999999999 nNodes 1\n", ":1: 'nRanks ... nNodes ...'"},
      {"x.log", "NCCL INFO Pattern 4, crossNic 0, nChannels 9999999999, bw 1/1, type NVL/PIX, sameChannels 1\n",
       ":1: a line 'Pattern ...' of a form that is not known"},
      {"x.json",
       R"({"args":["all_reduce_perf"],"config":{"nthreads":1,"ngpus":1e9,"devices":[{"hostname":"a"}]},"results":[]})",
       ": config.ngpus: 1000000000.0 is not between 1 and 65536"},
      {"x.json", R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": 3, "dur": 1}]})", ": traceEvents[0].name: 3"},
      {"x.log", "a:1:2 [0] NCCL INFO Pattern 4, what is this\n",
       ":1: a line 'Pattern ...' of a form that is not known"},
  };
  const test::TemporaryFolder folder;
  for (const Broken& c : cases) {
    const std::string path = folder.path(c.name);
    std::ofstream(path) << c.text;
    try {
      const Imported file = import_file(path);
      EXPECT_STREQ(c.error, "") << c.text;
      EXPECT_TRUE(file.ops.empty());
    } catch (const Error& e) {
      EXPECT_EQ(e.exit_code, 2) << e.what();
      EXPECT_NE(std::string(e.what()).find(c.name + std::string(c.error)), std::string::npos) << e.what();
      EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos) << e.what();
    }
  }
}

// A file that is cut or has a changed byte is read or refused; it never crashes the program.
TEST(ImportFile, NoBytesBringItDown) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path("bytes");
  for (const char* name : {"all_reduce_8.txt", "reduce_scatter.json", "nccl_2.18.log", "kineto_rank0.json"}) {
    const std::string text = read_input(kImports + name, kMostMeasurements);
    for (std::uint64_t i = 0; i < 40; ++i) {
      std::string broken = text.substr(0, i % 2 == 0 ? scrambled(7, i) % text.size() : text.size());
      if (!broken.empty()) broken[scrambled(8, i) % broken.size()] = static_cast<char>(scrambled(9, i) % 127);
      std::ofstream(path) << broken;
      try {
        import_file(path);
      } catch (const Error& e) {
        EXPECT_EQ(e.exit_code, 2);
      }
    }
  }
}

// A profile is JSON whatever bytes a log has; the library that writes it takes UTF-8 alone.
TEST(ImportFile, BytesThatAreNoTextMakeAProfileAllTheSame) {
  const std::string text = read_input(kImports + "all_reduce_8.txt", kMostMeasurements);
  std::map<std::string, std::int64_t> refused;
  const std::string log = "a:1:2 [0] NCCL INFO NCCL version 2.1\xa2" + std::string("8\n") + text;
  Profile profile = profile_of({import_text("all_reduce.txt", log)}, refused);
  EXPECT_NE(fingerprint_of(profile, "nccl").find('\xa2'), std::string_view::npos);
  EXPECT_NO_THROW(parse_profile(to_json(profile), "profile.json"));
}

// Logs hold progress bars and dumped JSON in one line; a search that recurses for every character has no stack for it.
TEST(ImportFile, LinesOfAnyLengthAreReadAtOnce) {
  const std::string text = read_input(kImports + "all_reduce_8.txt", kMostMeasurements);
  const auto rows = [](const std::string& log) { return import_text("all_reduce.txt", log).transfers.size(); };
  EXPECT_EQ(rows(std::string(1'000'000, 'a') + '\n' + text), rows(text));
  EXPECT_EQ(rows("# nccl-tests version " + std::string(1'000'000, '1') + '\n' + text), rows(text));
  EXPECT_EQ(rows("# Rank 0 Pid 1 on " + std::string(1'000'000, 'h') + '\n' + text), rows(text));
  EXPECT_THROW(import_text("x.log", "NCCL INFO " + std::string(1'000'000, '9') + " coll channels"), Error);
  EXPECT_THROW(import_text("x.log", "NCCL INFO Pattern " + std::string(1'000'000, '4') + ", crossNic 0"), Error);
}

}  // namespace
}  // namespace orrery
