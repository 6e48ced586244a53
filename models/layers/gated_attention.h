#pragma once

#include <cstdint>

#include "models/layers/layer_tape.h"

namespace orrery {

// The buffers of attention whose output is multiplied by a gate (Qwen3-Next; Qiu et al. 2025, arXiv 2505.06708): `gate`
// is the gate's buffer, `qkv` that of queries, keys and values.
struct GatedProjection {
  Id gate, qkv;
};

// Splits one projection into the columns of the gate (the first `gate` columns) and the columns of queries, keys and
// values (the `width` columns after them), by copying.
GatedProjection split_gate(LayerTape& layer, Id projected, std::int64_t gate, std::int64_t width);
// Records the multiplication of each element of attention's output by the sigmoid of the gate's element.
Id gated_values(LayerTape& layer, Id values, Id gate);

}  // namespace orrery
