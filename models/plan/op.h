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

// The work of one task (a kernel, a copy or a transfer): one struct per kernel family, which holds only shapes and
// options. A new struct needs code in four places: here, op.cpp (flops, bytes), its kernel and its launch; the compiler
// names those that are missing (std::visit). Shapes are those of one rank. Rows are tokens: (batch * sequence /
// context).

enum class Direction : std::uint8_t { forward, backward };

// An op whose number of rows is known only at run time (Op::runtime_size: tokens of experts) holds the predicted
// number; the executor takes the real one from its buffers.

// C(m, n) [+]= A(m, k) B(k, n), batch times; plus a bias if the op reads one. role says which of a linear layer's three
// products this is: output y(tokens, out) = x W^T; input gradient dx = dy W; weight gradient dW(out, in) [+]= dy^T x.
// Or one of attention's products, batched over every sample and head: scores Q K^T, values P V, and backward dP = dY
// V^T, dV = P^T dY, dQ = dS K, dK = dS^T Q; then q, k and v lie in one packed buffer of heads and kv_heads.
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
  bool accumulate = false;               // the product is added to C
  Bytes result_bytes = 2;                // bytes of an element of C
  std::int64_t heads = 0, kv_heads = 0;  // heads in the products of attention
  // A linear layer may run in tiles, one after another: this product is number `tile` of `tiles` equal parts of the
  // layer's outputs (columns of y and dy). An input gradient accumulates after the first tile.
  std::int64_t tile = 0, tiles = 1;
  // A product may consist of `pieces` kernels with equally many rows that run side by side: this is number `piece`.
  std::int64_t pieces = 1, piece = 0;
  // The rows that a product covers where each tensor rank holds a part of them. member: the rows of the group member
  // `piece` ranks before this one; before, behind, others: the rows of all members before it, behind it (m is that of a
  // rank in the middle), or both; runs: every member's rows are cut into `pieces` equal runs, and the product covers
  // run number `piece` of each, one member after another.
  enum class Rows : std::uint8_t { all, member, before, behind, others, runs };
  Rows rows = Rows::all;
};

// One product for each of this rank's experts (grouped GEMM). The `rows` rows of all experts together are sorted by
// expert, and each product reads its own expert's rows. The weights (out, in) of the experts lie one after another.
// even: every expert has equally many rows; else the numbers of rows come from the counted tokens.
struct GroupedGemm {
  std::int64_t groups = 0, rows = 0, out = 0, in = 0;
  Gemm::Role role = Gemm::Role::output;  // output, input_gradient or weight_gradient
  bool accumulate = false;
  Bytes result_bytes = 2;
  bool even = false;
};

// Adds each expert's bias (groups, columns) to its rows, which are sorted as in GroupedGemm: y += b, or if the op reads
// the router's weights (weighted) y += weight b. The ranks of expert_tensor, whose results are summed, each add an
// equal part of b. Backward adds to the gradient of the biases, and yields the part of the gradient of the router's
// weights that comes from the bias.
struct GroupedBias {
  std::int64_t groups = 0, rows = 0, columns = 0;
  bool even = false, weighted = false;
  Direction direction = Direction::forward;
};

// The router's choice for every token: scores of all experts from logits (rows, experts), by softmax or sigmoid; the
// top_k largest are chosen, of equal ones the lower expert (corrected: a weight per expert is added to the scores for
// the choice alone, DeepSeek-V3). An expert's output is weighted by its score (top_k 1: Fedus et al. 2021, Switch
// Transformer) or by its part of the sum of the chosen scores. Among `expert_groups` equal groups of experts a token
// can only choose from the best top_groups, ranked by their largest score, or if corrected by the sum of their two
// largest. capacity > 0: an expert takes at most this many tokens, the first ones, of each of `groups` equal runs of
// tokens; further choices are dropped. padded: every expert gets exactly capacity rows of every run. The auxiliary loss
// of T tokens is aux_loss * experts * sum over experts of (their part of all choices * mean score) (Switch, section
// 2.2; sigmoid scores divided by their sum); only its gradient is computed. If the tokens of a micro-batch lie on
// several ranks (sharers), forward counts the choices by expert, and the counts of these ranks are summed for the
// auxiliary loss.
struct Gate {
  std::int64_t rows = 0, experts = 0, top_k = 0, capacity = 0, groups = 1, expert_groups = 1, top_groups = 1;
  std::int64_t sharers = 1;
  bool padded = false, sigmoid = false, corrected = false;
  double aux_loss = 0;
  Direction direction = Direction::forward;
};

