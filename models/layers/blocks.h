#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "models/layers/expert_sizes.h"
#include "models/plan/plan.h"
#include "models/spec/gradients.h"
#include "models/spec/sharding.h"
#include "models/spec/spec.h"

namespace orrery {

// Indices of the buffers that hold the weights, gradients and optimizer states of a chunk (the layers that a stage runs
// in one go) across steps. Each is a flat buffer of all weights, in the order of the layers; a buffer that a strategy
// does not need has 0 bytes. If states are sharded, every range of a flat buffer that one collective reduces or gathers
// (a bucket, or an FSDP unit) is cut into as many equal parts as there are ranks, rounded up, and rank i holds the i-th
// part of every range, in the order of the ranges (Piece in placement.h).
enum StateSlot : std::uint16_t {
  kParameters = kWeights,
  kParameterShard,
  kGradients,
  kGradientShard,
  kMaster,
  kMoment1,
  kMoment2,
  kEightBit,  // fp8 copies of all layers' matrices, plain and transposed, cast once a step
  // DistributedDataParallel's averaged copies of the gradients, which are all-reduced in place; with Muon, complete
  // layers of directions; with Adafactor, norms of each tensor
  kBuckets,
  kHostGradients,  // copies of the gradients on the host for the optimizer there, if gradients are summed on the device
  kNextGradients,  // gradients of this step that a delayed weight update reads in the next step
  // Buffers that some training frameworks allocate although nothing reads them: the other ranks' parts of the master
  // weights; the additional bytes of reduced gradients that are cast to a larger data type; the dummy results of
  // products that add directly to gradient sums.
  kOthersMaster,
  kWidenedShard,
  kDummyGradients,
  // Frozen weights (those that do not train), whole or as this rank's shards, unit by unit; their offsets are counted
  // separately from those of trained weights (Frame::frozen_base)
  kFrozen,
  kFrozenShard,
  // ZeRO++: this rank's part of a second copy of all weights, which is sharded over the ranks of one node
  kSecondaryShard,
  kFreshGradients,  // the gradients of the micro-batch in 16 bits, beside their sums (Strategy::keep_16bit_gradients)
  kKeysValues,      // generation: the cached keys and values of the chunk's layers, for all sequences of the rank
  kRecurrentStates  // generation: the states of the chunk's recurrences and their convolutions, for the same sequences
};
inline constexpr std::uint16_t kStateSlots = 20;
// Indices of the buffers of a sharding unit (weights that are gathered and reduced together, as in FSDP): the gathered
// weights; the shard that is sent to gather them (FSDP casts it first); the gradient before it is reduced, and a copy
// of it in the data type of the reduction. With states on the host: this rank's part of the gradients' sum on its way
// to or from the host (kReduced); with states on disks: the host's copies of the parts of weights and gradients
// (kStagedShard, kStagedGradient); FSDP's shard as uploaded from the host, before it is cast (kRaisedShard). kArrived
// and kJoinedGradient are buffers that frameworks copy a unit from or to (Software::Communication::unit_copies).
enum UnitSlot : std::uint16_t {
  kGathered,
  kCastShard,
  kUnitGradient,
  kCastGradient,
  kReduced,
  kStagedShard,
  kStagedGradient,
  kRaisedShard,
  kArrived,
  kJoinedGradient,
  kGatheredFrozen,  // the gathered frozen weights of the unit
  // buffers of ZeRO++'s quantised collectives: the weights that an all-gather receives; the gradients that are sent;
  // the gradients that are received
  kNarrowWeights,
  kNarrowGradients,
  kArrivedGradients
};
inline constexpr std::uint16_t kUnitSlots = 14;
// Indices of the host buffers through which the optimizer's update moves one piece (tile) of a rank's states, if states
// are offloaded: new weights on their way to the device, and copies of the piece of master weights, moments and
// gradients, as far as these lie on disks.
enum TileSlot : std::uint16_t { kTileForward, kTileMaster, kTileMoment1, kTileMoment2, kTileGradient };

// Name of the embedding table, which is also the weight of a tied output.
inline constexpr std::string_view kEmbeddingTable = "embedding.word.weight";

// Indices of the buffers that each rank has once. They hold one number each: the sum of squares of the rank's
// gradients, whether a gradient is not finite, and the loss scale (fp16; the weight update changes it). If updates are
// delayed by one step, kNextNorm is the gradient norm for the next update, and kDueScale the loss scale of the
// gradients that the current update reads. With updates that are validated in the next step, kNormBefore is the norm
// over the stages before this one, and kWholeNorm the norm over all stages. Only kFusedBuffer holds more: gradients
// while they are reduced, bucket by bucket.
enum RankBuffer : std::uint16_t {
  kSquaredNorm,
  kFoundInfinity,
  kLossScale,
  kNextNorm,
  kFusedBuffer,
  kDueScale,
  kNormBefore,
  kWholeNorm
};

// Returns the number of a block's weight elements that its products read in fp8, if the training framework computes
// them in 8 bits.
std::int64_t eight_bit_elements(const Spec& spec, const Block& block);

// Returns whether products in 8 bits need operands with each product's inner dimension innermost, so that the stack
// keeps a transposed copy of an operand of two products. Blackwell's products with one scale a tensor take operands of
// either layout, and Transformer Engine then keeps one copy (pytorch/utils.py, is_non_tn_fp8_gemm_supported; scales of
// blocks of 32 or 16 values lie along the inner dimension). torchao, which casts again, transposes on every GPU.
bool transposes_eight_bit(const Spec& spec);

// The role of a rank in data parallelism. master, replica: rank 0 and the other ranks of torch's DataParallel, where
// rank 0 has all ranks' inputs, outputs and losses. server: the rank holds weights, and runs no block. worker: the role
// of every rank that has none of these.
enum class Duty : std::uint8_t { worker, master, replica, server };

// A vocabulary that is sharded over the stages of a pipeline: the number of stages, the number of barriers between the
// logits and their gradients (Schedule::barriers), the stage that is being built (`stage`), and the stage that receives
// the summed embeddings or sends the hidden states to the others (`root`).
struct SharedVocabulary {
  std::int64_t stages = 1, barriers = 0;
  std::int64_t stage = 0, root = 0;

