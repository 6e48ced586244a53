#include "models/plan/unfold.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

namespace orrery {
namespace {

class Unfolder {
 public:
  explicit Unfolder(const Plan& folded) : from_(folded), slot_of_(slots_of_ranks(folded)) {
    plan_.ranks = from_.ranks;
    plan_.steps = from_.steps;
    plan_.reported = from_.reported;
    plan_.servers = from_.servers;
    plan_.copies = from_.copies;
    plan_.server_seats = from_.server_seats;
    plan_.servers_beside = from_.servers_beside;
    plan_.asynchronous_workers = from_.asynchronous_workers;
    plan_.micro_batches = from_.micro_batches;
    plan_.update_every = from_.update_every;
    plan_.element_bytes = from_.element_bytes;
    plan_.frozen_width = from_.frozen_width;
    plan_.one_queue = from_.one_queue;
    plan_.steps_overlap = from_.steps_overlap;
    plan_.shards_optimizer = from_.shards_optimizer;
    plan_.shards_gradients = from_.shards_gradients;
    plan_.dimensions = from_.dimensions;
    plan_.kind_of_rank = from_.kind_of_rank;
    plan_.meeting = from_.meeting;
    plan_.blocks = from_.blocks;
    plan_.ops = from_.ops;
    frames_of_.resize(from_.classes.size());
    for (std::uint32_t f = 0; f < from_.frames.size(); ++f) frames_of_[from_.frames[f].slot].push_back(f);
  }

  Plan run(const std::vector<std::int64_t>& ranks) {
    std::uint64_t tasks = 0;
    for (const std::int64_t r : ranks) tasks += from_.classes[slot_of_[r]].end - from_.classes[slot_of_[r]].begin;
    plan_.tasks.reserve(tasks + 1);
    for (const std::int64_t r : ranks) add_rank(r);
    plan_.tasks.push_back({.first_dependency = static_cast<std::uint32_t>(plan_.dependencies.size())});
    link();
    return std::move(plan_);
  }

 private:
  void add_rank(std::int64_t rank) {
    const RankClass& slot = from_.classes[slot_of_[rank]];
    const auto index = static_cast<std::uint32_t>(plan_.classes.size());
    const auto begin = static_cast<TaskId>(plan_.tasks.size());
    add_frames(slot_of_[rank], index);
    for (TaskId t = slot.begin; t < slot.end; ++t) {
      Task task = from_.tasks[t];
      task.frame = new_frame_[task.frame];
      task.lane = index * kLanes + task.lane % kLanes;
      task.first_dependency = static_cast<std::uint32_t>(plan_.dependencies.size());
      for (const TaskId d : from_.dependencies_of(t)) plan_.dependencies.push_back(d - slot.begin + begin);
      meet(t, rank, static_cast<TaskId>(plan_.tasks.size()));
      task.match = kNone;
      plan_.tasks.push_back(task);
    }
    const auto renamed = [&](TaskId t) { return t == kNone ? kNone : t - slot.begin + begin; };
    const std::int64_t server = rank - from_.workers();
    plan_.classes.push_back({server < 0 ? fmt::format("rank {}", rank) : fmt::format("server {}", server), slot.stage,
                             rank, 1, begin, static_cast<TaskId>(plan_.tasks.size()),
                             slot.frame == kNone ? kNone : new_frame_[slot.frame], slot.versions, slot.staleness,
                             slot.server, renamed(slot.validation), renamed(slot.validated), slot.second});
  }

