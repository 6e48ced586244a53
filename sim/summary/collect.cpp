#include "sim/summary/collect.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/base/sensible.h"
#include "sim/summary/event.h"
#include "sim/summary/kernel_name.h"

namespace orrery {
namespace {

constexpr std::string_view kStepName = "ProfilerStep#";
constexpr std::size_t kMostProcesses = 1 << 15;
constexpr std::size_t kMostCategories = 1000;
// Latest time of a trace in nanoseconds since 1970, in the year 2096. With this limit the difference of two times fits
// in 64 bits.
constexpr std::int64_t kLatest_ns = 4'000'000'000'000'000'000;

// Sorts of events, told apart by the event's category. PyTorch 1.12 and older write "Kernel", "Memcpy", "Operator" and
// "Runtime" as categories.
enum class EventSort : std::uint8_t { none, kernel, copy, wait, operation, annotation, launch };

EventSort event_sort_of(std::string_view category) {
  struct Row {
    std::string_view category;
    EventSort sort;
  };
  static constexpr Row rows[] = {{"kernel", EventSort::kernel},
                                 {"cpu_op", EventSort::operation},
                                 {"cuda_runtime", EventSort::launch},
                                 {"gpu_memcpy", EventSort::copy},
                                 {"gpu_memset", EventSort::copy},
                                 {"cuda_driver", EventSort::launch},
                                 {"user_annotation", EventSort::annotation},
                                 {"wait", EventSort::wait},
                                 {"Kernel", EventSort::kernel},
                                 {"Memcpy", EventSort::copy},
                                 {"Memset", EventSort::copy},
                                 {"Operator", EventSort::operation},
                                 {"Runtime", EventSort::launch}};
  for (const Row& row : rows) {
    if (row.category.size() == category.size() && row.category[0] == category[0] && row.category == category)
      return row.sort;
  }
  // calls of runtime and driver libraries of other makers: hip_runtime (AMD), xpu_runtime (Intel), mtia_driver (Meta)
  return category.ends_with("_runtime") || category.ends_with("_driver") ? EventSort::launch : EventSort::none;
}

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

// Adds the events of one file to its records.
class TraceCollector {
 public:
  explicit TraceCollector(TraceNames& names) : names_(names) {}

