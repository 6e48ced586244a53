// The work of a mixture of experts.
#pragma once

#include <cstdint>

#include "models/base/units.h"
#include "models/base/weight_format.h"
#include "models/plan/direction.h"
#include "models/plan/op_products.h"

namespace orrery {

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

}  // namespace orrery
