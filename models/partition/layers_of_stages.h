#pragma once

#include <cstdint>
#include <vector>

#include "models/spec/spec.h"

namespace orrery {

// Number of layers of every virtual stage in model order (length pipeline * virtual_stages), by strategy.stage_layers
// or the profile's rule:
//   even                even; when the layers do not divide, embedding and head count as a layer each, else by cost
//   even_with_embedding embedding and head each count as one layer
//   by_cost             a layer weighs its matrix products, the head its own
//   by_cost_nanotron    a layer weighs 4h^2 + 3hf, the head Vh
//   by_parameters       layers and embeddings weigh their parameters
// Schedules that share the vocabulary give each stage as many layers. dapple: the partition of least latency, layer by
// layer, for the number of ranks that each stage has.
// By cost, the most expensive stage is as cheap as possible (DeepSpeed's partition_balanced searches for that too),
// except nanotron, where a stage is closed when the running cost passes its share. Unless strategy.stage_layers says
// so, no stage is left without a layer, embedding or head. Throws Error when there are too many stages for that.
std::vector<std::int64_t> stage_layers(const Spec& spec);
// Whether DAPPLE's planner assigns layers to the stages of a schedule.
bool plans_stages(const Strategy& strategy);

// The cost of each layer, in multiplications per token; the first and the last layer include embedding and head. A
// layer with experts counts the experts that one token is routed to.
std::vector<double> layer_costs(const Spec& spec);

// Micro-batches that pass through one chunk of an interleaved schedule before the next chunk's turn: as the strategy
// says, or by the profile's default: as many as stages (Megatron-LM), or the step is cut into as many equal turns as
// the number of stages divides it into (PyTorch's ScheduleInterleaved1F1B).
std::int64_t interleave_group(const Spec& spec);
// The interleave group for so many stages and micro-batches instead of the spec's.
std::int64_t interleave_group(const Spec& spec, std::int64_t stages, std::int64_t micro_batches);
// Whether the micro-batches left over by the turns of an interleaved schedule are no more than the stack allows.
bool interleaves(const Spec& spec, std::int64_t stages, std::int64_t micro_batches);

}  // namespace orrery
