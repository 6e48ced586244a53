// This file records linear layers on a grid of tensor ranks: every matrix is cut by rows and by columns. The matrices
// of a product (two inputs, one result) are communicated: an input is broadcast or gathered before the product, a
// result is reduced after it.
//   2d, 2.5d  SUMMA, one of q panels after the other (Xu et al. 2021, Optimus, 2104.05343, algorithms 1 to 3; Wang et
//             al. 2021, Tesseract, 2105.14500): an input's panel is broadcast along a row or column by the rank that
//             has it; the partial results of all ranks of a row or column are reduced. One of the product's three
//             matrices is not communicated.
//   3d        each of the three matrices is communicated along one axis of the cube, in one collective (Bian et al.
//             2021, 2105.14450, algorithms 1 to 3): an input is all-gathered, a result reduce-scattered.
// The transfer of panel k + 1 overlaps with the product of panel k.
#include "models/layers/grid_linear.h"

#include <functional>
#include <optional>
#include <utility>

#include "models/layers/layer_parts.h"
#include "models/layers/linear.h"

namespace orrery {
namespace {

// A function that records the product of a panel of matrix `a` and a panel of matrix `b`, written into the buffer `to`.
// first: this product overwrites the buffer; the products of later panels are added to it.
using PanelProduct = std::function<void(std::int64_t panel, Id a, Id b, Id to, bool first)>;

// This rank's block of one matrix of a product: the buffer (`slot`) or the weight parameter (`weight`) that holds the
// block, and the group of ranks over which it is communicated (`along`; nothing if it is not communicated).
struct GridMatrix {
  std::string name;
  Bytes bytes = 0;  // number of bytes of the block
  std::optional<Dimension> along = std::nullopt;
  Id slot = 0;
  std::int32_t weight = -1;

