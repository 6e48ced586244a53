#include "sim/summary/tie.h"

#include <algorithm>
#include <tuple>

namespace orrery {
namespace {

// Sorts by a key, unless the list is in order already, as most profilers write it.
template <class List, class Key>
void sort_by(List& list, const Key& key) {
  const auto less = [&](const auto& a, const auto& b) { return key(a) < key(b); };
  if (!std::is_sorted(list.begin(), list.end(), less)) std::sort(list.begin(), list.end(), less);
}

struct OperatorId {
  std::uint32_t external = 0, name = 0;
};

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

// Whether the field "External id" of a trace's kernels only repeats their correlation ids: that of a single kernel may
// be equal by chance.
bool repeats_correlation(const TraceRecords& records) {
  std::int64_t equal = 0, other = 0;
  for (const KernelRecord& k : records.kernels) {
    if (k.operation != 0) ++(k.operation == k.launch ? equal : other);
  }
  return equal > other;
}

void tie_by_id(TraceRecords& records, std::vector<OperatorId>& ids) {
  sort_by(ids, [](const OperatorId& o) { return std::tuple(o.external, o.name); });
  const bool all_repeat = repeats_correlation(records);
  for (KernelRecord& k : records.kernels) {
    if (k.tie != Tie::none) continue;
    const bool repeats = all_repeat && k.operation == k.launch;
    const auto found =
        repeats || k.operation == 0 ? ids.end() : std::ranges::lower_bound(ids, k.operation, {}, &OperatorId::external);
    k.operation = found == ids.end() || found->external != k.operation ? kNoName : found->name;
    if (k.operation != kNoName) k.tie = Tie::id;
  }
}

void tie_by_launch(KernelRecord& k, const LaunchRecord& launch, RunningOperators& running) {
  if (k.tie != Tie::none) return;
  const OperatorRecord* const found = running.at(launch.thread, launch.begin);
  if (found == nullptr) return;
  k.operation = found->name;
  k.tie = found->annotation ? Tie::annotation : Tie::launch;
}

void find_launches(TraceRecords& records) {
  RunningOperators running(records.operators);
  sort_by(records.kernels, [](const KernelRecord& k) { return k.launch; });
  sort_by(records.launches, [](const LaunchRecord& l) { return std::tuple(l.correlation, l.begin); });
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
  {
    std::vector<OperatorId> ids;
    ids.reserve(records.operators.size());
    for (const OperatorRecord& o : records.operators) {
      if (o.external != 0 && !o.annotation) ids.push_back({o.external, o.name});
    }
    tie_by_id(records, ids);
  }
  find_launches(records);
  records.operators = {};
  records.launches = {};
  sort_by(records.kernels, [](const KernelRecord& k) { return std::tuple(k.device, k.begin, k.end, k.name, k.waits); });
}

}  // namespace orrery
