#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <variant>

#include "models/base/dimension.h"
#include "models/base/layer_kind.h"
#include "models/base/memory_tier.h"
#include "models/base/narrow.h"
#include "models/base/precision.h"
#include "models/base/units.h"
#include "models/base/weight_format.h"
#include "models/collectives/algorithms.h"

namespace orrery {

// Each struct below describes the work of one kind of task (a kernel, a memcpy or a transfer) by its shapes and options
// alone. A new struct needs code in four places: here, op.cpp (flops, bytes), its kernel and its launch; the compiler
// reports a place that was forgotten (std::visit). All shapes are those of one rank's part. Unless said otherwise, a
// row is a token: for a micro-batch a rank has batch * sequence / context of them, where `context` is the size of the
// context parallel group.

enum class Direction : std::uint8_t { forward, backward };

// If the number of rows of an op is known only at run time (Op::runtime_size, the tokens routed to experts), its struct
// holds the predicted number; the executor takes the real number from the op's buffers.

// A matrix product C(m, n) [+]= A(m, k) B(k, n), for each of `batch` pairs of matrices; a bias is added if the op reads
// one. `role` says which product of a layer it is. A linear layer has three: the output y(tokens, out) = x W^T; the
// input gradient dx = dy W; the weight gradient dW(out, in) [+]= dy^T x. Attention has six, batched over every sample
// and head: scores Q K^T, values P V, and in backward dP = dY V^T, dV = P^T dY, dQ = dS K, dK = dS^T Q, where Q, K and
// V lie in one packed buffer of `heads` query heads and `kv_heads` key/value heads.
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
  bool accumulate = false;               // whether the product is added to what C holds, not written over it
  Bytes result_bytes = 2;                // bytes of one element of the product C
  std::int64_t heads = 0, kv_heads = 0;  // for attention's products: numbers of query heads and of key/value heads
  // A linear layer may run in tiles, one after another: this product is number `tile` of `tiles` equal parts of the
  // layer's outputs (columns of y and dy). The input gradients of all tiles are summed, so every tile after the first
  // adds to the result.
  std::int64_t tile = 0, tiles = 1;
  // A product may be split into `pieces` kernels with equally many rows that run at the same time; this is number
  // `piece`.
  std::int64_t pieces = 1, piece = 0;
  // If each rank of the tensor parallel group holds a part of the rows, these values say which rows the product covers.
  // member: the rows of the group member `piece` ranks before this rank. before, behind, others: the rows of all
  // members before this rank, of all members after it, or of both (m is the number of rows for a rank in the middle of
  // the group). runs: every member's rows are cut into `pieces` equal runs, and the product covers run number `piece`
  // of every member.
  enum class Rows : std::uint8_t { all, member, before, behind, others, runs };
  Rows rows = Rows::all;
  // A linear layer may consist of `apart` layers with the same input and a product each, of which every one after the
  // first has `apart_outputs` outputs. The shapes, and the buffers in plans, are those of all of them side by side.
  std::int64_t apart = 1, apart_outputs = 0;
  // the format of the weights that the product reads (of `n` rows and `k` columns), which it dequantises
  WeightFormat weights;
};

// A grouped matrix product: one product for each of this rank's `groups` experts. `rows` is the number of rows of all
// experts together; the rows are sorted by expert, and each product reads its own expert's rows. The weights (out, in)
// of the experts lie one after another. even: every expert has equally many rows; else each expert's number of rows is
// the number of tokens counted for it (CountTokens). one_kernel: all products are one kernel, else one each. uneven:
// whether a prediction takes the experts to have unequal numbers of rows, as a trained router prefers some of them.
struct GroupedGemm {
  std::int64_t groups = 0, rows = 0, out = 0, in = 0;
  Gemm::Role role = Gemm::Role::output;  // which product of the layer: output, input_gradient or weight_gradient
  bool accumulate = false;
  Bytes result_bytes = 2;
  bool even = false;
  bool one_kernel = false;
  bool uneven = false;
  WeightFormat weights;  // the format of the experts' weights, as in Gemm
  // rows of the rank's tokens for experts of other ranks, which the kernel finds among its own and passes over
  std::int64_t passed = 0;
};

// The op adds each expert's bias (groups, columns) to the expert's rows, which are sorted as in GroupedGemm: y += b, or
// y += weight b if the op reads the router's weights (weighted). The results of the ranks that share an expert's
// matrices (group expert_tensor) are summed, so each of these ranks adds an equal part of b. Backward adds to the
// gradient of the biases, and yields the part of the router weights' gradient that comes from the bias.
struct GroupedBias {
  std::int64_t groups = 0, rows = 0, columns = 0;
  bool even = false, weighted = false;
  Direction direction = Direction::forward;
};

