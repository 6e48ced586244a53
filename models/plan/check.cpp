#include "models/plan/check.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "models/base/error.h"

namespace orrery {
namespace {

// Returns the graph node of each task. The tasks of one match (all ends of one transfer or collective) or of one batch
// start and end together, so they are one node.
std::vector<TaskId> contract(const Plan& plan) {
  std::vector<TaskId> parent(plan.task_count());
  std::iota(parent.begin(), parent.end(), 0U);
  const auto root = [&](TaskId t) {
    while (parent[t] != t) t = parent[t] = parent[parent[t]];
    return t;
  };
  for (std::uint32_t m = 0; m < plan.matches.size(); ++m) {
    for (const TaskId t : plan.members_of(m)) parent[root(t)] = root(plan.members_of(m).front());
  }
  for (TaskId t = 0; t < plan.task_count(); ++t) {
    if ((plan.tasks[t].flags & kJoinsPrevious) != 0) parent[root(t)] = root(t - 1);
  }
  for (TaskId t = 0; t < plan.task_count(); ++t) parent[t] = root(t);
  return parent;
}

// Plays a plan without times: every class of ranks has one queue for all that moves data and one for the rest, and a
// task ends when it is the first of its queue and what it waits for has ended. Tasks of one node end together. A plan
// without a circle of waits comes to its end.
class Play {
 public:
  explicit Play(const Plan& plan)
      : plan_(plan),
        node_(contract(plan)),
        missing_(plan.task_count()),
        first_waiter_(plan.task_count(), kNone),
        queues_(2 * plan.classes.size()) {
    for (const TaskId node : node_) ++missing_[node];
    for (const Op& op : plan.ops) moves_.push_back(moves(op));
  }

  bool comes_to_its_end() {
    for (std::uint32_t q = 0; q < queues_.size(); ++q) {
      queues_[q].head = next(q, plan_.classes[q / 2].begin);
      ready_.push_back(q);
    }
    while (!ready_.empty()) {
      const std::uint32_t q = ready_.back();
      ready_.pop_back();
      go_on(q);
    }
    return entered_ == node_.size();
  }

 private:
  struct Queue {
    TaskId head = 0;             // the first task that has not entered
    std::uint32_t next = kNone;  // the next queue that waits for the same node
  };

  TaskId end_of(std::uint32_t q) const { return plan_.classes[q / 2].end; }
  TaskId next(std::uint32_t q, TaskId t) const {
    while (t < end_of(q) && moves_[plan_.tasks[t].op] != (q % 2 == 1)) ++t;
    return t;
  }
  bool ended(TaskId node) const { return missing_[node] == 0; }

  // Lets tasks of a queue enter until one has to wait.
  void go_on(std::uint32_t q) {
    TaskId& t = queues_[q].head;
    while (t < end_of(q)) {
      const TaskId node = node_[t];
      for (const TaskId before : plan_.dependencies_of(t)) {
        if (node_[before] != node && !ended(node_[before])) return wait(q, node_[before]);
      }
      ++entered_;
      if (--missing_[node] == 0) wake(node);
      t = next(q, t + 1);
      if (!ended(node) && t < end_of(q) && node_[t] != node) return wait(q, node);
    }
  }

  void wait(std::uint32_t q, TaskId node) { queues_[q].next = std::exchange(first_waiter_[node], q); }
  void wake(TaskId node) {
    for (std::uint32_t q = first_waiter_[node]; q != kNone; q = queues_[q].next) ready_.push_back(q);
  }

