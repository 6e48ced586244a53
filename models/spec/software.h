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

// The properties of a training stack that change a step, from models/data/software/<name>.json (each with its source
// there). They are features: nothing here multiplies a time. A spec may set any of them: software: {profile:
// torchtitan, compile: true}.
struct Software {
  struct Layout {
    std::string rank_order = "tp-cp-ep-dp-pp";  // innermost first
    StageRule stage_rule = StageRule::even;
    std::int64_t vocab_multiple = 1;   // the vocabulary is padded to a multiple of this value * tensor
    std::string schedule = "";         // default where the spec names none, "" = the default of specs
    bool uneven_interleaving = false;  // interleaved: micro-batches need not be a multiple of pipeline
    InterleaveGroup interleave_group = InterleaveGroup::stages;
    SelectiveRecompute selective_recompute = SelectiveRecompute::attention;
    bool sequence_parallel = true;         // default where tensor > 1 and the spec does not say
    bool expert_tensor_is_tensor = false;  // default of expert_tensor: the tensor degree, else 1
    double dropout = 0;                    // default of model.dropout
  };

  struct Kernels {
    Attention attention = Attention::flash;  // default where the spec does not say
    FlashKernel attention_kernel = FlashKernel::fa2;
    bool fused_softmax = true;     // mask, scale and softmax of unfused attention in one kernel
    bool fused_activation = true;  // bias + GeLU, or SwiGLU, in one kernel
    bool fused_residual = true;    // bias + dropout + residual add in one kernel
    bool fused_norm = true;        // a norm is one kernel, else about six
    bool fused_rotary = true;
    std::int64_t attention_copies = 0;  // times that queries, keys and values are copied into another layout
    bool fused_cross_entropy = true;    // logits are read twice, else about seven fp32 passes
    LossTensor fused_loss_on = LossTensor::copy;
    // fp32 tensors as large as the logits that an unfused loss's backward writes
    std::int64_t loss_gradient_copies = 1;
    std::int64_t loss_parallel_copies = 0;  // further such tensors if the logits are sharded over tensor ranks
    bool keeps_logits = false;              // the fp32 logits of an unfused loss are held while its backward runs
    std::int64_t loss_metrics = 0;          // times that a micro-batch's loss is computed again, for metrics
    bool casts_again = false;               // 8-bit products: backward casts the 16-bit input anew, none keeps a copy
    bool fp8_activation_inputs = false;     // 8-bit products: a recomputed activation reads a copy in 8 bits
    bool packs_attention_output = false;    // 8-bit products: the output of fused attention is kept once, in 12 bits
    bool fused_optimizer = true;            // one pass over the states, else a kernel per operation and tensor
    bool fused_clip = false;                // the update multiplies gradients by clip coefficient and loss scale itself
    bool dense_embedding_gradient = true;   // backward of a lookup: a zeroed table of gradients, then added
    bool gradient_accumulation_fusion = true;  // weight gradients add into the fp32 buffer inside the product
    bool compile = false;                      // element-wise chains fuse, fewer launches
    bool cuda_graphs = false;                  // no host cost per kernel inside a step
  };

  struct Communication {
    bool regather_input = true;                // sequence parallel: backward gathers the sharded input again
    bool tensor_reduce_overlaps_wgrad = true;  // backward's tensor collective overlaps with the weight gradient
    std::int64_t nccl_minor = 28;              // NCCL 2.x: 4 has no LL128, before 17 no NVLS (models/cost/nccl/model.h)
    ScatteredSends scattered_sends = ScatteredSends::none;
    // Sequence parallel: the sequence is not the tensors' first dimension, so that gathered tensors are copied into
    // order, and tensors to be scattered are copied side by side for the ranks, except where communication overlaps
    bool sequence_copies = false;
    // The host waits for the tensors that a stage receives before it launches the pass
    bool blocking_receives = false;
    // The host waits for its device when a stage begins a forward: before the token lookup, or with the tensors that it
    // receives
    bool blocking_forwards = false;
    // The host reads the loss after it has launched the update: the time of step_us and rank_us begins when the device
    // has finished
    bool blocking_steps = false;
    // The stages of a pipeline update with the part of the gradient norm that they know, and roll a wrong update back:
    // no stage waits for the others to begin the next step
    bool post_update_validation = false;
    bool batched_p2p = true;  // a send and the receive of the same turn form one NCCL group
    // MiB of gradients in a bucket, 0 = one bucket for all; the default where the spec does not say
    double bucket_MiB = 25;
    // Bucket size of stacks that count elements, whatever their width: this many, and at least bucket_elements_of_rank
    // for each data and context rank; both 0: bucket_MiB holds.
    double bucket_elements = 0;
    double bucket_elements_of_rank = 0;
    bool buckets_for_overlap = false;    // all gradients are one bucket if their reduction does not overlap
    bool sharded_in_one_bucket = false;  // all gradients are one bucket where states are sharded
    bool shards_all_reduce = false;      // stage 1 all-reduces gradients instead of scattering them
    bool overlap_gradient_reduce = true;
    // Sequence parallel: a product of gathered rows begins with this rank's own rows while the other ranks' rows
    // arrive, and then takes the rows of ranks before and after it.
    bool own_rows_first = false;
    bool overlap_sharded = true;  // gradient reduction overlaps also where states are sharded
    OneQueue one_queue = OneQueue::never;
    // A rank has several gradient buckets only in its first chunk, if that is the pipeline's first; any other chunk has
    // one bucket for all its gradients
    bool buckets_on_first_chunk = false;
    bool overlap_parameter_gather = true;
    bool overlap_pipeline = true;
    bool gathers_eight_bit = false;     // eight-bit training: ZeRO-1 gathers matrices in eight bits
    bool keep_gradients_whole = false;  // ZeRO-2: gradients stay whole until the last micro-batch
    // A micro-batch's gradients are added to the sums when all of them are computed; those of the last micro-batch are
    // added as they are computed, for the reduction
    bool accumulates_after_backward = false;
    Averaging gradient_average = Averaging::none;
    UnitAveraging unit_average = UnitAveraging::none;
    // Data parallelism keeps buckets as wide as weights in addition to gradient sums that are wider, except where
    // states are sharded
    bool gradient_buckets_beside = false;
    bool widens_gradient_shards = false;  // FSDP: reduced gradients are kept as wide as the shard that they update
    // The precision in which every data rank keeps all master weights, even though states are sharded
    std::optional<Precision> whole_master;
    // Products that add weight gradients directly to the sums return a dummy tensor to autograd: one that is kept per
    // shape, or a fresh one for the product of the logits
    bool dummy_gradients = false;
    UnitCopies unit_copies = UnitCopies::none;
    KeptUnits kept_units = KeptUnits::none;
  };