// The router's choice of experts for every token. The scores of all experts are computed from logits (rows, experts) by
// softmax or sigmoid, and the top_k experts with the largest scores are chosen; of equal scores, the expert with the
// lower number wins. corrected: a bias per expert is added to the scores for the choice alone (DeepSeek-V3). An
// expert's output is weighted by its score (top_k 1: Fedus et al. 2021, Switch Transformer) or by its fraction of the
// sum of the chosen scores. The experts form `expert_groups` equal groups; a token can only choose from the best
// top_groups of these, ranked by their largest score, or if corrected by the sum of their two largest scores. capacity
// > 0: the tokens are cut into `groups` equal runs, and an expert takes at most the first `capacity` tokens that chose
// it in each run; further choices are dropped. padded: every expert gets exactly `capacity` rows of every run. The
// auxiliary loss of T tokens is aux_loss * experts * sum over experts of (fraction of all choices * mean score)
// (Switch, section 2.2; sigmoid scores are divided by their sum); only its gradient is computed. If the tokens of a
// micro-batch are spread over several ranks (`sharers` of them), forward counts the choices by expert, and these ranks'
// counts are summed for the auxiliary loss. hashed: a table names the experts of each token of the vocabulary
// (DeepSeek-V4, section 2.1), so that scores only weigh the experts' outputs.
struct Gate {
  std::int64_t rows = 0, experts = 0, top_k = 0, capacity = 0, groups = 1, expert_groups = 1, top_groups = 1;
  std::int64_t sharers = 1;
  bool padded = false, sigmoid = false, corrected = false, hashed = false;
  double aux_loss = 0;
  Direction direction = Direction::forward;
};

// The op copies the rows of tokens into the order of experts, or back. The order of experts has `moved` rows, sorted by
// expert and within an expert by token; a token has at most `copies` rows there. expand: a token's row is copied to
// each of its rows in the order of experts (other rows get zeros); else the rows of a token are summed into one.
// weighted: the router's weights (rows, copies) are moved too, one number a row.
struct Permute {
  std::int64_t rows = 0, copies = 0, columns = 0, moved = 0;
  bool expand = true, weighted = false;
};

// The gate of shared experts (Qwen1.5-MoE), y = x sigmoid(g), with one number g for each row. Backward yields the
// gradients of x and of g.
struct SigmoidGate {
  std::int64_t rows = 0, columns = 0;
  Direction direction = Direction::forward;
};

// The op sorts the rows that a rank received from the ranks of its expert parallel group, which are ordered by source
// rank and then by expert, into the order of experts; `back` sorts them into the order of source ranks again. weighted:
// the router's weights are moved too, as in Permute. distinct > 0: the rows are copies of that many tokens, which are
// read once each, and of whose results one sum is written. pads: the rows are copied once more, each expert's to the
// multiple that products in 8 bits need.
struct SortChunks {
  std::int64_t rows = 0, columns = 0, sources = 0, experts = 0;
  bool weighted = false, even = false, back = false;
  std::int64_t distinct = 0;
  bool pads = false;
};

// The host reads from a buffer of `counts` numbers how many tokens its rank sends to and receives from other ranks for
// their experts. The numbers are the sizes that the plan left open until run time (Block::runtime_sizes), in that
// list's order.
struct CountTokens {
  std::int64_t counts = 0;
};

// Attention in one kernel: softmax(Q K^T / sqrt(d)) V, without writing the scores to memory. q is (batch, query, heads,
// head_dim); k and v have kv_heads heads. Under context parallelism the queries and the keys may come from different
// parts of the sequence (models/spec/sequence.h). The keys then lie in a buffer of their own (keys_apart), and come
// from the sequence block `hops` blocks before the rank's own, or from all blocks. merges: the result over these keys
// is merged with the result over earlier keys by the log-sum-exp of its rows (Liu et al. 2023, Ring Attention,
// 2310.01889); in backward the queries' gradient is added to the gradient over earlier keys.
struct FlashAttention {
  std::int64_t batch = 0, heads = 0, kv_heads = 0, query = 0, key = 0, head_dim = 0, value_dim = 0;
  std::int64_t window = 0;  // number of keys that a query sees; 0 = causal over all keys
  Direction direction = Direction::forward;
  double softcap = 0;  // cap of the scores, as in SoftCap; 0 = none. The FLOPs of its tanh are not counted
  // number of query-key pairs that the mask leaves in one head of one sample; < 0: the mask is causal over all keys
  double pairs = -1;
  std::int64_t hops = 0;
  bool keys_apart = false;
  bool merges = false;
  bool eight_bit = false;  // whether the kernel's products are in 8 bits
  bool drops = false;      // dropout of the probabilities: every pair costs a random number, in forward and in backward
  std::int64_t chosen = 0;  // if above 0, a query sees only keys that an index chose (IndexScores), at most this many
  // > 0: number of compressed keys (Pool: one key of several tokens), of which a query sees some beside a window of
  // ordinary keys; `pairs` counts the pairs with both
  std::int64_t compressed = 0;
  // For generation with a KV cache. cached: number of tokens of each sequence whose keys and values are read from the
  // cache; cached_row: bytes of one token in the cache. The queries are those of the tokens after the cached ones, and
  // `key` counts cached and new tokens.
  std::int64_t cached = 0;
  Bytes cached_row = 0;
  // Whether CUDA cores compute it, each query head for itself, although several share a key head, whose rows then come
  // from the L2 cache (Software::Kernels::grouped_attention)
  bool on_cuda_cores = false;
};

