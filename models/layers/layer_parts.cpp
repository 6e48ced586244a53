#include "models/layers/layer_parts.h"

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
            const std::vector<std::string>& biased, const std::vector<Id>& until) {
  const BlockContext& c = layer.context;
  const bool drops = layer.model.dropout > 0;
  std::vector<std::int32_t> biases;
  for (const std::string& product : biased) biases.push_back(vector_parameter(layer, product + ".bias"));
  const Id y = activation(layer, name + " output", c.local_rows, c.hidden);
  const Residual work = {c.local_rows,       c.hidden,       x.has_value(),
                         !biases.empty(),    drops,          c.spec.software.kernels.fused_residual,
                         Direction::forward, c.residual_side};
  BlockBuilder::Uses uses = {.writes = {y}, .weights = biases, .holds = until};
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
