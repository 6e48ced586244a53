// Properties of a software stack that take one of a few values, each with its name in specs and data files.
#pragma once

#include <cstdint>
#include <optional>

#include "models/base/names.h"
#include "models/base/precision.h"

namespace orrery {

// How layers are assigned to stages if the spec does not say.
enum class StageRule : std::uint8_t { even, even_with_embedding, by_cost, by_cost_nanotron, by_parameters };
inline constexpr Named<StageRule> kStageRules[] = {{"even", StageRule::even},
                                                   {"even_with_embedding", StageRule::even_with_embedding},
                                                   {"by_cost", StageRule::by_cost},
                                                   {"by_cost_nanotron", StageRule::by_cost_nanotron},
                                                   {"by_parameters", StageRule::by_parameters}};

// Default of strategy.interleave_group: as many micro-batches as stages, or the step cut into as many equal turns as
// the number of stages divides it into.
enum class InterleaveGroup : std::uint8_t { stages, rounds };
inline constexpr Named<InterleaveGroup> kInterleaveGroups[] = {{"stages", InterleaveGroup::stages},
                                                               {"rounds", InterleaveGroup::rounds}};

// Meaning of `recompute: selective`: the core of attention; everything but attention and every second product; all of
// every second layer.
enum class SelectiveRecompute : std::uint8_t { attention, operations, second_layers };
inline constexpr Named<SelectiveRecompute> kSelectiveRecomputes[] = {
    {"attention", SelectiveRecompute::attention},
    {"operations", SelectiveRecompute::operations},
    {"second_layers", SelectiveRecompute::second_layers}};

// Kernel of flash attention, if the GPU's profile has it.
enum class FlashKernel : std::uint8_t { fa1, fa2, cudnn };
inline constexpr Named<FlashKernel> kFlashKernels[] = {
    {"fa1", FlashKernel::fa1}, {"fa2", FlashKernel::fa2}, {"cudnn", FlashKernel::cudnn}};

// The tensor that a fused cross-entropy works on: a copy of the logits in fp32, in place; the logits themselves, with
// the gradient in another tensor; the logits, which the gradient overwrites.
enum class LossTensor : std::uint8_t { copy, logits, in_place };
inline constexpr Named<LossTensor> kLossTensors[] = {
    {"copy", LossTensor::copy}, {"logits", LossTensor::logits}, {"in_place", LossTensor::in_place}};

// Pipeline sends of tensors that all tensor ranks hold alike: for which of them each rank sends only a share, and the
// receivers gather the shares.
enum class ScatteredSends : std::uint8_t { none, activations, all };
inline constexpr Named<ScatteredSends> kScatteredSends[] = {
    {"none", ScatteredSends::none}, {"activations", ScatteredSends::activations}, {"all", ScatteredSends::all}};

// CUDA_DEVICE_MAX_CONNECTIONS=1: kernels of all streams begin in the order of their launches. before_blackwell: only on
// older GPUs, with tensor or context ranks.
enum class OneQueue : std::uint8_t { never, before_blackwell, always };
inline constexpr Named<OneQueue> kOneQueues[] = {
    {"never", OneQueue::never}, {"before_blackwell", OneQueue::before_blackwell}, {"always", OneQueue::always}};

// How the mean of gradients over data ranks is taken. none: in the loss or by the reduction; scale: by a pass over the
// gradients before the reduction; copy: into a bucket, divided, and back.
enum class Averaging : std::uint8_t { none, scale, copy };
inline constexpr Named<Averaging> kAveragings[] = {
    {"none", Averaging::none}, {"scale", Averaging::scale}, {"copy", Averaging::copy}};

// The same for gradients that are reduced unit by unit. scale_or_premultiply: as scale; for fp32 gradients NCCL
// multiplies.
enum class UnitAveraging : std::uint8_t { none, scale, scale_or_premultiply };
inline constexpr Named<UnitAveraging> kUnitAveragings[] = {
    {"none", UnitAveraging::none},
    {"scale", UnitAveraging::scale},
    {"scale_or_premultiply", UnitAveraging::scale_or_premultiply}};

// Additional copies of the units that sharding gathers and reduces. parameters: gathered shards are copied into the
// weights, and gradients side by side before they are reduced, widened in the same pass; gradients: the weights'
// gradients are joined in one tensor before they are widened.
enum class UnitCopies : std::uint8_t { none, parameters, gradients };
inline constexpr Named<UnitCopies> kUnitCopies[] = {
    {"none", UnitCopies::none}, {"parameters", UnitCopies::parameters}, {"gradients", UnitCopies::gradients}};

// Sharded parameters that stay gathered from forward to backward: none; the last unit; or all of the root unit of FSDP,
// which has both ends of the model.
enum class KeptUnits : std::uint8_t { none, last, ends };
inline constexpr Named<KeptUnits> kKeptUnits[] = {
    {"none", KeptUnits::none}, {"last", KeptUnits::last}, {"ends", KeptUnits::ends}};

// How the optimizer's moments are allocated. flat: two tensors, made at the first update; by_weight: two a weight, also
// made then; at_start: two tensors, made before the first step.
enum class MomentTensors : std::uint8_t { flat, by_weight, at_start };
inline constexpr Named<MomentTensors> kMomentTensors[] = {
    {"flat", MomentTensors::flat}, {"by_weight", MomentTensors::by_weight}, {"at_start", MomentTensors::at_start}};

// How gradients are allocated if they are as wide as weights. flat: one buffer; by_weight: a tensor a weight, from its
// first gradient of a step until the update.
enum class GradientTensors : std::uint8_t { flat, by_weight };
inline constexpr Named<GradientTensors> kGradientTensors[] = {{"flat", GradientTensors::flat},
                                                              {"by_weight", GradientTensors::by_weight}};

// The figure that the stack's log reports as peak memory.
enum class LoggedMemory : std::uint8_t { allocated, reserved, device };
inline constexpr Named<LoggedMemory> kLoggedMemories[] = {
    {"allocated", LoggedMemory::allocated}, {"reserved", LoggedMemory::reserved}, {"device", LoggedMemory::device}};

// The precision in which every data rank keeps all master weights, even though states are sharded.
inline constexpr Named<std::optional<Precision>> kWholeMasters[] = {
    {"none", std::nullopt}, {"bf16", Precision::bf16}, {"fp16", Precision::fp16}};

}  // namespace orrery
