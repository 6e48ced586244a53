#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/base/memory_tier.h"
#include "models/base/names.h"
#include "models/base/precision.h"
#include "models/base/units.h"
#include "models/base/weight_format.h"

namespace orrery {

// How data parallelism shards its states (DDP, ZeRO, FSDP, ...), as the index of a row in the table of sharding.cpp,
// which has the names. `none`, the first row, is DDP, which shards nothing.
enum class Sharding : std::uint8_t { none };
enum class Attention : std::uint8_t { flash, unfused };
inline constexpr Named<Attention> kAttentions[] = {{"flash", Attention::flash}, {"unfused", Attention::unfused}};
enum class OptimizerKind : std::uint8_t { adamw, adam, sgd, lion, adafactor, muon };

// Which matrices of a layer strategy.quantise means: all; those of the MLP, of experts and of shared experts, but not
// those of attention; or those of experts alone.
enum class QuantisedLayers : std::uint8_t { all, feed_forward, experts };
inline constexpr Named<QuantisedLayers> kQuantisedLayers[] = {{"all", QuantisedLayers::all},
                                                              {"feed_forward", QuantisedLayers::feed_forward},
                                                              {"experts", QuantisedLayers::experts}};

// The parts of a layer that backward recomputes instead of keeping their results. `layer` is the complete layer
// ("full").
struct Recompute {
  bool layer = false;
  // whether the core of attention is recomputed: scores, softmax, dropout, product with the values ("selective")
  bool attention = false;
  bool norm = false;
  bool mlp = false;
  bool activation = false;
  bool moe = false;
  bool moe_activation = false;
  bool mla_up_proj = false;
  bool every_second_mlp = false;  // whether the MLP of only every second layer is recomputed
  // whether the parts that the other fields select are recomputed only in every second layer
  bool every_second_layer = false;
  // number of layers that are recomputed in every pipeline stage, counted from its first layer; no value = all layers
  std::optional<std::int64_t> layers;

  bool all_layers() const { return layer && !layers && !every_second_layer; }
  bool any() const {
    return layer || attention || norm || mlp || activation || moe || moe_activation || mla_up_proj || every_second_mlp;
  }
};

struct Overlap {
  bool gradient_reduce = true;   // whether gradients are reduced during backward
  bool parameter_gather = true;  // whether parameters are gathered during the next forward
  // whether tensor parallel transfers are cut into chunks that overlap with matrix products (Transformer Engine's user
  // buffers)
  bool tensor = false;
  bool pipeline = true;  // whether pipeline sends and receives overlap with compute
  // whether pipeline sends and receives also overlap before a stage's first backward and after its last forward
  // (Megatron-Core: overlap_p2p_communication_warmup_flush)
  bool pipeline_ends = true;
  bool expert = false;  // whether token dispatch overlaps with the shared experts (moe_shared_expert_overlap)
  // whether the forward of one micro-batch and the backward of another are interleaved, so that each computes while the
  // transfers of the other run (Megatron-Core: overlap_moe_expert_parallel_comm)
  bool micro_batches = false;
  // whether the parameters of each bucket are all-gathered as soon as the optimizer has updated that bucket, while it
  // updates the other buckets (in a spec, `parameter_gather: update`). The field parameter_gather is then false.
  bool gather_in_update = false;
};

struct Offload {
  MemoryTier optimizer = MemoryTier::device;
  MemoryTier parameters = MemoryTier::device;
  MemoryTier gradients = MemoryTier::device;
  MemoryTier activations = MemoryTier::device;
  // whether the update with one step's gradients runs on the host during the next step's forward and backward
  // (ZeRO-Offload)
  bool delayed_update = false;
  // number of elements of a rank's shards that the host updates and uploads at a time (DeepSpeed's CPU Adam: TILE, 128
  // x 2^20)
  std::int64_t tile = std::int64_t{128} << 20;
  // number of layers whose activations are offloaded; no value = all layers
  std::optional<std::int64_t> activation_layers;
  // number of parts that each weight is cut into; the parts are gathered one by one (ZeRO-Infinity: tiling)
  std::int64_t tiling = 1;

  bool any() const {
    return optimizer != MemoryTier::device || parameters != MemoryTier::device || gradients != MemoryTier::device ||
           activations != MemoryTier::device;
  }
};

struct Optimizer {
  OptimizerKind kind = OptimizerKind::adamw;
  Bytes master_bytes = 4;  // bytes of one element of the master weights
  Bytes moment_bytes = 4;  // bytes of one element of each moment
  // whether moments have one byte an element, with an fp32 scale for each block of kMomentBlock elements (Dettmers et
  // al. 2022, 2110.02861); moment_bytes is then 1
  bool eight_bit = false;

