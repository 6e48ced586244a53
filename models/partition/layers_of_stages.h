#pragma once

#include <cstdint>
#include <vector>

#include "models/spec/spec.h"

namespace orrery {

// Layers of every virtual stage in model order (length pipeline * virtual_stages), by strategy.stage_layers or the
// profile's rule:
//   even                even; when the layers do not divide, embedding and head count as a layer each, else by cost
//   even_with_embedding embedding and head each count as one layer
//   by_cost             layers weigh their matrix products, the head its own
//   by_cost_nanotron    layers weigh 4h^2 + 3hf, the head Vh
//   by_parameters       layers and embeddings weigh their parameters
// Schedules that share the vocabulary: as many layers on each. dapple: the cut of least latency, layer by layer,
// for the ranks that each stage has.
// By cost, the dearest stage is as cheap as can be (DeepSpeed's partition_balanced searches for that too), but for
// nanotron: there a stage closes when the running cost passes its share. Unless strategy.stage_layers says so, no stage
// is left without a layer, embedding or head. Throws Error when there are too many stages for that.
std::vector<std::int64_t> stage_layers(const Spec& spec);
// Whether DAPPLE's planner cuts the stages of a schedule.
bool plans_stages(const Strategy& strategy);

// The cost of each layer, in multiplications a token, embedding and head with the first and the last layer; layers with
// experts by the experts that a token meets.
std::vector<double> layer_costs(const Spec& spec);

// Micro-batches that pass through one chunk of an interleaved schedule before the next chunk's turn: what the strategy
// says, or the profile's habit: as many as stages (Megatron-LM), or the step in as many equal turns as stages go into
// it (PyTorch's ScheduleInterleaved1F1B).
std::int64_t interleave_group(const Spec& spec);
// The interleave group for so many stages and micro-batches instead of the spec's.
std::int64_t interleave_group(const Spec& spec, std::int64_t stages, std::int64_t micro_batches);
// Whether the turns of interleaved stages leave no more micro-batches over than the stack takes.
bool interleaves(const Spec& spec, std::int64_t stages, std::int64_t micro_batches);

}  // namespace orrery
