#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

enum class Positions : std::uint8_t { rope, learned, alibi, none };
enum class Norm : std::uint8_t { rmsnorm, layernorm };

// Relative numbers of tokens that chose each expert: a row for each expert layer, or one row for all layers.
using ExpertLoads = std::vector<std::vector<double>>;

// Mixture of experts. Layer i has experts if i >= first_layer and (i - first_layer) % every == 0, or, where `layers` is
// not empty, if it is one of them.
struct Moe {
  std::int64_t experts = 0;
  std::int64_t top_k = 0;
  std::int64_t feed_forward = 0;         // width of one expert
  std::int64_t shared_feed_forward = 0;  // total width of the shared experts, 0 = none
  std::int64_t first_layer = 0;
  std::int64_t every = 1;
  std::vector<std::int64_t> layers;       // layers with experts, in order, where they follow no such pattern
  std::optional<double> capacity_factor;  // none = no token is dropped
  bool pad_to_capacity = false;
  bool shared_gate = false;  // Qwen1.5-MoE: a sigmoid gate (hidden -> 1) on the shared expert
  bool sigmoid_scores = false;
  bool router_bias = false;      // a bias on the router's product (gpt-oss)
  bool correction_bias = false;  // DeepSeek-V3: a weight per expert that steers the choice (auxiliary-loss-free)
  // The experts form so many equal groups, of which a token's experts lie in at most top_groups (DeepSeek-V2 and V3:
  // device- and node-limited routing). A group is ranked by its best expert, and with a correction bias by its two
  // best.
  std::int64_t expert_groups = 1, top_groups = 1;
  bool hierarchical_dispatch = false;
  double aux_loss = 0.01;
  double imbalance = 1.0;      // tokens of the busiest expert rank / mean
  std::optional<double> zipf;  // instead of imbalance: expert loads fall as rank^-zipf
  // Instead of imbalance: a file of counts per layer and expert, as written in the spec
  std::string loads_file;
  std::shared_ptr<const ExpertLoads> loads;  // the counts of that file
};

// Multi-head latent attention (DeepSeek-V2). q_lora_rank 0 = queries are projected directly.
struct Mla {
  std::int64_t q_lora_rank = 0;
  std::int64_t kv_lora_rank = 0;
  std::int64_t qk_nope_head_dim = 0;
  std::int64_t qk_rope_head_dim = 0;
  std::int64_t v_head_dim = 0;
};

struct SlidingWindow {
  std::int64_t window = 0;
  std::int64_t every = 1;  // every n-th layer attends to everything, the others within the window; 1 = all have it
  std::vector<std::int64_t> full_layers;  // layers that attend to everything, in order, where they follow no pattern
};

// Low-rank adapters beside linear layers whose own weights are frozen (Hu et al. 2021, LoRA, 2106.09685): y = x W^T + x
// A^T B^T, with A (rank, in) and B (out, rank), which begins as zeros. LoRA's factor alpha / rank is 1.
struct Lora {
  std::int64_t rank = 0;
  bool qkv = false, out = false, mlp = false;  // linear layers with adapters
  // QLoRA (Dettmers et al. 2023, 2305.14314): the layers' matrices are kept in NF4 and widened before each product
  bool nf4 = false;
};

// The parts of a model that can be frozen: Model::frozen has some of these words.
inline constexpr std::string_view kFrozenParts[] = {"embedding", "attention", "mlp", "moe", "norm", "head"};

