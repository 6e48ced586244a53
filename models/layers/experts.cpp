// Experts of LayerBuilder: the router's choice, tokens to the ranks that hold the experts and back (all-to-all), and
// the products of each expert over its own tokens. Ranks that an expert is cut over (expert_tensor) gather each other's
// tokens first and sum what they computed. Each step's backward is the opposite step.
#include <algorithm>

#include "models/layers/layer_builder.h"

namespace orrery {

// State that the steps of one expert layer share. Counts are of choices: this rank's, by expert; those that came from
// other ranks, by source and local expert; the same over all ranks that the experts are cut over.
struct LayerBuilder::Routed {
  ExpertSizes sizes;
  Rows sent, received, gathered;
  Id weights{}, routing{}, counts{}, arrived{}, all_arrived{};
};

LayerBuilder::Id LayerBuilder::rows_of(const std::string& name, const Rows& rows, std::int64_t columns, Bytes width) {
  return tape.slot_of_rows(name, rows.count * columns * width, rows.size);
}

std::vector<LayerBuilder::Id> LayerBuilder::and_counts(std::vector<Id> reads, const Routed& r) const {
  if (!r.sizes.padded) reads.push_back(r.all_arrived);
  return reads;
}

LayerBuilder::Routed LayerBuilder::route(Id x, const ExpertSizes& s) {
  const Moe& moe = *m_.moe;
  Routed r{.sizes = s, .sent = {s.sent}, .received = {s.received}, .gathered = {s.gathered()}};
  const Id logits = replicated("router", x, m_.hidden, s.experts, {.name = "moe.router", .wide = true});
  std::vector<std::int32_t> bias;
  if (moe.correction_bias)
    bias = {tape.parameter("moe.router.correction_bias", s.experts, 1, Cut::none, c_.sequence_parallel)};
  const Gate gate = {.rows = s.tokens,
                     .experts = s.experts,
                     .top_k = s.top_k,
                     .capacity = s.capacity,
                     .expert_groups = moe.expert_groups,
                     .top_groups = moe.top_groups,
                     .padded = s.padded,
                     .sigmoid = moe.sigmoid_scores,
                     .corrected = moe.correction_bias,
                     .aux_loss = moe.aux_loss};
  const Id scores = tape.slot("router scores", s.tokens * s.experts * 4);
  r.weights = tape.slot("choice weights", s.tokens * s.top_k * 4);
  r.routing = tape.slot("routing", 2 * s.tokens * s.top_k * 4);  // experts and places of every choice
  r.counts = r.arrived = r.all_arrived = tape.slot("token counts", s.experts * 4);
  tape.emit("gate", gate, {.reads = {logits}, .writes = {scores, r.weights, r.routing, r.counts}, .weights = bias});
  tape.on_backward([=, this] {
    Gate back = gate;
    back.direction = Direction::backward;
    const Id dlogits = activation("router gradient", s.tokens, s.experts);
    tape.emit("gate gradient", back,
              {.reads = {scores, r.routing, tape.gradient(r.weights)}, .writes = {dlogits}, .weight_gradients = bias});
    tape.contribute(logits, dlogits);
  });
  return r;
}

// Tells ranks how many rows they get: a tiny all-to-all of counts, which the host reads before it allocates buffers for
// the rows that come.
void LayerBuilder::count_tokens(Routed& r) {
  const ExpertSizes& s = r.sizes;
  if (s.padded) return;
  const Bytes bytes = s.experts * 4;
  if (s.ranks > 1) {
    r.arrived = r.all_arrived = tape.slot("arriving counts", bytes);
    tape.emit("exchange counts", Collective{CollectiveKind::all_to_all, Dimension::expert, bytes, 4},
              {.reads = {r.counts}, .writes = {r.arrived}}, LaneKind::expert);
  }
  if (s.cut > 1) {
    r.all_arrived = tape.slot("gathered counts", s.cut * bytes);
    tape.emit("gather counts", Collective{CollectiveKind::all_gather, Dimension::expert_tensor, s.cut * bytes, 4},
              {.reads = {r.arrived}, .writes = {r.all_arrived}}, LaneKind::expert);
  }
  r.sent.size = tape.runtime_size({"sent", s.sent, s.sent_bound});
  r.received.size = tape.runtime_size({"received", s.received, s.received_bound});
  r.gathered.size = tape.runtime_size({"gathered", s.gathered(), s.cut * s.received_bound});
  tape.emit("count tokens", CountTokens{2 * s.experts + s.cut * s.experts},
            {.reads = {r.counts, r.arrived, r.all_arrived}, .host_waits = true});
}

LayerBuilder::Weighted LayerBuilder::send(Id x, const Routed& r) {
  const ExpertSizes& s = r.sizes;
  const Permute out = {s.tokens, s.top_k, m_.hidden, s.sent, true, true};
  const Weighted sent = {rows_of("sent tokens", r.sent, m_.hidden, c_.width), rows_of("sent weights", r.sent, 1, 4)};
  tape.emit("permute", out, {.reads = {x, r.weights, r.routing}, .writes = {sent.rows, sent.weights}});
  tape.on_backward([=, this] {
    Permute back = out;
    back.expand = false;
    const Id dx = activation("permute gradient", s.tokens, m_.hidden);
    const Id dweights = tape.slot("choice weights gradient", s.tokens * s.top_k * 4);
    tape.emit("permute gradient", back,
              {.reads = {tape.gradient(sent.rows), tape.gradient(sent.weights), r.routing}, .writes = {dx, dweights}});
    tape.contribute(x, dx);
    tape.contribute(r.weights, dweights);
  });
  return sent;
}

// Adds up the experts' outputs for every token; the choices' weights are in the outputs already.
LayerBuilder::Id LayerBuilder::combine(Id y, const Routed& r) {
  const ExpertSizes& s = r.sizes;
  const Permute sum = {s.tokens, s.top_k, m_.hidden, s.sent, false, false};
  const Id out = activation("experts output", s.tokens, m_.hidden);
  tape.emit("unpermute", sum, {.reads = {y, r.routing}, .writes = {out}});
  tape.on_backward([=, this] {
    Permute back = sum;
    back.expand = true;
    const Id dy = rows_of("unpermute gradient", r.sent, m_.hidden, c_.width);
    tape.emit("unpermute gradient", back, {.reads = {tape.gradient(out), r.routing}, .writes = {dy}});
    tape.contribute(y, dy);
  });
  return out;
}

// An all-to-all to the ranks that hold the experts, or back.
LayerBuilder::Id LayerBuilder::exchange(const std::string& name, Id x, std::int64_t columns, Bytes width,
                                        const Routed& r, bool back) {
  if (r.sizes.ranks == 1) return x;
  const Rows &from = back ? r.received : r.sent, &to = back ? r.sent : r.received;
  const Collective all_to_all = {CollectiveKind::all_to_all, Dimension::expert, r.sizes.moved * columns * width, width};
  // By nodes: a token's row goes to each node once, and the sum of its rows comes back from each node.
  const bool by_nodes = m_.moe->hierarchical_dispatch, of_tokens = by_nodes && columns > 1;
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
  const Id y = rows_of(name + " received", to, columns, width);
  tape.emit(name, work(back), {.reads = reads(x, back), .writes = {y}}, LaneKind::expert);
  tape.on_backward([=, this] {
    const Id dx = rows_of(name + " gradient received", from, columns, width);
    tape.emit(name + " gradient", work(!back), {.reads = reads(tape.gradient(y), !back), .writes = {dx}},
              LaneKind::expert);
    tape.contribute(x, dx);
  });
  return y;
}

// A transfer among the ranks that an expert is cut over: gathers all their tokens, or sums what they computed of this
// rank's tokens.
LayerBuilder::Id LayerBuilder::over_expert_tensor(const std::string& name, Id x, std::int64_t columns, Bytes width,
                                                  const Routed& r, bool gathers) {
  if (r.sizes.cut == 1) return x;
  const Rows &from = gathers ? r.received : r.gathered, &to = gathers ? r.gathered : r.received;
  const auto work = [=](bool gather) {
    return Collective{gather ? CollectiveKind::all_gather : CollectiveKind::reduce_scatter, Dimension::expert_tensor,
                      r.gathered.count * columns * width, width};
  };
  const Id y = rows_of(name + (gathers ? " gathered" : " reduced"), to, columns, width);
  tape.emit(name, work(gathers), {.reads = and_counts({x}, r), .writes = {y}}, LaneKind::expert);
  tape.on_backward([=, this] {
    const Id dx = rows_of(name + " gradient moved", from, columns, width);
    tape.emit(name + " gradient", work(!gathers), {.reads = and_counts({tape.gradient(y)}, r), .writes = {dx}},
              LaneKind::expert);
    tape.contribute(x, dx);
  });
  return y;
}

LayerBuilder::Weighted LayerBuilder::arrange(const Weighted& x, const Routed& r) {
  const ExpertSizes& s = r.sizes;
  if (s.sources() == 1 || s.local == 1) return x;
  const SortChunks work = {s.gathered(), m_.hidden, s.sources(), s.local, true, s.padded, false};
  const Weighted y = {rows_of("sorted tokens", r.gathered, m_.hidden, c_.width),
                      rows_of("sorted weights", r.gathered, 1, 4)};
  tape.emit("sort chunks", work, {.reads = and_counts({x.rows, x.weights}, r), .writes = {y.rows, y.weights}});
  tape.on_backward([=, this] {
    SortChunks back = work;
    back.back = true;
    const Weighted d = {rows_of("sorted tokens gradient", r.gathered, m_.hidden, c_.width),
                        rows_of("sorted weights gradient", r.gathered, 1, 4)};
    tape.emit(
        "sort chunks gradient", back,
        {.reads = and_counts({tape.gradient(y.rows), tape.gradient(y.weights)}, r), .writes = {d.rows, d.weights}});
    tape.contribute(x.rows, d.rows);
    tape.contribute(x.weights, d.weights);
  });
  return y;
}

LayerBuilder::Id LayerBuilder::arrange_back(Id x, const Routed& r) {
  const ExpertSizes& s = r.sizes;
  if (s.sources() == 1 || s.local == 1) return x;
  const SortChunks work = {s.gathered(), m_.hidden, s.sources(), s.local, false, s.padded, true};
  const Id y = rows_of("unsorted outputs", r.gathered, m_.hidden, c_.width);
  tape.emit("unsort chunks", work, {.reads = and_counts({x}, r), .writes = {y}});
  tape.on_backward([=, this] {
    SortChunks back = work;
    back.back = false;
    const Id dx = rows_of("unsorted gradient", r.gathered, m_.hidden, c_.width);
    tape.emit("unsort chunks gradient", back, {.reads = and_counts({tape.gradient(y)}, r), .writes = {dx}});
    tape.contribute(x, dx);
  });
  return y;
}

void LayerBuilder::grouped_weight_gradient(const std::string& name, const GroupedGemm& forward,
                                           const std::vector<Id>& reads, std::int32_t weight) {
  const Bytes main = storage_bytes(c_.spec.strategy.gradient_precision);
  const bool fresh_unit = unit_gradients(c_.spec, c_.sharding);
  const bool fused = fresh_unit || c_.spec.software.gradient_accumulation_fusion;
  GroupedGemm gemm = forward;
  gemm.role = Gemm::Role::weight_gradient;
  gemm.accumulate = fused && !fresh_unit;
  gemm.result_bytes = gemm.accumulate ? main : c_.width;
  if (fused) {
    tape.emit(name + " weight gradient", gemm, {.reads = reads, .weight_gradients = {weight}});
    return;
  }
  const std::int64_t elements = forward.groups * forward.out * forward.in;
  const Id fresh = tape.slot(name + " fresh gradient", elements * c_.width, Category::gradients);
  tape.emit(name + " weight gradient", gemm, {.reads = reads, .writes = {fresh}});
  tape.emit(name + " accumulate", Accumulate{elements, c_.width, main},
            {.reads = {fresh}, .weight_gradients = {weight}});
}

LayerBuilder::Id LayerBuilder::grouped(const std::string& name, Id x, std::int64_t in, std::int64_t out,
                                       const std::string& weight, Cut cut, const Routed& r) {
  const ExpertSizes& s = r.sizes;
  const auto w = tape.parameter(weight, s.local * out, in, cut, false, 0, s.local);
  const GroupedGemm forward = {
      .groups = s.local, .rows = s.gathered(), .out = out, .in = in, .result_bytes = c_.width, .even = s.padded};
  const Gemm all = {.n = s.local * out, .k = in};
  const Id y = rows_of(name + " output", r.gathered, out, c_.width);
  const Operands given = to_fp8(name + " input", x, s.gathered() * in, true);
  tape.emit(name, forward,
            {.reads = and_counts(with_weight(name, given.rows, w, all), r), .writes = {y}, .weights = {w}});
  tape.on_backward([=, this] {
    const Operands of = to_fp8(name + " gradient", tape.gradient(y), s.gathered() * out, true);
    const Id dx = rows_of(name + " input gradient", r.gathered, in, c_.width);
    GroupedGemm back = forward;
    back.role = Gemm::Role::input_gradient;
    tape.emit(
        name + " input gradient", back,
        {.reads = and_counts(with_weight(name + " gradient", of.rows, w, all), r), .writes = {dx}, .weights = {w}});
    grouped_weight_gradient(name, forward, and_counts({given.columns, of.columns}, r), w);
    tape.contribute(x, dx);
  });
  return y;
}

// Adds to every row its expert's bias, times the choice's weight where the row does not have it yet. Each of the ranks
// that the expert is cut over, whose results are summed, adds its part of the bias.
void LayerBuilder::expert_bias(const std::string& name, Id y, std::int64_t out, Cut cut, const Routed& r,
                               const std::optional<Id>& weights) {
  const ExpertSizes& s = r.sizes;
  const auto b = tape.parameter("moe." + name + ".bias", s.local * out, 1, cut, false, 0, s.local);
  const GroupedBias work = {
      .groups = s.local, .rows = s.gathered(), .columns = out, .even = s.padded, .weighted = weights.has_value()};
  const std::vector<Id> factors = weights ? std::vector{*weights} : std::vector<Id>{};
  tape.emit(name + " bias", work, {.reads = and_counts(factors, r), .updates = {y}, .weights = {b}});
  tape.on_backward([=, this] {
    GroupedBias back = work;
    back.direction = Direction::backward;
    std::vector<Id> reads = {tape.gradient(y)};
    reads.insert(reads.end(), factors.begin(), factors.end());
    BlockBuilder::Uses uses = {.reads = and_counts(reads, r), .weight_gradients = {b}};
    if (weights) {
      uses.weights = {b};
      uses.writes = {rows_of("choice weights gradient", r.gathered, 1, 4)};
      tape.contribute(*weights, uses.writes.front());
    }
    tape.emit(name + " bias gradient", back, uses);
  });
}

// Multiplies y by the sigmoid of a product of x and one column.
LayerBuilder::Id LayerBuilder::gate_rows(const std::string& name, Id x, Id y) {
  const Id gate = replicated(name, x, m_.hidden, 1, {.name = "moe.shared_gate", .wide = true});
  const SigmoidGate work = {c_.local_rows, m_.hidden, Direction::forward};
  const Id out = activation(name + " result", c_.local_rows, m_.hidden);
  tape.emit(name + " sigmoid", work, {.reads = {y, gate}, .writes = {out}});
  tape.on_backward([=, this] {
    SigmoidGate back = work;
    back.direction = Direction::backward;
    const Id dy = activation(name + " input gradient", c_.local_rows, m_.hidden);
    const Id dgate = activation(name + " gradient", c_.local_rows, 1);
    tape.emit(name + " sigmoid gradient", back, {.reads = {y, gate, tape.gradient(out)}, .writes = {dy, dgate}});
    tape.contribute(y, dy);
    tape.contribute(gate, dgate);
  });
  return out;
}

LayerBuilder::Id LayerBuilder::shared_experts(Id x) {
  const Id y = feed_forward("shared experts", "moe.shared", x, m_.moe->shared_feed_forward / c_.tensor, true);
  return m_.moe->shared_gate ? gate_rows("shared gate", x, y) : y;
}

LayerBuilder::Id LayerBuilder::experts(Id x, const ExpertSizes& sizes) {
  const bool whole = recompute.moe && !recompute.layer;
  if (whole) tape.begin_region(true);
  const bool shares = m_.moe->shared_feed_forward > 0, overlaps = c_.spec.strategy.overlap.expert;
  Id shared{};
  if (shares && !overlaps) shared = shared_experts(x);
  Routed r = route(x, sizes);
  count_tokens(r);
  const Weighted sent = send(x, r);
  Weighted mine = {exchange("dispatch", sent.rows, m_.hidden, c_.width, r, false),
                   exchange("dispatch weights", sent.weights, 1, 4, r, false)};
  if (shares && overlaps) shared = shared_experts(x);  // shared experts run while tokens are on their way
  mine = {over_expert_tensor("gather tokens", mine.rows, m_.hidden, c_.width, r, true),
          over_expert_tensor("gather weights", mine.weights, 1, 4, r, true)};
  mine = arrange(mine, r);
  const std::int64_t width = m_.moe->feed_forward / sizes.cut;
  const Id up = grouped("experts up", mine.rows, m_.hidden, width * (m_.gated ? 2 : 1), "moe.experts.up.weight",
                        m_.gated ? Cut::halves : Cut::rows, r);
  if (m_.bias)
    expert_bias("experts.up", up, width * (m_.gated ? 2 : 1), m_.gated ? Cut::halves : Cut::rows, r, std::nullopt);
  const bool again = (recompute.activation || recompute.moe_activation) && !recompute.layer && !whole;
  const Id active = activate("experts activation", {up, r.gathered, width, again, mine.weights});
  const Id down = grouped("experts down", active, width, m_.hidden, "moe.experts.down.weight", Cut::columns, r);
  if (m_.bias) expert_bias("experts.down", down, m_.hidden, Cut::none, r, mine.weights);
  const Id reduced = over_expert_tensor("reduce outputs", arrange_back(down, r), m_.hidden, c_.width, r, false);
  Id out = combine(exchange("combine", reduced, m_.hidden, c_.width, r, true), r);
  if (shares) out = sum("experts sum", out, shared, c_.local_rows);
  if (whole) tape.end_region();
  return out;
}

}  // namespace orrery