// The op copies heads of every token between the packed QKV projection (rows, heads + 2 kv_heads) and a buffer
// (members, rows, ...) that is exchanged within a context parallel group of `members` ranks. Each member's part has an
// equal number of query heads and the key/value heads that these need, so that a key/value head may go to several
// members; with one member and without queries the buffer has all keys and values. backward: copies from the exchanged
// buffer into the packed one, and sums the gradients of heads that went to several members.
struct MoveHeads {
  std::int64_t rows = 0, heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t members = 1;
  bool queries = true;
  Direction direction = Direction::forward;

  std::int64_t member_heads() const { return queries ? heads / members : 0; }
  std::int64_t member_kv_heads() const { return kv_heads == 0 ? 0 : kv_heads < members ? 1 : kv_heads / members; }
  // number of columns of one context rank's part: head_dim for each of its query, key and value heads
  std::int64_t columns() const { return (member_heads() + 2 * member_kv_heads()) * head_dim; }
};

// Row-wise softmax of attention scores (batch, heads, query, key), here a matrix (rows, columns), with mask and
// dropout, in one kernel (fused) or in several. window: the sliding window, as in FlashAttention; keys outside the
// window get probability zero, and cost as much as keys inside.
struct Softmax {
  std::int64_t rows = 0, columns = 0;
  bool dropout = false;
  bool fused = true;
  Direction direction = Direction::forward;
  std::int64_t window = 0;
};

// RMS norm or layer norm over rows of `columns` values; backward also yields the gradient of the norm's weight. Each
// row may be cut into `pieces` parts of `columns` values, one on each of as many ranks; then one op sums over this
// rank's values (part `sums`), the sums are all-reduced, and another op normalizes (part `finish`).
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
  std::int64_t rows = 0, columns = 0;  // number of tokens, and of rotated columns of queries and keys together
  std::int64_t head_dim = 0;
  bool fused = true;
  Direction direction = Direction::forward;
};

// The op between the projections of latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1) and the attention
// itself. It rotates the last `rope` columns of every query head in place, and packs keys and values. It reads (rows,
// heads * (nope + value)) projected keys and values, and the rotated keys (rows, rope), which all heads share; it
// writes (rows, heads * (nope + rope)) keys, then (rows, heads * value) values. Backward unpacks the gradients of the
// packed buffers, and sums the shared keys' gradient over this rank's heads.
struct LatentHeads {
  std::int64_t rows = 0, heads = 0, nope = 0, rope = 0, value = 0;
  bool fused = true;
  Direction direction = Direction::forward;
};

// The op copies a matrix (rows, first + second) into two contiguous buffers (rows, first) and (rows, second); backward
// joins the two gradients into one buffer.
struct Split {
  std::int64_t rows = 0, first = 0, second = 0;
  Direction direction = Direction::forward;
};

// The activation function of an MLP. gated: SwiGLU, from (rows, 2 * columns) to (rows, columns); else GeLU of (rows,
// columns). The bias before the activation costs no pass over memory, because it is the matrix product's epilogue
// (cuBLASLt) or is added as the activation reads its input (Megatron's bias-GeLU). weighted: each row is multiplied by
// one number, and backward yields that number's gradient too.
struct Activation {
  std::int64_t rows = 0, columns = 0;
  bool gated = true;
  bool fused = true;
  Direction direction = Direction::forward;
  bool weighted = false;
};

// The residual connection out = residual + dropout(in + bias); without a residual out = dropout(in + bias). side: how
// the rows (or the heads and samples of attention scores) are sharded over a grid of tensor ranks.
struct Residual {
  std::int64_t rows = 0, columns = 0;
  bool residual = true;
  bool bias = false;
  bool dropout = false;
  bool fused = true;
  Direction direction = Direction::forward;
  Side side = {};
};

// The op adds the two gradients of a tensor that two ops read: out = a + b.
struct Add {
  std::int64_t elements = 0;
};

