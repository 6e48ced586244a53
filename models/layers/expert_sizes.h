#pragma once

#include <cstdint>

#include "models/spec/spec.h"

namespace orrery {

// How much load the experts of a rank get: that of the busiest rank, or of the other ranks of a stage, all taken alike.
enum class ExpertLoad : std::uint8_t { busiest, others };

// Whether a plan needs both loads; it does not where each expert gets the same number of rows.
bool unevenly_loaded(const Spec& spec);

// How many rows of tokens a rank sends to experts and receives for its own experts in one layer and micro-batch,
// counted in choices (a token goes to top_k experts). All ranks send equally many; how many a rank receives depends on
// the load of its experts.
struct ExpertSizes {
  std::int64_t experts = 0, local = 0;  // experts of the layer, and those of one rank
  std::int64_t ranks = 1, cut = 1;      // ranks that experts are spread over, and ranks that one expert is cut over
  std::int64_t tokens = 0, top_k = 0;
  std::int64_t capacity = 0;  // choices that an expert takes from one rank; 0 = all
  bool padded = false;        // every expert gets exactly `capacity` rows of every rank
  std::int64_t sent = 0, sent_bound = 0;
  std::int64_t received = 0, received_bound = 0;  // rows from all ranks that experts are spread over
  std::int64_t moved = 0;  // rows moved by the rank that moves most, which set the time of a transfer

  std::int64_t gathered() const { return cut * received; }
  std::int64_t sources() const { return ranks * cut; }
};

// capacity = ceil(capacity_factor * tokens * top_k / experts) (GShard, Lepikhin et al. 2020, section 2.2;
// Megatron-Core). Loads: uniform, the busiest rank at moe.imbalance times the mean, expert i at (i + 1)^-zipf, or a row
// of measured counts (moe.loads).
ExpertSizes expert_sizes(const Spec& spec, std::int64_t layer, std::int64_t tokens,
                         ExpertLoad load = ExpertLoad::busiest);

// The expected number of parts that hold any of a token's top_k experts, divided by top_k, when all experts are cut
// into `parts` equal parts. The token's experts are in moe.top_groups of their groups; a part has several such groups,
// or is itself a part of one.
double parts_met(const Moe& moe, double parts);

}  // namespace orrery