// The most layers of a model: four times the deepest Transformer that was trained (DeepNet, Wang et al. 2022: 1,000
// layers).
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
  std::int64_t max_positions = 0;  // rows of a learned position table; 0 = as long as the sequence
  // Number of positions that a model's configuration file gives although it has no position table; 0 = none given
  std::int64_t trained_positions = 0;
  bool gated = true;  // three MLP matrices (SwiGLU and the like) or two (GeLU)
  bool tied_embeddings = false;
  bool bias = false;                   // a bias on every linear layer, which implies the next three
  bool qkv_bias = false;               // a bias on q, k, v (Qwen2)
  bool attention_output_bias = false;  // a bias on attention's output (gpt-oss)
  bool mlp_bias = false;               // biases on the matrices of MLP and experts
  bool qk_norm = false;                // a norm of head_dim on q and on k (Qwen3, Gemma 3)
  bool qk_norm_all = false;            // instead one norm of all heads of q, and one of all of k (OLMo 2)
  bool attention_sinks = false;        // a learned number for each head in its softmax's sum (gpt-oss)
  bool pre_norms = true;               // norms before attention and MLP
  bool post_norms = false;             // norms after attention and MLP (Gemma 2 and 3, OLMo 2)
  bool parallel_block = false;         // attention and MLP read the same hidden states, and their sum is added
  bool parallel_norms = false;         // in such a block attention and MLP have a norm each (GPT-NeoX)
  bool embedding_norm = false;         // a norm of the embeddings (BLOOM)
  bool norm_weight = true;             // norms multiply by weights; OLMo's do not
  bool norm_bias = true;               // LayerNorms add a bias; MPT's do not
  bool scaled_embedding = false;       // embeddings are multiplied by sqrt(hidden) (Gemma)
  // Cap of attention scores: x -> cap tanh(x / cap) (Gemma 2), 0 = none; logit_softcap is that of logits
  double attention_softcap = 0;
  double logit_softcap = 0;
  Positions positions = Positions::rope;
  Norm norm = Norm::rmsnorm;
  double dropout = 0;
  std::optional<SlidingWindow> sliding_window;
  std::optional<Moe> moe;
  std::optional<Mla> mla;
  std::int64_t mtp_layers = 0;
  std::optional<Lora> lora;          // adapters: every other weight is frozen
  std::vector<std::string> frozen;   // parts without gradients, states and updates
  std::vector<std::string> remarks;  // what a configuration file holds that this model leaves out, or assumes
};

inline bool has_qkv_bias(const Model& m) { return m.bias || m.qkv_bias; }
inline bool has_attention_output_bias(const Model& m) { return m.bias || m.attention_output_bias; }
inline bool has_mlp_bias(const Model& m) { return m.bias || m.mlp_bias; }

// The first rule that a model breaks by itself, as "heads: 40 is not a multiple of kv_heads: 16", or "". Sizes are
// bounded (no model has 10^18 layers), so that any model that passes can be laid out without overflow.
std::string broken_rule(const Model& m);

bool has_experts(const Model& m, std::int64_t layer);
std::int64_t experts_before(const Model& m, std::int64_t layer);  // number of earlier layers with experts

// How a parameter is cut over the tensor group: column = by rows of the (out, in) matrix, row = by its columns.
enum class Partition : std::uint8_t { replicated, column, row, vocabulary };

// One weight. Matrices are (out, in) as in PyTorch; vectors have in = 1.
struct Parameter {
  std::string name;  // "attention.qkv.weight"
  std::int64_t out = 0;
  std::int64_t in = 1;
  Partition partition = Partition::replicated;
  std::int64_t experts = 0;  // > 0: this many such matrices, cut over the expert group
};

std::int64_t elements(const Parameter& p);  // out * in * max(1, experts)

// The weights of one layer, of the embedding (tokens, positions) and of the head (final norm, output matrix unless
// tied), in the order in which forward reads them.
std::vector<Parameter> layer_parameters(const Model& m, std::int64_t layer);
std::vector<Parameter> embedding_parameters(const Model& m, std::int64_t sequence);
std::vector<Parameter> head_parameters(const Model& m);

// Weights that do not train (frozen.cpp). is_frozen takes the name of a weight, as in Parameter or LocalParameter.
inline bool has_frozen(const Model& m) { return m.lora || !m.frozen.empty(); }
bool is_frozen(const Model& m, std::string_view parameter);
// Whether a weight is a matrix of a layer that QLoRA keeps in NF4.
bool is_nf4(const Model& m, std::string_view parameter, std::int64_t in);
// Whether a weight before this layer trains, in the embedding or in a layer, so that backward must go on there; for
// layer number `layers` before the final norm.
bool trains_below(const Model& m, std::int64_t layer);
// Bytes of so many weights in NF4: 4 bits, an 8-bit scale for each block of 64, and an fp32 scale for each 256 of those
// (QLoRA, section 3: 0.127 bits a weight).
std::int64_t nf4_bytes(std::int64_t elements);

// Whether a layer attends within the sliding window only.
bool has_window(const Model& m, std::int64_t layer);

// Weights of the whole model without multi-token-prediction layers, the number that papers and hubs print. sequence:
// the number of learned positions where the model does not say how many there are.
std::int64_t parameter_count(const Model& m, std::int64_t sequence);

}  // namespace orrery
