// The trace's file, as a viewer reads it.
#include <fstream>
#include <map>

#include <fmt/format.h>

#include "sim/export/chrome_trace.h"
#include "sim/predict/predict.h"
#include "tests/metamorphic/relations.h"
#include "tests/temporary_folder.h"

namespace orrery::test {
namespace {

constexpr std::uint64_t kMostTraced = 150'000;  // most tasks of a step whose trace is checked

struct Slice {
  double begin = 0, end = 0;
  std::string name;
};

// The parts of a trace on which relations are checked.
struct Events {
  double step = 0, last = 0;  // length of the step and end of its last kernel or transfer, microseconds
  std::map<std::pair<int, int>, std::vector<Slice>> lanes;  // by process and thread
  std::map<int, std::int64_t> most;                         // memory, by process
};

Events read_events(const Json& trace) {
  Events events;
  for (const Json& e : trace.at("traceEvents")) {
    const int process = e.value("pid", 0);
    if (e.at("ph") == "C") {
      std::int64_t sum = 0;
      for (const Json& part : e.at("args")) sum += part.get<std::int64_t>();
      events.most[process] = std::max(events.most[process], sum);
    }
    if (e.at("ph") != "X") continue;
    const std::string name = e.at("name");
    const double begin = e.at("ts"), length = e.at("dur");
    if (name.starts_with("ProfilerStep")) events.step = std::max(events.step, length);
    if (e.value("cat", "") == "user_annotation" || name.starts_with("wait for ")) continue;
    events.lanes[{process, e.at("tid").get<int>()}].push_back({begin, begin + length, name});
    events.last = std::max(events.last, begin + length);
  }
  return events;
}

void check_lanes(Checks& checks, const Subject& s, Events& events) {
  constexpr double kRounding = 0.01;  // microseconds
  for (auto& [lane, slices] : events.lanes) {
    std::sort(slices.begin(), slices.end(),
              [](const Slice& a, const Slice& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
    for (std::size_t i = 1; i < slices.size(); ++i) {
      const Slice &a = slices[i - 1], &b = slices[i];
      if (b.begin >= a.end - kRounding) continue;
      checks.violated("trace overlap",
                      fmt::format("lane {} of {}: {} [{:.3f}, {:.3f}], {} [{:.3f}, {:.3f}]", lane.second, lane.first,
                                  a.name, a.begin, a.end, b.name, b.begin, b.end),
                      s.spec);
      break;
    }
  }
}

}  // namespace

void traced(Checks& checks, const Subject& s) {
  const Spec& spec = s.run.spec;
  if (s.run.report.simulation.tasks > kMostTraced) return;
  const Prediction p = predict(spec);
  const TemporaryFolder folder;
  const std::string path = folder.path("trace.json");
  write_chrome_trace(path, p.plan, p.trace, memory_samples(spec, p.plan, p.costs, p.trace, p.profile));
  std::ifstream file(path);
  Events events = read_events(Json::parse(file));
  const Report &r = s.run.report, &whole_step = p.report;
  if (!close(r.step_time_s, whole_step.step_time_s, 1e-9) || r.memory.peak != whole_step.memory.peak)
    checks.violated("long step",
                    fmt::format("{} s, {} B; simulated whole {} s, {} B", r.step_time_s, r.memory.peak,
                                whole_step.step_time_s, whole_step.memory.peak),
                    s.spec);
  // A plan with several updates, or with steps that begin before the previous one has ended, is only partly traced.
  const bool whole = !is_asynchronous(spec.strategy) && !spec.software.communication.post_update_validation;
  // The report adds the time to remap memory on a full device; of models on GPUs of their own it tells the time from
  // one of many steps to the next, which overlap: the trace is of the first, and ends with its last kernel.
  const bool apart = has_second_apart(spec);
  const double step = apart ? events.last : (r.step_time_s - r.memory.remapping_s) * 1e6;
  if (whole && !close(events.step, step, 1e-5, 2e-3))
    checks.violated("trace step", fmt::format("{} us, step {} us", events.step, step), s.spec);
  check_lanes(checks, s, events);
  for (std::size_t slot = 0; slot < r.memory.ranks.size(); ++slot) {
    const Bytes drawn = events.most[static_cast<int>(slot)], peak = whole_step.memory.ranks[slot].memory.peak;
    if (drawn != peak)
      checks.violated("trace memory", fmt::format("{}: {}, peak {}", r.memory.ranks[slot].name, drawn, peak), s.spec);
  }
}

}  // namespace orrery::test
