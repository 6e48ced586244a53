// This header has the properties of a training stack that take one of a few values; each value has a name in specs and
// data files.
#pragma once

#include <cstdint>
#include <optional>

#include "models/base/names.h"
#include "models/base/precision.h"

namespace orrery {

// StageRule says how layers are assigned to pipeline stages if the spec does not say.
enum class StageRule : std::uint8_t { even, even_with_embedding, by_cost, by_cost_nanotron, by_parameters };
inline constexpr Named<StageRule> kStageRules[] = {{"even", StageRule::even},
                                                   {"even_with_embedding", StageRule::even_with_embedding},
                                                   {"by_cost", StageRule::by_cost},
                                                   {"by_cost_nanotron", StageRule::by_cost_nanotron},
                                                   {"by_parameters", StageRule::by_parameters}};

// InterleaveGroup is the default of strategy.interleave_group, the number of micro-batches that a chunk (virtual stage)
// runs before the stage turns to its next chunk. stages: as many micro-batches as there are pipeline stages. rounds:
// the m micro-batches of a step are cut into m / stages equal groups (rounded down, at least one).
enum class InterleaveGroup : std::uint8_t { stages, rounds };
inline constexpr Named<InterleaveGroup> kInterleaveGroups[] = {{"stages", InterleaveGroup::stages},
                                                               {"rounds", InterleaveGroup::rounds}};

// SelectiveRecompute says which parts of a layer `recompute: selective` recomputes. attention: the core of attention.
// operations: all operations except attention and every second matrix product. second_layers: every second layer,
// completely.
enum class SelectiveRecompute : std::uint8_t { attention, operations, second_layers };
inline constexpr Named<SelectiveRecompute> kSelectiveRecomputes[] = {
    {"attention", SelectiveRecompute::attention},
    {"operations", SelectiveRecompute::operations},
    {"second_layers", SelectiveRecompute::second_layers}};

// The FlashAttention kernel that the training stack runs; it is assumed only if the GPU's profile has measured rates of
// this kernel.
// ck: Composable Kernel's and AITER's kernels, which Transformer Engine and flash-attn run on AMD's GPUs; aotriton: the
// kernels of PyTorch's scaled_dot_product_attention there.
enum class FlashKernel : std::uint8_t { fa1, fa2, cudnn, ck, aotriton };
inline constexpr Named<FlashKernel> kFlashKernels[] = {{"fa1", FlashKernel::fa1},
                                                       {"fa2", FlashKernel::fa2},
                                                       {"cudnn", FlashKernel::cudnn},
                                                       {"ck", FlashKernel::ck},
                                                       {"aotriton", FlashKernel::aotriton}};

// ExpertKernels says whose kernels run the experts' products of a model that generates text: those of the GPU's
// profile, or those of a framework whose kernels were measured.
enum class ExpertKernels : std::uint8_t { profile, trtllm, vllm, sglang, marlin };
inline constexpr Named<ExpertKernels> kExpertKernels[] = {{"profile", ExpertKernels::profile},
                                                          {"trtllm", ExpertKernels::trtllm},
                                                          {"vllm", ExpertKernels::vllm},
                                                          {"sglang", ExpertKernels::sglang},
                                                          {"marlin", ExpertKernels::marlin}};

// InputCasts says which kernels of a stack that generates text turn the inputs of 8-bit products with a tensor's scale
// into 8 bits. apart: a kernel before each product. compiled: torch.compile fuses it with norms and activations, and
// one kernel remains after attention (vLLM; SGLang, whose sgl-kernel has per_token_quant_fp8 and per_tensor_quant_fp8,
// casts apart). fused: attention and activations write 8 bits, and so do norms that are one kernel with the all-reduce
// before them.
enum class InputCasts : std::uint8_t { apart, compiled, fused };
inline constexpr Named<InputCasts> kInputCasts[] = {
    {"apart", InputCasts::apart}, {"compiled", InputCasts::compiled}, {"fused", InputCasts::fused}};

// GraphScope says what CUDA graphs hold where a stack captures any (software.cuda_graphs). step: the whole step. layer:
// a layer. attention: the first half of a layer, with its norm and its residual sum. router: of a layer with experts
// the norm before them, shared experts that no transfer overlaps, the router, and what sorts the tokens for the
// transfer to the experts. The host launches all other kernels one by one, those of layers whose attention and MLP are
// side by side too (Megatron-Core's --cuda-graph-scope: full_iteration; attn; moe_router with moe_preprocess). What
// graphs' own memory pools hold is not counted.
enum class GraphScope : std::uint8_t { step, layer, attention, router, attention_and_router };
inline constexpr Named<GraphScope> kGraphScopes[] = {{"step", GraphScope::step},
                                                     {"layer", GraphScope::layer},
                                                     {"attention", GraphScope::attention},
                                                     {"router", GraphScope::router},
                                                     {"attention_and_router", GraphScope::attention_and_router}};

// LossTensor says which tensor a fused cross-entropy kernel works on. copy: an fp32 copy of the logits, which the
// gradient overwrites. logits: the logits themselves; the gradient is written to another tensor. in_place: the logits
// themselves, which the gradient overwrites.
enum class LossTensor : std::uint8_t { copy, logits, in_place };
inline constexpr Named<LossTensor> kLossTensors[] = {
    {"copy", LossTensor::copy}, {"logits", LossTensor::logits}, {"in_place", LossTensor::in_place}};

// EightBitAttention says in which precisions of 8 bits and fewer the products of attention are in 8 bits too.
enum class EightBitAttention : std::uint8_t { never, nvfp4, always };
inline constexpr Named<EightBitAttention> kEightBitAttentions[] = {
    {"never", EightBitAttention::never}, {"nvfp4", EightBitAttention::nvfp4}, {"always", EightBitAttention::always}};

// TensorOverlap says how products of layers overlap with transfers of the tensor group (strategy.overlap.tensor).
// user_buffers: by Transformer Engine's user buffers. symmetric_memory: by PyTorch's asynchronous tensor parallelism,
// which cuts products and transfers into one piece for each rank of the group.
enum class TensorOverlap : std::uint8_t { user_buffers, symmetric_memory };
inline constexpr Named<TensorOverlap> kTensorOverlaps[] = {{"user_buffers", TensorOverlap::user_buffers},
                                                           {"symmetric_memory", TensorOverlap::symmetric_memory}};

// ScatteredSends says which pipeline sends are scattered if all tensor ranks hold equal tensors to send: each rank then
// sends only its share of the tensor, and the receivers gather the shares.
enum class ScatteredSends : std::uint8_t { none, activations, all };
inline constexpr Named<ScatteredSends> kScatteredSends[] = {
    {"none", ScatteredSends::none}, {"activations", ScatteredSends::activations}, {"all", ScatteredSends::all}};

// OneQueue says when CUDA_DEVICE_MAX_CONNECTIONS=1 is set, so that kernels of all streams begin in the order of their
// launches. before_blackwell: only on GPUs of NVIDIA older than Blackwell, and only with tensor or context parallelism.
enum class OneQueue : std::uint8_t { never, before_blackwell, always };
inline constexpr Named<OneQueue> kOneQueues[] = {
    {"never", OneQueue::never}, {"before_blackwell", OneQueue::before_blackwell}, {"always", OneQueue::always}};

// Averaging says how the mean of gradients over data ranks is taken. none: no pass divides gradients, because the loss
// or the reduction takes the mean; scale: one pass divides the gradients before the reduction; copy: gradients are
// copied into a bucket, divided, reduced and copied back.
enum class Averaging : std::uint8_t { none, scale, copy };
inline constexpr Named<Averaging> kAveragings[] = {
    {"none", Averaging::none}, {"scale", Averaging::scale}, {"copy", Averaging::copy}};

// UnitAveraging says how the mean over data ranks is taken if gradients are reduced unit by unit (FSDP, ZeRO-3). none:
// no pass divides gradients, because the loss or the reduction takes the mean; scale: one pass divides the gradients
// before the reduction; scale_or_premultiply: as scale, but fp32 gradients are multiplied by NCCL within the reduction.
enum class UnitAveraging : std::uint8_t { none, scale, scale_or_premultiply };
inline constexpr Named<UnitAveraging> kUnitAveragings[] = {
    {"none", UnitAveraging::none},
    {"scale", UnitAveraging::scale},
    {"scale_or_premultiply", UnitAveraging::scale_or_premultiply}};

// UnitCopies says which additional memcpys there are if parameters are gathered and reduced unit by unit (FSDP,
// ZeRO-3). none: no memcpy. parameters: gathered shards are copied into the weights, and gradients are copied into one
// contiguous buffer, and cast to the precision of the reduction in the same pass, before they are reduced. gradients:
// gradients of the weights are copied into one tensor before that tensor is cast.
enum class UnitCopies : std::uint8_t { none, parameters, gradients };
inline constexpr Named<UnitCopies> kUnitCopies[] = {
    {"none", UnitCopies::none}, {"parameters", UnitCopies::parameters}, {"gradients", UnitCopies::gradients}};

// KeptUnits says which sharded parameters stay gathered from forward to backward. none: no parameters; last: those of
// the last FSDP unit; ends: those of FSDP's root unit, which has the embedding and the output.
enum class KeptUnits : std::uint8_t { none, last, ends };
inline constexpr Named<KeptUnits> kKeptUnits[] = {
    {"none", KeptUnits::none}, {"last", KeptUnits::last}, {"ends", KeptUnits::ends}};

// MomentTensors says how the optimizer's moments are allocated. flat: two tensors, allocated at the first update;
// by_weight: two tensors for each weight, allocated at the first update; at_start: two tensors, allocated before the
// first step.
enum class MomentTensors : std::uint8_t { flat, by_weight, at_start };
inline constexpr Named<MomentTensors> kMomentTensors[] = {
    {"flat", MomentTensors::flat}, {"by_weight", MomentTensors::by_weight}, {"at_start", MomentTensors::at_start}};

// GradientTensors says how gradients are allocated if they have the data type of the weights. flat: one buffer;
// by_weight: one tensor for each weight, from its first gradient of a step until the update.
enum class GradientTensors : std::uint8_t { flat, by_weight };
inline constexpr Named<GradientTensors> kGradientTensors[] = {{"flat", GradientTensors::flat},
                                                              {"by_weight", GradientTensors::by_weight}};

// LoggedMemory is the figure that the stack's log reports as peak memory: bytes of tensors (allocated), bytes that the
// caching allocator holds (reserved), or all memory in use on the GPU (device).
enum class LoggedMemory : std::uint8_t { allocated, reserved, device };
inline constexpr Named<LoggedMemory> kLoggedMemories[] = {
    {"allocated", LoggedMemory::allocated}, {"reserved", LoggedMemory::reserved}, {"device", LoggedMemory::device}};

// The precision of unsharded master weights: some stacks keep them on every data rank although the optimizer states are
// sharded; none: master weights are sharded too.
inline constexpr Named<std::optional<Precision>> kWholeMasters[] = {
    {"none", std::nullopt}, {"bf16", Precision::bf16}, {"fp16", Precision::fp16}};

}  // namespace orrery
