#include "models/layers/layer_parts.h"

#include <algorithm>

#include "models/layers/grid_linear.h"
#include "models/layers/linear.h"

namespace orrery {

Id reduce_from_tensor(LayerTape& layer, const std::string& name, Id x, std::int64_t row_count, std::int64_t columns) {
  const BlockContext& c = layer.context;
  if (c.tensor == 1 || c.grid) return x;
  if (!c.sequence_parallel) {
    tensor_all_reduce(layer, name + " reduce", x, row_count * columns * c.width, c.width);
    return x;
  }
  const Id local = activation(layer, name + " scattered", c.local_rows, columns);
  tensor_collective(layer, name + " scatter", CollectiveKind::reduce_scatter, x, local, columns, c.width);
  layer.tape.on_backward([=, &layer, &c] {
    const Id whole = activation(layer, name + " gathered gradient", row_count, columns);
    const Id dy = layer.tape.gradient(local);
    tensor_collective(layer, name + " gradient gather", CollectiveKind::all_gather, dy, whole, columns, c.width);
    layer.tape.contribute(x, whole);
  });
  return local;
}

Id norm(LayerTape& layer, const std::string& name, Id x) {
  const bool again = layer.recompute.norm && !layer.recompute.layer;
  if (again) layer.tape.begin_region(true);
  const Id y = layer.context.grid ? grid_norm(layer, name, x) : norm(layer, name, x, layer.model.hidden);
  if (again) layer.tape.end_region();
  return y;
}

std::vector<std::int32_t> norm_weights(LayerTape& layer, const std::string& name, std::int64_t columns, bool partial) {
  const Model& m = layer.model;
  std::vector<std::int32_t> weights;
  if (m.norm_weight) weights.push_back(layer.tape.parameter(name + ".weight", columns, 1, Cut::none, partial));
  if (m.norm == Norm::layernorm && m.norm_bias)
    weights.push_back(layer.tape.parameter(name + ".bias", columns, 1, Cut::none, partial));
  return weights;
}

Id norm_rows(LayerTape& layer, const std::string& name, Id x, std::int64_t rows, std::int64_t columns, bool weighted,
             bool after_sum) {
  const BlockContext& c = layer.context;
  const bool layernorm = layer.model.norm == Norm::layernorm;
  const std::vector<std::int32_t> weights =
      weighted ? norm_weights(layer, name, columns, c.sequence_parallel) : std::vector<std::int32_t>{};
  const Id y = activation(layer, name + " output", rows, columns);
  // a row's reciprocal standard deviation and, for LayerNorm, its mean, in fp32, which published formulas neglect
  const Id statistics = layer.tape.slot("statistics", rows * (layernorm ? 8 : 4));
  const Normalize work = {rows, columns, layernorm, c.spec.software.kernels.fused_norm, Direction::forward};
  const bool within = after_sum && c.spec.generation->answers();
  layer.tape.emit(
      name, work,
      {.reads = {x}, .writes = {y, statistics}, .weights = weights, .within = within, .same_call = after_sum});
  layer.tape.on_backward([=, &layer] {
    Normalize back = work;
    back.direction = Direction::backward;
    const Id dx = activation(layer, name + " input gradient", rows, columns);
    const bool multiplies = weighted && layer.model.norm_weight;
    layer.tape.emit(name + " gradient", back,
                    {.reads = {x, statistics, layer.tape.gradient(y)},
                     .writes = {dx},
                     .weights = multiplies ? std::vector{weights.front()} : std::vector<std::int32_t>{},
                     .weight_gradients = weights});
    layer.tape.contribute(x, dx);
  });
  return y;
}

Id norm(LayerTape& layer, const std::string& name, Id x, std::int64_t columns) {
  return norm_rows(layer, name, x, layer.context.local_rows, columns, true);
}

Id pre_norm(LayerTape& layer, const std::string& name, Id x) {
  const BlockContext& c = layer.context;
  if (!layer.model.pre_norms) return x;
  const bool sums = c.tensor > 1 && !layer.model.post_norms && c.spec.software.communication.all_reduce_norms;
  if (!c.spec.generation || !sums) return norm(layer, name + " norm", x);
  return norm_rows(layer, name + " norm", x, c.local_rows, layer.model.hidden, true, true);
}

Id post_norm(LayerTape& layer, const std::string& name, Id x) {
  return layer.model.post_norms ? norm(layer, name + " post norm", x) : x;
}

Id sum(LayerTape& layer, const std::string& name, Id a, Id b, std::int64_t row_count) {
  const BlockContext& c = layer.context;
  const Id y = activation(layer, name, row_count, c.hidden);
  layer.tape.emit(name, Add{row_count * c.hidden}, {.reads = {a, b}, .writes = {y}});
  layer.tape.on_backward([=, &layer] {
    layer.tape.contribute(a, layer.tape.gradient(y));
    layer.tape.contribute(b, layer.tape.gradient(y));
  });
  return y;
}

Id join(LayerTape& layer, const std::string& name, Id a, Id b, std::int64_t row_count, std::int64_t first,
        std::int64_t second) {
  const Split work = {row_count, first, second, Direction::backward};
  const Id y = activation(layer, name, row_count, first + second);
  layer.tape.emit(name, work, {.reads = {a, b}, .writes = {y}});
  layer.tape.on_backward([=, &layer] {
    Split back = work;
    back.direction = Direction::forward;
    const Id da = activation(layer, name + " gradient", row_count, first),
             db = activation(layer, name + " gradient", row_count, second);
    layer.tape.emit(name + " gradient", back, {.reads = {layer.tape.gradient(y)}, .writes = {da, db}});
    layer.tape.contribute(a, da);
    layer.tape.contribute(b, db);
  });
  return y;
}

Id residual(LayerTape& layer, const std::string& name, std::optional<Id> x, Id branch,
            const std::vector<std::string>& biased) {
  const BlockContext& c = layer.context;
  const bool drops = layer.model.dropout > 0;
  std::vector<std::int32_t> biases;
  for (const std::string& product : biased) biases.push_back(vector_parameter(layer, product + ".bias"));
  const Id y = activation(layer, name + " output", c.local_rows, c.hidden);
  const Residual work = {c.local_rows,       c.hidden,       x.has_value(),
                         !biases.empty(),    drops,          c.spec.software.kernels.fused_residual,
                         Direction::forward, c.residual_side};
  BlockBuilder::Uses uses = {.writes = {y}, .weights = biases};
  if (x) uses.reads.push_back(*x);
  uses.reads.push_back(branch);
  // The dropout mask has one byte for each element.
  const Id mask = drops ? layer.tape.slot("dropout mask", c.local_rows * c.hidden) : y;
  if (drops) uses.writes.push_back(mask);
  layer.tape.emit(name, work, uses);
  layer.tape.on_backward([=, &layer, &c] {
    const Id dy = layer.tape.gradient(y);
    Id branch_gradient = dy;
    if (drops) {
      branch_gradient = activation(layer, name + " gradient", c.local_rows, c.hidden);
      Residual back = work;
      back.direction = Direction::backward;
      layer.tape.emit(name + " gradient", back, {.reads = {dy, mask}, .writes = {branch_gradient}});
    }
    for (const std::int32_t b : biases) bias_gradient(layer, name, branch_gradient, c.local_rows, c.hidden, b);
    if (x) layer.tape.contribute(*x, dy);
    layer.tape.contribute(branch, branch_gradient);
  });
  return y;
}

void rotate_rows(LayerTape& layer, const std::string& name, Id x, std::int64_t rows, std::int64_t columns,
                 std::int64_t head_dim) {
  if (columns == 0) return;
  const Rotary work = {rows, columns, head_dim, layer.context.spec.software.kernels.fused_rotary, Direction::forward};
  layer.tape.emit(name, work, {.updates = {x}});
  layer.tape.on_backward([=, &layer] {
    Rotary back = work;
    back.direction = Direction::backward;
    layer.tape.emit(name + " gradient", back, {.updates = {layer.tape.gradient(x)}});
  });
}

Id batched_product(LayerTape& layer, const std::string& name, Id x, const BatchedProduct& p) {
  const BlockContext& c = layer.context;
  const Gemm forward = {.m = p.rows, .n = p.out, .k = p.in, .batch = p.batch, .result_bytes = c.width};
  const Id y = layer.tape.slot(name + " output", p.output_bytes);
  layer.tape.emit(name, forward, {.reads = {x}, .writes = {y}, .weights = {p.weight}});
  layer.tape.on_backward([=, &layer, &c] {
    Gemm input = forward, weight = forward;
    input.role = Gemm::Role::input_gradient;
    std::swap(input.n, input.k);
    weight.role = Gemm::Role::weight_gradient;
    weight.m = p.out;
    weight.n = p.in;
    weight.k = p.rows;
    weight.accumulate = true;
    weight.result_bytes = storage_bytes(c.spec.strategy.gradient_precision);
    const Id dx = layer.tape.slot(name + " input gradient", p.input_bytes);
    const Id dy = layer.tape.gradient(y);
    layer.tape.emit(name + " input gradient", input, {.reads = {dy}, .writes = {dx}, .weights = {p.weight}});
    layer.tape.emit(name + " weight gradient", weight, {.reads = {x, dy}, .weight_gradients = {p.weight}});
    layer.tape.contribute(x, dx);
  });
  return y;
}

Id dropout(LayerTape& layer, const std::string& name, Id x) {
  const BlockContext& c = layer.context;
  if (layer.model.dropout <= 0) return x;
  const Id y = activation(layer, name + " output", c.local_rows, c.hidden);
  const Id mask = layer.tape.slot("dropout mask", c.local_rows * c.hidden);
  const Residual work = {c.local_rows, c.hidden, false, false, true, true, Direction::forward, c.residual_side};
  layer.tape.emit(name, work, {.reads = {x}, .writes = {y, mask}});
  layer.tape.on_backward([=, &layer, &c] {
    Residual back = work;
    back.direction = Direction::backward;
    const Id dx = activation(layer, name + " gradient", c.local_rows, c.hidden);
    layer.tape.emit(name + " gradient", back, {.reads = {layer.tape.gradient(y), mask}, .writes = {dx}});
    layer.tape.contribute(x, dx);
  });
  return y;
}

void scale(LayerTape& layer, const std::string& name, Id x, double factor) {
  const BlockContext& c = layer.context;
  const Multiply work = {.elements = c.local_rows * c.hidden, .width = c.width, .factor = factor};
  layer.tape.emit(name, work, {.updates = {x}});
  layer.tape.on_backward(
      [=, &layer] { layer.tape.emit(name + " gradient", work, {.updates = {layer.tape.gradient(x)}}); });
}

void soft_cap(LayerTape& layer, const std::string& name, Id x, std::int64_t elements, double cap, bool fused) {
  if (cap == 0) return;
  const SoftCap work = {elements, cap, fused, Direction::forward};
  layer.tape.emit(name, work, {.updates = {x}});
  layer.tape.on_backward([=, &layer] {
    SoftCap back = work;
    back.direction = Direction::backward;
    layer.tape.emit(name + " gradient", back, {.reads = {x}, .updates = {layer.tape.gradient(x)}});
  });
}

Id add_positions(LayerTape& layer, Id x) {
  const Model& m = layer.model;
  if (m.positions != Positions::learned) return x;
  const Spec& spec = layer.context.spec;
  const std::int64_t most = spec.generation ? spec.generation->input + spec.generation->output : spec.sequence;
  return add_learned_positions(layer, x, m.max_positions > 0 ? m.max_positions : most);
}

Id add_learned_positions(LayerTape& layer, Id x, std::int64_t length) {
  const BlockContext& c = layer.context;
  const Model& m = layer.model;
  const std::string name = "embedding.position.weight";
  const auto table = c.grid ? layer.tape.parameter({.name = name,
                                                    .out = length,
                                                    .in = c.hidden,
                                                    .cut = Cut::columns,
                                                    .partial = true,
                                                    .over = c.residual_side.columns})
                            : layer.tape.parameter(name, length, m.hidden, Cut::none, c.sequence_parallel);
  const Id y = activation(layer, "positioned embeddings", c.local_rows, c.hidden);
  const Embedding work = {c.local_rows, c.hidden, length, true, Direction::forward};
  layer.tape.emit("positions", work, {.reads = {x}, .writes = {y}, .weights = {table}});
  layer.tape.on_backward([=, &layer] {
    Embedding back = work;
    back.direction = Direction::backward;
    table_gradient(layer, "positions", back, {layer.tape.gradient(y)}, table, true);
    layer.tape.contribute(x, layer.tape.gradient(y));
  });
  return y;
}

void table_gradient(LayerTape& layer, const std::string& name, Embedding work, const std::vector<Id>& reads,
                    std::int32_t table, bool first) {
  const BlockContext& c = layer.context;
  const bool unit = fresh_gradients(c.spec, c.sharding);
  const bool fresh_rows = !adds_in_lookups(c.spec) || unit;
  work.gradient_bytes = fresh_rows ? c.width : storage_bytes(c.spec.strategy.gradient_precision);
  const std::int64_t elements = work.vocab * work.columns;
  const Fill zero = {elements * c.width};
  if (adds_in_lookups(c.spec) || (unit && first)) {
    if (unit && first) layer.tape.emit(name + " gradient zero", zero, {.weight_gradients = {table}});
    layer.tape.emit(name + " gradient", work, {.reads = reads, .weight_gradients = {table}});
    return;
  }
  const Id fresh = layer.tape.slot(name + " fresh gradient", zero.bytes, Category::gradients);
  layer.tape.emit(name + " gradient zero", zero, {.writes = {fresh}});
  layer.tape.emit(name + " gradient", work, {.reads = reads, .updates = {fresh}});
  const Bytes main = unit ? c.width : storage_bytes(c.spec.strategy.gradient_precision);
  layer.tape.emit(name + " accumulate", Accumulate{elements, c.width, main},
                  {.reads = {fresh}, .weight_gradients = {table}});
}

// Keeps the input of an activation function in fp8 for backward. Each op that reads the kept input first casts it to 16
// bits.
static Id kept_in_fp8(LayerTape& layer, const std::string& name, const Activated& a) {
  const std::int64_t columns = a.width * (layer.model.gated ? 2 : 1);
  const Id x = rows_of(layer, name + " input in fp8", a.rows, columns, 1);
  layer.tape.emit(name + " input to fp8", Cast{a.rows.count * columns, layer.context.width, 1},
                  {.reads = {a.x}, .writes = {x}, .within = a.within});
  return x;
}

Id activate(LayerTape& layer, const std::string& name, const Activated& a) {
  const BlockContext& c = layer.context;
  const Model& m = layer.model;
  const Activation work = {
      a.rows.count,         a.width, m.gated, c.spec.software.kernels.fused_activation, Direction::forward,
      a.weights.has_value()};
  const Id y = rows_of(layer, name + " output", a.rows, a.width, c.width);
  // PyTorch in eager mode keeps silu(gate) for backward, because the gradient of silu(gate) * up needs it.
  const bool keeps_silu = m.gated && !work.fused;
  const Id x =
      layer.eight_bit && a.again && c.spec.software.kernels.fp8_activation_inputs ? kept_in_fp8(layer, name, a) : a.x;
  BlockBuilder::Uses uses = {.reads = {x}, .writes = {y}};
  if (a.weights) uses.reads.push_back(*a.weights);
  if (keeps_silu) uses.writes.push_back(rows_of(layer, "silu output", a.rows, a.width, c.width));
  if (a.again) layer.tape.begin_region(true);
  uses.within = a.within;
  layer.tape.emit(name, work, uses);
  if (a.again) layer.tape.end_region();
  layer.tape.on_backward([=, &layer, &c, &m] {
    Activation back = work;
    back.direction = Direction::backward;
    const Id dx = rows_of(layer, name + " gradient", a.rows, a.width * (m.gated ? 2 : 1), c.width);
    BlockBuilder::Uses of = {.reads = {x, layer.tape.gradient(y)}, .writes = {dx}, .within = a.within};
    if (a.weights) {
      of.reads.push_back(*a.weights);
      // An expert's activation is multiplied by a weight for each row. The activation's backward op also adds this
      // weight's gradient, in fp32 (four bytes), to the weight's gradient buffer.
      if (layer.tape.has_gradient(*a.weights)) {
        of.updates = {layer.tape.gradient(*a.weights)};
      } else {
        of.writes.push_back(rows_of(layer, "choice weights gradient", a.rows, 1, 4));
        layer.tape.contribute(*a.weights, of.writes.back());
      }
    }
    if (keeps_silu) of.reads.push_back(uses.writes.back());
    layer.tape.emit(name + " gradient", back, of);
    layer.tape.contribute(a.x, dx);
  });
  return y;
}

static Id activate(LayerTape& layer, const std::string& name, Id x, std::int64_t width, bool again) {
  return activate(layer, name, {x, {layer.context.rows, -1}, width, again, {}, false});
}

Id feed_forward(LayerTape& layer, const std::string& name, const std::string& weights, Id x, std::int64_t width,
                bool reduce) {
  const QuantisedProducts narrow(layer, QuantisedLayers::feed_forward);
  const Model& m = layer.model;
  const bool separate = m.gated && layer.context.spec.software.kernels.separate_projections;
  const Id up = column_parallel(layer, name + " up", x, m.hidden, width * (m.gated ? 2 : 1),
                                {.name = weights + ".up",
                                 .cut = m.gated ? Cut::halves : Cut::rows,
                                 .bias = has_mlp_bias(m),
                                 .apart = separate ? std::vector{width, width} : std::vector<std::int64_t>{}});
  const bool again = layer.recompute.activation && !layer.recompute.layer && !layer.recompute.mlp;
  const Id active = activate(layer, name == "mlp" ? "activation" : name + " activation", up, width, again);
  return row_parallel(layer, name + " down", active, width, m.hidden, weights + ".down.weight", reduce);
}

// Records the gate of shared experts: y times the sigmoid of the product of x with a weight of one column.
static Id gate_rows(LayerTape& layer, const std::string& name, Id x, Id y) {
  const BlockContext& c = layer.context;
  const Model& m = layer.model;
  const Id gate = replicated(layer, name, x, m.hidden, 1, {.name = "moe.shared_gate", .wide = true});
  const SigmoidGate work = {c.local_rows, m.hidden, Direction::forward};
  const Id out = activation(layer, name + " result", c.local_rows, m.hidden);
  layer.tape.emit(name + " sigmoid", work, {.reads = {y, gate}, .writes = {out}});
  layer.tape.on_backward([=, &layer, &c, &m] {
    SigmoidGate back = work;
    back.direction = Direction::backward;
    const Id dy = activation(layer, name + " input gradient", c.local_rows, m.hidden);
    const Id dgate = activation(layer, name + " gradient", c.local_rows, 1);
    layer.tape.emit(name + " sigmoid gradient", back,
                    {.reads = {y, gate, layer.tape.gradient(out)}, .writes = {dy, dgate}});
    layer.tape.contribute(y, dy);
    layer.tape.contribute(gate, dgate);
  });
  return out;
}

Id shared_experts(LayerTape& layer, Id x) {
  const Model& m = layer.model;
  const Id y =
      feed_forward(layer, "shared experts", "moe.shared", x, m.moe->shared_feed_forward / layer.context.tensor, true);
  return m.moe->shared_gate ? gate_rows(layer, "shared gate", x, y) : y;
}

Id mlp(LayerTape& layer, Id x, bool reduce) {
  const bool again = layer.recompute.mlp && !layer.recompute.layer;
  if (again) layer.tape.begin_region(true);
  const Id y = feed_forward(layer, "mlp", "mlp", x, layer.model.feed_forward / layer.context.tensor, reduce);
  if (again) layer.tape.end_region();
  return y;
}

void take_tokens(LayerTape& layer, Id tokens) {
  const BlockContext& c = layer.context;
  if (c.duty != Duty::master && c.duty != Duty::replica) {
    layer.tape.emit("tokens", Load{c.rows, false}, {.writes = {tokens}});
    return;
  }
  const std::int64_t replicas = c.spec.strategy.data;
  BlockBuilder::Uses scatter = {.writes = {tokens}};
  if (c.duty == Duty::master) {
    const Id all = layer.tape.slot("tokens of all ranks", replicas * c.rows * 8);
    layer.tape.emit("tokens", Load{.rows = replicas * c.rows, .replicas = replicas}, {.writes = {all}});
    scatter.reads = {all};
  }
  layer.tape.emit(
      "scatter inputs",
      Collective{.kind = CollectiveKind::scatter, .group = Dimension::data, .bytes = replicas * c.rows * 8, .width = 8},
      scatter, LaneKind::data_gather);
}

}  // namespace orrery
