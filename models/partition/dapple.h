#pragma once

#include <cstdint>
#include <vector>

#include "models/spec/spec.h"

namespace orrery {

// DAPPLE's planner (Fan et al. 2021, arXiv:2007.01045, section 4): which layers make a stage, and how many ranks share
// its micro-batches, so that a step's latency is least.
struct StagePlan {
  std::vector<std::int64_t> layers, replicas;  // layers and ranks (replicas) of every stage
};

// The costs that the planner weighs. Times are in seconds, for a whole micro-batch. A layer with the embedding or the
// head includes it.
struct PipelineCosts {
  std::vector<double> forward;    // forward time of each layer on one place; backward takes twice as long
  std::vector<double> gradients;  // bytes that the ranks of a stage reduce
  double hidden_bytes = 0;        // bytes that pass from stage to stage
  std::int64_t samples = 1, micro_batches = 1;
  std::int64_t copies = 1;  // copies of the whole pipeline, whose gradients are reduced too
  // Node of each place (Coordinates::place); its length is the number of places
  std::vector<std::int64_t> node;
  bool copies_apart = false;                 // a place's copies lie on other nodes
  double inside_GBps = 0, between_GBps = 0;  // rates of a place's link in a node, and out of it
  std::vector<double> states;                // bytes per layer that each rank keeps whatever its stage's replicas
  std::vector<double> shared_states;         // bytes per layer that a stage's replicas share among them
  struct {
    double gradients = 0, states = 0, shared_states = 0;
  } table;            // bytes of the tied embedding table, which the last stage holds too unless it is the first one
  double memory = 0;  // bytes that each rank has for both kinds of states
};

// The costs for a spec whose degrees are read; places() many ranks stand in a pipeline. Throws Error where the speed of
// its GPUs or links is not known.
PipelineCosts pipeline_costs(const Spec& spec);

// The latency that the planner weighs: every stage once forward and back, the dearest stage m - 1 times more, and the
// reduction of gradients that ends last: a stage reduces its own gradients while those before it still run back.
// Transfers between stages count as stages.
double latency(const PipelineCosts& costs, const StagePlan& plan);

// The plan of least latency among all whose stages fit in memory, with so many stages, or as many as are best (0). A
// stage's replicas divide the samples of a micro-batch. Throws Error when there is none.
StagePlan plan_stages(const PipelineCosts& costs, std::int64_t stages);

}  // namespace orrery
