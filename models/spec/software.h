#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "models/base/precision.h"
#include "models/base/units.h"
#include "models/spec/habits.h"
#include "models/spec/strategy.h"

namespace orrery {

// The properties of a training stack (a framework with its libraries) that change a step's time or memory, from
// models/data/software/<name>.json, which states a source for each. No property is merely a factor that scales times. A
// spec may override any of them: software: {profile: torchtitan, compile: true}.
struct Software {
  struct Layout {
    // order of the parallel dimensions in the numbering of ranks, innermost first
    std::string rank_order = "tp-cp-ep-dp-pp";
    StageRule stage_rule = StageRule::even;
    std::int64_t vocab_multiple = 1;  // the vocabulary is padded to a multiple of this value * tensor
    std::string schedule = "";        // name of the pipeline schedule if the spec names none; "" = the general default
    // whether an interleaved schedule takes numbers of micro-batches that are no multiple of the number of stages
    bool uneven_interleaving = false;
    InterleaveGroup interleave_group = InterleaveGroup::stages;
    SelectiveRecompute selective_recompute = SelectiveRecompute::attention;
    bool sequence_parallel = true;  // whether sequence parallelism is the default if tensor > 1
    // whether the default of expert_tensor is the tensor degree; otherwise it is 1
    bool expert_tensor_is_tensor = false;
    double dropout = 0;  // default value of model.dropout
  };

  struct Kernels {
    Attention attention = Attention::flash;  // default value of strategy.attention
    FlashKernel attention_kernel = FlashKernel::fa2;
    ExpertKernels expert_kernels = ExpertKernels::profile;
    bool fused_softmax = true;     // whether mask, scale and softmax of unfused attention are one kernel
    bool fused_activation = true;  // whether bias + GeLU, or SwiGLU, are one kernel
    bool fused_clamp = true;       // whether the kernel of SwiGLU clamps what it reads (Model::activation_clamp)
    bool fused_residual = true;    // whether bias + dropout + residual add are one kernel
    bool fused_norm = true;        // whether a norm is one kernel; otherwise it is about six
    bool fused_rotary = true;
    // number of times that queries, keys and values are copied into another memory layout
    std::int64_t attention_copies = 0;
    // whether the loss reads the logits only twice; otherwise it makes about seven passes in fp32
    bool fused_cross_entropy = true;
    LossTensor fused_loss_on = LossTensor::copy;
    // number of fp32 tensors of the logits' size that the backward of an unfused loss writes
    std::int64_t loss_gradient_copies = 1;
    // number of fp32 tensors of the logits' size that the backward of an unfused loss writes in addition if the logits
    // are sharded over tensor ranks
    std::int64_t loss_parallel_copies = 0;
    bool keeps_logits = false;      // whether the fp32 logits of an unfused loss stay allocated while its backward runs
    std::int64_t loss_metrics = 0;  // number of times that metrics compute a micro-batch's loss again
    // 8-bit matrix products: whether backward casts the 16-bit input again, so that no 8-bit version of it is kept
    bool casts_again = false;
    // 8-bit matrix products: whether a recomputed activation function reads an 8-bit version of its input
    bool fp8_activation_inputs = false;
    // 8-bit matrix products: whether fused attention's output is kept for backward only once, in 12 bits an element,
    // both for attention and for the product that follows
    bool packs_attention_output = false;
    // whether the optimizer makes one pass over the states; otherwise it has one kernel per operation and tensor
    bool fused_optimizer = true;
    // whether the optimizer's kernel itself multiplies gradients by the clip coefficient and divides them by the loss
    // scale, instead of a kernel before it
    bool fused_clip = false;
    // whether backward of the token lookup writes a gradient table of its own, zeroed before, which is then added to
    // the gradients
    bool dense_embedding_gradient = true;
    // whether matrix products that compute weight gradients add their result to the fp32 gradient buffer directly
    bool gradient_accumulation_fusion = true;
    // whether queries, keys and values, and the gate and up projections of an MLP, are linear layers of their own, each
    // with its own product; backward sums the input gradients of layers with the same input
    bool separate_projections = false;
    // 8-bit blocks of 32 on Blackwell: whether the products of all experts are one kernel each, which also adds biases,
    // computes the activation times the router's weights, and casts what goes from one product to the next
    bool fused_experts = false;
    // 8 bits: whether operands have a scale for each row, so that rows and columns are cast apart (torchao's rowwise)
    bool rowwise_scales = false;
    // 8 bits with a scale for each tensor: whether a scale follows from the tensor that is cast, whose largest
    // magnitude is found first (current scaling), and not from the tensors of earlier steps (delayed scaling)
    bool current_scales = false;
    // whether the products of the logits read 8-bit operands, as those of layers do
    bool eight_bit_output = false;
    EightBitAttention eight_bit_attention = EightBitAttention::never;
    bool compile = false;  // whether chains of element-wise ops are fused into fewer kernels
    // whether steps (as far as cuda_graph_scope says), and of generated text passes of one token, run as CUDA graphs,
    // so that the host spends no time per kernel
    bool cuda_graphs = false;
    GraphScope cuda_graph_scope = GraphScope::step;  // what of a training step the graphs hold
    // Generated text: the number of query heads of a key head, with 128 columns each, for which the stack has attention
    // kernels on tensor cores; 0: any number. With another number above 1, CUDA cores compute each query head for
    // itself.
    std::int64_t grouped_attention = 0;
    InputCasts input_casts = InputCasts::apart;
    // Generated text: whether attention's kernel rotates queries and keys itself in passes after those over the
    // prompts; that of latent attention never does
    bool attention_rotates = false;
  };

