#pragma once

#include <cstdint>
#include <vector>

#include "models/spec/spec.h"

namespace orrery {

// Returns the number of layers of every virtual stage in model order (length pipeline * virtual_stages), from
// strategy.stage_layers or else by the rule of the software stack:
//   even                the same number for each stage; if that is not possible, embedding and head count as one layer
//     each; if that is not possible either, by_cost
//   even_with_embedding embedding and head each count as one layer
//   by_cost             the cost of a layer is that of its matrix products, the cost of the head is that of its product
//   by_cost_nanotron    the cost of a layer is 4h^2 + 3hf, that of the head Vh (h hidden size, f feed-forward size, V
//     vocabulary)
//   by_parameters       the cost of a layer or embedding is its number of parameters
// Schedules that share the vocabulary give each stage the same number of layers. The schedule dapple divides layers for
// the least latency, with the number of ranks that each stage has.
//
// By cost, the most expensive stage is as cheap as possible (as DeepSpeed's partition_balanced searches for), except
// for nanotron, whose rule closes a stage when the running cost exceeds the stage's share. Unless strategy.stage_layers
// says otherwise, every stage has at least a layer, the embedding or the head. Throws Error if there are too many
// stages for that.
std::vector<std::int64_t> stage_layers(const Spec& spec);
// Returns whether the layers of a schedule's stages are assigned by DAPPLE's planner.
bool plans_stages(const Strategy& strategy);

// Returns the cost of each layer, in multiplications per token. The first layer includes the embedding and the last the
// head. In a layer with experts, only the experts that one token is routed to are counted.
std::vector<double> layer_costs(const Spec& spec);

// Returns the size of the groups of micro-batches in an interleaved schedule: so many micro-batches pass through one
// chunk before the stage turns to its next chunk. The spec states the size, or else it is the software stack's default:
// the number of stages (Megatron-LM), or m / g (PyTorch's ScheduleInterleaved1F1B), where g is the quotient of the m
// micro-batches and the number of stages, rounded down.
std::int64_t interleave_group(const Spec& spec);
// Returns the interleave group (number of micro-batches that pass through a chunk before the stage turns to its next
// chunk) for a given number of stages and micro-batches instead of the spec's.
std::int64_t interleave_group(const Spec& spec, std::int64_t stages, std::int64_t micro_batches);
// Returns whether an interleaved schedule is possible in the software stack. Micro-batches pass through a stage's
// chunks in groups of equal size; if the number of micro-batches leaves a smaller last group, not every stack accepts
// it.
bool interleaves(const Spec& spec, std::int64_t stages, std::int64_t micro_batches);

}  // namespace orrery
