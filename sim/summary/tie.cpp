#include "sim/summary/tie.h"

#include <algorithm>
#include <deque>
#include <tuple>
#include <utility>
#include <vector>

namespace orrery {
namespace {

// Sorts by a key, unless the list is in order already, as most profilers write it.
template <class List, class Key>
void sort_by(List& list, const Key& key) {
  const auto less = [&](const auto& a, const auto& b) { return key(a) < key(b); };
  if (!std::is_sorted(list.begin(), list.end(), less)) std::sort(list.begin(), list.end(), less);
}

// Finds the innermost operator that was running on a host thread at a given time.
class RunningOperators {
 public:
  explicit RunningOperators(std::deque<OperatorRecord>& operators) : operators_(operators) {}

  // The innermost operator that was running on the thread at this time; an annotation of the program if no operator
  // was; nullptr if neither was.
  const OperatorRecord* at(std::uint32_t thread, std::int64_t time) {
    if (outer_.size() != operators_.size()) nest();
    const auto after = std::partition_point(operators_.begin(), operators_.end(), [&](const OperatorRecord& o) {
      return std::tuple(o.thread, o.begin) <= std::tuple(thread, time);
    });
    const OperatorRecord* annotation = nullptr;
    for (auto i = static_cast<std::uint32_t>(after - operators_.begin()) - 1; i != kNone; i = outer_[i]) {
      const OperatorRecord& o = operators_[i];
      if (o.thread != thread || o.end < time) continue;
      if (!o.annotation) return &o;
      if (annotation == nullptr) annotation = &o;
    }
    return annotation;
  }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  // Sorts the operators and finds the one around each. In traces of recent releases the ids of operators tell all, and
  // nobody asks.
  void nest() {
    sort_by(operators_, [](const OperatorRecord& o) { return std::tuple(o.thread, o.begin, -o.end, o.external); });
    outer_.resize(operators_.size(), kNone);
    std::uint32_t open = kNone;
    for (std::uint32_t i = 0; i < operators_.size(); ++i) {
      while (open != kNone && !(operators_[open].thread == operators_[i].thread && operators_[i].begin < end_of(open)))
        open = outer_[open];
      outer_[i] = open;
      open = i;
    }
  }
  std::int64_t end_of(std::uint32_t i) const { return operators_[i].end; }

  std::deque<OperatorRecord>& operators_;
  std::vector<std::uint32_t> outer_;  // for each operator, the index of the operator around it
};

// Whether the field "External id" of a trace's kernels only repeats their correlation ids.
bool repeats_correlation(const TraceRecords& records) {
  std::int64_t equal = 0, other = 0;
  for (const KernelRecord& k : records.kernels) {
    if (k.operation != 0) ++(k.operation == k.launch ? equal : other);
  }
  return equal > other;
}

// The launch with this correlation id; nullptr if it is not known. The launches must be sorted.
const LaunchRecord* launch_of(const TraceRecords& records, std::uint32_t correlation) {
  const auto found = std::ranges::lower_bound(records.launches, correlation, {}, &LaunchRecord::correlation);
  return found == records.launches.end() || found->correlation != correlation ? nullptr : &*found;
}

// The operator with this id; nullptr if there is none. The operators must be sorted as tie_by_id() does.
const OperatorRecord* operator_with(const std::deque<OperatorRecord>& operators, std::uint32_t id) {
  const auto found = std::ranges::lower_bound(operators, id, {}, &OperatorRecord::external);
  return found == operators.end() || found->external != id || found->annotation ? nullptr : &*found;
}

// A kernel without an operator repeats its correlation id, even if other kernels name their operators (kineto,
// output_json.cpp, until 2025); but an operator may have that number too. If the kernel's launch is known, the launch
// tells the operator. Only an operator that was running then stays the kernel's `operation`, without a tie, in case
// that none was running on the launch's own thread.
void tie_by_id(TraceRecords& records) {
  const bool all_repeat = repeats_correlation(records);
  bool sorted = false;
  for (KernelRecord& k : records.kernels) {
    if (k.tie != Tie::none) continue;
    const std::uint32_t id = k.operation;
    const bool repeats = id == k.launch;
    k.operation = kNoName;
    if (id == 0 || (repeats && all_repeat)) continue;
    if (!std::exchange(sorted, true))
      sort_by(records.operators, [](const OperatorRecord& o) { return std::tuple(o.external, o.annotation, o.name); });
    const OperatorRecord* const named = operator_with(records.operators, id);
    if (named == nullptr) continue;
    const LaunchRecord* const launch = repeats ? launch_of(records, k.launch) : nullptr;
    if (launch == nullptr) k.tie = Tie::id;
    if (launch == nullptr || (!k.waits && named->begin <= launch->begin && launch->begin <= named->end))
      k.operation = named->name;
  }
}

void tie_by_launch(KernelRecord& k, const LaunchRecord& launch, RunningOperators& running) {
  if (k.tie != Tie::none) return;
  const OperatorRecord* const found = running.at(launch.thread, launch.begin);
  if (k.operation != kNoName && (found == nullptr || found->annotation)) {
    k.tie = Tie::id;
  } else if (found != nullptr) {
    k.operation = found->name;
    k.tie = found->annotation ? Tie::annotation : Tie::launch;
  }
}

void find_launches(TraceRecords& records) {
  RunningOperators running(records.operators);
  sort_by(records.kernels, [](const KernelRecord& k) { return k.launch; });
  auto launch = records.launches.begin();
  for (KernelRecord& k : records.kernels) {
    const std::uint32_t id = k.launch;
    while (launch != records.launches.end() && launch->correlation < id) ++launch;
    k.launch = kNotKnown;
    if (id == 0 || launch == records.launches.end() || launch->correlation != id) continue;
    k.launch = static_cast<std::uint32_t>(std::clamp<std::int64_t>(k.begin - launch->end, 0, UINT32_MAX));
    if (!k.waits) tie_by_launch(k, *launch, running);
  }
}

}  // namespace

void tie(TraceRecords& records) {
  sort_by(records.launches, [](const LaunchRecord& l) { return std::tuple(l.correlation, l.begin); });
  tie_by_id(records);
  find_launches(records);
  records.operators = {};
  records.launches = {};
  sort_by(records.kernels, [](const KernelRecord& k) { return std::tuple(k.device, k.begin, k.end, k.name, k.waits); });
}

}  // namespace orrery
