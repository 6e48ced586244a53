#include "viz/read/chrome_reader.h"

#include <gtest/gtest.h>

#include "viz/draw/layout.h"

using namespace orrery;

namespace {

Timeline read(const std::string& text) {
  TimelineBuilder builder;
  std::optional<std::int64_t> origin;
  ChromeReader(builder, text, "t.json", 0, origin).read({});
  return builder.finish();
}

bool says(const Timeline& t, std::string_view what) {
  for (const std::string& r : t.remarks) {
    if (r.find(what) != std::string::npos) return true;
  }
  return false;
}

const std::string kEvent = R"({"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":10.5,"dur":2})";

}  // namespace

// The profiler's own span, longer than all work, is in a process of its own, which is not shown.
TEST(ChromeReader, LeavesOutHowLongTheProfilerRan) {
  const Timeline t = read("[" + kEvent + R"x(,
    {"ph":"M","name":"process_name","pid":"Spans","tid":0,"args":{"name":""}},
    {"ph":"X","cat":"Trace","name":"PyTorch Profiler (0)","pid":"Spans","tid":"PyTorch Profiler","ts":0,"dur":9000}])x");
  EXPECT_EQ(t.events(), 1U);
  EXPECT_EQ(t.processes.size(), 1U);
  EXPECT_EQ(t.end, 2'000'000);
}

TEST(ChromeReader, ReadsKineto) {
  const Timeline t = read(R"({"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": 5, "world_size": 8},
    "traceEvents": [
    {"ph":"X","cat":"kernel","name":"ncclDevKernel_AllReduce_Sum_bf16","pid":0,"tid":20,"ts":1700000000000100.250,
     "dur":40.5,"args":{"Process Group Name":"3","Process Group Description":"mesh_dp","stream":20}},
    {"ph":"X","cat":"kernel","name":"ampere_gemm","pid":0,"tid":7,"ts":1700000000000000,"dur":100.125,"args":{}},
    {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":991,"tid":991,"ts":1700000000000000,"dur":1},
    {"ph":"M","name":"process_name","pid":0,"tid":0,"args":{"name":"python"}},
    {"ph":"M","name":"thread_name","pid":0,"tid":7,"args":{"name":"stream 7"}},
    {"ph":"s","id":1,"pid":991,"tid":991,"ts":1700000000000000,"cat":"ac2g","name":"ac2g"},
    {"ph":"i","pid":0,"tid":7,"ts":1700000000000000,"name":"mark"}
    ], "traceName": "x"})");
  EXPECT_TRUE(t.remarks.empty());
  ASSERT_EQ(t.events(), 3u);
  ASSERT_EQ(t.processes.size(), 2u);
  EXPECT_EQ(t.processes[0].name, "python (rank 5)");
  EXPECT_EQ(t.processes[0].rank, 5);
  EXPECT_EQ(name_in_view(t.processes[0]), "python (rank 5)");  // the other process is of rank 5 too
  EXPECT_EQ(name_in_view(t.processes[1]), "process 991 (rank 5)");
  const auto gemm = [&] {
    for (EventId e = 0; e < t.events(); ++e) {
      if (t.name(e) == "ampere_gemm") return e;
    }
    return kNoEvent;
  }();
  ASSERT_NE(gemm, kNoEvent);
  EXPECT_EQ(t.begins[gemm], 0);
  EXPECT_EQ(t.ends[gemm], 100'125'000);
  EXPECT_EQ(t.kind(gemm), Kind::product);
  EXPECT_EQ(t.tracks[track_of(t, gemm)].name, "stream 7");
  EXPECT_EQ(t.end, 140'750'000);
}

// The profiler repeats annotations around the kernels that were launched within them: kernels stay on one row.
TEST(ChromeReader, AnnotationsOfAStreamHaveALaneOfTheirOwn) {
  const Timeline t = read(R"([
    {"ph":"X","cat":"gpu_user_annotation","name":"forward","pid":0,"tid":7,"ts":10,"dur":90},
    {"ph":"X","cat":"kernel","name":"a_gemm","pid":0,"tid":7,"ts":10,"dur":40},
    {"ph":"X","cat":"kernel","name":"b_gemm","pid":0,"tid":7,"ts":200,"dur":40},
    {"ph":"M","name":"thread_name","pid":0,"tid":7,"args":{"name":"stream 7 "}},
    {"ph":"M","name":"thread_sort_index","pid":0,"tid":7,"args":{"sort_index":7}}])");
  ASSERT_EQ(t.tracks.size(), 2U);
  EXPECT_EQ(t.tracks[0].name, "stream 7");
  EXPECT_EQ(t.tracks[0].count, 2U);
  EXPECT_EQ(t.tracks[1].name, "stream 7 annotations");
  EXPECT_EQ(t.tracks[1].count, 1U);
  EXPECT_EQ(compute_track(t, 0), 0U);
}

