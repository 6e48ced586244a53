#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/layer_kind.h"

namespace orrery {

enum class Positions : std::uint8_t { rope, learned, alibi, none };
enum class Norm : std::uint8_t { rmsnorm, layernorm };

// The relative numbers of tokens that chose each expert: a list for each layer with experts, or one list for all
// layers.
using ExpertLoads = std::vector<std::vector<double>>;

// A mixture of experts. Layer i has experts if i >= first_layer and (i - first_layer) % every == 0, or, if `layers` is
// not empty, if `layers` contains i.
struct Moe {
  std::int64_t experts = 0;
  std::int64_t top_k = 0;
  std::int64_t feed_forward = 0;         // feed-forward width (number of columns) of one expert
  std::int64_t shared_feed_forward = 0;  // total width of the shared experts, 0 = no shared experts
  std::int64_t first_layer = 0;
  std::int64_t every = 1;
  // indices of the layers with experts, in order; empty = first_layer and every say which layers have experts
  std::vector<std::int64_t> layers;
  // an expert's capacity over the mean number of tokens per expert; none = no token is dropped
  std::optional<double> capacity_factor;
  bool pad_to_capacity = false;
  bool shared_gate = false;  // whether a sigmoid gate (hidden -> 1) scales the shared expert (Qwen1.5-MoE)
  bool sigmoid_scores = false;
  bool router_bias = false;      // whether the router's matrix product has a bias (gpt-oss)
  bool router_fp32 = false;      // whether the router's product is in fp32 where a text is generated (MiniMax-M2)
  bool correction_bias = false;  // whether a bias per expert corrects the choice (auxiliary-loss-free, DeepSeek-V3)
  // Number of layers, from the first one, in which a fixed table chooses the experts by the token's id in the
  // vocabulary (DeepSeek-V4, section 2.1). There the router only weighs the chosen experts, and there is no correction
  // bias.
  std::int64_t hash_layers = 0;
  // The experts form expert_groups equal groups, and the experts that a token chooses lie in at most top_groups of them
  // (DeepSeek-V2 and V3: device- and node-limited routing). A token ranks the groups by their best expert, or with a
  // correction bias by their two best.
  std::int64_t expert_groups = 1, top_groups = 1;
  bool hierarchical_dispatch = false;
  double aux_loss = 0.01;
  // number of tokens of the busiest rank of an expert parallel group, divided by the mean over the group's ranks
  double imbalance = 1.0;
  // used instead of `imbalance`: exponent of Zipf's law, by which the load of the r-th most popular expert is
  // proportional to r^-zipf
  std::optional<double> zipf;
  // used instead of `imbalance`: name of a file of token counts per layer and expert, as written in the spec
  std::string loads_file;
  std::shared_ptr<const ExpertLoads> loads;  // the counts of tokens read from loads_file
};

// The sizes of multi-head latent attention (DeepSeek-V2). q_lora_rank 0 = queries are projected directly.
struct Mla {
  std::int64_t q_lora_rank = 0;
  std::int64_t kv_lora_rank = 0;
  std::int64_t qk_nope_head_dim = 0;
  std::int64_t qk_rope_head_dim = 0;
  std::int64_t v_head_dim = 0;
};

// The linear recurrence of layers with Mixer::recurrence (gated delta net, Mamba-2). It is preceded by a short
// convolution over the last `taps` tokens and SiLU, and followed by a norm gated by SiLU. Each of the `groups` heads of
// keys and queries is shared by heads / groups heads of values.
struct Recurrence {
  RecurrenceRule rule = RecurrenceRule::gated_delta;
  std::int64_t heads = 0, groups = 0;
  std::int64_t key_dim = 0, value_dim = 0;  // number of columns of a key and of a value in one head
  std::int64_t taps = 4;
  bool convolution_bias = false;
  std::int64_t chunk = 64;  // number of tokens that recurrence kernels compute at once

