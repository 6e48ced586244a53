// This file says how many kernels an op launches, and in how many calls of the training framework.
#include "models/plan/op.h"

namespace orrery {
namespace {

struct Kernels {
  int operator()(const Gemm& g) const { return static_cast<int>(g.apart); }
  // Transformer Engine calls cuBLAS once for each expert, so there is one kernel an expert, unless its CuTe kernel
  // takes all of them.
  int operator()(const GroupedGemm& g) const { return g.one_kernel ? 1 : static_cast<int>(g.groups); }
  int operator()(const GroupedBias& b) const {
    if (!b.weighted) return static_cast<int>(b.groups);
    return b.direction == Direction::forward ? 2 + 2 * static_cast<int>(b.groups) : 2 + 5 * static_cast<int>(b.groups);
  }
  int operator()(const Gate& g) const { return g.direction == Direction::forward ? 15 : 12; }
  int operator()(const Permute&) const { return 2; }
  // An unfused sigmoid gate launches one kernel for each operation of eager PyTorch.
  int operator()(const SigmoidGate& g) const { return g.direction == Direction::forward ? 2 : 4; }
  int operator()(const SortChunks& s) const { return s.pads ? 3 : 2; }
  int operator()(const CountTokens&) const { return 2; }
  int operator()(const FlashAttention& a) const {
    return (a.direction == Direction::forward ? 1 : 3) + (a.merges ? 1 : 0);
  }
  int operator()(const MoveHeads&) const { return 1; }
  int operator()(const Softmax& s) const { return s.fused ? 1 : 4; }
  int operator()(const Normalize& n) const {
    const bool whole = n.part == Normalize::Part::whole, once = n.direction == Direction::forward;
    if (!n.fused) return whole ? 6 : 3;
    return once || n.part == Normalize::Part::finish ? 1 : 2;
  }
  int operator()(const Rotary& r) const { return r.fused ? 1 : 6; }
  int operator()(const LatentHeads& l) const { return l.fused ? 2 : 12; }
  int operator()(const Split&) const { return 2; }
  int operator()(const Activation& a) const { return a.fused || !a.gated ? 1 : 2; }
  // Backward: two comparisons and three steps of the two bounds' masks, the choices by them, two zeros, a
  // concatenation.
  int operator()(const Clamp& c) const { return c.direction == Direction::forward ? 3 : 9; }
  int operator()(const Residual& r) const { return r.fused ? 1 : 1 + (r.bias ? 1 : 0) + (r.dropout ? 1 : 0); }
  int operator()(const Add&) const { return 1; }
  int operator()(const BiasGradient&) const { return 1; }
  int operator()(const Embedding& e) const { return e.direction == Direction::forward ? 1 : 3; }
  int operator()(const CrossEntropy& c) const {
    const bool one = c.fused || c.part == CrossEntropy::Part::rescale || c.part == CrossEntropy::Part::combine;
    return (one ? 1 : 4) + 3 * static_cast<int>(c.metrics);
  }
  int operator()(const Distillation&) const { return 1; }
  int operator()(const FeatureLoss&) const { return 1; }
  int operator()(const Preference&) const { return 1; }
  int operator()(const Cast&) const { return 1; }
  int operator()(const Quantize&) const { return 1; }
  int operator()(const Dequantize&) const { return 1; }
  int operator()(const FakeQuantize& f) const { return f.fused ? 1 : 6; }
  int operator()(const SoftCap& s) const { return s.fused ? 1 : 3; }
  int operator()(const Accumulate&) const { return 1; }
  int operator()(const Load&) const { return 1; }
  int operator()(const Fill&) const { return 1; }
  int operator()(const Multiply&) const { return 1; }
  int operator()(const PlaceCopy&) const { return 1; }
  int operator()(const Wait&) const { return 0; }
  int operator()(const Exchange&) const { return 0; }
  int operator()(const SquaredNorm&) const { return 2; }
  int operator()(const Update& u) const { return u.fused ? 4 : 200; }
  int operator()(const Convolution&) const { return 1; }
  // The numbers of kernels are those of flash-linear-attention's chunked implementation: cumulated decays, pairs of a
  // chunk, their inverse, its products with keys and values, states, results; backward computes keys, values and states
  // again before their gradients. For Mamba the same numbers are used, although its forward has only five kernels. One
  // kernel updates states by one token (fused_recurrent, selective_state_update).
  int operator()(const Scan& s) const { return s.steps() ? 1 : s.direction == Direction::forward ? 6 : 10; }
  int operator()(const GatedNorm& n) const { return n.direction == Direction::forward ? 1 : 2; }
  int operator()(const IndexScores& i) const { return i.direction == Direction::forward ? 2 : 3; }
  int operator()(const Pool& p) const { return p.direction == Direction::forward ? 1 : 2; }
  int operator()(const MixStreams& m) const {
    const bool weighs = m.part == MixStreams::Part::collapse;
    // the part `collapse` also launches a kernel that computes each token's weights of the streams
    return weighs ? 2 : 1;
  }
  int operator()(const Orthogonalize& o) const { return static_cast<int>(o.matrices * (2 + 5 * o.iterations)); }
  int operator()(const MoveDirections&) const { return 1; }
  int operator()(const Collective&) const { return 1; }
  int operator()(const Transfer&) const { return 1; }
};

struct Calls : Kernels {
  using Kernels::operator();
  int operator()(const GroupedGemm&) const { return 1; }
  int operator()(const GroupedBias&) const { return 1; }
  int operator()(const Permute&) const { return 1; }
  int operator()(const SortChunks&) const { return 1; }
  int operator()(const FlashAttention& a) const { return a.merges ? 2 : 1; }
  int operator()(const Normalize& n) const { return n.fused ? 1 : Kernels::operator()(n); }
  int operator()(const Embedding&) const { return 1; }
  int operator()(const Scan&) const { return 1; }
  int operator()(const SquaredNorm&) const { return 1; }
  // 12 is the number of foreach operations of an unfused optimizer in torch.optim.
  int operator()(const Update& u) const { return u.fused ? 1 : 12; }
};

}  // namespace

int kernels_of(const Work& work) { return std::visit(Kernels{}, work); }

int calls_of(const Work& work) { return std::visit(Calls{}, work); }

}  // namespace orrery
