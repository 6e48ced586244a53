#include "sim/run_length/run_length.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <queue>
#include <utility>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/base/normal.h"
#include "models/base/quantile.h"
#include "models/base/random.h"

namespace orrery {
namespace {

constexpr double kInterruptions = 419;
constexpr FailureKind kFailureKinds[] = {{"faulty GPU", 148 / kInterruptions, true},
                                         {"GPU HBM3 memory", 72 / kInterruptions, true},
                                         {"software bug", 54 / kInterruptions, false},
                                         {"network switch or cable", 35 / kInterruptions, false},
                                         {"host maintenance", 32 / kInterruptions, false},
                                         {"GPU SRAM memory", 19 / kInterruptions, true},
                                         {"GPU system processor", 17 / kInterruptions, true},
                                         {"NIC", 7 / kInterruptions, true},
                                         {"NCCL watchdog timeout", 7 / kInterruptions, false},
                                         {"silent data corruption", 6 / kInterruptions, true},
                                         {"GPU thermal interface and sensor", 6 / kInterruptions, true},
                                         {"SSD", 3 / kInterruptions, true},
                                         {"power supply", 3 / kInterruptions, true},
                                         {"server chassis", 2 / kInterruptions, true},
                                         {"IO expansion board", 2 / kInterruptions, true},
                                         {"dependency", 2 / kInterruptions, false},
                                         {"CPU", 2 / kInterruptions, true},
                                         {"system memory", 2 / kInterruptions, true}};

// Random numbers by SplitMix64 (Steele, Lea and Flood 2014, "Fast splittable pseudorandom number generators").
class Random {
 public:
  // Streams of different seeds and numbers begin at places that are hashed apart.
  Random(std::uint64_t seed, std::uint64_t number) : state_(mix_bits(mix_bits(seed + 1) + number)) {}

  double uniform() { return uniform_of(next()); }  // from 0 to below 1
  double exponential(double mean) { return -mean * std::log1p(-uniform()); }
  // The number of events in a time in which `mean` are expected: counted one by one, or if they are many drawn from the
  // normal distribution that Poisson's tends to.
  double poisson(double mean) {
    constexpr double kMany = 100;
    if (mean > kMany) return std::max(0.0, std::round(mean + std::sqrt(mean) * normal_quantile(1 - uniform())));
    double events = 0;
    for (double time = exponential(1); time < mean; time += exponential(1)) ++events;
    return events;
  }

 private:
  std::uint64_t next() { return mix_bits(state_ += 0x9e3779b97f4a7c15ULL); }

  std::uint64_t state_;
};

// The row of a cause that planes survive.
constexpr std::size_t kSwitches = 3;
static_assert(std::string_view(kFailureKinds[kSwitches].name) == "network switch or cable");

// The cause of a failure that ends the job, drawn from 0 to below 1. survives: whether failures of switches do not.
std::size_t kind_of(double drawn, bool survives) {
  if (survives) {
    drawn *= 1 - kFailureKinds[kSwitches].share;
    double before = 0;
    for (std::size_t k = 0; k < kSwitches; ++k) before += kFailureKinds[k].share;
    if (drawn >= before) drawn += kFailureKinds[kSwitches].share;
  }
  for (std::size_t k = 0; k + 1 < std::size(kFailureKinds); ++k) {
    if (drawn < kFailureKinds[k].share) return k;
    drawn -= kFailureKinds[k].share;
  }
  return std::size(kFailureKinds) - 1;
}

class Play {
 public:
  Play(const LongRun& run, std::uint64_t seed, std::uint64_t number) : run_(run), random_(seed, number) {}

  RunTimes whole() {
    while (now_ < run_.length) {
      wait_for_faults();
      const Seconds failure = run_.between_failures > 0 ? random_.exponential(run_.between_failures) : run_.length;
      if (const LongRun::Fault* fault = next_end(); fault != nullptr && fault->from < now_ + failure) {
        end_by(*fault);
        continue;
      }
      train(std::min(failure, run_.length - now_), now_ + failure >= run_.length);
      if (now_ < run_.length) recover();
    }
    return times_;
  }