  std::int64_t keys() const { return groups * key_dim; }
  std::int64_t values() const { return heads * value_dim; }
  // convolved: number of columns that pass through the convolution (queries, keys, values). projected: number of
  // columns of the input projection, which has in addition the gate of the result and the gates of the heads.
  std::int64_t convolved() const { return 2 * keys() + values(); }
  std::int64_t projected() const { return convolved() + values() + row_of(rule).gates * heads; }
};

// Sparse attention (DeepSeek-V3.2, arXiv 2512.02556, section 2.1): a token attends to the top_k earlier tokens that a
// small scoring network, the index, with `heads` heads ranks highest. Queries of the index come from the compressed
// queries of latent attention, keys of the index from the hidden states.
struct Indexer {
  std::int64_t heads = 0, head_dim = 0, top_k = 0;
};

// The attention of DeepSeek-V4 (technical report, section 2.3). All heads share one key for each token, which is also
// the token's value. Queries come from compressed vectors of q_lora_rank columns; the last rope_head_dim columns of
// queries, keys and results are rotated. A token attends to a window of tokens. In layers of kind compressed_sparse a
// learned sum over 2 * sparse_rate tokens makes one key of every sparse_rate tokens, and an index (Indexer) chooses
// among these; in layers of kind heavily_compressed a sum over heavy_rate tokens makes one key of as many tokens. The
// output projection is of low rank: output_groups groups of heads are each projected to output_rank columns, and these
// together to the hidden states.
struct CompressedAttention {
  std::int64_t q_lora_rank = 0, rope_head_dim = 64, window = 128;
  std::int64_t sparse_rate = 4, heavy_rate = 128;
  std::int64_t output_groups = 1, output_rank = 0;

  // Returns the number of tokens that one compressed key of a layer stands for; 0: the layer has no compressed keys.
  std::int64_t rate(Mixer mixer) const {
    return mixer == Mixer::compressed_sparse ? sparse_rate : mixer == Mixer::heavily_compressed ? heavy_rate : 0;
  }
  // Returns the number of runs of rate(mixer) tokens from which one compressed key is computed: 2 in compressed_sparse
  // layers, where the runs of neighbouring keys overlap, else 1.
  static std::int64_t runs(Mixer mixer) { return mixer == Mixer::compressed_sparse ? 2 : 1; }
};

// Hyper-connections with mixing matrices near the doubly stochastic ones (mHC: Xie et al. 2025, arXiv 2512.24880): the
// residual stream of a token consists of `streams` vectors. Before each branch (attention; MLP or experts) a matrix
// product over all streams of a token computes three sets of weights: for the sum of streams that the branch reads, for
// adding the branch's result to each stream, and a (streams, streams) matrix that mixes the streams. This matrix is
// normalised by rows and columns `iterations` times (Sinkhorn and Knopp).
struct HyperConnections {
  std::int64_t streams = 1, iterations = 20;

  std::int64_t weights() const { return (2 + streams) * streams; }  // mixing weights per token and branch
};

// The patches that an image is cut into: squares of `side` x `side` pixels of `frames` video frames (1 for a still
// image), each embedded by one matrix product.
struct Patches {
  std::int64_t side = 14, frames = 1, channels = 3;
  bool bias = true;            // whether the matrix product that embeds a patch has a bias
  std::int64_t positions = 0;  // rows of a learned position table; 0 = no table

  std::int64_t pixels() const { return channels * frames * side * side; }  // number of values in a patch
};

// A projector joins squares of merge x merge patches into one token of the text model: a norm, a matrix product to
// `width` columns, GeLU, a matrix product to the hidden size. Projectors after the first read the output of earlier
// layers of the vision encoder (Qwen3-VL: DeepStack).
struct Projector {
  std::int64_t merge = 1;
  std::int64_t width = 0;
  std::int64_t count = 1;
};

// The vision encoder of a vision-language model: a Transformer over the patches of an image, in which every patch
// attends to all patches, and a projector of its output (Qwen2-VL, arXiv 2409.12191, section 2.1).
struct VisionEncoder {
  std::int64_t layers = 0, hidden = 0, heads = 0, feed_forward = 0;
  bool gated = false;  // whether the MLP has three matrices instead of two (Qwen2.5-VL)
  Norm norm = Norm::layernorm;
  bool bias = true;     // whether linear layers have biases
  bool rotary = false;  // whether queries and keys are rotated
  // number of patches within which a layer attends, except the layers in full_layers, which attend to all patches
  // (Qwen2.5-VL); 0 = all layers attend to all patches
  std::int64_t window = 0;
  std::vector<std::int64_t> full_layers;
  Patches patches;
  Projector projector;