// The gradient of a bias: the sum of dy (rows, columns) over its rows.
struct BiasGradient {
  std::int64_t rows = 0, columns = 0;
};

// The op looks up a row of a (vocab, columns) table for each token; backward adds rows into the table's gradient.
// positions: the op adds to each row the learned embedding of the token's position, from a table of length vocab. The
// table may be a part of the complete table: this rank's part in the group `over`, or part number `panel`. adds: output
// rows of tokens that are not in that part keep their values, so that the results for all parts add up.
struct Embedding {
  std::int64_t rows = 0, columns = 0, vocab = 0;
  bool positions = false;
  Direction direction = Direction::forward;
  Bytes gradient_bytes = 4;  // bytes of one element of the table's gradient
  Dimension over = Dimension::tensor;
  std::int64_t panel = -1;
  bool adds = false;
};

// One step of cross-entropy over logits (rows, columns) whose vocabulary is sharded over a group; between the steps
// `rows` values are all-reduced. maximum: finds the largest logit of each row. exponent: subtracts the maximum,
// exponentiates, sums. loss: takes the log of the sum and the label's logit. gradient: computes softmax - one_hot.
// rescale: converts sums of exponents relative to this rank's own maximum to the maximum of all ranks. combine:
// computes the gradient of the hidden states (rows, columns) from the part that comes from the exponents and the part
// that comes from the labels.
struct CrossEntropy {
  enum class Part : std::uint8_t { maximum, exponent, loss, gradient, rescale, combine };
  std::int64_t rows = 0, columns = 0;
  Part part = Part::maximum;
  bool fused = true;
  // With multi-token prediction a token has a row for each prediction, in the order of Load: for each of `parts` runs
  // of tokens, the rows of all predictions one after another. Every prediction but the first has a loss of smaller
  // weight.
  std::int64_t predictions = 1, parts = 1;
  Dimension over = Dimension::tensor;
  // for the step `loss`: number of times that the training framework's metrics compute the loss again from the logits
  std::int64_t metrics = 0;
  // whether the op reads the logits in the data type of activations, without a cast to fp32; backward then computes the
  // exponents again
  bool narrow = false;
  // for the step `gradient`: whether each row's gradient is multiplied by a number of its own, which the op reads
  // (Preference)
  bool weighted = false;
};

// One step of the loss of a student beside a teacher, over the fp32 logits (rows, columns) of both, whose vocabulary is
// sharded over the tensor group. The loss of a row is cross_entropy * CE + divergence * temperature^2 * KL(teacher ||
// student), where KL divides all logits by the temperature. Between the steps, ranks all-reduce `values` numbers of
// each row. maximum: finds the largest logit of either model. exponent: sums exponentials of the student's logits, of
// the student's and of the teacher's logits divided by the temperature, and the products of the latter with the
// difference of both models' logits; and takes the label's logit. loss: computes the losses of the rows. gradient:
// overwrites the student's logits with their gradient. Each step is one kernel.
struct Distillation {
  enum class Part : std::uint8_t { maximum, exponent, loss, gradient };
  std::int64_t rows = 0, columns = 0;
  Part part = Part::maximum;
  double temperature = 1, divergence = 1, cross_entropy = 0;

  static constexpr std::int64_t kMaxima = 2, kSums = 5;  // numbers of a row that `maximum` and `exponent` write
};

// One step of the loss of a student's hidden states, or of their projection, (rows, columns), beside a teacher's. The
// loss of a row is `weight` times the mean over the columns of the squared difference. loss: writes the sum of the
// rows' losses. gradient: writes the gradient of the student's. Each step is one kernel, which reads both.
struct FeatureLoss {
  enum class Part : std::uint8_t { loss, gradient };
  std::int64_t rows = 0, columns = 0;
  Part part = Part::loss;
  double weight = 1;
};

// The loss of direct preference optimization (SecondModel), in one kernel, from the sums of cross-entropy (`exponent`)
// of the policy and of the reference over the rows of `samples` samples, of which each pair is a chosen and a rejected
// one. The op writes the loss of each row's pair, and the factor by which the row's gradient of cross-entropy is
// multiplied.
struct Preference {
  std::int64_t rows = 0, samples = 0;
  double beta = 0.1;
};

// An element-wise change of the data type, from `from` to `to` bytes per element; to 0 bytes: the kernel only finds the
// largest magnitude, from which the scale of a cast to 8 bits follows. transpose: also writes a transposed copy. parts:
// number of arrays of `elements` elements that the kernel sums as it reads them (what the ranks of a group sent each
// other); in plans, the collective before it has summed them already, into the array that the op reads. own_kernel: in
// generated text, whether a kernel of its own makes the change; else the kernel before it writes the numbers so.
struct Cast {
  std::int64_t elements = 0;
  Bytes from = 2, to = 4;
  bool transpose = false;
  std::int64_t parts = 1;
  bool own_kernel = false;
};