// Copies rows of tokens into the order of experts, or back: `moved` rows, sorted by expert, within an expert in the
// order of the tokens. expand: a token's row is copied to every place that routing gives it (zeros elsewhere), else a
// token's row is the sum of the rows at its places. weighted: the router's weights (rows, copies) are moved too, one
// number a row.
struct Permute {
  std::int64_t rows = 0, copies = 0, columns = 0, moved = 0;
  bool expand = true, weighted = false;
};

// y = x sigmoid(g), with one number g for each row: the gate of shared experts (Qwen1.5-MoE). Backward yields both
// gradients.
struct SigmoidGate {
  std::int64_t rows = 0, columns = 0;
  Direction direction = Direction::forward;
};

// Sorts rows received in the order of source rank, then expert, into the order of experts; back: the reverse. weighted:
// the router's weights are moved too, as in Permute.
struct SortChunks {
  std::int64_t rows = 0, columns = 0, sources = 0, experts = 0;
  bool weighted = false, even = false, back = false;
};

// The host reads how many rows its rank sends and receives (the block's runtime sizes, in their order) from a buffer of
// `counts` numbers.
struct CountTokens {
  std::int64_t counts = 0;
};

// softmax(Q K^T / sqrt(d)) V, without writing the scores to memory. q (batch, query, heads, head_dim), k and v with
// kv_heads. Under context parallelism the queries and the keys may be from different parts of the sequence
// (models/spec/sequence.h): the keys are those of the sequence block `hops` places before the rank's own, or of all
// blocks, in a buffer apart from the queries (keys_apart). merges: the result over further keys is merged with the
// result so far by the log-sum-exp of its rows (Liu et al. 2023, Ring Attention, 2310.01889); in backward their
// gradient of the queries is added to the gradient so far.
struct FlashAttention {
  std::int64_t batch = 0, heads = 0, kv_heads = 0, query = 0, key = 0, head_dim = 0, value_dim = 0;
  std::int64_t window = 0;  // 0 = causal over everything
  Direction direction = Direction::forward;
  double softcap = 0;  // cap of the scores, as in SoftCap; 0 = none. The tanh is not counted
  double pairs = -1;   // query-key pairs that the mask leaves, in one head of a sample; < 0: causal over everything
  std::int64_t hops = 0;
  bool keys_apart = false;
  bool merges = false;
  bool drops = false;  // dropout of the probabilities: every pair costs a random number, in forward and in backward
};

// Copies heads of every token between the packed QKV projection (rows, heads + 2 kv_heads) and a buffer that is
// exchanged within a context group, (members, rows, ...): each member's part has some of the heads, with the key/value
// heads that these need, which may go to several members; or, with one member and without queries, all keys and values.
// backward: copies from the exchanged buffer into the packed one, and sums heads that several members had.
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
// window: the sliding window, as in FlashAttention; keys outside it get probability zero, at the same cost.
struct Softmax {
  std::int64_t rows = 0, columns = 0;
  bool dropout = false;
  bool fused = true;
  Direction direction = Direction::forward;
  std::int64_t window = 0;
};

// RMS or layer norm over rows of `columns` values; backward also yields the weight's gradient. Rows may be cut into
// `pieces` parts on as many ranks, with `columns` values on each: then one op sums over this rank's values (part
// `sums`), the sums are all-reduced, and another op normalizes (part `finish`).
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

// Copies (rows, first + second) into two contiguous buffers; backward joins their gradients again.
struct Split {
  std::int64_t rows = 0, first = 0, second = 0;
  Direction direction = Direction::forward;
};

// gated: SwiGLU, in (rows, 2 * columns) -> out (rows, columns); else GeLU of (rows, columns). The bias before the
// activation costs no pass over memory: it is the product's epilogue (cuBLASLt), or is added as the activation reads
// its input (Megatron's bias-GeLU). weighted: each row is multiplied by one number, whose gradient backward yields too.
struct Activation {
  std::int64_t rows = 0, columns = 0;
  bool gated = true;
  bool fused = true;
  Direction direction = Direction::forward;
  bool weighted = false;
};

