// LayerBuilder on a grid of tensor ranks: every matrix is cut by rows and by columns, and parts of two of a product's
// three matrices come to where they are multiplied, or leave it.
//   2d, 2.5d  SUMMA, one of q panels after the other (Xu et al. 2021, Optimus, 2104.05343, algorithms 1 to 3; Wang et
//             al. 2021, Tesseract, 2105.14500): read, a matrix's panel is broadcast along a row or column by the rank
//             that has it; as a result, the parts of all are reduced there. The third matrix stays.
//   3d        each of the three along one axis, all at once (Bian et al. 2021, 2105.14450, algorithms 1 to 3): read, it
//             is all-gathered; as a result reduce-scattered.
// Panel k + 1 is on its way while panel k is multiplied.
#include <utility>

#include "models/layers/layer_builder.h"

namespace orrery {

// One of a product's matrices: this rank's block, in a slot or a weight's buffer, and the group along which it moves.
struct LayerBuilder::GridMatrix {
  std::string name;
  Bytes bytes = 0;  // bytes of the block
  std::optional<Dimension> along = std::nullopt;
  Id slot = 0;
  std::int32_t weight = -1;

  GridMatrix at(const std::string& named, Id where) const { return {named, bytes, along, where, -1}; }
};

// y(rows, out) = x(rows, in) W(out, in)^T in blocks. gemm: the forward product of one panel.
struct LayerBuilder::GridLinear {
  std::string name;
  GridMatrix x, w, y;
  Gemm gemm;
};

// The slot that is multiplied with a panel: the block itself where it stays, else the panel that comes along its group.
LayerBuilder::Id LayerBuilder::panel_of(const GridMatrix& matrix, std::int64_t panel) {
  if (!matrix.along) return matrix.slot;
  const Bytes bytes = matrix.bytes * (c_.cube ? c_.tensor : 1);
  const Id to = tape.slot(matrix.name + " panel", bytes, Category::workspace);
  BlockBuilder::Uses uses = {.writes = {to}};
  if (matrix.weight >= 0)
    uses.weights = {matrix.weight};
  else
    uses.reads = {matrix.slot};
  const Collective work = {.kind = c_.cube ? CollectiveKind::all_gather : CollectiveKind::broadcast,
                           .group = *matrix.along,
                           .bytes = bytes,
                           .width = c_.width,
                           .root = panel};
  tape.emit(matrix.name + (c_.cube ? " gather" : " broadcast"), work, uses, LaneKind::tensor);
  return to;
}

void LayerBuilder::multiply_panels(const GridMatrix& a, const GridMatrix& b, const GridMatrix& result,
                                   const PanelProduct& product) {
  const std::int64_t panels = c_.cube ? 1 : c_.tensor;
  const auto bring = [&](std::int64_t panel) {
    const Id left = panel_of(a, panel);
    return std::pair{left, panel_of(b, panel)};
  };
  auto next = bring(0);
  for (std::int64_t k = 0; k < panels; ++k) {
    const auto [left, right] = next;
    if (k + 1 < panels) next = bring(k + 1);
    if (!result.along) {
      product(k, left, right, result.slot, k == 0);
      continue;
    }
    const Bytes bytes = result.bytes * (c_.cube ? c_.tensor : 1);
    const Id part = tape.slot(result.name + " part", bytes, Category::workspace);
    product(k, left, right, part, true);
    const Collective work = {.kind = c_.cube ? CollectiveKind::reduce_scatter : CollectiveKind::reduce,
                             .group = *result.along,
                             .bytes = bytes,
                             .width = c_.width,
                             .root = k};
    BlockBuilder::Uses uses = {.reads = {part}};
    (k == 0 ? uses.writes : uses.updates) = {result.slot};
    tape.emit(result.name + (c_.cube ? " scatter" : " reduce"), work, uses, LaneKind::tensor);
  }
}

void LayerBuilder::gemm_panels(const std::string& name, const GridMatrix& a, const GridMatrix& b,
                               const GridMatrix& result, const Gemm& gemm) {
  multiply_panels(a, b, result, [&](std::int64_t, Id left, Id right, Id to, bool first) {
    Gemm g = gemm;
    g.result_bytes = c_.width;
    g.accumulate = !first;
    BlockBuilder::Uses uses = {.reads = {left, right}};
    (first ? uses.writes : uses.updates) = {to};
    tape.emit(name, g, uses);
  });
}

// Adds a weight's gradient (this rank's block) to those of the micro-batches before. Without a gemm it is a lookup's: a
// is the tokens and b the gradient of what was looked up.
void LayerBuilder::grid_weight_gradient(const std::string& name, const GridMatrix& a, const GridMatrix& b,
                                        GridMatrix result, const std::optional<Gemm>& gemm) {
  const std::int32_t weight = result.weight;
  const Id fresh = tape.slot(name + " fresh gradient", result.bytes, Category::gradients);
  result = result.at(name + " weight gradient", fresh);
  if (gemm) {
    gemm_panels(name + " weight gradient", a, b, result, *gemm);
  } else {
    const std::int64_t rows = c_.table_rows * (c_.cube ? c_.tensor : 1);
    multiply_panels(a, b, result, [&](std::int64_t k, Id tokens, Id dy, Id to, bool) {
      Embedding back = {c_.rows * (c_.cube ? c_.tensor : 1), c_.hidden, rows, false, Direction::backward, c_.width};
      back.over = c_.inner.columns;
      back.panel = c_.cube ? -1 : k;
      tape.emit(name + " gradient zero", Fill{rows * c_.hidden * c_.width}, {.writes = {to}});
      tape.emit(name + " gradient", back, {.reads = {dy, tokens}, .updates = {to}});
    });
  }
  const Bytes main =
      unit_gradients(c_.spec, c_.sharding) ? c_.width : storage_bytes(c_.spec.strategy.gradient_precision);
  tape.emit(name + " accumulate", Accumulate{result.bytes / c_.width, c_.width, main},
            {.reads = {fresh}, .weight_gradients = {weight}});
}

void LayerBuilder::grid_backward(const GridLinear& l) {
  const Gemm& g = l.gemm;
  const GridMatrix dy = l.y.at(l.name + " output gradient", tape.gradient(l.y.slot));
  const Id dx = tape.slot(l.name + " input gradient", l.x.bytes);
  gemm_panels(l.name + " input gradient", dy, l.w, l.x.at(l.name + " input gradient", dx),
              {.m = g.m, .n = g.k, .k = g.n, .role = Gemm::Role::input_gradient});
  grid_weight_gradient(l.name, l.x, dy, l.w, Gemm{.m = g.n, .n = g.k, .k = g.m, .role = Gemm::Role::weight_gradient});
  tape.contribute(l.x.slot, dx);
}

LayerBuilder::Id LayerBuilder::grid_product(const GridLinear& l) {
  gemm_panels(l.name, l.x, l.w, l.y, l.gemm);
  tape.on_backward([=, this] { grid_backward(l); });
  return l.y.slot;
}

LayerBuilder::Id LayerBuilder::grid_linear(const std::string& name, Id x, std::int64_t in, std::int64_t out,
                                           const ColumnWeight& weight, const Side& from, const Side& to) {
  const std::int64_t local = c_.cube ? out / c_.tensor : out;  // rows of the weight
  const std::string suffix = weight.name.ends_with(".weight") ? "" : ".weight";
  const std::int32_t w = tape.parameter({.name = weight.name + suffix,
                                         .out = local,
                                         .in = in,
                                         .cut = weight.cut,
                                         .over = to.columns,
                                         .columns_over = c_.cube ? from.columns : Dimension::tensor_column,
                                         .cut_in_depth = c_.cube});
  const std::int32_t b = weight.bias ? tape.parameter({.name = weight.name + ".bias",
                                                       .out = out,
                                                       .in = 1,
                                                       .cut = weight.cut,
                                                       .partial = true,
                                                       .over = to.columns})
                                     : -1;
  const Id y = activation(name + " output", c_.rows, out);
  const std::optional<Dimension> stays;
  const Dimension of_weight = c_.cube ? Dimension::tensor_depth : Dimension::tensor_column;
  grid_product({.name = name,
                .x = {name + " input", c_.rows * in * c_.width, c_.cube ? from.rows : from.columns, x, -1},
                .w = {name + " weight", local * in * c_.width, of_weight, 0, w},
                .y = {name + " output", c_.rows * out * c_.width, c_.cube ? std::optional(to.rows) : stays, y, -1},
                .gemm = {.m = c_.rows * (c_.cube ? c_.tensor : 1), .n = out, .k = in}});
  return b < 0 ? y : with_bias(name, y, out, b);
}

LayerBuilder::Id LayerBuilder::with_bias(const std::string& name, Id y, std::int64_t columns, std::int32_t bias) {
  const Id sum = activation(name + " biased", c_.rows, columns);
  const Residual work = {c_.rows, columns, false, true, false, true, Direction::forward, c_.inner};
  tape.emit(name + " bias", work, {.reads = {y}, .writes = {sum}, .weights = {bias}});
  tape.on_backward([=, this] {
    bias_gradient(name, tape.gradient(sum), c_.rows, columns, bias);
    tape.contribute(y, tape.gradient(sum));
  });
  return sum;
}

// A rank's block of the word table.
static LocalParameter grid_table(const BlockContext& c, const std::string& name) {
  return {.name = name,
          .out = c.table_rows,
          .in = c.hidden,
          .cut = Cut::rows,
          .over = Dimension::tensor_column,
          .columns_over = Dimension::tensor_row,
          .cut_in_depth = c.cube};
}

// Logits. The table's blocks (vocabulary, hidden) lie as they are, so that an output tied to the embedding multiplies
// by the transposed matrix (Optimus, algorithm 2): x stays, and the logits' parts are reduced.
LayerBuilder::Id LayerBuilder::grid_logits(const std::string& name, Id x, const std::string& table) {
  const std::int64_t columns = c_.padded_vocab / c_.tensor;
  const std::int32_t w = tape.parameter(grid_table(c_, table));
  const Id y = activation(name + " output", c_.rows, columns);
  const std::optional<Dimension> stays;
  const Dimension of_weight = c_.cube ? Dimension::tensor_depth : Dimension::tensor_column;
  return grid_product(
      {.name = name,
       .x = {name + " input", c_.rows * c_.hidden * c_.width, c_.cube ? std::optional(c_.outer.rows) : stays, x, -1},
       .w = {name + " weight", c_.table_rows * c_.hidden * c_.width, of_weight, 0, w},
       .y = {name + " output", c_.rows * columns * c_.width, Dimension::tensor_row, y, -1},
       .gemm = {.m = c_.rows * (c_.cube ? c_.tensor : 1), .n = columns, .k = c_.hidden}});
}

// A lookup as a product with rows that are all zeros but for a one (Optimus, section 3.2.3): each rank knows the tokens
// of its samples.
LayerBuilder::Id LayerBuilder::grid_embedding(const std::string& name, const std::string& table) {
  const std::int64_t rows = c_.rows * (c_.cube ? c_.tensor : 1), vocab = c_.padded_vocab / c_.tensor;
  const Id tokens = tape.slot("tokens", rows * 8);
  const std::int32_t weight = tape.parameter(grid_table(c_, table));
  tape.emit("tokens", Load{.rows = rows, .side = c_.outer}, {.writes = {tokens}});
  const Id y = activation("embeddings", c_.rows, c_.hidden);
  const Dimension of_table = c_.cube ? Dimension::tensor_depth : Dimension::tensor_column;
  const GridMatrix known = {"tokens", rows * 8, std::nullopt, tokens, -1};
  const GridMatrix words = {name + " table", c_.table_rows * c_.hidden * c_.width, of_table, 0, weight};
  const GridMatrix result = {name, c_.rows * c_.hidden * c_.width,
                             c_.cube ? std::optional(c_.outer.rows) : std::nullopt, y, -1};
  multiply_panels(known, words, result, [&](std::int64_t k, Id a, Id b, Id to, bool first) {
    Embedding work = {.rows = rows, .columns = c_.hidden, .vocab = vocab, .over = c_.inner.columns, .adds = !first};
    work.panel = c_.cube ? -1 : k;
    BlockBuilder::Uses uses = {.reads = {a, b}};
    (first ? uses.writes : uses.updates) = {to};
    tape.emit(name, work, uses);
  });
  tape.on_backward([=, this] {
    grid_weight_gradient(name, known, result.at(name + " output gradient", tape.gradient(y)), words, std::nullopt);
  });
  return y;
}

// A norm of rows that lie in pieces on the ranks that have their columns: moments are summed over these ranks (Optimus,
// section 3.2.2).
LayerBuilder::Id LayerBuilder::grid_norm(const std::string& name, Id x) {
  const bool layernorm = m_.norm == Norm::layernorm;
  std::vector<std::int32_t> weights = {vector(name + ".weight")};
  if (layernorm) weights.push_back(vector(name + ".bias"));
  const Bytes moments = c_.rows * (layernorm ? 8 : 4);
  const auto sum = [=, this](const std::string& of, Id sums) {
    tape.emit(of + " sums reduce", Collective{.group = c_.outer.columns, .bytes = moments, .width = 4},
              {.updates = {sums}}, LaneKind::tensor);
  };
  const auto work = [=, this](Direction direction, Normalize::Part part) {
    return Normalize{c_.rows, c_.hidden, layernorm, c_.spec.software.fused_norm, direction, part, c_.tensor};
  };
  const Id y = activation(name + " output", c_.rows, c_.hidden), statistics = tape.slot("statistics", moments);
  tape.emit(name + " sums", work(Direction::forward, Normalize::Part::sums), {.reads = {x}, .writes = {statistics}});
  sum(name, statistics);
  tape.emit(name, work(Direction::forward, Normalize::Part::finish),
            {.reads = {x}, .writes = {y}, .updates = {statistics}, .weights = weights});
  tape.on_backward([=, this] {
    const Id sums = tape.slot("gradient sums", moments), dx = activation(name + " input gradient", c_.rows, c_.hidden);
    const std::vector<Id> reads = {x, statistics, tape.gradient(y)};
    tape.emit(name + " gradient sums", work(Direction::backward, Normalize::Part::sums),
              {.reads = reads, .writes = {sums}, .weights = {weights.front()}, .weight_gradients = weights});
    sum(name + " gradient", sums);
    tape.emit(name + " gradient", work(Direction::backward, Normalize::Part::finish),
              {.reads = {x, statistics, tape.gradient(y), sums}, .writes = {dx}, .weights = {weights.front()}});
    tape.contribute(x, dx);
  });
  return y;
}

}  // namespace orrery
