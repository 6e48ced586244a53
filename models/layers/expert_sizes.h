#pragma once

#include <cstdint>

#include "models/spec/spec.h"

namespace orrery {

// The ranks of an expert group for which sizes are computed, if their experts get unequal numbers of tokens. busiest:
// the rank whose experts get the most tokens; others: a rank whose experts get the mean over all other ranks of the
// group.
enum class ExpertLoad : std::uint8_t { busiest, others };

// Numbers of rows of tokens that a rank sends to experts and receives for its own experts in one layer and micro-batch;
// a token makes top_k choices, each of which is a row. All ranks send equally many rows; the number that a rank
// receives depends on the load of its experts.
struct ExpertSizes {
  std::int64_t experts = 0, local = 0;  // number of experts of the layer, and of those on one rank
  // number of ranks over which the experts are spread, and over which one expert is cut
  std::int64_t ranks = 1, cut = 1;
  std::int64_t tokens = 0, top_k = 0;
  // greatest number of (token, expert) choices that an expert accepts from one rank; 0: no limit
  std::int64_t capacity = 0;
  bool padded = false;  // whether every expert gets exactly `capacity` rows from every rank
  bool hashed = false;  // whether a fixed table assigns experts to tokens (hash routing)
  std::int64_t sent = 0, sent_bound = 0;
  // number of rows received from all ranks over which the experts are spread
  std::int64_t received = 0, received_bound = 0;
  // number of rows moved by the rank that moves most rows, which determines the time of a transfer
  std::int64_t moved = 0;

  std::int64_t gathered() const { return cut * received; }
  std::int64_t sources() const { return ranks * cut; }
};

// Returns the sizes of a layer, with capacity = ceil(capacity_factor * tokens * top_k / experts) (GShard, Lepikhin et
// al. 2020, section 2.2; Megatron-Core). The experts' loads are uniform, or moe.imbalance times the mean on the busiest
// rank, or proportional to (i + 1)^-zipf for expert i, or one layer's measured counts (moe.loads).
ExpertSizes expert_sizes(const Spec& spec, std::int64_t layer, std::int64_t tokens,
                         ExpertLoad load = ExpertLoad::busiest);

// Returns whether the tokens of generated text prefer some experts, as they do unless the spec says otherwise
// (model.moe.imbalance as a Zipf exponent of 0).
bool prefers_some(const Moe& moe);

// Returns how many of a layer's experts so many tokens choose together, in the mean; at least top_k for one token. A
// token chooses top_k different experts, the more popular ones more often: by moe.imbalance where it is a Zipf exponent
// or a file of counts (the mean of its layers), else by the exponent of generated text (GenerationFigures).
double experts_met(const Moe& moe, double tokens);

// Returns how many of `local` experts of a rank get any of so many tokens, rounded; at least 1. Popular experts are
// taken to lie on all ranks alike.
std::int64_t local_experts_met(const Moe& moe, std::int64_t local, double tokens);

// Returns how many experts of a rank are taken to get rows: all in training, and where each computes its capacity; in
// generated text, where all ranks that send may have few tokens together, those that any token chooses.
std::int64_t experts_with_rows(const Spec& spec, const ExpertSizes& sizes);

// Returns the expected number of parts (nodes or ranks) that hold at least one of a token's top_k experts, divided by
// top_k, if all experts are cut into `parts` equal parts. The token's experts lie in moe.top_groups of the groups of
// experts; each part contains several groups or lies within one group.
double parts_met(const Moe& moe, double parts);

// Returns whether the stack's kernel for the products of all experts (software.fused_experts) takes these: in 8-bit
// blocks of 32, with a gated activation, on Blackwell (Transformer Engine ops/_common.py,
// ops/fused/forward_grouped_mlp.py: MXFP8, compute capability 10).
bool fuses_experts(const Spec& spec);

}  // namespace orrery
