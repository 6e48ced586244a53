#pragma once

#include <cstdint>
#include <tuple>

#include "sim/search/costs.h"

namespace orrery {

// Layers that differ only in their number cost the same.
using LayerKind = std::tuple<std::int64_t, bool, std::int64_t, std::int64_t>;
LayerKind kind_of(const Spec& spec, std::int64_t layer);

// The spec of one stage and one micro-batch with every kind of layer of the base's model, laid out as the key says.
Spec probe_spec(const Spec& base, const StackKey& key);

}  // namespace orrery
