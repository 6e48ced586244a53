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

// Slots of a chunk's state frame: one flat buffer each, in block order. Absent buffers have no bytes. Shards, masters
// and moments hold, in that order, rank i's i-th part of every piece that one collective reduces or gathers (`first`,
// bytes): buckets, or units where those are reduced one by one; a part is rounded up, the last ones may be short.
enum StateSlot : std::uint16_t {
  kParameters = kWeights,
  kParameterShard,
  kGradients,
  kGradientShard,
  kMaster,
  kMoment1,
  kMoment2,
  kEightBit,       // copies of the layers' matrices in fp8, as they are and transposed, cast once a step
  kBuckets,        // DistributedDataParallel's averaged copies of the gradients, reduced there
  kHostGradients,  // gradients that the host's update reads, where they are summed on the device
  kNextGradients,  // gradients that a delayed update reads in the next step
  // Buffers that some stacks hold and never read: the other ranks' parts of the master weights; what reduced gradients
  // grow by when they are widened; what products that add to gradient sums return.
  kOthersMaster,
  kWidenedShard,
  kDummyGradients
};
inline constexpr std::uint16_t kStateSlots = 14;
// Slots of a block's unit frame: the weights while gathered; the shard that is sent to gather them (FSDP casts it
// first); the gradient before it is reduced, and its copy in the width of the reduction. With states on the host: this
// rank's part of the gradients' sum on its way (kReduced); with states on disks, the host's copies of the parts of
// weights and gradients; FSDP's shard as it came from the host, before it is cast. The last two are buffers that stacks
// copy a unit from or to (Software::Communication::unit_copies).
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
  kJoinedGradient
};
inline constexpr std::uint16_t kUnitSlots = 10;
// Slots of a tile's frame, on the host: new weights on their way, and with an optimizer on disks the tile of each
// state.
enum TileSlot : std::uint16_t { kTileForward, kTileMaster, kTileMoment1, kTileMoment2, kTileGradient };

// The weight that a tied output shares with the embedding.
inline constexpr std::string_view kEmbeddingTable = "embedding.word.weight";

// Slots of a rank's own frame, one number each: the sum of squares of its gradients, whether one of them is not finite,
// and the loss scale (fp16; the update changes it).
// With a delayed update, kNextNorm is the next update's norm, and kDueScale the loss scale of the gradients that the
// update reads. kFusedBuffer: the buffer in which gradients are reduced, bucket by bucket. With updates that are
// validated later: the norm that the stages before have found, and that of all stages.
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

// Elements that products of a block read in fp8 where the stack computes those in 8 bits.
std::int64_t eight_bit_elements(const Spec& spec, const Block& block);

// The duty of a rank beside computing. master and replica: ranks of DataParallel, whose rank 0 has all ranks' inputs,
// outputs and losses. server: the rank holds weights, and runs no block.
enum class Duty : std::uint8_t { worker, master, replica, server };

// A vocabulary that the stages of a pipeline share: how many of them, how often they meet between logits and gradients
// (Schedule::barriers), the stage that is being built (`stage`), and the stage that has the hidden states (`root`).
struct SharedVocabulary {
  std::int64_t stages = 1, barriers = 0;
  std::int64_t stage = 0, root = 0;

  bool at_root() const { return stage == root; }
};

// Rows of a micro-batch that a rank sends over a stage's end to one other rank, or gets from it: `rows` of the rank's
// own rows, from `first` on; the other rank is `offset` places ahead in the pipeline group.
struct Slice {
  std::int64_t offset = 0, first = 0, rows = 0;
};

// Settings that the blocks of a plan have in common: sizes of one micro-batch on one rank.
struct BlockContext {
  BlockContext(const Spec& s, const ShardingRow& r);
  // Cuts the micro-batches of a stage among so many ranks.
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
  ExpertLoad load = ExpertLoad::busiest;  // load of these ranks' experts
  // Vocabulary padded to a multiple that the profile asks, cut over the tensor group
  std::int64_t padded_vocab = 0;
  std::int64_t table_rows = 0;   // rows of the embedding table that one rank holds
  bool splits_backward = false;  // the schedule runs weight gradients apart
  bool ends_meet = true;         // the first and the last virtual stage lie on one stage
  // Ends meet, and other micro-batches' passes stand between those of a micro-batch
  bool ends_interleave = false;
  std::int64_t hop = 1;       // stages from before the boundary being built to behind it: 1, -1 or 0
  std::vector<Slice> slices;  // slices of rows that cross that boundary
  Duty duty = Duty::worker;   // duty of these ranks
  SharedVocabulary shared;
};

// The parts of a stage, each with its forward and backward ops. Forward of one leaves its output in the next one's
// input; backward of one leaves the gradient of its input in the previous one's output gradient.
//   embedding   tokens -> (rows, hidden)
//   layer       norm, attention, residual, norm, MLP, residual
//   final norm, multi-token prediction, output (logits and cross-entropy)
//   receive, send: a stage's ends
Block embedding_block(const BlockContext& c, std::vector<Op>& ops);
Block layer_block(const BlockContext& c, std::int64_t layer, bool recompute, std::vector<Op>& ops,
                  bool offload = false);
Block final_norm_block(const BlockContext& c, std::vector<Op>& ops);
Block output_block(const BlockContext& c, std::vector<Op>& ops);
// Multi-token prediction (DeepSeek-V3, arXiv 2412.19437, section 2.2): each module joins the hidden states before it
// with the next token's embedding, and runs a layer of its own; what the output block gets are the rows of the model
// and of all modules, which share its matrix.
Block prediction_block(const BlockContext& c, std::vector<Op>& ops);
// Blocks for a vocabulary that all stages hold a part of, in vocabulary.cpp: token lookups, whose sum goes to the first
// stage; the block between that sum and the first layer (positions); the last stage's hidden states on their way to all
// stages, and the sum of their gradients back; this stage's part of the logits and of the loss.
Block token_embeddings_block(const BlockContext& c, std::vector<Op>& ops);
Block embedding_exchange_block(const BlockContext& c, std::vector<Op>& ops);
bool has_positions_block(const BlockContext& c);
Block positions_block(const BlockContext& c, std::vector<Op>& ops);
Block hidden_state_exchange_block(const BlockContext& c, std::vector<Op>& ops);
Block logits_block(const BlockContext& c, std::vector<Op>& ops);
// Parts in which the tensor ranks of a stage, which hold the same hidden states, send activations or else gradients to
// another stage (Transfer::parts). Activations that a partner keeps meanwhile (BPipe) are sent whole.
std::int64_t parts_sent(const Spec& spec, bool activations);
Block receive_block(const BlockContext& c, std::vector<Op>& ops);
Block send_block(const BlockContext& c, std::vector<Op>& ops);

}  // namespace orrery