  const Plan& plan_;
  std::vector<TaskId> node_;
  std::vector<std::uint32_t> missing_;       // for each node, the number of its tasks that have not entered
  std::vector<std::uint32_t> first_waiter_;  // for each node, the first queue that waits until it has ended
  std::vector<Queue> queues_;                // for each class, what does not move data, and what does
  std::vector<char> moves_;                  // for each op
  std::vector<std::uint32_t> ready_;
  std::size_t entered_ = 0;
};

void check_order(const Plan& plan) {
  for (TaskId t = 0; t < plan.task_count(); ++t) {
    for (const TaskId before : plan.dependencies_of(t)) {
      if (before == t) throw Error(fmt::format("plan: task {} ({}) waits for itself", t, plan.op_of(t).name));
    }
  }
  if (!Play(plan).comes_to_its_end()) throw Error("plan: deadlock: its transfers wait for each other in a circle");
}

void check_match(const Plan& plan, std::uint32_t match) {
  const auto members = plan.members_of(match);
  const Op& first = plan.op_of(members.front());
  for (const TaskId t : members) {
    const Op& op = plan.op_of(t);
    const auto* a = std::get_if<Collective>(&first.work);
    const auto* b = std::get_if<Collective>(&op.work);
    const bool same = a != nullptr && b != nullptr && a->kind == b->kind && a->bytes == b->bytes &&
                      a->group == b->group && a->root == b->root && a->maximum == b->maximum &&
                      a->servers == b->servers && a->copies == b->copies &&
                      // the embedding table that the first and the last pipeline stage share may begin at different
                      // offsets in the flat buffers of the two stages, as numbers that are handed over may in the
                      // buffers of both models
                      (a->first == b->first || a->group == Dimension::embedding || a->group == Dimension::hand_over);
    if (a != nullptr && !same)
      throw Error(fmt::format("plan: '{}' and '{}' are one collective but differ", first.name, op.name));
  }
  if (std::holds_alternative<Collective>(first.work)) return;
  const auto& one = std::get<Transfer>(first.work);
  const auto& other = std::get<Transfer>(plan.op_of(members.back()).work);
  // The sender's stage offset must point to the receiver's pipeline stage, and the receiver's offset to the sender's.
  const GroupTable& pipeline = plan.dimensions[static_cast<std::size_t>(Dimension::pipeline)];
  const auto place = [&](TaskId t) {
    const std::int64_t rank = plan.classes[plan.slot_of(t)].representative;
    const auto group = pipeline.groups[pipeline.member_of[rank]];
    return std::find(group.begin(), group.end(), rank) - group.begin();
  };
  const auto places = static_cast<std::int64_t>(pipeline.groups.front().size());
  const std::int64_t ahead = place(members.back()) - place(members.front());
  const bool leads = (ahead - one.offset) % places == 0 && (ahead + other.offset) % places == 0;
  if (members.size() != 2 || one.send == other.send || one.bytes != other.bytes || one.parts != other.parts || !leads) {
    throw Error(fmt::format("plan: the ends of '{}' do not fit", first.name));
  }
}

// Returns whether two classes of ranks have ranks in the same group of a dimension. Classes of different kinds of ranks
// (ranks with different work on one stage) do so only if the plan lists the dimension in Plan::meeting. The two classes
// may be on different pipeline stages, because some groups span stages: those of copies of the model, and those of a
// vocabulary that stages share.
bool meets(const Plan& plan, Dimension group, const RankClass& a, const RankClass& b) {
  const bool folded = static_cast<std::int64_t>(plan.classes.size()) < plan.ranks;
  const bool apart = folded && plan.kind_of(a.representative) != plan.kind_of(b.representative);
  return !apart || plan.meet(group);
}

// Throws Error unless every class of ranks (slot) that has a rank in the group of a collective also has a task of that
// collective; otherwise the other ranks of the group would wait forever.
void check_members(const Plan& plan) {
  const std::vector<std::uint32_t> slot_of = slots_of_ranks(plan);
  std::map<std::pair<Dimension, std::int32_t>, std::size_t> expected;
  for (TaskId t = 0; t < plan.task_count(); ++t) {
    const auto* c = std::get_if<Collective>(&plan.op_of(t).work);
    if (c == nullptr) continue;
    const RankClass& slot = plan.classes[plan.slot_of(t)];
    const GroupTable& table = plan.dimensions[static_cast<std::size_t>(c->group)];
    const std::int32_t group = table.member_of[slot.representative];
    const auto [it, fresh] = expected.try_emplace({c->group, group}, 0);
    if (fresh) {
      std::set<std::uint32_t> slots;
      for (const std::int32_t rank : table.groups[group]) {
        if (meets(plan, c->group, slot, plan.classes[slot_of[rank]])) slots.insert(slot_of[rank]);
      }
      it->second = slots.size();
    }
    const std::size_t ends = plan.tasks[t].match == kNone ? 1 : plan.members_of(plan.tasks[t].match).size();
    if (ends != it->second) {
      throw Error(fmt::format("plan: '{}' on {} meets {} of {} ends", plan.op_of(t).name, slot.name, ends, it->second));
    }
  }
}

}  // namespace

void check_plan(const Plan& plan) {
  for (TaskId t = 0; t < plan.task_count(); ++t) {
    if (std::holds_alternative<Transfer>(plan.op_of(t).work) && plan.tasks[t].match == kNone) {
      throw Error(
          fmt::format("plan: '{}' on {} has no other end", plan.op_of(t).name, plan.classes[plan.slot_of(t)].name));
    }
  }
  for (std::uint32_t m = 0; m < plan.matches.size(); ++m) check_match(plan, m);
  check_members(plan);
  check_order(plan);
}

}  // namespace orrery