  // Returns the number of moments that the optimizer keeps of every weight element. Adafactor keeps sums of rows and
  // columns instead, so its number is 0. Muon's number is 1, although weights that it leaves to AdamW have a second
  // moment too (optimizer_states.h).
  int moments() const;
};

// The number of elements that share one scale in eight-bit optimizer moments, as in bitsandbytes since version 0.45
// (functional.py, quantize_blockwise); earlier versions have 2,048.
inline constexpr std::int64_t kMomentBlock = 256;

// UnitRule says which weights form a unit: ZeRO-3 and FSDP gather the weights of a unit together, and reduce their
// gradients together.
struct UnitRule {
  bool model = false;       // whether all weights of a (virtual) pipeline stage are one unit
  std::int64_t layers = 1;  // number of consecutive layers in a unit
  // the layers of each unit, if the spec lists them; a layer that no list names is a unit of its own
  std::vector<std::vector<std::int64_t>> lists;

  // Returns whether each layer, and each end of the model (embedding, output), is a unit of its own.
  bool by_layer() const { return !model && layers == 1 && lists.empty(); }
};

// The options of ZeRO++ (Wang et al. 2023, 2306.10209), which quantises the transfers of ZeRO-3. A number of bits of 0
// means that a transfer is not quantised.
struct ZeroQuantize {
  std::int64_t weight_bits = 0;    // bits of a weight that is gathered in forward
  std::int64_t gradient_bits = 0;  // bits of a gradient that is reduced, by all-to-alls in the node and between nodes
  // whether every node holds a second copy of all weights, sharded over its ranks, from which backward gathers weights
  // inside the node
  bool secondary_shards = false;

  bool any() const { return weight_bits > 0 || gradient_bits > 0 || secondary_shards; }
};

// Parameter servers, which hold the weights: workers push gradients to them and pull weights from them.
struct ParameterServer {
  std::int64_t servers = 1;
  bool colocated = true;            // whether servers run on the workers' nodes
  std::string mode = "sync";        // how far workers wait for each other: sync | async | ssp (bounded staleness)
  std::int64_t staleness = 0;       // number of steps by which a worker may be ahead of the slowest (ssp)
  std::int64_t replicas = 1;        // number of servers that hold the same shard and form a chain
  std::int64_t snapshot_every = 0;  // number of steps between snapshots; 0 = never
};

// Checkpoints of weights and optimizer states, from which a run goes on after a failure.
struct Checkpoint {
  std::int64_t every = 0;   // number of steps between checkpoints
  bool to_storage = false;  // whether checkpoints go to the storage that all nodes share; else to each node's disks
  // whether training continues as soon as all states are copied to host memory, while the hosts write the checkpoint;
  // else it waits until the checkpoint is written
  bool asynchronous = true;
};

// A bucket size in MiB that no model's gradients exceed, so that all gradients are one bucket.
inline constexpr double kOneBucket_MiB = 1e9;

// How training is distributed over GPUs. Degrees multiply: gpus = tensor * pipeline * context * data; if stage_replicas
// is set, its sum takes the place of `pipeline`. After load_spec() every value is set and the combination is valid.
struct Strategy {
  std::int64_t tensor = 1;
  std::string tensor_kind = "1d";  // kind of tensor parallelism: 1d | 2d | 2.5d | 3d
  std::int64_t tensor_depth = 1;   // 2.5d tensor parallelism: depth d of the q * q * d grid of ranks
  bool sequence_parallel = false;
  std::int64_t pipeline = 1;
  std::int64_t virtual_stages = 1;
  // name of the pipeline schedule; "": the default; "file": the order of passes is in schedule_text
  std::string schedule = "";
  // number of micro-batches that a chunk (virtual stage) runs before the pipeline stage turns to its next chunk; 0 =
  // the training framework's default
  std::int64_t interleave_group = 0;
  // interleaved schedule: number of forwards before the first backward, in addition to the usual number
  std::int64_t extra_warm_up = 0;
  // pipedream schedule: whether every stage runs a micro-batch with the version of the weights that the first stage
  // used
  bool vertical_sync = false;
  // name of the file with the order of each stage's forward and backward passes, as the spec states it: schedule:
  // {file: order.txt}
  std::string schedule_file;
  std::string schedule_text;  // contents of the file `schedule_file`
  // number of layers of each virtual stage, in model order; empty = by the training framework's rule (StageRule)
  std::vector<std::int64_t> stage_layers;
  // for each stage, the number of ranks that share the samples of its micro-batches (DAPPLE); empty = one rank for each
  // stage
  std::vector<std::int64_t> stage_replicas;
  std::int64_t context = 1;
  std::string context_kind = "ring";  // kind of context parallelism: ring | allgather | ulysses | mixed
  // number of groups in the ring of ring attention; context = context_ring * context_ulysses
  std::int64_t context_ring = 1;
  std::int64_t context_ulysses = 1;
  // whether each group of ranks in the ring of ring attention has one part of the sequence's first half and one of its
  // second half (context_order: zigzag, else contiguous)
  bool context_zigzag = true;
  std::int64_t expert = 1;
  std::int64_t expert_tensor = 1;
  std::int64_t data = 1;
  // order of the dimensions in the numbering of ranks, innermost first; "ep" may be left out
  std::string rank_order = "tp-cp-ep-dp-pp";
  Sharding sharding = Sharding::none;
  // number of ranks that together hold one set of shards (hsdp); 0 = all data * context ranks
  std::int64_t shard_group = 0;
  std::optional<ParameterServer> parameter_server;
  // whether gradients are reduced over the data ranks only with the last micro-batch of an update, not with every
  // micro-batch; no value: as the training framework does (gradients.h)
  std::optional<bool> no_sync;
  UnitRule units;
  ZeroQuantize zero_quantize;
  double bucket_MiB = kOneBucket_MiB;  // MiB of gradients in a bucket; 0: each parameter has a bucket of its own
  std::int64_t prefetch_units = 1;     // number of units (UnitRule) that are gathered ahead of use
  std::int64_t units_in_flight = 2;    // largest number of units (UnitRule) that are gathered at the same time
  std::int64_t micro_batch = 1;
  std::int64_t global_batch = 1;
  Precision precision = Precision::bf16;
  // strategy.quantise. weights: the format of the layers' matrices: where text is generated they are stored in it; in
  // training, forward rounds them to it before each product (quantisation-aware training). inputs: in training, the
  // format to which forward rounds the inputs of these products.
  WeightFormat weights, inputs;
  // the layers' matrices that have this format: the others are as wide as activations, as are the inputs of their
  // products (text generation)
  QuantisedLayers quantised_layers = QuantisedLayers::all;
  // whether the scale of a matrix is that of the range which changes the histogram of its magnitudes the
  // least (calibration: kl), and larger weights are clipped; else that of the largest magnitude (minmax)
  bool clips_by_divergence = false;
  Precision gradient_precision = Precision::fp32;
  // whether the 16-bit gradients that backward writes are kept beside the fp32 sums that they are added to
  bool keep_16bit_gradients = false;
  Optimizer optimizer;
  double clip = 1.0;  // limit of the gradient norm; 0 = no gradient norm is computed
  Recompute recompute;
  bool partition_activations = false;
  // whether the inputs of recomputed layers lie in one buffer, which is allocated before training
  bool contiguous_activations = false;
  bool fused_buffers = false;  // whether gradients are copied into one buffer of a bucket's size, and reduced there
  Attention attention = Attention::flash;
  Overlap overlap;
  Offload offload;
  std::optional<Checkpoint> checkpoint;

