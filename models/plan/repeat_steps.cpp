#include "models/plan/repeat_steps.h"

#include <map>
#include <set>

namespace orrery {
namespace {

class Repeater {
 public:
  // in_turn: whether a rank's first task of each lane waits for all that the rank did in the pass before
  explicit Repeater(const Plan& one, bool in_turn) : from_(one), plan_(one), in_turn_(in_turn) {
    plan_.tasks.clear();
    plan_.dependencies.clear();
    plan_.matches.clear();
    plan_.match_members.clear();
  }

  Plan run(const std::vector<bool>& redoes_update) {
    for (RankClass& slot : plan_.classes) {
      const RankClass& one = from_.classes[static_cast<std::size_t>(&slot - plan_.classes.data())];
      slot.begin = static_cast<TaskId>(plan_.tasks.size());
      slot.validation = slot.validated = kNone;
      std::uint32_t pass = 0;
      for (const bool again : redoes_update) {
        if (again && one.validated != kNone) {
          add(one.begin, one.validated + 1, pass);
          update_twice(one);
        }
        add(one.begin, one.end, ++pass);
        ++pass;
      }
      slot.end = static_cast<TaskId>(plan_.tasks.size());
    }
    plan_.tasks.push_back({.first_dependency = static_cast<std::uint32_t>(plan_.dependencies.size())});
    for (const auto& [key, members] : ends_) {
      for (const TaskId t : members) plan_.tasks[t].match = static_cast<std::uint32_t>(plan_.matches.size());
      plan_.matches.push_back(
          {static_cast<std::uint32_t>(plan_.match_members.size()), static_cast<std::uint32_t>(members.size())});
      plan_.match_members.insert(plan_.match_members.end(), members.begin(), members.end());
    }
    return std::move(plan_);
  }

 private:
  // Appends a copy of the tasks begin to end - 1 of a slot (class of ranks), with the dependencies between them. Copies
  // of the same part of the run have the same number `pass` on all slots, so that the copies of tasks that meet in one
  // transfer (Task::match) also meet in one transfer.
  void add(TaskId begin, TaskId end, std::uint32_t pass) {
    const auto first = static_cast<TaskId>(plan_.tasks.size());
    const std::map<std::uint32_t, TaskId> before = in_turn_ && pass > 1 ? last_of_lanes(end - begin) : kNoTasks;
    std::set<std::uint32_t> begun;
    for (TaskId t = begin; t < end; ++t) {
      if (from_.tasks[t].match != kNone)
        ends_[{pass, from_.tasks[t].match}].push_back(static_cast<TaskId>(plan_.tasks.size()));
      Task task = from_.tasks[t];
      task.match = kNone;
      task.first_dependency = static_cast<std::uint32_t>(plan_.dependencies.size());
      for (const TaskId d : from_.dependencies_of(t)) plan_.dependencies.push_back(d - begin + first);
      for (const auto& [lane, last] : begun.insert(task.lane).second ? before : kNoTasks) {
        if (lane != task.lane) plan_.dependencies.push_back(last);
      }
      plan_.tasks.push_back(task);
    }
  }

  // Returns the last task of each lane among the last `count` tasks that were added.
  std::map<std::uint32_t, TaskId> last_of_lanes(TaskId count) const {
    std::map<std::uint32_t, TaskId> last;
    const auto end = static_cast<TaskId>(plan_.tasks.size());
    for (TaskId t = end - count; t < end; ++t) last[plan_.tasks[t].lane] = t;
    return last;
  }

  void update_twice(const RankClass& slot) {
    for (TaskId t = slot.begin; t < slot.end; ++t) {
      if (!std::holds_alternative<Update>(from_.op_of(t).work)) continue;
      Task task = from_.tasks[t];
      task.first_dependency = static_cast<std::uint32_t>(plan_.dependencies.size());
      plan_.tasks.insert(plan_.tasks.end(), 2, task);
    }
  }

  inline static const std::map<std::uint32_t, TaskId> kNoTasks;

  const Plan& from_;
  Plan plan_;
  bool in_turn_ = false;
  // for each pass (copy of a range of tasks) and each match of the plan of one step (its index), the new tasks that
  // take part in that transfer
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<TaskId>> ends_;
};

}  // namespace

Plan repeat_steps(const Plan& plan, const std::vector<bool>& redoes_update) {
  return Repeater(plan, false).run(redoes_update);
}

Plan repeat_in_turn(const Plan& plan, std::int64_t steps) {
  return Repeater(plan, true).run(std::vector<bool>(static_cast<std::size_t>(steps), false));
}

}  // namespace orrery
