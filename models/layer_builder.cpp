#include "models/layer_builder.h"

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

bool unit_gradients(const Spec& spec, const ShardingRow& row) {
  return row.shards_gradients && (row.shards_parameters || !spec.software.keep_gradients_whole);
}

bool averages_gradients(const Spec& spec, const ShardingRow& row) {
  const Strategy& s = spec.strategy;
  const std::string& pass = spec.software.gradient_average;
  const std::int64_t group = row.hybrid ? s.shard_group : s.data * s.context;
  return group > 1 && (pass == "scale" || (pass == "copy" && !unit_gradients(spec, row)));
}

LayerBuilder::LayerBuilder(const BlockContext& context, const std::string& name, BlockRole role)
    : tape(name, role, precision_of(context, role), weight_scope(context.sharding),
           context.sharding.shards_parameters ? static_cast<Id>(kGathered) : static_cast<Id>(kParameters),
           gradient_scope(context),
           gradient_scope(context) == Scope::unit ? static_cast<Id>(kUnitGradient) : static_cast<Id>(kGradients)),
      c_(context),
      m_(context.spec.model),
      heads_(m_.heads / context.tensor),
      kv_heads_(std::max<std::int64_t>(1, m_.kv_heads / context.tensor)),
      eight_bit_(is_eight_bit(precision_of(context, role))) {
  tape.splits_backward = context.splits_backward;
  tape.releases_weights_after_forward = context.sharding.reshards_after_forward;
}

LayerBuilder::Id LayerBuilder::activation(const std::string& name, std::int64_t row_count, std::int64_t columns) {
  return tape.slot(name, row_count * columns * c_.width);
}

void LayerBuilder::tensor_all_reduce(const std::string& name, Id x, Bytes bytes, Bytes width, bool maximum) {
  tape.emit(name, Collective{.group = Dimension::tensor, .bytes = bytes, .width = width, .maximum = maximum},
            {.updates = {x}}, LaneKind::tensor);
}

void LayerBuilder::bias_gradient(const std::string& name, Id dy, std::int64_t row_count, std::int64_t columns,
                                 std::int32_t parameter) {
  tape.emit(name + " bias gradient", BiasGradient{row_count, columns},
            {.reads = {dy}, .weight_gradients = {parameter}});
}

LayerBuilder::Id LayerBuilder::reduce_from_tensor(const std::string& name, Id x, std::int64_t row_count,
                                                  std::int64_t columns) {
  if (c_.tensor == 1) return x;
  if (!c_.sequence_parallel) {
    tensor_all_reduce(name + " reduce", x, row_count * columns * c_.width, c_.width);
    return x;
  }
  const Id local = activation(name + " scattered", c_.local_rows, columns);
  const Bytes bytes = row_count * columns * c_.width;
  tape.emit(name + " scatter", Collective{CollectiveKind::reduce_scatter, Dimension::tensor, bytes, c_.width},
            {.reads = {x}, .writes = {local}}, LaneKind::tensor);
  tape.on_backward([=, this] {
    const Id whole = activation(name + " gathered gradient", row_count, columns);
    tape.emit(name + " gradient gather", Collective{CollectiveKind::all_gather, Dimension::tensor, bytes, c_.width},
              {.reads = {tape.gradient(local)}, .writes = {whole}}, LaneKind::tensor);
    tape.contribute(x, whole);
  });
  return local;
}

