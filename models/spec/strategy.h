#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/base/memory_tier.h"
#include "models/base/names.h"
#include "models/base/precision.h"
#include "models/base/units.h"

namespace orrery {

// A data-parallel variant, as the number of its row in the table of sharding.cpp, which has the names; none, the first:
// plain replicas.
enum class Sharding : std::uint8_t { none };
enum class Attention : std::uint8_t { flash, unfused };
inline constexpr Named<Attention> kAttentions[] = {{"flash", Attention::flash}, {"unfused", Attention::unfused}};
enum class OptimizerKind : std::uint8_t { adamw, adam, sgd, lion, adafactor, muon };

// Parts of a layer that backward recomputes instead of keeping. `layer` is the whole layer ("full").
struct Recompute {
  bool layer = false;
  bool attention = false;  // the core: scores, softmax, dropout, product with the values ("selective")
  bool norm = false;
  bool mlp = false;
  bool activation = false;
  bool moe = false;
  bool moe_activation = false;
  bool mla_up_proj = false;
  bool every_second_mlp = false;       // only the MLP of every second layer
  bool every_second_layer = false;     // the parts set here only in every second layer
  std::optional<std::int64_t> layers;  // only so many layers of every stage are recomputed, the first ones

  bool all_layers() const { return layer && !layers && !every_second_layer; }
  bool any() const {
    return layer || attention || norm || mlp || activation || moe || moe_activation || mla_up_proj || every_second_mlp;
  }
};

struct Overlap {
  bool gradient_reduce = true;   // reduce gradients while backward goes on
  bool parameter_gather = true;  // gather parameters while the next forward goes on
  // Tensor-parallel transfers are cut into chunks that overlap with products (user buffers)
  bool tensor = false;
  bool pipeline = true;  // pipeline sends and receives overlap with compute
  // Sends and receives overlap also before a stage's first backward and after its last forward (Megatron-Core:
  // overlap_p2p_communication_warmup_flush)
  bool pipeline_ends = true;
  bool expert = false;         // token dispatch to experts overlaps with the shared experts (moe_shared_expert_overlap)
  bool micro_batches = false;  // a forward and a backward woven, each computing while the other's transfers run
                               // (Megatron-Core: overlap_moe_expert_parallel_comm)
};

struct Offload {
  MemoryTier optimizer = MemoryTier::device;
  MemoryTier parameters = MemoryTier::device;
  MemoryTier gradients = MemoryTier::device;
  MemoryTier activations = MemoryTier::device;
  bool delayed_update = false;  // the update with one step's gradients runs beside the next step's forward and backward
  // Elements of a rank's shards that are updated and uploaded at a time (DeepSpeed's CPU Adam: TILE, 128 x 2^20).
  std::int64_t tile = std::int64_t{128} << 20;
  std::optional<std::int64_t> activation_layers;
  std::int64_t tiling = 1;

  bool any() const {
    return optimizer != MemoryTier::device || parameters != MemoryTier::device || gradients != MemoryTier::device ||
           activations != MemoryTier::device;
  }
};

struct Optimizer {
  OptimizerKind kind = OptimizerKind::adamw;
  Bytes master_bytes = 4;  // bytes of one element of the master copy
  Bytes moment_bytes = 4;  // bytes of one element of each moment
  // Moments of one byte an element, with an fp32 scale for each block of kMomentBlock elements (Dettmers et al. 2022,
  // 2110.02861); moment_bytes is then 1
  bool eight_bit = false;

  // Moments that the optimizer keeps of every element. Adafactor keeps sums of rows and columns instead, and Muon a
  // second moment of those elements alone that AdamW updates (optimizer_states.h).
  int moments() const;
};

// Elements of a block of eight-bit moments: bitsandbytes (functional.py, quantize_blockwise) since version 0.45; 2,048
// before.
inline constexpr std::int64_t kMomentBlock = 256;

// The weights that ZeRO-3 and FSDP gather and reduce together.
struct UnitRule {
  bool model = false;       // all weights of a chunk of layers are one unit
  std::int64_t layers = 1;  // layers of a unit, one after the other
  // Layers of each unit, where a spec lists them; a layer that no list names is a unit of its own
  std::vector<std::vector<std::int64_t>> lists;

  // Whether each layer, and each end of the model, is a unit of its own.
  bool by_layer() const { return !model && layers == 1 && lists.empty(); }
};

// ZeRO++ (Wang et al. 2023, 2306.10209): narrow transfers of ZeRO-3. Bits of 0 leave a transfer as it is.
struct ZeroQuantize {
  std::int64_t weight_bits = 0;    // bits of a weight that is gathered in forward
  std::int64_t gradient_bits = 0;  // bits of a gradient that is reduced, by all-to-alls in the node and between nodes
  bool secondary_shards = false;   // every node holds all weights, cut over its ranks: backward gathers them there

