#pragma once

#include "sim/explain/formulas.h"

namespace orrery {

// Adds to a volume of data or tensor parallelism what Muon moves over the ranks of this dimension to orthogonalize
// layers; does nothing for other optimizers. In a round every data-parallel rank orthogonalizes one of the layers with
// the same shape.
Volume with_muon(const Spec& spec, const Plan& plan, Dimension over, Volume v);

}  // namespace orrery
