#pragma once

#include <cstdint>
#include <tuple>

#include "sim/search/costs.h"

namespace orrery {

// The type of a layer. Layers of one type differ only in their index and cost the same.
using LayerKind = std::tuple<std::int64_t, bool, std::int64_t, std::int64_t>;
LayerKind kind_of(const Spec& spec, std::int64_t layer);

// The spec of one stage and one micro-batch with every type of layer of the model of `base`, on the parallel degrees of
// `key`.
Spec probe_spec(const Spec& base, const StackKey& key);

}  // namespace orrery