// out = residual + dropout(in + bias); without a residual out = dropout(in + bias). side: how the rows (or the heads
// and samples of attention scores) are sharded over a grid of tensor ranks.
struct Residual {
  std::int64_t rows = 0, columns = 0;
  bool residual = true;
  bool bias = false;
  bool dropout = false;
  bool fused = true;
  Direction direction = Direction::forward;
  Side side = {};
};

// out = a + b, which sums a gradient that comes from two consumers of a tensor.
struct Add {
  std::int64_t elements = 0;
};

// Gradient of a bias: the sum of dy (rows, columns) over its rows.
struct BiasGradient {
  std::int64_t rows = 0, columns = 0;
};

// Looks up a row of a (vocab, columns) table for each token; backward adds rows into the table's gradient. positions:
// adds to each row the learned embedding of the token's position, from a table of length vocab. The table may be a part
// of the whole: this rank's part in the group `over`, or part number `panel`. adds: rows of tokens that are not in that
// part keep the values that they had.
struct Embedding {
  std::int64_t rows = 0, columns = 0, vocab = 0;
  bool positions = false;
  Direction direction = Direction::forward;
  Bytes gradient_bytes = 4;  // bytes of an element of the table's gradient
  Dimension over = Dimension::tensor;
  std::int64_t panel = -1;
  bool adds = false;
};

// One step of cross-entropy over logits (rows, columns) whose vocabulary is sharded over a group; between the steps
// `rows` values are all-reduced. maximum; exponent: subtracts, exponentiates, sums; loss: log and pick of the label;
// gradient: softmax - one_hot. rescale: where each rank took exponents relative to its own maximum, converts their sums
// to the maximum of all ranks. combine: computes the gradient of the hidden states (rows, columns) from the part that
// comes from the exponents and the part that comes from the labels.
struct CrossEntropy {
  enum class Part : std::uint8_t { maximum, exponent, loss, gradient, rescale, combine };
  std::int64_t rows = 0, columns = 0;
  Part part = Part::maximum;
  bool fused = true;
  // As in Load; further predictions (multi-token prediction) weigh less in the loss
  std::int64_t predictions = 1, parts = 1;
  Dimension over = Dimension::tensor;
  std::int64_t metrics = 0;  // part `loss`: how often a stack's metrics compute the loss again from the logits
  bool narrow = false;       // reads the logits without a cast to fp32; backward computes the exponents again
};

// Element-wise change of width: `from` and `to` are bytes per element. transpose: also writes a transposed copy.
struct Cast {
  std::int64_t elements = 0;
  Bytes from = 2, to = 4;
  bool transpose = false;
};

// y = cap tanh(x / cap), in place; backward multiplies the gradient by 1 - (y / cap)^2 (Gemma 2). Unfused: one kernel
// each for the division, tanh and the multiplication.
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

// Copies the token ids of a micro-batch, or its labels (the token that follows each), from the host's text; 64-bit.
// ahead: the ids are those this many positions later. predictions: after the model's own rows come those of each
// further prediction (multi-token prediction), each one position later; the tokens are cut into `parts` equal runs, one
// after another, each with all its predictions.
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
// writes: by `factor`, or if factor is 0 by a value computed from the number that the op reads (the clip coefficient
// from the squared norm, 1 / loss scale). check: also notes whether any of the numbers is not finite.
struct Multiply {
  std::int64_t elements = 0;
  Bytes width = 4;
  double factor = 0;
  bool check = false;
  std::int64_t first = 0;
};

// A copy of `bytes` between two memory tiers, or within one. Between a host tile (BlockRole::tile) and a chunk's states
// it copies `elements` elements of the rank's shards, from `first` on; between two state buffers, the part that the
// rank owns of `elements` elements of the chunk. From a longer buffer to a shorter one on the device it copies this
// rank's part, where each tensor rank has an equal part of the buffer.
struct PlaceCopy {
  Bytes bytes = 0;
  MemoryTier from = MemoryTier::device, to = MemoryTier::host;
  std::int64_t first = 0, elements = 0;
  Bytes width = 2;  // bytes of an element
};

