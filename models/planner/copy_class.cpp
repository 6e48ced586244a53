#include "models/planner/copy_class.h"

#include <algorithm>
#include <map>
#include <set>

#include "models/layout/layout.h"

namespace orrery {
namespace {

// How far ids of the copied class lie behind those of the class that it is a copy of.
struct Distance {
  std::uint32_t frame = 0, buffer = 0, slot = 0;
  TaskId task = 0;

  static std::uint32_t moved(std::uint32_t id, std::uint32_t by) { return id == kNone ? kNone : id + by; }
  std::uint32_t frame_of(std::uint32_t id) const { return moved(id, frame); }
  TaskId task_of(TaskId id) const { return moved(id, task); }
};

// The first frame of a class, and the frame after its last; the frames of a class lie one after another.
std::pair<std::size_t, std::size_t> frames_of(const Plan& plan, std::uint32_t slot) {
  const auto range = std::ranges::equal_range(plan.frames, slot, {}, &Frame::slot);
  return {range.begin() - plan.frames.begin(), range.end() - plan.frames.begin()};
}

// Copies the frames of a class, and the blocks that only this class has (those without a key in Draft::blocks).
void copy_frames(Draft& draft, std::pair<std::size_t, std::size_t> range, const Distance& by) {
  Plan& plan = draft.plan;
  std::set<std::uint32_t> shared;
  for (const auto& [key, block] : draft.blocks) shared.insert(block);
  std::map<std::uint32_t, std::uint32_t> own;  // for each block that only one class has, the id of its copy
  for (std::size_t f = range.first; f < range.second; ++f) {
    Frame frame = plan.frames[f];
    if (!shared.contains(frame.block)) {
      const auto [it, fresh] = own.try_emplace(frame.block, static_cast<std::uint32_t>(plan.blocks.size()));
      if (fresh) plan.blocks.push_back(Block(plan.blocks[frame.block]));
      frame.block = it->second;
    }
    frame.first_buffer += by.buffer;
    frame.slot += by.slot;
    for (std::uint32_t Frame::*other :
         {&Frame::next, &Frame::previous, &Frame::beside, &Frame::unit, &Frame::state, &Frame::weights})
      frame.*other = by.frame_of(frame.*other);
    plan.frames.push_back(frame);
  }
}

void copy_tasks(Plan& plan, const RankClass& of, const Distance& by) {
  const std::size_t first = plan.tasks[of.begin].first_dependency;
  const std::size_t last = of.end == plan.tasks.size() ? plan.dependencies.size() : plan.tasks[of.end].first_dependency;
  const auto further = static_cast<std::uint32_t>(plan.dependencies.size() - first);
  for (TaskId t = of.begin; t < of.end; ++t) {
    Task task = plan.tasks[t];
    task.frame = by.frame_of(task.frame);
    task.lane += by.slot * kLanes;
    task.first_dependency += further;
    plan.tasks.push_back(task);
  }
  for (std::size_t d = first; d < last; ++d) plan.dependencies.push_back(by.task_of(plan.dependencies[d]));
}

// Copies the ends of transfers of a class's tasks; ends are listed in the order of their tasks.
void copy_ends(std::vector<TransferEnds::End>& ends, const RankClass& of, const Distance& by, int kind) {
  const auto at = [&](TaskId t) {
    return std::ranges::lower_bound(ends, t, {}, &TransferEnds::End::task) - ends.begin();
  };
  const auto first = at(of.begin), last = at(of.end);
  for (auto e = first; e < last; ++e) {
    TransferEnds::End end = ends[static_cast<std::size_t>(e)];
    end.transfer.kind = kind;
    end.task = by.task_of(end.task);
    ends.push_back(end);
  }
}

}  // namespace

bool do_the_same(const Draft& draft, int kind, int other) {
  const RankKind &a = draft.kinds[kind], &b = draft.kinds[other];
  // Tensor ranks with other rows of a micro-batch write other transfers, and a partner of an eviction (BPipe) finds the
  // evicted buffers by the kind of ranks that laid them out.
  const bool apart = draft.facts.spec.strategy.row_parts() > 1 || !draft.schedule.moves.empty();
  return !apart && a.duty == Duty::worker && b.duty == Duty::worker && !draft.facts.row.servers && a.load == b.load &&
         a.ring_block == b.ring_block;
}

void copy_class(Draft& draft, TransferEnds& ends, std::uint32_t of) {
  Plan& plan = draft.plan;
  RankClass copy = plan.classes[of];
  const RankClass from = copy;
  const auto frames = frames_of(plan, of);
  const Distance by = {.frame = static_cast<std::uint32_t>(plan.frames.size() - frames.first),
                       .buffer = plan.buffers - plan.frames[frames.first].first_buffer,
                       .slot = draft.at.slot - of,
                       .task = static_cast<TaskId>(plan.tasks.size()) - from.begin};
  const Frame& last = plan.frames[frames.second - 1];
  const std::uint32_t end = last.first_buffer + static_cast<std::uint32_t>(plan.blocks[last.block].buffers.size());
  copy_frames(draft, frames, by);
  plan.buffers = end + by.buffer;
  find_ranks(draft, copy);
  copy.begin = by.task_of(from.begin);
  copy.end = by.task_of(from.end);
  copy.frame = by.frame_of(from.frame);
  copy.validation = by.task_of(from.validation);
  copy.validated = by.task_of(from.validated);
  plan.classes.push_back(copy);
  copy_tasks(plan, from, by);
  copy_ends(ends.transfers, from, by, draft.at.rank_kind);
}

}  // namespace orrery
