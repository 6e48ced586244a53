#include "models/run/witness.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/run/process_stat.h"
#include "models/run/rank_end.h"

namespace orrery {
namespace {

// The longest time without progress outside a rank's steps, in which it reads its program from a shared disk and
// initializes its weights. How long this takes says nothing about how long an op may take, so a short limit for ops
// does not shorten this limit. Ten minutes is the default timeout that torch.distributed and Megatron-LM allow a
// process to join its group.
constexpr Seconds kOutsideSteps = 600;
// The time within which all ranks of a machine start. A launcher starts them within milliseconds: a rank that is
// missing after this time has ended before it was observed.
constexpr Seconds kStartsWithin = 3;
// The time for which a rank may be stopped (SIGSTOP). A stop by a user or debugger may be short; this limit lets a user
// who waits for the run be told within five seconds.
constexpr Seconds kStopsAtMost = 3;
constexpr double kTimesPredicted = 10;  // factor by which an op may exceed its prediction before a rank counts as hung
constexpr std::size_t kMostNamed = 16;  // greatest number of ranks that a message lists

// A task in one of the steps of a run. Moments are compared by step, then by task id.
struct Moment {
  std::uint32_t step = 0;
  TaskId task = kNone;  // id of the task in the unfolded plan
  friend auto operator<=>(const Moment&, const Moment&) = default;
};

// Finds out, from the progress that all ranks have noted, which task each rank was in when a run hung or failed.
class Scene {
 public:
  Scene(const Plan& plan, std::span<const Witness> ranks, std::int64_t steps)
      : plan_(plan), ranks_(ranks), steps_(steps) {}

  const Witness& rank(std::int64_t r) const { return ranks_[r]; }

  bool working(std::int64_t r) const {
    return !ranks_[r].spared && (!ranks_[r].progress || ranks_[r].progress->state == RankState::working);
  }

  // Returns the tasks that a rank has entered and not left, in the order of the plan.
  std::vector<Moment> open(std::int64_t r) const {
    std::vector<Moment> moments;
    if (!ranks_[r].progress) return moments;
    for (const ProgressEvent& e : ranks_[r].progress->lanes) {
      if (e.open && is_task(r, e.task)) moments.push_back({e.step, plan_.classes[r].begin + e.task});
    }
    std::sort(moments.begin(), moments.end());
    return moments;
  }

  // Returns whether a rank is still in the run's steps: it has begun them, and it either is in a task or has not
  // reached the last step, between whose tasks it may already be done. A stopped rank (SIGSTOP) counts as being in
  // them.
  bool in_steps(std::int64_t r) const {
    if (ranks_[r].stopped || !open(r).empty()) return true;
    const std::optional<Moment> at = last(r);
    return at && at->step + 1 < steps_;
  }

  // Returns the step and task of a rank's last event.
  std::optional<Moment> last(std::int64_t r) const {
    if (!ranks_[r].progress) return std::nullopt;
    const ProgressEvent* latest = nullptr;
    for (const ProgressEvent& e : ranks_[r].progress->lanes) {
      if (is_task(r, e.task) && (latest == nullptr || e.time_ns > latest->time_ns)) latest = &e;
    }
    if (latest == nullptr) return std::nullopt;
    return Moment{latest->step, plan_.classes[r].begin + latest->task};
  }

  bool has_entered(const Moment& m) const {
    const std::int64_t r = plan_.slot_of(m.task);
    if (!ranks_[r].progress) return false;
    if (ranks_[r].progress->state == RankState::finished) return true;
    const ProgressEvent& e = ranks_[r].progress->lanes[plan_.tasks[m.task].lane % kLanes];
    return is_task(r, e.task) && Moment{e.step, plan_.classes[r].begin + e.task} >= m;
  }

  // Returns the members of a transfer, as two lists: those that have entered it, and those that have not.
  std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>> ends(const Moment& m) const {
    std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>> result;
    if (plan_.tasks[m.task].match == kNone) return result;
    for (const TaskId t : plan_.members_of(plan_.tasks[m.task].match)) {
      if (ranks_[plan_.slot_of(t)].spared) continue;
      auto& side = has_entered({m.step, t}) ? result.first : result.second;
      side.push_back(plan_.classes[plan_.slot_of(t)].representative);
    }
    return result;
  }

  // Returns the rank that rank r waits for; r itself if it waits for no rank.
  std::int64_t waits_for(std::int64_t r) const {
    const std::vector<Moment> moments = open(r);
    const auto busy = [&](const Moment& m) { return plan_.tasks[m.task].match == kNone; };
    if (ranks_[r].stopped || std::any_of(moments.begin(), moments.end(), busy)) return r;
    for (const Moment& m : moments) {
      const auto [entered, missing] = ends(m);
      if (!missing.empty()) return missing.front();
    }
    return r;
  }

  std::int64_t culprit(std::int64_t r) const {
    std::vector<std::int64_t> chain;
    while (std::find(chain.begin(), chain.end(), r) == chain.end()) {
      chain.push_back(r);
      r = waits_for(r);
    }
    return r;
  }

