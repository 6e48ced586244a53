#include "sim/predict/server_clocks.h"

#include <algorithm>
#include <map>

#include "models/spec/asynchrony.h"

namespace orrery {
namespace {

const Collective* served(const Op& op) {
  const auto* c = std::get_if<Collective>(&op.work);
  return c != nullptr && c->servers > 0 ? c : nullptr;
}

class Builder {
 public:
  Builder(const Plan& from, const Spec& spec, const Costs& costs, std::int64_t steps)
      : from_(from), spec_(spec), costs_(costs), workers_(from.workers()) {
    made_.steps = steps;
    Plan& p = made_.plan;
    p.ranks = 2 * workers_;
    p.servers = workers_;
    p.micro_batches = from.micro_batches;
    p.element_bytes = from.element_bytes;
    p.frozen_width = from.frozen_width;
    p.dimensions = from.dimensions;
    p.blocks = from.blocks;
    p.ops = from.ops;
    p.frames = from.frames;
    p.buffers = from.buffers;
    // A worker and its service (a rank that stands for the servers' work for this worker) form a group of two.
    GroupTable& pairs = p.dimensions[static_cast<std::size_t>(Dimension::world)];
    pairs = {};
    for (std::int32_t w = 0; w < workers_; ++w) {
      p.server_seats.push_back(from.seat_of(workers_));
    }
    for (std::int32_t rank = 0; rank < 2 * workers_; ++rank)
      pairs.member_of.push_back(rank % static_cast<std::int32_t>(workers_));
    pairs.groups = GroupList(pairs.member_of, static_cast<std::size_t>(workers_));
    for (Op& op : p.ops) {
      if (auto* c = std::get_if<Collective>(&op.work); c != nullptr && c->servers > 0) c->servers = 1;
    }
  }

  ServerSteps run() {
    for (std::int64_t w = 0; w < workers_; ++w) add_worker(w);
    updates_.assign(static_cast<std::size_t>(workers_ * made_.steps), kNone);
    find_updates();
    for (std::int64_t w = 0; w < workers_; ++w) add_service(w);
    made_.plan.tasks.push_back({.first_dependency = static_cast<std::uint32_t>(made_.plan.dependencies.size())});
    link();
    time();
    return std::move(made_);
  }

 private:
  const RankClass& slot_of_rank(std::int64_t rank) const { return from_.classes[static_cast<std::size_t>(rank)]; }

  TaskId add(const Task& like, std::int64_t slot, const std::vector<TaskId>& after) {
    Plan& p = made_.plan;
    Task task = like;
    task.lane = static_cast<std::uint32_t>(slot) * kLanes + like.lane % kLanes;
    task.first_dependency = static_cast<std::uint32_t>(p.dependencies.size());
    task.match = kNone;
    p.dependencies.insert(p.dependencies.end(), after.begin(), after.end());
    p.tasks.push_back(task);
    return static_cast<TaskId>(p.tasks.size() - 1);
  }

  // Adds the tasks of all steps of a worker. The pull of weights for a step waits for the last compute of the step
  // before, which still reads the older weights.
  void add_worker(std::int64_t w) {
    const RankClass& slot = slot_of_rank(w);
    Plan& p = made_.plan;
    const auto begin = static_cast<TaskId>(p.tasks.size());
    TaskId computed = kNone;
    for (std::int64_t k = 0; k < made_.steps; ++k) {
      const auto first = static_cast<TaskId>(p.tasks.size());
      const TaskId before = computed;
      for (TaskId t = slot.begin; t < slot.end; ++t) {
        std::vector<TaskId> after;
        for (const TaskId d : from_.dependencies_of(t)) after.push_back(d - slot.begin + first);
        const Op& op = from_.op_of(t);
        if (served(op) != nullptr && before != kNone) after.push_back(before);
        const TaskId made = add(from_.tasks[t], w, after);
        if (op.lane == LaneKind::compute) computed = made;
      }
    }
    p.classes.push_back({.name = slot.name,
                         .representative = w,
                         .begin = begin,
                         .end = static_cast<TaskId>(p.tasks.size()),
                         .frame = slot.frame});
  }

