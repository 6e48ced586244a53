#pragma once

#include <string>
#include <string_view>

#include <fmt/format.h>

#include "sim/summary/collector.h"
#include "tests/sim/summary/read_by_parts.h"

// Records of a trace as text, collected from its events by parts or one by one.
namespace orrery::parts {

// All that records hold, and the names that they number, as one text.
inline std::string text_of(const TraceRecords& r, const TraceNames& names) {
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

// Collects the records of parts of a list, and joins each with those of the whole.
class JoinedPart : public PartReader {
 public:
  explicit JoinedPart(TraceCollector& all) : all_(all) {}
  void event(const TraceEvent& e) override { part_->collector.take(e); }
  bool pass_on() override { return all_.join(part_->collector, part_->numbers); }
  void drop() override { part_ = std::make_unique<Part>(); }

 private:
  struct Part {
    TraceNames names;
    TraceCollector collector{names};
    TraceCollector::Numbers numbers;
  };
  TraceCollector& all_;
  std::unique_ptr<Part> part_ = std::make_unique<Part>();
};

inline std::string collected(std::string_view list, std::size_t threads, std::size_t least) {
  TraceNames names;
  TraceCollector all(names);
  EventParts parts([&] { return std::make_unique<JoinedPart>(all); }, {threads, least});
  read_list(list, parts, [&](const TraceEvent& e) { all.take(e); });
  return text_of(std::move(all).records(), names);
}

}  // namespace orrery::parts
