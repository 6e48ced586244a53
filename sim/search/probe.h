#pragma once

#include <cstdint>
#include <tuple>

#include "sim/search/costs.h"

namespace orrery {

// A type of layer. Layers with equal keys cost the same, and differ only in their position in the model.
using LayerKey = std::tuple<LayerKind, std::int64_t, bool, bool, std::int64_t, std::int64_t>;
LayerKey kind_of(const Spec& spec, std::int64_t layer);

// A spec of one stage and one micro-batch that has every type of layer of the model of `base`, with the parallel
// degrees of `key`.
Spec probe_spec(const Spec& base, const ModelCostKey& key);

}  // namespace orrery
