// This file records a mixture of experts: the router's choice, all-to-alls of tokens to the ranks that hold the experts
// and back, and each expert's products over its own tokens. Ranks over which one expert is cut (expert_tensor) first
// gather each other's tokens, and afterwards sum their results. Backward has each step's reverse, in reverse order.
#include "models/layers/experts.h"

#include <algorithm>
#include <cmath>

#include "models/layers/feed_forward.h"
#include "models/layers/layer_parts.h"
#include "models/layers/linear.h"

namespace orrery {
namespace {

struct WeightedRows {
  Id rows, weights;
};

// Sizes and buffers that the steps of one expert layer share. counts: this rank's tokens by expert. arrived: received
// tokens by source rank and local expert. all_arrived: the same of all ranks over which an expert is cut.
struct Routed {
  ExpertSizes sizes;
  TokenRows sent, received, gathered;
  Id weights{}, routing{}, counts{}, arrived{}, all_arrived{};
  bool fused = false;     // whether activation, biases and casts between an expert's products are part of these
  bool by_nodes = false;  // whether the exchange picks each token's copies and sums them (DeepEP, HybridEP)
};

}  // namespace

static std::vector<Id> and_counts(std::vector<Id> reads, const Routed& r) {
  if (!r.sizes.padded) reads.push_back(r.all_arrived);
  return reads;
}

// Returns the number of ranks over which the tokens of one micro-batch are divided.
static std::int64_t token_sharers(const BlockContext& c) {
  const Strategy& s = c.spec.strategy;
  return (c.sequence_parallel ? s.tensor : 1) * s.context;
}

// Records the all-reduces that sum, for each expert, how often it was chosen by the tokens of each rank, over all ranks
// that share a micro-batch's tokens (Megatron-Core: over tensor and context ranks, in moe/router.py).
static void sum_choices(LayerTape& layer, Id choices, Bytes bytes) {
  const Strategy& s = layer.context.spec.strategy;
  const auto sum = [&](Dimension group, LaneKind lane) {
    layer.tape.emit("sum choices", Collective{.group = group, .bytes = bytes, .width = 4}, {.updates = {choices}},
                    lane);
  };
  if (layer.context.sequence_parallel && s.tensor > 1) sum(Dimension::tensor, LaneKind::tensor);
  if (s.context_ring > 1) sum(Dimension::context, LaneKind::context);
  if (s.context_ulysses > 1) sum(Dimension::ulysses, LaneKind::context);
}

static Routed route(LayerTape& layer, Id x, const ExpertSizes& s) {
  const Model& m = layer.model;
  const Moe& moe = *m.moe;
  Routed r{.sizes = s,
           .sent = {s.sent},
           .received = {s.received},
           .gathered = {s.gathered()},
           .fused = fuses_experts(layer.context.spec),
           .by_nodes = moe.hierarchical_dispatch && s.ranks > 1};
  const Id logits = replicated(layer, "router", x, m.hidden, s.experts,
                               {.name = "moe.router", .bias = moe.router_bias, .wide = true, .fp32 = moe.router_fp32});
  std::vector<std::int32_t> bias;
  const bool corrected = moe.correction_bias && !s.hashed, balanced = moe.aux_loss > 0 && !s.hashed;
  if (corrected)
    bias = {
        layer.tape.parameter("moe.router.correction_bias", s.experts, 1, Cut::none, layer.context.sequence_parallel)};
  const Gate gate = {.rows = s.tokens,
                     .experts = s.experts,
                     .top_k = s.top_k,
                     .capacity = s.capacity,
                     .expert_groups = moe.expert_groups,
                     .top_groups = moe.top_groups,
                     .sharers = balanced ? token_sharers(layer.context) : 1,
                     .padded = s.padded,
                     .sigmoid = moe.sigmoid_scores,
                     .corrected = corrected,
                     .hashed = s.hashed,
                     .aux_loss = balanced ? moe.aux_loss : 0};
  const Id scores = layer.tape.slot("router scores", s.tokens * s.experts * 4);
  r.weights = layer.tape.slot("choice weights", s.tokens * s.top_k * 4);
  // The buffer `routing` has 8 bytes for every (token, expert) choice: the index of the expert, and the position of the
  // token among the expert's rows.
  r.routing = layer.tape.slot("routing", 2 * s.tokens * s.top_k * 4);
  r.counts = r.arrived = r.all_arrived = layer.tape.slot("token counts", s.experts * 4);
  std::vector<Id> results = {scores, r.weights, r.routing, r.counts};
  if (gate.sharers > 1) results.push_back(layer.tape.slot("choices by expert", s.experts * 4));
  layer.tape.emit("gate", gate, {.reads = {logits}, .writes = results, .weights = bias});
  if (gate.sharers > 1) sum_choices(layer, results.back(), s.experts * 4);
  layer.tape.on_backward([=, &layer] {
    Gate back = gate;
    back.direction = Direction::backward;
    const Id dlogits = activation(layer, "router gradient", s.tokens, s.experts);
    std::vector<Id> reads = {scores, r.routing, layer.tape.gradient(r.weights)};
    if (gate.sharers > 1) reads.push_back(results.back());
    BlockBuilder::Uses uses = {.reads = reads, .writes = {dlogits}, .weight_gradients = bias};
    // The auxiliary loss's gradient is multiplied by the loss scale, as the gradient of the loss is.
    if (back.aux_loss > 0 && layer.context.spec.strategy.precision == Precision::fp16) uses.numbers = {kLossScale};
    layer.tape.emit("gate gradient", back, uses);
    layer.tape.contribute(logits, dlogits);
  });
  return r;
}

// Records a small all-to-all by which ranks learn how many rows they will receive. The host reads the result before it
// allocates buffers for the received rows.
static void count_tokens(LayerTape& layer, Routed& r) {
  const ExpertSizes& s = r.sizes;
  if (s.padded) return;
  const Bytes bytes = s.experts * 4;
  if (s.ranks > 1) {
    r.arrived = r.all_arrived = layer.tape.slot("arriving counts", bytes);
    layer.tape.emit("exchange counts", Collective{CollectiveKind::all_to_all, Dimension::expert, bytes, 4},
                    {.reads = {r.counts}, .writes = {r.arrived}}, LaneKind::expert);
  }
  if (s.cut > 1) {
    r.all_arrived = layer.tape.slot("gathered counts", s.cut * bytes);
    layer.tape.emit("gather counts", Collective{CollectiveKind::all_gather, Dimension::expert_tensor, s.cut * bytes, 4},
                    {.reads = {r.arrived}, .writes = {r.all_arrived}}, LaneKind::expert);
  }
  r.sent.size = layer.tape.runtime_size({"sent", s.sent, s.sent_bound});
  r.received.size = layer.tape.runtime_size({"received", s.received, s.received_bound});
  r.gathered.size = layer.tape.runtime_size({"gathered", s.gathered(), s.cut * s.received_bound});
  layer.tape.emit("count tokens", CountTokens{2 * s.experts + s.cut * s.experts},
                  {.reads = {r.counts, r.arrived, r.all_arrived}, .host_waits = true});
}

static WeightedRows send(LayerTape& layer, Id x, const Routed& r) {
  const Model& m = layer.model;
  const ExpertSizes& s = r.sizes;
  const Permute out = {s.tokens, s.top_k, m.hidden, s.sent, true, true};
  const WeightedRows sent = {rows_of(layer, "sent tokens", r.sent, m.hidden, layer.context.width),
                             rows_of(layer, "sent weights", r.sent, 1, 4)};
  layer.tape.emit("permute", out,
                  {.reads = {x, r.weights, r.routing}, .writes = {sent.rows, sent.weights}, .within = r.by_nodes});
  layer.tape.on_backward([=, &layer, &m] {
    Permute back = out;
    back.expand = false;
    const Id dx = activation(layer, "permute gradient", s.tokens, m.hidden);
    const Id dweights = layer.tape.slot("choice weights gradient", s.tokens * s.top_k * 4);
    layer.tape.emit("permute gradient", back,
                    {.reads = {layer.tape.gradient(sent.rows), layer.tape.gradient(sent.weights), r.routing},
                     .writes = {dx, dweights},
                     .within = r.by_nodes});
    layer.tape.contribute(x, dx);
    layer.tape.contribute(r.weights, dweights);
  });
  return sent;
}

// Records the op that sums, for every token, the outputs of its experts, which were already multiplied by the router's
// weights.
static Id combine(LayerTape& layer, Id y, const Routed& r) {
  const Model& m = layer.model;
  const ExpertSizes& s = r.sizes;
  const Permute sum = {s.tokens, s.top_k, m.hidden, s.sent, false, false};
  const Id out = activation(layer, "experts output", s.tokens, m.hidden);
  layer.tape.emit("unpermute", sum, {.reads = {y, r.routing}, .writes = {out}, .within = r.by_nodes});
  layer.tape.on_backward([=, &layer, &m] {
    Permute back = sum;
    back.expand = true;
    const Id dy = rows_of(layer, "unpermute gradient", r.sent, m.hidden, layer.context.width);
    layer.tape.emit("unpermute gradient", back,
                    {.reads = {layer.tape.gradient(out), r.routing}, .writes = {dy}, .within = r.by_nodes});
    layer.tape.contribute(y, dy);
  });
  return out;
}

// Records an all-to-all of rows to the ranks that hold the experts, or back from them (`back`).
static Id exchange(LayerTape& layer, const std::string& name, Id x, std::int64_t columns, Bytes width, const Routed& r,
                   bool back) {
  if (r.sizes.ranks == 1) return x;
  const TokenRows &from = back ? r.received : r.sent, &to = back ? r.sent : r.received;
  const Collective all_to_all = {CollectiveKind::all_to_all, Dimension::expert, r.sizes.moved * columns * width, width};
  // Hierarchical dispatch: a token's row goes to each node once, and the sum of its rows comes back from each node.
  const bool by_nodes = r.by_nodes, of_tokens = by_nodes && columns > 1;
  const auto work = [=](bool reverse) {
    Collective w = all_to_all;
    if (by_nodes) w.algorithm = of_tokens && reverse ? "hierarchical sum" : "hierarchical";
    return w;
  };
  const auto reads = [=](Id what, bool reverse) {
    std::vector<Id> list = {what};
    if (!r.sizes.padded) list.insert(list.end(), {reverse ? r.arrived : r.counts, reverse ? r.counts : r.arrived});
    if (of_tokens) list.push_back(r.routing);
    return list;
  };
  const Id y = rows_of(layer, name + " received", to, columns, width);
  layer.tape.emit(name, work(back), {.reads = reads(x, back), .writes = {y}}, LaneKind::expert);
  layer.tape.on_backward([=, &layer] {
    const Id dx = rows_of(layer, name + " gradient received", from, columns, width);
    layer.tape.emit(name + " gradient", work(!back), {.reads = reads(layer.tape.gradient(y), !back), .writes = {dx}},
                    LaneKind::expert);
    layer.tape.contribute(x, dx);
  });
  return y;
}

// Records a collective among the ranks over which an expert is cut: it gathers the tokens of all these ranks
// (`gathers`), or sums their results for this rank's tokens.
static Id over_expert_tensor(LayerTape& layer, const std::string& name, Id x, std::int64_t columns, Bytes width,
                             const Routed& r, bool gathers) {
  if (r.sizes.cut == 1) return x;
  const TokenRows &from = gathers ? r.received : r.gathered, &to = gathers ? r.gathered : r.received;
  const auto work = [=](bool gather) {
    return Collective{gather ? CollectiveKind::all_gather : CollectiveKind::reduce_scatter, Dimension::expert_tensor,
                      r.gathered.count * columns * width, width};
  };
  const Id y = rows_of(layer, name + (gathers ? " gathered" : " reduced"), to, columns, width);
  layer.tape.emit(name, work(gathers), {.reads = and_counts({x}, r), .writes = {y}}, LaneKind::expert);
  layer.tape.on_backward([=, &layer] {
    const Id dx = rows_of(layer, name + " gradient moved", from, columns, width);
    layer.tape.emit(name + " gradient", work(!gathers),
                    {.reads = and_counts({layer.tape.gradient(y)}, r), .writes = {dx}}, LaneKind::expert);
    layer.tape.contribute(x, dx);
  });
  return y;
}

// The sort of received rows. By nodes a token comes once for all of a rank's experts; else each expert's rows are
// padded for products in 8 bits by a copy (Megatron-Core experts.py: quantization_padding; HybridEP pads as it copies).
static SortChunks chunks_of(const LayerTape& layer, const Routed& r, bool weighted, bool back) {
  const ExpertSizes& s = r.sizes;
  SortChunks work = {s.gathered(), layer.model.hidden, s.sources(), s.local, weighted, s.padded, back};
  const double part = r.by_nodes ? parts_met(*layer.model.moe, static_cast<double>(s.ranks)) : 0;
  work.distinct = std::llround(part * static_cast<double>(s.gathered()));
  work.pads = runs_eight_bit(layer, QuantisedLayers::experts) && !r.by_nodes && !s.padded;
  return work;
}

static WeightedRows arrange(LayerTape& layer, const WeightedRows& x, const Routed& r) {
  const BlockContext& c = layer.context;
  const Model& m = layer.model;
  const ExpertSizes& s = r.sizes;
  if (s.sources() == 1 || s.local == 1) return x;
  const SortChunks work = chunks_of(layer, r, true, false);
  const WeightedRows y = {rows_of(layer, "sorted tokens", r.gathered, m.hidden, c.width),
                          rows_of(layer, "sorted weights", r.gathered, 1, 4)};
  layer.tape.emit("sort chunks", work, {.reads = and_counts({x.rows, x.weights}, r), .writes = {y.rows, y.weights}});
  layer.tape.on_backward([=, &layer, &c, &m] {
    SortChunks back = work;
    back.back = true;
    const WeightedRows d = {rows_of(layer, "sorted tokens gradient", r.gathered, m.hidden, c.width),
                            rows_of(layer, "sorted weights gradient", r.gathered, 1, 4)};
    layer.tape.emit("sort chunks gradient", back,
                    {.reads = and_counts({layer.tape.gradient(y.rows), layer.tape.gradient(y.weights)}, r),
                     .writes = {d.rows, d.weights}});
    layer.tape.contribute(x.rows, d.rows);
    layer.tape.contribute(x.weights, d.weights);
  });
  return y;
}

static Id arrange_back(LayerTape& layer, Id x, const Routed& r) {
  const BlockContext& c = layer.context;
  const Model& m = layer.model;
  const ExpertSizes& s = r.sizes;
  if (s.sources() == 1 || s.local == 1) return x;
  const SortChunks work = chunks_of(layer, r, false, true);
  const Id y = rows_of(layer, "unsorted outputs", r.gathered, m.hidden, c.width);
  layer.tape.emit("unsort chunks", work, {.reads = and_counts({x}, r), .writes = {y}});
  layer.tape.on_backward([=, &layer, &c, &m] {
    SortChunks back = work;
    back.back = false;
    const Id dx = rows_of(layer, "unsorted gradient", r.gathered, m.hidden, c.width);
    layer.tape.emit("unsort chunks gradient", back, {.reads = and_counts({layer.tape.gradient(y)}, r), .writes = {dx}});
    layer.tape.contribute(x, dx);
  });
  return y;
}

static void grouped_weight_gradient(LayerTape& layer, const std::string& name, const GroupedGemm& forward,
                                    const std::vector<Id>& reads, std::int32_t weight) {
  const BlockContext& c = layer.context;
  const Bytes main = storage_bytes(c.spec.strategy.gradient_precision);
  const bool fresh_unit = fresh_gradients(c.spec, c.sharding);
  const bool fused = fresh_unit || adds_in_products(c.spec);
  GroupedGemm gemm = forward;
  gemm.role = Gemm::Role::weight_gradient;
  gemm.accumulate = fused && !fresh_unit;
  gemm.result_bytes = gemm.accumulate ? main : c.width;
  if (fused) {
    layer.tape.emit(name + " weight gradient", gemm, {.reads = reads, .weight_gradients = {weight}});
    return;
  }
  const std::int64_t elements = forward.groups * forward.out * forward.in;
  const Id fresh = layer.tape.slot(name + " fresh gradient", elements * c.width, Category::gradients);
  layer.tape.emit(name + " weight gradient", gemm, {.reads = reads, .writes = {fresh}});
  layer.tape.emit(name + " accumulate", Accumulate{elements, c.width, main},
                  {.reads = {fresh}, .weight_gradients = {weight}});
}

static Id grouped(LayerTape& layer, const std::string& name, Id x, std::int64_t in, std::int64_t out,
                  const std::string& weight, Cut cut, const Routed& r) {
  const QuantisedProducts narrow(layer, QuantisedLayers::experts);
  const BlockContext& c = layer.context;
  const ExpertSizes& s = r.sizes;
  const bool second = cut == Cut::columns;  // its input and the first's output are cast by the kernels between them
  const auto w = layer.tape.parameter(weight, s.local * out, in, cut, false, 0, s.local);
  const GroupedGemm forward = {.groups = experts_with_rows(c.spec, s),
                               .rows = s.gathered(),
                               .out = out,
                               .in = in,
                               .result_bytes = c.width,
                               .even = s.padded,
                               .one_kernel = r.fused,
                               .uneven = c.spec.generation && !s.padded && prefers_some(*layer.model.moe)};
  const Gemm all = {.n = s.local * out, .k = in};
  const Id y = rows_of(layer, name + " output", r.gathered, out, c.width);
  const CastSlots given = to_fp8(layer, name + " input", x, s.gathered() * in, true, r.fused && second);
  layer.tape.emit(
      name, forward,
      {.reads = and_counts(with_weight(layer, name, given.rows, w, all), r), .writes = {y}, .weights = {w}});
  layer.tape.on_backward([=, &layer, &c] {
    const CastSlots of =
        to_fp8(layer, name + " gradient", layer.tape.gradient(y), s.gathered() * out, true, r.fused && !second);
    const Id dx = rows_of(layer, name + " input gradient", r.gathered, in, c.width);
    GroupedGemm back = forward;
    back.role = Gemm::Role::input_gradient;
    layer.tape.emit(name + " input gradient", back,
                    {.reads = and_counts(with_weight(layer, name + " gradient", of.rows, w, all), r),
                     .writes = {dx},
                     .weights = {w}});
    grouped_weight_gradient(layer, name, forward, and_counts({given.columns, of.columns}, r), w);
    layer.tape.contribute(x, dx);
  });
  return y;
}

// Records the addition, to every row, of the bias of the row's expert; the bias is multiplied by the router's weight if
// the row has already been multiplied by that weight. The results of the ranks over which an expert is cut are summed,
// so each of these ranks adds only a part of the bias.
static void expert_bias(LayerTape& layer, const std::string& name, Id y, std::int64_t out, Cut cut, const Routed& r,
                        const std::optional<Id>& weights) {
  const ExpertSizes& s = r.sizes;
  const auto b = layer.tape.parameter("moe." + name + ".bias", s.local * out, 1, cut, false, 0, s.local);
  const GroupedBias work = {
      .groups = s.local, .rows = s.gathered(), .columns = out, .even = s.padded, .weighted = weights.has_value()};
  const std::vector<Id> factors = weights ? std::vector{*weights} : std::vector<Id>{};
  // A bias without weights is added where the product's kernel writes its result, and its gradient is summed where a
  // kernel casts or reads the result's (Transformer Engine grouped_linear.py).
  const bool within = r.fused || !weights;
  layer.tape.emit(name + " bias", work,
                  {.reads = and_counts(factors, r), .updates = {y}, .weights = {b}, .within = within});
  layer.tape.on_backward([=, &layer] {
    GroupedBias back = work;
    back.direction = Direction::backward;
    std::vector<Id> reads = {layer.tape.gradient(y)};
    reads.insert(reads.end(), factors.begin(), factors.end());
    BlockBuilder::Uses uses = {.reads = and_counts(reads, r), .weight_gradients = {b}, .within = within};
    if (weights) {
      uses.weights = {b};
      uses.writes = {rows_of(layer, "choice weights gradient", r.gathered, 1, 4)};
      layer.tape.contribute(*weights, uses.writes.front());
    }
    layer.tape.emit(name + " bias gradient", back, uses);
  });
}

Id experts(LayerTape& layer, Id x, const ExpertSizes& sizes) {
  const BlockContext& c = layer.context;
  const Model& m = layer.model;
  const bool whole = layer.recompute.moe && !layer.recompute.layer;
  if (whole) layer.tape.begin_region(true);
  const bool shares = m.moe->shared_feed_forward > 0, overlaps = c.spec.strategy.overlap.expert;
  Id shared{};
  if (shares && !overlaps) shared = shared_experts(layer, x);
  Routed r = route(layer, x, sizes);
  count_tokens(layer, r);
  const WeightedRows sent = send(layer, x, r);
  if (graphs_router(c.spec.software)) layer.tape.end_graph();
  WeightedRows mine = {exchange(layer, "dispatch", sent.rows, m.hidden, c.width, r, false),
                       exchange(layer, "dispatch weights", sent.weights, 1, 4, r, false)};
  if (shares && overlaps) shared = shared_experts(layer, x);  // shared experts run while tokens are exchanged
  mine = {over_expert_tensor(layer, "gather tokens", mine.rows, m.hidden, c.width, r, true),
          over_expert_tensor(layer, "gather weights", mine.weights, 1, 4, r, true)};
  mine = arrange(layer, mine, r);
  const std::int64_t width = m.moe->feed_forward / sizes.cut;
  const Id up = grouped(layer, "experts up", mine.rows, m.hidden, width * (m.gated ? 2 : 1), "moe.experts.up.weight",
                        m.gated ? Cut::halves : Cut::rows, r);
  if (has_mlp_bias(m))
    expert_bias(layer, "experts.up", up, width * (m.gated ? 2 : 1), m.gated ? Cut::halves : Cut::rows, r, std::nullopt);
  const bool again = (layer.recompute.activation || layer.recompute.moe_activation) && !layer.recompute.layer && !whole;
  const Id active = activate(layer, "experts activation", {up, r.gathered, width, again, mine.weights, r.fused});
  const Id down = grouped(layer, "experts down", active, width, m.hidden, "moe.experts.down.weight", Cut::columns, r);
  if (has_mlp_bias(m)) expert_bias(layer, "experts.down", down, m.hidden, Cut::none, r, mine.weights);
  const Id reduced =
      over_expert_tensor(layer, "reduce outputs", arrange_back(layer, down, r), m.hidden, c.width, r, false);
  const Id own = combine(layer, exchange(layer, "combine", reduced, m.hidden, c.width, r, true), r);
  const Id out = shares ? sum(layer, "experts sum", own, shared, c.local_rows) : own;
  if (whole) layer.tape.end_region();
  return out;
}

}  // namespace orrery
