#pragma once

#include <type_traits>
#include <variant>

#include "models/base/units.h"
#include "models/plan/op_attention.h"
#include "models/plan/op_experts.h"
#include "models/plan/op_formats.h"
#include "models/plan/op_loss.h"
#include "models/plan/op_products.h"
#include "models/plan/op_recurrence.h"
#include "models/plan/op_rows.h"
#include "models/plan/op_states.h"
#include "models/plan/op_transfers.h"

namespace orrery {

// Each struct of the headers above describes the work of one kind of task (a kernel, a memcpy or a transfer) by its
// shapes and options alone. A new struct needs code in four places: its header with the list below, op.cpp (flops,
// bytes), its kernel and its launch; the compiler reports a place that was forgotten (std::visit). All shapes are those
// of one rank's part. Unless said otherwise, a row is a token: for a micro-batch a rank has batch * sequence / context
// of them, where `context` is the size of the context parallel group. If the number of rows of an op is known only at
// run time (Op::runtime_size, the tokens routed to experts), its shape holds the predicted number; the executor takes
// the real number from the op's buffers.
using Work = std::variant<Gemm, GroupedGemm, GroupedBias, Gate, Permute, SigmoidGate, SortChunks, CountTokens,
                          FlashAttention, MoveHeads, Softmax, Normalize, Rotary, LatentHeads, Split, Activation,
                          Residual, Add, BiasGradient, Embedding, CrossEntropy, Cast, SoftCap, Accumulate, Load, Fill,
                          Multiply, PlaceCopy, Wait, Exchange, SquaredNorm, Update, Collective, Transfer, Convolution,
                          Scan, GatedNorm, IndexScores, Orthogonalize, Pool, MixStreams, MoveDirections, Quantize,
                          Dequantize, Distillation, FeatureLoss, Preference, FakeQuantize, Clamp>;
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
