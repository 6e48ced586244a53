#include "sim/summary/collector.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/base/sensible.h"

namespace orrery {
namespace {

// Latest time of a trace in nanoseconds since 1970, in the year 2096. With this limit the difference of two times fits
// in 64 bits.
constexpr std::int64_t kLatest_ns = 4'000'000'000'000'000'000;

std::int64_t whole_number(std::string_view text, std::int64_t otherwise) {
  std::int64_t value = otherwise;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  return result.ec == std::errc{} ? value : otherwise;
}

std::uint32_t record_id(std::string_view text) { return static_cast<std::uint32_t>(whole_number(text, 0)); }

bool trace_time_of(std::string_view text, std::int64_t& ns) {
  ExactTime time;
  if (!parse_time(text, time)) return false;
  ns = time.microseconds * 1000 + time.picoseconds / 1000;
  return true;
}

}  // namespace

void TraceCollector::take(const TraceEvent& e) {
  ++records_.events;
  const char phase = e.phase.size() == 1 ? e.phase[0] : '\0';
  if (phase == 'X') {
    complete(e);
  } else if (phase == 'M') {
    about(e);
  } else if (phase == 'i' && e.name == "[memory]") {
    memory(e);
  } else if (phase == 'C' && e.name == "memory") {
    counter(e);
  } else {
    leave_out(e);
  }
}

void TraceCollector::member(std::string_view key, std::string_view value) {
  if (key != "distributedInfo" && key != "deviceProperties") return;
  const std::size_t object = value.find('{');
  if (object == std::string_view::npos) return;
  JsonScan scan(value.substr(object));
  for (const auto& [name, text] : members_of_object(scan.raw())) {
    if (key == "distributedInfo" && name == "rank" && whole_number(text, -1) >= 0)
      records_.rank = whole_number(text, -1);
    if (key == "deviceProperties" && name == "name") records_.device = text;
  }
}

bool TraceCollector::times_of(const TraceEvent& e, Times& times) {
  constexpr auto kMost_ns = static_cast<std::int64_t>(sensible::kMostMicroseconds) * 1000;
  std::int64_t duration = 0;
  if (!trace_time_of(e.ts, times.begin) || !trace_time_of(e.duration, duration)) return false;
  if (times.begin < -kLatest_ns || times.begin > kLatest_ns || duration < 0 || duration > kMost_ns) return false;
  times.end = times.begin + duration;
  return true;
}

// Counts an event that adds nothing to the summary: by its category or, if it has none, by its phase.
void TraceCollector::leave_out(const TraceEvent& e, std::string_view reason) {
  if (last_left_out_ != nullptr && reason.empty() && !e.category.empty() && last_category_ == e.category) {
    ++*last_left_out_;
    return;
  }
  std::string what = !e.category.empty() ? unescaped(e.category)
                     : e.phase == "i"    ? "instant"
                     : e.phase == "C"    ? "counter"
                                         : "no category";
  if (!reason.empty()) what += fmt::format(" {}", reason);
  if (records_.left_out.size() >= kMostCategories && !records_.left_out.contains(what)) what = "other categories";
  std::int64_t& count = records_.left_out[what];
  ++count;
  if (reason.empty()) {
    last_left_out_ = &count;
    last_category_ = e.category;
  }
}

void TraceCollector::complete(const TraceEvent& e) {
  const EventSort sort = event_sort_of(e.category);
  if (sort == EventSort::none) return leave_out(e);
  Times times;
  if (!times_of(e, times)) {
    if (sort != EventSort::kernel && sort != EventSort::copy) return leave_out(e, "without a time");
    ++records_.untimed;
    return;
  }
  switch (sort) {
    case EventSort::kernel:
    case EventSort::copy:
    case EventSort::wait:
      return kernel(e, times, sort);
    case EventSort::operation:
    case EventSort::annotation:
      return operation(e, times, sort);
    default:
      const std::uint32_t id = record_id(e.args.correlation);
      if (id == 0) return leave_out(e, "without an id");
      records_.launches.push_back({times.begin, times.end, id, thread_of(e)});
  }
}

void TraceCollector::kernel(const TraceEvent& e, const Times& times, EventSort sort) {
  KernelRecord k;
  k.begin = times.begin;
  k.end = times.end;
  k.device = process_of(e.pid);
  k.waits = sort == EventSort::wait;
  k.launch = record_id(k.waits ? e.args.task : e.args.correlation);
  k.operation = record_id(e.args.external);
  if (!k.waits) {
    records_.processes[k.device].has_kernels = true;
    const bool own = !e.args.op.empty();
    k.name = names_.kernel(e.name, sort == EventSort::copy ? "copy" : own ? e.args.kind : std::string_view());
    if (own) own_kernel(e, k);
  }
  records_.kernels.push_back(k);
}

// Reads the arguments that only Orrery's own traces have: the op of the plan and, for a transfer, the moment when its
// last rank had come (matched). The kernel's time counts from that moment, since until then its rank waits.
void TraceCollector::own_kernel(const TraceEvent& e, KernelRecord& k) {
  k.tie = Tie::own;
  k.operation = names_.names.number_of(e.args.op);
  std::int64_t matched = 0;
  if (names_.class_of(k.name) == KernelClass::collective && trace_time_of(e.args.matched, matched))
    k.begin = std::clamp(matched, k.begin, k.end);
}

void TraceCollector::operation(const TraceEvent& e, const Times& times, EventSort sort) {
  if (e.name.starts_with(kStepName)) {
    const std::int64_t number = whole_number(e.name.substr(kStepName.size()), 0);
    records_.processes[process_of(e.pid)].steps.push_back({number, times.begin, times.end});
    return;
  }
  records_.operators.push_back({times.begin, times.end, record_id(e.args.external), thread_of(e),
                                names_.names.number_of(e.name), sort == EventSort::annotation});
}

void TraceCollector::about(const TraceEvent& e) {
  ProcessRecord& process = records_.processes[process_of(e.pid)];
  if (e.name == "process_name" && !e.args.name.empty()) process.name = unescaped(e.args.name);
  if (e.name == "process_labels" && !e.args.labels.empty()) process.labels = unescaped(e.args.labels);
}

// Reads an event of PyTorch's allocators. Device type 0 is the host's memory.
void TraceCollector::memory(const TraceEvent& e) {
  if (whole_number(e.args.device_type, 0) == 0) return;
  auto& [allocated, reserved] = records_.memory[whole_number(e.args.device, 0)];
  allocated = std::max(allocated, whole_number(e.args.allocated, 0));
  reserved = std::max(reserved, whole_number(e.args.reserved, 0));
}

// Reads a memory sample of Orrery's own traces, which gives bytes by category. The sum of all categories is the bytes
// allocated.
void TraceCollector::counter(const TraceEvent& e) {
  std::int64_t sum = 0;
  for (const auto& [name, text] : members_of_object(e.args.object, true)) {
    const std::int64_t bytes = whole_number(text, 0);
    if (bytes > 0 && bytes <= sensible::kMostBytes) sum += bytes;
  }
  ProcessRecord& process = records_.processes[process_of(e.pid)];
  process.allocated = std::max(process.allocated, sum);
}

std::uint16_t TraceCollector::process_of(std::string_view pid) {
  if (!last_pid_.empty() && last_pid_ == pid) return last_process_;
  const std::uint32_t number = pids_.number_of(pid);
  if (number == records_.processes.size()) {
    if (number >= kMostProcesses) throw Error("names more than 32768 processes; the file is damaged");
    records_.processes.push_back({.pid = unescaped(pid)});
  }
  last_pid_ = pid;
  return last_process_ = static_cast<std::uint16_t>(number);
}

std::uint32_t TraceCollector::thread_of(const TraceEvent& e) {
  if (last_thread_ && last_tid_ == e.tid && last_thread_pid_ == e.pid) return *last_thread_;
  last_thread_pid_ = e.pid;
  last_tid_ = e.tid;
  thread_key_.assign(e.pid);
  thread_key_ += ' ';
  thread_key_ += e.tid;
  return last_thread_.emplace(threads_.number_of(thread_key_));
}

}  // namespace orrery