  bool any() const { return weight_bits > 0 || gradient_bits > 0 || secondary_shards; }
};

// Servers that hold the weights: workers push gradients and pull weights.
struct ParameterServer {
  std::int64_t servers = 1;
  bool colocated = true;            // servers run on the workers' nodes
  std::string mode = "sync";        // sync | async | ssp (bounded staleness)
  std::int64_t staleness = 0;       // steps a worker may run ahead (ssp)
  std::int64_t replicas = 1;        // servers that hold the same shard, a chain
  std::int64_t snapshot_every = 0;  // steps between snapshots; 0 = never
};

// A bucket size that no model exceeds: all gradients are reduced together.
inline constexpr double kOneBucket_MiB = 1e9;

// How a model is laid out over GPUs. Degrees multiply: gpus = tensor * pipeline * context * data; with stage_replicas,
// their sum replaces pipeline. After load_spec() every value is set and the combination is valid.
struct Strategy {
  std::int64_t tensor = 1;
  std::string tensor_kind = "1d";  // kind of tensor parallelism: 1d | 2d | 2.5d | 3d
  std::int64_t tensor_depth = 1;   // d of the q * q * d grid of 2.5d
  bool sequence_parallel = false;
  std::int64_t pipeline = 1;
  std::int64_t virtual_stages = 1;
  std::string schedule = "";               // name in the table of schedules ("": the default one), or "file"
  std::int64_t interleave_group = 0;       // micro-batches of a chunk's turn; 0 = the stack's default
  std::int64_t extra_warm_up = 0;          // interleaved: forwards beyond the usual before the first backward
  bool vertical_sync = false;              // pipedream: all stages use the weights that the first one has
  std::string schedule_file;               // file of an order as the spec names it, schedule: {file: order.txt}
  std::string schedule_text;               // contents of that file
  std::vector<std::int64_t> stage_layers;  // layers per virtual stage in model order; empty = the profile's rule
  // For each stage, the number of ranks that divide its micro-batches among them, sample by sample (DAPPLE); empty =
  // one rank each.
  std::vector<std::int64_t> stage_replicas;
  std::int64_t context = 1;
  std::string context_kind = "ring";  // ring | allgather | ulysses | mixed
  std::int64_t context_ring = 1;      // context = context_ring * context_ulysses
  std::int64_t context_ulysses = 1;
  // Context_order: each ring block has a part of both ends of the sequence (zigzag | contiguous)
  bool context_zigzag = true;
  std::int64_t expert = 1;
  std::int64_t expert_tensor = 1;
  std::int64_t data = 1;
  std::string rank_order = "tp-cp-ep-dp-pp";  // innermost first; "ep" may be left out
  Sharding sharding = Sharding::none;
  std::int64_t shard_group = 0;  // ranks that share one set of shards (hsdp); 0 = all data * context ranks
  std::optional<ParameterServer> parameter_server;
  // Whether gradients are reduced with the last micro-batch alone, or with every one; none: the habit (gradients.h)
  std::optional<bool> no_sync;
  UnitRule units;
  ZeroQuantize zero_quantize;
  double bucket_MiB = kOneBucket_MiB;  // MiB of gradients in a bucket; 0: each parameter has a bucket of its own
  std::int64_t prefetch_units = 1;
  std::int64_t units_in_flight = 2;
  std::int64_t micro_batch = 1;
  std::int64_t global_batch = 1;
  Precision precision = Precision::bf16;
  Precision gradient_precision = Precision::fp32;
  Optimizer optimizer;
  double clip = 1.0;  // largest gradient norm; 0 = no gradient norm is computed
  Recompute recompute;
  bool partition_activations = false;
  bool contiguous_activations = false;  // inputs that recomputed layers keep lie in one buffer, allocated beforehand
  bool fused_buffers = false;           // gradients are copied to one buffer as large as a bucket, and reduced there
  Attention attention = Attention::flash;
  Overlap overlap;
  Offload offload;

  bool on_grid() const { return tensor > 1 && tensor_kind != "1d"; }
  bool on_cube() const { return tensor > 1 && tensor_kind == "3d"; }
  std::int64_t replicas_of(std::int64_t stage) const { return stage_replicas.empty() ? 1 : stage_replicas[stage]; }
  // Positions in a pipeline, where each rank of a stage counts as one: place_of is the position of a stage's first
  // rank; for the stage after the last it is the number of all positions.
  std::int64_t place_of(std::int64_t stage) const;
  std::int64_t places() const { return place_of(pipeline); }
  // For stages of several ranks. row_parts: the number of parts that each rank's rows are cut into over its tensor
  // group. ends_unlike: whether the first stage has another number of ranks than the last one.
  std::int64_t row_parts() const { return !stage_replicas.empty() && sequence_parallel ? tensor : 1; }
  bool ends_unlike() const { return replicas_of(0) != replicas_of(pipeline - 1); }
  // The number of ranks that each compute the loss of different tokens.
  std::int64_t loss_ranks() const { return data * context * tensor_depth * replicas_of(pipeline - 1); }
  std::int64_t gpus() const { return tensor * places() * context * data; }
  std::int64_t servers() const { return parameter_server ? parameter_server->servers * parameter_server->replicas : 0; }
  std::int64_t ranks() const { return gpus() + servers(); }  // all processes, servers included
  std::int64_t micro_batches() const { return global_batch / (micro_batch * data); }
};

// The side q of the grid that the tensor ranks form: q * q (2d), q * q * tensor_depth (2.5d), q * q * q (3d); 0 if
// their number is none of these.
std::int64_t grid_side(const Strategy& s);

}  // namespace orrery
