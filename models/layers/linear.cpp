// This file records linear layers: products cut by columns or rows over the tensor group, with collectives and fp8
// casts.
#include "models/layers/linear.h"

#include <functional>
#include <optional>

#include "models/layers/grid_linear.h"
#include "models/layers/lora.h"

namespace orrery {
namespace {

using RowsProduct = std::function<void(const Gemm& part, const std::vector<Id>& reads)>;

struct GatheredRows {
  Id own, all;            // buffers of this rank's rows and of all rows; one buffer if nothing is gathered
  std::vector<Id> reads;  // buffers that the product reads, the buffer of all rows first
};

Gemm whole(std::int64_t rows, std::int64_t in, std::int64_t out, Bytes width) {
  return {.m = rows, .n = out, .k = in, .result_bytes = width};
}

// The number of pieces into which Transformer Engine's user buffers cut a product whose result is reduce-scattered, by
// default (initialize_ub: "pipeline", num_splits 4).
constexpr std::int64_t kScatterPieces = 4;

// Returns the number of pieces of a product whose result is reduce-scattered under it: with symmetric memory one for
// each rank (torch/distributed/_symmetric_memory/__init__.py: _pipelined_produce_and_all2all).
std::int64_t scatter_pieces(const LayerTape& layer) {
  const std::int64_t pieces = in_symmetric_memory(layer) ? layer.context.tensor : kScatterPieces;
  return layer.overlaps && layer.context.local_rows % pieces == 0 ? pieces : 1;
}

Gemm with_rows(Gemm product, std::int64_t count, Gemm::Rows rows) {
  product.m = count;
  product.rows = rows;
  return product;
}

// Returns one piece of a product: an equal part of its rows. Each piece runs on another CUDA stream (Transformer
// Engine's _NUM_MAX_UB_STREAMS), so that one piece uses the multiprocessors that the last wave of another piece leaves
// idle.
Gemm piece_of(Gemm forward, std::int64_t piece, std::int64_t parts, Gemm::Rows rows) {
  if (parts == 1) return forward;
  forward.m /= parts;
  forward.pieces = parts;
  forward.piece = piece;
  forward.rows = rows;
  return forward;
}

// Returns the product of one linear layer as that of several, whose numbers of outputs are given.
Gemm of_layers(Gemm forward, const std::vector<std::int64_t>& outputs) {
  if (outputs.empty()) return forward;
  forward.apart = static_cast<std::int64_t>(outputs.size());
  forward.apart_outputs = outputs.back();
  return forward;
}

}  // namespace

// Returns the buffer from which other ranks copy this rank's rows. PyTorch copies the rows to symmetric memory first,
// and has nothing run beside that copy (_pipelined_multi_all_gather_and_consume: copy_shard before the first product).
static Id shared_rows(LayerTape& layer, const std::string& name, Id own, std::int64_t columns, Bytes width) {
  if (!in_symmetric_memory(layer)) return own;
  const std::int64_t elements = layer.context.local_rows * columns;
  const Id shared = layer.tape.slot(name + " in symmetric memory", elements * width, Category::buffers);
  layer.tape.emit(name + " to symmetric memory", Cast{elements, width, width}, {.reads = {own}, .writes = {shared}});
  return shared;
}

// Records a product over the rows of all tensor ranks, each of which holds a part of the rows. If communication
// overlaps, copy engines pass the parts round a ring, and each part is multiplied while the next one arrives, the
// rank's own part first (initialize_ub: "ring_exchange"). With own_rows_first the rank's own rows are multiplied while
// other ranks' rows arrive; then two products follow, over the rows of lower ranks and of higher ranks. The plan has
// the sizes of a rank in the middle of the group, for which the group waits, because that rank has both of these
// products.
static void over_gathered(LayerTape& layer, const std::string& name, const GatheredRows& rows, std::int64_t columns,
                          const Gemm& forward, const RowsProduct& product) {
  const BlockContext& c = layer.context;
  const Bytes width = operand_width(layer);
  std::vector<Id> own = rows.reads, others = rows.reads;
  own.front() = rows.own;
  if (rows.own == rows.all) return product(forward, others);
  if (layer.overlaps) {
    const Id shared = shared_rows(layer, name, rows.own, columns, width);
    product(piece_of(forward, 0, c.tensor, Gemm::Rows::member), own);
    for (std::int64_t i = 1; i < c.tensor; ++i) {
      Collective step = {CollectiveKind::shift, Dimension::tensor, c.local_rows * columns * width, width};
      step.first = i * c.local_rows * columns;
      step.algorithm = kCopyEngines;
      layer.tape.emit(name, step, {.reads = {shared}, .writes = {rows.all}}, LaneKind::tensor);
      product(piece_of(forward, i, c.tensor, Gemm::Rows::member), others);
    }
    return;
  }
  tensor_collective(layer, name, CollectiveKind::all_gather, rows.own, rows.all, columns, width);
  if (!c.spec.software.communication.own_rows_first) return product(forward, others);
  product(with_rows(forward, c.local_rows, Gemm::Rows::member), own);
  others.push_back(rows.own);  // keeps this rank's rows allocated until the gather has read them
  if (c.tensor == 2) return product(with_rows(forward, c.local_rows, Gemm::Rows::others), others);
  const std::int64_t before = c.tensor / 2, behind = c.tensor - 1 - before;
  product(with_rows(forward, before * c.local_rows, Gemm::Rows::before), others);
  product(with_rows(forward, behind * c.local_rows, Gemm::Rows::behind), others);
}

// Returns the operands of the product of one tile of a weight. The first tile's product writes the result; the products
// of the other tiles add to it.
static BlockBuilder::Uses tile_uses(const std::vector<Id>& reads, Id result, bool first,
                                    std::vector<std::int32_t> weights) {
  BlockBuilder::Uses uses = {.reads = reads, .weights = std::move(weights)};
  (first ? uses.writes : uses.updates) = {result};
  return uses;
}

void product(LayerTape& layer, const std::string& name, const Gemm& forward, const std::vector<Id>& reads, Id y,
             const std::vector<std::int32_t>& weights, std::int32_t bias) {
  Gemm g = forward;
  g.tiles = static_cast<std::int64_t>(weights.size());
  g.n /= g.tiles;
  g.apart_outputs /= g.tiles;
  for (g.tile = 0; g.tile < g.tiles; ++g.tile) {
    const std::int32_t w = weights[g.tile];
    layer.tape.emit(name, g, tile_uses(reads, y, g.tile == 0, bias >= 0 ? std::vector{w, bias} : std::vector{w}));
  }
}

void input_gradients(LayerTape& layer, const std::string& name, const Gemm& forward, const std::vector<Id>& reads,
                     Id dx, const std::vector<std::int32_t>& weights) {
  Gemm g = {.m = forward.m,
            .n = forward.k,
            .k = forward.n,
            .role = Gemm::Role::input_gradient,
            .result_bytes = forward.result_bytes,
            .pieces = forward.pieces,
            .piece = forward.piece,
            .rows = forward.rows,
            .apart = forward.apart,
            .apart_outputs = forward.apart_outputs};
  g.tiles = static_cast<std::int64_t>(weights.size());
  g.k /= g.tiles;
  g.apart_outputs /= g.tiles;
  for (g.tile = 0; g.tile < g.tiles; ++g.tile) {
    g.accumulate = g.tile > 0;
    layer.tape.emit(name + " input gradient", g, tile_uses(reads, dx, g.tile == 0, {weights[g.tile]}));
    rescale(layer, name + " input gradient", dx, g.m * g.n);
  }
}

static void weight_gradient(LayerTape& layer, const std::string& name, const Gemm& forward, Id x, Id dy,
                            std::int32_t weight) {
  const BlockContext& c = layer.context;
  const Bytes main = storage_bytes(c.spec.strategy.gradient_precision);
  // If gradients are reduced after every micro-batch, the gradient buffer of a sharding unit starts empty and has the
  // data type of the weights: the product overwrites it and adds to no earlier sum.
  const bool fresh_unit = fresh_gradients(c.spec, c.sharding);
  const bool scales = layer.eight_bit && c.spec.software.kernels.rowwise_scales;  // each product's results apart
  const bool fused = fresh_unit || (adds_in_products(c.spec) && !scales);
  Gemm gemm = {.m = forward.n, .n = forward.k, .k = forward.m, .role = Gemm::Role::weight_gradient};
  gemm.tile = forward.tile;
  gemm.tiles = forward.tiles;
  gemm.apart = forward.apart;
  gemm.apart_outputs = forward.apart_outputs;
  gemm.accumulate = fused && !fresh_unit;
  gemm.result_bytes = fused && !fresh_unit ? main : c.width;
  if (fused) {
    BlockBuilder::Uses uses = {.reads = {x, dy}, .weight_gradients = {weight}};
    // Each call of Megatron-Core's own linear layer (tensor_parallel/layers.py) allocates a new dummy gradient, which
    // it returns to autograd.
    if (layer.dummy_gradients && !fresh_unit)
      uses.writes = {layer.tape.slot("dummy gradient", forward.n * forward.k * c.width, Category::buffers)};
    layer.tape.emit(name + " weight gradient", gemm, uses);
    if (scales)
      layer.tape.emit(name + " weight gradient scale", Cast{forward.n * forward.k, c.width, c.width},
                      {.weight_gradients = {weight}});
    return;
  }
  const std::int64_t elements = forward.n * forward.k;
  const Id fresh = layer.tape.slot(name + " fresh gradient", elements * c.width, Category::gradients);
  layer.tape.emit(name + " weight gradient", gemm, {.reads = {x, dy}, .writes = {fresh}});
  rescale(layer, name + " weight gradient", fresh, elements);
  layer.tape.emit(name + " accumulate", Accumulate{elements, c.width, main},
                  {.reads = {fresh}, .weight_gradients = {weight}});
}

void weight_gradients(LayerTape& layer, const std::string& name, const Gemm& forward, Id x, Id dy,
                      const std::vector<std::int32_t>& weights) {
  Gemm g = forward;
  g.tiles = static_cast<std::int64_t>(weights.size());
  g.n /= g.tiles;
  g.apart_outputs /= g.tiles;
  for (g.tile = 0; g.tile < g.tiles; ++g.tile) weight_gradient(layer, name, g, x, dy, weights[g.tile]);
}

// Returns the input of a weight gradient under sequence parallelism: the rows that forward gathered, or the same rows
// gathered again.
static Id gathered_again(LayerTape& layer, const std::string& name, Id local, Id gathered, std::int64_t in) {
  const BlockContext& c = layer.context;
  if (!c.spec.software.communication.regather_input)
    return transposed(layer, name + " gathered input", gathered, c.rows * in);
  const Bytes bytes = c.rows * in * operand_width(layer);
  const Id whole = layer.tape.slot(name + " regathered input", bytes);
  layer.tape.emit(name + " regather",
                  Collective{CollectiveKind::all_gather, Dimension::tensor, bytes, operand_width(layer)},
                  {.reads = {local}, .writes = {whole}}, LaneKind::tensor);
  return transposed(layer, name + " regathered input", whole, c.rows * in);
}

// Returns whether operands are cast to 8 bits only when all ranks' rows are there. With a scale for each row torchtitan
// has tensor parallel layers that gather in 16 bits (parallelize_llama.py: enable_float8_tensorwise_tp).
static bool casts_late(const LayerTape& layer) {
  return layer.eight_bit && layer.context.spec.software.kernels.rowwise_scales;
}

static Id gathered_wide(LayerTape& layer, const std::string& name, Id x, std::int64_t columns) {
  const BlockContext& c = layer.context;
  const Id all = layer.tape.slot(name + " arrived", c.rows * columns * c.width);
  tensor_collective(layer, name, CollectiveKind::all_gather, x, all, columns, c.width);
  return all;
}

Id column_parallel(LayerTape& layer, const std::string& name, Id x, std::int64_t in, std::int64_t out,
                   const ColumnWeight& weight) {
  const BlockContext& c = layer.context;
  if (c.grid) return grid_linear(layer, name, x, in / c.tensor, out, weight, c.residual_side, c.intermediate_side);
  const bool sp = c.sequence_parallel;
  const std::string& n = weight.name;
  // A weight is not cut into tiles if other ranks hold some of its key/value rows too, if another group than the tensor
  // group cuts it, or if it is cut by sections.
  const bool whole_weight = weight.kv_rows > 0 || weight.over != Dimension::tensor || !weight.sections.empty();
  const auto w = whole_weight ? std::vector{layer.tape.parameter({.name = n + ".weight",
                                                                  .out = out,
                                                                  .in = in,
                                                                  .cut = weight.cut,
                                                                  .kv_rows = weight.kv_rows,
                                                                  .sections = weight.sections,
                                                                  .over = weight.over})}
                              : tiled_weight(layer, n + ".weight", out, in, weight.cut, weight.apart);
  const auto b = weight.bias ? layer.tape.parameter(n + ".bias", out, 1, weight.cut, false, weight.kv_rows) : -1;
  const auto adapter = adapter_of(layer, name, n, in, out, weight.cut, weight.kv_rows);
  const Gemm forward = of_layers(whole(c.rows, in, out, c.width), weight.apart);
  const Id y = activation(layer, name + " output", c.rows, out);
  const bool late = sp && casts_late(layer), early = sp && !late;
  const Id source = late ? gathered_wide(layer, name + " gather", x, in) : x;
  const CastSlots given = input_to_fp8(layer, name, source, early ? c.local_rows : c.rows, in, !sp);
  const Id gathered =
      early ? layer.tape.slot(name + " gathered input", c.rows * in * operand_width(layer)) : given.rows;
  over_gathered(layer, name + " gather", {given.rows, gathered, with_weight(layer, name, gathered, w.front(), forward)},
                in, forward,
                [&](const Gemm& part, const std::vector<Id>& reads) { product(layer, name, part, reads, y, w, b); });
  if (adapter) adapt(layer, *adapter, gathered, y);
  layer.tape.on_backward([=, &layer, &c] {
    const Id dy = layer.tape.gradient(y);
    const Id dh = adapter ? hidden_gradient(layer, *adapter, dy) : dy;
    const Id input =
        late ? input_columns(layer, name, gathered_wide(layer, name + " regather", x, in), c.rows * in, CastSlots{})
        : sp ? gathered_again(layer, name, given.rows, gathered, in)
             : input_columns(layer, name, x, c.rows * in, given);
    const CastSlots of = to_fp8(layer, name + " gradient", dy, c.rows * out, true);
    const auto of_weights = [&] {
      if (b >= 0) bias_gradient(layer, name, dy, c.rows, out, b);
      weight_gradients(layer, name, forward, input, of.columns, w);
      if (adapter) adapter_gradients(layer, *adapter, input, dy, dh);
    };
    if (!weight.input_gradient) return of_weights();
    const std::vector<Id> back = with_weight(layer, name + " gradient", of.rows, w.front(), forward);
    const Id partial = activation(layer, name + " input gradient", c.rows, in);
    // torch.compile fuses the sum of these products into the copy that puts each rank's rows side by side.
    const bool sums = forward.apart > 1, copied = sums && c.spec.software.kernels.compile;
    const Id dx = sums ? activation(layer, name + " input gradient sum", c.rows, in) : partial;
    const Id local = sp ? activation(layer, name + " reduced gradient", c.local_rows, in) : dx;
    const bool overlaps = c.spec.software.communication.tensor_reduce_overlaps_wgrad;
    const auto scatter = [&] {
      const Collective whole = {CollectiveKind::reduce_scatter, Dimension::tensor, c.rows * in * c.width, c.width};
      if (!copied) return tensor_collective(layer, name + " gradient scatter", whole.kind, dx, local, in, c.width);
      layer.tape.emit(name + " gradient scatter", whole, {.reads = {dx}, .writes = {local}}, LaneKind::tensor);
    };
    // A collective waits for all work launched on the compute stream before it (ProcessGroupNCCL.cpp, syncStream). So a
    // collective called after the weight gradient begins after the weight gradient, though it reads no weight gradient.
    const bool waits = !overlaps && c.tensor > 1;
    if (waits) of_weights();
    input_gradients(layer, name, forward, back, partial, w);
    if (sums)
      layer.tape.emit(name + " input gradient sum", Cast{c.rows * in, c.width, c.width, false, forward.apart},
                      {.reads = {partial}, .writes = {dx}});
    if (adapter) adapt_input_gradient(layer, *adapter, dh, dx);
    if (overlaps && sp) scatter();
    if (c.tensor > 1 && !sp) tensor_all_reduce(layer, name + " gradient reduce", dx, c.rows * in * c.width, c.width);
    if (!overlaps && sp) scatter();
    if (!waits) of_weights();
    layer.tape.contribute(x, local);
  });
  return y;
}

Id replicated(LayerTape& layer, const std::string& name, Id x, std::int64_t in, std::int64_t out,
              const ColumnWeight& weight) {
  const BlockContext& c = layer.context;
  const std::int64_t rows = weight.rows > 0 ? weight.rows : c.local_rows;
  const bool partial = c.sequence_parallel;
  const auto w = layer.tape.parameter(weight.name + ".weight", out, in, Cut::none, partial);
  const auto b = weight.bias ? layer.tape.parameter(weight.name + ".bias", out, 1, Cut::none, partial) : -1;
  const Gemm forward = whole(rows, in, out, c.width);
  const Id y = activation(layer, name + " output", rows, out);
  const bool wide = weight.wide;
  const CastSlots given = wide ? CastSlots{x, x} : input_to_fp8(layer, name, x, rows, in, true);
  const std::vector<Id> reads = wide ? std::vector{x} : with_weight(layer, name, given.rows, w, forward);
  const Precision precision = layer.tape.precision();  // training's formulas are fitted with routers in it too
  const Precision wider = weight.fp32 ? Precision::fp32 : wide && is_eight_bit(precision) ? Precision::bf16 : precision;
  if (c.spec.generation) layer.tape.set_precision(wider);
  layer.tape.emit(name, forward,
                  {.reads = reads, .writes = {y}, .weights = b >= 0 ? std::vector{w, b} : std::vector{w}});
  layer.tape.set_precision(precision);
  layer.tape.on_backward([=, &layer] {
    const Id dy = layer.tape.gradient(y);
    const CastSlots of = wide ? CastSlots{dy, dy} : to_fp8(layer, name + " gradient", dy, rows * out, true);
    const auto input_gradient = [&] {
      const std::vector<Id> back = wide ? std::vector{dy} : with_weight(layer, name + " gradient", of.rows, w, forward);
      const Id dx = activation(layer, name + " input gradient", rows, in);
      input_gradients(layer, name, forward, back, dx, {w});
      return dx;
    };
    const std::optional<Id> dx = weight.input_gradient ? std::optional(input_gradient()) : std::nullopt;
    if (b >= 0) bias_gradient(layer, name, dy, rows, out, b);
    weight_gradient(layer, name, forward, wide ? x : input_columns(layer, name, x, rows * in, given), of.columns, w);
    if (dx) layer.tape.contribute(x, *dx);
  });
  return y;
}

Id gather_rows(LayerTape& layer, const std::string& name, Id x, std::int64_t columns) {
  const BlockContext& c = layer.context;
  if (c.tensor == 1) return x;
  const Bytes bytes = c.rows * columns * c.width;
  const bool sp = c.sequence_parallel;
  const Id whole = sp ? activation(layer, name + " gathered", c.rows, columns) : x;
  if (sp) tensor_collective(layer, name + " gather", CollectiveKind::all_gather, x, whole, columns, c.width);
  layer.tape.on_backward([=, &layer, &c] {
    const Id dx = layer.tape.gradient(whole);
    if (!sp) return tensor_all_reduce(layer, name + " gradient reduce", dx, bytes, c.width);
    const Id local = activation(layer, name + " reduced gradient", c.local_rows, columns);
    tensor_collective(layer, name + " gradient scatter", CollectiveKind::reduce_scatter, dx, local, columns, c.width);
    layer.tape.contribute(x, local);
  });
  return whole;
}

Id row_parallel(LayerTape& layer, const std::string& name, Id x, std::int64_t in, std::int64_t out,
                const std::string& weight, bool reduce, bool casts_again) {
  const BlockContext& c = layer.context;
  if (c.grid)
    return grid_linear(layer, name, x, in, out / c.tensor, {.name = weight}, c.intermediate_side, c.residual_side);
  const bool sp = c.sequence_parallel && reduce;
  const auto w = tiled_weight(layer, weight, out, in, Cut::columns);
  const auto adapter = adapter_of(layer, name, weight.substr(0, weight.rfind('.')), in, out, Cut::columns, 0);
  const Gemm forward = whole(c.rows, in, out, c.width);
  const Id y = activation(layer, name + " output", c.rows, out);
  const Id local = sp ? activation(layer, name + " scattered output", c.local_rows, out) : y;
  const CastSlots given = input_to_fp8(layer, name, x, c.rows, in, !casts_again);
  const std::vector<Id> reads = with_weight(layer, name, given.rows, w.front(), forward);
  const std::int64_t parts = reduce ? scatter_pieces(layer) : 1;
  const bool sums = parts > 1 && in_symmetric_memory(layer);
  const Id sent = sums ? activation(layer, name + " parts by rank", c.local_rows, out) : local;
  for (std::int64_t i = 0; i < parts; ++i) {
    product(layer, name, piece_of(forward, i, parts, Gemm::Rows::runs), reads, y, w, -1);
    if (adapter) adapt(layer, *adapter, given.rows, y);  // overlap is rejected with LoRA, so `parts` is 1
    if (sp)
      tensor_collective(layer, name + " scatter", CollectiveKind::reduce_scatter, y, sent, out, c.width, i, parts);
  }
  if (sums)
    layer.tape.emit(name + " sum of parts", Cast{c.local_rows * out, c.width, c.width, false, c.tensor},
                    {.reads = {sent}, .writes = {local}});
  if (c.tensor > 1 && !c.sequence_parallel && reduce)
    tensor_all_reduce(layer, name + " reduce", y, c.rows * out * c.width, c.width);
  layer.tape.on_backward([=, &layer, &c] {
    const Id dx = activation(layer, name + " input gradient", c.rows, in);
    const bool late = sp && casts_late(layer), early = sp && !late;
    const Id gradient = layer.tape.gradient(local);
    const Id source = late ? gathered_wide(layer, name + " gradient gather", gradient, out) : gradient;
    const CastSlots of = to_fp8(layer, name + " gradient", source, (early ? c.local_rows : c.rows) * out, !early);
    const Id dy = early ? layer.tape.slot(name + " gathered gradient", c.rows * out * operand_width(layer)) : of.rows;
    over_gathered(
        layer, name + " gradient gather", {of.rows, dy, with_weight(layer, name + " gradient", dy, w.front(), forward)},
        out, forward,
        [&](const Gemm& part, const std::vector<Id>& from) { input_gradients(layer, name, part, from, dx, w); });
    const Id columns = early ? transposed(layer, name + " gathered gradient", dy, c.rows * out) : of.columns;
    if (adapter) {
      const Id dh = hidden_gradient(layer, *adapter, dy);
      adapt_input_gradient(layer, *adapter, dh, dx);
      adapter_gradients(layer, *adapter, x, dy, dh);
    }
    weight_gradients(layer, name, forward, input_columns(layer, name, x, c.rows * in, given), columns, w);
    layer.tape.contribute(x, dx);
  });
  return local;
}

}  // namespace orrery
