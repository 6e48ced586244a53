#include "sim/memory/shared_replay.h"

#include <algorithm>

namespace orrery {
namespace {

// Compares ids of two classes, of which those of the second lie further behind by a fixed number.
struct Further {
  std::uint32_t by = 0;
  bool operator()(std::uint32_t a, std::uint32_t b) const { return a == kNone ? b == kNone : b == a + by; }
};

bool equal_buffers(const Block& a, const Block& b) {
  const auto same = [](const BlockBuffer& x, const BlockBuffer& y) {
    return x.name == y.name && x.bytes == y.bytes && x.category == y.category && x.lazy == y.lazy && x.home == y.home &&
           x.contiguous == y.contiguous;
  };
  return a.role == b.role && std::ranges::equal(a.buffers, b.buffers, same);
}

bool equal_frames(const Plan& plan, const std::vector<std::uint32_t>& of, const std::vector<std::uint32_t>& others) {
  if (of.size() != others.size() || of.empty()) return false;
  const Further further{others.front() - of.front()};
  std::map<std::uint32_t, std::uint32_t> known;  // equal blocks of the two classes
  for (std::size_t i = 0; i < of.size(); ++i) {
    const Frame &a = plan.frames[of[i]], &b = plan.frames[others[i]];
    if (!further(of[i], others[i]) || a.layer != b.layer || a.micro_batch != b.micro_batch || a.chunk != b.chunk ||
        a.base != b.base || a.frozen_base != b.frozen_base)
      return false;
    for (const std::uint32_t Frame::*other :
         {&Frame::next, &Frame::previous, &Frame::beside, &Frame::unit, &Frame::state, &Frame::weights}) {
      if (!further(a.*other, b.*other)) return false;
    }
    if (a.block == b.block) continue;
    const auto [at, fresh] = known.try_emplace(a.block, b.block);
    const Block &left = plan.blocks[a.block], &right = plan.blocks[b.block];
    // The parameters of a block give the sizes of gradients that are one tensor for each weight.
    if (at->second != b.block || (fresh && (!equal_buffers(left, right) || !left.parameters.empty()))) return false;
  }
  return true;
}

}  // namespace

bool equal_plans(const Plan& plan, std::uint32_t slot, std::uint32_t other,
                 const std::vector<std::vector<std::uint32_t>>& frames) {
  const RankClass &a = plan.classes[slot], &b = plan.classes[other];
  if (a.stage != b.stage || a.server != b.server || a.second != b.second || a.end - a.begin != b.end - b.begin)
    return false;
  if (!equal_frames(plan, frames[slot], frames[other])) return false;
  const Further further{frames[other].front() - frames[slot].front()};
  for (TaskId t = 0; t < a.end - a.begin; ++t) {
    const Task &x = plan.tasks[a.begin + t], &y = plan.tasks[b.begin + t];
    if (x.op != y.op || !further(x.frame, y.frame) || x.flags != y.flags) return false;
  }
  return true;
}

// Most replays of a stage that a class is compared with; a comparison takes at most a tenth of a replay, and ends at
// the first difference.
static constexpr std::size_t kMostKnown = 16;

SharedReplays::SharedReplays(const Plan& plan, const Trace& trace,
                             const std::vector<std::vector<std::uint32_t>>& frames)
    : plan_(plan), trace_(trace), frames_(frames) {
  for (const RankClass& slot : plan.classes) ++left_[slot.stage];
}

// Returns the first class of those whose replay may be shared that has an equal plan; the class itself if there is
// none.
std::uint32_t SharedReplays::first_alike(std::uint32_t slot) const {
  for (const Known& k : known_.at(plan_.classes[slot].stage)) {
    if (k.alike == k.slot && equal_plans(plan_, k.slot, slot, frames_)) return k.slot;
  }
  return slot;
}

std::optional<std::uint32_t> SharedReplays::find(std::uint32_t slot, const HostTimes& host) {
  const RankClass& own = plan_.classes[slot];
  --left_[own.stage];
  const std::vector<Known>& known = known_[own.stage];
  alike_ = first_alike(slot);
  const auto same = std::ranges::find_if(
      known, [&](const Known& k) { return k.alike == alike_ && k.moments.same_for(host, trace_, own.begin); });
  return same == known.end() ? std::nullopt : std::optional(same->slot);
}

bool SharedReplays::wants(std::uint32_t slot) const {
  const std::int64_t stage = plan_.classes[slot].stage;
  return left_.at(stage) > 0 && known_.at(stage).size() < kMostKnown;
}

void SharedReplays::add(std::uint32_t slot, ReplayMoments moments) {
  const RankClass& own = plan_.classes[slot];
  if (moments.close(trace_, own.begin)) known_[own.stage].push_back({slot, alike_, std::move(moments)});
}

}  // namespace orrery
