#pragma once

#include <string>
#include <string_view>

#include "models/spec/model.h"

namespace orrery {

// Reads an unmodified Hugging Face config.json. path: the file's name for messages; text: its contents.
Model parse_hugging_face(const std::string& text, const std::string& path);

// A built-in model (models/data/models/<name>.json).
Model find_model(std::string_view name);

}  // namespace orrery
