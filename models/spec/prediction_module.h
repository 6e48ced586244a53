#pragma once

#include "models/spec/model.h"

namespace orrery {

// The modules of multi-token prediction of a model (DeepSeek-V3, arXiv 2412.19437, section 2.2) where it generates
// text: a layer like the model's last one, which shares the embedding and the output. The product that joins a hidden
// state and an embedding to its input (2 x hidden by hidden) is not counted.
//
// Returns the model with a module as one further layer, as prompts pass through both; and the module alone.
Model with_module(const Model& model);
Model module_alone(const Model& model);

}  // namespace orrery
