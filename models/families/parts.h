#pragma once

#include <string>
#include <vector>

#include "models/families/config.h"
#include "models/spec/model.h"

namespace orrery {

// The object of a config.json that describes the text model: the file's own, or one within it. key: the name of that
// object, or null for the file's own.
struct TextPart {
  const nlohmann::json* object;
  const char* key;
};
TextPart text_part(const nlohmann::json& whole);

// Whether the output shares the embedding's matrix: by the text model's key, else the whole file's, else the class's.
bool is_tied(const Config& text, const Config& whole);

// Sentences on what the file holds and the model leaves out, and on what it takes from the family's class.
std::vector<std::string> remarks_of(const Config& text, const Config& whole, const TextPart& part, const Model& model);

}  // namespace orrery
