#include "sim/summary/summary.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <tuple>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/trace/json_scan.h"
#include "sim/summary/collect.h"
#include "sim/summary/kernel_name.h"
#include "sim/summary/tie.h"

namespace orrery {
namespace {

void add_to(ClassTotal& total, std::int64_t count, std::int64_t time) {
  total.count += count;
  total.time += time;
}

// Sums up trace files one after the other. Of each file only the sums are kept.
class TraceSummer {
 public:
  TraceSummer(TraceSummary& summary) : summary_(summary) {}

  void add_file(const std::string& path, const std::function<void()>& piece) {
    TraceRecords records = collect(path, names_, piece);
    tie(records);
    summary_.files.push_back(path);
    summary_.events += records.events;
    summary_.untimed += records.untimed;
    for (const auto& [what, count] : records.left_out) summary_.left_out[what] += count;
    const auto& kernels = records.kernels;
    for (std::size_t first = 0; first < kernels.size();) {
      std::size_t end = first;
      while (end < kernels.size() && kernels[end].device == kernels[first].device) ++end;
      if (records.processes[kernels[first].device].has_kernels) add_device(records, first, end);
      first = end;
    }
  }

  // Completes the summary: adds the totals of kernels (by short name) and of operators, longest total first.
  void finish() {
    add_kernels();
    add_operators();
    std::ranges::stable_sort(summary_.by_kernel, {},
                             [](const KernelTotal& k) { return std::pair(-k.total.time, k.name); });
    std::ranges::stable_sort(summary_.by_operator, {},
                             [](const OperatorTotal& o) { return std::pair(-o.total.time, o.name); });
    name_apart();
  }

 private:
  using Pair = std::pair<std::uint32_t, std::uint32_t>;  // indices of a kernel's name and of its operator's name

  void add_device(const TraceRecords& records, std::size_t first, std::size_t end) {
    const ProcessRecord& process = records.processes[records.kernels[first].device];
    RankTotal rank;
    rank.file = summary_.files.back();
    rank.device = records.device;
    const auto steps = step_times(steps_of(records, process));
    if (steps) rank.steps = *steps;
    rank.times = device_times(records, first, end, names_, steps);
    for (std::size_t i = first; i < end; ++i) {
      if (!records.kernels[i].waits) add_kernel(records.kernels[i], rank);
    }
    name_rank(records, process, rank);
    add_memory(records, process, rank);
    summary_.ranks.push_back(std::move(rank));
  }

  void add_kernel(const KernelRecord& k, RankTotal& rank) {
    const std::int64_t time = k.end - k.begin;
    if (time > INT64_MAX - summary_.time)
      throw Error(rank.file + ": its kernels last longer than three hundred years in all; the file is damaged");
    ++rank.kernels;
    rank.tied += k.tie != Tie::none;
    ++summary_.kernels;
    summary_.time += time;
    ++summary_.ties[static_cast<std::size_t>(k.tie)];
    add_to(summary_.classes[static_cast<std::size_t>(names_.class_of(k.name))], 1, time);
    const Pair names{k.name, k.operation};
    if (last_ == nullptr || last_names_ != names) {
      last_ = &totals_[names];
      last_names_ = names;
    }
    add_to(*last_, 1, time);
  }

  // The steps that the process itself marks or, if it marks none, those of the first process of the file that marks
  // some.
  static const std::vector<StepRecord>& steps_of(const TraceRecords& records, const ProcessRecord& process) {
    if (!process.steps.empty()) return process.steps;
    const auto host = std::ranges::find_if(records.processes, [](const ProcessRecord& p) { return !p.steps.empty(); });
    return host == records.processes.end() ? process.steps : host->steps;
  }

  static std::size_t devices_in(const TraceRecords& records) {
    return static_cast<std::size_t>(std::ranges::count_if(records.processes, &ProcessRecord::has_kernels));
  }

