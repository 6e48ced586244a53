// Records of a file are the same, whether one collector takes all events or parts of the file are joined.
#include "sim/summary/collector.h"

#include <vector>

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "tests/sim/summary/collected.h"
#include "tests/sim/summary/layouts.h"
#include "tests/sim/summary/releases.h"

namespace orrery {
namespace {

using parts::text_of;

// The events of a trace, as views of its text.
std::vector<TraceEvent> events_in(std::string_view text) {
  std::vector<TraceEvent> events;
  text.remove_prefix(text.find("[", text.find("\"traceEvents\"")) + 1);
  JsonScan scan(text);
  TraceEvent event;
  while (scan.peek() == '{' && read_trace_event(scan, text, event)) {
    events.push_back(event);
    scan.take(',');
  }
  return events;
}

std::string by_one(const std::vector<TraceEvent>& events) {
  TraceNames names;
  TraceCollector all(names);
  for (const TraceEvent& e : events) all.take(e);
  return text_of(std::move(all).records(), names);
}

// Two collectors of parts take `length` events in turn, as two threads may, and every third time the events are read
// one by one, as those are in which a part was cut wrongly.
std::string by_parts(const std::vector<TraceEvent>& events, std::size_t length) {
  TraceNames names, part_names[2];
  TraceCollector all(names), parts[2] = {TraceCollector(part_names[0]), TraceCollector(part_names[1])};
  TraceCollector::Numbers numbers[2];
  for (std::size_t i = 0, part = 0; i < events.size(); i += length, part = 1 - part) {
    const bool alone = i / length % 3 == 2;
    for (std::size_t k = i; k < std::min(i + length, events.size()); ++k) (alone ? all : parts[part]).take(events[k]);
    EXPECT_TRUE(alone || all.join(parts[part], numbers[part]));
  }
  return text_of(std::move(all).records(), names);
}

constexpr std::string_view kOwn = R"own({"traceEvents": [
  {"ph": "M", "name": "process_name", "pid": 3, "args": {"name": "stage 0 (rank 0)"}},
  {"ph": "X", "cat": "kernel", "name": "wait", "pid": 3, "tid": 1, "ts": 1, "dur": 2, "args": {"op": "forward", "kind": "gemm"}},
  {"ph": "X", "cat": "wait", "name": "wait", "pid": 3, "tid": 1, "ts": 3, "dur": 2, "args": {"task": 7}},
  {"ph": "X", "cat": "kernel", "name": "reduce", "pid": 3, "tid": 1, "ts": 5, "dur": 9, "args": {"op": "reduce", "kind": "collective", "matched": 8.5}},
  {"ph": "C", "name": "memory", "pid": 3, "ts": 5, "args": {"weights": 12, "gradients": 30}},
  {"ph": "M", "name": "process_name", "pid": 4, "args": {"name": "stage 1 (rank 1)"}},
  {"ph": "X", "cat": "kernel", "name": "reduce", "pid": 4, "tid": 1, "ts": 5, "dur": 9, "args": {"op": "other", "kind": "collective"}},
  {"ph": "C", "name": "memory", "pid": 3, "ts": 6, "args": {"weights": 12}},
  {"ph": "X", "cat": "kernel", "name": "k", "pid": 4, "tid": 1, "ts": 5},
  {"ph": "X", "cat": "cpu_op", "name": "a::a", "pid": 5, "tid": 6, "ts": 5, "dur": 1},
  {"ph": "X", "cat": "cpu_op", "name": "a::b", "ts": 5, "dur": 1},
  {"ph": "M", "name": "process_name", "pid": 3, "args": {"name": "stage 0 (rank 0 again)"}}]})own";

TEST(TraceCollector, JoinedPartsAreTheWhole) {
  std::vector<std::string> texts = {std::string(layouts::kTorch113), std::string(layouts::kTorch21),
                                    std::string(layouts::kTorch210), std::string(layouts::kRocm), std::string(kOwn)};
  for (const releases::Release& r : releases::kReleases) texts.push_back(releases::step_of(r, 0));
  for (const std::string& text : texts) {
    const std::vector<TraceEvent> events = events_in(text);
    ASSERT_GE(events.size(), 5U);
    const std::string whole = by_one(events);
    for (std::size_t length = 1; length <= events.size(); ++length) ASSERT_EQ(by_parts(events, length), whole);
  }
}

// The first kernel of a name says its class. A part that saw another kernel of that name first is not joined.
TEST(TraceCollector, APartThatClassesANameOtherwiseIsNotJoined) {
  const std::string text = R"([
    {"ph": "X", "cat": "kernel", "name": "k", "pid": 1, "tid": 1, "ts": 1, "dur": 1, "args": {"op": "a", "kind": "gemm"}},
    {"ph": "X", "cat": "kernel", "name": "k", "pid": 1, "tid": 1, "ts": 2, "dur": 1, "args": {"op": "a", "kind": "norm"}}])";
  const std::vector<TraceEvent> events = events_in("\"traceEvents\": " + text);
  TraceNames names, part_names;
  TraceCollector all(names), part(part_names);
  TraceCollector::Numbers numbers;
  all.take(events[0]);
  part.take(events[1]);
  EXPECT_FALSE(all.join(part, numbers));
  EXPECT_EQ(std::move(all).records().kernels.size(), 1U);
}

TEST(TraceCollector, LimitsAreThoseOfTheWholeFile) {
  std::string text = "\"traceEvents\": [";
  for (int i = 0; i < 1500; ++i) text += fmt::format(R"({{"ph": "X", "cat": "category {}"}},)", i);
  const std::vector<TraceEvent> events = events_in(text);
  TraceNames names, part_names;
  TraceCollector all(names), part(part_names);
  TraceCollector::Numbers numbers;
  for (std::size_t i = 0; i < 600; ++i) all.take(events[i]);
  for (std::size_t i = 600; i < 1500; ++i) part.take(events[i]);
  EXPECT_FALSE(all.join(part, numbers));
}

// Processes that the file knows already count once.
TEST(TraceCollector, ProcessesAreAtMostThoseOfTheWholeFile) {
  constexpr std::size_t kEach = 20'000;
  std::vector<std::string> pids;
  for (std::size_t i = 0; i < 2 * kEach; ++i) pids.push_back(fmt::format("{}", i));
  TraceNames names, part_names;
  TraceCollector all(names), known(part_names), part(part_names);
  const auto take = [&](TraceCollector& collector, std::size_t i) {
    TraceEvent e;
    e.phase = "M";
    e.name = "process_name";
    e.pid = pids[i];
    collector.take(e);
  };
  for (std::size_t i = 0; i < kEach; ++i) take(all, i);
  for (std::size_t i = 0; i < kEach; ++i) take(known, i);
  for (std::size_t i = kEach; i < 2 * kEach; ++i) take(part, i);
  TraceCollector::Numbers numbers, part_numbers;
  EXPECT_TRUE(all.join(known, numbers));
  EXPECT_FALSE(all.join(part, part_numbers));
  EXPECT_EQ(std::move(all).records().processes.size(), kEach);
}

}  // namespace
}  // namespace orrery
