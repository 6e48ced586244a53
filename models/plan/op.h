#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "models/base/dimension.h"
#include "models/base/memory_tier.h"
#include "models/base/precision.h"
#include "models/base/units.h"
#include "models/collectives/algorithms.h"

namespace orrery {

// The work of a task, which computes or moves: one struct per kernel family, holding shapes and nothing else. Adding
// one means four places: here, op.cpp (flops, bytes), its kernel and its launch; std::visit names the ones that lack
// it. Shapes are those of one rank. Tokens are rows: (batch * sequence / context).

enum class Direction : std::uint8_t { forward, backward };

// Rows of an op whose number is known only at run time (Op::runtime_size) are the predicted ones; the executor takes
// them from its buffers.

// C(m, n) [+]= A(m, k) B(k, n), batch times; plus a bias where the op reads one. role says which of a linear layer's
// three products it is: output y(tokens, out) = x W^T; input gradient dx = dy W; weight gradient dW(out, in) [+]= dy^T
// x. Or one of attention's products over every sample and head (batch): scores Q K^T, values P V, and backward
// dP = dY V^T, dV = P^T dY, dQ = dS K, dK = dS^T Q; then q, k and v lie in one packed buffer of heads and kv_heads.
struct Gemm {
  enum class Role : std::uint8_t {
    output,
    input_gradient,
    weight_gradient,
    scores,
    values,
    probability_gradient,
    value_gradient,
    query_gradient,
    key_gradient
  };
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t batch = 1;
  Role role = Role::output;
  bool accumulate = false;               // C is read and added to
  Bytes result_bytes = 2;                // bytes of an element of C
  std::int64_t heads = 0, kv_heads = 0;  // heads in attention's products
  // A linear layer may run in tiles, one after another: this is the tile-th of so many equal parts of its outputs,
  // columns of y and dy. An input gradient accumulates after the first tile.
  std::int64_t tile = 0, tiles = 1;
  // A product may be made up of `pieces` kernels of equally many rows that run side by side: this is the piece-th.
  std::int64_t pieces = 1, piece = 0;
  // Which rows the product is of, where tensor ranks each have a part of them. member: those of the member `piece`
  // places before this one; before, behind, others: those of all members before it, behind it (m: as one in the middle
  // has), or both; runs: the piece-th of `pieces` equal runs of every member's rows, which the result holds one behind
  // the other.
  enum class Rows : std::uint8_t { all, member, before, behind, others, runs };
  Rows rows = Rows::all;
};

// One product for each of this rank's experts, over the expert's own of `rows` rows (all experts' together), which lie
// expert by expert. The weights (out, in) of the experts lie behind each other. even: every expert has equally many
// rows, else as counts say.
struct GroupedGemm {
  std::int64_t groups = 0, rows = 0, out = 0, in = 0;
  Gemm::Role role = Gemm::Role::output;  // output, input_gradient or weight_gradient
  bool accumulate = false;
  Bytes result_bytes = 2;
  bool even = false;
};

// Adds an expert's bias (groups, columns) to each of `rows` rows, which lie as a GroupedGemm's do: y += b, or where the
// op reads the weights of the router's choices (weighted) y += weight b. Each of the ranks of expert_tensor, whose rows
// are summed, adds an equal part of b. Backward adds to the biases' gradient, and yields the choices' weights' gradient
// as far as it comes from that part.
struct GroupedBias {
  std::int64_t groups = 0, rows = 0, columns = 0;
  bool even = false, weighted = false;
  Direction direction = Direction::forward;
};

// The router's choice for every token: scores of all experts from logits (rows, experts), by softmax or sigmoid; the
// top_k largest are chosen, of equal ones the lower expert (corrected: a weight per expert is added to the scores for
// the choice alone, DeepSeek-V3). What an expert returns is weighted by the score (top_k 1: Fedus et al. 2021, Switch
// Transformer) or by its part of the chosen scores' sum. Among `expert_groups` equal groups of experts only the
// top_groups best count, ranked by their largest score, or corrected by the sum of their two largest. capacity > 0: of
// each of `groups` equal runs of tokens at most so many go to an expert, the first ones; the rest of the choice is
// dropped. padded: every expert gets exactly capacity rows of every run. The auxiliary loss of T tokens is
// aux_loss * experts * sum over experts of (their part of all choices * mean score) (Switch, section 2.2; sigmoid
// scores divided by their sum); only its gradient is formed. Where the tokens of a micro-batch lie on several ranks
// (sharers), forward counts its choices by expert, and the auxiliary loss is of all these ranks' tokens, by the sum of
// their counts.
struct Gate {
  std::int64_t rows = 0, experts = 0, top_k = 0, capacity = 0, groups = 1, expert_groups = 1, top_groups = 1;
  std::int64_t sharers = 1;
  bool padded = false, sigmoid = false, corrected = false;
  double aux_loss = 0;
  Direction direction = Direction::forward;
};

// Rows that go to experts or come from them: `moved` rows, expert by expert, in the tokens' order. expand: a token's
// row is copied to every place that routing gives it (zeros elsewhere), else a token's row is the sum of its places.
// weighted: the weights of the choices (rows, copies) go along, one number a row.
struct Permute {
  std::int64_t rows = 0, copies = 0, columns = 0, moved = 0;
  bool expand = true, weighted = false;
};

// y = x sigmoid(g), g a number for each row: the gate of shared experts (Qwen1.5-MoE). Backward yields both gradients.
struct SigmoidGate {
  std::int64_t rows = 0, columns = 0;
  Direction direction = Direction::forward;
};

// Sorts rows that came by source and then expert into the order of the experts; back: the other way. weighted: as in
// Permute.
struct SortChunks {
  std::int64_t rows = 0, columns = 0, sources = 0, experts = 0;
  bool weighted = false, even = false, back = false;
};

// The host reads how many rows its rank sends and gets (its block's runtime sizes, in their order) from `counts`
// numbers.
struct CountTokens {
  std::int64_t counts = 0;
};

// softmax(Q K^T / sqrt(d)) V, never writing the scores. q (batch, query, heads, head_dim), k and v with kv_heads. Under
// context parallelism a rank's queries and the keys that come to it stand anywhere in the sequence
// (models/spec/sequence.h): keys of the block `hops` places before its own, or of all blocks, in a buffer of their own.
// The result of further keys is merged with the result so far by the log-sum-exp of its rows (Liu et al. 2023, Ring
// Attention, 2310.01889); the gradient that further keys give the queries is added to the queries' gradient so far.
struct FlashAttention {
  std::int64_t batch = 0, heads = 0, kv_heads = 0, query = 0, key = 0, head_dim = 0, value_dim = 0;
  std::int64_t window = 0;  // 0 = causal over everything
  Direction direction = Direction::forward;
  double softcap = 0;  // cap of the scores, as in SoftCap; 0 = none. The tanh is not counted
  double pairs = -1;   // pairs of a query and a key that it sees, in one head of a sample; < 0: causal over everything
  std::int64_t hops = 0;
  bool keys_apart = false;
  bool merges = false;
  bool drops = false;  // dropout of the probabilities: every pair costs a random number, both ways
};

// Copies the heads of every token between a packed projection (rows, heads + 2 kv_heads) and a buffer that travels
// round a context group, (members, rows, ...): for each member a part of the heads, with the key/value heads that it
// needs, which several members may get; or with one member and no queries, keys and values alone. backward: copies back
// from such a buffer; heads that several members had are summed.
struct MoveHeads {
  std::int64_t rows = 0, heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t members = 1;
  bool queries = true;
  Direction direction = Direction::forward;

