#include "sim/report/link_load.h"

#include <algorithm>
#include <cmath>
#include <compare>
#include <map>
#include <set>

#include <fmt/format.h>

#include "models/cost/nccl/model.h"
#include "sim/cost/uplink_levels.h"
#include "sim/engine/contention.h"

namespace orrery {
namespace {

// A stretch of time in which a transfer runs at one speed. lead: the first of the transfer's tasks.
struct SteadyRun {
  TaskId lead = kNone;
  Picoseconds begin = 0, end = 0;
  Contention::Stretch stretch = Contention::kAlone;
};

// Plays the times of a simulated trace through the engine's rules of contention once more, which says how fast each
// transfer was at each time.
class SpeedReplay {
 public:
  SpeedReplay(const Plan& plan, const Timing& timing, const Trace& trace)
      : plan_(plan), trace_(trace), contention_(plan, timing), open_(plan.classes.size() * kLanes, kNone) {
    for (TaskId t = 0; t < plan.task_count(); ++t) {
      if (trace.spans[t].ended > trace.spans[t].matched && leads(t)) starts_.push_back(t);
    }
    ends_ = starts_;
    const auto by = [&](Picoseconds Span::*time) {
      return [&, time](TaskId a, TaskId b) {
        return std::pair(trace_.spans[a].*time, a) < std::pair(trace_.spans[b].*time, b);
      };
    };
    std::sort(starts_.begin(), starts_.end(), by(&Span::matched));
    std::sort(ends_.begin(), ends_.end(), by(&Span::ended));
  }

  std::vector<SteadyRun> run() {
    for (std::size_t s = 0, e = 0; e < ends_.size();) {
      const bool starts = s < starts_.size() && trace_.spans[starts_[s]].matched < trace_.spans[ends_[e]].ended;
      const Picoseconds now = starts ? trace_.spans[starts_[s]].matched : trace_.spans[ends_[e]].ended;
      for (; e < ends_.size() && trace_.spans[ends_[e]].ended == now; ++e) stop(ends_[e], now);
      for (; s < starts_.size() && trace_.spans[starts_[s]].matched == now; ++s) start(starts_[s], now);
      if (!contention_.unsettled()) continue;
      for (const Contention::Change& c : contention_.settle()) change(c, now);
    }
    std::erase_if(runs_, [](const SteadyRun& r) { return r.end <= r.begin || r.stretch == Contention::kUnsettled; });
    return std::move(runs_);
  }

 private:
  bool computes(TaskId t) const {
    return plan_.tasks[t].match == kNone && plan_.tasks[t].lane % kLanes == static_cast<int>(LaneKind::compute);
  }
  std::span<const TaskId> members(const TaskId& t) const {
    return plan_.tasks[t].match == kNone ? std::span(&t, 1) : plan_.members_of(plan_.tasks[t].match);
  }
  bool leads(TaskId t) const { return members(t).front() == t; }

  void start(TaskId t, Picoseconds now) {
    if (computes(t)) return void(contention_.start_compute(t));
    open_[plan_.tasks[t].lane] = static_cast<std::uint32_t>(runs_.size());
    runs_.push_back({t, now, now, contention_.start_transfer(members(t))});
  }

  void stop(TaskId t, Picoseconds now) {
    if (computes(t)) return contention_.stop_compute(t);
    contention_.stop_transfer(members(t));
    runs_[open_[plan_.tasks[t].lane]].end = now;
  }

  void change(const Contention::Change& c, Picoseconds now) {
    if (computes(c.task)) return;
    std::uint32_t& open = open_[plan_.tasks[c.task].lane];
    if (runs_[open].begin == now) {
      runs_[open].stretch = c.stretch;
      return;
    }
    runs_[open].end = now;
    open = static_cast<std::uint32_t>(runs_.size());
    runs_.push_back({c.task, now, now, c.stretch});
  }