// The op converts `elements` numbers of `wide` bytes to a format of few bits. The numbers are cut into `pieces` equal
// runs (the last ones may be shorter), each of which is converted by itself and takes piece_bytes(). nodes: if above 1,
// run number n * (pieces / nodes) + p is written as number p * nodes + n, so that the runs of ranks with the same place
// p in their nodes follow each other (ZeRO++, 2306.10209, section 3.3: tensor slice reordering). summands: if above 0,
// the op reads no wide numbers, but this many runs of converted numbers one after another, each laid out as the result,
// and converts their sum.
struct Quantize {
  NarrowFormat format;
  std::int64_t elements = 0, pieces = 1;
  Bytes wide = 2;
  std::int64_t nodes = 1, summands = 0;

  Bytes piece_bytes() const { return narrow_bytes(format, ceil_div(elements, pieces)); }
};

// The op converts `elements` numbers back from a format of few bits to numbers of `wide` bytes; the numbers were cut
// into `pieces` runs (Quantize). summands: if above 1, the op reads this many such buffers one after another and
// converts the sum of their numbers, times `factor`. adds: the result is added to numbers of `wide` bytes.
struct Dequantize {
  NarrowFormat format;
  std::int64_t elements = 0, pieces = 1;
  Bytes wide = 2;
  std::int64_t summands = 1;
  double factor = 1;
  bool adds = false;

  Bytes piece_bytes() const { return narrow_bytes(format, ceil_div(elements, pieces)); }
};

// The op rounds a matrix (rows, columns) to a format of few bits and back, and writes the result with the width of
// activations: quantisation-aware training has one such op for the weight and one for the input of each linear layer.
// The gradient of this op is that of the identity (the straight-through estimator: Bengio et al. 2013, 1308.3432), so
// that backward has no such op.
struct FakeQuantize {
  WeightFormat format;
  std::int64_t rows = 0, columns = 0;
  bool fused = true;
};

// The cap of logits or scores (Gemma 2), y = cap tanh(x / cap), in place; backward multiplies the gradient by 1 - (y /
// cap)^2. Unfused: one kernel each for the division, tanh and the multiplication.
struct SoftCap {
  std::int64_t elements = 0;
  double cap = 0;
  bool fused = true;
  Direction direction = Direction::forward;
};

// The op adds a gradient with `from` bytes per element to an accumulator with `to` bytes per element.
struct Accumulate {
  std::int64_t elements = 0;
  Bytes from = 2, to = 4;
};

// The op copies 64-bit token ids of one micro-batch from the training data on the host into a buffer of `rows` ids: the
// model's input tokens, or their labels (`labels`: the id of the token that follows each input token). ahead: the ids
// are taken this many positions later in the sequence. A model with multi-token prediction predicts `predictions`
// tokens for each input token; prediction number d takes its ids d positions later. The rank's tokens are cut into
// `parts` equal runs, and the buffer holds for each run, one after another, the ids of all its predictions.
struct Load {
  std::int64_t rows = 0;
  bool labels = false;
  std::int64_t ahead = 0, predictions = 1, parts = 1;
  // number of data parallel ranks whose token ids the op loads, one rank after the other; 0: only this rank's own ids
  std::int64_t replicas = 0;
  Side side = {};
};

struct Fill {
  Bytes bytes = 0;
};

// The op multiplies `elements` numbers of a flat buffer, from element `first` on, in place or into the buffer that the
// op writes. The multiplier is `factor`; if factor is 0, the op computes it from a number that it reads (the clip
// coefficient from the squared gradient norm, or 1 / loss scale). check: the op also records whether any element is
// infinite or NaN (for the loss scale).
struct Multiply {
  std::int64_t elements = 0;
  Bytes width = 4;
  double factor = 0;
  bool check = false;
  std::int64_t first = 0;
};

// A copy of `bytes` bytes between two memory tiers (GPU, host, disks), or within one. If the task's frame is a tile (a
// host buffer that states pass through piece by piece, BlockRole::tile), it copies `elements` elements of the rank's
// shards, from element `first` on. If the frame is a chunk's states, it copies those of the chunk's `elements` elements
// that this rank owns. From a longer buffer to a shorter one on the device it copies one of the equal parts that the
// tensor ranks have.
struct PlaceCopy {
  Bytes bytes = 0;
  MemoryTier from = MemoryTier::device, to = MemoryTier::host;
  std::int64_t first = 0, elements = 0;
  Bytes width = 2;  // number of bytes of a copied element
};

