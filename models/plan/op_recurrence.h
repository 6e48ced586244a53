// The work of layers with a recurrence in place of attention.
#pragma once

#include <algorithm>
#include <cstdint>

#include "models/base/layer_kind.h"
#include "models/base/units.h"
#include "models/plan/direction.h"

namespace orrery {

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

}  // namespace orrery
