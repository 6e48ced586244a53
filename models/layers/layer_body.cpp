#include "models/layers/layer_body.h"

#include <optional>
#include <string>
#include <vector>

#include "models/layers/attention.h"
#include "models/layers/compressed_attention.h"
#include "models/layers/experts.h"
#include "models/layers/feed_forward.h"
#include "models/layers/generation.h"
#include "models/layers/hyper_connections.h"
#include "models/layers/layer_parts.h"
#include "models/layers/norms.h"
#include "models/layers/recurrence.h"

namespace orrery {

static std::vector<std::string> only(bool has, const char* product) {
  return has ? std::vector<std::string>{product} : std::vector<std::string>{};
}

// Records the ops of a layer whose attention and MLP both read the layer's input (a parallel block).
static Id parallel_body(LayerTape& b, const BlockContext& c, std::int64_t layer, Id x) {
  const Model& m = c.spec.model;
  const auto normed = pre_norm(b, "attention", x);
  const auto attended = attention(b, normed, has_window(m, layer), false);
  const auto both =
      sum(b, "block sum", attended, mlp(b, m.parallel_norms ? norm(b, "mlp norm", x) : normed, false), c.rows);
  const auto out = reduce_from_tensor(b, "block output", both, c.rows, m.hidden);
  std::vector<std::string> biased = only(has_attention_output_bias(m), "attention.output");
  if (has_mlp_bias(m)) biased.emplace_back("mlp.down");
  return residual(b, "residual", x, out, biased);
}

// Returns the input of a branch (attention or MLP): the residual stream, or with hyper-connections a weighted sum of
// several streams.
static Collapsed branch_input(LayerTape& b, const std::string& name, Id x) {
  return b.model.hyper_connections ? collapse_streams(b, name, x, false) : Collapsed{x, x};
}

// Returns the residual stream, or the streams of hyper-connections, after a branch with input `from` was added.
static Id after_branch(LayerTape& b, const std::string& name, Id x, const Collapsed& from, Id branch,
                       const std::vector<std::string>& biased, const std::vector<Id>& until = {}) {
  if (!b.model.hyper_connections) return residual(b, name, x, branch, biased, until);
  const bool changed = !biased.empty() || b.model.dropout > 0;
  return mix_streams(b, name, x, changed ? residual(b, name + " branch", std::nullopt, branch, biased) : branch,
                     from.weights);
}

// The residual stream after the first half of a layer, and what attention returned to the layer, which the layer keeps
// until it ends (software.holds_attention_output; else nothing).
struct MixedTokens {
  Id stream;
  std::vector<Id> held;
};

// Records the ops of the first half of a layer, which mixes information between tokens: attention or a recurrence, if
// the layer has either.
static MixedTokens mixed(LayerTape& b, const BlockContext& c, std::int64_t layer, Id x) {
  const Model& m = c.spec.model;
  const Mixer mixer = layer_kind(m, layer).mixer;
  if (mixer == Mixer::none) return {x, {}};
  const std::string name = mixer == Mixer::recurrence ? "recurrence" : "attention";
  const Collapsed from = branch_input(b, name, x);
  const auto normed = pre_norm(b, name, from.hidden);
  const bool biased = mixer != Mixer::recurrence && has_attention_output_bias(m);
  const auto y = mixer == Mixer::recurrence         ? recurrence(b, normed)
                 : uses_compressed_attention(mixer) ? compressed_attention(b, normed, mixer)
                                                    : attention(b, normed, has_window(m, layer), true);
  const auto stream =
      after_branch(b, name + " residual", x, from, post_norm(b, name, y), only(biased, "attention.output"));
  return {stream, c.spec.software.memory.holds_attention_output ? std::vector{y} : std::vector<Id>{}};
}

static Id body(LayerTape& b, const BlockContext& c, std::int64_t layer, Id x) {
  const Model& m = c.spec.model;
  const Software& stack = c.spec.software;
  if (m.parallel_block) return parallel_body(b, c, layer, x);
  const bool feeds = layer_kind(m, layer).feed_forward, routed = feeds && has_experts(m, layer);
  const bool by_router = routed && graphs_router(stack);
  if (graphs_attention(stack)) b.tape.begin_graph();
  const auto [attended, held] = mixed(b, c, layer, x);
  if (graphs_attention(stack) && !by_router) b.tape.end_graph();
  if (!feeds) return attended;
  // One graph holds attention and the router after it (Megatron-Core, _te_cuda_graph_capture); experts() ends it.
  if (by_router && !graphs_attention(stack)) b.tape.begin_graph();
  const Collapsed from = branch_input(b, "mlp", attended);
  const auto mlp_input = pre_norm(b, "mlp", from.hidden);
  const auto out = routed && serves_experts(c.spec) ? served_experts(b, mlp_input)
                   : routed ? experts(b, mlp_input, expert_sizes(c.spec, layer, c.local_rows, c.load))
                            : mlp(b, mlp_input, true);
  // Routed experts add their own biases; the bias of the shared experts' down projection is added here.
  const bool added = has_mlp_bias(m) && (!routed || m.moe->shared_feed_forward > 0);
  return after_branch(b, "mlp residual", attended, from, post_norm(b, "mlp", out),
                      only(added, routed ? "moe.shared.down" : "mlp.down"), held);
}

Id layer_body(LayerTape& b, const BlockContext& c, std::int64_t layer, Id x) {
  const bool graphed = graphs_layer(c.spec.software);
  if (graphed) b.tape.begin_graph();
  const Id y = body(b, c, layer, x);
  if (graphed) b.tape.end_graph();
  return y;
}

}  // namespace orrery
