#include "models/layers/gated_attention.h"

#include "models/layers/attention.h"

namespace orrery {

GatedProjection split_gate(LayerTape& layer, Id projected, std::int64_t gate, std::int64_t width) {
  const BlockContext& c = layer.context;
  const Split work = {c.rows, gate, width, Direction::forward};
  const GatedProjection parts = {activation(layer, "attention gate", c.rows, gate),
                                 activation(layer, "qkv", c.rows, width)};
  layer.tape.emit("gate split", work, {.reads = {projected}, .writes = {parts.gate, parts.qkv}});
  layer.tape.on_backward([=, &layer, &c] {
    Split back = work;
    back.direction = Direction::backward;
    const Id joined = activation(layer, "gate and qkv gradient", c.rows, gate + width);
    layer.tape.emit("gate split gradient", back,
                    {.reads = {layer.tape.gradient(parts.gate), layer.tape.gradient(parts.qkv)}, .writes = {joined}});
    layer.tape.contribute(projected, joined);
  });
  return parts;
}

Id gated_values(LayerTape& layer, Id values, Id gate) {
  const BlockContext& c = layer.context;
  const std::int64_t columns = layer.heads * value_dim(layer);
  const SigmoidGate work = {c.rows * columns, 1, Direction::forward};
  const Id y = activation(layer, "gated attention values", c.rows, columns);
  layer.tape.emit("attention gate", work, {.reads = {values, gate}, .writes = {y}});
  layer.tape.on_backward([=, &layer, &c] {
    SigmoidGate back = work;
    back.direction = Direction::backward;
    const Id dvalues = activation(layer, "attention values gradient", c.rows, columns);
    const Id dgate = activation(layer, "attention gate gradient", c.rows, columns);
    layer.tape.emit("attention gate gradient", back,
                    {.reads = {values, gate, layer.tape.gradient(y)}, .writes = {dvalues, dgate}});
    layer.tape.contribute(values, dvalues);
    layer.tape.contribute(gate, dgate);
  });
  return y;
}

}  // namespace orrery
