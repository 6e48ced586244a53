#include "models/plan/plan.h"

#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>

namespace orrery {
std::int64_t Plan::last_stage(const RankClass& of) const {
  std::int64_t last = of.stage;
  for (const RankClass& c : classes) last = c.second == of.second ? std::max(last, c.stage) : last;
  return last;
}

std::string_view letter_of(Phase p) {
  switch (p) {
    case Phase::forward:
      return "F";
    case Phase::backward:
      return "B";
    case Phase::input_gradient:
      return "I";
    case Phase::weight_gradient:
      return "W";
    case Phase::step:
      return "step";
  }
  return "";
}

std::string_view name_of(Dimension d) {
  static constexpr std::array<std::string_view, kDimensions> names = {"tensor",       "context",
                                                                      "expert",       "data",
                                                                      "replicate",    "pipeline",
                                                                      "embedding",    "kv",
                                                                      "ulysses",      "model",
                                                                      "world",        "expert-tensor",
                                                                      "expert-data",  "expert-replicate",
                                                                      "tensor-row",   "tensor-column",
                                                                      "tensor-depth", "vocabulary",
                                                                      "data-in-node", "data-over-nodes",
                                                                      "hand-over"};
  return names[static_cast<std::size_t>(d)];
}

std::string_view name_of(LaneKind l) {
  static constexpr std::array<std::string_view, kLanes> names = {"compute",
                                                                 "tensor",
                                                                 "context",
                                                                 "expert",
                                                                 "data reduce",
                                                                 "data gather",
                                                                 "replicate",
                                                                 "send next",
                                                                 "receive previous",
                                                                 "send previous",
                                                                 "receive next",
                                                                 "send partner",
                                                                 "receive partner",
                                                                 "embedding",
                                                                 "model",
                                                                 "d2h",
                                                                 "h2d",
                                                                 "cpu",
                                                                 "nvme read",
                                                                 "nvme write",
                                                                 "token embeddings",
                                                                 "hidden states",
                                                                 "vocabulary sums",
                                                                 "hidden gradients",
                                                                 "expert reduce",
                                                                 "hand-over"};
  return names[static_cast<std::size_t>(l)];
}

std::string_view name_of(Category c) {
  static constexpr std::array<std::string_view, kCategories> names = {"parameters",  "gradients", "optimizer",
                                                                      "activations", "buffers",   "workspace"};
  return names[static_cast<std::size_t>(c)];
}

std::string_view name_of(MemoryTier p) { return row_of(p).name; }

// Returns for each rank the slot (class of equal ranks) whose tasks it runs: the slot of which it is the only member,
// or else the slot whose representative is on the same pipeline stage and of the same kind.
std::vector<std::uint32_t> slots_of_ranks(const Plan& plan) {
  const GroupTable& pipeline = plan.dimensions[static_cast<std::size_t>(Dimension::pipeline)];
  std::vector<std::size_t> position(static_cast<std::size_t>(plan.ranks));
  for (const auto group : pipeline.groups) {
    for (std::size_t i = 0; i < group.size(); ++i) position[group[i]] = i;
  }
  const auto place = [&](std::int64_t rank) { return std::pair(position[rank], plan.kind_of(rank)); };
  std::map<std::pair<std::size_t, int>, std::uint32_t> slot_at;
  for (std::uint32_t s = 0; s < plan.classes.size(); ++s) slot_at[place(plan.classes[s].representative)] = s;
  std::vector<std::uint32_t> result;
  for (std::int64_t r = 0; r < plan.ranks; ++r) result.push_back(slot_at.at(place(r)));
  for (std::uint32_t s = 0; s < plan.classes.size(); ++s) {
    if (plan.classes[s].multiplicity == 1) result[plan.classes[s].representative] = s;
  }
  return result;
}

std::uint32_t frame_of(const Plan& plan, std::uint32_t frame, Scope scope) {
  const Frame& f = plan.frames[frame];
  switch (scope) {
    case Scope::own:
      return frame;
    case Scope::next:
      return f.next;
    case Scope::previous:
      return f.previous;
    case Scope::beside:
      return f.beside;
    case Scope::unit:
      return f.unit;
    case Scope::state:
      return f.state == kNone ? frame : f.state;
    case Scope::rank:
      return plan.classes[f.slot].frame;
  }
  return kNone;
}

std::uint32_t frame_of(const Plan& plan, std::uint32_t frame, const Operand& operand) {
  const std::uint32_t version = plan.frames[frame].weights;
  const bool weights = operand.scope == Scope::state && operand.slot == kWeights;
  if (weights && version != kNone) return version;
  std::uint32_t f = frame_of(plan, frame, operand.scope);
  const bool tied = operand.part == Part::tied;
  if (operand.scope == Scope::unit && tied) return plan.frames[f].previous;
  if (operand.scope == Scope::state && tied && plan.frames[f].previous != kNone) return plan.frames[f].previous;
  for (std::uint16_t i = 0; i < operand.tile; ++i) f = plan.frames[f].next;
  return f;
}

std::string describe_task(const Plan& plan, TaskId t) {
  if (t == kNone) return "start";
  const Frame& f = plan.frames[plan.tasks[t].frame];
  const Op& op = plan.op_of(t);
  std::string text(letter_of(op.phase));
  if (f.micro_batch >= 0) text += fmt::format(" micro-batch {}", f.micro_batch);
  const Block& block = plan.blocks[f.block];
  // The name of a second model's block begins with what the model is: "teacher layer".
  if (block.second) text += fmt::format(" {}", block.name.substr(0, block.name.find(' ')));
  if (f.layer >= 0 && block.role == BlockRole::layer) text += fmt::format(" layer {}", f.layer);
  return text + ", " + op.name;
}

}  // namespace orrery