 private:
  // Returns the next fault at a given time that ends the job; null if there is none.
  const LongRun::Fault* next_end() const {
    const auto next = std::ranges::find_if(
        run_.faults, [&](const LongRun::Fault& f) { return f.ends && f.from >= now_ && f.from < run_.length; });
    return next == run_.faults.end() ? nullptr : &*next;
  }

  // Waits for the ends of faults that began while the job was down, and with which it cannot run.
  void wait_for_faults() {
    const auto holds = [&](const LongRun::Fault& f) { return f.ends && f.from < now_ && now_ < f.until; };
    auto fault = std::ranges::find_if(run_.faults, holds);
    for (; fault != run_.faults.end() && now_ < run_.length; fault = std::ranges::find_if(run_.faults, holds))
      spend(times_.waiting, fault->until - now_);
  }

  // Trains until a fault ends the job, and starts it again: on spare nodes, or else when the fault's time is over.
  void end_by(const LongRun::Fault& fault) {
    train(fault.from - now_, false);
    times_.faults += 1;
    now_ = std::nextafter(fault.from, run_.length);  // so that a fault strikes once
    spend(times_.waiting, std::max(0.0, fault.until - now_));
    recover(true);
  }

  // Trains for `time` seconds, in periods of an interval and the checkpoint that follows it. Whatever comes after the
  // last checkpoint that can be restored from is undone, unless the run ends here.
  void train(Seconds time, bool ends) {
    const Seconds begin = now_;
    now_ += time;
    time -= hold_up(time);
    time -= slow_down(begin, time);
    time -= faults_in(begin, now_, time);
    const Seconds interval = run_.interval > 0 ? run_.interval : time, period = interval + run_.stall;
    const double whole = period > 0 ? std::floor(time / period) : 0;
    const Seconds rest = time - whole * period;
    const Seconds trained = whole * interval + std::min(rest, interval);
    times_.checkpoints += time - trained;
    double kept = whole;
    // A checkpoint that is still being written when the failure strikes is lost.
    if (kept > 0 && rest < run_.writing)
      kept -= std::min(kept, std::ceil((run_.writing - rest) / std::max(period, 1e-9)));
    const Seconds safe = ends ? trained : kept * interval;
    times_.training += safe;
    times_.undone += trained - safe;
  }

  // Returns how much of a time, at most `most`, is lost by faults at given times that end nothing.
  Seconds faults_in(Seconds begin, Seconds end, Seconds most) {
    Seconds lost = 0;
    for (const LongRun::Fault& fault : run_.faults) {
      const Seconds both = std::min(end, fault.until) - std::max(begin, fault.from);
      if (!fault.ends && both > 0) lost += both * fault.lost;
    }
    lost = std::min(lost, most);
    times_.slowed += lost;
    return lost;
  }

  // Returns how much of a time the outages of links in it hold training up.
  Seconds hold_up(Seconds time) {
    if (!(run_.between_flaps > 0 && run_.flap > 0)) return 0;
    const double flaps = random_.poisson(time / (run_.between_flaps + run_.flap));
    const Seconds held = std::min(time, flaps * run_.flap);
    times_.flaps += held;
    return held;
  }

  // Returns how much of a time from `begin` on is lost because steps take longer while a switch or cable is broken,
  // which may have broken before.
  Seconds slow_down(Seconds begin, Seconds time) {
    if (!(run_.between_lost_planes > 0)) return 0;
    const Seconds end = begin + time;
    Seconds broken = std::clamp(broken_until_ - begin, 0.0, time);
    for (Seconds at = begin + random_.exponential(run_.between_lost_planes); at < end;
         at += random_.exponential(run_.between_lost_planes)) {
      times_.survived += 1;
      const Seconds from = std::clamp(broken_until_, at, end);
      broken_until_ = std::max(broken_until_, at + run_.repair);
      broken += std::min(broken_until_, end) - from;
    }
    const Seconds lost = broken * run_.slowed_share;
    times_.slowed += lost;
    return lost;
  }

