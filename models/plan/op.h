#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "models/base/dimension.h"
#include "models/base/precision.h"
#include "models/base/units.h"
#include "models/collectives/algorithms.h"

namespace orrery {

// What a task computes or moves: one struct per kernel family, holding shapes and nothing else. Adding one means
// four places: here, op.cpp (flops, bytes), its kernel and its launch; std::visit names the ones that lack it.
// Shapes are those of one rank. Tokens are rows: (batch * sequence / context).

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
  Bytes result_bytes = 2;                // of an element of C
  std::int64_t heads = 0, kv_heads = 0;  // of attention's products
  // Of a linear layer in tiles that run one after another: the tile-th of so many equal parts of its outputs, columns
  // of y and dy. An input gradient accumulates after the first.
  std::int64_t tile = 0, tiles = 1;
  // Kernels of as many rows that run side by side and make up one product, of which this is the piece-th.
  std::int64_t pieces = 1, piece = 0;
  // Which rows it is of, where tensor ranks each have a part of them. member: those of the member `piece` places before
  // this one; before, behind, others: of all members before it, behind it (m: as one in the middle has), or both; runs:
  // of every member's the piece-th of `pieces` equal runs, which the result holds one behind the other.
  enum class Rows : std::uint8_t { all, member, before, behind, others, runs };
  Rows rows = Rows::all;
};

// A product for each of this rank's experts, over its own of `rows` rows (together), which lie expert by expert. The
// weights (out, in) of the experts lie behind each other. even: as many rows for each, else as counts say.
struct GroupedGemm {
  std::int64_t groups = 0, rows = 0, out = 0, in = 0;
  Gemm::Role role = Gemm::Role::output;  // output, input_gradient or weight_gradient
  bool accumulate = false;
  Bytes result_bytes = 2;
  bool even = false;
};

// Each of `rows` rows, which lie as a GroupedGemm's do, and its expert's bias (groups, columns): y += b, or where the
// op reads the choices' weights (weighted) y += weight b, of which each of the ranks of expert_tensor, whose rows are
// summed, gives an equal part. Backward adds to the biases' gradient, and gives the weights' as far as from that part.
struct GroupedBias {
  std::int64_t groups = 0, rows = 0, columns = 0;
  bool even = false, weighted = false;
  Direction direction = Direction::forward;
};

// The router's choice for every token: scores of all experts from logits (rows, experts), by softmax or sigmoid; of
// them the top_k largest, of equal ones the lower expert (corrected: a weight per expert is added to the scores for the
// choice alone, DeepSeek-V3). What an expert returns is weighted by the score (top_k 1: Fedus et al. 2021, Switch
// Transformer) or by its part of the chosen scores' sum. Of `expert_groups` equal groups of experts only the top_groups
// best count, by their largest score, or corrected by the sum of their two largest. capacity > 0: of each of `groups`
// equal runs of tokens at most so many go to an expert, the first ones; the rest of the choice is dropped. padded:
// every expert gets exactly capacity rows of every run. The auxiliary loss of a run of T tokens is aux_loss * experts *
// sum over experts of (their part of all choices * mean score) (Switch, section 2.2; sigmoid scores divided by their
// sum); only its gradient is formed.
struct Gate {
  std::int64_t rows = 0, experts = 0, top_k = 0, capacity = 0, groups = 1, expert_groups = 1, top_groups = 1;
  bool padded = false, sigmoid = false, corrected = false;
  double aux_loss = 0;
  Direction direction = Direction::forward;
};

// What goes to experts and comes from them: `moved` rows, expert by expert, in the tokens' order. expand: a token's row
// is copied to every place that routing gives it (zeros elsewhere), else it is the sum of its places. weighted: the
// choices' weights (rows, copies) go along, one number a row.
struct Permute {
  std::int64_t rows = 0, copies = 0, columns = 0, moved = 0;
  bool expand = true, weighted = false;
};

// y = x sigmoid(g), g a number for each row: the gate of shared experts (Qwen1.5-MoE). Backward yields both gradients.
struct SigmoidGate {
  std::int64_t rows = 0, columns = 0;
  Direction direction = Direction::forward;
};

// Rows as they came, by source and then expert, in the order of the experts; back: the other way. weighted as
// Permute's.
struct SortChunks {
  std::int64_t rows = 0, columns = 0, sources = 0, experts = 0;
  bool weighted = false, even = false, back = false;
};

// The host reads how many rows its rank sends and gets (its block's runtime sizes, in their order) from `counts`
// numbers.
struct CountTokens {
  std::int64_t counts = 0;
};