  // number of columns of a row that joins merge x merge patches
  std::int64_t merged() const { return hidden * projector.merge * projector.merge; }
};

struct SlidingWindow {
  std::int64_t window = 0;
  // every n-th layer attends to all positions, other layers within the window; 1 = all layers use the window
  std::int64_t every = 1;
  // indices of layers that attend to all positions, in order; empty = every n-th layer, n being `every`
  std::vector<std::int64_t> full_layers;
};

// Low-rank adapters beside linear layers whose own weights are frozen (Hu et al. 2021, LoRA, 2106.09685): y = x W^T + x
// A^T B^T, with A (rank, in) and B (out, rank), which begins as zeros. LoRA's factor alpha / rank is 1.
struct Lora {
  std::int64_t rank = 0;
  bool qkv = false, out = false, mlp = false;  // which linear layers have adapters
  // QLoRA (Dettmers et al. 2023, 2305.14314): the layers' matrices are kept in NF4 and widened before each product
  bool nf4 = false;
};

// The names, in specs, of the parts of a model that can be frozen (not trained); Model::frozen has some of them.
inline constexpr std::string_view kFrozenParts[] = {"embedding", "attention", "mlp",       "moe",
                                                    "norm",      "head",      "projector", "vision"};

// The largest number of layers of a model: four times that of the deepest Transformer that was trained (DeepNet, Wang
// et al. 2022: 1,000 layers).
inline constexpr std::int64_t kMostLayers = 4096;

// The sizes and switches of a decoder-only transformer, independent of strategy, cluster and micro-batch.
struct Model {
  std::string name;
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t feed_forward = 0;
  std::int64_t vocab = 0;
  // number of rows of a learned position table; 0 = as many as the sequence has tokens
  std::int64_t max_positions = 0;
  // maximum number of positions that a configuration file states for a model without a position table; 0 = not stated
  std::int64_t trained_positions = 0;
  bool gated = true;  // whether the MLP has three matrices (SwiGLU and the like) instead of two (GeLU)
  bool tied_embeddings = false;
  // whether every linear layer has a bias, as if qkv_bias, attention_output_bias and mlp_bias were set
  bool bias = false;
  bool qkv_bias = false;               // whether q, k and v have a bias (Qwen2)
  bool attention_output_bias = false;  // whether attention's output has a bias (gpt-oss)
  bool mlp_bias = false;               // whether the matrices of the MLP and of experts have biases
  bool qk_norm = false;                // whether each head of q and of k has a norm of head_dim (Qwen3, Gemma 3)
  // whether one norm covers all heads of q and one all heads of k, instead of qk_norm (OLMo 2)
  bool qk_norm_all = false;
  // whether each head has a learned number that is added to the sum in its softmax (gpt-oss)
  bool attention_sinks = false;
  bool pre_norms = true;    // whether there are norms before attention and MLP
  bool post_norms = false;  // whether there are norms after attention and MLP (Gemma 2 and 3, OLMo 2)
  // whether attention and MLP read the same hidden states, and both their outputs are added to the residual
  bool parallel_block = false;
  bool parallel_norms = false;    // whether attention and MLP of a parallel block each have their own norm (GPT-NeoX)
  bool embedding_norm = false;    // whether the embeddings have a norm (BLOOM)
  bool norm_weight = true;        // whether norms multiply by weights; those of OLMo do not
  bool norm_bias = true;          // whether LayerNorms add a bias; those of MPT do not
  bool scaled_embedding = false;  // whether embeddings are multiplied by sqrt(hidden) (Gemma)
  // cap of attention scores, x -> cap tanh(x / cap) (Gemma 2), 0 = no cap; logit_softcap is the cap of logits
  double attention_softcap = 0;
  double logit_softcap = 0;
  // bound of the gates of SwiGLU, and on both sides of what they gate (gpt-oss: swiglu_limit), 0 = none
  double activation_clamp = 0;
  Positions positions = Positions::rope;
  Norm norm = Norm::rmsnorm;
  double dropout = 0;
  std::optional<SlidingWindow> sliding_window;
  std::optional<Moe> moe;
  std::optional<Mla> mla;
  std::optional<Indexer> indexer;
  std::optional<CompressedAttention> compressed_attention;
  std::optional<HyperConnections> hyper_connections;
  // whether the sigmoid of a projection multiplies attention's output (Qwen3-Next)
  bool attention_gate = false;
  // kinds of the first layers, a pattern that repeats over all layers; empty: every layer has attention and an MLP or
  // experts
  std::vector<LayerKind> layer_kinds;
  std::optional<Recurrence> recurrence;
  std::int64_t mtp_layers = 0;
  bool bidirectional = false;  // whether a token attends to later tokens too, as patches of an image do
  std::optional<VisionEncoder> vision;
  std::optional<Lora> lora;         // low-rank adapters; if set, every other weight is frozen
  std::vector<std::string> frozen;  // parts (of kFrozenParts) that do not train: no gradients, states or updates
  // messages about properties of the model's configuration file that are left out here, and about assumptions that the
  // file does not state
  std::vector<std::string> remarks;
};

inline bool has_qkv_bias(const Model& m) { return m.bias || m.qkv_bias; }
inline bool has_attention_output_bias(const Model& m) { return m.bias || m.attention_output_bias; }
inline bool has_mlp_bias(const Model& m) { return m.bias || m.mlp_bias; }

// Returns the first rule that a model's sizes break, as "heads: 40 is not a multiple of kv_heads: 16", or "" if they
// break none. Sizes have upper limits (no model has 10^18 layers), so that sizes in a plan for any accepted model
// cannot overflow.
std::string broken_rule(const Model& m);

// Returns the kind of a layer: how it mixes tokens (attention, recurrence, none), and whether an MLP or experts follow.
LayerKind layer_kind(const Model& m, std::int64_t layer);
// Returns the index of the layer whose structure the modules for multi-token prediction have: the last layer. With
// compressed attention the result is the number of layers, one past the last, for which layer_kind() returns a layer
// with window attention (DeepSeek-V4's configuration files list such a layer for the prediction).
std::int64_t prediction_layer(const Model& m);
// Returns the number of residual streams of a token: 1, or more with hyper-connections.
inline std::int64_t streams_of(const Model& m) { return m.hyper_connections ? m.hyper_connections->streams : 1; }
// Returns whether a fixed table, instead of the router, chooses the experts of each token in a layer
// (Moe::hash_layers).
bool is_hashed(const Model& m, std::int64_t layer);
bool has_experts(const Model& m, std::int64_t layer);
std::int64_t experts_before(const Model& m, std::int64_t layer);  // number of layers before this one that have experts

// Partition says how a parameter is cut over the tensor parallel group. Megatron's names: column-parallel cuts the rows
// of the (out, in) matrix, row-parallel its columns. vocabulary: cuts the tokens of the embedding or output matrix.
enum class Partition : std::uint8_t { replicated, column, row, vocabulary };

// One parameter tensor. Matrices are (out, in) as in PyTorch; vectors have in = 1.
struct Parameter {
  std::string name;  // name of the parameter: "attention.qkv.weight"
  std::int64_t out = 0;
  std::int64_t in = 1;
  Partition partition = Partition::replicated;
  std::int64_t experts = 0;  // > 0: number of such matrices, one for each expert, distributed over the expert group
};

std::int64_t elements(const Parameter& p);  // number of elements: out * in * max(1, experts)

// These functions return the parameters of one layer, of the embedding (tokens, positions) and of the head (final norm,
// and the output matrix unless it is tied to the embedding), in the order in which forward reads them.
std::vector<Parameter> layer_parameters(const Model& m, std::int64_t layer);
std::vector<Parameter> embedding_parameters(const Model& m, std::int64_t sequence);
std::vector<Parameter> head_parameters(const Model& m);
// Returns the parameters of one module of multi-token prediction, except for the embedding table and the output matrix,
// which the module shares with the model.
std::vector<Parameter> prediction_parameters(const Model& m);

// These functions say which weights do not train (frozen.cpp). is_frozen takes the name of a weight, as in Parameter or
// LocalParameter.
inline bool has_frozen(const Model& m) { return m.lora || !m.frozen.empty(); }
bool is_frozen(const Model& m, std::string_view parameter);
// Returns whether a weight is a matrix of a layer that QLoRA keeps in NF4; `in` is its number of columns.
bool is_nf4(const Model& m, std::string_view parameter, std::int64_t in);
// Returns whether a weight before this layer trains, in the embedding or in an earlier layer, so that backward must
// compute the gradient of the layer's input. If `layer` is the number of layers, all weights before the final norm
// count.
bool trains_below(const Model& m, std::int64_t layer);
// Returns the bytes of `elements` weights in NF4: 4 bits, an 8-bit scale for each block of 64, and an fp32 scale for
// each 256 of those (QLoRA, section 3: 0.127 bits a weight).
std::int64_t nf4_bytes(std::int64_t elements);

// Returns whether a layer attends within the sliding window only.
bool has_window(const Model& m, std::int64_t layer);

// Returns the number of parameters of the complete model without multi-token-prediction layers, as papers and model
// hubs state it. sequence: number of learned positions if the model does not say how many there are.
std::int64_t parameter_count(const Model& m, std::int64_t sequence);

}  // namespace orrery