  const Plan& plan_;
  const Trace& trace_;
  Contention contention_;
  std::vector<TaskId> starts_, ends_;  // tasks by their begins and by their ends; of a transfer, the first of its tasks
  std::vector<SteadyRun> runs_;
  std::vector<std::uint32_t> open_;  // for each lane, the index in runs_ of the transfer that runs in it
};

enum class LinkKind : std::uint8_t { nic, nvlink, uplink };

// One direction of one link. id: that of the link that classes of ranks share, or one of the class's own.
struct LinkSide {
  LinkKind kind = LinkKind::nic;
  std::uint8_t level = 0;
  std::uint64_t id = 0;
  bool in = false;
  auto operator<=>(const LinkSide&) const = default;
};

class LoadFinder {
 public:
  LoadFinder(const Plan& plan, const Timing& timing, const Trace& trace)
      : plan_(plan), timing_(timing), step_(trace.step_time), runs_(SpeedReplay(plan, timing, trace).run()) {}

  // Returns the links that carry most, one for each kind and level.
  std::vector<LinkSide> fullest() const {
    std::map<LinkSide, double> sums;
    for_each_use([&](const SteadyRun& run, const LinkSide& wire, Dimension, std::int64_t rate, std::uint32_t) {
      sums[wire] += static_cast<double>(rate) * static_cast<double>(run.end - run.begin);
    });
    std::map<std::pair<LinkKind, std::uint8_t>, std::pair<double, LinkSide>> most;
    for (const auto& [wire, sum] : sums) {
      auto& [best, which] = most[{wire.kind, wire.level}];
      if (sum <= best) continue;
      best = sum;
      which = wire;
    }
    std::vector<LinkSide> wires;
    for (const auto& [kind, of] : most) wires.push_back(of.second);
    return wires;
  }

  LinkLoad load_of(const LinkSide& wire) const {
    struct Delta {
      Picoseconds time = 0;
      Dimension group = Dimension::data;
      std::int64_t rate = 0;
    };
    std::vector<Delta> deltas;
    std::set<Dimension> groups;
    LinkLoad load;
    for_each_use([&](const SteadyRun& run, const LinkSide& w, Dimension group, std::int64_t rate, std::uint32_t slot) {
      if (w != wire) return;
      if (load.of.empty()) load.of = plan_.classes[slot].name + (wire.in ? ", receiving" : ", sending");
      groups.insert(group);
      deltas.push_back({run.begin, group, rate});
      deltas.push_back({run.end, group, -rate});
    });
    std::stable_sort(deltas.begin(), deltas.end(), [](const Delta& a, const Delta& b) { return a.time < b.time; });
    load.groups = {groups.begin(), groups.end()};
    std::vector<std::int64_t> now(load.groups.size(), 0);
    std::int64_t all = 0;
    for (std::size_t i = 0; i < deltas.size(); ++i) {
      const auto at = std::find(load.groups.begin(), load.groups.end(), deltas[i].group) - load.groups.begin();
      now[static_cast<std::size_t>(at)] += deltas[i].rate;
      all += deltas[i].rate;
      if (i + 1 < deltas.size() && deltas[i + 1].time == deltas[i].time) continue;
      load.times.push_back(deltas[i].time);
      for (const std::int64_t rate : now) load.shares.push_back(share(rate));
      const Picoseconds end = i + 1 < deltas.size() ? deltas[i + 1].time : deltas[i].time;
      load.mean += share(all) * static_cast<double>(end - deltas[i].time) / static_cast<double>(step_);
      load.peak = std::max(load.peak, share(all));
    }
    return load;
  }

 private:
  static double share(std::int64_t rate) { return static_cast<double>(rate) / static_cast<double>(kFullRate); }

