#pragma once

#include <cstdint>

#include "exec/transport/transport.h"

namespace orrery {

// Returns the number of bytes of an element.
std::int64_t width_of(Element element);

// Computes into[i] = into[i] + from[i], or the larger of the two values. bf16 values are added as floats and rounded
// once. The arrays must not overlap. Throws Error for Element::bytes, which cannot be added.
void combine(Element element, Reduction reduction, const void* from, void* into, std::int64_t elements);

}  // namespace orrery