  void take(const TraceEvent& e) {
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

  void member(std::string_view key, std::string_view value) {
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

  TraceRecords records() && { return std::move(records_); }

 private:
  struct Times {
    std::int64_t begin = 0, end = 0;
  };

  static bool times_of(const TraceEvent& e, Times& times) {
    constexpr auto kMost_ns = static_cast<std::int64_t>(sensible::kMostMicroseconds) * 1000;
    std::int64_t duration = 0;
    if (!trace_time_of(e.ts, times.begin) || !trace_time_of(e.duration, duration)) return false;
    if (times.begin < -kLatest_ns || times.begin > kLatest_ns || duration < 0 || duration > kMost_ns) return false;
    times.end = times.begin + duration;
    return true;
  }

  // Counts an event that adds nothing to the summary: by its category or, if it has none, by its phase.
  void leave_out(const TraceEvent& e, std::string_view reason = {}) {
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

  void complete(const TraceEvent& e) {
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

  void kernel(const TraceEvent& e, const Times& times, EventSort sort) {
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
  void own_kernel(const TraceEvent& e, KernelRecord& k) {
    k.tie = Tie::own;
    k.operation = names_.names.number_of(e.args.op);
    std::int64_t matched = 0;
    if (names_.class_of(k.name) == KernelClass::collective && trace_time_of(e.args.matched, matched))
      k.begin = std::clamp(matched, k.begin, k.end);
  }

  void operation(const TraceEvent& e, const Times& times, EventSort sort) {
    if (e.name.starts_with(kStepName)) {
      const std::int64_t number = whole_number(e.name.substr(kStepName.size()), 0);
      records_.processes[process_of(e.pid)].steps.push_back({number, times.begin, times.end});
      return;
    }
    records_.operators.push_back({times.begin, times.end, record_id(e.args.external), thread_of(e),
                                  names_.names.number_of(e.name), sort == EventSort::annotation});
  }

  void about(const TraceEvent& e) {
    ProcessRecord& process = records_.processes[process_of(e.pid)];
    if (e.name == "process_name") process.name = unescaped(e.args.name);
    if (e.name == "process_labels") process.labels = unescaped(e.args.labels);
  }

  // Reads an event of PyTorch's allocators. Device type 0 is the host's memory.
  void memory(const TraceEvent& e) {
    if (whole_number(e.args.device_type, 0) == 0) return;
    auto& [allocated, reserved] = records_.memory[whole_number(e.args.device, 0)];
    allocated = std::max(allocated, whole_number(e.args.allocated, 0));
    reserved = std::max(reserved, whole_number(e.args.reserved, 0));
  }

  // Reads a memory sample of Orrery's own traces, which gives bytes by category. The sum of all categories is the bytes
  // allocated.
  void counter(const TraceEvent& e) {
    std::int64_t sum = 0;
    for (const auto& [name, text] : members_of_object(e.args.object, true)) {
      const std::int64_t bytes = whole_number(text, 0);
      if (bytes > 0 && bytes <= sensible::kMostBytes) sum += bytes;
    }
    ProcessRecord& process = records_.processes[process_of(e.pid)];
    process.allocated = std::max(process.allocated, sum);
  }

  std::uint16_t process_of(std::string_view pid) {
    if (!last_pid_.empty() && last_pid_ == pid) return last_process_;
    const auto [found, added] = processes_.try_emplace(std::string(pid), static_cast<std::uint16_t>(processes_.size()));
    if (added) {
      if (processes_.size() > kMostProcesses) throw Error("names more than 32768 processes; the file is damaged");
      records_.processes.push_back({.pid = unescaped(pid)});
    }
    last_pid_ = pid;
    return last_process_ = found->second;
  }

  std::uint32_t thread_of(const TraceEvent& e) {
    thread_key_.assign(e.pid);
    thread_key_ += ' ';
    thread_key_ += e.tid;
    if (thread_key_ != last_thread_key_) {
      last_thread_ = threads_.try_emplace(thread_key_, static_cast<std::uint32_t>(threads_.size())).first->second;
      last_thread_key_ = thread_key_;
    }
    return last_thread_;
  }

  TraceNames& names_;
  TraceRecords records_;
  std::map<std::string, std::uint16_t> processes_;
  std::map<std::string, std::uint32_t> threads_;
  std::string last_pid_, thread_key_, last_thread_key_;
  std::string last_category_;              // category of the last event left out without a `reason`
  std::int64_t* last_left_out_ = nullptr;  // the count of events left out in that category (last_category_)
  std::uint16_t last_process_ = 0;
  std::uint32_t last_thread_ = 0;
};

}  // namespace

std::uint32_t TraceNames::kernel(std::string_view name, std::string_view kind) {
  const std::uint32_t number = names.number_of(name);
  if (number >= classes.size()) classes.resize(names.size());
  if (!classes[number]) classes[number] = class_of_kernel(demangled(unescaped(name)), kind);
  return number;
}

TraceRecords collect(const std::string& path, TraceNames& names, const std::function<void()>& piece) {
  TraceCollector collector(names);
  TraceReaders readers;
  readers.event = [&](const TraceEvent& e) { collector.take(e); };
  readers.member = [&](std::string_view key, std::string_view value) { collector.member(key, value); };
  readers.piece = piece;
  read_trace(path, readers);
  TraceRecords records = std::move(collector).records();
  if (records.events == 0) throw Error(path + ": holds no events; record the trace again");
  const bool kernels = std::ranges::any_of(records.processes, [](const ProcessRecord& p) { return p.has_kernels; });
  if (!kernels)
    throw Error(fmt::format("{}: none of its {} events is a kernel of a device; profile with ProfilerActivity.CUDA",
                            path, records.events));
  return records;
}

}  // namespace orrery
