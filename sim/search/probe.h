#pragma once

#include <cstdint>
#include <tuple>

#include "sim/search/costs.h"

namespace orrery {

// A kind of layers: layers that differ only in their number cost the same.
using LayerKey = std::tuple<LayerKind, std::int64_t, bool, std::int64_t, std::int64_t>;
LayerKey kind_of(const Spec& spec, std::int64_t layer);

// The spec of one stage and one micro-batch with every type of layer of the model of `base`, on the parallel degrees of
// `key`.
Spec probe_spec(const Spec& base, const StackKey& key);

}  // namespace orrery
