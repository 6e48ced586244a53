#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/summary/collect.h"
#include "sim/summary/event.h"
#include "sim/summary/names.h"
#include "sim/summary/records.h"

namespace orrery {

// Collects the records of one trace file, or of a part of it, from its events.
class TraceCollector {
 public:
  // names: what numbers names of kernels and operators; it must outlive this object
  explicit TraceCollector(TraceNames& names) : names_(names) {}

  // Adds an event of the file. Throws Error if the file is damaged.
  void take(const TraceEvent& e);
  // Adds a member of the file's outermost object.
  void member(std::string_view key, std::string_view value);
  TraceRecords records() && { return std::move(records_); }

  // For each number that the collector of a part gave to a name, a process or a thread, the number of the same text
  // among those of the file. `part` numbers texts for all parts of the file that it collects one after the other.
  struct Numbers {
    std::vector<std::uint32_t> names, processes, threads;
    std::size_t classed = 0;  // number of the part's names of kernels (TraceNames::classed) whose classes are joined
  };
  // Moves the records that `part` has collected since the last call behind the records of this collector, as if this
  // one had taken the part's events. numbers: those of `part`, empty before the first call. Returns false, and moves
  // nothing, if the outcome would not be the same; then this collector must take the events itself.
  bool join(TraceCollector& part, Numbers& numbers);

 private:
  struct Times {
    std::int64_t begin = 0, end = 0;
  };
  static constexpr std::size_t kMostProcesses = 1 << 15;
  static constexpr std::size_t kMostCategories = 1000;

  static bool times_of(const TraceEvent& e, Times& times);
  void leave_out(const TraceEvent& e, std::string_view reason = {});
  void complete(const TraceEvent& e);
  void kernel(const TraceEvent& e, const Times& times, EventSort sort);
  void own_kernel(const TraceEvent& e, KernelRecord& k);
  void operation(const TraceEvent& e, const Times& times, EventSort sort);
  void about(const TraceEvent& e);
  void memory(const TraceEvent& e);
  void counter(const TraceEvent& e);
  std::uint16_t process_of(std::string_view pid);
  std::uint32_t thread_of(const TraceEvent& e);
  bool can_join(const TraceCollector& part, const Numbers& numbers) const;
  void join_names(const TraceCollector& part, Numbers& numbers);
  void join_processes(TraceCollector& part, Numbers& numbers);

  TraceNames& names_;
  TraceRecords records_;
  Names pids_, threads_;  // numbers of processes, and of threads by the text "pid tid"
  std::string last_pid_, last_thread_pid_, last_tid_, thread_key_;
  std::string last_category_;              // category of the last event left out without a `reason`
  std::int64_t* last_left_out_ = nullptr;  // the count of events left out in that category (last_category_)
  std::uint16_t last_process_ = 0;
  std::optional<std::uint32_t> last_thread_;  // number of the thread of the last event that has one (last_tid_)
};

}  // namespace orrery