  std::int64_t member_heads() const { return queries ? heads / members : 0; }
  std::int64_t member_kv_heads() const { return kv_heads == 0 ? 0 : kv_heads < members ? 1 : kv_heads / members; }
  std::int64_t columns() const { return (member_heads() + 2 * member_kv_heads()) * head_dim; }  // columns of one member
};

// Row-wise softmax of scores (batch, heads, query, key) with mask and dropout, in one kernel or unfused in several.
// window: as flash attention's; keys outside get zero, at the same cost.
struct Softmax {
  std::int64_t rows = 0, columns = 0;
  bool dropout = false;
  bool fused = true;
  Direction direction = Direction::forward;
  std::int64_t window = 0;
};

// RMS or layer norm over rows of `columns` values; backward also yields the weight's gradient. Rows may lie in `pieces`
// on as many ranks, `columns` on each: then one op forms the sums of this rank's values (part `sums`), the ranks add
// these up, and another does the rest (part `finish`).
struct Normalize {
  enum class Part : std::uint8_t { whole, sums, finish };
  std::int64_t rows = 0, columns = 0;
  bool layernorm = false;
  bool fused = true;
  Direction direction = Direction::forward;
  Part part = Part::whole;
  std::int64_t pieces = 1;
};

struct Rotary {
  std::int64_t rows = 0, columns = 0;  // the rotated part of q and k
  std::int64_t head_dim = 0;
  bool fused = true;
  Direction direction = Direction::forward;
};

// The step between the projections of latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1) and its core.
// Rotates the last `rope` columns of every query head in place, and packs keys and values: in (rows, heads * (nope +
// value)) and the rope keys (rows, rope) that all heads share; out (rows, heads * (nope + rope)) keys, then (rows,
// heads * value) values. Backward takes the packed buffers apart again; the shared keys' gradient is summed over this
// rank's heads.
struct LatentHeads {
  std::int64_t rows = 0, heads = 0, nope = 0, rope = 0, value = 0;
  bool fused = true;
  Direction direction = Direction::forward;
};

// Copies (rows, first + second) into two contiguous parts; backward joins them again.
struct Split {
  std::int64_t rows = 0, first = 0, second = 0;
  Direction direction = Direction::forward;
};

// gated: in (rows, 2 * columns) -> out (rows, columns), SwiGLU; else GeLU of (rows, columns). The bias before it is the
// product's: an epilogue (cuBLASLt), or added where the activation reads (Megatron's bias-GeLU), at no pass of its own.
// weighted: rows are multiplied by a number each, whose gradient backward yields too.
struct Activation {
  std::int64_t rows = 0, columns = 0;
  bool gated = true;
  bool fused = true;
  Direction direction = Direction::forward;
  bool weighted = false;
};

// out = residual + dropout(in + bias); without a residual out = dropout(in + bias). side: how the rows, or the scores'
// heads and samples, lie on a grid of tensor ranks.
struct Residual {
  std::int64_t rows = 0, columns = 0;
  bool residual = true;
  bool bias = false;
  bool dropout = false;
  bool fused = true;
  Direction direction = Direction::forward;
  Side side = {};
};

// out = a + b, where a gradient has two sources.
struct Add {
  std::int64_t elements = 0;
};

// Gradient of a bias: the sum of dy (rows, columns) over its rows.
struct BiasGradient {
  std::int64_t rows = 0, columns = 0;
};

// Rows of a (vocab, columns) table by token; backward adds rows into the table's gradient. positions: adds to each row
// the row of its place in the sequence, from a table of length vocab. The table is a part of the whole: this rank's
// part in the group `over`, or the panel-th part; adds: tokens that the part lacks leave what is there.
struct Embedding {
  std::int64_t rows = 0, columns = 0, vocab = 0;
  bool positions = false;
  Direction direction = Direction::forward;
  Bytes gradient_bytes = 4;  // bytes of an element of the table's gradient
  Dimension over = Dimension::tensor;
  std::int64_t panel = -1;
  bool adds = false;
};

// The pieces of cross-entropy over logits (rows, columns) cut by vocabulary over a group: between them it reduces rows
// values. maximum; exponent: subtracts, exponentiates, sums; loss: log and pick; gradient: softmax - one_hot. Where
// exponents were taken to each rank's own maxima, rescale brings their sums to those of all ranks. combine: the
// gradient of the rows (rows, columns) that a rank's logits came from, put together from what its exponents give and
// what its labels give.
struct CrossEntropy {
  enum class Part : std::uint8_t { maximum, exponent, loss, gradient, rescale, combine };
  std::int64_t rows = 0, columns = 0;
  Part part = Part::maximum;
  bool fused = true;
  std::int64_t predictions = 1, parts = 1;  // as in Load; further predictions weigh less
  Dimension over = Dimension::tensor;
  std::int64_t metrics = 0;  // part `loss`: times that a stack's metrics compute the loss anew from the logits
  bool narrow = false;       // reads the logits in their own width; backward takes the exponents again
};

// Element-wise change of width: `from` and `to` are bytes per element. transpose: writes a transposed copy beside.
struct Cast {
  std::int64_t elements = 0;
  Bytes from = 2, to = 4;
  bool transpose = false;
};

// y = cap tanh(x / cap), in place; backward multiplies the gradient by 1 - (y / cap)^2 (Gemma 2). Unfused: divided,
// tanh, multiplied, a kernel each.
struct SoftCap {
  std::int64_t elements = 0;
  double cap = 0;
  bool fused = true;
  Direction direction = Direction::forward;
};

// Adds a gradient of width `from` into an accumulator of width `to`.
struct Accumulate {
  std::int64_t elements = 0;
  Bytes from = 2, to = 4;
};

// Token ids of a micro-batch, or its labels (the token that follows each), copied from the host's text; 64-bit. ahead:
// the tokens are so many places further on. predictions: the rows are those of the model and of each further
// prediction, one place further on every time; `parts` equal runs of tokens stand one behind the other, each with all
// its predictions.
struct Load {
  std::int64_t rows = 0;
  bool labels = false;
  std::int64_t ahead = 0, predictions = 1, parts = 1;
  std::int64_t replicas = 0;  // > 0: the rows of so many data ranks, one after the other, instead of this rank's
  Side side = {};
};

struct Fill {
  Bytes bytes = 0;
};

// Multiplies `elements` numbers, from element `first` of the flat buffer on, in place or into the buffer that the op
// writes: by `factor`, or where that is 0 by what follows from the number that the op reads (the clip coefficient from
// the squared norm, 1 / loss scale). check: also notes whether any of the numbers is not finite.
struct Multiply {
  std::int64_t elements = 0;
  Bytes width = 4;
  double factor = 0;
  bool check = false;
  std::int64_t first = 0;
};

// A copy of `bytes` between two places, or inside one. Between a tile (plan.h) and a chunk's states it copies
// `elements` of the rank's shards, from `first` on; between two buffers of the states, the part that the rank owns of
// `elements` of the chunk. From a longer buffer to a shorter one on the device it copies this rank's one of the tensor
// group's equal parts.
struct PlaceCopy {
  Bytes bytes = 0;
  MemoryTier from = MemoryTier::device, to = MemoryTier::host;
  std::int64_t first = 0, elements = 0;
  Bytes width = 2;  // bytes of an element
};

// Does nothing by itself: the task is there for what it waits for, and for what it frees. device: it waits for all that
// was launched to compute.
struct Wait {
  bool device = false;
};

// Two buffers of the same size change names when the task is issued: from then on the first operand names what the
// second named before.
struct Exchange {};

// The sum of squares of the gradients that this rank owns, added to that of the chunks before. A weight that several
// ranks hold counts on one of them: replicated weights on the first of the tensor group, key/value heads on the first
// of `kv`, a tied table on the first stage.
struct SquaredNorm {
  std::int64_t elements = 0;
  Bytes width = 4;
};

// The update of `elements` parameters, from element `first` of the rank's shards: reads gradient, master and moments,
// writes them and the forward copy. delayed: the update takes the gradients of the step before (none in the first
// step). validated: the update is validated in the next step (post_validation.h); it is made only where the norm so
// far, the second number read, clips nothing.
struct Update {
  std::int64_t elements = 0;
  Bytes gradient = 4, master = 4, moment = 4, forward = 2;
  int moments = 2;
  bool fused = true;
  std::int64_t first = 0;
  bool delayed = false;
  bool validated = false;
};

// Collective::algorithm of collectives that Transformer Engine's user buffers launch beside the pieces of a product, in
// one call with them; those of copy engines take no multiprocessors.
inline constexpr const char* kUserBuffers = "user buffers";
inline constexpr const char* kCopyEngines = "copy engines";

// bytes is the larger of what one rank puts in and takes out (NCCL's size): S for an all-reduce of S, the whole for a
// gather. In an all-reduce of a unit `first` counts among the rank's shards of the unit. A shift passes parts on round
// a ring in one buffer that has a part of every member; `first` says how far before this member's own part the incoming
// one lies.
struct Collective {
  CollectiveKind kind = CollectiveKind::all_reduce;
  Dimension group = Dimension::data;
  Bytes bytes = 0;
  Bytes width = 2;         // bytes of an element
  std::int64_t first = 0;  // element of the flat buffer where the collective begins
  std::string algorithm = "library";
  bool maximum = false;      // an all-reduce that takes the largest value instead of the sum
  std::int64_t servers = 0;  // push and pull: pieces, each of which a server among the last members holds
  // Push and pull: servers that hold the same piece, each `servers` members behind the one before
  std::int64_t copies = 1;
  std::int64_t tensors = 1;  // tensors that one launch moves, each by itself (a coalesced group)
  std::int64_t root = 0;     // broadcast and reduce: the member of the group that has the data, or gets it
};

// One end of a point-to-point transfer along the pipeline group. offset: places ahead of this one, modulo the group.
// parts: ranks of the tensor group, all of which hold the same bytes: each sends one part of so many, and the receivers
// gather the rest.
struct Transfer {
  bool send = true;
  std::int64_t offset = 1;
  Bytes bytes = 0;
  Bytes first = 0;  // byte of the buffer where the transfer begins
  std::int64_t parts = 1;
};

using Work = std::variant<Gemm, GroupedGemm, GroupedBias, Gate, Permute, SigmoidGate, SortChunks, CountTokens,
                          FlashAttention, MoveHeads, Softmax, Normalize, Rotary, LatentHeads, Split, Activation,
                          Residual, Add, BiasGradient, Embedding, CrossEntropy, Cast, SoftCap, Accumulate, Load, Fill,
                          Multiply, PlaceCopy, Wait, Exchange, SquaredNorm, Update, Collective, Transfer>;

// Keys that a query of a causal attention sees on average, within its window.
double keys_per_query(const FlashAttention& a);

// Bytes that merging a part of attention into the result so far passes through memory; 0 where nothing is merged.
double merged_bytes(const FlashAttention& a, Bytes width);

// The cost of one task: floating-point operations, and bytes that pass through device memory.
struct Cost {
  double flops = 0;
  double bytes = 0;
};

// width: bytes of an activation element.
Cost cost_of(const Work& work, Bytes width);

// Kernels that one task launches. Unfused kernels are the operations of eager PyTorch.
int kernels_of(const Work& work);

// Calls of the framework that launch a task's kernels. A library launches several kernels in one call (experts'
// products, an attention's backward, an update over lists of tensors); ops that are not fused are called operation by
// operation.
int calls_of(const Work& work);

}  // namespace orrery
