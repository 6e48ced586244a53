#pragma once

#include <string>
#include <vector>

#include "models/spec/model.h"
#include "sim/launch/spec_values.h"

namespace orrery {

// The keys of a spec for a model whose config.json was read from `path`: model.base with this path, and the model's
// shapes.
std::vector<SpecValue> model_values(const Model& model, const std::string& path);

}  // namespace orrery