// An op that does nothing by itself: its task waits for other tasks, and frees buffers. device: it waits for all
// compute that was launched so far.
struct Wait {
  bool device = false;
};

// Two buffers of the same size are swapped when the task is issued: from then on the first operand names the memory
// that the second named before.
struct Exchange {};

// The sum of squares of the gradients that this rank owns, added to the sum of the chunks before. A weight that several
// ranks hold is counted on one of them: replicated weights on the first of the tensor group, key/value heads on the
// first of `kv`, a tied table on the first stage.
struct SquaredNorm {
  std::int64_t elements = 0;
  Bytes width = 4;
};

// The optimizer's update of `elements` parameters, from element `first` of the rank's shards: reads gradient, master
// and moments, writes them and the copy for forward. delayed: the update takes the gradients of the step before (none
// in the first step). validated: the update is validated in the next step (post_validation.h); it is made only if the
// norm known so far, the second number read, needs no clipping.
struct Update {
  std::int64_t elements = 0;
  Bytes gradient = 4, master = 4, moment = 4, forward = 2;
  int moments = 2;
  bool fused = true;
  std::int64_t first = 0;
  bool delayed = false;
  bool validated = false;
};

// Newton-Schulz iterations that bring a matrix (rows, columns) near the orthogonal one with the same singular vectors,
// in place (Jordan 2024, Muon): with X X^T = A, each computes X <- a X + (b A + c A^2) X, on the transposed matrix
// where rows > columns. `matrices` such matrices lie one after another.
struct Orthogonalize {
  std::int64_t rows = 0, columns = 0, matrices = 1;
  std::int64_t iterations = 5;
};

// Values of Collective::algorithm. kUserBuffers: collectives that Transformer Engine's user buffers launch beside the
// pieces of a product, in one call with them. kCopyEngines: the same by copy engines, which take no multiprocessors.
inline constexpr const char* kUserBuffers = "user buffers";
inline constexpr const char* kCopyEngines = "copy engines";

// bytes is the larger of the input and the output of one rank (NCCL's size): S for an all-reduce of S, the whole for a
// gather. If a unit's gradients are all-reduced, `first` counts among the rank's shards of the unit. A shift passes
// parts round a ring, in one buffer that has a part of every member; `first` says how far before this member's own part
// the incoming one lies.
struct Collective {
  CollectiveKind kind = CollectiveKind::all_reduce;
  Dimension group = Dimension::data;
  Bytes bytes = 0;
  Bytes width = 2;         // bytes of an element
  std::int64_t first = 0;  // element of the flat buffer where the collective begins
  std::string algorithm = "library";
  bool maximum = false;      // an all-reduce that takes the largest value instead of the sum
  std::int64_t servers = 0;  // push and pull: number of pieces; one of the last members, a server, holds each
  // Push and pull: how many servers hold the same piece, each `servers` members after the one before
  std::int64_t copies = 1;
  std::int64_t tensors = 1;  // tensors that one launch moves, each by itself (a coalesced group)
  std::int64_t root = 0;     // broadcast and reduce: the member of the group that has the data, or receives it
};

// One end of a point-to-point transfer between pipeline stages. offset: how far ahead in the pipeline group the other
// end is, modulo the group. parts: the ranks of the tensor group hold the same bytes, so that each sends only one of
// this many parts, and the receivers all-gather them.
struct Transfer {
  bool send = true;
  std::int64_t offset = 1;
  Bytes bytes = 0;
  Bytes first = 0;  // byte of the buffer where the transfer begins
  std::int64_t parts = 1;
};

using Work =
    std::variant<Gemm, GroupedGemm, GroupedBias, Gate, Permute, SigmoidGate, SortChunks, CountTokens, FlashAttention,
                 MoveHeads, Softmax, Normalize, Rotary, LatentHeads, Split, Activation, Residual, Add, BiasGradient,
                 Embedding, CrossEntropy, Cast, SoftCap, Accumulate, Load, Fill, Multiply, PlaceCopy, Wait, Exchange,
                 SquaredNorm, Update, Orthogonalize, Collective, Transfer>;

// Keys that a query of a causal attention sees on average, within its window.
double keys_per_query(const FlashAttention& a);

// Bytes of memory traffic for merging a part of attention into the result so far; 0 if nothing is merged.
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
