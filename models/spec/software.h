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

// The habits of a training stack, from models/data/software/<name>.json (each with its source there). Features, not
// fudge: nothing here multiplies a time. A spec may set any of them: software: {profile: torchtitan, compile: true}.
struct Software {
  struct Layout {
    std::string rank_order = "tp-cp-ep-dp-pp";  // innermost first
    StageRule stage_rule = StageRule::even;
    std::int64_t vocab_multiple = 1;   // the vocabulary is padded to a multiple of this value * tensor
    std::string schedule = "";         // habit where the spec is silent, "" = the default of specs
    bool uneven_interleaving = false;  // interleaved: micro-batches need not be a multiple of pipeline
    InterleaveGroup interleave_group = InterleaveGroup::stages;
    SelectiveRecompute selective_recompute = SelectiveRecompute::attention;
    bool sequence_parallel = true;         // habit where tensor > 1 and the spec is silent
    bool expert_tensor_is_tensor = false;  // habit of expert_tensor: the tensor degree, else 1
    double dropout = 0;                    // habit of model.dropout where the spec is silent
  };

  struct Kernels {
    Attention attention = Attention::flash;  // habit where the spec is silent
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
    std::int64_t loss_parallel_copies = 0;  // further such tensors where the logits are cut over tensor ranks
    bool keeps_logits = false;              // the fp32 logits of an unfused loss are held while its backward runs
    std::int64_t loss_metrics = 0;          // times that a micro-batch's loss is computed again, for metrics
    bool casts_again = false;               // 8-bit products: backward casts the 16-bit input anew, none keeps a copy
    bool fp8_activation_inputs = false;     // 8-bit products: an activation that runs again reads a copy in 8 bits
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
    bool tensor_reduce_overlaps_wgrad = true;  // backward's tensor collective runs under the weight gradient
    std::int64_t nccl_minor = 28;              // NCCL 2.x: 4 has no LL128, before 17 no NVLS (models/cost/nccl/model.h)
    ScatteredSends scattered_sends = ScatteredSends::none;
    // Sequence parallel: the sequence is not the tensors' first dimension, so that gathered tensors are copied into
    // place, and tensors to be scattered are copied side by side for the ranks, but where communication overlaps
    bool sequence_copies = false;
    // The host waits for the tensors that a stage receives before it launches the pass
    bool blocking_receives = false;
    // The host waits for its device where a stage begins a forward: before it looks tokens up, or with the tensors that
    // it receives
    bool blocking_forwards = false;
    // The host reads the loss when it has launched the update: the time of step_us and rank_us follows when its device
    // has ended
    bool blocking_steps = false;
    // a pipeline's stages update by what they know of the gradient norm, and roll a wrong update back: none waits for
    // the other stages to begin the next step
    bool post_update_validation = false;
    bool batched_p2p = true;  // a send and the receive of the same turn form one NCCL group
    // MiB of gradients in a bucket, 0 = one bucket for all; habit where the spec is silent
    double bucket_MiB = 25;
    // Bucket size for stacks that count elements, whatever their width: so many, and at least so many for each data and
    // context rank; both 0: bucket_MiB holds.
    double bucket_elements = 0;
    double bucket_elements_of_rank = 0;
    bool buckets_for_overlap = false;    // all gradients are one bucket where nothing runs beside their reduction
    bool sharded_in_one_bucket = false;  // all gradients are one bucket where states are sharded
    bool shards_all_reduce = false;      // stage 1 all-reduces gradients instead of scattering them
    bool overlap_gradient_reduce = true;
    // Sequence parallel: a product of gathered rows begins with this rank's own rows while the other ranks' rows come,
    // and then takes the rows of ranks before and behind it.
    bool own_rows_first = false;
    bool overlap_sharded = true;  // gradient reduction overlaps also where states are sharded
    OneQueue one_queue = OneQueue::never;
    // a rank has buckets of gradients in its first chunk, where that is the pipeline's first; any other chunk has one
    // bucket for all its gradients
    bool buckets_on_first_chunk = false;
    bool overlap_parameter_gather = true;
    bool overlap_pipeline = true;
    bool gathers_eight_bit = false;     // eight-bit training: ZeRO-1 gathers matrices in eight bits
    bool keep_gradients_whole = false;  // ZeRO-2: gradients stay whole until the last micro-batch
    // a micro-batch's gradients are added to the sums once all of them are there; the last micro-batch's gradients are
    // added as they come, for the reduction
    bool accumulates_after_backward = false;
    Averaging gradient_average = Averaging::none;
    UnitAveraging unit_average = UnitAveraging::none;
    // Data parallelism keeps buckets as wide as weights beside gradient sums that are wider, but where states are
    // sharded
    bool gradient_buckets_beside = false;
    bool widens_gradient_shards = false;  // FSDP: reduced gradients are kept as wide as the shard that they update
    // the precision in which every data rank keeps all master weights, though states are sharded
    std::optional<Precision> whole_master;
    // Weight gradient products that add to the sums hand autograd one kept tensor per shape, the product of the logits
    // a fresh one
    bool dummy_gradients = false;
    UnitCopies unit_copies = UnitCopies::none;
    KeptUnits kept_units = KeptUnits::none;
  };

