#pragma once

#include <string>
#include <vector>

#include "models/spec/model.h"
#include "sim/launch/spec_values.h"

namespace orrery {

// The keys that a spec gets for a model whose config.json was read from `path`: model.base with this path, and the
// sizes of the model.
std::vector<SpecValue> model_values(const Model& model, const std::string& path);

}  // namespace orrery