  struct Communication {
    // sequence parallelism: whether backward gathers the sharded input again, instead of keeping the gathered one
    bool regather_input = true;
    // whether backward's tensor parallel collective overlaps with the matrix product that computes the weight gradient
    bool tensor_reduce_overlaps_wgrad = true;
    TensorOverlap tensor_overlap = TensorOverlap::user_buffers;
    // minor version of NCCL 2.x: 4 has no LL128, versions before 17 no NVLS (models/cost/nccl/model.h)
    std::int64_t nccl_minor = 28;
    // whether small all-reduces are kernels that read the other ranks' buffers (models/cost/direct_all_reduce.h)
    bool direct_all_reduce = false;
    // Generated text: whether all-reduces of the tensor group end with the residual sum and the norm that follow, in
    // one kernel after prompts and in one call of the framework over prompts
    bool all_reduce_norms = false;
    ScatteredSends scattered_sends = ScatteredSends::none;
    // sequence parallelism: whether the sequence is not the first dimension of tensors, so that a gathered tensor is
    // copied into the right order, and a tensor to be scattered is copied so that each rank's part is contiguous; if
    // communication overlaps with matrix products there is no such copy
    bool sequence_copies = false;
    // whether the host waits for the tensors that a stage receives before it launches the forward or backward pass that
    // reads them
    bool blocking_receives = false;
    // whether the host waits until its device is idle whenever a stage begins a forward: on the first stage before the
    // token lookup, on other stages when it waits for the tensors that the stage receives
    bool blocking_forwards = false;
    // Whether the host reads the loss after it has launched the update. This read waits for the device, so that the
    // host's remaining work of a step (step_us, rank_us) begins only when the device has finished the step.
    bool blocking_steps = false;
    // whether pipeline stages update with the part of the gradient norm that they know, and later roll back an update
    // that proves wrong, so that no stage waits for the other stages before it begins the next step
    bool post_update_validation = false;
    // whether a pipeline stage's send and the receive next to it in the schedule form one NCCL group
    bool batched_p2p = true;
    // MiB of gradients in a bucket, 0 = one bucket for all gradients; used if the spec does not say
    double bucket_MiB = 25;
    // bucket size of training stacks that count a bucket's elements, whatever their data type: the larger of
    // bucket_elements and bucket_elements_of_rank * data * context; if both are 0, the size is bucket_MiB
    double bucket_elements = 0;
    double bucket_elements_of_rank = 0;
    // whether all gradients are put in one bucket when their reduction does not overlap with backward
    bool buckets_for_overlap = false;
    bool sharded_in_one_bucket = false;  // whether all gradients are one bucket if optimizer states are sharded
    bool shards_all_reduce = false;      // whether ZeRO-1 all-reduces gradients instead of reduce-scattering them
    bool overlap_gradient_reduce = true;
    // sequence parallelism: whether a matrix product of gathered rows first multiplies this rank's own rows, while the
    // other ranks' rows arrive, then the rows of lower ranks, then those of higher ranks
    bool own_rows_first = false;
    bool overlap_sharded = true;  // whether gradient reduction overlaps with backward also if states are sharded
    OneQueue one_queue = OneQueue::never;
    // whether only the first chunk (virtual stage) of the pipeline has several gradient buckets; any other chunk has
    // one bucket for all its gradients
    bool buckets_on_first_chunk = false;
    bool overlap_parameter_gather = true;
    bool overlap_pipeline = true;
    bool gathers_eight_bit = false;     // whether ZeRO-1 gathers matrices in eight bits when training is in eight bits
    bool keep_gradients_whole = false;  // whether gradients of ZeRO-2 stay unsharded until the last micro-batch
    // whether the gradients of a micro-batch are added to the gradient sums only when the whole backward is done; in
    // the last micro-batch each gradient is added as soon as it is computed, so that the reduction can begin
    bool accumulates_after_backward = false;
    Averaging gradient_average = Averaging::none;
    UnitAveraging unit_average = UnitAveraging::none;
    // whether data parallelism without sharded states keeps a second copy of gradients, buckets in the data type of the
    // weights, beside gradient sums that have more bits
    bool gradient_buckets_beside = false;
    // FSDP: whether reduced gradients are kept in the data type of the parameter shard that they update
    bool widens_gradient_shards = false;
    // the precision of the master weights that every data rank keeps completely although optimizer states are sharded;
    // none: master weights are sharded too
    std::optional<Precision> whole_master;
    // whether matrix products that add weight gradients directly to the gradient sums return to autograd a dummy tensor
    // in place of the gradient: one tensor for each shape is kept, but the product of the logits makes a new one each
    // time
    bool dummy_gradients = false;
    UnitCopies unit_copies = UnitCopies::none;
    KeptUnits kept_units = KeptUnits::none;
  };