  // Microseconds of the launching thread.
  struct Host {
    double launch_us = 4;  // time per kernel launch
    // Time per call of the framework: Python, modules, dispatcher, autograd; none for compiled code
    double call_us = 0;
    // Part of call_us for a call that autograd makes: nodes of its graph, mostly without Python; ops that run again in
    // backward are called as in forward
    double backward_call_share = 1;
    double collective_launch_us = 12;  // time per collective, send or receive, beside its call
    double layer_us = 0;               // time per layer and pass beyond its kernels
    // time per layer and pass where a pipeline's stages lie on several nodes, times tensor ranks (none for one) and the
    // cube root of the stages' nodes
    double far_stage_layer_us = 0;
    double micro_batch_us = 0;  // time per micro-batch and pass
    double step_us = 0;         // time per step
    double rank_us = 0;         // time per step and rank of the job: host work that waits for every rank in turn
    // time per cudaMalloc or cudaFree of a step that fits only if the allocator gives cached segments back and takes
    // them again
    double segment_us = 0;
    bool blocking_launches = false;  // CUDA_LAUNCH_BLOCKING: the host waits for every kernel before it goes on
    // Part of a layer's issuing time that the host itself needs, 0 = all; for the rest it runs ahead.
    double host_layer_us = 0;
  };

  struct Memory {
    bool expandable_segments = false;
    MomentTensors moments = MomentTensors::flat;
    GradientTensors gradients = GradientTensors::flat;
    // Flat copies in which gradients are reduced at a step's end (1: side by side; 2: side by side for each rank, and
    // those side by side); gathered parameters have one, and an update of sharded states reads a wide copy of its
    // gradients
    std::int64_t flat_copies = 0;
    // Buffers that a collective used return to the allocator when the host sees its end
    bool collectives_hold_tensors = false;
    bool gathers_lists = false;  // ZeRO-1 gathers parameters into a tensor a rank, out of one buffer of all: two copies
    double context_MiB = 500;    // CUDA context and loaded kernels
    double workspace_MiB = 32;   // cuBLAS, allocated through the allocator
    // Buffers that the stack keeps for communication, allocated through the allocator too, where states are sharded
    double buffers_MiB = 0;
    // a precision, or "precision": as wide as parameters; habit where the spec is silent
    std::string gradient_precision = "fp32";
  };

  struct Log {
    LoggedMemory logged_memory = LoggedMemory::allocated;
    bool logs_first_rank = false;  // the logged figure is the first rank's, instead of the most of all ranks
    // The logged figure is what is reserved from the end of the last micro-batch on, not over the step
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
// A feature that is one of a few words, by its name. what: the kind of word, for refusals: "unknown rule odd". set
// throws Error listing the known names.
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

// A stack by name: the settings of its file, over those of the stack that it is `like`, and the numbers of
// models/data/fitted.json that were fitted for it. Throws Error listing the known names.
Software find_software(std::string_view name);

}  // namespace orrery
