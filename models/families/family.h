#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/families/config.h"
#include "models/spec/model.h"

namespace orrery {

// Properties of a model family that its config.json files do not state, because the family's modeling code always has
// these properties.
namespace habit {
inline constexpr std::uint32_t kQkvBias = 1 << 0;          // a bias on q, k and v
inline constexpr std::uint32_t kQkNorm = 1 << 1;           // a norm of each head of q and of k
inline constexpr std::uint32_t kQkNormAll = 1 << 2;        // one norm over all heads of q and one over all heads of k
inline constexpr std::uint32_t kPostNorms = 1 << 3;        // norms after attention and after the MLP
inline constexpr std::uint32_t kNoPreNorms = 1 << 4;       // no norms before attention and MLP
inline constexpr std::uint32_t kScaledEmbedding = 1 << 5;  // embeddings are multiplied by sqrt(hidden)
inline constexpr std::uint32_t kLayerNorm = 1 << 6;        // LayerNorm instead of RMSNorm
inline constexpr std::uint32_t kNoNormBias = 1 << 7;       // LayerNorm without a bias
inline constexpr std::uint32_t kUngated = 1 << 8;          // an MLP of two matrices, without a gate
inline constexpr std::uint32_t kBias = 1 << 9;             // a bias on every linear layer
inline constexpr std::uint32_t kLearned = 1 << 10;         // a learned table of positions
inline constexpr std::uint32_t kAlibi = 1 << 11;           // attention with linear biases (ALiBi)
// attention and MLP read the same hidden states, after one norm (a parallel block)
inline constexpr std::uint32_t kParallel = 1 << 12;
inline constexpr std::uint32_t kFourfold = 1 << 13;     // an MLP of width 4 * hidden if the file states no width
inline constexpr std::uint32_t kSigmoid = 1 << 14;      // experts are chosen by sigmoid scores and a correction bias
inline constexpr std::uint32_t kOnlyQkvBias = 1 << 15;  // attention_bias adds biases to q, k and v only
inline constexpr std::uint32_t kLatent = 1 << 16;       // latent attention (MLA) in every model of the family
// the key sliding_window has an effect only if use_sliding_window is set
inline constexpr std::uint32_t kNoWindow = 1 << 17;
}  // namespace habit

// The set of keys by which a config.json describes experts, named after the model family that introduced these keys.
enum class Experts : std::uint8_t { none, mixtral, qwen, deepseek, llama4, ernie, nemotron };

// A family of models: its model_type in config.json, and the architecture by which a file without model_type is
// recognized. defaults: the values of the family's configuration class that determine a size, as a JSON object with the
// key names of the class. adjust: a function that reads keys that other families do not have.
struct Family {
  std::string_view model_type, architecture;
  std::uint32_t habits = 0;
  std::string_view defaults;
  Experts experts = Experts::none;
  void (*adjust)(const Config& config, Model& model) = nullptr;

  bool has(std::uint32_t habit) const { return (habits & habit) != 0; }
};

// Returns the family that a file names; throws Error if the family is unknown.
const Family& family_of(const Config& config);

// Each of these functions returns the table of model families that the source file of the same name defines
// (dense_families.cpp, ...).
std::span<const Family> dense_families();
std::span<const Family> expert_families();
std::span<const Family> gpt_families();
std::span<const Family> hybrid_families();

// Returns the experts that a file describes by its family's keys; nothing if the file has no experts.
std::optional<Moe> read_experts(const Config& config, const Family& family, const Model& model);

// Returns the sliding window that a file describes, by single keys or by lists of layer types; nothing if no layer has
// a window.
std::optional<SlidingWindow> read_window(const Config& config, const Family& family, std::int64_t layers);

// Returns the kinds of Nemotron-H's layers, one letter for each layer: M for Mamba, * for attention, - for an MLP, E
// for experts.
std::string hybrid_letters(const Config& config, std::int64_t layers);

// Sets the model's kinds of layers to the shortest sequence of kinds that, repeated, gives `kinds`, which has one kind
// for each layer.
void set_kinds(Model& model, const std::vector<LayerKind>& kinds);

// Reads the keys that only files of DeepSeek-V4 have.
void read_deepseek_v4(const Config& config, Model& model);

// Throws Error if the config.json is of a model with types of layers that Orrery cannot simulate; the message has the
// reason and what the user can do.
void refuse_kinds(const Config& config);

}  // namespace orrery
