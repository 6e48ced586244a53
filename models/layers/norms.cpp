#include "models/layers/norms.h"

#include "models/layers/grid_linear.h"

namespace orrery {

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

}  // namespace orrery
