#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/partition/rank_groups.h"
#include "models/plan/plan.h"
#include "models/spec/spec.h"

namespace orrery {

// A picture shows at most this many ranks.
inline constexpr std::int64_t kMostShown = 64;

// A rank that a picture shows. slot: index of its class of ranks in the plan. node: number of the machine it runs on.
// tensor: number of the rank among the ranks that hold parts of the same matrices, and `tensors` the number of these
// ranks. expert: number of the rank among the ranks that hold different experts. server: whether it is a parameter
// server, which has no coordinates.
struct ShownRank {
  std::int64_t rank = 0;
  Coordinates at = {};
  std::uint32_t slot = 0;
  std::int64_t node = 0;
  std::int64_t tensor = 0, tensors = 1;
  std::int64_t expert = 0;
  bool server = false;
};

// The shown ranks of one pipeline stage, or of the parameter servers: its name, and its ranks in the order of replicas,
// context, tensor coordinates.
struct StageRanks {
  std::string name = "";
  std::vector<ShownRank> ranks = {};
};

// The ranks that a picture shows. left_out: a sentence on the ranks that are not shown, "" if all are.
struct ShownRanks {
  std::vector<StageRanks> stages;
  std::string left_out;
};

// Chooses the ranks to show: all of them or, if there are more than kMostShown, those of the first replicas. Where
// these are still too many, also only the first context ranks, then the first and last stages, then the first tensor
// ranks are kept.
ShownRanks shown_ranks(const Spec& spec, const Plan& plan);

// Returns the coordinates of a rank in those dimensions that have several ranks: "t1 c0 d2 e5"; "" if no dimension has
// several.
std::string coordinates_text(const Spec& spec, const ShownRank& rank);

}  // namespace orrery