LayerBuilder::Id LayerBuilder::norm(const std::string& name, Id x) {
  const bool layernorm = m_.norm == Norm::layernorm;
  const auto w = tape.parameter(name + ".weight", m_.hidden, 1, Cut::none, c_.sequence_parallel);
  std::vector<std::int32_t> weights = {w};
  if (layernorm) weights.push_back(tape.parameter(name + ".bias", m_.hidden, 1, Cut::none, c_.sequence_parallel));
  const bool again = recompute.norm && !recompute.layer;
  const Id y = activation(name + " output", c_.local_rows, m_.hidden);
  // Mean and reciprocal deviation in fp32; papers' activation formulas leave them out.
  const Id statistics = tape.slot("statistics", c_.local_rows * (layernorm ? 8 : 4));
  if (again) tape.begin_region(true);
  const Normalize work = {c_.local_rows, m_.hidden, layernorm, c_.spec.software.fused_norm, Direction::forward};
  tape.emit(name, work, {.reads = {x}, .writes = {y, statistics}, .weights = weights});
  if (again) tape.end_region();
  tape.on_backward([=, this] {
    Normalize back = work;
    back.direction = Direction::backward;
    const Id dx = activation(name + " input gradient", c_.local_rows, m_.hidden);
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

LayerBuilder::Id LayerBuilder::sum(const std::string& name, Id a, Id b) {
  const Id y = activation(name, c_.rows, m_.hidden);
  tape.emit(name, Add{c_.rows * m_.hidden}, {.reads = {a, b}, .writes = {y}});
  tape.on_backward([=, this] {
    tape.contribute(a, tape.gradient(y));
    tape.contribute(b, tape.gradient(y));
  });
  return y;
}

LayerBuilder::Id LayerBuilder::residual(const std::string& name, Id x, Id branch,
                                        const std::vector<std::string>& products) {
  const bool drops = m_.dropout > 0;
  std::vector<std::int32_t> biases;
  for (const std::string& product : products) {
    if (m_.bias) biases.push_back(tape.parameter(product + ".bias", m_.hidden, 1, Cut::none, c_.sequence_parallel));
  }
  const Id y = activation(name + " output", c_.local_rows, m_.hidden);
  const Residual work = {c_.local_rows,     m_.hidden, true, m_.bias, drops, c_.spec.software.fused_residual,
                         Direction::forward};
  BlockBuilder::Uses uses = {.reads = {x, branch}, .writes = {y}, .weights = biases};
  const Id mask = drops ? tape.slot("dropout mask", c_.local_rows * m_.hidden) : y;  // one byte an element
  if (drops) uses.writes.push_back(mask);
  tape.emit(name, work, uses);
  tape.on_backward([=, this] {
    const Id dy = tape.gradient(y);
    Id branch_gradient = dy;
    if (drops) {
      branch_gradient = activation(name + " gradient", c_.local_rows, m_.hidden);
      Residual back = work;
      back.direction = Direction::backward;
      tape.emit(name + " gradient", back, {.reads = {dy, mask}, .writes = {branch_gradient}});
    }
    for (const std::int32_t b : biases) bias_gradient(name, branch_gradient, c_.local_rows, m_.hidden, b);
    tape.contribute(x, dy);
    tape.contribute(branch, branch_gradient);
  });
  return y;
}

LayerBuilder::Id LayerBuilder::dropout(const std::string& name, Id x) {
  if (m_.dropout <= 0) return x;
  const Id y = activation(name + " output", c_.local_rows, m_.hidden);
  const Id mask = tape.slot("dropout mask", c_.local_rows * m_.hidden);
  const Residual work = {c_.local_rows, m_.hidden, false, false, true, true, Direction::forward};
  tape.emit(name, work, {.reads = {x}, .writes = {y, mask}});
  tape.on_backward([=, this] {
    Residual back = work;
    back.direction = Direction::backward;
    const Id dx = activation(name + " gradient", c_.local_rows, m_.hidden);
    tape.emit(name + " gradient", back, {.reads = {tape.gradient(y), mask}, .writes = {dx}});
    tape.contribute(x, dx);
  });
  return y;
}

void LayerBuilder::scale(const std::string& name, Id x, double factor) {
  const Multiply work = {.elements = c_.local_rows * m_.hidden, .width = c_.width, .factor = factor};
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
  const auto table = tape.parameter("embedding.position.weight", length, m_.hidden, Cut::none, c_.sequence_parallel);
  const Id y = activation("positioned embeddings", c_.local_rows, m_.hidden);
  const Embedding work = {c_.local_rows, m_.hidden, length, true, Direction::forward};
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

LayerBuilder::Id LayerBuilder::activate(Id x) {
  const std::int64_t width = m_.feed_forward / c_.tensor;
  const Activation work = {c_.rows, width, m_.gated, c_.spec.software.fused_activation, Direction::forward};
  const bool again = recompute.activation && !recompute.layer && !recompute.mlp;
  const Id y = activation("activation output", c_.rows, width);
  // Eager PyTorch keeps silu(gate) for the gradient of its product with the other half.
  const bool keeps_silu = m_.gated && !work.fused;
  BlockBuilder::Uses uses = {.reads = {x}, .writes = {y}};
  if (keeps_silu) uses.writes.push_back(activation("silu output", c_.rows, width));
  if (again) tape.begin_region(true);
  tape.emit("activation", work, uses);
  if (again) tape.end_region();
  tape.on_backward([=, this] {
    Activation back = work;
    back.direction = Direction::backward;
    const Id dx = activation("activation gradient", c_.rows, width * (m_.gated ? 2 : 1));
    BlockBuilder::Uses of = {.reads = {x, tape.gradient(y)}, .writes = {dx}};
    if (keeps_silu) of.reads.push_back(uses.writes.back());
    tape.emit("activation gradient", back, of);
    tape.contribute(x, dx);
  });
  return y;
}

LayerBuilder::Id LayerBuilder::mlp(Id x, bool reduce) {
  const std::int64_t width = m_.feed_forward / c_.tensor;
  const bool again = recompute.mlp && !recompute.layer;
  if (again) tape.begin_region(true);
  const Id up = column_parallel("mlp up", x, m_.hidden, width * (m_.gated ? 2 : 1),
                                {"mlp.up", m_.gated ? Cut::halves : Cut::rows, m_.bias});
  const Id y = row_parallel("mlp down", activate(up), width, m_.hidden, "mlp.down.weight", reduce);
  if (again) tape.end_region();
  return y;
}

void LayerBuilder::cross_entropy(Id logits, std::int64_t columns) {
  const bool fused = c_.spec.software.fused_cross_entropy;
  const auto work = [&](CrossEntropy::Part part) { return CrossEntropy{c_.rows, columns, part, fused}; };
  const Id labels = tape.slot("labels", c_.rows * 8);
  const Id wide = tape.slot("fp32 logits", c_.rows * columns * 4);  // becomes the softmax in place
  const Id maxima = tape.slot("row maxima", c_.rows * 4);
  const Id sums = tape.slot("row sums", c_.rows * 8);  // exponentials and the label's logit
  tape.emit("labels", Load{c_.rows, true}, {.writes = {labels}});
  tape.emit("logits to fp32", Cast{c_.rows * columns, c_.width, 4}, {.reads = {logits}, .writes = {wide}});
  tape.emit("loss maximum", work(CrossEntropy::Part::maximum), {.reads = {wide}, .writes = {maxima}});
  if (c_.tensor > 1) tensor_all_reduce("loss maximum reduce", maxima, c_.rows * 4, 4, true);
  BlockBuilder::Uses exponent = {.reads = {maxima, labels}, .writes = {sums}, .updates = {wide}};
  if (!fused) exponent.writes.push_back(tape.slot("shifted logits", c_.rows * columns * 4));
  tape.emit("loss exponent", work(CrossEntropy::Part::exponent), exponent);
  if (c_.tensor > 1) tensor_all_reduce("loss sum reduce", sums, c_.rows * 8, 4);
  const Id loss = tape.slot("loss", c_.rows * 4);
  tape.emit("loss", work(CrossEntropy::Part::loss), {.reads = {sums}, .writes = {loss}});
  tape.on_backward([=, this] {
    BlockBuilder::Uses uses = {.reads = {labels, sums}, .updates = {wide}};
    if (c_.spec.strategy.precision == Precision::fp16) uses.numbers = {kLossScale};
    if (!fused) uses.writes.push_back(tape.slot("log-probabilities' gradient", c_.rows * columns * 4));
    tape.emit("loss gradient", CrossEntropy{c_.rows, columns, CrossEntropy::Part::gradient, fused}, uses);
    const Id gradient = activation("logits gradient", c_.rows, columns);
    tape.emit("logits gradient", Cast{c_.rows * columns, 4, c_.width}, {.reads = {wide}, .writes = {gradient}});
    tape.contribute(logits, gradient);
  });
}

}  // namespace orrery
