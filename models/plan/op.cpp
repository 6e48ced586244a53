#include "models/plan/op.h"

#include <algorithm>

namespace orrery {
namespace {

double d(std::int64_t x) { return static_cast<double>(x); }

// WorkCost computes the FLOPs of each op and the bytes that it reads from and writes to device memory; `width` is the
// number of bytes of an activation element. A pass is one read or one write of every element. An op that is not fused
// has the passes of eager PyTorch, where each operation reads its inputs and writes its output once; the passes are
// counted from the operations that PyTorch's and Megatron's sources call, which a comment at each op lists with the
// passes of each. Published step times check the sums (cross-entropy: 52 bytes a logit with the casts are counted, fits
// gave 46 with Megatron's ops and 59 with nanotron's; element-wise passes of a layer: 1.3 times the counted ones;
// Megatron's optimizer step: about 58 bytes a parameter).
struct WorkCost {
  Bytes width;

  // A matrix product (m, k) x (k, n) has 2 m n k operations. Every operand is read or written once; a result that is
  // added to the output matrix is read and written.
  Cost operator()(const Gemm& g) const {
    const double batch = d(g.batch);
    const double result = d(g.m) * d(g.n) * d(g.result_bytes) * (g.accumulate ? 2 : 1);
    const double second = g.weights.narrow() ? d(weight_bytes(g.weights, g.n, g.k)) : d(g.n) * d(g.k) * d(width);
    return {2 * batch * d(g.m) * d(g.n) * d(g.k), batch * (d(g.m) * d(g.k) * d(width) + second + result)};
  }
  // The weights of every expert are read completely, however few rows the expert has.
  Cost operator()(const GroupedGemm& g) const {
    const bool weights = g.role == Gemm::Role::weight_gradient;
    const double matrices = d(g.groups) * d(g.out) * d(g.in);
    const double passed = g.weights.narrow() ? d(weight_bytes(g.weights, g.groups * g.out, g.in, g.groups))
                                             : matrices * d(weights ? g.result_bytes * (g.accumulate ? 2 : 1) : width);
    return {2 * d(g.rows) * d(g.out) * d(g.in), passed + d(g.rows) * (d(g.out) + d(g.in)) * d(width)};
  }
  // The biases of experts: forward reads and writes every row of tokens, backward only reads every row.
  // A bias times the router's weight is applied by eager operations in fp32 (Megatron-Core experts.py, _apply_bias):
  // the product, its sum with the rows, the parts of all experts joined, a cast; 28 bytes an element. Backward casts to
  // fp32 and back, multiplies by the weight and by the bias, sums both over rows and over columns, and joins: 40 bytes.
  Cost operator()(const GroupedBias& b) const {
    const bool forward = b.direction == Direction::forward;
    const double passes = forward ? 2 : 1, elements = d(b.rows) * d(b.columns);
    if (b.weighted) return {2 * elements, elements * (forward ? 2 * d(width) + 24 : 4 * d(width) + 32)};
    return {elements, passes * elements * d(width)};
  }
  // The passes are those of Megatron-Core's router (router.py, moe_utils.py) over fp32 scores: softmax (2), top-k (1),
  // scattering the chosen probabilities and the map of choices (3), load and auxiliary loss (3), counts (1); backward
  // has the gradients of these. If a table names the experts of each token, a lookup of 4 bytes for each choice
  // replaces the top-k.
  Cost operator()(const Gate& g) const {
    const double passes = g.direction == Direction::forward ? (g.hashed ? 9 : 10) : 8;
    const double looked_up = g.hashed && g.direction == Direction::forward ? 4 * d(g.rows) * d(g.top_k) : 0;
    return {10 * d(g.rows) * d(g.experts), passes * 4 * d(g.rows) * d(g.experts) + looked_up};
  }
  // Expanding tokens into the order of experts reads and writes every moved row; summing them back reads every moved
  // row and writes one row per token.
  Cost operator()(const Permute& p) const {
    const double read = d(p.moved), written = d(p.expand ? p.moved : p.rows);
    return {p.expand ? 0 : d(p.moved) * d(p.columns),
            (read + written) * d(p.columns) * d(width) + (p.weighted ? 8 * d(p.moved) : 0)};
  }
  // A sigmoid gate: forward reads x and writes y (2 passes); backward reads x and dy and writes dx (3 passes).
  Cost operator()(const SigmoidGate& g) const {
    const double elements = d(g.rows) * d(g.columns), passes = g.direction == Direction::forward ? 2 : 3;
    return {passes * elements, (passes * elements + 2 * d(g.rows)) * d(width)};
  }
  Cost operator()(const SortChunks& s) const {
    const double tokens = d(s.distinct > 0 ? s.distinct : s.rows);
    return {0, (d(s.rows) * (s.pads ? 3 : 1) + tokens) * (d(s.columns) * d(width) + (s.weighted ? 4 : 0))};
  }
  Cost operator()(const CountTokens& c) const { return {0, 4 * d(c.counts)}; }
  // Fused attention: forward has two matrix products, backward five (scores again, dV, dP, dQ, dK), over the query-key
  // pairs that the mask leaves: half of all pairs if it is causal.
  Cost operator()(const FlashAttention& a) const {
    const double pair = d(a.batch) * d(a.heads) * d(a.query) * keys_per_query(a);
    const double forward = 2 * pair * (d(a.head_dim) + d(a.value_dim));
    const double values =
        d(a.batch) * d(a.query) * (d(a.heads) + d(a.kv_heads)) * d(a.head_dim + a.value_dim) * d(width);
    const bool back = a.direction == Direction::backward;
    return {back ? forward * 2.5 : forward, (back ? values * 2 : values) + merged_bytes(a, width) + cache_bytes(a)};
  }
  Cost operator()(const MoveHeads& m) const { return {0, 2 * d(m.rows) * d(m.members) * d(m.columns()) * d(width)}; }
  // Unfused softmax of attention scores: scale, mask, softmax and cast read and write the scores once each; in backward
  // softmax reads twice and writes once, mask and scale read and write once each.
  Cost operator()(const Softmax& s) const {
    const double passes = s.direction == Direction::forward ? (s.fused ? 2 : 8) : (s.fused ? 3 : 7);
    return {5 * d(s.rows) * d(s.columns), passes * d(s.rows) * d(s.columns) * d(width)};
  }
  // A fused norm: forward reads x and writes y; backward reads x and dy, writes dx, and reads once more for the
  // gradient of the weight. Unfused: cast to fp32 (6 bytes per 16-bit element), square (8), mean (4), multiplication by
  // the inverse deviation (8), cast (6), multiplication by the weight (4); backward has the gradients of these
  // operations, most of which take twice the bytes.
  Cost operator()(const Normalize& n) const {
    const bool forward = n.direction == Direction::forward;
    double passes = forward ? (n.fused ? 2 : 18) : (n.fused ? 4 : 28);
    // If each row of a norm is cut into pieces on several ranks, one op computes sums and another one normalizes.
    // Fused, forward reads x for the sums, then reads x again and writes y, and in backward each of the two ops has
    // three passes. Unfused, each of the two ops has half of the passes of an unfused norm of whole rows.
    const bool whole = n.part == Normalize::Part::whole, sums = n.part == Normalize::Part::sums;
    if (!whole) passes = !n.fused ? passes / 2 : forward ? (sums ? 1 : 2) : 3;
    return {(whole ? 8 : 4) * d(n.rows) * d(n.columns), passes * d(n.rows) * d(n.columns) * d(width)};
  }
  // Unfused rotary embedding: cast to fp32 (6 bytes per 16-bit element), multiplication as complex numbers (8), cast
  // back (6).
  Cost operator()(const Rotary& r) const {
    return {4 * d(r.rows) * d(r.columns), (r.fused ? 2 : 10) * d(r.rows) * d(r.columns) * d(width)};
  }
  // Head preparation of latent attention, fused (Transformer Engine's and Megatron-Core's kernels): the rotated part of
  // queries is read and written in place, keys and values are read and written once. Unfused: the rotated parts of
  // queries and keys cost what Rotary does, and queries and keys are concatenated once more.
  Cost operator()(const LatentHeads& l) const {
    const double heads = d(l.rows) * d(l.heads), rope = heads * d(l.rope);
    const double packed = heads * d(2 * l.nope + l.rope + 2 * l.value) + d(l.rows) * d(l.rope);
    const double passes = 2 * rope + packed;
    const double more = 10 * (rope + d(l.rows) * d(l.rope)) + 2 * heads * d(l.nope + l.rope);
    return {4 * rope, (l.fused ? passes : passes + more) * d(width)};
  }
  Cost operator()(const Split& s) const { return {0, 2 * d(s.rows) * d(s.first + s.second) * d(width)}; }
  // Unfused SwiGLU: silu (2 passes) and its product with the other half of the columns (3); in backward the product's
  // two gradients (3 each), silu's gradient (3), and the concatenation of the gradients of the two halves (4).
  Cost operator()(const Activation& a) const {
    const double in = a.gated ? 2 : 1;
    const double fused = a.direction == Direction::forward ? in + 1 : 2 * in + 1;
    const double eager = a.direction == Direction::forward ? 5 : 13;
    const double passes = a.fused || !a.gated ? fused : eager;
    const double weights = a.weighted ? (a.direction == Direction::forward ? 4 : 8) * d(a.rows) : 0;
    return {10 * d(a.rows) * d(a.columns), passes * d(a.rows) * d(a.columns) * d(width) + weights};
  }
  // Each half of the columns is clamped (2 passes), and the results are concatenated (2). Backward of a clamp compares
  // the input with a bound, which writes a mask of bytes, and picks the gradient or 0 by it (PyTorch
  // FunctionsManual.cpp, clamp_backward); with two bounds there are two masks, which are joined. The gradients are
  // concatenated (2 passes of each half).
  Cost operator()(const Clamp& c) const {
    const double elements = d(c.rows) * d(c.columns), w = d(width);
    const double gates = 3 * w + 2, values = 4 * w + 6;
    return {4 * elements, elements * (c.direction == Direction::forward ? 8 * w : gates + values + 4 * w)};
  }
  // An unfused residual connection: adding the bias reads and writes the rows once more, and so does dropout.
  Cost operator()(const Residual& r) const {
    const double elements = d(r.rows) * d(r.columns);
    const double mask = r.dropout ? 1 : 0;
    double passes = r.direction == Direction::forward ? (r.residual ? 3 : 2) : 2;
    if (!r.fused && r.direction == Direction::forward) passes += (r.bias ? 2 : 0) + (r.dropout ? 2 : 0);
    return {3 * elements, elements * (passes * d(width) + mask)};
  }
  Cost operator()(const Add& a) const { return {d(a.elements), 3 * d(a.elements) * d(width)}; }
  Cost operator()(const BiasGradient& b) const {
    return {d(b.rows) * d(b.columns), d(b.rows) * d(b.columns) * d(width)};
  }
  // Backward of an embedding lookup reads the gradient of the op's output, and reads and writes as many rows of the
  // table's gradient.
  Cost operator()(const Embedding& e) const {
    const double elements = d(e.rows) * d(e.columns);
    return {0, elements * (e.direction == Direction::forward ? (e.positions ? 3 : 2) * d(width)
                                                             : d(width) + 2 * d(e.gradient_bytes))};
  }
  // Cross-entropy, in passes over fp32 logits: `maximum` reads; `exponent` and `gradient` read and write. Unfused:
  // eager PyTorch subtracts and exponentiates (a read and a write each) and sums (a read); Megatron's
  // vocab_parallel_cross_entropy divides by the sum and multiplies by the gradient of the loss. A metric casts the
  // logits to fp32 (as autocast does) and writes their log-softmax. Without the cast to fp32 (narrow), the logits are
  // read twice as 16-bit numbers, and once more for the gradient that is written.
  Cost operator()(const CrossEntropy& c) const {
    const double pass = d(c.rows) * d(c.columns) * (c.narrow ? d(width) : 4);
    switch (c.part) {
      case CrossEntropy::Part::maximum:
        return {d(c.rows) * d(c.columns), pass};
      case CrossEntropy::Part::exponent:
        return {3 * d(c.rows) * d(c.columns), pass * (c.narrow ? 1 : c.fused ? 2 : 5)};
      case CrossEntropy::Part::loss:
        return {d(c.rows), d(c.rows) * 16 + d(c.metrics) * d(c.rows) * d(c.columns) * (d(width) + 12)};
      case CrossEntropy::Part::gradient:
        return {d(c.rows) * d(c.columns), pass * (c.fused ? 2 : 4)};
      case CrossEntropy::Part::rescale:
        return {3 * d(c.rows), d(c.rows) * 40};
      case CrossEntropy::Part::combine:
        return {3 * d(c.rows) * d(c.columns), 3 * d(c.rows) * d(c.columns) * d(width)};
    }
    return {};
  }
  // The loss of a student, in passes over the fp32 logits of both models. `exponent` computes three exponentials of
  // each column (12 operations with the divisions, differences and sums), and `gradient` computes them again.
  Cost operator()(const Distillation& l) const {
    const double elements = d(l.rows) * d(l.columns), pass = 4 * elements;
    switch (l.part) {
      case Distillation::Part::maximum:
        return {2 * elements, 2 * pass};
      case Distillation::Part::exponent:
        return {12 * elements, 2 * pass};
      case Distillation::Part::loss:
        return {8 * d(l.rows), 4 * d(l.rows) * (Distillation::kSums + 1)};
      case Distillation::Part::gradient:
        return {12 * elements, 3 * pass};
    }
    return {};
  }
  // A difference of two numbers, which is squared and added to a sum, or multiplied by a factor.
  Cost operator()(const FeatureLoss& f) const {
    const double n = d(f.rows) * d(f.columns);
    return f.part == FeatureLoss::Part::loss ? Cost{3 * n, 2 * n * d(width) + 4} : Cost{2 * n, 3 * n * d(width)};
  }
  // Reads two sums of each model for a row, and writes the row's loss and factor.
  Cost operator()(const Preference& p) const { return {8 * d(p.rows), 24 * d(p.rows)}; }
  Cost operator()(const Cast& c) const {
    return {d(c.elements) * d(c.parts - 1), d(c.elements) * d(c.from * c.parts + c.to * (c.transpose ? 2 : 1))};
  }
  // A quantisation reads every number once to find the scale of a block, which stays in the multiprocessor, and writes
  // its code; sums of quantised numbers cost one operation for each number read.
  Cost operator()(const Quantize& q) const {
    const double narrow = d(q.pieces) * d(q.piece_bytes()), summands = d(q.summands);
    return {summands * d(q.elements), narrow * (1 + summands) + (q.summands > 0 ? 0 : d(q.elements) * d(q.wide))};
  }
  Cost operator()(const Dequantize& q) const {
    const double read = d(q.summands) * d(q.pieces) * d(q.piece_bytes());
    const double sums = d(q.summands) - 1 + (q.adds ? 1 : 0);
    return {sums * d(q.elements), read + d(q.elements) * d(q.wide) * (q.adds ? 2 : 1)};
  }
  // Fused, a rounding to few bits and back reads and writes every number once, as a group stays in the multiprocessor.
  // Unfused: magnitude (2 passes) and largest of a group (1), division by the scale (2), rounding (2), clamping (2) and
  // multiplication by the scale (2).
  Cost operator()(const FakeQuantize& f) const {
    const double elements = d(f.rows) * d(f.columns);
    return {5 * elements, (f.fused ? 2 : 11) * elements * d(width)};
  }
  // Backward of a soft cap (tanh of logits or scores) reads the result of forward, and reads and writes the gradient.
  Cost operator()(const SoftCap& s) const {
    const double passes = s.direction == Direction::forward ? (s.fused ? 2 : 6) : (s.fused ? 3 : 7);
    return {4 * d(s.elements), passes * d(s.elements) * d(width)};
  }
  Cost operator()(const Accumulate& a) const { return {d(a.elements), d(a.elements) * d(a.from + 2 * a.to)}; }
  Cost operator()(const Load& l) const { return {0, 8 * d(l.rows)}; }
  Cost operator()(const Fill& f) const { return {0, d(f.bytes)}; }
  Cost operator()(const Multiply& s) const { return {d(s.elements), 2 * d(s.elements) * d(s.width)}; }
  Cost operator()(const PlaceCopy& c) const { return {0, 2 * d(c.bytes)}; }
  Cost operator()(const Wait&) const { return {}; }
  Cost operator()(const Exchange&) const { return {}; }
  Cost operator()(const SquaredNorm& n) const { return {2 * d(n.elements), d(n.elements) * d(n.width)}; }
  // The update reads gradients, master weights and moments, and writes master weights, moments and the weights for
  // forward. Unfused, torch's foreach AdamW takes 20 passes: decay (2), first moment (3), second (2 + 3), root (2),
  // correction (2), epsilon (2), update (4). A fused update takes 7, so an unfused one takes 13 more, of which 12 are
  // counted here. What follows Muon's directions reads moments of vectors alone.
  // The first part of Muon's update reads and writes gradients and moments once if it is fused; two foreach operations
  // (the moment's, the direction's) read both once more.
  Cost operator()(const Update& u) const {
    if (u.momentum) return {4 * d(u.elements), d(u.elements) * d((u.fused ? 2 : 3) * (u.gradient + u.moment))};
    const Bytes weight = u.master > 0 ? u.master : u.forward;
    const double weights = d(u.gradient + 2 * weight + (u.master > 0 ? u.forward : 0) + (u.fused ? 0 : 12 * weight));
    const double moments = u.vectors < 0 ? d(u.elements) * d(u.moments) : 2 * d(u.vectors);
    return {12 * d(u.elements), d(u.elements) * weights + 2 * d(u.moment) * moments};
  }
  // The convolution before a recurrence: forward reads and writes every column of every token; backward reads the input
  // and the result's gradient, and reads and writes the projection's gradient.
  Cost operator()(const Convolution& c) const {
    const double elements = d(c.batch) * d(c.sequence) * d(c.columns);
    const bool forward = c.direction == Direction::forward;
    const double kept = d(c.batch) * d(c.taps - 1) * d(c.columns) * d((c.keeps ? 1 : 0) + (c.resumes ? 1 : 0));
    return {(forward ? 2 : 6) * elements * d(c.taps), ((forward ? 2 : 4) * elements + kept) * d(width)};
  }
  // A recurrence (Mamba, gated delta net): forward reads queries, keys and values, and writes the results, the state
  // after every chunk of tokens, and what is kept for backward. Backward reads all of these again and the gradient of
  // the results, and writes the gradients.
  Cost operator()(const Scan& s) const {
    const double in = d(s.rows()) * d(s.columns()), out = d(s.rows()) * d(s.heads) * d(s.value_dim);
    const double state = d(s.heads) * d(s.key_dim) * d(s.value_dim);
    const double states = s.steps() ? 0 : d(s.rows()) / d(s.chunk) * state;
    const bool back = s.direction == Direction::backward;
    const double passed = back ? 2 * in + 2 * out + 4 * states : in + out + 2 * states;
    const double carried = 4 * d(s.batch) * state * d((s.keeps ? 1 : 0) + (s.resumes ? 1 : 0));
    return {(back ? 3 : 1) * scan_flops(s), passed * d(width) + d(s.kept_bytes(width)) + carried};
  }
  // A gated norm: forward reads x and the gate and writes the result; backward reads both and dy, writes both
  // gradients, and reads once more for the gradient of the norm's weights.
  Cost operator()(const GatedNorm& n) const {
    const double elements = d(n.rows) * d(n.columns);
    const bool forward = n.direction == Direction::forward;
    return {(forward ? 10 : 24) * elements, (forward ? 3 : 6) * elements * d(width)};
  }
  // In each head of the index, every pair of a token and an earlier token costs a dot product over head_dim elements
  // and 3 more operations (ReLU, times a weight, sum over heads); as a token pairs with earlier tokens only, half of
  // all query * key pairs count. Forward writes each pair's score once, in fp32 (4 bytes), the choice of the top_k
  // reads it, and 4 bytes are written for each chosen token. Backward handles only the chosen pairs, with three times
  // the operations of forward for each: the product again and its two gradients. With a cache, every new token also
  // pairs with all cached ones, whose keys are read as the cache holds them.
  Cost operator()(const IndexScores& i) const {
    const bool forward = i.direction == Direction::forward;
    const double all = d(i.batch) * d(i.query) * (i.cached > 0 ? d(i.cached) + (d(i.query) + 1) / 2 : d(i.key) / 2);
    const double chosen = std::min(d(i.batch) * d(i.query) * d(i.top_k), all);
    const double pair = d(i.heads) * (2 * d(i.head_dim) + 3);
    const double rows = d(i.batch) * (d(i.query) * d(i.heads) + d(i.key - i.cached)) * d(i.head_dim) * d(width);
    const double cached = d(i.batch) * d(i.cached) * d(i.cached_row);
    if (forward) return {all * pair, rows + cached + 8 * all + 4 * chosen};
    return {3 * chosen * pair, 2 * rows + 12 * chosen};
  }
  // The compression of tokens into keys: forward reads contents and gates and writes the keys; for each element of a
  // gate it adds the bias, takes the softmax (4 operations) and multiplies and adds the content. Backward reads
  // contents, gates and the gradient of the keys, writes the gradients of contents and gates, and has about twice the
  // operations.
  Cost operator()(const Pool& p) const {
    const bool forward = p.direction == Direction::forward;
    const double read = d(p.batch) * d(p.sequence) * d(p.columns) * (p.overlaps ? 2 : 1);
    const double keys = d(p.batch) * d(p.keys()) * d(p.columns);
    return {(forward ? 7 : 14) * read, ((forward ? 2 : 4) * read + keys) * d(width)};
  }
  // The passes are those of fused kernels (Megatron-Core's fused_mhc_kernels: h_aggregate, h_post_bda; mHC, section
  // 4.3), over rows of `columns` elements: with n streams, repeat reads 1 and writes n, add reads n + 1 and writes n,
  // collapse reads n and writes 1, mix reads n + 1 and writes n. Backward of repeat and add reads n and writes 1;
  // backward of collapse reads the streams and the result's gradient and writes a gradient of the streams (2 n + 1);
  // backward of mix reads the gradient, the streams and the branch, and writes two gradients (3 n + 2). The weights of
  // a token are (2 + n) n numbers in fp32, read and written once. Collapse also sums the squares of the streams, by
  // which the logits are divided.
  Cost operator()(const MixStreams& m) const {
    const double n = d(m.streams), row = d(m.rows) * d(m.columns), weights = d(m.rows) * (2 + n) * n;
    const bool forward = m.direction == Direction::forward;
    const double narrow = row * d(width);
    switch (m.part) {
      case MixStreams::Part::repeat:
        return {forward ? 0 : n * row, (n + 1) * narrow};
      case MixStreams::Part::add:
        return {n * row, (forward ? 2 * n + 1 : n + 1) * narrow};
      case MixStreams::Part::collapse:
        return {(forward ? 1 : 2) * (4 * n * row + weights * (5 + 2 * d(m.iterations))),
                (forward ? n + 1 : 2 * n + 1) * narrow + 8 * weights};
      case MixStreams::Part::mix:
        return {(forward ? 1 : 2) * 2 * (n * n + n) * row, (forward ? 2 * n + 1 : 3 * n + 2) * narrow + 4 * weights};
    }
    return {};
  }
  // One Newton-Schulz iteration of Muon on a matrix X with smaller side m and larger side n has three products: A = X
  // X^T and the product of a polynomial of A with X, of 2 m^2 n operations each, and the square of A, of 2 m^3. Every
  // product reads two matrices and writes one.
  Cost operator()(const Orthogonalize& o) const {
    const double m = d(std::min(o.rows, o.columns)), n = d(std::max(o.rows, o.columns));
    const double each = d(o.iterations) * d(o.matrices);
    return {each * (4 * m * m * n + 2 * m * m * m), each * (4 * m * n + 5 * m * m) * d(width)};
  }
  Cost operator()(const MoveDirections& m) const { return {0, d(m.elements) * d(m.from + m.to)}; }
  Cost operator()(const Collective& c) const { return {0, d(c.bytes)}; }
  Cost operator()(const Transfer& t) const { return {0, d(t.bytes)}; }
};

}  // namespace

// Merging attention results over different keys (ring attention) is a kernel of its own. It reads the attention over
// some keys and the result so far, and writes the merged result: three passes over (batch, query, heads, value_dim).
double merged_bytes(const FlashAttention& a, Bytes width) {
  return a.merges && a.pairs > 0 ? 3 * d(a.batch) * d(a.query) * d(a.heads) * d(a.value_dim) * d(width) : 0;
}

double cache_bytes(const FlashAttention& a) {
  const double seen = a.window > 0 ? d(a.window) : a.chosen > 0 ? d(a.query) * d(a.chosen) : d(a.cached);
  const double read = std::min(d(a.cached), seen);
  return d(a.batch) * read * d(a.cached_row);
}

// Kernels compute a chunk of c tokens as a whole square, so they combine every token with c others: in products of
// queries with keys, and of the resulting scores with values. The delta rule also needs products of keys with keys, and
// multiplies the inverse of the resulting matrix with keys and with values. Each token also reads the state (key_dim,
// value_dim) and adds to it, 2 k v operations each; the delta rule's prediction of the token's value is a third product
// with the state. A single token needs these products with the state alone.
double scan_flops(const Scan& s) {
  const double k = d(s.key_dim), v = d(s.value_dim), c = s.steps() ? 0 : std::min(d(s.chunk), d(s.sequence));
  const double once = row_of(s.rule).corrects ? 2 * c * (3 * k + 2 * v) + 6 * k * v
                                              : 2 * c * (k * d(s.groups) / d(s.heads) + v) + 4 * k * v;
  return d(s.rows()) * d(s.heads) * once;
}

double keys_per_query(const FlashAttention& a) {
  if (a.chosen > 0 && a.chosen < a.key && a.pairs < 0) return d(a.chosen) - d(a.chosen) * d(a.chosen) / (2 * d(a.key));
  if (a.pairs >= 0) return a.pairs / d(a.query);
  if (a.window == 0 || a.window >= a.key) return d(a.key) / 2;
  return d(a.window) - d(a.window) * d(a.window) / (2 * d(a.key));
}

Cost cost_of(const Work& work, Bytes width) { return std::visit(WorkCost{width}, work); }

}  // namespace orrery
