#pragma once

#include <string>
#include <string_view>

#include "models/spec/model.h"

namespace orrery {

// Returns the model that an unmodified Hugging Face config.json describes. path: the file's name for messages; text:
// its contents.
Model parse_hugging_face(const std::string& text, const std::string& path);

// Returns a built-in model (models/data/models/<name>.json).
Model find_model(std::string_view name);

}  // namespace orrery
