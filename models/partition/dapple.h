#pragma once

#include <cstdint>
#include <vector>

#include "models/spec/spec.h"

namespace orrery {

// The result of DAPPLE's planner (Fan et al. 2021, arXiv:2007.01045, section 4): the number of layers of each stage,
// and the number of ranks that share the stage's micro-batches, chosen for the least latency of a step.
struct StagePlan {
  std::vector<std::int64_t> layers, replicas;  // number of layers and of ranks (replicas) of every stage
};

// The costs that DAPPLE's planner minimizes. Times are in seconds, for a complete micro-batch. The costs of the
// embedding and the head are included in the first and the last layer.
struct PipelineCosts {
  std::vector<double> forward;    // forward time of each layer on one rank, seconds; backward takes twice as long
  std::vector<double> gradients;  // bytes of each layer's gradients, which the ranks of a stage reduce
  double hidden_bytes = 0;        // bytes of hidden states that a stage sends to the next
  std::int64_t samples = 1, micro_batches = 1;
  // Number of data-parallel copies of the complete pipeline, among which gradients are reduced too
  std::int64_t copies = 1;
  // For each position in the pipeline (one per replica of a stage), the node on which the position lies
  std::vector<std::int64_t> node;
  // whether the same pipeline position lies on different nodes in different data-parallel copies of the pipeline
  bool copies_apart = false;
  double inside_GBps = 0, between_GBps = 0;  // rate of a rank's link within a node, and of its link to other nodes
  // Bytes per layer of the model and optimizer states that each rank keeps, whatever the number of replicas of its
  // stage
  std::vector<double> states;
  // bytes per layer of the model and optimizer states that the replicas of a stage divide among them
  std::vector<double> shared_states;
  struct {
    double gradients = 0, states = 0, shared_states = 0;
    // Bytes of a tied embedding table's gradients, of its states that every rank keeps, and of its states that the
    // replicas of a stage divide among them. The last stage has a second instance of the table unless it is also the
    // first stage.
  } table;
  double memory = 0;  // bytes of memory that each rank has for `states` and `shared_states`
};

// Returns the costs for a spec whose parallel degrees are known; a pipeline has Strategy::places() ranks. Throws Error
// if the speed of the spec's GPUs or links is not known.
PipelineCosts pipeline_costs(const Spec& spec);

// Returns the latency of a step as the planner estimates it, seconds. It is the sum of three times: of one
// micro-batch's forward through all stages; of the slowest stage, forward and backward, m - 1 times (m micro-batches);
// and from the start of the last micro-batch's backward to the end of the last gradient reduction. A stage reduces its
// gradients while the stages before it still run backward. Transfers between stages count as stages.
double latency(const PipelineCosts& costs, const StagePlan& plan);

// Returns the plan of least latency among all plans whose stages fit in memory, with the given number of stages, or
// with any number (0). The number of a stage's replicas divides the number of samples of a micro-batch. Throws Error if
// there is no such plan.
StagePlan plan_stages(const PipelineCosts& costs, std::int64_t stages);

}  // namespace orrery
