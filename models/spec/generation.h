#pragma once

#include <cstdint>

#include "models/base/narrow.h"
#include "models/base/precision.h"
#include "models/base/units.h"

namespace orrery {

struct Model;
struct Spec;

// The generation of text by a trained model (workload: generate), in place of a training step: prompts of `input`
// tokens are computed in forward (prefill), then each pass adds one token to every sequence (decode). Keys and values
// of all tokens so far stay in a cache (KV cache).
struct Generation {
  std::int64_t batch = 1;      // sequences that are generated together, over all data ranks
  std::int64_t input = 0;      // number of tokens of each prompt
  std::int64_t output = 1;     // number of tokens that are generated after each prompt
  std::int64_t chunk = 0;      // most tokens of a prompt that one pass computes (chunked prefill); 0: the whole prompt
  std::int64_t kv_block = 16;  // number of tokens in a block of the KV cache; a sequence occupies whole blocks
  Precision kv_precision = Precision::bf16;  // precision of the cached keys and values
  double memory_fraction = 0.9;              // fraction of a GPU's memory for weights, KV cache and workspace
  // Speculative decoding (Leviathan et al. 2023, arXiv 2211.17192): the model's module of multi-token prediction
  // proposes `drafts` tokens, one after another, and a decode pass checks them all beside the token before them; 0:
  // none. acceptance: the probability that the model agrees to a proposal if it agreed to those before it.
  std::int64_t drafts = 0;
  double acceptance = 0;
  std::int64_t modules = 0;  // modules of multi-token prediction that the model has
  // The pass that a plan computes adds Spec::sequence tokens to each sequence. cached: number of tokens of each
  // sequence that the KV cache holds before the pass; 0 in a prompt's first pass.
  std::int64_t cached = 0;

  bool answers() const { return cached >= input; }  // whether the pass follows those over the prompts
  // Number of tokens of each sequence that a decode pass computes, and that it adds to the text on average:
  // 1 + a + ... + a^drafts with acceptance a.
  std::int64_t checked() const { return 1 + drafts; }
  double tokens_a_pass() const;
  // Whether the pass checks proposed tokens, so that it chooses a token after each one.
  bool checks() const { return drafts > 0 && answers(); }
};

// Returns whether the cache holds codes that have scales beside them. Those of whole numbers have a scale and a zero
// point, in fp16 each, for each vector of a token: the key or the value of a head (LMDeploy,
// docs/en/quantization/kv_quant.md: per head and token). In nvfp4 16 numbers share a scale of 8 bits (TensorRT-LLM,
// docs/source/features/quantization.md: NVFP4 KV cache).
inline bool has_kv_scales(const Generation& g) {
  return g.kv_precision == Precision::int8 || g.kv_precision == Precision::int4 || g.kv_precision == Precision::nvfp4;
}
inline constexpr Bytes kKvScaleBytes = 4;
// Returns the bytes that one vector of so many elements takes in the cache: codes, and scales and zero points if it has
// them. In fp8 all vectors of a layer share a scale, which is not counted; nor is that of the
// scales of nvfp4, which ranks that execute do without (kernels/cpu/weight_codes.h).
inline Bytes kv_vector_bytes(const Generation& g, std::int64_t elements) {
  if (g.kv_precision == Precision::int4) return ceil_div(elements, 2) + kKvScaleBytes;
  if (g.kv_precision == Precision::int8) return elements + kKvScaleBytes;
  if (g.kv_precision == Precision::nvfp4) return ceil_div(elements, 2) + ceil_div(elements, kNvfp4Block);
  return elements * (is_eight_bit(g.kv_precision) ? 1 : storage_bytes(g.kv_precision));
}
// Returns whether some weights of a model that does not train take fewer bytes than activations: in NF4 (model.lora) or
// in a format of strategy.quantise. Buffers of frozen weights are then counted in bytes.
bool keeps_narrow_weights(const Spec& spec);
// Returns whether a model that generates text has weights or a cache of fewer bits than its activations; and the same
// spec without them.
bool is_quantised(const Spec& spec);
Spec unquantised(const Spec& spec);
// Returns the bytes that a rank keeps in the KV cache for one token in one layer: keys and values of its heads, or with
// latent attention the compressed vector and the rotary part of the key, which every tensor rank holds whole
// (DeepSeek-V2, arXiv 2405.04434, section 2.1), and the key of the index if there is one; 0 for layers without
// attention.
Bytes cached_bytes(const Spec& spec, std::int64_t layer);
// Returns the bytes of one token's key of the index of sparse attention in the cache: codes in E4M3, in whole words of
// 4 bytes, and one scale in fp32, whatever the format of the other keys (DeepSeek-V3.2-Exp, inference/kernel.py,
// act_quant with blocks of 128; vLLM, v1/attention/backends/mla/indexer.py, head_dim + 4 bytes); 0 without an index.
Bytes index_key_bytes(const Model& m);
// Returns the bytes that a layer with a recurrence keeps on a rank for one sequence, however long the sequence is: the
// states of the rank's heads in fp32, and the last inputs of the convolution in the precision of activations, in whole
// words of 4 bytes. 0 for other layers.
struct RecurrentBytes {
  Bytes states = 0, inputs = 0;

  Bytes sum() const { return states + inputs; }
};
RecurrentBytes recurrent_bytes(const Spec& spec, std::int64_t layer);
// Returns the number of tokens of a sequence whose keys and values a layer keeps in the KV cache, rounded up to whole
// cache blocks: all tokens, or at most the sliding window and one block.
std::int64_t cached_tokens(const Spec& spec, std::int64_t layer, std::int64_t tokens);
// Returns the bytes that a rank keeps in the KV cache for one sequence of `tokens` tokens in one layer.
inline Bytes sequence_cache_bytes(const Spec& spec, std::int64_t layer, std::int64_t tokens) {
  return cached_bytes(spec, layer) * cached_tokens(spec, layer, tokens);
}

}  // namespace orrery