  // Names a device by its rank. Profilers give the same name to all processes of a rank ("python3") and label the
  // device's process "GPU 0"; Orrery's own traces name each process by its ranks:
  // "rank 3 (rank 3)" or "stage 0 (ranks 0, 1, ... x16)".
  static void name_rank(const TraceRecords& records, const ProcessRecord& process, RankTotal& rank) {
    const std::string gpu = process.labels.starts_with("GPU") ? process.labels : "device " + process.pid;
    const std::string own = process.name.substr(0, process.name.find(" (rank"));
    if (own != process.name)
      rank.name = process.name == fmt::format("{0} ({0})", own) ? own : process.name;
    else if (!records.rank)
      rank.name = gpu;
    else
      rank.name = fmt::format("rank {}{}", *records.rank, devices_in(records) > 1 ? ", " + gpu : "");
  }

  static void add_memory(const TraceRecords& records, const ProcessRecord& process, RankTotal& rank) {
    rank.allocated = process.allocated;
    rank.reserved = process.reserved;
    std::int64_t device = -1;
    std::from_chars(process.pid.data(), process.pid.data() + process.pid.size(), device);
    const auto found = records.memory.find(device);
    if (found != records.memory.end()) std::tie(rank.allocated, rank.reserved) = found->second;
  }

  // Adds the name of the file to the names of ranks that would otherwise be equal.
  void name_apart() {
    std::map<std::string, int> count;
    for (const RankTotal& r : summary_.ranks) ++count[r.name];
    for (RankTotal& r : summary_.ranks) {
      if (count[r.name] > 1) r.name += " of " + std::filesystem::path(r.file).filename().string();
    }
  }

  void add_kernels() {
    struct Sum {
      KernelTotal kernel;
      std::map<std::uint32_t, std::int64_t> by_name, by_operator;
    };
    std::map<std::pair<std::string, KernelClass>, Sum> sums;
    std::uint32_t last = kNoName;
    Sum* sum = nullptr;
    for (const auto& [names, total] : totals_) {
      if (names.first != last || sum == nullptr) {
        const KernelClass c = names_.class_of(names.first);
        const std::string full = demangled(unescaped(names_.names.text(names.first)));
        const std::string name = short_kernel_name(full);
        sum = &sums[{name, c}];
        sum->kernel.name = name;
        sum->kernel.kernel_class = c;
        last = names.first;
      }
      add_to(sum->kernel.total, total.count, total.time);
      sum->by_name[names.first] += total.time;
      if (names.second != kNoName) sum->by_operator[names.second] += total.time;
    }
    for (auto& [key, s] : sums) {
      s.kernel.full_name = demangled(unescaped(names_.names.text(largest(s.by_name))));
      if (!s.by_operator.empty()) s.kernel.launched_by = unescaped(names_.names.text(largest(s.by_operator)));
      summary_.by_kernel.push_back(std::move(s.kernel));
    }
  }

  static std::uint32_t largest(const std::map<std::uint32_t, std::int64_t>& times) {
    return std::ranges::max_element(times, {}, [](const auto& entry) { return entry.second; })->first;
  }

  void add_operators() {
    std::map<std::uint32_t, ClassTotal> sums;
    for (const auto& [names, total] : totals_) {
      if (names.second != kNoName) add_to(sums[names.second], total.count, total.time);
    }
    for (const auto& [name, total] : sums) summary_.by_operator.push_back({unescaped(names_.names.text(name)), total});
  }

  TraceSummary& summary_;
  TraceNames names_;
  std::map<Pair, ClassTotal> totals_;
  Pair last_names_;
  ClassTotal* last_ = nullptr;
};

}  // namespace

double TraceSummary::classified() const {
  const std::int64_t unknown = classes[static_cast<std::size_t>(KernelClass::other)].time;
  return time == 0 ? 1 : 1 - static_cast<double>(unknown) / static_cast<double>(time);
}

TraceSummary summarize_traces(const std::vector<std::string>& files,
                              const std::function<void(std::string_view)>& progress) {
  TraceSummary summary;
  TraceSummer summer(summary);
  for (std::size_t i = 0; i < files.size(); ++i) {
    std::int64_t pieces = 0;
    summer.add_file(files[i], [&] {
      if (progress && pieces++ % 16 == 0)
        progress(fmt::format("reading {} of {}: {} MiB", i + 1, files.size(), pieces - 1));
    });
  }
  summer.finish();
  return summary;
}

}  // namespace orrery