// An op without work: its task only waits for other tasks and frees buffers. device: the task waits for all compute
// tasks that were launched before it.
struct Wait {
  bool device = false;
};

// The op swaps two buffers of the same size when its task is issued: from then on the first operand uses the memory of
// the second, and the second that of the first.
struct Exchange {};

// The op adds the sum of squares of the gradients that this rank owns to the sum over the rank's earlier chunks (the
// rank has several where pipeline stages are virtual). A weight that several ranks hold is counted on one rank only: a
// replicated weight on the first rank of the tensor parallel group, key/value heads on the first rank of the group
// `kv`, a tied embedding table on the first stage.
//
// With Adafactor, two more passes of this kind come before the update (Shazeer and Stern 2018, 1804.04235, algorithm
// 4); they add to sums of each tensor instead of to one sum of the rank. lines: sums of squares of the gradients of
// each row and each column of a matrix. updates: sums of squares of each tensor's update and of each tensor's weights.
struct SquaredNorm {
  enum class Of : std::uint8_t { gradients, lines, updates };
  std::int64_t elements = 0;
  Bytes width = 4;  // bytes that are read of each element
  Of of = Of::gradients;
};

// The optimizer's update of `elements` parameters, from element `first` of the rank's shards: it reads gradients,
// master weights and moments, and writes master weights, moments and the weights that forward reads. gradient, master,
// moment, forward: bytes of one element of each. delayed: the update takes the gradients of the previous step (none in
// the first step). validated: the update is validated in the next step (post_validation.h); it is made only if the
// gradient norm known so far, the second number that the op reads, needs no clipping. momentum: the op is the first
// part of Muon's update of layers' matrices: it adds the gradient to the moment, and overwrites the gradient with the
// direction that is orthogonalized next. vectors: with Muon, how many of the elements are not in layers' matrices and
// have the two moments of AdamW, while matrices are updated by their directions alone; -1 with other optimizers.
struct Update {
  std::int64_t elements = 0;
  Bytes gradient = 4, master = 4, moment = 4, forward = 2;
  int moments = 2;
  bool fused = true;
  std::int64_t first = 0;
  bool delayed = false;
  bool validated = false;
  bool momentum = false;
  std::int64_t vectors = -1;
};

// The op copies weights' directions of Muon (their momentum, or its orthogonalized matrices if `back`) between the
// gradients' buffer, in which they have `from` bytes each, and the buffer of whole matrices, in which they have `to`
// bytes each. Layers of the same shape are orthogonalized in rounds, one layer on each data rank; the round's first
// layer begins at element `first` of the chunk's flat buffers. A rank that owns a shard of every layer copies its
// shards of all layers of the round, `elements` in all. A rank that owns all layers copies its layer of the round, and
// back each of them.
struct MoveDirections {
  std::int64_t elements = 0;
  Bytes from = 4, to = 2;
  std::int64_t first = 0;
  bool back = false;
};

// The op brings a matrix (rows, columns) by Newton-Schulz iterations near the orthogonal matrix with the same singular
// vectors, in place (Jordan 2024, Muon): with X X^T = A, each iteration computes X <- a X + (b A + c A^2) X, on the
// transposed matrix if rows > columns. `matrices` such matrices lie one after another. The matrix is weight number
// `parameter` of a layer: the rank with index i in its data-parallel group works on the i-th layer of the round whose
// first layer begins at element `first` of the chunk's flat buffers (MoveDirections).
struct Orthogonalize {
  std::int64_t rows = 0, columns = 0, matrices = 1;
  std::int64_t iterations = 5;
  std::int64_t first = 0, parameter = 0;
};

// Values of Collective::algorithm. kUserBuffers: the collective is launched by Transformer Engine through its user
// buffers, in one call with the pieces of a matrix product that run at the same time. kCopyEngines: a collective in
// user buffers that runs on the GPU's copy engines, which occupy no multiprocessors.
inline constexpr const char* kUserBuffers = "user buffers";
inline constexpr const char* kCopyEngines = "copy engines";