TEST(ChromeReader, TakesOurOwnExactTimes) {
  const Timeline t = read(R"json({"traceEvents": [
    {"ph":"M","name":"process_name","pid":0,"tid":0,"args":{"name":"stage 3 (ranks 48, 49, ... x16)"}},
    {"ph":"X","cat":"wait","name":"wait for stage 2","pid":0,"tid":2,"ts":1.000,"dur":2.001,"args":{"task":9}},
    {"ph":"X","cat":"kernel","name":"ncclDevKernel_SendRecv","pid":0,"tid":2,"ts":1.000,"dur":5.000,"args":{"layer":3,
     "micro-batch":2,"chunk":1,"op":"send","phase":"forward","Process Group Description":"pipeline",
     "issued":0.5,"entered":1.000000,"matched":3.000400,"ended":6.000100,"cause":"qkv"}}]})json");
  ASSERT_EQ(t.events(), 2u);
  ASSERT_EQ(t.tracks.size(), 1u);  // waiting and transfer share the lane
  EXPECT_EQ(t.kind(0), Kind::wait);
  EXPECT_EQ(t.kind(1), Kind::pipeline);
  EXPECT_EQ(t.name(1), "send");
  EXPECT_EQ(t.ends[1], 5'000'100);
  EXPECT_EQ(t.place(1).layer, 3);
  EXPECT_EQ(t.place(1).micro_batch, 2);
  EXPECT_EQ(t.processes[0].rank, 48);
  EXPECT_EQ(t.processes[0].ranks, 16);
  EXPECT_EQ(t.processes[0].coordinates[2], 3);
}

TEST(ChromeReader, RepairsWhatIsBroken) {
  struct Row {
    std::string text;
    EventId events;
    std::string remark;
  };
  const std::string open = "{\"traceEvents\": [" + kEvent;
  for (const Row& r : {Row{"[" + kEvent, 1, "not closed"},
                       {open + "]", 1, "last bracket"},
                       {open + ",\n" + kEvent.substr(0, 40), 1, "inside a value"},
                       {open + ", {\"ph\":\"X\",\"name\":\"a\x02\",\"ts\":1,\"dur\":1}]}", 2, "control"},
                       {open + ", {\"ph\":\"X\",\"ts\":NaN,\"dur\":1}]}", 1, "finite"},
                       {open + ", {\"ph\":\"X\",\"ts\":1,\"dur\":Infinity}]}", 1, "finite"},
                       {open + ", garbage, " + kEvent + "]}", 2, "no event"},
                       {open + ", {\"ph\" \"X\"}, " + kEvent + "]}", 2, "no event"},
                       {open + R"(, {"ph":"B","name":"a","ts":1,"pid":1,"tid":1}]})", 1, "never end"},
                       {open + R"(, {"ph":"E","ts":1,"pid":1,"tid":1}]})", 1, "never began"},
                       {open + ", {\"ph\":\"X\",\"ts\":9e15,\"dur\":1}]}", 1, "finite"}}) {
    const Timeline t = read(r.text);
    EXPECT_EQ(t.events(), r.events) << r.text;
    EXPECT_TRUE(says(t, r.remark)) << r.text << " should say " << r.remark;
  }
}

TEST(ChromeReader, AnyPrefixIsRead) {
  const std::string whole = "{\"a\": {\"b\": [1]}, \"traceEvents\": [" + kEvent + ",\n" +
                            R"({"ph":"C","name":"memory","pid":0,"ts":11,"args":{"parameters":5,"activations":7}},
    {"ph":"s","cat":"transfer","id":1,"pid":0,"tid":7,"ts":10.6},{"ph":"f","cat":"transfer","id":1,"pid":1,"tid":7,"ts":12}]})";
  for (std::size_t length = 0; length < whole.size(); ++length) EXPECT_LE(read(whole.substr(0, length)).events(), 1u);
  const Timeline t = read(whole);
  ASSERT_EQ(t.processes[0].counters.size(), 1u);
  EXPECT_EQ(t.processes[0].counters[0].values, (std::vector<double>{5, 7}));
}

TEST(ChromeReader, RanksStandWhereTheirGroupsHaveThem) {
  const auto event = [](int tid, const std::string& group, const std::string& ranks) {
    return R"({"ph":"X","cat":"kernel","name":"ncclDevKernel_AllReduce","pid":0,"ts":1,"dur":1,"tid":)" +
           std::to_string(tid) + R"(,"args":{"Process Group Description":")" + group + R"(","Process Group Ranks":")" +
           ranks + "\"}},";
  };
  const Timeline t = read(R"({"distributedInfo": {"rank": 5}, "traceEvents": [)" + event(1, "mesh_tp", "[4, 5, 6, 7]") +
                          event(2, "data", "[1, 5, 9]") + event(3, "embedding", "[5, 60]") + kEvent + "]}");
  EXPECT_EQ(t.processes[0].coordinates, (std::array<std::int64_t, 5>{1, 1, -1, -1, -1}));
}

TEST(ChromeReader, KeepsTheSavedView) {
  const Timeline t = read(R"({"orreryView": {"schema": "orrery.view/1"}, "traceEvents": [)" + kEvent + "]}");
  EXPECT_EQ(t.saved_view, R"({"schema": "orrery.view/1"})");
  EXPECT_EQ(t.events(), 1u);
}

TEST(ChromeReader, ConnectsSendsWithReceives) {
  const Timeline t = read("[" + kEvent + R"(,{"ph":"X","name":"r","pid":1,"tid":7,"ts":11,"dur":3},
    {"ph":"s","cat":"transfer","id":1,"pid":0,"tid":7,"ts":11},{"ph":"f","cat":"transfer","id":1,"pid":1,"tid":7,"ts":12.5}])");
  ASSERT_EQ(t.arrows.size(), 1u);
  EXPECT_EQ(t.arrows[0].from, 500'000);
  EXPECT_EQ(t.arrows[0].to, 2'000'000);
  EXPECT_NE(t.arrows[0].from_track, t.arrows[0].to_track);
}
