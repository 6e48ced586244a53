#include "models/layer_builder.h"

#include <algorithm>

namespace orrery {
namespace {

Scope weight_scope(const ShardingRow& row) { return row.shards_parameters ? Scope::unit : Scope::state; }
Scope gradient_scope(const BlockContext& c) { return unit_gradients(c.spec, c.sharding) ? Scope::unit : Scope::state; }

Gemm product(std::int64_t rows, std::int64_t in, std::int64_t out, Bytes width) {
  return {.m = rows, .n = out, .k = in, .result_bytes = width};
}

// Transformer Engine's user buffers cut a product into this many pieces by default.
constexpr std::int64_t kOverlapPieces = 4;

std::int64_t pieces(const BlockContext& c) {
  return c.spec.strategy.overlap.tensor && c.sequence_parallel && c.local_rows % kOverlapPieces == 0 ? kOverlapPieces
                                                                                                     : 1;
}

}  // namespace

bool unit_gradients(const Spec& spec, const ShardingRow& row) {
  return row.shards_gradients && (row.shards_parameters || !spec.software.keep_gradients_whole);
}

LayerBuilder::LayerBuilder(const BlockContext& context, const std::string& name, BlockRole role)
    : tape(name, role, context.spec.strategy.precision, weight_scope(context.sharding),
           context.sharding.shards_parameters ? static_cast<Id>(kGathered) : static_cast<Id>(kParameters),
           gradient_scope(context),
           gradient_scope(context) == Scope::unit ? static_cast<Id>(kUnitGradient) : static_cast<Id>(kGradients)),
      c_(context),
      m_(context.spec.model),
      heads_(m_.heads / context.tensor),
      kv_heads_(std::max<std::int64_t>(1, m_.kv_heads / context.tensor)) {
  tape.releases_weights_after_forward = context.sharding.reshards_after_forward;
}

LayerBuilder::Id LayerBuilder::activation(const std::string& name, std::int64_t row_count, std::int64_t columns) {
  return tape.slot(name, row_count * columns * c_.width);
}

void LayerBuilder::tensor_collective(const std::string& name, CollectiveKind kind, Id from, Id to,
                                     std::int64_t columns) {
  const Bytes bytes = c_.rows * columns * c_.width / pieces(c_);
  tape.emit(name, Collective{kind, Dimension::tensor, bytes, c_.width}, {.reads = {from}, .writes = {to}},
            LaneKind::tensor);
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

void LayerBuilder::weight_gradient(const std::string& name, const Gemm& forward, Id x, Id dy, std::int32_t weight) {
  const Bytes main = storage_bytes(c_.spec.strategy.gradient_precision);
  // A unit's gradient lives for one micro-batch, as wide as its weights: there is nothing to add to.
  const bool fresh_unit = gradient_scope(c_) == Scope::unit;
  const bool fused = fresh_unit || c_.spec.software.gradient_accumulation_fusion || main == c_.width;
  Gemm gemm = {.m = forward.n, .n = forward.k, .k = forward.m, .role = Gemm::Role::weight_gradient};
  gemm.accumulate = fused && !fresh_unit;
  gemm.result_bytes = fused && !fresh_unit ? main : c_.width;
  if (fused) {
    tape.emit(name + " weight gradient", gemm, {.reads = {x, dy}, .weight_gradients = {weight}});
    return;
  }
  const std::int64_t elements = forward.n * forward.k;
  const Id fresh = tape.slot(name + " fresh gradient", elements * c_.width, Category::gradients);
  tape.emit(name + " weight gradient", gemm, {.reads = {x, dy}, .writes = {fresh}});
  tape.emit(name + " accumulate", Accumulate{elements, c_.width, main},
            {.reads = {fresh}, .weight_gradients = {weight}});
}

// Input gradient of y = x W^T in as many pieces as its reduction wants.
static Gemm input_gradient(const Gemm& forward, std::int64_t parts) {
  return {.m = forward.m / parts,
          .n = forward.k,
          .k = forward.n,
          .role = Gemm::Role::input_gradient,
          .result_bytes = forward.result_bytes};
}

LayerBuilder::Id LayerBuilder::column_parallel(const std::string& name, Id x, std::int64_t in, std::int64_t out,
                                               const std::string& weight, bool bias, std::int64_t kv_rows) {
  const bool sp = c_.sequence_parallel;
  const auto w = tape.parameter(weight, out, in, false, false, kv_rows);
  const auto b = bias ? tape.parameter(weight + " bias", out, 1, false, false, kv_rows) : -1;
  const Gemm forward = product(c_.rows, in, out, c_.width);
  const Id y = activation(name + " output", c_.rows, out);
  const Id gathered = sp ? activation(name + " gathered input", c_.rows, in) : x;
  Gemm piece = forward;
  piece.m /= pieces(c_);
  for (std::int64_t i = 0; i < pieces(c_); ++i) {
    if (sp) tensor_collective(name + " gather", CollectiveKind::all_gather, x, gathered, in);
    tape.emit(name, piece,
              {.reads = {gathered}, .writes = {y}, .weights = b >= 0 ? std::vector{w, b} : std::vector{w}});
  }
  tape.on_backward([=, this] {
    const Id dy = tape.gradient(y);
    Id input = gathered;
    if (sp && c_.spec.software.regather_input) {
      input = activation(name + " regathered input", c_.rows, in);
      const Bytes bytes = c_.rows * in * c_.width;
      tape.emit(name + " regather", Collective{CollectiveKind::all_gather, Dimension::tensor, bytes, c_.width},
                {.reads = {x}, .writes = {input}}, LaneKind::tensor);
    }
    const Id dx = activation(name + " input gradient", c_.rows, in);
    const Id local = sp ? activation(name + " reduced gradient", c_.local_rows, in) : dx;
    const bool overlaps = c_.spec.software.tensor_reduce_overlaps_wgrad;
    for (std::int64_t i = 0; i < pieces(c_); ++i) {
      tape.emit(name + " input gradient", input_gradient(forward, pieces(c_)),
                {.reads = {dy}, .writes = {dx}, .weights = {w}});
      if (overlaps && sp) tensor_collective(name + " gradient scatter", CollectiveKind::reduce_scatter, dx, local, in);
    }
    const Bytes bytes = c_.rows * in * c_.width;
    const bool reduces = c_.tensor > 1 && !sp;
    if (overlaps && reduces) tensor_all_reduce(name + " gradient reduce", dx, bytes, c_.width);
    if (b >= 0) bias_gradient(name, dy, c_.rows, out, b);
    weight_gradient(name, forward, input, dy, w);
    if (!overlaps && reduces) tensor_all_reduce(name + " gradient reduce", dx, bytes, c_.width);
    if (!overlaps && sp) tensor_collective(name + " gradient scatter", CollectiveKind::reduce_scatter, dx, local, in);
    tape.contribute(x, local);
  });
  return y;
}

LayerBuilder::Id LayerBuilder::row_parallel(const std::string& name, Id x, std::int64_t in, std::int64_t out,
                                            const std::string& weight, bool reduce) {
  const bool sp = c_.sequence_parallel;
  const auto w = tape.parameter(weight, out, in, false);
  const Gemm forward = product(c_.rows, in, out, c_.width);
  const Id y = activation(name + " output", c_.rows, out);
  const Id local = sp && reduce ? activation(name + " scattered output", c_.local_rows, out) : y;
  Gemm piece = forward;
  piece.m /= reduce ? pieces(c_) : 1;
  for (std::int64_t i = 0; i < (reduce ? pieces(c_) : 1); ++i) {
    tape.emit(name, piece, {.reads = {x}, .writes = {y}, .weights = {w}});
    if (sp && reduce) tensor_collective(name + " scatter", CollectiveKind::reduce_scatter, y, local, out);
  }
  if (c_.tensor > 1 && !sp && reduce) tensor_all_reduce(name + " reduce", y, c_.rows * out * c_.width, c_.width);
  tape.on_backward([=, this] {
    Id dy = tape.gradient(local);
    const Id dx = activation(name + " input gradient", c_.rows, in);
    const Id whole = sp && reduce ? activation(name + " gathered gradient", c_.rows, out) : dy;
    const std::int64_t parts = reduce ? pieces(c_) : 1;
    for (std::int64_t i = 0; i < parts; ++i) {
      if (sp && reduce) tensor_collective(name + " gradient gather", CollectiveKind::all_gather, dy, whole, out);
      tape.emit(name + " input gradient", input_gradient(forward, parts),
                {.reads = {whole}, .writes = {dx}, .weights = {w}});
    }
    weight_gradient(name, forward, x, whole, w);
    tape.contribute(x, dx);
  });
  return local;
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
  const auto w = tape.parameter(name + ".weight", m_.hidden, 1, true, c_.sequence_parallel);
  std::vector<std::int32_t> weights = {w};
  if (layernorm) weights.push_back(tape.parameter(name + ".bias", m_.hidden, 1, true, c_.sequence_parallel));
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
    if (m_.bias) biases.push_back(tape.parameter(product + ".bias", m_.hidden, 1, true, c_.sequence_parallel));
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

LayerBuilder::Id LayerBuilder::add_positions(Id x, std::int32_t parameter) {
  if (parameter < 0) return x;
  const Id y = activation("positioned embeddings", c_.local_rows, m_.hidden);
  const Residual work = {c_.local_rows, m_.hidden, true, false, false, true, Direction::forward};
  tape.emit("positions", work, {.reads = {x}, .writes = {y}, .weights = {parameter}});
  tape.on_backward([=, this] {
    bias_gradient("positions", tape.gradient(y), c_.local_rows, m_.hidden, parameter);
    tape.contribute(x, tape.gradient(y));
  });
  return y;
}

LayerBuilder::Id LayerBuilder::activate(Id x) {
  const std::int64_t width = m_.feed_forward / c_.tensor;
  const Activation work = {c_.rows, width, m_.gated, m_.bias, c_.spec.software.fused_activation, Direction::forward};
  const bool again = recompute.activation && !recompute.layer && !recompute.mlp;
  const Id y = activation("activation output", c_.rows, width);
  if (again) tape.begin_region(true);
  tape.emit("activation", work, {.reads = {x}, .writes = {y}});
  if (again) tape.end_region();
  tape.on_backward([=, this] {
    Activation back = work;
    back.direction = Direction::backward;
    const Id dx = activation("activation gradient", c_.rows, width * (m_.gated ? 2 : 1));
    tape.emit("activation gradient", back, {.reads = {x, tape.gradient(y)}, .writes = {dx}});
    tape.contribute(x, dx);
  });
  return y;
}

LayerBuilder::Id LayerBuilder::mlp(Id x, bool reduce) {
  const std::int64_t width = m_.feed_forward / c_.tensor;
  const bool again = recompute.mlp && !recompute.layer;
  if (again) tape.begin_region(true);
  const Id up = column_parallel("mlp up", x, m_.hidden, width * (m_.gated ? 2 : 1), "mlp.up.weight", m_.bias);
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
  tape.emit("logits to fp32", Cast{c_.rows * columns, c_.width, 4}, {.reads = {logits}, .writes = {wide}});
  tape.emit("loss maximum", work(CrossEntropy::Part::maximum), {.reads = {wide}, .writes = {maxima}});
  if (c_.tensor > 1) tensor_all_reduce("loss maximum reduce", maxima, c_.rows * 4, 4, true);
  tape.emit("loss exponent", work(CrossEntropy::Part::exponent),
            {.reads = {maxima, labels}, .writes = {sums}, .updates = {wide}});
  if (c_.tensor > 1) tensor_all_reduce("loss sum reduce", sums, c_.rows * 8, 4);
  const Id loss = tape.slot("loss", c_.rows * 4);
  tape.emit("loss", work(CrossEntropy::Part::loss), {.reads = {sums}, .writes = {loss}});
  tape.on_backward([=, this] {
    tape.emit("loss gradient", CrossEntropy{c_.rows, columns, CrossEntropy::Part::gradient, fused},
              {.reads = {labels, sums}, .updates = {wide}});
    const Id gradient = activation("logits gradient", c_.rows, columns);
    tape.emit("logits gradient", Cast{c_.rows * columns, 4, c_.width}, {.reads = {wide}, .writes = {gradient}});
    tape.contribute(logits, gradient);
  });
}

}  // namespace orrery
