#include "sim/whatif/run_events.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>
#include <unordered_map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/base/error.h"
#include "models/base/names.h"
#include "models/base/sensible.h"
#include "models/trace/json_scan.h"
#include "sim/summary/event.h"
#include "sim/summary/kernel_name.h"

namespace orrery {
namespace {

std::optional<double> seconds_of(std::string_view text) {
  ExactTime time;
  if (!parse_time(text, time)) return std::nullopt;
  return static_cast<double>(time.microseconds) * 1e-6 + static_cast<double>(time.picoseconds) * 1e-12;
}

// The number behind a word in a name such as "PP rank 2, TP rank 0", "DP rank [3]" or "ProfilerStep#4"; -1 if the word
// is not there. Throws Error if no number follows the word at once, or after blanks, a colon or a bracket.
std::int64_t number_behind(std::string_view name, std::string_view word) {
  const std::size_t at = name.find(word);
  if (at == std::string_view::npos) return -1;
  const std::size_t digit = std::min(name.find_first_not_of(" \t\r\n:[", at + word.size()), name.size());
  std::int64_t value = -1;
  const auto [end, error] = std::from_chars(name.data() + digit, name.data() + name.size(), value);
  if (error != std::errc{} || value < 0)
    throw Error(printable(fmt::format("no number follows '{}' in '{}'", word,
                                      first_characters(name.substr(at), sensible::kLongestWord))));
  return value;
}

// Reads one trace file. Events are kept until the end of the file, because the names of processes and threads, and the
// profiler's steps, may come after the events that need them.
class RunEvents {
 public:
  RunEvents(RunRows& rows, KernelRun& kernels) : rows_(rows), kernels_(kernels) {}

  void read(const std::string& path) {
    TraceReaders readers;
    readers.event = [&](const TraceEvent& e) { note(e); };
    readers.member = [&](std::string_view key, std::string_view value) {
      if (key == "distributedInfo") rank_ = number_behind(value, "\"rank\"");
    };
    read_trace(path, readers);
    for (auto& [pid, windows] : windows_) sort_windows(windows);
    try {
      for (const Noted& n : noted_) n.sequence ? add_row(n) : add_kernel(n, path);
    } catch (const Error& error) {
      throw Error(fmt::format("{}: {}", path, error.what()));
    }
  }

 private:
  struct Noted {
    std::string pid, tid, name, kind, arguments, correlation;
    double begin = 0, time = 0;
    std::int64_t step = 0, chunk = -1;
    std::optional<std::int64_t> sequence;  // number of an op in a log of ops (RunRow); nullopt for a kernel
  };
  struct Window {
    std::int64_t step = 0;
    double begin = 0, end = 0;
    double latest_end = 0;  // latest end of this window and of those that begin before it
  };

  void note(const TraceEvent& e) {
    if (e.phase == "M") {
      const std::string pid(e.pid), tid(e.tid);
      if (e.name == "process_name") processes_[pid] = unescaped(e.args.name);
      if (e.name == "thread_name") threads_[{pid, tid}] = unescaped(e.args.name);
      return;
    }
    if (e.phase != "X") return;
    const auto begin = seconds_of(e.ts), time = seconds_of(e.duration);
    if (!begin || !time || *time < 0) return;
    const EventSort sort = event_sort_of(e.category);
    if (!e.args.correlation.empty() && sort == EventSort::launch) note_launch(e, *begin);
    if (e.name.starts_with(kStepName) && (sort == EventSort::annotation || sort == EventSort::operation))
      windows_[std::string(e.pid)].push_back({number_behind(e.name, kStepName), *begin, *begin + *time});
    const bool kernel = sort == EventSort::kernel || sort == EventSort::copy;
    if (!kernel && e.args.object.find("\"seq_id\"") == std::string_view::npos) return;
    Noted n{.pid = std::string(e.pid), .tid = std::string(e.tid), .name = demangled(unescaped(e.name))};
    n.begin = *begin;
    n.time = *time;
    if (kernel) {
      n.correlation = e.args.correlation;
      n.kind = unescaped(e.args.kind);
      if (e.args.object.find("\"Collective name\"") != std::string_view::npos) n.arguments = e.args.object;
    } else if (!note_row(e, n)) {
      return;
    }
    noted_.push_back(std::move(n));
  }

  void note_launch(const TraceEvent& e, double begin) {
    const std::int32_t process =
        hosts_.try_emplace(std::string(e.pid), static_cast<std::int32_t>(hosts_.size())).first->second;
    const std::string id(e.args.correlation);
    const auto [first, last] = launches_.equal_range(id);
    const auto known = std::find_if(first, last, [&](const auto& l) { return l.second.process == process; });
    if (known == last)
      launches_.emplace(id, Launch{process, begin});
    else
      known->second.begin = begin;
  }