  // Microseconds of the launching thread.
  struct Host {
    double launch_us = 4;  // time per kernel launch
    // Time per call of the framework: Python, modules, dispatcher, autograd; none for compiled code
    double call_us = 0;
    // Fraction of call_us that a call takes when autograd makes it: nodes of its graph, mostly without Python;
    // recomputed ops take the full call_us
    double backward_call_share = 1;
    double collective_launch_us = 12;  // time per collective, send or receive, beside its call
    double layer_us = 0;               // time per layer and pass in addition to its kernels
    // Additional time per layer and pass if a pipeline's stages lie on several nodes; multiplied by the tensor ranks
    // (none for one) and the cube root of the stages' nodes
    double far_stage_layer_us = 0;
    double micro_batch_us = 0;  // time per micro-batch and pass
    double step_us = 0;         // time per step
    double rank_us = 0;         // time per step and rank of the job: host work that waits for every rank in turn
    // Time per cudaMalloc or cudaFree, in steps that fit only if the allocator frees cached segments and allocates them
    // again
    double segment_us = 0;
    bool blocking_launches = false;  // CUDA_LAUNCH_BLOCKING: the host waits for every kernel before it goes on
    // Fraction of a layer's issuing time that the host itself is busy, 0 = all; for the rest it runs ahead.
    double host_layer_us = 0;
  };

  struct Memory {
    bool expandable_segments = false;
    MomentTensors moments = MomentTensors::flat;
    GradientTensors gradients = GradientTensors::flat;
    // Number of flat copies in which gradients are reduced at a step's end (1: side by side; 2: side by side for each
    // rank, and those side by side); gathered parameters have one, and an update of sharded states reads a wide copy of
    // its gradients
    std::int64_t flat_copies = 0;
    // Buffers that a collective used are freed only when the host sees the end of the collective
    bool collectives_hold_tensors = false;
    bool gathers_lists = false;  // ZeRO-1 gathers parameters into a tensor per rank, out of one flat buffer: two copies
    double context_MiB = 500;    // CUDA context and loaded kernels
    double workspace_MiB = 32;   // cuBLAS, allocated through the allocator
    // Buffers that the stack keeps for communication where states are sharded, allocated through the allocator too
    double buffers_MiB = 0;
    // A precision, or "precision": as wide as parameters; the default where the spec does not say
    std::string gradient_precision = "fp32";
  };

  struct Log {
    LoggedMemory logged_memory = LoggedMemory::allocated;
    bool logs_first_rank = false;  // the logged figure is the first rank's, instead of the most of all ranks
    // The logged figure is the reserved memory from the end of the last micro-batch on, not over the whole step
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

// A feature of a stack, read and written.
template <class T>
struct SoftwareValue {
  T (*get)(const Software&);
  void (*set)(Software&, const T&);
};
// A feature that takes one of a few named values. what: the kind of value, for messages: "unknown rule odd". set throws
// Error listing the known names.
struct SoftwareWord {
  std::string_view what;
  std::vector<std::string_view> (*names)();
  std::string_view (*get)(const Software&);
  void (*set)(Software&, std::string_view what, std::string_view name);
};
using SoftwareField = std::variant<SoftwareValue<bool>, SoftwareValue<std::int64_t>, SoftwareValue<double>,
                                   SoftwareValue<std::string>, SoftwareWord>;

// One feature: its group in the data files, its key there and in a spec's `software` map, and the field that holds it.
struct SoftwareKey {
  std::string_view group;  // group: "layout", "kernels", "communication", "host", "memory", "log"
  std::string_view name;
  SoftwareField field;
};
std::span<const SoftwareKey> software_keys();

// A stack by name: the settings of its file, which override those of the stack that it is `like`, and the numbers that
// were fitted for it in models/data/fitted.json. Throws Error listing the known names.
Software find_software(std::string_view name);

}  // namespace orrery