  // The times of the host, in microseconds of the thread that launches kernels.
  struct Host {
    double launch_us = 4;  // host time to launch a kernel
    // time per call of the framework (Python, modules, dispatcher, autograd); 0 for compiled code
    double call_us = 0;
    // time of a call that autograd makes, as a fraction of call_us: it can be below 1, because nodes of autograd's
    // graph run mostly without Python; recomputed ops take the full call_us
    double backward_call_share = 1;
    double collective_launch_us = 12;  // host time per collective, send or receive, in addition to call_us
    double layer_us = 0;               // host time per layer and pass, in addition to the launches of its kernels
    // additional host time per layer and pass if a pipeline's stages lie on several nodes; it is multiplied by the
    // number of tensor ranks (by 0 for one rank), and a quarter more for each node but the first of a tensor group
    double far_stage_layer_us = 0;
    double micro_batch_us = 0;  // host time per micro-batch and forward or backward pass
    double step_us = 0;         // host time per step
    // host time per step that is multiplied by the number of ranks of the job: host work that handles one rank after
    // another
    double rank_us = 0;
    // time per cudaMalloc or cudaFree, in steps that fit into memory only if the allocator frees cached segments and
    // allocates them again
    double segment_us = 0;
    // whether the host waits for every kernel before it continues (CUDA_LAUNCH_BLOCKING)
    bool blocking_launches = false;
    // the part, in microseconds, of the time to issue one layer's ops in which the host itself is busy; during the
    // rest, in which the device starts kernels, the host may go on. 0 = the host is busy during all of the time
    double host_layer_us = 0;
  };