  static bool note_row(const TraceEvent& e, Noted& n) {
    const nlohmann::json args = nlohmann::json::parse(e.args.object, nullptr, false);
    if (!args.is_object() || !args.contains("step") || !args["step"].is_number_integer()) return false;
    const auto whole = [&](const char* key) {
      const auto found = args.find(key);
      return found != args.end() && found->is_number_integer() ? found->get<std::int64_t>() : -1;
    };
    n.step = args["step"].get<std::int64_t>();
    n.chunk = whole("model_chunk");
    n.sequence = whole("seq_id");
    return true;
  }

  void add_row(const Noted& n) {
    const std::string thread = threads_[{n.pid, n.tid}], process = processes_[n.pid];
    RunRow row{.worker = number_behind(process, "rank"),
               .stage = std::max<std::int64_t>(0, number_behind(thread, "PP rank")),
               .step = n.step,
               .op = n.name,
               .chunk = n.chunk,
               .sequence = *n.sequence,
               .lane = thread.substr(thread.find_last_of(',') + 1)};
    if (row.worker < 0) throw Error("no process is named after its rank; name it \"DP rank 0\"");
    row.begin = n.begin;
    row.time = n.time;
    rows_.add(row);
  }

  void add_kernel(const Noted& n, const std::string& path) {
    const std::int64_t step = step_at(n);
    if (step < 0) return;  // the kernel lies between two steps and is left out
    const std::string& process = processes_[n.pid];
    const bool of_rank = process.starts_with("rank ");
    const std::int64_t rank = of_rank ? number_behind(process, "rank ") : rank_;
    const std::string file = path.substr(path.find_last_of('/') + 1);
    if (rank < 0 && !is_printable(file))
      throw Error("the file names no rank, and its own name is no printable text in UTF-8; rename it");
    kernels_.add({.worker = rank >= 0 ? fmt::format("{}", rank) : file,
                  .lane = fmt::format("{} {}", of_rank ? "" : n.pid, n.tid),
                  .name = n.name,
                  .kind = n.kind,
                  .arguments = n.arguments,
                  .step = step,
                  .begin = n.begin,
                  .time = n.time});
  }

  // The profiler's step to which a kernel belongs: the one in which the host launched it or, where the launch is not
  // known, in which the kernel begins. Returns 0 if the file marks no steps, and -1 if the kernel is in none of them.
  // Steps of the kernel's own process are preferred to those of other processes. Steps that a device marks do not
  // count, since they may begin with any kernel.
  std::int64_t step_at(const Noted& n) const {
    const double time = launch_of(n).value_or(n.begin);
    if (const auto own = windows_.find(n.pid); own != windows_.end()) return step_in(own->second, time);
    for (const auto& [pid, windows] : windows_) {
      if (const std::int64_t step = step_in(windows, time); step >= 0) return step;
    }
    return windows_.empty() ? 0 : -1;
  }

  static void sort_windows(std::vector<Window>& windows) {
    std::ranges::stable_sort(windows, {}, &Window::begin);
    double latest = 0;
    for (Window& w : windows) w.latest_end = latest = &w == windows.data() ? w.end : std::max(latest, w.end);
  }

  // The step in which a time lies, -1 if it lies in none; of several windows around it, the last one to begin. windows:
  // in the order of sort_windows(). A step may be marked twice, but steps hardly overlap, so that the search ends soon.
  static std::int64_t step_in(const std::vector<Window>& windows, double time) {
    auto w = std::ranges::upper_bound(windows, time, {}, &Window::begin);
    while (w != windows.begin() && std::prev(w)->latest_end > time) {
      --w;
      if (time < w->end) return w->step;
    }
    return -1;
  }

  // When the host launched a kernel; nullopt if the file does not say it. Launches of several processes may have one
  // correlation id where the file holds several ranks. The kernel's own process tells them apart, and where no launch
  // is of that process the right one is unknown.
  std::optional<double> launch_of(const Noted& n) const {
    const auto [first, last] = launches_.equal_range(n.correlation);
    if (n.correlation.empty() || first == last) return std::nullopt;
    if (std::next(first) == last) return first->second.begin;
    const auto host = hosts_.find(n.pid);
    if (host == hosts_.end()) return std::nullopt;
    const auto own = std::find_if(first, last, [&](const auto& l) { return l.second.process == host->second; });
    return own == last ? std::nullopt : std::optional(own->second.begin);
  }

  struct Launch {
    std::int32_t process = 0;  // number of the process, in hosts_
    double begin = 0;
  };

  RunRows& rows_;
  KernelRun& kernels_;
  std::int64_t rank_ = -1;
  std::vector<Noted> noted_;
  std::map<std::string, std::string> processes_;
  std::map<std::pair<std::string, std::string>, std::string> threads_;
  std::map<std::string, std::vector<Window>> windows_;
  std::map<std::string, std::int32_t> hosts_;              // for each process that launches kernels, its number
  std::unordered_multimap<std::string, Launch> launches_;  // by correlation id: launches of a kernel by the host
};

}  // namespace

void read_run_events(const std::string& path, RunRows& rows, KernelRun& kernels) {
  RunEvents(rows, kernels).read(path);
}

}  // namespace orrery
