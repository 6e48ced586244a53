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

// Indices of the buffers in a chunk's state frame: flat buffers with all weights in block order. Absent buffers have no
// bytes. Shards, masters and moments hold rank i's i-th part of every piece that one collective reduces or gathers
// (bytes from `first` on), in the order of the pieces: buckets, or units where those are reduced one by one; a part is
// rounded up, the last ones may be short.
enum StateSlot : std::uint16_t {
  kParameters = kWeights,
  kParameterShard,
  kGradients,
  kGradientShard,
  kMaster,
  kMoment1,
  kMoment2,
  kEightBit,       // copies of the layers' matrices in fp8, as they are and transposed, cast once a step
  kBuckets,        // DistributedDataParallel's averaged copies of the gradients, which are all-reduced in place
  kHostGradients,  // gradients on the host that the optimizer there reads, where they are summed on the device
  kNextGradients,  // gradients that a delayed update reads in the next step
  // Buffers that some stacks hold and never read: the other ranks' parts of the master weights; the additional bytes of
  // reduced gradients that are widened; the dummy results of products that add directly to gradient sums.
  kOthersMaster,
  kWidenedShard,
  kDummyGradients,
  // Weights that do not train, whole or as this rank's shards, unit by unit; their own offsets (Frame::frozen_base)
  kFrozen,
  kFrozenShard,
  kSecondaryShard  // this rank's part of all weights among the ranks of its node (ZeRO++)
};
inline constexpr std::uint16_t kStateSlots = 17;
// Indices of the buffers in a block's unit frame: the gathered weights; the shard that is sent to gather them (FSDP
// casts it first); the gradient before it is reduced, and its copy in the width of the reduction. With states on the
// host: this rank's part of the gradients' sum on its way to or from the host (kReduced); with states on disks, the
// host's copies of the parts of weights and gradients; FSDP's shard as uploaded from the host, before it is cast. The
// last two are buffers that stacks copy a unit from or to (Software::Communication::unit_copies).
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
  kGatheredFrozen,  // the gathered weights that do not train
  // ZeRO++: weights as they arrive in few bits; gradients in few bits, and what arrives of them
  kNarrowWeights,
  kNarrowGradients,
  kArrivedGradients
};
inline constexpr std::uint16_t kUnitSlots = 14;
// Indices of the buffers in a tile's frame, on the host: new weights on their way to the device, and with an optimizer
// on disks the tile of each state.
enum TileSlot : std::uint16_t { kTileForward, kTileMaster, kTileMoment1, kTileMoment2, kTileGradient };

// The weight that a tied output shares with the embedding.
inline constexpr std::string_view kEmbeddingTable = "embedding.word.weight";

// Indices of a rank's own buffers, one number each: the sum of squares of its gradients, whether one of them is not
// finite, and the loss scale (fp16; the update changes it). With a delayed update, kNextNorm is the next update's norm,
// and kDueScale the loss scale of the gradients that the update reads. kFusedBuffer: the buffer in which gradients are
// reduced, bucket by bucket. With updates that are validated later: the norm over the stages before this one, and over
// all stages.
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

// Number of a block's weight elements that its products read in fp8 where the stack computes them in 8 bits.
std::int64_t eight_bit_elements(const Spec& spec, const Block& block);

// The role of a rank apart from computing. master and replica: ranks of DataParallel, whose rank 0 has all ranks'
// inputs, outputs and losses. server: the rank holds weights, and runs no block.
enum class Duty : std::uint8_t { worker, master, replica, server };

// A vocabulary that is cut over the stages of a pipeline: the number of stages, the barriers between logits and
// gradients (Schedule::barriers), the stage that is being built (`stage`), and the stage that has the hidden states
// (`root`).
struct SharedVocabulary {
  std::int64_t stages = 1, barriers = 0;
  std::int64_t stage = 0, root = 0;

  bool at_root() const { return stage == root; }
};

// Rows of a micro-batch that a rank sends over a stage boundary to one other rank, or receives from it: `rows` of the
// rank's own rows, from `first` on; the other rank is `offset` places ahead in the pipeline group.
struct Slice {
  std::int64_t offset = 0, first = 0, rows = 0;
};