  bool on_grid() const { return tensor > 1 && tensor_kind != "1d"; }
  bool on_cube() const { return tensor > 1 && tensor_kind == "3d"; }
  std::int64_t replicas_of(std::int64_t stage) const { return stage_replicas.empty() ? 1 : stage_replicas[stage]; }
  // Returns the position of a stage's first rank in the pipeline group, in which a stage has one position for each of
  // the ranks that share its samples (stage_replicas). places() is the number of all positions.
  std::int64_t first_position(std::int64_t stage) const;
  std::int64_t places() const { return first_position(pipeline); }
  // These functions are for pipelines whose stages may consist of several ranks (stage_replicas). row_parts: the number
  // of parts into which the tensor ranks cut the rows (token positions) of the activations of such a pipeline.
  // ends_unlike: whether the first and the last stage have different numbers of ranks.
  std::int64_t row_parts() const { return !stage_replicas.empty() && sequence_parallel ? tensor : 1; }
  bool ends_unlike() const { return replicas_of(0) != replicas_of(pipeline - 1); }
  // Returns the number of ranks that compute losses of different tokens.
  std::int64_t loss_ranks() const { return data * context * tensor_depth * replicas_of(pipeline - 1); }
  std::int64_t gpus() const { return tensor * places() * context * data; }
  std::int64_t servers() const { return parameter_server ? parameter_server->servers * parameter_server->replicas : 0; }
  std::int64_t ranks() const { return gpus() + servers(); }  // number of processes, parameter servers included
  std::int64_t micro_batches() const { return global_batch / (micro_batch * data); }
};

// Returns the side q of the grid that the tensor ranks form: q * q (2d), q * q * tensor_depth (2.5d), q * q * q (3d); 0
// if the tensor degree is none of these products.
std::int64_t grid_side(const Strategy& s);

// Returns whether a weight of a layer, by its name and number of columns, is a matrix that strategy.quantise stores or
// rounds: those of attention, MLP and experts as far as `layers` says, but not the router and the gate of shared
// experts, whose products stay in the width of activations.
bool is_quantised(std::string_view parameter, std::int64_t in, QuantisedLayers layers);

}  // namespace orrery
