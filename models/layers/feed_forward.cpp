#include "models/layers/feed_forward.h"

#include "models/layers/layer_parts.h"
#include "models/layers/linear.h"

namespace orrery {

// Keeps the input of an activation function in fp8 for backward. Each op that reads the kept input first casts it to 16
// bits.
static Id kept_in_fp8(LayerTape& layer, const std::string& name, const Activated& a) {
  const std::int64_t columns = a.width * (layer.model.gated ? 2 : 1);
  const Id x = rows_of(layer, name + " input in fp8", a.rows, columns, 1);
  layer.tape.emit(name + " input to fp8", Cast{a.rows.count * columns, layer.context.width, 1},
                  {.reads = {a.x}, .writes = {x}, .within = a.within});
  return x;
}

// Records the clamp of SwiGLU's input by operations before its kernel. Both the input and the result are kept.
static Id clamp_apart(LayerTape& layer, const std::string& name, const Activated& a) {
  const Clamp work = {a.rows.count, a.width, layer.model.activation_clamp, Direction::forward};
  const auto both_halves = [&layer, a](const std::string& what) {
    return rows_of(layer, what, a.rows, 2 * a.width, layer.context.width);
  };
  const Id y = both_halves(name + " clamped input");
  layer.tape.emit(name + " clamp", work, {.reads = {a.x}, .writes = {y}});
  layer.tape.on_backward([=, &layer] {
    Clamp back = work;
    back.direction = Direction::backward;
    const Id dx = both_halves(name + " clamp gradient");
    layer.tape.emit(name + " clamp gradient", back, {.reads = {a.x, layer.tape.gradient(y)}, .writes = {dx}});
    layer.tape.contribute(a.x, dx);
  });
  return y;
}

// Records the activation function of the rows. clamps: whether its kernel bounds what it reads.
static Id activate_rows(LayerTape& layer, const std::string& name, const Activated& a, bool clamps) {
  const BlockContext& c = layer.context;
  const Model& m = layer.model;
  const Activation work = {.rows = a.rows.count,
                           .columns = a.width,
                           .gated = m.gated,
                           .fused = c.spec.software.kernels.fused_activation,
                           .weighted = a.weights.has_value(),
                           .limit = clamps ? m.activation_clamp : 0};
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

Id activate(LayerTape& layer, const std::string& name, const Activated& a) {
  const Software::Kernels& kernels = layer.context.spec.software.kernels;
  const bool apart = layer.model.activation_clamp > 0 && !kernels.fused_clamp && !kernels.compile && !a.within;
  if (!apart) return activate_rows(layer, name, a, true);
  // The clamps run again where the activation does.
  if (a.again) layer.tape.begin_region(true);
  Activated clamped = a;
  clamped.again = false;
  clamped.x = clamp_apart(layer, name, a);
  const Id y = activate_rows(layer, name, clamped, false);
  if (a.again) layer.tape.end_region();
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

}  // namespace orrery