  // Calls function(run, wire, group, rate, slot) for every use of a wire by one rank class's part of a transfer.
  template <class Function>
  void for_each_use(const Function& function) const {
    for (const SteadyRun& run : runs_) {
      const std::uint32_t match = plan_.tasks[run.lead].match;
      for (const TaskId m : match == kNone ? std::span(&run.lead, 1) : plan_.members_of(match)) {
        const std::uint32_t slot = plan_.slot_of(m);
        uses_of(slot, timing_.of(slot, plan_.tasks[m].op),
                [&](const LinkSide& wire, Dimension group, std::int64_t full) {
                  const double rate = static_cast<double>(full) * Contention::kAlone / run.stretch;
                  function(run, wire, group, std::llround(rate), slot);
                });
      }
    }
  }

  template <class Function>
  void uses_of(std::uint32_t slot, const OpTiming& t, const Function& function) const {
    static const SlotLinks kNoLinks;
    const SlotLinks& links = timing_.links.empty() ? kNoLinks : timing_.links[slot];
    const auto use = [&](LinkKind kind, std::uint8_t level, LinkId out, LinkId in, std::int64_t rate) {
      const std::uint64_t own = std::uint64_t{slot} + (std::uint64_t{1} << 32);
      if (rate > 0 && t.out) function(LinkSide{kind, level, out == kNone ? own : out, false}, t.group, rate);
      if (rate > 0 && t.in) function(LinkSide{kind, level, in == kNone ? own : in, true}, t.group, rate);
    };
    const std::int64_t flows = links.nic_out == kNone ? 1 : links.flows[static_cast<std::size_t>(t.group)];
    use(LinkKind::nic, 0, links.nic_out, links.nic_in, t.nic * flows);
    use(LinkKind::nvlink, 0, links.nvlink_out, links.nvlink_in, t.nvlink);
    const UplinkPair& above = links.uplinks[t.uplink_level];
    use(LinkKind::uplink, t.uplink_level, above.out, above.in, t.uplink);
  }

  const Plan& plan_;
  const Timing& timing_;
  Picoseconds step_;
  std::vector<SteadyRun> runs_;
};

std::string name_of(const UplinkLevel& level) {
  switch (level.kind) {
    case UplinkKind::sites:
      return "links between sites";
    case UplinkKind::incast:
    case UplinkKind::slow_nics:
      return "NICs of slow nodes";
    case UplinkKind::groups:
      return fmt::format("links of {} GPUs", level.gpus);
    case UplinkKind::torus:
      return "link of the torus";
    case UplinkKind::graph:
      return "link between switches";
    case UplinkKind::rail_change:
      return "NVLink to other rails";
    case UplinkKind::ports:
      return "ports of NICs";
    case UplinkKind::switches:
      break;
  }
  return fmt::format("uplinks of {} GPUs", level.gpus);
}

// Bytes per second of a level in one direction. The levels of groups and of rails have several limits, of which any may
// be the one that a share is of.
double capacity_of(const UplinkLevel& level) {
  const bool several = level.kind == UplinkKind::groups || level.kind == UplinkKind::rail_change ||
                       level.kind == UplinkKind::ports || level.kind == UplinkKind::graph;
  return several ? 0 : level.capacity;
}

}  // namespace

std::vector<LinkLoad> link_loads(const Plan& plan, const Timing& timing, const Trace& trace, const Cluster& cluster) {
  const LoadFinder finder(plan, timing, trace);
  const int node = nccl_node_gpus(cluster);
  std::vector<UplinkLevel> levels;
  std::vector<LinkLoad> loads;
  for (const LinkSide& wire : finder.fullest()) {
    LinkLoad load = finder.load_of(wire);
    if (wire.kind == LinkKind::nic) {
      load.name = "NIC";
      load.capacity = nccl_topology(cluster, 2, node).nic_GBps * 1e9;
    } else if (wire.kind == LinkKind::nvlink) {
      load.name = "NVLink";
      load.capacity = nccl_nvlink_GBps(cluster) * 1e9;
    } else {
      if (levels.empty()) levels = uplink_levels(plan, cluster, JobSeats(plan, cluster, node));
      load.name = name_of(levels.at(wire.level));
      load.capacity = capacity_of(levels[wire.level]);
    }
    loads.push_back(std::move(load));
  }
  return loads;
}

}  // namespace orrery