  struct Memory {
    bool expandable_segments = false;
    MomentTensors moments = MomentTensors::flat;
    GradientTensors gradients = GradientTensors::flat;
    // number of flat buffers that gradients are copied to when they are reduced at a step's end. 1: all gradients of a
    // reduction are copied to one buffer; 2: the gradients of each data rank's part are first copied to one buffer, and
    // these parts then to a second one. If the number is above 0, gathered parameters also pass through one flat
    // buffer, and an update of sharded states reads its gradients from an fp32 buffer
    std::int64_t flat_copies = 0;
    // whether buffers that a collective used are freed only when the host observes the end of the collective
    bool collectives_hold_tensors = false;
    // whether ZeRO-1 gathers parameters into one flat buffer, then into a tensor for each rank: two memcpys
    bool gathers_lists = false;
    double context_MiB = 500;   // MiB of the CUDA context and of loaded kernels
    double workspace_MiB = 32;  // MiB of the cuBLAS workspace, allocated through the caching allocator
    // whether backward runs in a thread of its own, whose cuBLAS handle has a second workspace
    bool backward_workspace = false;
    // whether the output of the attention block stays allocated until the layer's forward returns, in layers of one
    // residual stream whose MLP follows attention
    bool holds_attention_output = false;
    // whether hosts that compute the loss wait for the device before they issue the update
    bool waits_for_loss = false;
    // MiB of buffers that the training framework keeps for communication if states are sharded, allocated through the
    // caching allocator
    double buffers_MiB = 0;
    // data type of gradients if the spec does not say: a precision, or "precision" for the data type of the parameters
    std::string gradient_precision = "fp32";
  };

  struct Log {
    LoggedMemory logged_memory = LoggedMemory::allocated;
    // whether the logged peak memory is that of the first rank, instead of the largest of all ranks
    bool logs_first_rank = false;
    // whether the logged peak memory is the largest amount of reserved memory after the end of the last micro-batch,
    // instead of during the complete step
    bool logs_update = false;
  };

  std::string name = "orrery";
  Layout layout;
  Kernels kernels;
  Communication communication;
  Host host;
  Memory memory;
  Log log;
};

// A property of a training stack, with functions to read and to write it.
template <class T>
struct SoftwareValue {
  T (*get)(const Software&);
  void (*set)(Software&, const T&);
};
// A property of a training stack that takes one of a few named values. what: the word for such a value in messages
// ("rule" in "unknown rule odd"). set throws Error listing the known names.
struct SoftwareWord {
  std::string_view what;
  std::vector<std::string_view> (*names)();
  std::string_view (*get)(const Software&);
  void (*set)(Software&, std::string_view what, std::string_view name);
};
using SoftwareField = std::variant<SoftwareValue<bool>, SoftwareValue<std::int64_t>, SoftwareValue<double>,
                                   SoftwareValue<std::string>, SoftwareWord>;

// One property of a training stack: its group in the data files, its key there and in a spec's `software` map, and
// access to the field that holds its value.
struct SoftwareKey {
  std::string_view group;  // name of the group: "layout", "kernels", "communication", "host", "memory" or "log"
  std::string_view name;
  SoftwareField field;
};
std::span<const SoftwareKey> software_keys();

// Whether CUDA graphs (cuda_graphs) hold a whole step, whole layers, their first halves, or their routers (GraphScope).
bool graphs_step(const Software& software);
bool graphs_layer(const Software& software);
bool graphs_attention(const Software& software);
bool graphs_router(const Software& software);

// Returns a training stack by name: the settings of its file, which override the settings of the stack that it is
// `like`, and the numbers that were fitted for it in models/data/fitted.json. Throws Error listing the known names.
Software find_software(std::string_view name);
// Sets the host's time of a launch to that of the stack on GPUs of a compute capability (10 x major + minor), where
// another was fitted for them.
void take_launch_time_on(int compute_capability, Software& software);

}  // namespace orrery