  void spend(Seconds& part, Seconds time) {
    const Seconds left = std::min(time, run_.length - now_);
    part += left;
    now_ += left;
  }

  // Waits for the detection, then for a node in place of a broken one, then for the restart; a further failure
  // meanwhile begins this anew. struck_before: whether a fault at a given time is the first one.
  void recover(bool struck_before = false) {
    for (bool struck = true; struck && now_ < run_.length;) {
      if (!std::exchange(struck_before, false)) strike();
      const Seconds next = run_.between_failures > 0 ? random_.exponential(run_.between_failures) : run_.length;
      struck = next < run_.detection + run_.restart;
      spend(times_.restarting, std::min(next, run_.detection));
      if (next < run_.detection) continue;
      await_node();
      spend(times_.restarting, std::min(next - run_.detection, run_.restart));
    }
  }

  void strike() {
    const std::size_t kind = kind_of(random_.uniform(), run_.between_lost_planes > 0);
    times_.failures[kind] += 1;
    if (kFailureKinds[kind].breaks_node && run_.spares >= 0) repaired_.push(now_ + run_.detection + run_.repair);
  }

  void await_node() {
    while (!repaired_.empty() && repaired_.top() <= now_) repaired_.pop();
    while (run_.spares >= 0 && now_ < run_.length && std::ssize(repaired_) > run_.spares) {
      spend(times_.waiting, std::max(0.0, repaired_.top() - now_));
      repaired_.pop();
    }
  }

  struct Queue : std::priority_queue<Seconds, std::vector<Seconds>, std::greater<>> {
    friend std::ptrdiff_t ssize(const Queue& q) { return static_cast<std::ptrdiff_t>(q.size()); }
  };

  const LongRun& run_;
  Random random_;
  Seconds now_ = 0, broken_until_ = 0;  // broken_until_: when the last broken switch or cable is repaired
  RunTimes times_;
  Queue repaired_;  // times at which broken nodes are repaired
};

std::array<double, 3> quantiles(const std::vector<double>& values) {
  return {quantile(values, .05), quantile(values, .5), quantile(values, .95)};
}

}  // namespace

std::span<const FailureKind> failure_kinds() { return kFailureKinds; }

double share_of_switches() { return kFailureKinds[kSwitches].share; }

double RunTimes::all_failures() const { return std::accumulate(failures.begin(), failures.end(), 0.0); }

RunTimes play(const LongRun& run, std::uint64_t seed, std::uint64_t number) { return Play(run, seed, number).whole(); }

RunQuantiles play_often(const LongRun& run, std::uint64_t seed, std::int64_t plays) {
  constexpr double kMostFailures = 1e9;  // minutes of computing
  const double all = run.between_failures > 0 ? run.length / run.between_failures * static_cast<double>(plays) : 0;
  if (!(all <= kMostFailures))
    throw Error(
        fmt::format("cluster.failures.node_mtbf_hours: a failure every {:.3g} s strikes {:.3g} times in {} plays; "
                    "make it longer, or --days and --plays fewer",
                    run.between_failures, all, plays));
  RunQuantiles q;
  std::vector<double> shares, failures;
  const double part = 1 / static_cast<double>(plays);
  for (std::int64_t i = 0; i < plays; ++i) {
    const RunTimes t = play(run, seed, static_cast<std::uint64_t>(i));
    shares.push_back(t.training / run.length);
    failures.push_back(t.all_failures());
    q.mean.training += part * t.training;
    q.mean.undone += part * t.undone;
    q.mean.flaps += part * t.flaps;
    q.mean.slowed += part * t.slowed;
    q.mean.checkpoints += part * t.checkpoints;
    q.mean.restarting += part * t.restarting;
    q.mean.waiting += part * t.waiting;
    q.mean.survived += part * t.survived;
    q.mean.faults += part * t.faults;
    for (std::size_t k = 0; k < t.failures.size(); ++k) q.mean.failures[k] += part * t.failures[k];
  }
  q.mean_share = q.mean.training / run.length;
  q.training_share = quantiles(shares);
  q.failures = quantiles(failures);
  return q;
}

}  // namespace orrery
