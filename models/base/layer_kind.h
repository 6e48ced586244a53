#pragma once

#include <cstdint>
#include <string_view>

namespace orrery {

// The part of a layer that moves information between tokens: softmax attention, a recurrence whose state passes over
// the tokens (RecurrenceRule), or none. In windowed, compressed_sparse and heavily_compressed, the attentions of
// DeepSeek-V4's technical report (section 2.3), every token attends to a window of tokens; compressed_sparse adds the
// keys of short runs of tokens that an index chooses, and heavily_compressed adds the keys of all long runs before the
// token.
enum class Mixer : std::uint8_t { attention, recurrence, none, windowed, compressed_sparse, heavily_compressed };

// Returns whether a layer with this mixer uses the attention that Model::compressed_attention describes, in which all
// heads share one key.
constexpr bool uses_compressed_attention(Mixer mixer) { return mixer >= Mixer::windowed; }

// A type of layer: its mixer (attention, a recurrence or none), and whether an MLP or a mixture of experts follows.
struct LayerKind {
  Mixer mixer = Mixer::attention;
  bool feed_forward = true;

  friend bool operator==(const LayerKind&, const LayerKind&) = default;
  friend auto operator<=>(const LayerKind&, const LayerKind&) = default;
};

// A row of the table of layer types; `word` is the name of the type in specs (input files).
struct LayerKindRow {
  std::string_view word, about;
  LayerKind kind;
};
inline constexpr LayerKindRow kLayerKinds[] = {
    {"attention", "attention and an MLP or experts", {}},
    {"recurrence", "a recurrence and an MLP or experts", {Mixer::recurrence, true}},
    {"attention_alone", "attention without an MLP", {Mixer::attention, false}},
    {"recurrence_alone", "a recurrence without an MLP", {Mixer::recurrence, false}},
    {"feed_forward", "an MLP or experts alone", {Mixer::none, true}},
    {"windowed", "attention to a window of keys that all heads share, and an MLP or experts", {Mixer::windowed, true}},
    {"compressed_sparse", "such a window and chosen compressed keys", {Mixer::compressed_sparse, true}},
    {"heavily_compressed", "such a window and all heavily compressed keys", {Mixer::heavily_compressed, true}},
};

// The rule by which a recurrence updates its state, a matrix (key_dim, value_dim) for each head. With keys k, values v
// and queries q of a token, a decay a in (0, 1) and a step b of each head:
//   gated_delta   S = a S + b k (v - k^T a S)^T, y = q^T S  (gated delta net: Yang et al. 2024, arXiv 2412.06464)
//   state_space   S = a S + b k v^T, y = q^T S + d v        (Mamba-2: Dao and Gu 2024, arXiv 2405.21060; k, q and v are
//                                                            that paper's B, C and x)
enum class RecurrenceRule : std::uint8_t { gated_delta, state_space };

// A row of the table of recurrence rules (the ways in which state-space and linear-attention layers update a state).
struct RecurrenceRow {
  std::string_view word, about;
  std::int64_t gates = 1;  // number of gate values per head and token, from which decay and step are computed
  bool corrects = false;   // whether the state's prediction of a value is subtracted from the value (delta rule)
  bool unit_keys = false;  // whether queries and keys are divided by their lengths
  // whether the recurrence's result is the output that the rule reads from the state, plus a learned multiple of the
  // value
  bool skips = false;
  // whether the recurrence's result is multiplied by SiLU of its gate before its norm; otherwise after the norm
  bool gates_first = false;
  // whether the norm of the recurrence's result is taken over each head, with weights that all heads share; otherwise
  // it is taken over each group of heads
  bool norm_of_heads = false;
  // whether only the input of the short convolution is kept for backward, which then runs the convolution again
  bool convolves_again = false;
};
inline constexpr RecurrenceRow kRecurrences[] = {
    {.word = "gated_delta",
     .about = "gated delta net (Qwen3-Next)",
     .gates = 2,
     .corrects = true,
     .unit_keys = true,
     .norm_of_heads = true},
    {.word = "state_space", .about = "Mamba-2", .skips = true, .gates_first = true, .convolves_again = true},
};

constexpr const RecurrenceRow& row_of(RecurrenceRule rule) { return kRecurrences[static_cast<std::size_t>(rule)]; }

}  // namespace orrery