// softmax(Q K^T / sqrt(d)) V, never writing the scores. q (batch, query, heads, head_dim), k and v with kv_heads.
// Under context parallelism a rank's queries and the keys that come to it stand anywhere in the sequence (models/
// sequence.h): keys of the block `hops` places before its own, or of all blocks, in a buffer of their own. What further
// keys give is merged with the result so far by the log-sum-exp of its rows (Liu et al. 2023, Ring Attention,
// 2310.01889); their gradient is added to the queries'.
struct FlashAttention {
  std::int64_t batch = 0, heads = 0, kv_heads = 0, query = 0, key = 0, head_dim = 0, value_dim = 0;
  std::int64_t window = 0;  // 0 = causal over everything
  Direction direction = Direction::forward;
  double softcap = 0;  // of the scores, as SoftCap; 0 = none. Its tanh is not counted
  double pairs = -1;   // of a query and a key that it sees, of one head of a sample; < 0: causal over everything
  std::int64_t hops = 0;
  bool keys_apart = false;
  bool merges = false;
  bool drops = false;  // dropout of the probabilities: every pair costs a random number, both ways
};

// Copies the heads of every token between a packed projection (rows, heads + 2 kv_heads) and a buffer that travels
// round a context group, (members, rows, ...): for each member a part of the heads, with the key/value heads that it
// needs, which several members may get; or with one member and no queries, keys and values alone. backward: back from
// such a buffer; what several had is summed.
struct MoveHeads {
  std::int64_t rows = 0, heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t members = 1;
  bool queries = true;
  Direction direction = Direction::forward;

  std::int64_t member_heads() const { return queries ? heads / members : 0; }
  std::int64_t member_kv_heads() const { return kv_heads == 0 ? 0 : kv_heads < members ? 1 : kv_heads / members; }
  std::int64_t columns() const { return (member_heads() + 2 * member_kv_heads()) * head_dim; }  // of one member
};

// Row-wise softmax of scores (batch, heads, query, key) with mask and dropout, in `passes` kernels. window: as flash
// attention's; keys outside get zero, at the same cost.
struct Softmax {
  std::int64_t rows = 0, columns = 0;
  bool dropout = false;
  bool fused = true;
  Direction direction = Direction::forward;
  std::int64_t window = 0;
};

// RMS or layer norm over rows of `columns` values; backward also yields the weight's gradient. Of rows that lie in
// `pieces` on as many ranks, `columns` to each: sums of this rank's values, which the ranks add up, and with these the
// rest.
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
  std::int64_t rows = 0, columns = 0;  // of the rotated part of q and k
  std::int64_t head_dim = 0;
  bool fused = true;
  Direction direction = Direction::forward;
};

// What stands between the projections of latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1) and its core.
// Rotates the last `rope` columns of every query head in place, and packs keys and values: in (rows, heads * (nope +
// value)) and the rope keys (rows, rope) that all heads share; out (rows, heads * (nope + rope)) keys, then (rows,
// heads
// * value) values. Backward takes it apart again; the shared keys' gradient is summed over this rank's heads.
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

// out = residual + dropout(in + bias). Without a residual: what is left of it. side: of the rows, or of the scores'
// heads and samples.
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
// that of its place in the sequence; vocab is the length of that table. The table is a part of the whole: that of this
// rank in the group `over`, or the panel-th; adds: tokens that it lacks leave what is there.
struct Embedding {
  std::int64_t rows = 0, columns = 0, vocab = 0;
  bool positions = false;
  Direction direction = Direction::forward;
  Bytes gradient_bytes = 4;  // of an element of the table's gradient
  Dimension over = Dimension::tensor;
  std::int64_t panel = -1;
  bool adds = false;
};