  // Returns the transfer to name in a message about rank r: the transfer that r is in, else the first one in which
  // other ranks wait for r.
  std::optional<Moment> transfer_of(std::int64_t r) const {
    for (const Moment& m : open(r)) {
      if (plan_.tasks[m.task].match != kNone) return m;
    }
    std::optional<Moment> first;
    for (std::int64_t other = 0; other < std::ssize(ranks_); ++other) {
      for (const Moment& m : open(other)) {
        const auto [entered, missing] = ends(m);
        if (std::find(missing.begin(), missing.end(), r) == missing.end()) continue;
        if (!first || m < *first) first = m;
      }
    }
    return first;
  }

  std::string place(std::int64_t r) const {
    const std::vector<Moment> moments = open(r);
    const std::optional<Moment> at = moments.empty() ? last(r) : moments.front();
    if (!at) return " before its first task";
    return fmt::format(" in step {} of {}, {} {}", at->step + 1, steps_, moments.empty() ? "after" : "in",
                       describe_task(plan_, at->task));
  }

  std::string transfer_text(const Moment& m) const {
    const Op& op = plan_.op_of(m.task);
    const auto* collective = std::get_if<Collective>(&op.work);
    const auto [entered, missing] = ends(m);
    std::vector<std::int64_t> group = entered;
    group.insert(group.end(), missing.begin(), missing.end());
    std::sort(group.begin(), group.end());
    return fmt::format("; {} of {} group {} ({}): entered by {}{}",
                       collective != nullptr ? name_of(collective->kind) : "send and receive",
                       name_of(collective != nullptr ? collective->group : Dimension::pipeline), numbers(group),
                       describe_task(plan_, m.task), names(entered),
                       missing.empty() ? ", all of them" : "; not by " + names(missing));
  }

 private:
  bool is_task(std::int64_t r, TaskId t) const { return t < plan_.classes[r].end - plan_.classes[r].begin; }

  static std::string numbers(const std::vector<std::int64_t>& list) {
    const std::size_t shown = std::min(list.size(), kMostNamed);
    std::string text =
        fmt::format("{}", fmt::join(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(shown), " "));
    return shown < list.size() ? text + fmt::format(" and {} more", list.size() - shown) : text;
  }
  static std::string names(const std::vector<std::int64_t>& list) {
    if (list.empty()) return "none";
    return (list.size() == 1 ? "rank " : "ranks ") + numbers(list);
  }

  const Plan& plan_;
  std::span<const Witness> ranks_;
  std::int64_t steps_;
};

Seconds patience_with(const Scene& scene, const Plan& plan, std::int64_t r, const Patience& p) {
  if (!scene.in_steps(r)) return std::max(kOutsideSteps, p.hang);
  Seconds longest = p.hang;
  for (const Moment& m : scene.open(r)) {
    if (!p.predicted.empty()) longest = std::max(longest, kTimesPredicted * p.predicted[plan.tasks[m.task].op]);
  }
  return longest;
}

std::int64_t process_of(const Witness& w) { return w.progress ? w.progress->pid : w.pid; }

std::string lost_text(const Witness& w, std::int64_t r) {
  if (process_of(w) == 0) return fmt::format("rank {} was lost (it has no process)", r);
  return fmt::format("rank {} was lost (process {} has ended)", r, process_of(w));
}

std::string hung_text(const Witness& w, std::int64_t r, Seconds silent) {
  const std::string process = process_of(w) != 0
                                  ? fmt::format("process {}{}", process_of(w), w.stopped ? ", stopped" : "")
                                  : "it has not started";
  return fmt::format("rank {} stands still for {:.1f} s ({})", r, silent, process);
}

Fault fault_of(const Scene& scene, std::int64_t r, std::string line) {
  line += scene.place(r);
  if (const auto transfer = scene.transfer_of(r)) line += scene.transfer_text(*transfer);
  if (const auto& end = scene.rank(r).end) line += "; it " + end_text(*end);
  return {r, kRankLost, line};
}

}  // namespace

Witnesses::Witnesses(std::string folder, std::int64_t ranks, bool processes, Seconds now,
                     std::function<RankProcesses()> find)
    : folder_(std::move(folder)),
      processes_(processes),
      find_(std::move(find)),
      ranks_(static_cast<std::size_t>(ranks)) {
  for (Witness& w : ranks_) w.moved = now;
}

void Witnesses::look_at_process(Witness& w, Seconds now) const {
  const std::optional<ProcessStat> stat = process_stat(static_cast<pid_t>(w.progress->pid));
  w.gone = w.gone || !stat || stat->state == 'Z' || stat->state == 'X';
  const bool stopped = stat && (stat->state == 'T' || stat->state == 't');
  if (stopped && !w.stopped) w.stopped_at = now;
  w.stopped = stopped;
}

// Judges ranks that have no progress file by their processes: a rank has ended if none of its processes is left, or if
// none was ever observed while processes of other ranks exist.
void Witnesses::look_before_first_word(Seconds now) {
  const RankProcesses found = find_();
  if (!found.empty() && !first_seen_) first_seen_ = now;
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    Witness& w = ranks_[r];
    if (w.progress) continue;
    const auto at = found.find(static_cast<std::int64_t>(r));
    if (at == found.end()) {
      w.gone = w.pid != 0 || (first_seen_ && now - *first_seen_ > kStartsWithin);
      continue;
    }
    w.pid = at->second.back();
    w.gone = false;
    const bool was_stopped = w.stopped;
    w.stopped = std::any_of(at->second.begin(), at->second.end(), [](pid_t pid) {
      const std::optional<ProcessStat> stat = process_stat(pid);
      return stat && stat->state == 'T';
    });
    if (w.stopped && !was_stopped) w.stopped_at = now;
  }
}