// A collective operation among the ranks of one process group. bytes is the larger of the input and the output of one
// rank (NCCL's size): S for an all-reduce of S bytes, the gathered output for an all-gather. If the gradients of a unit
// (parameters that are gathered and reduced together) are all-reduced, `first` is an index into the rank's shard of the
// unit. A shift sends data from each member to the next one in a ring. If its `first` is above 0, the buffer has a part
// of every member, and the part that comes in lies `first` elements before this member's own (round the ring).
struct Collective {
  CollectiveKind kind = CollectiveKind::all_reduce;
  Dimension group = Dimension::data;
  Bytes bytes = 0;
  Bytes width = 2;         // number of bytes of an element of the data
  std::int64_t first = 0;  // index of the element of the flat buffer at which the collective begins
  // the algorithm; the characters of the name outlive the plan, as those of a literal do
  std::string_view algorithm = "library";
  bool maximum = false;  // whether an all-reduce yields the largest value instead of the sum
  // for a push to or a pull from parameter servers: number of pieces of the buffer, each on one server; the servers are
  // the group's last members
  std::int64_t servers = 0;
  // for a push or a pull: number of parameter servers that hold copies of the same piece; in the group each of them
  // comes `servers` members after the one before
  std::int64_t copies = 1;
  // number of tensors that one launch moves, each by a collective of its own (a coalesced group)
  std::int64_t tensors = 1;
  std::int64_t root = 0;  // index in the group of the rank that has the data (broadcast) or receives it (reduce)
  // whether an all-to-all of layers' shards (Muon) returns what an earlier all-to-all has brought
  bool back = false;
  // For an all-to-all of the group hand_over, in which the ranks of a frozen model send its output to those of the
  // model that trains (models/partition/hand_over.h): the bytes that this rank sends (0 if it receives) and whether the
  // ranks of a tensor group have parts of the output's columns, else the same output. `bytes` are the most that a rank
  // of the group sends or receives.
  Bytes sent = 0;
  bool columns_cut = false;
};

// The send or the receive of a point-to-point transfer between pipeline stages. offset: number of stages by which the
// peer is ahead in the pipeline group, modulo the group's size. parts: if above 1, the ranks of the tensor parallel
// group hold the same bytes, so that each sends only one of this many parts, and the receivers all-gather the parts.
struct Transfer {
  bool send = true;
  std::int64_t offset = 1;
  Bytes bytes = 0;
  Bytes first = 0;  // offset in the buffer, in bytes, at which the transfer begins
  std::int64_t parts = 1;
};

// The short causal convolution before a recurrence: every column of a token becomes SiLU of the bias plus the weighted
// sum of that column over the token and the taps - 1 tokens before it in its sample. The input is the first `columns`
// columns of the projection (rows, projected); backward writes those columns of the projection's gradient. In
// generation the last taps - 1 inputs of each sample are kept for the next pass (keeps), and those of the pass before
// are read (resumes).
struct Convolution {
  std::int64_t batch = 0, sequence = 0, columns = 0, projected = 0, taps = 4;
  Direction direction = Direction::forward;
  bool keeps = false, resumes = false;
};

// The recurrence of a layer over the tokens of each sample (RecurrenceRule). Its input, the convolution's result (rows,
// columns), has the queries and the keys of `groups` heads, then the values of `heads` heads. Columns of the projection
// (rows, projected) from `first` on are the gates of the heads: one gate a head for decay and step together, or one a
// head for the decays and then one a head for the steps. With w the gate that both share or the decay's, p the learned
// bias of the step and A the learned decay, the decay is exp(-exp(A) softplus(w + p)), and the step is softplus(w + p)
// or the sigmoid of its own gate. Kernels compute `chunk` tokens at once. The kernels of the delta rule keep for
// backward the queries and keys of every head, each chunk's pairs of tokens, and decays and steps in fp32 (kept_bytes);
// Mamba's kernels compute all of these again. In generation the state after the last token of each sample is kept in
// fp32 for the next pass (keeps), and the recurrence goes on from the state of the pass before (resumes).
struct Scan {
  std::int64_t batch = 0, sequence = 0, heads = 0, groups = 0, key_dim = 0, value_dim = 0, chunk = 64;
  std::int64_t first = 0, projected = 0;
  RecurrenceRule rule = RecurrenceRule::gated_delta;
  Direction direction = Direction::forward;
  bool keeps = false, resumes = false;

  std::int64_t rows() const { return batch * sequence; }
  std::int64_t columns() const { return 2 * groups * key_dim + heads * value_dim; }
  // Whether the op is one update of each state, which a single kernel makes without chunks.
  bool steps() const { return resumes && sequence == 1; }
  Bytes kept_bytes(Bytes width) const {
    return row_of(rule).corrects && !steps() ? rows() * heads * ((2 * key_dim + std::min(chunk, sequence)) * width + 8)
                                             : 0;
  }
};

// An RMS norm of each run of `width` columns of x (rows, columns), and the product with SiLU of a gate, which is the
// columns from `first` on of the projection (rows, projected): SiLU(gate) norm(x), or norm(SiLU(gate) x) (gates_first).
// The norm has one weight a column, or all runs share `width` weights (shared). Backward writes the gradient of x, and
// the gradient of the gate into the gate's columns of the projection's gradient.
struct GatedNorm {
  std::int64_t rows = 0, columns = 0, width = 0, first = 0, projected = 0;
  bool gates_first = false, shared = true;
  Direction direction = Direction::forward;
};