  // Finds for each worker and step the task that updates the servers' weights with the worker's gradients, by the id
  // that it will get: tasks of services (ranks that each stand for the servers' work for one worker) are added later. A
  // service gets the tasks of one server, once for each step.
  void find_updates() {
    const RankClass& server = slot_of_rank(workers_);
    auto next = static_cast<TaskId>(made_.plan.tasks.size());
    for (std::int64_t w = 0; w < workers_; ++w) {
      for (std::int64_t k = 0; k < made_.steps; ++k) {
        for (TaskId t = server.begin; t < server.end; ++t, ++next) {
          if (std::holds_alternative<Update>(from_.op_of(t).work)) update_of(w, k) = next;
        }
      }
    }
  }
  TaskId& update_of(std::int64_t w, std::int64_t k) { return updates_[static_cast<std::size_t>(w * made_.steps + k)]; }

  void add_service(std::int64_t w) {
    const RankClass& server = slot_of_rank(workers_);
    Plan& p = made_.plan;
    const auto begin = static_cast<TaskId>(p.tasks.size());
    bool early = false;  // whether a step begins with pulling the weights (instead of ending with it)
    for (std::int64_t k = 0; k < made_.steps; ++k) {
      TaskId pushed = kNone;
      for (TaskId t = server.begin; t < server.end; ++t) {
        const Op& op = from_.op_of(t);
        const Collective* c = served(op);
        std::vector<TaskId> after;
        if (c != nullptr && c->kind == CollectiveKind::pull) {
          if (pushed == kNone && t == server.begin) early = true;
          const std::int64_t clock = early ? k : k + 1;  // index of the step for which the weights are pulled
          if (clock > 0) after.push_back(update_of(w, clock - 1));
          add_bound(w, clock, after);
        }
        if (std::holds_alternative<Update>(op.work)) after.push_back(pushed);
        const TaskId made = add(from_.tasks[t], workers_ + w, after);
        if (c != nullptr && c->kind == CollectiveKind::push) pushed = made;
      }
    }
    p.classes.push_back({.name = server.name,
                         .representative = workers_ + w,
                         .begin = begin,
                         .end = static_cast<TaskId>(p.tasks.size()),
                         .frame = server.frame,
                         .server = true});
  }

  // Adds, under bounded staleness, the updates that a worker's pull of weights has to wait for: before the worker's
  // step number `clock` begins, the weights must have been updated with the gradients that every other worker computed
  // in its step clock - staleness - 1.
  void add_bound(std::int64_t w, std::int64_t clock, std::vector<TaskId>& after) {
    if (!bounded_staleness(spec_.strategy)) return;
    const std::int64_t oldest = clock - spec_.strategy.parameter_server->staleness - 1;
    for (std::int64_t other = 0; other < workers_ && oldest >= 0; ++other) {
      if (other != w) after.push_back(update_of(other, oldest));
    }
  }

  // Matches transfers: the n-th push of a worker with the n-th push of its service (the servers' work for this worker),
  // and the n-th pull with the n-th pull.
  void link() {
    Plan& p = made_.plan;
    for (std::int64_t w = 0; w < workers_; ++w) {
      std::vector<TaskId> ends[2][2];  // the transfers' tasks: [0: worker's, 1: service's][0: push, 1: pull]
      for (const int side : {0, 1}) {
        const RankClass& slot = p.classes[static_cast<std::size_t>(w + side * workers_)];
        for (TaskId t = slot.begin; t < slot.end; ++t) {
          if (const Collective* c = served(p.op_of(t))) ends[side][c->kind == CollectiveKind::pull].push_back(t);
        }
      }
      for (const int kind : {0, 1}) {
        for (std::size_t i = 0; i < ends[0][kind].size(); ++i) {
          for (const int side : {0, 1})
            p.tasks[ends[side][kind][i]].match = static_cast<std::uint32_t>(p.matches.size());
          p.matches.push_back({static_cast<std::uint32_t>(p.match_members.size()), 2});
          p.match_members.insert(p.match_members.end(), {ends[0][kind][i], ends[1][kind][i]});
        }
      }
    }
  }

