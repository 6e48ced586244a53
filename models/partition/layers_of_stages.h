#pragma once

#include <cstdint>
#include <vector>

#include "models/spec/spec.h"

namespace orrery {

// Number of layers of every virtual stage in model order (length pipeline * virtual_stages), from strategy.stage_layers
// or else by the rule of the software stack:
//   even                the same number for each stage; if that is not possible, embedding and head count as one layer
//     each; if that is not possible either, by_cost
//   even_with_embedding embedding and head each count as one layer
//   by_cost             the cost of a layer is that of its matrix products, the cost of the head is that of its product
//   by_cost_nanotron    the cost of a layer is 4h^2 + 3hf, that of the head Vh
//   by_parameters       the cost of a layer or embedding is its number of parameters
// Schedules that share the vocabulary give each stage the same number of layers. dapple: layers are divided for the
// least latency, with the number of ranks that each stage has.
// By cost, the most expensive stage is as cheap as possible (as DeepSpeed's partition_balanced searches for), except
// for nanotron, where a stage is closed when the running cost exceeds its share. Unless strategy.stage_layers says so,
// every stage has at least a layer, the embedding or the head. Throws Error if there are too many stages for that.
std::vector<std::int64_t> stage_layers(const Spec& spec);
// Whether the layers of a schedule's stages are assigned by DAPPLE's planner.
bool plans_stages(const Strategy& strategy);

// The cost of each layer, in multiplications per token; the first layer includes the embedding and the last the head.
// For a layer with experts, the experts that one token is routed to count.
std::vector<double> layer_costs(const Spec& spec);

// Number of micro-batches that pass through one chunk of an interleaved schedule before the stage turns to its next
// chunk: as the strategy says, or the software stack's default, which is the number of stages (Megatron-LM), or m /
// stages equal groups, rounded down, of the m micro-batches (PyTorch's ScheduleInterleaved1F1B).
std::int64_t interleave_group(const Spec& spec);
// The interleave group for a given number of stages and micro-batches instead of the spec's.
std::int64_t interleave_group(const Spec& spec, std::int64_t stages, std::int64_t micro_batches);
// Whether the stack accepts the number of micro-batches that remain after the last full interleave group.
bool interleaves(const Spec& spec, std::int64_t stages, std::int64_t micro_batches);

}  // namespace orrery