  bool at_root() const { return stage == root; }
};

// Rows of a micro-batch that a rank sends over a stage boundary to one other rank, or receives from it: `rows` rows,
// from the rank's own row number `first` on. The other rank is `offset` ranks ahead in the pipeline group.
struct Slice {
  std::int64_t offset = 0, first = 0, rows = 0;
};

// Settings that the blocks (layers, embedding, output, ...) of a plan have in common. Sizes are those of one
// micro-batch on one rank.
struct BlockContext {
  BlockContext(const Spec& s, const ShardingRow& r);
  // Sets the sizes for micro-batches that `replicas` ranks of a stage divide among them.
  void divide_among(std::int64_t replicas);

  const Spec& spec;
  const ShardingRow& sharding;
  bool grid;  // whether the tensor-parallel ranks form a grid (strategy.tensor_kind)
  bool cube;  // whether tensor ranks form a grid of three dimensions (tensor_kind 3d)
  // how the columns and samples of the residual stream are cut over the grid of tensor ranks
  Side residual_side;
  // how the logits, and the activations between a column-parallel product and the row-parallel product after it, are
  // cut over the grid of tensor ranks
  Side intermediate_side;
  std::int64_t batch = 0;       // number of sequences in a micro-batch
  std::int64_t sequence;        // number of tokens of a sequence on this rank (sequence / context)
  std::int64_t ring_block = 0;  // index in the context ring of the rank's block of the sequence
  std::int64_t rows = 0;        // number of tokens on this rank: batch * sequence
  std::int64_t tensor;          // number of ranks that an activation's columns are cut over
  std::int64_t hidden;          // number of columns of the hidden states on this rank
  // columns of what a layer passes to the next: hidden times the number of residual streams
  std::int64_t stream;
  std::int64_t kv_copies;                 // number of tensor ranks that hold the same key/value heads
  bool sequence_parallel;                 // whether norms, dropout and residuals run on 1 / tensor of the rows
  std::int64_t local_rows = 0;            // number of rows of norms, dropout and residuals on this rank
  Bytes width;                            // bytes of one element of an activation
  ExpertLoad load = ExpertLoad::busiest;  // whether the rank has the busiest experts or others
  // Size of the vocabulary, padded to the multiple that the training framework asks for; it is sharded over the tensor
  // group
  std::int64_t padded_vocab = 0;
  std::int64_t table_rows = 0;   // number of rows of the embedding table that one rank holds
  bool splits_backward = false;  // whether the schedule runs weight gradients separately
  bool ends_meet = true;         // whether the first and the last virtual stage are on one pipeline stage
  // whether the first and the last virtual stage are on one pipeline stage, which runs other micro-batches between the
  // embedding and the output of one micro-batch
  bool ends_interleave = false;
  // number of stages from the sender to the receiver of a transfer over the stage boundary that is being built, in
  // forward: 1, -1 (back to the previous stage) or 0 (no transfer)
  std::int64_t stage_step = 1;
  std::vector<Slice> slices;  // rows exchanged with each rank of the neighbouring stage
  Duty duty = Duty::worker;   // the role of the rank in data parallelism
  bool second = false;        // whether the blocks are those of the frozen second model (SecondModel)
  SharedVocabulary shared;
};

// These functions build the blocks of a pipeline stage, each with its forward and backward ops. A block's forward pass
// writes its output into the next block's input; its backward pass writes the gradient of its input into the previous
// block's output gradient.
//   embedding   tokens -> (rows, hidden)
//   layer       norm, attention, residual, norm, MLP, residual
//   final norm, multi-token prediction, output (logits and cross-entropy). With hyper-connections, multi-token
//     prediction contains the final norm.
//   receive, send: transfers at the stage's boundaries
Block embedding_block(const BlockContext& c, std::vector<Op>& ops);
Block layer_block(const BlockContext& c, std::int64_t layer, bool recompute, std::vector<Op>& ops,
                  bool offload = false);
Block final_norm_block(const BlockContext& c, std::vector<Op>& ops);
Block output_block(const BlockContext& c, std::vector<Op>& ops);
// Builds the modules of multi-token prediction (DeepSeek-V3, arXiv 2412.19437, section 2.2): each module joins the
// hidden states of the module before it with the next token's embedding, and runs a layer of its own. All modules share
// the output block's matrix, so that block gets the rows of the model and of all modules.
Block prediction_block(const BlockContext& c, std::vector<Op>& ops);
// These functions build the blocks of a vocabulary that is sharded over all pipeline stages (vocabulary.cpp), in this
// order: the token lookups; the sum of the looked-up rows over the stages, which goes to the first stage; the block
// between that sum and the first layer (learned positions); the broadcast of the last stage's hidden states to all
// stages, with the sum of the hidden states' gradients in backward; this stage's part of the logits and of the loss.
Block token_embeddings_block(const BlockContext& c, std::vector<Op>& ops);
Block embedding_exchange_block(const BlockContext& c, std::vector<Op>& ops);
bool has_positions_block(const BlockContext& c);
Block positions_block(const BlockContext& c, std::vector<Op>& ops);
Block hidden_state_exchange_block(const BlockContext& c, std::vector<Op>& ops);
Block logits_block(const BlockContext& c, std::vector<Op>& ops);
// Returns the number of parts in which a stage sends activations, or gradients, to another stage: its tensor ranks,
// which hold the same hidden states, send a part each (Transfer::parts). Activations that a partner stage keeps until
// backward (BPipe) are sent in one part.
std::int64_t parts_sent(const Spec& spec, bool activations);
Block receive_block(const BlockContext& c, std::vector<Op>& ops);
Block send_block(const BlockContext& c, std::vector<Op>& ops);

}  // namespace orrery
