#include "models/layers/recurrence.h"

#include "models/layers/linear.h"

namespace orrery {
namespace {

// A recurrence on one tensor rank: its sizes, its row in the table of recurrence rules, and the buffer of its
// projection.
struct Recurring {
  Recurrence own;  // the recurrence's sizes on this tensor rank
  const RecurrenceRow& row;
  Id projection{};
};

Recurring of_rank(const LayerTape& layer) {
  Recurrence own = *layer.model.recurrence;
  own.heads /= layer.context.tensor;
  own.groups /= layer.context.tensor;
  return {own, row_of(own.rule)};
}

std::vector<std::int64_t> projected_sections(const Recurring& r) {
  std::vector<std::int64_t> sections = {r.own.keys(), r.own.keys(), r.own.values(), r.own.values()};
  sections.insert(sections.end(), static_cast<std::size_t>(r.row.gates), r.own.heads);
  return sections;
}

std::vector<std::int32_t> convolution_weights(LayerTape& layer, const Recurrence& own) {
  const auto of = [&](const char* name, std::int64_t each) {
    return layer.tape.parameter({.name = name,
                                 .out = own.convolved() * each,
                                 .in = 1,
                                 .cut = Cut::sections,
                                 .sections = {own.keys() * each, own.keys() * each, own.values() * each}});
  };
  std::vector<std::int32_t> weights = {of("recurrence.convolution.weight", own.taps)};
  if (own.convolution_bias) weights.push_back(of("recurrence.convolution.bias", 1));
  return weights;
}

}  // namespace

// Adds to an op's operands the states of recurrences, which generation keeps from pass to pass, and says so in `work`.
template <class Work>
static void carry(const LayerTape& layer, Work& work, BlockBuilder::Uses& uses) {
  const auto& generation = layer.context.spec.generation;
  if (!generation) return;
  work.keeps = true;
  work.resumes = generation->cached > 0;
  uses.elsewhere.push_back({Scope::state, Access::read_write, kRecurrentStates, -1});
}

// Adds the short convolution's forward and backward ops to the layer. Where the recurrence's kernels keep only the
// convolution's input (convolves_again: Mamba-2), backward computes the convolution's result again.
static Id convolve(LayerTape& layer, const Recurring& r) {
  const BlockContext& c = layer.context;
  const std::vector<std::int32_t> weights = convolution_weights(layer, r.own);
  Convolution work = {c.batch, c.sequence, r.own.convolved(), r.own.projected(), r.own.taps};
  const Id y = activation(layer, "convolution output", c.rows, work.columns);
  const bool again = r.row.convolves_again && !layer.recompute.layer;
  if (again) layer.tape.begin_region(true);
  BlockBuilder::Uses forward = {.reads = {r.projection}, .writes = {y}, .weights = weights};
  carry(layer, work, forward);
  layer.tape.emit("convolution", work, forward);
  if (again) layer.tape.end_region();
  layer.tape.on_backward([=, &layer, projection = r.projection] {
    Convolution back = work;
    back.direction = Direction::backward;
    layer.tape.emit("convolution gradient", back,
                    {.reads = {projection, layer.tape.gradient(y)},
                     .updates = {layer.tape.gradient(projection)},
                     .weights = weights,
                     .weight_gradients = weights});
  });
  return y;
}

static Id scan(LayerTape& layer, const Recurring& r, Id convolved) {
  const BlockContext& c = layer.context;
  const Recurrence& own = r.own;
  std::vector<std::int32_t> weights = {layer.tape.parameter("recurrence.decay", own.heads, 1, Cut::rows),
                                       layer.tape.parameter("recurrence.step.bias", own.heads, 1, Cut::rows)};
  if (r.row.skips) weights.push_back(layer.tape.parameter("recurrence.skip", own.heads, 1, Cut::rows));
  Scan work = {.batch = c.batch,
               .sequence = c.sequence,
               .heads = own.heads,
               .groups = own.groups,
               .key_dim = own.key_dim,
               .value_dim = own.value_dim,
               .chunk = own.chunk,
               .first = own.convolved() + own.values(),
               .projected = own.projected(),
               .rule = own.rule};
  const Id y = activation(layer, "recurrence values", c.rows, own.values());
  BlockBuilder::Uses uses = {.reads = {convolved, r.projection}, .writes = {y}, .weights = weights};
  carry(layer, work, uses);
  const Bytes bytes = work.kept_bytes(c.width);
  if (bytes > 0) uses.writes.push_back(layer.tape.slot("recurrence kept", bytes));
  layer.tape.emit("recurrence", work, uses);
  layer.tape.on_backward([=, &layer, &c, projection = r.projection] {
    Scan back = work;
    back.direction = Direction::backward;
    const Id dx = activation(layer, "convolution output gradient", c.rows, work.columns());
    BlockBuilder::Uses of = {.reads = {convolved, projection, layer.tape.gradient(y)},
                             .writes = {dx},
                             .updates = {layer.tape.gradient(projection)},
                             .weights = weights,
                             .weight_gradients = weights};
    if (bytes > 0) of.reads.push_back(uses.writes.back());
    layer.tape.emit("recurrence gradient", back, of);
    layer.tape.contribute(convolved, dx);
  });
  return y;
}

// Records the norm of the recurrence's result with its gate. This op is the first of the recurrence's backward to write
// the projection's gradient: it writes the gate's columns, and the backward ops of scan and convolution, which run
// later, add the other columns.
static Id gated_norm(LayerTape& layer, const Recurring& r, Id x) {
  const BlockContext& c = layer.context;
  const Recurrence& own = r.own;
  const bool shared = r.row.norm_of_heads;
  const std::int64_t width = shared ? own.value_dim : own.values() / own.groups;
  const std::int32_t weight =
      shared ? layer.tape.parameter("recurrence.result norm.weight", width, 1, Cut::none, c.tensor > 1)
             : layer.tape.parameter("recurrence.result norm.weight", own.values(), 1, Cut::rows);
  const GatedNorm work = {c.rows, own.values(), width, own.convolved(), own.projected(), r.row.gates_first, shared};
  const Id y = activation(layer, "gated norm output", c.rows, work.columns);
  const Id statistics = layer.tape.slot("statistics", c.rows * (work.columns / width) * 4);
  layer.tape.emit("gated norm", work, {.reads = {x, r.projection}, .writes = {y, statistics}, .weights = {weight}});
  layer.tape.on_backward([=, &layer, &c, projection = r.projection] {
    GatedNorm back = work;
    back.direction = Direction::backward;
    const Id dx = activation(layer, "recurrence values gradient", c.rows, work.columns);
    const Id dprojection = activation(layer, "recurrence projection gradient", c.rows, work.projected);
    layer.tape.emit("gated norm gradient", back,
                    {.reads = {x, projection, statistics, layer.tape.gradient(y)},
                     .writes = {dx, dprojection},
                     .weights = {weight},
                     .weight_gradients = {weight}});
    layer.tape.contribute(x, dx);
    layer.tape.contribute(projection, dprojection);
  });
  return y;
}

Id recurrence(LayerTape& layer, Id x) {
  Recurring r = of_rank(layer);
  const std::int64_t hidden = layer.model.hidden;
  r.projection =
      column_parallel(layer, "recurrence projection", x, hidden, r.own.projected(),
                      {.name = "recurrence.projection", .cut = Cut::sections, .sections = projected_sections(r)});
  const Id values = scan(layer, r, convolve(layer, r));
  return row_parallel(layer, "recurrence output", gated_norm(layer, r, values), r.own.values(), hidden,
                      "recurrence.output.weight", true);
}

}  // namespace orrery
