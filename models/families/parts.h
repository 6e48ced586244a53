#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/families/config.h"
#include "models/spec/model.h"

namespace orrery {

// The object of a config.json that describes the text model: the file's outermost object, or one within it. key: the
// name of that object, or null if it is the outermost.
struct TextPart {
  const nlohmann::json* object;
  const char* key;
};
TextPart text_part(const nlohmann::json& whole);

// Returns whether the output layer shares the embedding's matrix (tie_word_embeddings), as the text model's object
// states it, else the file's outermost object, else the default of the family's configuration class.
bool is_tied(const Config& text, const Config& whole);

// Returns the vision encoder of a file if it is a known one (Qwen2-VL, Qwen2.5-VL, Qwen3-VL); nothing otherwise.
std::optional<VisionEncoder> read_encoder(const Config& whole, std::int64_t text_hidden);

// Returns messages for the user about properties that the file states and the planned model lacks, and about values
// that were taken from the family's configuration class.
std::vector<std::string> remarks_of(const Config& text, const Config& whole, const TextPart& part, const Model& model);

}  // namespace orrery
