#pragma once

// This header has the properties of a spec's model that do not work with some option (features.h).
#include "models/load/combinations.h"
#include "models/spec/spec.h"

namespace orrery::feature {

using S = const Spec&;

// Properties of a spec's model; combinations.cpp lists the options with which each does not work.
inline constexpr Feature kExperts = {"model.moe", "experts", [](S s) { return s.model.moe.has_value(); }};
inline constexpr Feature kNoExperts = {"model.moe", "a model without experts", [](S s) { return !s.model.moe; }};
inline constexpr Feature kGatedExperts = {"model.moe.shared_gate", "gated shared experts",
                                          [](S s) { return s.model.moe && s.model.moe->shared_gate; }};
inline constexpr Feature kBias = {"model.bias", "biases", [](S s) { return has_mlp_bias(s.model); }};
inline constexpr Feature kSinks = {"model.attention_sinks", "attention sinks",
                                   [](S s) { return s.model.attention_sinks; }};
inline constexpr Feature kNormOfAllHeads = {"model.qk_norm_all", "norms of all heads together",
                                            [](S s) { return s.model.qk_norm_all; }};
inline constexpr Feature kFp32Router = {"model.moe.router_fp32", "a router in fp32",
                                        [](S s) { return s.model.moe && s.model.moe->router_fp32; }};
inline constexpr Feature kBareNorms = {
    "model.norm_bias", "norms without weights or biases",
    [](S s) { return !s.model.norm_weight || (s.model.norm == Norm::layernorm && !s.model.norm_bias); }};
inline constexpr Feature kEmbeddingNorm = {"model.embedding_norm", "a norm of the embeddings",
                                           [](S s) { return s.model.embedding_norm; }};
inline constexpr Feature kParallelBlock = {"model.parallel_block", "attention and MLP side by side",
                                           [](S s) { return s.model.parallel_block; }};
inline constexpr Feature kPostNorms = {"model.post_norms", "norms behind attention and MLP",
                                       [](S s) { return s.model.post_norms; }};
inline constexpr Feature kLatent = {"model.mla", "latent attention", [](S s) { return s.model.mla.has_value(); }};
inline constexpr Feature kNoLatent = {"model.mla", "a model without latent attention",
                                      [](S s) { return !s.model.mla; }};
inline constexpr Feature kIndexer = {"model.indexer", "sparse attention by an index",
                                     [](S s) { return s.model.indexer.has_value(); }};
inline constexpr Feature kTrainedIndex = {"model.indexer", "training of an index",
                                          [](S s) { return s.model.indexer && !s.generation; }};
inline constexpr Feature kCompressed = {"model.compressed_attention", "attention to compressed keys",
                                        [](S s) { return s.model.compressed_attention.has_value(); }};
inline constexpr Feature kOtherAttention = {
    "model", "windows, norms, gates, biases, positions or latent vectors of other attention", [](S s) {
      const Model& m = s.model;
      return m.mla || m.sliding_window || m.qk_norm || m.qk_norm_all || m.attention_gate || has_qkv_bias(m) ||
             m.positions != Positions::rope;
    }};
inline constexpr Feature kStreams = {"model.hyper_connections", "hyper-connections",
                                     [](S s) { return s.model.hyper_connections.has_value(); }};
inline constexpr Feature kHashed = {"model.moe.hash_layers", "experts that a table of tokens names",
                                    [](S s) { return s.model.moe && s.model.moe->hash_layers > 0; }};
inline constexpr Feature kAttentionGate = {"model.attention_gate", "a gate of attention's output",
                                           [](S s) { return s.model.attention_gate; }};
inline constexpr Feature kRecurrence = {"model.recurrence", "layers of a recurrence",
                                        [](S s) { return s.model.recurrence.has_value(); }};
inline constexpr Feature kNotRope = {"model.positions", "positions other than rope",
                                     [](S s) { return s.model.positions != Positions::rope; }};
inline constexpr Feature kLearned = {"model.positions", "learned positions",
                                     [](S s) { return s.model.positions == Positions::learned; }};
inline constexpr Feature kAlibi = {"model.positions", "alibi",
                                   [](S s) { return s.model.positions == Positions::alibi; }};
inline constexpr Feature kPredictions = {"model.mtp_layers", "multi-token prediction",
                                         [](S s) { return s.model.mtp_layers > 0; }};
inline constexpr Feature kImages = {"sequence.images", "images that an encoder reads",
                                    [](S s) { return s.images.has_value(); }};
inline constexpr Feature kTied = {"model.tied_embeddings", "tied embeddings",
                                  [](S s) { return s.model.tied_embeddings; }};
inline constexpr Feature kCappedLogits = {"model.logit_softcap", "capped logits",
                                          [](S s) { return s.model.logit_softcap != 0; }};
inline constexpr Feature kCaps = {"model", "soft caps",
                                  [](S s) { return s.model.attention_softcap > 0 || s.model.logit_softcap > 0; }};

}  // namespace orrery::feature
