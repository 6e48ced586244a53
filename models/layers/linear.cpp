// The linear layers of LayerBuilder: products cut by columns or rows over the tensor group, with the collectives and
// the casts to fp8 that stand around them.
#include <fmt/format.h>

#include "models/base/error.h"
#include "models/layers/layer_builder.h"

namespace orrery {
namespace {

Gemm whole(std::int64_t rows, std::int64_t in, std::int64_t out, Bytes width) {
  return {.m = rows, .n = out, .k = in, .result_bytes = width};
}

// Transformer Engine's user buffers cut a product whose result is scattered into this many pieces by default
// (initialize_ub: "pipeline", num_splits 4).
constexpr std::int64_t kScatterPieces = 4;

Gemm with_rows(Gemm product, std::int64_t count, Gemm::Rows rows) {
  product.m = count;
  product.rows = rows;
  return product;
}

// One piece of a product: an equal part of its rows. Pieces run on streams of their own (_NUM_MAX_UB_STREAMS), so that
// one fills what the last wave of another leaves idle.
Gemm piece_of(Gemm forward, std::int64_t piece, std::int64_t parts, Gemm::Rows rows) {
  if (parts == 1) return forward;
  forward.m /= parts;
  forward.pieces = parts;
  forward.piece = piece;
  forward.rows = rows;
  return forward;
}

}  // namespace

void LayerBuilder::tensor_collective(const std::string& name, CollectiveKind kind, Id from, Id to, std::int64_t columns,
                                     Bytes width, std::int64_t piece, std::int64_t parts) {
  Collective work = {kind, Dimension::tensor, c_.rows * columns * width / parts, width};
  work.first = piece * (c_.rows * columns / parts);
  if (parts > 1) work.algorithm = kUserBuffers;
  const bool copies = c_.spec.software.sequence_copies && !overlaps_, gathers = kind == CollectiveKind::all_gather;
  const Id aside = copies ? tape.slot(name + (gathers ? " arrived" : " by rank"), work.bytes) : gathers ? to : from;
  const auto copy = [&](Id source, Id result) {
    tape.emit(name + " copy", Cast{c_.rows * columns, width, width}, {.reads = {source}, .writes = {result}});
  };
  if (copies && !gathers) copy(from, aside);
  tape.emit(name, work, {.reads = {gathers ? from : aside}, .writes = {gathers ? aside : to}}, LaneKind::tensor);
  if (copies && gathers) copy(aside, to);
}

// A product over all rows, of which every tensor rank has a part. Where communication overlaps, the parts go round the
// ring, copied by copy engines, while the product of the part before runs, first the rank's own part (initialize_ub:
// "ring_exchange"). With own_rows_first the rank's own rows are multiplied while the others' rows come, then the rows
// of ranks before it and behind it: the group waits for a rank in its middle, which has both.
void LayerBuilder::over_gathered(const std::string& name, const GatheredRows& rows, std::int64_t columns,
                                 const Gemm& forward, const Product& product) {
  const Bytes width = operand_width();
  std::vector<Id> own = rows.reads, others = rows.reads;
  own.front() = rows.own;
  if (rows.own == rows.all) return product(forward, others);
  if (overlaps_) {
    product(piece_of(forward, 0, c_.tensor, Gemm::Rows::member), own);
    for (std::int64_t i = 1; i < c_.tensor; ++i) {
      Collective step = {CollectiveKind::shift, Dimension::tensor, c_.local_rows * columns * width, width};
      step.first = i * c_.local_rows * columns;
      step.algorithm = kCopyEngines;
      tape.emit(name, step, {.reads = {rows.own}, .writes = {rows.all}}, LaneKind::tensor);
      product(piece_of(forward, i, c_.tensor, Gemm::Rows::member), others);
    }
    return;
  }
  tensor_collective(name, CollectiveKind::all_gather, rows.own, rows.all, columns, width);
  if (!c_.spec.software.own_rows_first) return product(forward, others);
  product(with_rows(forward, c_.local_rows, Gemm::Rows::member), own);
  others.push_back(rows.own);  // the gather may read this slot until these products begin
  if (c_.tensor == 2) return product(with_rows(forward, c_.local_rows, Gemm::Rows::others), others);
  const std::int64_t before = c_.tensor / 2, behind = c_.tensor - 1 - before;
  product(with_rows(forward, before * c_.local_rows, Gemm::Rows::before), others);
  product(with_rows(forward, behind * c_.local_rows, Gemm::Rows::behind), others);
}

LayerBuilder::Operands LayerBuilder::to_fp8(const std::string& name, Id x, std::int64_t elements, bool transpose) {
  if (!eight_bit_) return {x, x};
  const Id rows = tape.slot(name + " in fp8", elements);
  BlockBuilder::Uses uses = {.reads = {x}, .writes = {rows}};
  if (transpose) uses.writes.push_back(tape.slot(name + " in fp8, transposed", elements));
  tape.emit(name + " to fp8", Cast{elements, c_.width, 1, transpose}, uses);
  return {rows, uses.writes.back()};
}

// The fp8 input of a product and, later, of its weight gradient: the transposed copy is kept, or cast anew.
LayerBuilder::Operands LayerBuilder::input_to_fp8(const std::string& name, Id x, std::int64_t elements, bool keep) {
  return to_fp8(name + " input", x, elements, keep && !c_.spec.software.casts_again);
}

LayerBuilder::Id LayerBuilder::input_columns(const std::string& name, Id x, std::int64_t elements,
                                             const Operands& given) {
  if (!eight_bit_ || given.columns != given.rows) return given.columns;
  return to_fp8(name + " input again", x, elements, true).columns;
}

LayerBuilder::Id LayerBuilder::transposed(const std::string& name, Id x, std::int64_t elements) {
  if (!eight_bit_) return x;
  const Id y = tape.slot(name + " transposed", elements);
  tape.emit(name + " transpose", Cast{elements, 1, 1}, {.reads = {x}, .writes = {y}});
  return y;
}

// Slots that a product reads besides its weight parameter. Gathered weights are cast before each use, others once a
// step (emit.cpp).
std::vector<LayerBuilder::Id> LayerBuilder::with_weight(const std::string& name, Id x, std::int32_t weight,
                                                        const Gemm& forward) {
  if (!eight_bit_ || !c_.sharding.shards_parameters) return {x};
  const std::int64_t elements = forward.n * forward.k;
  const Id cast = tape.slot(name + " weight in fp8", elements);
  tape.emit(name + " weight to fp8", Cast{elements, c_.width, 1}, {.writes = {cast}, .weights = {weight}});
  return {x, cast};
}

std::vector<std::int32_t> LayerBuilder::tiled_weight(const std::string& name, std::int64_t out, std::int64_t in,
                                                     Cut cut) {
  if (out % tiles_ != 0)
    throw Error(fmt::format("strategy.offload.tiling: {} does not divide the {} outputs of {}", tiles_, out, name));
  return tape.tiled_parameter(name, out, in, cut, tiles_);
}

// Uses of a tile's product: the first tile writes a result that the other tiles add to.
static BlockBuilder::Uses tile_uses(const std::vector<BlockBuilder::Id>& reads, BlockBuilder::Id result, bool first,
                                    std::vector<std::int32_t> weights) {
  BlockBuilder::Uses uses = {.reads = reads, .weights = std::move(weights)};
  (first ? uses.writes : uses.updates) = {result};
  return uses;
}

void LayerBuilder::product(const std::string& name, const Gemm& forward, const std::vector<Id>& reads, Id y,
                           const std::vector<std::int32_t>& weights, std::int32_t bias) {
  Gemm g = forward;
  g.tiles = static_cast<std::int64_t>(weights.size());
  g.n /= g.tiles;
  for (g.tile = 0; g.tile < g.tiles; ++g.tile) {
    const std::int32_t w = weights[g.tile];
    tape.emit(name, g, tile_uses(reads, y, g.tile == 0, bias >= 0 ? std::vector{w, bias} : std::vector{w}));
  }
}

void LayerBuilder::input_gradients(const std::string& name, const Gemm& forward, const std::vector<Id>& reads, Id dx,
                                   const std::vector<std::int32_t>& weights) {
  Gemm g = {.m = forward.m,
            .n = forward.k,
            .k = forward.n,
            .role = Gemm::Role::input_gradient,
            .result_bytes = forward.result_bytes,
            .pieces = forward.pieces,
            .piece = forward.piece,
            .rows = forward.rows};
  g.tiles = static_cast<std::int64_t>(weights.size());
  g.k /= g.tiles;
  for (g.tile = 0; g.tile < g.tiles; ++g.tile) {
    g.accumulate = g.tile > 0;
    tape.emit(name + " input gradient", g, tile_uses(reads, dx, g.tile == 0, {weights[g.tile]}));
  }
}

void LayerBuilder::weight_gradients(const std::string& name, const Gemm& forward, Id x, Id dy,
                                    const std::vector<std::int32_t>& weights) {
  Gemm g = forward;
  g.tiles = static_cast<std::int64_t>(weights.size());
  g.n /= g.tiles;
  for (g.tile = 0; g.tile < g.tiles; ++g.tile) weight_gradient(name, g, x, dy, weights[g.tile]);
}

void LayerBuilder::weight_gradient(const std::string& name, const Gemm& forward, Id x, Id dy, std::int32_t weight) {
  const Bytes main = storage_bytes(c_.spec.strategy.gradient_precision);
  // A unit's gradient lives for one micro-batch, as wide as its weights: no earlier sum is there to add to.
  const bool fresh_unit = unit_gradients(c_.spec, c_.sharding);
  const bool fused = fresh_unit || c_.spec.software.gradient_accumulation_fusion;
  Gemm gemm = {.m = forward.n, .n = forward.k, .k = forward.m, .role = Gemm::Role::weight_gradient};
  gemm.tile = forward.tile;
  gemm.tiles = forward.tiles;
  gemm.accumulate = fused && !fresh_unit;
  gemm.result_bytes = fused && !fresh_unit ? main : c_.width;
  if (fused) {
    BlockBuilder::Uses uses = {.reads = {x, dy}, .weight_gradients = {weight}};
    // Megatron-Core tensor_parallel/layers.py: the dummy gradient that its own linear layer hands autograd is made anew
    // each time.
    if (dummy_gradients_ && !fresh_unit)
      uses.writes = {tape.slot("dummy gradient", forward.n * forward.k * c_.width, Category::buffers)};
    tape.emit(name + " weight gradient", gemm, uses);
    return;
  }
  const std::int64_t elements = forward.n * forward.k;
  const Id fresh = tape.slot(name + " fresh gradient", elements * c_.width, Category::gradients);
  tape.emit(name + " weight gradient", gemm, {.reads = {x, dy}, .writes = {fresh}});
  tape.emit(name + " accumulate", Accumulate{elements, c_.width, main},
            {.reads = {fresh}, .weight_gradients = {weight}});
}

LayerBuilder::Id LayerBuilder::column_parallel(const std::string& name, Id x, std::int64_t in, std::int64_t out,
                                               const ColumnWeight& weight) {
  if (c_.grid) return grid_linear(name, x, in / c_.tensor, out, weight, c_.outer, c_.inner);
  const bool sp = c_.sequence_parallel;
  const std::string& n = weight.name;
  // Key/value rows that other ranks hold too stay together in one parameter.
  const bool whole_weight = weight.kv_rows > 0 || weight.over != Dimension::tensor;
  const auto w = whole_weight ? std::vector{tape.parameter({.name = n + ".weight",
                                                            .out = out,
                                                            .in = in,
                                                            .cut = weight.cut,
                                                            .kv_rows = weight.kv_rows,
                                                            .over = weight.over})}
                              : tiled_weight(n + ".weight", out, in, weight.cut);
  const auto b = weight.bias ? tape.parameter(n + ".bias", out, 1, weight.cut, false, weight.kv_rows) : -1;
  const Gemm forward = whole(c_.rows, in, out, c_.width);
  const Id y = activation(name + " output", c_.rows, out);
  const Operands given = input_to_fp8(name, x, (sp ? c_.local_rows : c_.rows) * in, !sp);
  const Id gathered = sp ? tape.slot(name + " gathered input", c_.rows * in * operand_width()) : given.rows;
  over_gathered(name + " gather", {given.rows, gathered, with_weight(name, gathered, w.front(), forward)}, in, forward,
                [&](const Gemm& part, const std::vector<Id>& reads) { product(name, part, reads, y, w, b); });
  tape.on_backward([=, this] {
    const Id dy = tape.gradient(y);
    const Id input = sp ? gathered_again(name, given.rows, gathered, in) : input_columns(name, x, c_.rows * in, given);
    const Operands of = to_fp8(name + " gradient", dy, c_.rows * out, true);
    const auto of_weights = [&] {
      if (b >= 0) bias_gradient(name, dy, c_.rows, out, b);
      weight_gradients(name, forward, input, of.columns, w);
    };
    if (!weight.input_gradient) return of_weights();
    const std::vector<Id> back = with_weight(name + " gradient", of.rows, w.front(), forward);
    const Id dx = activation(name + " input gradient", c_.rows, in);
    const Id local = sp ? activation(name + " reduced gradient", c_.local_rows, in) : dx;
    const bool overlaps = c_.spec.software.tensor_reduce_overlaps_wgrad;
    const auto scatter = [&] {
      tensor_collective(name + " gradient scatter", CollectiveKind::reduce_scatter, dx, local, in, c_.width);
    };
    // A collective waits for all work that its stream was given before it (ProcessGroupNCCL.cpp, syncStream): called
    // after the weight gradient, it begins after that gradient, though it does not read it.
    const bool waits = !overlaps && c_.tensor > 1;
    if (waits) of_weights();
    input_gradients(name, forward, back, dx, w);
    if (overlaps && sp) scatter();
    if (c_.tensor > 1 && !sp) tensor_all_reduce(name + " gradient reduce", dx, c_.rows * in * c_.width, c_.width);
    if (!overlaps && sp) scatter();
    if (!waits) of_weights();
    tape.contribute(x, local);
  });
  return y;
}

LayerBuilder::Id LayerBuilder::replicated(const std::string& name, Id x, std::int64_t in, std::int64_t out,
                                          const ColumnWeight& weight) {
  const std::int64_t rows = c_.local_rows;
  const bool partial = c_.sequence_parallel;
  const auto w = tape.parameter(weight.name + ".weight", out, in, Cut::none, partial);
  const auto b = weight.bias ? tape.parameter(weight.name + ".bias", out, 1, Cut::none, partial) : -1;
  const Gemm forward = whole(rows, in, out, c_.width);
  const Id y = activation(name + " output", rows, out);
  const bool wide = weight.wide;
  const Operands given = wide ? Operands{x, x} : input_to_fp8(name, x, rows * in, true);
  const std::vector<Id> reads = wide ? std::vector{x} : with_weight(name, given.rows, w, forward);
  tape.emit(name, forward, {.reads = reads, .writes = {y}, .weights = b >= 0 ? std::vector{w, b} : std::vector{w}});
  tape.on_backward([=, this] {
    const Id dy = tape.gradient(y);
    const Operands of = wide ? Operands{dy, dy} : to_fp8(name + " gradient", dy, rows * out, true);
    const std::vector<Id> back = wide ? std::vector{dy} : with_weight(name + " gradient", of.rows, w, forward);
    const Id dx = activation(name + " input gradient", rows, in);
    input_gradients(name, forward, back, dx, {w});
    if (b >= 0) bias_gradient(name, dy, rows, out, b);
    weight_gradient(name, forward, wide ? x : input_columns(name, x, rows * in, given), of.columns, w);
    tape.contribute(x, dx);
  });
  return y;
}

LayerBuilder::Id LayerBuilder::gather_rows(const std::string& name, Id x, std::int64_t columns) {
  if (c_.tensor == 1) return x;
  const Bytes bytes = c_.rows * columns * c_.width;
  const bool sp = c_.sequence_parallel;
  const Id whole = sp ? activation(name + " gathered", c_.rows, columns) : x;
  if (sp) tensor_collective(name + " gather", CollectiveKind::all_gather, x, whole, columns, c_.width);
  tape.on_backward([=, this] {
    const Id dx = tape.gradient(whole);
    if (!sp) return tensor_all_reduce(name + " gradient reduce", dx, bytes, c_.width);
    const Id local = activation(name + " reduced gradient", c_.local_rows, columns);
    tensor_collective(name + " gradient scatter", CollectiveKind::reduce_scatter, dx, local, columns, c_.width);
    tape.contribute(x, local);
  });
  return whole;
}

// The input of a weight gradient under sequence parallelism: the rows that forward gathered, or the same gathered anew.
LayerBuilder::Id LayerBuilder::gathered_again(const std::string& name, Id local, Id gathered, std::int64_t in) {
  if (!c_.spec.software.regather_input) return transposed(name + " gathered input", gathered, c_.rows * in);
  const Bytes bytes = c_.rows * in * operand_width();
  const Id whole = tape.slot(name + " regathered input", bytes);
  tape.emit(name + " regather", Collective{CollectiveKind::all_gather, Dimension::tensor, bytes, operand_width()},
            {.reads = {local}, .writes = {whole}}, LaneKind::tensor);
  return transposed(name + " regathered input", whole, c_.rows * in);
}

LayerBuilder::Id LayerBuilder::row_parallel(const std::string& name, Id x, std::int64_t in, std::int64_t out,
                                            const std::string& weight, bool reduce, bool casts_again) {
  if (c_.grid) return grid_linear(name, x, in, out / c_.tensor, {.name = weight}, c_.inner, c_.outer);
  const bool sp = c_.sequence_parallel && reduce;
  const auto w = tiled_weight(weight, out, in, Cut::columns);
  const Gemm forward = whole(c_.rows, in, out, c_.width);
  const Id y = activation(name + " output", c_.rows, out);
  const Id local = sp ? activation(name + " scattered output", c_.local_rows, out) : y;
  const Operands given = input_to_fp8(name, x, c_.rows * in, !casts_again);
  const std::vector<Id> reads = with_weight(name, given.rows, w.front(), forward);
  const std::int64_t parts = overlaps_ && reduce && c_.local_rows % kScatterPieces == 0 ? kScatterPieces : 1;
  for (std::int64_t i = 0; i < parts; ++i) {
    product(name, piece_of(forward, i, parts, Gemm::Rows::runs), reads, y, w, -1);
    if (sp) tensor_collective(name + " scatter", CollectiveKind::reduce_scatter, y, local, out, c_.width, i, parts);
  }
  if (c_.tensor > 1 && !c_.sequence_parallel && reduce)
    tensor_all_reduce(name + " reduce", y, c_.rows * out * c_.width, c_.width);
  tape.on_backward([=, this] {
    const Id dx = activation(name + " input gradient", c_.rows, in);
    const Operands of = to_fp8(name + " gradient", tape.gradient(local), (sp ? c_.local_rows : c_.rows) * out, !sp);
    const Id dy = sp ? tape.slot(name + " gathered gradient", c_.rows * out * operand_width()) : of.rows;
    over_gathered(name + " gradient gather", {of.rows, dy, with_weight(name + " gradient", dy, w.front(), forward)},
                  out, forward,
                  [&](const Gemm& part, const std::vector<Id>& from) { input_gradients(name, part, from, dx, w); });
    const Id columns = sp ? transposed(name + " gathered gradient", dy, c_.rows * out) : of.columns;
    weight_gradients(name, forward, input_columns(name, x, c_.rows * in, given), columns, w);
    tape.contribute(x, dx);
  });
  return local;
}

}  // namespace orrery
