#pragma once

#include <string>
#include <vector>

#include "models/spec/model.h"
#include "sim/launch/spec_values.h"

namespace orrery {

// A model that stands in a config.json, as keys of a spec: model.base, and the shapes beside it.
std::vector<SpecValue> model_values(const Model& model, const std::string& path);

}  // namespace orrery
