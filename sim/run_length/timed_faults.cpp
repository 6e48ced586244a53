// This file finds what faults of the network that hold for a time only (cluster.network.faults.down) do to a long run.
#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/partition/job_places.h"
#include "models/spec/network.h"
#include "sim/run_length/run_length.h"

namespace orrery {
namespace {

// A fault that ends nothing by itself, with the time for which it holds the run up, or slows it.
struct Holding {
  const TimedFault* fault = nullptr;
  Seconds from = 0, until = 0;
};

std::set<std::int64_t> nodes_of_job(const Spec& spec) {
  const Cluster& c = spec.cluster;
  const std::vector<std::int64_t> places = places_of(c, c.gpus_per_node);
  std::set<std::int64_t> nodes;
  for (std::int64_t node = 0; node < ceil_div(spec.gpus, static_cast<std::int64_t>(c.gpus_per_node)); ++node)
    nodes.insert(node < std::ssize(places) ? places[node] : node);
  return nodes;
}

// Whether a fault strikes a node, leaf or plane of the job.
bool strikes(const LinkFault& f, const Network& n, const std::set<std::int64_t>& nodes) {
  if (f.node >= 0) return nodes.contains(f.node);
  return f.leaf < 0 || std::ranges::any_of(nodes, [&](std::int64_t node) { return node / n.leaf_nodes == f.leaf; });
}

// Whether some nodes have no plane in common, or one of their leaves has no uplink.
bool cuts_off(const Network& n, const std::set<std::int64_t>& nodes) {
  if (common_planes(n, nodes, true) == 0) return true;
  return std::ranges::any_of(n.faults, [&](const LinkFault& f) {
    return f.link >= 0 && strikes(f, n, nodes) && uplink_rates(n, f.leaf).empty();
  });
}

Spec with(const Spec& spec, const std::vector<Holding>& faults) {
  Spec slow = spec;
  slow.cluster.network->timed_faults.clear();
  for (const Holding& h : faults) slow.cluster.network->faults.push_back(h.fault->fault);
  return slow;
}

class TimedFaultFinder {
 public:
  explicit TimedFaultFinder(const Spec& spec)
      : spec_(spec), nodes_(nodes_of_job(spec)), spare_(spec.cluster.failures.value_or(Failures{}).spares != 0) {}

  std::vector<FaultOfRun> run() {
    for (const TimedFault& t : spec_.cluster.network->timed_faults) {
      if (strikes(t.fault, *spec_.cluster.network, nodes_)) add(t);
    }
    cut();
    std::ranges::stable_sort(found_, {}, [](const FaultOfRun& f) { return f.fault.from; });
    return std::move(found_);
  }

 private:
  // Transfers over a link that is down wait until they are resent, and fail if that is too long. A spare node takes the
  // place of one that fails, but not of a whole leaf.
  void add(const TimedFault& t) {
    if (!t.stops) return holding_.push_back({&t, t.from_s, t.until_s});
    const bool whole_node = t.fault.node >= 0 && t.fault.nic < 0 && t.fault.plane < 0;
    if (whole_node || is_too_long(t.until_s - t.from_s))
      found_.push_back({.fault = {.what = name_of(t.fault),
                                  .from = t.from_s,
                                  .until = spare_ && t.fault.node >= 0 ? t.from_s : t.until_s,
                                  .lost = 1,
                                  .ends = true},
                        .slow = {}});
    else
      holding_.push_back({&t, t.from_s, t.from_s + held_by_flap(t.until_s - t.from_s)});
  }

  static bool is_too_long(Seconds down) { return down > kMostResends * kResend_s; }

  // Cuts the run where a fault begins or ends, and finds what those that hold at one time do together.
  void cut() {
    std::set<Seconds> times;
    for (const Holding& h : holding_) times.insert({h.from, h.until});
    for (auto from = times.begin(); from != times.end() && std::next(from) != times.end(); ++from) {
      std::vector<Holding> now;
      for (const Holding& h : holding_) {
        if (h.from <= *from && *from < h.until) now.push_back(h);
      }
      if (!now.empty()) add_time(*from, *std::next(from), now);
    }
  }

  void add_time(Seconds from, Seconds until, const std::vector<Holding>& now) {
    std::vector<std::string> names;
    for (const Holding& h : now) names.push_back(name_of(h.fault->fault));
    FaultOfRun f = {.fault = {.what = fmt::format("{}", fmt::join(names, ", ")), .from = from, .until = until},
                    .slow = with(spec_, now)};
    const bool stops = std::ranges::any_of(now, [](const Holding& h) { return h.fault->stops; });
    if (stops || cuts_off(*f.slow->cluster.network, nodes_)) {
      f.slow.reset();
      f.fault.lost = 1;
      f.fault.ends = !stops && is_too_long(until - from);
      if (!stops && !f.fault.ends) f.fault.until = from + held_by_flap(until - from);
    }
    found_.push_back(std::move(f));
  }

  const Spec& spec_;
  std::set<std::int64_t> nodes_;
  bool spare_;  // whether other nodes can stand in for broken ones
  std::vector<Holding> holding_;
  std::vector<FaultOfRun> found_;
};

}  // namespace

std::vector<FaultOfRun> timed_faults_of(const Spec& spec) {
  if (!spec.cluster.network) return {};
  return TimedFaultFinder(spec).run();
}

}  // namespace orrery