  // Sets the times of tasks, and the links that tasks share. A transfer that runs alone has the full rate of its
  // worker's NIC. Its bytes are divided evenly among all servers, and one NIC stands for those of all servers, so that
  // this NIC is busy only with the bytes of the servers that share it.
  void time() {
    const ParameterServer& servers = *spec_.strategy.parameter_server;
    Timing& t = made_.timing;
    t.rows = costs_.timing.rows;
    const std::int64_t node = std::max(1, spec_.cluster.gpus_per_node),
                       nics = std::clamp(spec_.cluster.nics, 1, spec_.cluster.gpus_per_node);
    const auto nic_of = [&](std::int64_t seat) { return seat / node * nics + seat % node * nics / node; };
    const std::int64_t nodes = ceil_div(workers_, node),
                       beside = servers.colocated ? ceil_div(servers.servers, nodes) : 1;
    std::vector<OpTiming> service = t.rows[costs_.timing.row_of_slot[static_cast<std::size_t>(workers_)]];
    for (OpTiming& op : service) op.nic = ceil_div(op.nic * ceil_div(beside, nics), servers.servers);
    std::map<std::int64_t, LinkId> nic_links;
    const auto link_of = [&](std::int64_t seat) {
      const auto [it, fresh] = nic_links.try_emplace(nic_of(seat), t.link_count);
      if (fresh) t.link_count += 2;
      return it->second;
    };
    SlotLinks links;
    links.flows.fill(1);
    for (std::int64_t w = 0; w < workers_; ++w) {
      t.row_of_slot.push_back(costs_.timing.row_of_slot[static_cast<std::size_t>(w)]);
      links.nic_out = link_of(w);
      links.nic_in = links.nic_out + 1;
      t.links.push_back(links);
    }
    t.rows.push_back(service);
    links.nic_out = link_of(from_.seat_of(workers_));
    links.nic_in = links.nic_out + 1;
    for (std::size_t p = 0; p < kPorts; ++p) {
      links.link_of_port[p] = t.link_count++;
      links.ranks_on_port[p] = beside;
    }
    for (std::int64_t w = 0; w < workers_; ++w) {
      t.row_of_slot.push_back(static_cast<std::uint32_t>(t.rows.size() - 1));
      t.links.push_back(links);
    }
  }

  const Plan& from_;
  const Spec& spec_;
  const Costs& costs_;
  std::int64_t workers_;
  ServerSteps made_;
  std::vector<TaskId> updates_;  // by worker, then by step: the task that updates the weights
};

}  // namespace

ServerSteps server_steps(const Plan& unfolded, const Spec& spec, const Costs& costs, std::int64_t steps) {
  return Builder(unfolded, spec, costs, steps).run();
}

ServerClocks server_clocks(const ServerSteps& steps, const Trace& trace) {
  const Plan& p = steps.plan;
  const std::int64_t workers = p.workers();
  std::vector<std::vector<Picoseconds>> updated(static_cast<std::size_t>(workers)), begun = updated;
  std::vector<Picoseconds> all;
  for (std::int64_t w = 0; w < workers; ++w) {
    const RankClass& service = p.classes[static_cast<std::size_t>(workers + w)];
    bool pulling = false;
    for (TaskId t = service.begin; t < service.end; ++t) {
      if (std::holds_alternative<Update>(p.op_of(t).work)) {
        updated[w].push_back(trace.spans[t].ended);
        all.push_back(trace.spans[t].ended);
      }
      const Collective* c = served(p.op_of(t));
      const bool pull = c != nullptr && c->kind == CollectiveKind::pull;
      if (pull && !pulling) begun[w].push_back(trace.spans[t].matched);
      pulling = pull;
    }
    if (begun[w].size() > 0 && begun[w].front() >= updated[w].front()) begun[w].insert(begun[w].begin(), 0);
  }
  std::sort(all.begin(), all.end());
  const auto done_by = [](const std::vector<Picoseconds>& times, Picoseconds at) {
    return std::upper_bound(times.begin(), times.end(), at) - times.begin();
  };
  ServerClocks c;
  c.window = trace.step_time;
  for (const auto& times : updated) c.window = std::min(c.window, times.back());
  std::int64_t count = 0;
  for (std::int64_t w = 0; w < workers; ++w) {
    const std::int64_t whole = done_by(updated[w], c.window);
    const Picoseconds last = whole == 0 ? 0 : updated[w][whole - 1];
    c.steps += static_cast<double>(whole) / static_cast<double>(workers);
    if (whole < steps.steps)
      c.steps += static_cast<double>(c.window - last) / static_cast<double>(updated[w][whole] - last) /
                 static_cast<double>(workers);
    for (std::int64_t k = 0; k < whole; ++k, ++count) {
      const std::int64_t stale = done_by(all, updated[w][k]) - done_by(all, begun[w][k]) - 1;
      c.staleness.mean += static_cast<double>(stale);
      c.staleness.most = std::max(c.staleness.most, stale);
      for (const auto& other : updated)
        c.staleness.most_ahead = std::max<std::int64_t>(c.staleness.most_ahead, k - done_by(other, begun[w][k]));
    }
  }
  c.staleness.mean /= static_cast<double>(std::max<std::int64_t>(1, count));
  return c;
}

}  // namespace orrery
