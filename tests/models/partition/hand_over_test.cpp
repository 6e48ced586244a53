// The parts of a frozen model's output that its ranks send to those of the model that trains.
#include "models/partition/hand_over.h"

#include <map>
#include <set>

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "models/load/load_spec.h"
#include "models/partition/rank_groups.h"

namespace orrery {
namespace {

struct Pair {
  const char *trained, *frozen;
  std::int64_t gpus, own;
};
constexpr Pair kPairs[] = {
    {"data: 1", "", 2, 1},
    {"tensor: 4", "", 5, 1},
    {"data: 1", "tensor: 4", 5, 4},
    {"tensor: 2, data: 2", "", 5, 1},
    {"tensor: 2, data: 2", "tensor: 4", 8, 4},
    {"tensor: 2, data: 2", "data: 2", 6, 2},
    {"data: 4", "tensor: 4, data: 1", 8, 4},
    {"tensor: 4, data: 1", "data: 4", 8, 4},
    {"tensor: 2, pipeline: 2, data: 2", "tensor: 2, pipeline: 3, data: 1", 14, 6},
    {"context: 2, tensor: 2", "tensor: 4", 12, 8},
    {"tensor: 2, data: 2, rank_order: dp-tp-cp-pp", "tensor: 1, data: 1", 5, 1},
};

Spec spec_of_pair(const Pair& p) {
  return parse_spec(fmt::format("{{model: llama-3.2-1b, teacher: llama-3.2-3b, sequence: 64, distill: {{gpus: {}, "
                                "strategy: {{{}}}}}, cluster: {{node: dgx-h100, nodes: 4}}, gpus: {}, software: "
                                "orrery, strategy: {{{}, micro_batch: 4, global_batch: 16}}}}",
                                p.own, p.frozen, p.gpus, p.trained),
                    "t.yaml");
}

bool at_end(const Coordinates& c, const Strategy& s) { return c.pipeline + 1 == s.pipeline; }

// Every group has the ranks of both models that meet in the numbers of hand_over_of(), and no rank is in two groups.
TEST(HandOver, GroupsTheRanksOfBothLastStages) {
  for (const Pair& p : kPairs) {
    const Spec spec = spec_of_pair(p);
    const HandOver h = hand_over_of(spec);
    const GroupTable table = hand_over_groups(spec);
    ASSERT_EQ(static_cast<std::int64_t>(table.member_of.size()), spec.gpus);
    const std::int64_t trained = spec.strategy.gpus();
    for (const auto group : table.groups) {
      if (group.size() == 1) continue;
      const auto senders = std::ranges::count_if(group, [&](std::int32_t r) { return r >= trained; });
      EXPECT_EQ(senders, h.senders()) << p.trained << " | " << p.frozen;
      EXPECT_EQ(std::ssize(group) - senders, h.receivers()) << p.trained << " | " << p.frozen;
    }
    const auto at = coordinates(spec.strategy);
    for (std::size_t r = 0; r < at.size(); ++r)
      EXPECT_EQ(table.groups[static_cast<std::size_t>(table.member_of[r])].size() > 1, at_end(at[r], spec.strategy));
  }
}

// Plays the hand-over of logits: an element is a pair of a token and a column of the complete matrix, and each side's
// ranks hold theirs in the order of the buffers that they send or receive.
TEST(HandOver, BringsEveryElementWhereItBelongs) {
  for (const Pair& p : kPairs) {
    const Spec spec = spec_of_pair(p), second = second_spec(spec);
    const HandOver h = hand_over_of(spec);
    const std::int64_t samples = spec.strategy.micro_batch * spec.strategy.data, columns = 8;
    // The elements of a rank's buffer: columns of each of `members` ranks by themselves.
    const auto buffer = [&](const Strategy& s, const Coordinates& c, std::int64_t members) {
      std::vector<std::pair<std::int64_t, std::int64_t>> elements;
      const std::int64_t own = columns / s.tensor, rows = samples / s.data, part = own / members;
      for (std::int64_t m = 0; m < members; ++m) {
        for (std::int64_t r = 0; r < rows; ++r) {
          for (std::int64_t i = 0; i < part; ++i)
            elements.emplace_back(c.data * rows + r, c.tensor * own + m * part + i);
        }
      }
      return elements;
    };
    const auto at = coordinates(spec.strategy), from_at = coordinates(second.strategy);
    const GroupTable table = hand_over_groups(spec);
    for (std::size_t r = 0; r < at.size(); ++r) {
      if (!at_end(at[r], spec.strategy)) continue;
      const auto wanted = buffer(spec.strategy, at[r], h.senders_by_tensor);
      std::vector<std::pair<std::int64_t, std::int64_t>> got(wanted.size(), {-1, -1});
      for (const std::int32_t sender : table.groups[static_cast<std::size_t>(table.member_of[r])]) {
        if (sender < spec.strategy.gpus()) continue;
        const auto sent = buffer(second.strategy, from_at[static_cast<std::size_t>(sender - spec.strategy.gpus())],
                                 h.receivers_by_tensor);
        const auto rank = static_cast<std::int64_t>(r);
        const HandedPart part = handed_part(spec, sender, rank, std::ssize(wanted), true);
        const HandedPart same = handed_part(second, sender, rank, std::ssize(sent), true);
        EXPECT_EQ(part.elements, same.elements);
        EXPECT_EQ(part.in_sender, same.in_sender);
        EXPECT_EQ(part.in_receiver, same.in_receiver);
        std::copy_n(sent.begin() + part.in_sender, part.elements, got.begin() + part.in_receiver);
      }
      EXPECT_EQ(got, wanted) << p.trained << " | " << p.frozen << " rank " << r;
    }
  }
}

// Numbers that all tensor ranks have alike come in equal shares from these ranks.
TEST(HandOver, SharesWhatTensorRanksHaveAlike) {
  for (const Pair& p : kPairs) {
    const Spec spec = spec_of_pair(p), second = second_spec(spec);
    const std::int64_t rows = spec.strategy.micro_batch * spec.sequence / spec.strategy.context;
    const GroupTable table = hand_over_groups(spec);
    const auto at = coordinates(spec.strategy);
    for (std::size_t r = 0; r < at.size(); ++r) {
      if (!at_end(at[r], spec.strategy)) continue;
      std::vector<int> times(static_cast<std::size_t>(rows), 0);
      for (const std::int32_t sender : table.groups[static_cast<std::size_t>(table.member_of[r])]) {
        if (sender < spec.strategy.gpus()) continue;
        const HandedPart part = handed_part(spec, sender, static_cast<std::int64_t>(r), rows, false);
        for (std::int64_t i = 0; i < part.elements; ++i) ++times[static_cast<std::size_t>(part.in_receiver + i)];
      }
      for (const int n : times) EXPECT_EQ(n, 1) << p.trained << " | " << p.frozen;
    }
  }
}

}  // namespace
}  // namespace orrery