  void add_frames(std::uint32_t slot, std::uint32_t index) {
    new_frame_.resize(from_.frames.size(), kNone);
    const auto first = static_cast<std::uint32_t>(plan_.frames.size());
    for (std::size_t i = 0; i < frames_of_[slot].size(); ++i)
      new_frame_[frames_of_[slot][i]] = first + static_cast<std::uint32_t>(i);
    const auto renamed = [&](std::uint32_t f) { return f == kNone ? kNone : new_frame_[f]; };
    for (const std::uint32_t old : frames_of_[slot]) {
      Frame f = from_.frames[old];
      f.next = renamed(f.next);
      f.previous = renamed(f.previous);
      f.beside = renamed(f.beside);
      f.unit = renamed(f.unit);
      f.state = renamed(f.state);
      f.weights = renamed(f.weights);
      f.slot = index;
      f.first_buffer = plan_.buffers;
      plan_.buffers += static_cast<std::uint32_t>(plan_.blocks[f.block].buffers.size());
      plan_.frames.push_back(f);
    }
  }

  // Returns the task that stands for `folded`, a task of the folded plan (one slot per class of equal ranks), in the
  // first class of its pipeline stage: the task at the same position. All classes of a stage run the same tasks in the
  // same order, so the returned task can identify a transfer whose groups lie within one class.
  TaskId of_first_class(TaskId folded) const {
    const RankClass& slot = from_.classes[from_.slot_of(folded)];
    for (const RankClass& first : from_.classes) {
      if (first.stage == slot.stage) return first.begin + (folded - slot.begin);
    }
    return folded;
  }

  // Notes the new task `task` of `rank`, a copy of the folded plan's task `folded`, if it is one end of a transfer or a
  // member of a collective. Noted tasks that come from the same transfer or collective of the folded plan, and whose
  // ranks are in the same group, are later joined into one match (the tasks that meet in one transfer).
  void meet(TaskId folded, std::int64_t rank, TaskId task) {
    const Op& op = from_.op_of(folded);
    const auto* c = std::get_if<Collective>(&op.work);
    if (c == nullptr && !std::holds_alternative<Transfer>(op.work)) return;
    const Dimension d = c != nullptr ? c->group : Dimension::pipeline;
    const std::uint32_t match = from_.tasks[folded].match;
    const TaskId first = match == kNone ? folded : from_.members_of(match).front();
    const TaskId key = from_.meet(d) ? first : of_first_class(first);
    const std::int32_t group = from_.dimensions[static_cast<std::size_t>(d)].member_of[rank];
    ends_.push_back({key, group, task});
  }

  void link() {
    std::sort(ends_.begin(), ends_.end(), [](const End& a, const End& b) {
      return std::tie(a.key, a.group, a.task) < std::tie(b.key, b.group, b.task);
    });
    for (std::size_t i = 0; i < ends_.size();) {
      std::size_t j = i;
      while (j < ends_.size() && ends_[j].key == ends_[i].key && ends_[j].group == ends_[i].group) ++j;
      if (j - i > 1) {
        const auto match = static_cast<std::uint32_t>(plan_.matches.size());
        plan_.matches.push_back(
            {static_cast<std::uint32_t>(plan_.match_members.size()), static_cast<std::uint32_t>(j - i)});
        for (; i < j; ++i) {
          plan_.tasks[ends_[i].task].match = match;
          plan_.match_members.push_back(ends_[i].task);
        }
      }
      i = j;
    }
  }

  struct End {
    TaskId key;
    std::int32_t group;
    TaskId task;
  };

  const Plan& from_;
  std::vector<std::uint32_t> slot_of_;
  std::vector<std::vector<std::uint32_t>> frames_of_;
  std::vector<std::uint32_t> new_frame_;
  std::vector<End> ends_;
  Plan plan_;
};

}  // namespace

Plan unfold(const Plan& folded) {
  std::vector<std::int64_t> ranks(folded.ranks);
  for (std::int64_t r = 0; r < folded.ranks; ++r) ranks[r] = r;
  return Unfolder(folded).run(ranks);
}

Plan unfold(const Plan& folded, const std::vector<std::int64_t>& ranks) { return Unfolder(folded).run(ranks); }

Plan instantiate(const Plan& folded, std::int64_t rank) { return Unfolder(folded).run({rank}); }

}  // namespace orrery
