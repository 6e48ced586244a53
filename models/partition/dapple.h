#pragma once

#include <cstdint>
#include <vector>

#include "models/spec/spec.h"

namespace orrery {

// The result of DAPPLE's planner (Fan et al. 2021, arXiv:2007.01045, section 4): which layers make a stage, and how
// many ranks share the stage's micro-batches, so that a step's latency is least.
struct StagePlan {
  std::vector<std::int64_t> layers, replicas;  // layers and ranks (replicas) of every stage
};

// The costs that DAPPLE's planner minimizes. Times are in seconds, for a whole micro-batch. The layer beside the
// embedding or the head includes its cost.
struct PipelineCosts {
  std::vector<double> forward;    // forward time of each layer on one rank; backward takes twice as long
  std::vector<double> gradients;  // bytes that the ranks of a stage reduce
  double hidden_bytes = 0;        // bytes that pass from stage to stage
  std::int64_t samples = 1, micro_batches = 1;
  std::int64_t copies = 1;  // copies of the whole pipeline, whose gradients are reduced too
  // Node of each place (Coordinates::place); its length is the number of places
  std::vector<std::int64_t> node;
  bool copies_apart = false;                 // the copies of a rank in other pipelines lie on other nodes
  double inside_GBps = 0, between_GBps = 0;  // rate of a rank's link within a node, and to other nodes
  // Bytes per layer that each rank keeps, however many replicas its stage has
  std::vector<double> states;
  std::vector<double> shared_states;  // bytes per layer that a stage's replicas share among them
  struct {
    double gradients = 0, states = 0, shared_states = 0;
  } table;            // bytes of the tied embedding table, which the last stage holds too unless it is the first one
  double memory = 0;  // bytes of memory that each rank has for both kinds of states
};

// The costs for a spec whose degrees are read; a pipeline has places() ranks. Throws Error if the speed of its GPUs or
// links is not known.
PipelineCosts pipeline_costs(const Spec& spec);

// The step latency as the planner estimates it: every stage once forward and backward, the slowest stage m - 1 times
// more, and the gradient reduction that ends last: a stage reduces its own gradients while the stages before it still
// run backward. Transfers between stages count as stages.
double latency(const PipelineCosts& costs, const StagePlan& plan);

// The plan of least latency among all whose stages fit in memory, with the given number of stages, or with any number
// (0). A stage's replicas divide the samples of a micro-batch. Throws Error if there is none.
StagePlan plan_stages(const PipelineCosts& costs, std::int64_t stages);

}  // namespace orrery