void Witnesses::look(Seconds now) {
  const bool some_silent = std::any_of(ranks_.begin(), ranks_.end(), [](const Witness& w) { return !w.progress; });
  if (find_ && some_silent) look_before_first_word(now);
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    Witness& w = ranks_[r];
    const auto number = static_cast<std::int64_t>(r);
    const std::uint64_t before = w.progress ? w.progress->events + 1 : 0;
    // The process is looked at before the progress file: if it is found to have ended, everything that it noted is in
    // the file.
    if (processes_ && w.progress) look_at_process(w, now);
    if (processes_ && !w.end) {
      const RankEnd end = read_rank_end(ended_file(folder_, number));
      if (end.pid != 0) w.pid = end.pid;
      w.end = end.status;
    }
    if (w.end) w.gone = true;
    w.progress = read_progress(progress_file(folder_, number));
    if (before != (w.progress ? w.progress->events + 1 : 0)) w.moved = now;
  }
}

bool Witnesses::all_finished() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [](const Witness& w) {
    return w.spared || (w.progress && w.progress->state == RankState::finished);
  });
}

std::uint32_t Witnesses::step() const {
  std::uint32_t slowest = ~std::uint32_t{0};
  for (const Witness& w : ranks_) {
    std::uint32_t step = 0;
    if (w.spared) continue;
    if (w.progress) {
      for (const ProgressEvent& e : w.progress->lanes) step = std::max(step, e.step);
    }
    slowest = std::min(slowest, step);
  }
  return slowest;
}

std::optional<std::int64_t> lost_replica(const Plan& plan, std::span<const Witness> ranks) {
  if (plan.copies == 1) return std::nullopt;
  const auto begun = [](const Witness& w) {
    return w.progress && std::any_of(w.progress->lanes.begin(), w.progress->lanes.end(),
                                     [](const ProgressEvent& e) { return e.task != kNone; });
  };
  if (!std::all_of(ranks.begin(), ranks.end(), begun)) return std::nullopt;
  const auto works = [&](std::int64_t r) {
    return !ranks[r].gone && !ranks[r].spared && ranks[r].progress->state != RankState::failed;
  };
  for (std::int64_t r = plan.workers(); r < plan.ranks; ++r) {
    if (!ranks[r].gone || ranks[r].spared || ranks[r].progress->state != RankState::working) continue;
    for (std::int64_t i = (r - plan.workers()) % plan.ranges(); i < plan.servers; i += plan.ranges()) {
      if (works(plan.workers() + i)) return r;
    }
  }
  return std::nullopt;
}

std::optional<Fault> find_fault(const Plan& unfolded, std::span<const Witness> ranks, std::int64_t steps,
                                const Patience& patience, Seconds now) {
  const Scene scene(unfolded, ranks, steps);
  const std::int64_t count = std::ssize(ranks);
  for (std::int64_t r = 0; r < count; ++r) {
    const auto& p = ranks[r].progress;
    if (p && p->state == RankState::failed) return Fault{r, p->exit_code, fmt::format("rank {}: {}", r, p->line)};
  }
  for (std::int64_t r = 0; r < count; ++r) {
    if (ranks[r].gone && scene.working(r)) return fault_of(scene, r, lost_text(ranks[r], r));
  }
  const auto silent = [&](std::int64_t r) { return now - ranks[r].moved; };
  for (std::int64_t r = 0; r < count; ++r) {
    if (ranks[r].stopped && scene.working(r) && now - ranks[r].stopped_at > kStopsAtMost)
      return fault_of(scene, r, hung_text(ranks[r], r, silent(r)));
  }
  const auto hangs = [&](std::int64_t r) {
    return scene.working(r) && silent(r) > patience_with(scene, unfolded, r, patience);
  };
  // A stopped process explains why other ranks make no progress, so stopped ranks are checked first
  for (const bool stopped : {true, false}) {
    for (std::int64_t r = 0; r < count; ++r) {
      if (!hangs(r) || ranks[r].stopped != stopped) continue;
      const std::int64_t c = scene.culprit(r);
      if (hangs(c)) return fault_of(scene, c, hung_text(ranks[c], c, silent(c)));
    }
  }
  return std::nullopt;
}

}  // namespace orrery