// The op of sparse attention (DeepSeek-V3.2, arXiv 2512.02556, section 2.1) that scores all earlier tokens for each
// token and chooses the top_k tokens with the highest scores, which alone the attention then reads. The score of a pair
// is the sum over the index's `heads` heads of a weight times ReLU(q k). query: number of this rank's tokens in a
// sample; key: number of tokens that they choose from. Backward computes the gradient of the divergence between the
// index's choice and attention's probabilities over the chosen tokens. In generation the keys of the `cached` tokens
// before the pass are read from the cache, where a key has cached_row bytes; `key` counts cached and new tokens.
struct IndexScores {
  std::int64_t batch = 0, heads = 0, query = 0, key = 0, head_dim = 0, top_k = 0;
  Direction direction = Direction::forward;
  std::int64_t cached = 0;
  Bytes cached_row = 0;
};

// The op of attention to compressed keys (DeepSeek-V4's technical report, section 2.3) that makes one key of every
// `rate` tokens of a sample: a sum over these tokens, weighted in every column by the softmax of a gate plus a learned
// bias of the token's position among them. overlaps: contents and gates have twice `columns` columns, the first half
// of which belongs to the key of the next run of tokens, so that a key is a sum over two runs. Tokens after the last
// whole run have no key.
struct Pool {
  std::int64_t batch = 0, sequence = 0, columns = 0, rate = 1;
  bool overlaps = false;
  Direction direction = Direction::forward;

  std::int64_t keys() const { return sequence / rate; }  // number of compressed keys of one sample
};

// The ops on the residual streams of hyper-connections (mHC: Xie et al. 2025, arXiv 2512.24880; HyperConnections in
// models/spec/model.h). Each of `rows` tokens has `streams` streams of `columns` columns.
//   repeat    copies the hidden states into every stream
//   add       adds the hidden states to every stream
//   collapse  turns the logits of a token's weights, a product with its streams, into the weights, by sigmoids and
//             `iterations` normalisations of the mixing matrix by rows and columns, and sums the streams by them
//   mix       writes each stream as a sum of all streams plus a multiple of a branch's result
// Backward of collapse and of mix each write a gradient of all streams, and Add ops sum these.
struct MixStreams {
  enum class Part : std::uint8_t { repeat, add, collapse, mix };
  std::int64_t rows = 0, streams = 0, columns = 0, iterations = 0;
  Part part = Part::repeat;
  Direction direction = Direction::forward;
};

using Work = std::variant<Gemm, GroupedGemm, GroupedBias, Gate, Permute, SigmoidGate, SortChunks, CountTokens,
                          FlashAttention, MoveHeads, Softmax, Normalize, Rotary, LatentHeads, Split, Activation,
                          Residual, Add, BiasGradient, Embedding, CrossEntropy, Cast, SoftCap, Accumulate, Load, Fill,
                          Multiply, PlaceCopy, Wait, Exchange, SquaredNorm, Update, Collective, Transfer, Convolution,
                          Scan, GatedNorm, IndexScores, Orthogonalize, Pool, MixStreams, MoveDirections, Quantize,
                          Dequantize, Distillation, FeatureLoss, Preference, FakeQuantize>;
// Work is copied as bytes: code that copies variants one alternative at a time took a sixth of the build.
static_assert(std::is_trivially_copyable_v<Work>);

// Returns the number of keys that a query of a causal attention sees on average, within its window or among the keys
// that an index chose for it.
double keys_per_query(const FlashAttention& a);

// Returns the floating-point operations of a recurrence's forward, which kernels compute in chunks of tokens. Backward
// has three times as many: it computes forward again, and two gradients of each product.
double scan_flops(const Scan& s);

// Returns the bytes of device memory traffic for merging the attention over some of the keys with the result over
// earlier keys; 0 if nothing is merged.
double merged_bytes(const FlashAttention& a, Bytes width);

// Returns the bytes of device memory traffic for reading the cached keys and values; 0 without a cache.
double cache_bytes(const FlashAttention& a);

// The cost of one task: floating-point operations, and bytes that pass through device memory.
struct Cost {
  double flops = 0;
  double bytes = 0;
};

// Returns the cost of an op's work. width: number of bytes of an activation element.
Cost cost_of(const Work& work, Bytes width);

// Returns the number of kernels that one task launches. An op that is not fused launches one for each operation of
// eager PyTorch.
int kernels_of(const Work& work);

// Returns the number of calls of the training framework that launch a task's kernels. A library launches several
// kernels in one call (experts' products, an attention's backward, an update over lists of tensors); an op that is not
// fused needs a call for each operation.
int calls_of(const Work& work);

}  // namespace orrery
