#include "models/tasks/join_models.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/partition/hand_over.h"

namespace orrery {
namespace {

class Joiner {
 public:
  Joiner(const Spec& spec, Plan trained, const Plan& second)
      : spec_(spec), plan_(std::move(trained)), second_(second) {}

  Plan run() {
    name_kinds();
    add_groups();
    add_buffers();
    add_classes();
    add_tasks();
    link();
    return std::move(plan_);
  }

 private:
  static void shift(std::uint32_t& id, std::size_t by) {
    if (id != kNone) id += static_cast<std::uint32_t>(by);
  }

  // Ranks of both models at the same place of their pipelines do different work.
  void name_kinds() {
    plan_.kind_of_rank.resize(static_cast<std::size_t>(plan_.ranks), 0);
    const auto kinds = static_cast<std::uint16_t>(std::ranges::max(plan_.kind_of_rank) + 1);
    for (std::int64_t r = 0; r < second_.ranks; ++r)
      plan_.kind_of_rank.push_back(static_cast<std::uint16_t>(kinds + second_.kind_of(r)));
    for (const Dimension d : second_.meeting) {
      if (!plan_.meet(d)) plan_.meeting.push_back(d);
    }
    if (!plan_.meet(Dimension::hand_over)) plan_.meeting.push_back(Dimension::hand_over);
  }

  void add_groups() {
    for (std::size_t d = 0; d < kDimensions; ++d) {
      GroupTable& table = plan_.dimensions[d];
      const auto own = static_cast<std::int32_t>(table.groups.size());
      for (const auto group : second_.dimensions[d].groups) {
        table.groups.add_list();
        for (const std::int32_t r : group) table.groups.add_to_last(r + static_cast<std::int32_t>(plan_.ranks));
      }
      for (const std::int32_t group : second_.dimensions[d].member_of) table.member_of.push_back(own + group);
    }
    plan_.dimensions[static_cast<std::size_t>(Dimension::hand_over)] = hand_over_groups(spec_);
  }

  void add_buffers() {
    first_ = {plan_.ops.size(), plan_.frames.size(), plan_.classes.size(), plan_.tasks.size() - 1};
    const std::size_t blocks = plan_.blocks.size();
    plan_.ops.insert(plan_.ops.end(), second_.ops.begin(), second_.ops.end());
    for (Block block : second_.blocks) {
      for (auto* list : {&block.forward, &block.backward, &block.release, &block.exchange}) {
        for (std::uint32_t& op : *list) shift(op, first_.op);
      }
      plan_.blocks.push_back(std::move(block));
    }
    for (Frame f : second_.frames) {
      shift(f.block, blocks);
      shift(f.first_buffer, plan_.buffers);
      shift(f.slot, first_.slot);
      for (std::uint32_t* other : {&f.next, &f.previous, &f.beside, &f.unit, &f.state, &f.weights})
        shift(*other, first_.frame);
      plan_.frames.push_back(f);
    }
    plan_.buffers += second_.buffers;
  }

  void add_classes() {
    const std::int64_t stages = spec_.strategy.pipeline;
    for (RankClass c : second_.classes) {
      c.name = fmt::format("{} {}", name_of(spec_.second->role), c.name);
      c.stage += stages;
      c.second = true;
      c.representative += plan_.ranks;
      shift(c.begin, first_.task);
      shift(c.end, first_.task);
      shift(c.frame, first_.frame);
      plan_.classes.push_back(std::move(c));
    }
    plan_.ranks += second_.ranks;
  }

  void add_tasks() {
    plan_.tasks.pop_back();  // the entry that marks the end
    const std::size_t dependencies = plan_.dependencies.size(), matches = plan_.matches.size(),
                      members = plan_.match_members.size();
    for (Task t : second_.tasks) {
      shift(t.op, first_.op);
      shift(t.frame, first_.frame);
      shift(t.lane, first_.slot * kLanes);
      shift(t.first_dependency, dependencies);
      shift(t.match, matches);
      plan_.tasks.push_back(t);
    }
    for (TaskId d : second_.dependencies) plan_.dependencies.push_back(d + static_cast<TaskId>(first_.task));
    for (Match m : second_.matches) {
      shift(m.first, members);
      plan_.matches.push_back(m);
    }
    for (TaskId t : second_.match_members) plan_.match_members.push_back(t + static_cast<TaskId>(first_.task));
  }

  // Returns the transfers of the second model's output that one model's ranks take part in, in the order of issue.
  std::vector<TaskId> transfers(bool of_second) const {
    std::vector<TaskId> found;
    for (std::size_t s = 0; s < plan_.classes.size(); ++s) {
      const RankClass& slot = plan_.classes[s];
      for (TaskId t = slot.begin; (s >= first_.slot) == of_second && t < slot.end; ++t) {
        if (plan_.op_of(t).lane == LaneKind::hand_over) found.push_back(t);
      }
    }
    return found;
  }

  void link() {
    const std::vector<TaskId> receives = transfers(false), sends = transfers(true);
    const auto micro_batch = [&](TaskId t) { return plan_.frames[plan_.tasks[t].frame].micro_batch; };
    const bool alike =
        std::ranges::equal(receives, sends, [&](TaskId a, TaskId b) { return micro_batch(a) == micro_batch(b); });
    if (!alike)
      throw Error(
          fmt::format("strategy.schedule: {} takes micro-batches of the {} in another order than it computes "
                      "them on ranks of its own; choose 1f1b",
                      spec_.strategy.schedule, name_of(spec_.second->role)));
    for (std::size_t i = 0; i < sends.size(); ++i) {
      for (const TaskId t : {receives[i], sends[i]}) {
        plan_.tasks[t].match = static_cast<std::uint32_t>(plan_.matches.size());
        plan_.match_members.push_back(t);
      }
      plan_.matches.push_back({static_cast<std::uint32_t>(plan_.match_members.size() - 2), 2});
    }
  }

  // The numbers of the second model's first op, frame, class of ranks and task in the joined plan.
  struct First {
    std::size_t op = 0, frame = 0, slot = 0, task = 0;
  };

  const Spec& spec_;
  Plan plan_;
  const Plan& second_;
  First first_;
};

}  // namespace

Plan join_models(const Spec& spec, Plan trained, const Plan& second) {
  return Joiner(spec, std::move(trained), second).run();
}

}  // namespace orrery
