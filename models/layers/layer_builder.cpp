#include "models/layers/layer_builder.h"

#include <algorithm>

namespace orrery {
namespace {

Scope weight_scope(const ShardingRow& row) { return row.shards_parameters ? Scope::unit : Scope::state; }
Scope gradient_scope(const BlockContext& c) { return unit_gradients(c.spec, c.sharding) ? Scope::unit : Scope::state; }

// Transformer Engine computes the layers' products in 8 bits; embedding and output stay in bf16 (Megatron-Core).
Precision precision_of(const BlockContext& c, BlockRole role) {
  const Precision p = c.spec.strategy.precision;
  return is_eight_bit(p) && role != BlockRole::layer ? Precision::bf16 : p;
}

}  // namespace

LayerBuilder::LayerBuilder(const BlockContext& context, const std::string& name, BlockRole role)
    : tape(name, role, precision_of(context, role), weight_scope(context.sharding),
           context.sharding.shards_parameters ? static_cast<Id>(kGathered) : static_cast<Id>(kParameters),
           gradient_scope(context),
           gradient_scope(context) == Scope::unit ? static_cast<Id>(kUnitGradient) : static_cast<Id>(kGradients)),
      c_(context),
      m_(context.spec.model),
      heads_(m_.heads / context.tensor),
      kv_heads_(std::max<std::int64_t>(1, m_.kv_heads / context.tensor)),
      eight_bit_(is_eight_bit(precision_of(context, role))),
      dummy_gradients_(role == BlockRole::output && context.spec.software.dummy_gradients),
      overlaps_(role == BlockRole::layer && context.spec.strategy.overlap.tensor && context.sequence_parallel),
      tiles_(role == BlockRole::layer ? context.spec.strategy.offload.tiling : 1) {
  tape.splits_backward = context.splits_backward;
  tape.releases_weights_after_forward = context.sharding.reshards_after_forward;
}

LayerBuilder::Id LayerBuilder::activation(const std::string& name, std::int64_t row_count, std::int64_t columns) {
  return tape.slot(name, row_count * columns * c_.width);
}

void LayerBuilder::tensor_all_reduce(const std::string& name, Id x, Bytes bytes, Bytes width, bool maximum) {
  tape.emit(name, Collective{.group = c_.inner.columns, .bytes = bytes, .width = width, .maximum = maximum},
            {.updates = {x}}, LaneKind::tensor);
}

std::int32_t LayerBuilder::vector(const std::string& name) {
  if (!c_.grid) return tape.parameter(name, m_.hidden, 1, Cut::none, c_.sequence_parallel);
  return tape.parameter(
      {.name = name, .out = c_.hidden, .in = 1, .cut = Cut::rows, .partial = true, .over = c_.outer.columns});
}

void LayerBuilder::bias_gradient(const std::string& name, Id dy, std::int64_t row_count, std::int64_t columns,
                                 std::int32_t parameter) {
  tape.emit(name + " bias gradient", BiasGradient{row_count, columns},
            {.reads = {dy}, .weight_gradients = {parameter}});
}

LayerBuilder::Id LayerBuilder::reduce_from_tensor(const std::string& name, Id x, std::int64_t row_count,
                                                  std::int64_t columns) {
  if (c_.tensor == 1 || c_.grid) return x;
  if (!c_.sequence_parallel) {
    tensor_all_reduce(name + " reduce", x, row_count * columns * c_.width, c_.width);
    return x;
  }
  const Id local = activation(name + " scattered", c_.local_rows, columns);
  tensor_collective(name + " scatter", CollectiveKind::reduce_scatter, x, local, columns, c_.width);
  tape.on_backward([=, this] {
    const Id whole = activation(name + " gathered gradient", row_count, columns);
    const Id dy = tape.gradient(local);
    tensor_collective(name + " gradient gather", CollectiveKind::all_gather, dy, whole, columns, c_.width);
    tape.contribute(x, whole);
  });
  return local;
}

LayerBuilder::Id LayerBuilder::norm(const std::string& name, Id x) {
  const bool again = recompute.norm && !recompute.layer;
  if (again) tape.begin_region(true);
  const Id y = c_.grid ? grid_norm(name, x) : norm(name, x, m_.hidden);
  if (again) tape.end_region();
  return y;
}

LayerBuilder::Id LayerBuilder::norm(const std::string& name, Id x, std::int64_t columns) {
  const bool layernorm = m_.norm == Norm::layernorm;
  const auto w = tape.parameter(name + ".weight", columns, 1, Cut::none, c_.sequence_parallel);
  std::vector<std::int32_t> weights = {w};
  if (layernorm) weights.push_back(tape.parameter(name + ".bias", columns, 1, Cut::none, c_.sequence_parallel));
  const Id y = activation(name + " output", c_.local_rows, columns);
  // Mean and reciprocal deviation in fp32; papers' activation formulas leave them out.
  const Id statistics = tape.slot("statistics", c_.local_rows * (layernorm ? 8 : 4));
  const Normalize work = {c_.local_rows, columns, layernorm, c_.spec.software.fused_norm, Direction::forward};
  tape.emit(name, work, {.reads = {x}, .writes = {y, statistics}, .weights = weights});
  tape.on_backward([=, this] {
    Normalize back = work;
    back.direction = Direction::backward;
    const Id dx = activation(name + " input gradient", c_.local_rows, columns);
    tape.emit(
        name + " gradient", back,
        {.reads = {x, statistics, tape.gradient(y)}, .writes = {dx}, .weights = {w}, .weight_gradients = weights});
    tape.contribute(x, dx);
  });
  return y;
}

LayerBuilder::Id LayerBuilder::post_norm(const std::string& name, Id x) {
  return m_.post_norms ? norm(name + " post norm", x) : x;
}

LayerBuilder::Id LayerBuilder::sum(const std::string& name, Id a, Id b, std::int64_t row_count) {
  const Id y = activation(name, row_count, c_.hidden);
  tape.emit(name, Add{row_count * c_.hidden}, {.reads = {a, b}, .writes = {y}});
  tape.on_backward([=, this] {
    tape.contribute(a, tape.gradient(y));
    tape.contribute(b, tape.gradient(y));
  });
  return y;
}

LayerBuilder::Id LayerBuilder::join(const std::string& name, Id a, Id b, std::int64_t row_count, std::int64_t first,
                                    std::int64_t second) {
  const Split work = {row_count, first, second, Direction::backward};
  const Id y = activation(name, row_count, first + second);
  tape.emit(name, work, {.reads = {a, b}, .writes = {y}});
  tape.on_backward([=, this] {
    Split back = work;
    back.direction = Direction::forward;
    const Id da = activation(name + " gradient", row_count, first),
             db = activation(name + " gradient", row_count, second);
    tape.emit(name + " gradient", back, {.reads = {tape.gradient(y)}, .writes = {da, db}});
    tape.contribute(a, da);
    tape.contribute(b, db);
  });
  return y;
}

LayerBuilder::Id LayerBuilder::residual(const std::string& name, Id x, Id branch,
                                        const std::vector<std::string>& products) {
  const bool drops = m_.dropout > 0;
  std::vector<std::int32_t> biases;
  for (const std::string& product : products) {
    if (m_.bias) biases.push_back(vector(product + ".bias"));
  }
  const Id y = activation(name + " output", c_.local_rows, c_.hidden);
  const Residual work = {c_.local_rows,      c_.hidden, true, !biases.empty(), drops, c_.spec.software.fused_residual,
                         Direction::forward, c_.outer};
  BlockBuilder::Uses uses = {.reads = {x, branch}, .writes = {y}, .weights = biases};
  const Id mask = drops ? tape.slot("dropout mask", c_.local_rows * c_.hidden) : y;  // one byte an element
  if (drops) uses.writes.push_back(mask);
  tape.emit(name, work, uses);
  tape.on_backward([=, this] {
    const Id dy = tape.gradient(y);
    Id branch_gradient = dy;
    if (drops) {
      branch_gradient = activation(name + " gradient", c_.local_rows, c_.hidden);
      Residual back = work;
      back.direction = Direction::backward;
      tape.emit(name + " gradient", back, {.reads = {dy, mask}, .writes = {branch_gradient}});
    }
    for (const std::int32_t b : biases) bias_gradient(name, branch_gradient, c_.local_rows, c_.hidden, b);
    tape.contribute(x, dy);
    tape.contribute(branch, branch_gradient);
  });
  return y;
}

LayerBuilder::Id LayerBuilder::dropout(const std::string& name, Id x) {
  if (m_.dropout <= 0) return x;
  const Id y = activation(name + " output", c_.local_rows, c_.hidden);
  const Id mask = tape.slot("dropout mask", c_.local_rows * c_.hidden);
  const Residual work = {c_.local_rows, c_.hidden, false, false, true, true, Direction::forward, c_.outer};
  tape.emit(name, work, {.reads = {x}, .writes = {y, mask}});
  tape.on_backward([=, this] {
    Residual back = work;
    back.direction = Direction::backward;
    const Id dx = activation(name + " gradient", c_.local_rows, c_.hidden);
    tape.emit(name + " gradient", back, {.reads = {tape.gradient(y), mask}, .writes = {dx}});
    tape.contribute(x, dx);
  });
  return y;
}

void LayerBuilder::scale(const std::string& name, Id x, double factor) {
  const Multiply work = {.elements = c_.local_rows * c_.hidden, .width = c_.width, .factor = factor};
  tape.emit(name, work, {.updates = {x}});
  tape.on_backward([=, this] { tape.emit(name + " gradient", work, {.updates = {tape.gradient(x)}}); });
}

void LayerBuilder::soft_cap(const std::string& name, Id x, std::int64_t elements, double cap, bool fused) {
  if (cap == 0) return;
  const SoftCap work = {elements, cap, fused, Direction::forward};
  tape.emit(name, work, {.updates = {x}});
  tape.on_backward([=, this] {
    SoftCap back = work;
    back.direction = Direction::backward;
    tape.emit(name + " gradient", back, {.reads = {x}, .updates = {tape.gradient(x)}});
  });
}

LayerBuilder::Id LayerBuilder::add_positions(Id x) {
  if (m_.positions != Positions::learned) return x;
  const std::int64_t length = m_.max_positions > 0 ? m_.max_positions : c_.spec.sequence;
  const std::string name = "embedding.position.weight";
  const auto table = c_.grid ? tape.parameter({.name = name,
                                               .out = length,
                                               .in = c_.hidden,
                                               .cut = Cut::columns,
                                               .partial = true,
                                               .over = c_.outer.columns})
                             : tape.parameter(name, length, m_.hidden, Cut::none, c_.sequence_parallel);
  const Id y = activation("positioned embeddings", c_.local_rows, c_.hidden);
  const Embedding work = {c_.local_rows, c_.hidden, length, true, Direction::forward};
  tape.emit("positions", work, {.reads = {x}, .writes = {y}, .weights = {table}});
  tape.on_backward([=, this] {
    Embedding back = work;
    back.direction = Direction::backward;
    table_gradient("positions", back, {tape.gradient(y)}, table, true);
    tape.contribute(x, tape.gradient(y));
  });
  return y;
}

void LayerBuilder::table_gradient(const std::string& name, Embedding work, const std::vector<Id>& reads,
                                  std::int32_t table, bool first) {
  const bool unit = unit_gradients(c_.spec, c_.sharding);
  const bool fresh_rows = c_.spec.software.dense_embedding_gradient || unit;
  work.gradient_bytes = fresh_rows ? c_.width : storage_bytes(c_.spec.strategy.gradient_precision);
  const std::int64_t elements = work.vocab * work.columns;
  const Fill zero = {elements * c_.width};
  if (!c_.spec.software.dense_embedding_gradient || (unit && first)) {
    if (unit && first) tape.emit(name + " gradient zero", zero, {.weight_gradients = {table}});
    tape.emit(name + " gradient", work, {.reads = reads, .weight_gradients = {table}});
    return;
  }
  const Id fresh = tape.slot(name + " fresh gradient", zero.bytes, Category::gradients);
  tape.emit(name + " gradient zero", zero, {.writes = {fresh}});
  tape.emit(name + " gradient", work, {.reads = reads, .updates = {fresh}});
  const Bytes main = unit ? c_.width : storage_bytes(c_.spec.strategy.gradient_precision);
  tape.emit(name + " accumulate", Accumulate{elements, c_.width, main},
            {.reads = {fresh}, .weight_gradients = {table}});
}

// Keeps the input of an activation function in eight bits; the input is widened where it is read.
LayerBuilder::Id LayerBuilder::kept_in_fp8(const std::string& name, const Activated& a) {
  const std::int64_t columns = a.width * (m_.gated ? 2 : 1);
  const Id x = rows_of(name + " input in fp8", a.rows, columns, 1);
  tape.emit(name + " input to fp8", Cast{a.rows.count * columns, c_.width, 1}, {.reads = {a.x}, .writes = {x}});
  return x;
}

LayerBuilder::Id LayerBuilder::activate(const std::string& name, const Activated& a) {
  const Activation work = {
      a.rows.count, a.width, m_.gated, c_.spec.software.fused_activation, Direction::forward, a.weights.has_value()};
  const Id y = rows_of(name + " output", a.rows, a.width, c_.width);
  // Eager PyTorch keeps silu(gate) for the gradient of its product with the other half.
  const bool keeps_silu = m_.gated && !work.fused;
  const Id x = eight_bit_ && a.again && c_.spec.software.fp8_activation_inputs ? kept_in_fp8(name, a) : a.x;
  BlockBuilder::Uses uses = {.reads = {x}, .writes = {y}};
  if (a.weights) uses.reads.push_back(*a.weights);
  if (keeps_silu) uses.writes.push_back(rows_of("silu output", a.rows, a.width, c_.width));
  if (a.again) tape.begin_region(true);
  tape.emit(name, work, uses);
  if (a.again) tape.end_region();
  tape.on_backward([=, this] {
    Activation back = work;
    back.direction = Direction::backward;
    const Id dx = rows_of(name + " gradient", a.rows, a.width * (m_.gated ? 2 : 1), c_.width);
    BlockBuilder::Uses of = {.reads = {x, tape.gradient(y)}, .writes = {dx}};
    if (a.weights) {
      of.reads.push_back(*a.weights);
      // The gradient's numbers have four bytes, so they are added here.
      if (tape.has_gradient(*a.weights)) {
        of.updates = {tape.gradient(*a.weights)};
      } else {
        of.writes.push_back(rows_of("choice weights gradient", a.rows, 1, 4));
        tape.contribute(*a.weights, of.writes.back());
      }
    }
    if (keeps_silu) of.reads.push_back(uses.writes.back());
    tape.emit(name + " gradient", back, of);
    tape.contribute(a.x, dx);
  });
  return y;
}

LayerBuilder::Id LayerBuilder::feed_forward(const std::string& name, const std::string& weights, Id x,
                                            std::int64_t width, bool reduce) {
  const Id up = column_parallel(name + " up", x, m_.hidden, width * (m_.gated ? 2 : 1),
                                {weights + ".up", m_.gated ? Cut::halves : Cut::rows, m_.bias});
  const bool again = recompute.activation && !recompute.layer && !recompute.mlp;
  const Id active = activate(name == "mlp" ? "activation" : name + " activation", up, width, again);
  return row_parallel(name + " down", active, width, m_.hidden, weights + ".down.weight", reduce);
}

LayerBuilder::Id LayerBuilder::mlp(Id x, bool reduce) {
  const bool again = recompute.mlp && !recompute.layer;
  if (again) tape.begin_region(true);
  const Id y = feed_forward("mlp", "mlp", x, m_.feed_forward / c_.tensor, reduce);
  if (again) tape.end_region();
  return y;
}

// Loads tokens; DataParallel's rank 0 loads those of all ranks.
void LayerBuilder::take_tokens(Id tokens) {
  if (c_.duty != Duty::master && c_.duty != Duty::replica) {
    tape.emit("tokens", Load{c_.rows, false}, {.writes = {tokens}});
    return;
  }
  const std::int64_t replicas = c_.spec.strategy.data;
  BlockBuilder::Uses scatter = {.writes = {tokens}};
  if (c_.duty == Duty::master) {
    const Id all = tape.slot("tokens of all ranks", replicas * c_.rows * 8);
    tape.emit("tokens", Load{.rows = replicas * c_.rows, .replicas = replicas}, {.writes = {all}});
    scatter.reads = {all};
  }
  tape.emit("scatter inputs",
            Collective{
                .kind = CollectiveKind::scatter, .group = Dimension::data, .bytes = replicas * c_.rows * 8, .width = 8},
            scatter, LaneKind::data_gather);
}

}  // namespace orrery