// Settings that the blocks of a plan have in common: sizes of one micro-batch on one rank.
struct BlockContext {
  BlockContext(const Spec& s, const ShardingRow& r);
  // Divides each micro-batch of a stage among this many ranks.
  void share(std::int64_t replicas);

  const Spec& spec;
  const ShardingRow& sharding;
  bool grid;                              // tensor ranks form a grid (strategy.tensor_kind)
  bool cube;                              // the grid has three dimensions
  Side outer;                             // side of the residual stream
  Side inner;                             // side of activations between a layer's two products, and of the logits
  std::int64_t batch = 0;                 // sequences
  std::int64_t sequence;                  // tokens of a sequence on this rank (sequence / context)
  std::int64_t ring_block = 0;            // block of the context ring whose attention is planned
  std::int64_t rows = 0;                  // batch * sequence
  std::int64_t tensor;                    // ranks an activation's columns are cut over
  std::int64_t hidden;                    // columns of the residual stream
  std::int64_t kv_copies;                 // tensor ranks that hold the same key/value heads
  bool sequence_parallel;                 // norms, dropout and residuals on rows / tensor
  std::int64_t local_rows = 0;            // rows of norms, dropout and residuals on this rank
  Bytes width;                            // bytes of an activation element
  ExpertLoad load = ExpertLoad::busiest;  // expert load of these ranks: busiest or other
  // Vocabulary padded to a multiple that the profile asks, cut over the tensor group
  std::int64_t padded_vocab = 0;
  std::int64_t table_rows = 0;   // rows of the embedding table that one rank holds
  bool splits_backward = false;  // the schedule runs weight gradients separately
  bool ends_meet = true;         // the first and the last virtual stage lie on one stage
  // ends_meet, and passes of other micro-batches run between those of a micro-batch
  bool ends_interleave = false;
  std::int64_t hop = 1;       // step in stages across the boundary that is being built: 1, -1 or 0
  std::vector<Slice> slices;  // slices of rows that cross that boundary
  Duty duty = Duty::worker;   // duty of these ranks
  SharedVocabulary shared;
};

// The blocks that a stage is built of, each with its forward and backward ops. Forward of a block writes its output
// into the next block's input; backward writes the gradient of its input into the previous block's output gradient.
//   embedding   tokens -> (rows, hidden)
//   layer       norm, attention, residual, norm, MLP, residual
//   final norm, multi-token prediction, output (logits and cross-entropy)
//   receive, send: transfers at the stage's ends
Block embedding_block(const BlockContext& c, std::vector<Op>& ops);
Block layer_block(const BlockContext& c, std::int64_t layer, bool recompute, std::vector<Op>& ops,
                  bool offload = false);
Block final_norm_block(const BlockContext& c, std::vector<Op>& ops);
Block output_block(const BlockContext& c, std::vector<Op>& ops);
// Multi-token prediction (DeepSeek-V3, arXiv 2412.19437, section 2.2): each module joins the hidden states before it
// with the next token's embedding, and runs a layer of its own; the output block, whose matrix all modules share, gets
// the rows of the model and of all modules.
Block prediction_block(const BlockContext& c, std::vector<Op>& ops);
// Blocks for a vocabulary that all stages hold a part of, in vocabulary.cpp: token lookups, whose sum goes to the first
// stage; the block between that sum and the first layer (learned positions); the broadcast of the last stage's hidden
// states to all stages, and the sum of their gradients back; this stage's part of the logits and of the loss.
Block token_embeddings_block(const BlockContext& c, std::vector<Op>& ops);
Block embedding_exchange_block(const BlockContext& c, std::vector<Op>& ops);
bool has_positions_block(const BlockContext& c);
Block positions_block(const BlockContext& c, std::vector<Op>& ops);
Block hidden_state_exchange_block(const BlockContext& c, std::vector<Op>& ops);
Block logits_block(const BlockContext& c, std::vector<Op>& ops);
// The number of parts in which a stage sends activations, or gradients, to another stage: its tensor ranks, which hold
// the same hidden states, send a part each (Transfer::parts). Activations that a partner stage keeps until backward
// (BPipe) are sent whole.
std::int64_t parts_sent(const Spec& spec, bool activations);
Block receive_block(const BlockContext& c, std::vector<Op>& ops);
Block send_block(const BlockContext& c, std::vector<Op>& ops);

}  // namespace orrery