// The pieces of cross-entropy over logits (rows, columns) cut by vocabulary over a group: between them it reduces rows
// values. maximum; exponent: subtracts, exponentiates, sums; loss: log and pick; gradient: softmax - one_hot. Where
// exponents were taken to each rank's own maxima, rescale brings their sums to those of all ranks. combine: the
// gradient of the rows (rows, columns) that a rank's logits came from, of what its exponents and its labels give.
struct CrossEntropy {
  enum class Part : std::uint8_t { maximum, exponent, loss, gradient, rescale, combine };
  std::int64_t rows = 0, columns = 0;
  Part part = Part::maximum;
  bool fused = true;
  std::int64_t predictions = 1, parts = 1;  // as Load's; further predictions weigh less
  Dimension over = Dimension::tensor;
  std::int64_t metrics = 0;  // of the part `loss`: times that a stack's metrics compute it anew from the logits
  bool narrow = false;       // reads the logits as wide as they are; exponents are not kept, backward takes them again
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

// Token ids of a micro-batch, or its labels (the token that follows each), copied from the host's text; 64-bit. Of
// tokens so many places ahead. predictions: the rows are those of the model and of each further prediction, one place
// further on every time; `parts` equal runs of tokens stand one behind the other, each with all its predictions.
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
// the squared norm, 1 / loss scale). check: also notes whether any is not finite.
struct Multiply {
  std::int64_t elements = 0;
  Bytes width = 4;
  double factor = 0;
  bool check = false;
  std::int64_t first = 0;
};

// Where a buffer lies: in the device's memory, in its host's, or on the node's disks.
enum class Home : std::uint8_t { device, host, nvme };

// A copy of `bytes` between two places, or inside one. Between a tile (plan.h) and a chunk's states it holds the rank's
// `elements` from `first` on of its shards; between two buffers of the states, those of as many of the chunk that it
// owns. From a longer buffer to a shorter one on the device: this rank's of the tensor group's equal parts.
struct PlaceCopy {
  Bytes bytes = 0;
  Home from = Home::device, to = Home::host;
  std::int64_t first = 0, elements = 0;
  Bytes width = 2;  // of an element
};

// Does nothing: the plan wants what the task waits for, and what it frees. device: all that was launched to compute.
struct Wait {
  bool device = false;
};

// Two buffers of the same size change names, when the task is issued: what the first operand names is the second's from
// then on.
struct Exchange {};

// Sum of squares of the gradients this rank owns, added to those of the chunks before. A weight that several ranks hold
// counts on one of them: replicated ones on the first of the tensor group, key/value heads on the first of `kv`, a tied
// table on the first stage.
struct SquaredNorm {
  std::int64_t elements = 0;
  Bytes width = 4;
};

// The update of `elements` parameters, from element `first` of the rank's shards: reads gradient, master and moments,
// writes them and the forward copy. delayed: with the gradients of the step before (none in the first step). validated:
// in the next step (post_validation.h); made only where the norm so far, the second number read, clips nothing.
struct Update {
  std::int64_t elements = 0;
  Bytes gradient = 4, master = 4, moment = 4, forward = 2;
  int moments = 2;
  bool fused = true;
  std::int64_t first = 0;
  bool delayed = false;
  bool validated = false;
};

// How collectives move that Transformer Engine's user buffers launch beside the pieces of a product, in one call with
// them; those of copy engines take no multiprocessors.
inline constexpr const char* kUserBuffers = "user buffers";
inline constexpr const char* kCopyEngines = "copy engines";

// bytes is the larger of what one rank puts in and takes out (NCCL's size): S of an all-reduce of S, the whole of a
// gather. An all-reduce of a unit's counts `first` among the rank's shards of the unit. A shift passes parts on round a
// ring in one buffer that has a part of every member, where `first` says how far before this member's own the one lies
// that comes in.
struct Collective {
  CollectiveKind kind = CollectiveKind::all_reduce;
  Dimension group = Dimension::data;
  Bytes bytes = 0;
  Bytes width = 2;         // of an element
  std::int64_t first = 0;  // element of the flat buffer where it begins
  std::string algorithm = "library";
  bool maximum = false;      // an all-reduce that takes the largest value instead of the sum
  std::int64_t servers = 0;  // of push and pull: pieces, each of which a server among the last members holds
  std::int64_t copies = 1;   // of these: servers that hold the same piece, each `servers` members behind the one before
  std::int64_t tensors = 1;  // that one launch moves, each by itself (a coalesced group)
  std::int64_t root = 0;     // of a broadcast or reduce: the member of the group that has it, or gets it
};

// One end of a point-to-point transfer along the pipeline group. offset: places ahead of this one, modulo the group.
struct Transfer {
  bool send = true;
  std::int64_t offset = 1;
  Bytes bytes = 0;
  Bytes first = 0;  // where in the buffer it begins
};

using Work = std::variant<Gemm, GroupedGemm, GroupedBias, Gate, Permute, SigmoidGate, SortChunks, CountTokens,
                          FlashAttention, MoveHeads, Softmax, Normalize, Rotary, LatentHeads, Split, Activation,
                          Residual, Add, BiasGradient, Embedding, CrossEntropy, Cast, SoftCap, Accumulate, Load, Fill,
                          Multiply, PlaceCopy, Wait, Exchange, SquaredNorm, Update, Collective, Transfer>;

// Keys that a query of a causal attention sees on average, within its window.
double keys_per_query(const FlashAttention& a);

// Bytes that merging a part of attention into the result so far passes through memory; 0 where nothing is merged.
double merged_bytes(const FlashAttention& a, Bytes width);

// Floating-point operations and bytes that pass through device memory, of one task.
struct Cost {
  double flops = 0;
  double bytes = 0;
};

// width: bytes of an activation element.
Cost cost_of(const Work& work, Bytes width);

// Kernels one task launches. Unfused ones are the operations of eager PyTorch.
int kernels_of(const Work& work);

// Calls of the framework that launch them. A library launches several in one (experts' products, an attention's
// backward, an update over lists of tensors); what is not fused is called operation by operation.
int calls_of(const Work& work);

}  // namespace orrery