  GridMatrix at(const std::string& named, Id where) const { return {named, bytes, along, where, -1}; }
};

// The linear layer y(rows, out) = x(rows, in) W(out, in)^T, with all three matrices cut into blocks over the grid.
// gemm: the forward product of one panel.
struct GridLinear {
  std::string name;
  GridMatrix x, w, y;
  Gemm gemm;
};

}  // namespace

// Returns the buffer with one panel (block of rows or columns) of a matrix, which a partial product of SUMMA reads: the
// rank's own block if the matrix is not communicated, else the panel that the rank receives by a broadcast or
// all-gather within the group along which the matrix is communicated.
static Id panel_of(LayerTape& layer, const GridMatrix& matrix, std::int64_t panel) {
  const BlockContext& c = layer.context;
  if (!matrix.along) return matrix.slot;
  const Bytes bytes = matrix.bytes * (c.cube ? c.tensor : 1);
  const Id to = layer.tape.slot(matrix.name + " panel", bytes, Category::workspace);
  BlockBuilder::Uses uses = {.writes = {to}};
  if (matrix.weight >= 0)
    uses.weights = {matrix.weight};
  else
    uses.reads = {matrix.slot};
  const Collective work = {.kind = c.cube ? CollectiveKind::all_gather : CollectiveKind::broadcast,
                           .group = *matrix.along,
                           .bytes = bytes,
                           .width = c.width,
                           .root = panel};
  layer.tape.emit(matrix.name + (c.cube ? " gather" : " broadcast"), work, uses, LaneKind::tensor);
  return to;
}

static void multiply_panels(LayerTape& layer, const GridMatrix& a, const GridMatrix& b, const GridMatrix& result,
                            const PanelProduct& product) {
  const BlockContext& c = layer.context;
  const std::int64_t panels = c.cube ? 1 : c.tensor;
  const auto bring = [&](std::int64_t panel) {
    const Id left = panel_of(layer, a, panel);
    return std::pair{left, panel_of(layer, b, panel)};
  };
  auto next = bring(0);
  for (std::int64_t k = 0; k < panels; ++k) {
    const auto [left, right] = next;
    if (k + 1 < panels) next = bring(k + 1);
    if (!result.along) {
      product(k, left, right, result.slot, k == 0);
      continue;
    }
    const Bytes bytes = result.bytes * (c.cube ? c.tensor : 1);
    const Id part = layer.tape.slot(result.name + " part", bytes, Category::workspace);
    product(k, left, right, part, true);
    const Collective work = {.kind = c.cube ? CollectiveKind::reduce_scatter : CollectiveKind::reduce,
                             .group = *result.along,
                             .bytes = bytes,
                             .width = c.width,
                             .root = k};
    BlockBuilder::Uses uses = {.reads = {part}};
    (k == 0 ? uses.writes : uses.updates) = {result.slot};
    layer.tape.emit(result.name + (c.cube ? " scatter" : " reduce"), work, uses, LaneKind::tensor);
  }
}

static void gemm_panels(LayerTape& layer, const std::string& name, const GridMatrix& a, const GridMatrix& b,
                        const GridMatrix& result, const Gemm& gemm) {
  multiply_panels(layer, a, b, result, [&](std::int64_t, Id left, Id right, Id to, bool first) {
    Gemm g = gemm;
    g.result_bytes = layer.context.width;
    g.accumulate = !first;
    BlockBuilder::Uses uses = {.reads = {left, right}};
    (first ? uses.writes : uses.updates) = {to};
    layer.tape.emit(name, g, uses);
  });
}

// Records the addition of this rank's block of a weight's gradient to the sum over earlier micro-batches. Without
// `gemm` the weight is an embedding table; then `a` has the tokens, and `b` the gradient of the looked-up rows.
static void grid_weight_gradient(LayerTape& layer, const std::string& name, const GridMatrix& a, const GridMatrix& b,
                                 GridMatrix result, const std::optional<Gemm>& gemm) {
  const BlockContext& c = layer.context;
  const std::int32_t weight = result.weight;
  const Id fresh = layer.tape.slot(name + " fresh gradient", result.bytes, Category::gradients);
  result = result.at(name + " weight gradient", fresh);
  if (gemm) {
    gemm_panels(layer, name + " weight gradient", a, b, result, *gemm);
  } else {
    const std::int64_t rows = c.table_rows * (c.cube ? c.tensor : 1);
    multiply_panels(layer, a, b, result, [&](std::int64_t k, Id tokens, Id dy, Id to, bool) {
      Embedding back = {c.rows * (c.cube ? c.tensor : 1), c.hidden, rows, false, Direction::backward, c.width};
      back.over = c.intermediate_side.columns;
      back.panel = c.cube ? -1 : k;
      layer.tape.emit(name + " gradient zero", Fill{rows * c.hidden * c.width}, {.writes = {to}});
      layer.tape.emit(name + " gradient", back, {.reads = {dy, tokens}, .updates = {to}});
    });
  }
  const Bytes main = fresh_gradients(c.spec, c.sharding) ? c.width : storage_bytes(c.spec.strategy.gradient_precision);
  layer.tape.emit(name + " accumulate", Accumulate{result.bytes / c.width, c.width, main},
                  {.reads = {fresh}, .weight_gradients = {weight}});
}

static void grid_backward(LayerTape& layer, const GridLinear& l) {
  const Gemm& g = l.gemm;
  const GridMatrix dy = l.y.at(l.name + " output gradient", layer.tape.gradient(l.y.slot));
  const Id dx = layer.tape.slot(l.name + " input gradient", l.x.bytes);
  gemm_panels(layer, l.name + " input gradient", dy, l.w, l.x.at(l.name + " input gradient", dx),
              {.m = g.m, .n = g.k, .k = g.n, .role = Gemm::Role::input_gradient});
  grid_weight_gradient(layer, l.name, l.x, dy, l.w,
                       Gemm{.m = g.n, .n = g.k, .k = g.m, .role = Gemm::Role::weight_gradient});
  layer.tape.contribute(l.x.slot, dx);
}

static Id grid_product(LayerTape& layer, const GridLinear& l) {
  gemm_panels(layer, l.name, l.x, l.w, l.y, l.gemm);
  layer.tape.on_backward([=, &layer] { grid_backward(layer, l); });
  return l.y.slot;
}

static Id with_bias(LayerTape& layer, const std::string& name, Id y, std::int64_t columns, std::int32_t bias) {
  const BlockContext& c = layer.context;
  const Id sum = activation(layer, name + " biased", c.rows, columns);
  const Residual work = {c.rows, columns, false, true, false, true, Direction::forward, c.intermediate_side};
  layer.tape.emit(name + " bias", work, {.reads = {y}, .writes = {sum}, .weights = {bias}});
  layer.tape.on_backward([=, &layer, &c] {
    bias_gradient(layer, name, layer.tape.gradient(sum), c.rows, columns, bias);
    layer.tape.contribute(y, layer.tape.gradient(sum));
  });
  return sum;
}

Id grid_linear(LayerTape& layer, const std::string& name, Id x, std::int64_t in, std::int64_t out,
               const ColumnWeight& weight, const Side& from, const Side& to) {
  const BlockContext& c = layer.context;
  const std::int64_t local = c.cube ? out / c.tensor : out;  // number of rows of the weight on this rank
  const std::string suffix = weight.name.ends_with(".weight") ? "" : ".weight";
  const std::int32_t w = layer.tape.parameter({.name = weight.name + suffix,
                                               .out = local,
                                               .in = in,
                                               .cut = weight.cut,
                                               .kv_rows = weight.kv_rows,
                                               .over = to.columns,
                                               .columns_over = c.cube ? from.columns : Dimension::tensor_column,
                                               .cut_in_depth = c.cube});
  const std::int32_t b = weight.bias ? layer.tape.parameter({.name = weight.name + ".bias",
                                                             .out = out,
                                                             .in = 1,
                                                             .cut = weight.cut,
                                                             .partial = true,
                                                             .kv_rows = weight.kv_rows,
                                                             .over = to.columns})
                                     : -1;
  const Id y = activation(layer, name + " output", c.rows, out);
  const std::optional<Dimension> stays;
  const Dimension of_weight = c.cube ? Dimension::tensor_depth : Dimension::tensor_column;
  grid_product(layer, {.name = name,
                       .x = {name + " input", c.rows * in * c.width, c.cube ? from.rows : from.columns, x, -1},
                       .w = {name + " weight", local * in * c.width, of_weight, 0, w},
                       .y = {name + " output", c.rows * out * c.width, c.cube ? std::optional(to.rows) : stays, y, -1},
                       .gemm = {.m = c.rows * (c.cube ? c.tensor : 1), .n = out, .k = in}});
  return b < 0 ? y : with_bias(layer, name, y, out, b);
}

// Returns the block of the embedding table, cut by rows and columns over the grid, that one rank holds.
static LocalParameter grid_table(const BlockContext& c, const std::string& name) {
  return {.name = name,
          .out = c.table_rows,
          .in = c.hidden,
          .cut = Cut::rows,
          .over = Dimension::tensor_column,
          .columns_over = Dimension::tensor_row,
          .cut_in_depth = c.cube};
}

Id grid_logits(LayerTape& layer, const std::string& name, Id x, const std::string& table) {
  const BlockContext& c = layer.context;
  const std::int64_t columns = c.padded_vocab / c.tensor;
  const std::int32_t w = layer.tape.parameter(grid_table(c, table));
  const Id y = activation(layer, name + " output", c.rows, columns);
  const std::optional<Dimension> stays;
  const Dimension of_weight = c.cube ? Dimension::tensor_depth : Dimension::tensor_column;
  return grid_product(layer, {.name = name,
                              .x = {name + " input", c.rows * c.hidden * c.width,
                                    c.cube ? std::optional(c.residual_side.rows) : stays, x, -1},
                              .w = {name + " weight", c.table_rows * c.hidden * c.width, of_weight, 0, w},
                              .y = {name + " output", c.rows * columns * c.width, Dimension::tensor_row, y, -1},
                              .gemm = {.m = c.rows * (c.cube ? c.tensor : 1), .n = columns, .k = c.hidden}});
}

// Records an embedding lookup on a grid of tensor ranks as a product with one-hot rows (Optimus, section 3.2.3), for
// which each rank knows the tokens of its samples.
Id grid_embedding(LayerTape& layer, const std::string& name, const std::string& table) {
  const BlockContext& c = layer.context;
  const std::int64_t rows = c.rows * (c.cube ? c.tensor : 1), vocab = c.padded_vocab / c.tensor;
  const Id tokens = layer.tape.slot("tokens", rows * 8);
  const std::int32_t weight = layer.tape.parameter(grid_table(c, table));
  layer.tape.emit("tokens", Load{.rows = rows, .side = c.residual_side}, {.writes = {tokens}});
  const Id y = activation(layer, "embeddings", c.rows, c.hidden);
  const Dimension of_table = c.cube ? Dimension::tensor_depth : Dimension::tensor_column;
  const GridMatrix known = {"tokens", rows * 8, std::nullopt, tokens, -1};
  const GridMatrix own_table = {name + " table", c.table_rows * c.hidden * c.width, of_table, 0, weight};
  const GridMatrix result = {name, c.rows * c.hidden * c.width,
                             c.cube ? std::optional(c.residual_side.rows) : std::nullopt, y, -1};
  multiply_panels(layer, known, own_table, result, [&](std::int64_t k, Id a, Id b, Id to, bool first) {
    Embedding work = {
        .rows = rows, .columns = c.hidden, .vocab = vocab, .over = c.intermediate_side.columns, .adds = !first};
    work.panel = c.cube ? -1 : k;
    BlockBuilder::Uses uses = {.reads = {a, b}};
    (first ? uses.writes : uses.updates) = {to};
    layer.tape.emit(name, work, uses);
  });
  layer.tape.on_backward([=, &layer] {
    grid_weight_gradient(layer, name, known, result.at(name + " output gradient", layer.tape.gradient(y)), own_table,
                         std::nullopt);
  });
  return y;
}

Id grid_norm(LayerTape& layer, const std::string& name, Id x) {
  const BlockContext& c = layer.context;
  const bool layernorm = layer.model.norm == Norm::layernorm;
  std::vector<std::int32_t> weights;
  if (layer.model.norm_weight) weights = {vector_parameter(layer, name + ".weight")};
  const std::vector<std::int32_t> factors = weights;
  if (layernorm && layer.model.norm_bias) weights.push_back(vector_parameter(layer, name + ".bias"));
  const Bytes moments = c.rows * (layernorm ? 8 : 4);
  const auto sum = [=, &layer, &c](const std::string& of, Id sums) {
    layer.tape.emit(of + " sums reduce", Collective{.group = c.residual_side.columns, .bytes = moments, .width = 4},
                    {.updates = {sums}}, LaneKind::tensor);
  };
  const auto work = [=, &c](Direction direction, Normalize::Part part) {
    return Normalize{c.rows, c.hidden, layernorm, c.spec.software.kernels.fused_norm, direction, part, c.tensor};
  };
  const Id y = activation(layer, name + " output", c.rows, c.hidden),
           statistics = layer.tape.slot("statistics", moments);
  layer.tape.emit(name + " sums", work(Direction::forward, Normalize::Part::sums),
                  {.reads = {x}, .writes = {statistics}});
  sum(name, statistics);
  layer.tape.emit(name, work(Direction::forward, Normalize::Part::finish),
                  {.reads = {x}, .writes = {y}, .updates = {statistics}, .weights = weights});
  layer.tape.on_backward([=, &layer, &c] {
    const Id sums = layer.tape.slot("gradient sums", moments),
             dx = activation(layer, name + " input gradient", c.rows, c.hidden);
    const std::vector<Id> reads = {x, statistics, layer.tape.gradient(y)};
    layer.tape.emit(name + " gradient sums", work(Direction::backward, Normalize::Part::sums),
                    {.reads = reads, .writes = {sums}, .weights = factors, .weight_gradients = weights});
    sum(name + " gradient", sums);
    layer.tape.emit(name + " gradient", work(Direction::backward, Normalize::Part::finish),
                    {.reads = {x, statistics, layer.tape.gradient(y), sums}, .writes = {dx}, .weights = factors});
    layer.tape.contribute(x, dx);
  });
  return y;
}

}  // namespace orrery
