#include "models/layers/lora.h"

namespace orrery {
namespace {

bool is_adapted(const Lora& lora, const std::string& weight) {
  if (weight == "attention.qkv") return lora.qkv;
  if (weight == "attention.output") return lora.out;
  return lora.mlp && (weight == "mlp.up" || weight == "mlp.down");
}

// The products x A^T (down) and h B^T (up), in the form that linear layers use.
Gemm down(const Adapter& a, Bytes width) { return {.m = a.rows, .n = a.lora_rank, .k = a.in, .result_bytes = width}; }
Gemm up(const Adapter& a, Bytes width) { return {.m = a.rows, .n = a.out, .k = a.lora_rank, .result_bytes = width}; }

}  // namespace

std::optional<Adapter> adapter_of(LayerTape& layer, const std::string& name, const std::string& weight, std::int64_t in,
                                  std::int64_t out, Cut cut, std::int64_t kv_rows) {
  const std::optional<Lora>& lora = layer.model.lora;
  if (!lora || !is_adapted(*lora, weight)) return std::nullopt;
  const BlockContext& c = layer.context;
  const bool over_inputs = cut == Cut::columns, cut_at_all = c.tensor > 1;
  Adapter a = {.name = name + " adapter", .rows = c.rows, .in = in, .out = out, .lora_rank = lora->rank};
  a.a = layer.tape.parameter(weight + ".lora_a.weight", a.lora_rank, in, over_inputs ? cut : Cut::none,
                             cut_at_all && !over_inputs);
  a.b = layer.tape.parameter(weight + ".lora_b.weight", out, a.lora_rank, over_inputs ? Cut::none : cut,
                             cut_at_all && over_inputs, kv_rows);
  a.hidden = activation(layer, a.name + " hidden", a.rows, a.lora_rank);
  return a;
}

void adapt(LayerTape& layer, const Adapter& a, Id x, Id y) {
  const Bytes width = layer.context.width;
  product(layer, a.name + " down", down(a, width), {x}, a.hidden, {a.a}, -1);
  Gemm added = up(a, width);
  added.accumulate = true;
  layer.tape.emit(a.name + " up", added, {.reads = {a.hidden}, .updates = {y}, .weights = {a.b}});
}

Id hidden_gradient(LayerTape& layer, const Adapter& a, Id dy) {
  const Id dh = activation(layer, a.name + " hidden gradient", a.rows, a.lora_rank);
  input_gradients(layer, a.name + " up", up(a, layer.context.width), {dy}, dh, {a.b});
  return dh;
}

void adapt_input_gradient(LayerTape& layer, const Adapter& a, Id dh, Id dx) {
  const Gemm added = {.m = a.rows,
                      .n = a.in,
                      .k = a.lora_rank,
                      .role = Gemm::Role::input_gradient,
                      .accumulate = true,
                      .result_bytes = layer.context.width};
  layer.tape.emit(a.name + " down input gradient", added, {.reads = {dh}, .updates = {dx}, .weights = {a.a}});
}

void adapter_gradients(LayerTape& layer, const Adapter& a, Id x, Id dy, Id dh) {
  weight_gradients(layer, a.name + " up", up(a, layer.context.width), a.hidden, dy, {a.b});
  weight_gradients(layer, a.name + " down", down(a, layer.context.width), x, dh, {a.a});
}

}  // namespace orrery
