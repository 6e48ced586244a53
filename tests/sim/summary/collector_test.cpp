// Records of a file are the same, whether one collector takes all events or parts of the file are joined.
#include "sim/summary/collector.h"

#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "tests/sim/summary/layouts.h"
#include "tests/sim/summary/releases.h"

namespace orrery {
namespace {

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

// All that records hold, and the names that they number, as one text.
std::string text_of(const TraceRecords& r, const TraceNames& names) {
  std::string text = fmt::format("{} {}\n", r.events, r.untimed);
  for (const auto& [what, count] : r.left_out) text += fmt::format("left out {} {}\n", what, count);
  for (const ProcessRecord& p : r.processes) {
    text +=
        fmt::format("process {} '{}' '{}' {} {} {}\n", p.pid, p.name, p.labels, p.has_kernels, p.allocated, p.reserved);
    for (const StepRecord& s : p.steps) text += fmt::format("step {} {} {}\n", s.number, s.begin, s.end);
  }
  for (const KernelRecord& k : r.kernels)
    text += fmt::format("kernel {} {} {} {} {} {} {} {}\n", k.begin, k.end, k.launch, k.operation, k.name, k.device,
                        k.waits, static_cast<int>(k.tie));
  for (const LaunchRecord& l : r.launches)
    text += fmt::format("launch {} {} {} {}\n", l.begin, l.end, l.correlation, l.thread);
  for (const OperatorRecord& o : r.operators)
    text += fmt::format("operator {} {} {} {} {} {}\n", o.begin, o.end, o.external, o.thread, o.name, o.annotation);
  for (const auto& [device, peaks] : r.memory)
    text += fmt::format("memory {} {} {}\n", device, peaks.first, peaks.second);
  for (std::uint32_t i = 0; i < names.names.size(); ++i)
    text += fmt::format("name {} {}\n", names.names.text(i),
                        i < names.classes.size() && names.classes[i] ? name_of(*names.classes[i]) : "");
  return text;
}

std::string by_one(const std::vector<TraceEvent>& events) {
  TraceNames names;
  TraceCollector all(names);
  for (const TraceEvent& e : events) all.take(e);
  return text_of(std::move(all).records(), names);
}

// Two collectors of parts take `length` events in turn, as two threads may.
std::string by_parts(const std::vector<TraceEvent>& events, std::size_t length) {
  TraceNames names, part_names[2];
  TraceCollector all(names), parts[2] = {TraceCollector(part_names[0]), TraceCollector(part_names[1])};
  TraceCollector::Numbers numbers[2];
  for (std::size_t i = 0, part = 0; i < events.size(); i += length, part = 1 - part) {
    for (std::size_t k = i; k < std::min(i + length, events.size()); ++k) parts[part].take(events[k]);
    EXPECT_TRUE(all.join(parts[part], numbers[part]));
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

}  // namespace
}  // namespace orrery
