// This file has the blocks of a vocabulary that the stages of a pipeline share (Yeung et al. 2024, arXiv:2411.05288):
// each stage holds equally many rows of the embedding table and of the output matrix. The token embeddings that the
// first stage needs are the sum of the lookups of all stages. The last stage's hidden states are broadcast to all
// stages; each stage takes exponentials relative to the maxima of its own logits, and then stages exchange maxima and
// sums. If a stage has several tensor ranks, each rank has a part of the stage's rows, and each stage sums over its
// tensor ranks before stages sum. With two barriers (algorithm 1) the gradient of the hidden states is summed when each
// stage knows the softmax. With one barrier (algorithm 2) each stage multiplies its exponentials with its rows of the
// output matrix before the sums are known, so that the sum of the hidden states' gradient can follow the loss's sums
// directly.
#include <cmath>

#include "models/layers/blocks.h"
#include "models/layers/layer_parts.h"
#include "models/layers/layer_tape.h"
#include "models/layers/linear.h"

namespace orrery {
namespace {

// Buffers of one pipeline stage's part of the output layer: the logits and loss of its rows of the vocabulary.
struct LogitsPart {
  std::int32_t table = 0;  // index of the embedding or output matrix, the block's first weight
  Id logits = 0, labels = 0;
  Id wide = 0;  // buffer that holds first the fp32 logits, then their exponentials, then the logits' gradient
  // maxima: of each row's logits over all stages. factors: first each row's maximum on this stage alone, then the
  // factors that convert the stage's exponentials to the maxima over all stages
  Id maxima = 0, factors = 0;
  Id sums = 0;  // buffer with the sums of exponentials and the logits of the labels
  // buffers for the gradient of the hidden states if only one barrier lies between the logits and their gradients.
  // product: the exponentials times the output matrix; rows: for each token, the output matrix's row of its label
  Id product = 0, rows = 0;

  CrossEntropy work(const BlockContext& c, CrossEntropy::Part which, std::int64_t columns) const {
    return {c.rows, columns, which, c.spec.software.kernels.fused_cross_entropy, 1, 1, Dimension::vocabulary};
  }
};

}  // namespace

// Records the embedding lookup on one stage if the vocabulary is sharded over the stages: the tokens' rows from this
// stage's part of the embedding table, and zeros for tokens in other stages' parts.
static Id token_embeddings(LayerTape& layer, Id tokens) {
  const BlockContext& c = layer.context;
  const Model& m = layer.model;
  const auto table = layer.tape.parameter({.name = std::string(kEmbeddingTable),
                                           .out = c.table_rows,
                                           .in = m.hidden,
                                           .cut = Cut::rows,
                                           .over = Dimension::vocabulary});
  const Id y = activation(layer, "embeddings", c.rows, m.hidden);
  const Embedding work = {.rows = c.rows, .columns = m.hidden, .vocab = c.table_rows, .over = Dimension::vocabulary};
  layer.tape.emit("embedding", work, {.reads = {tokens}, .writes = {y}, .weights = {table}});
  layer.tape.on_backward([=, &layer] {
    Embedding back = work;
    back.direction = Direction::backward;
    table_gradient(layer, "embedding", back, {layer.tape.gradient(y), tokens}, table, true);
  });
  return reduce_from_tensor(layer, "embedding", y, c.rows, m.hidden);
}

static void exponents(LayerTape& layer, const LogitsPart& part) {
  const BlockContext& c = layer.context;
  const std::int64_t elements = c.rows * c.table_rows;
  const auto work = [&](CrossEntropy::Part which) { return part.work(c, which, c.table_rows); };
  layer.tape.emit("labels", Load{c.rows, true, 0, 1, 1, 0, c.intermediate_side}, {.writes = {part.labels}});
  layer.tape.emit("logits to fp32", Cast{elements, c.width, 4}, {.reads = {part.logits}, .writes = {part.wide}});
  layer.tape.emit("loss maximum", work(CrossEntropy::Part::maximum),
                  {.reads = {part.wide}, .writes = {part.maxima, part.factors}});
  BlockBuilder::Uses uses = {.reads = {part.factors, part.labels}, .writes = {part.sums}, .updates = {part.wide}};
  if (!c.spec.software.kernels.fused_cross_entropy)
    uses.writes.push_back(layer.tape.slot("shifted logits", elements * 4));
  layer.tape.emit("loss exponent", work(CrossEntropy::Part::exponent), uses);
}

// Records the ops for those terms of the hidden states' gradient that do not need the sums of exponentials over all
// stages.
static void early_gradient(LayerTape& layer, const LogitsPart& part) {
  const BlockContext& c = layer.context;
  const std::int64_t rows = c.rows, columns = c.table_rows, hidden = layer.model.hidden;
  const Id exps = activation(layer, "exponents", rows, columns);
  layer.tape.emit("exponents", Cast{rows * columns, 4, c.width}, {.reads = {part.wide}, .writes = {exps}});
  input_gradients(layer, "logits", {.m = rows, .n = columns, .k = hidden, .result_bytes = c.width}, {exps},
                  part.product, {part.table});
  const Embedding lookup = {.rows = rows, .columns = hidden, .vocab = columns, .over = Dimension::vocabulary};
  layer.tape.emit("labels' rows", lookup, {.reads = {part.labels}, .writes = {part.rows}, .weights = {part.table}});
}

// Records this rank's contribution to the gradient of the hidden states, from its part of the vocabulary; under tensor
// parallelism the contributions are then summed over the tensor group.
static void combine_gradient(LayerTape& layer, const LogitsPart& part) {
  const BlockContext& c = layer.context;
  const Model& m = layer.model;
  const auto handed_on = [](Access access) { return Operand{Scope::previous, access, kOutputGradient, -1}; };
  const bool sp = c.sequence_parallel;
  BlockBuilder::Uses uses = {.reads = {part.product, part.rows, part.sums, part.factors}};
  if (c.spec.strategy.precision == Precision::fp16) uses.numbers = {kLossScale};
  if (sp) uses.writes = {activation(layer, "hidden gradient", c.rows, m.hidden)};
  if (!sp) uses.elsewhere = {handed_on(Access::write)};
  layer.tape.emit("hidden gradient", part.work(c, CrossEntropy::Part::combine, m.hidden), uses,
                  LaneKind::vocabulary_sums);
  if (c.tensor == 1) return;
  const auto kind = sp ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
  layer.tape.emit("hidden gradient over tensor",
                  Collective{kind, Dimension::tensor, c.rows * m.hidden * c.width, c.width},
                  {.reads = uses.writes, .elsewhere = {handed_on(sp ? Access::write : Access::read_write)}},
                  LaneKind::vocabulary_sums);
}

static void exchange_sums(LayerTape& layer, const LogitsPart& part) {
  const BlockContext& c = layer.context;
  const auto reduce = [&](const std::string& name, Id of, Bytes bytes, bool maximum) {
    layer.tape.emit(name, Collective{.group = Dimension::vocabulary, .bytes = bytes, .width = 4, .maximum = maximum},
                    {.updates = {of}}, LaneKind::vocabulary_sums);
  };
  layer.tape.begin_exchange();
  reduce("loss maximum reduce", part.maxima, c.rows * 4, true);
  layer.tape.emit("loss rescale", part.work(c, CrossEntropy::Part::rescale, c.table_rows),
                  {.reads = {part.maxima, part.labels}, .updates = {part.sums, part.factors}},
                  LaneKind::vocabulary_sums);
  reduce("loss sum reduce", part.sums, c.rows * 8, false);
  if (c.shared.barriers == 1) combine_gradient(layer, part);
}

static void logits_gradient(LayerTape& layer, const LogitsPart& part) {
  const BlockContext& c = layer.context;
  const std::int64_t rows = c.rows, columns = c.table_rows;
  const auto work = [&](CrossEntropy::Part which) { return part.work(c, which, columns); };
  if (c.shared.at_root())
    layer.tape.emit("loss", work(CrossEntropy::Part::loss),
                    {.reads = {part.sums}, .writes = {layer.tape.slot("loss", rows * 4)}});
  BlockBuilder::Uses uses = {.reads = {part.labels, part.sums, part.factors}, .updates = {part.wide}};
  if (c.spec.strategy.precision == Precision::fp16) uses.numbers = {kLossScale};
  const Software::Kernels& kernels = c.spec.software.kernels;
  const std::int64_t copies = kernels.loss_gradient_copies + kernels.loss_parallel_copies;
  for (std::int64_t i = 0; i < (kernels.fused_cross_entropy ? 0 : copies); ++i)
    uses.writes.push_back(layer.tape.slot("log-probabilities' gradient", rows * columns * 4));
  layer.tape.emit("loss gradient", work(CrossEntropy::Part::gradient), uses);
  const Id gradient = activation(layer, "logits gradient", rows, columns);
  layer.tape.emit("logits gradient", Cast{rows * columns, 4, c.width}, {.reads = {part.wide}, .writes = {gradient}});
  layer.tape.contribute(part.logits, gradient);
}

static void logits_part(LayerTape& layer, const std::string& name) {
  const BlockContext& c = layer.context;
  const std::int64_t rows = c.rows, columns = c.table_rows, hidden = layer.model.hidden;
  const bool late = c.shared.barriers > 1;
  LogitsPart part;
  part.logits = column_parallel(layer, "logits", kInput, hidden, columns,
                                {.name = name, .over = Dimension::vocabulary, .input_gradient = late});
  part.labels = layer.tape.slot("labels", rows * 8);
  part.wide = layer.tape.slot("fp32 logits", rows * columns * 4);
  part.maxima = layer.tape.slot("row maxima", rows * 4);
  part.factors = layer.tape.slot("row factors", rows * 4);
  part.sums = layer.tape.slot("row sums", rows * 8);
  if (!late) {
    part.product = activation(layer, "exponents' product", rows, hidden);
    part.rows = activation(layer, "labels' rows", rows, hidden);
  }
  exponents(layer, part);
  if (!late) early_gradient(layer, part);
  exchange_sums(layer, part);
  layer.tape.on_backward([=, &layer] { logits_gradient(layer, part); });
}

Block token_embeddings_block(const BlockContext& c, std::vector<Op>& ops) {
  LayerTape b(c, "token embeddings", BlockRole::embedding);
  b.tape.output_gradient(c.local_rows * c.hidden * c.width);
  const auto tokens = b.tape.slot("tokens", c.rows * 8);
  take_tokens(b, tokens);
  const auto y = token_embeddings(b, tokens);
  if (c.spec.model.scaled_embedding)
    scale(b, "embedding scale", y, std::sqrt(static_cast<double>(c.spec.model.hidden)));
  return b.tape.finish(y, ops);
}

static Collective between_stages(const BlockContext& c, CollectiveKind kind) {
  return {.kind = kind,
          .group = Dimension::pipeline,
          .bytes = c.local_rows * c.hidden * c.width,
          .width = c.width,
          .root = c.shared.root};
}

// Builds the block that sums the token embeddings over stages. On ranks that are not the root, the sum may overwrite
// the rank's own contribution.
Block embedding_exchange_block(const BlockContext& c, std::vector<Op>& ops) {
  LayerTape b(c, "embedding exchange", BlockRole::exchange);
  const Bytes bytes = c.local_rows * c.hidden * c.width;
  const bool root = c.shared.at_root();
  const auto x = b.tape.input(bytes);
  const auto y = root ? b.tape.slot("sum of token embeddings", bytes) : x;
  const auto reduce = between_stages(c, CollectiveKind::reduce),
             broadcast = between_stages(c, CollectiveKind::broadcast);
  if (root) b.tape.output_gradient(bytes);
  BlockBuilder::Uses sum;
  if (root) sum = {.reads = {x}, .writes = {y}};
  if (!root) sum.updates = {x};
  b.tape.emit("token embeddings reduce", reduce, sum, LaneKind::token_embeddings);
  b.tape.on_backward([&] {
    const auto gradient = b.tape.slot("embedding gradient", bytes);
    BlockBuilder::Uses uses = {.writes = {gradient}};
    if (root) uses.reads = {b.tape.gradient(y)};
    b.tape.emit("embedding gradient broadcast", broadcast, uses, LaneKind::token_embeddings);
    b.tape.contribute(x, gradient);
  });
  return root ? b.tape.finish(y, ops) : b.tape.finish(ops);
}

bool has_positions_block(const BlockContext& c) {
  const Model& m = c.spec.model;
  return m.positions == Positions::learned || m.dropout > 0;
}

Block positions_block(const BlockContext& c, std::vector<Op>& ops) {
  LayerTape b(c, "positions", BlockRole::embedding);
  const auto x = b.tape.input(c.local_rows * c.hidden * c.width);
  b.tape.output_gradient(c.local_rows * c.hidden * c.width);
  return b.tape.finish(dropout(b, "embedding dropout", add_positions(b, x)), ops);
}

Block hidden_state_exchange_block(const BlockContext& c, std::vector<Op>& ops) {
  LayerTape b(c, "hidden-state exchange", BlockRole::exchange);
  const Bytes bytes = c.local_rows * c.hidden * c.width;
  const bool root = c.shared.at_root();
  if (root) b.tape.input(bytes);
  b.tape.output_gradient(bytes);
  const auto y = b.tape.slot("hidden states", bytes);
  BlockBuilder::Uses uses = {.writes = {y}};
  if (root) uses.reads = {kInput};
  b.tape.emit("hidden states broadcast", between_stages(c, CollectiveKind::broadcast), uses, LaneKind::hidden_states);
  b.tape.on_backward([&] {
    BlockBuilder::Uses sum;
    if (!root) sum.updates = {kOutputGradient};
    const auto gradient = root ? b.tape.slot("hidden states' gradient", bytes) : y;
    if (root) sum = {.reads = {kOutputGradient}, .writes = {gradient}};
    b.tape.emit("hidden gradient reduce", between_stages(c, CollectiveKind::reduce), sum, LaneKind::hidden_gradients);
    if (root) b.tape.contribute(kInput, gradient);
  });
  return b.tape.finish(y, ops);
}

// Builds the block of one stage's part of the logits and loss. The buffer of the hidden states' gradient is allocated
// by the op that writes it first; with one barrier between the logits and their gradients, this op runs before
// backward.
Block logits_block(const BlockContext& c, std::vector<Op>& ops) {
  LayerTape b(c, "output", BlockRole::output);
  b.tape.input(c.local_rows * c.hidden * c.width);
  logits_part(b, c.spec.model.tied_embeddings ? "embedding.word" : "output");
  Block block = b.tape.finish(ops);
  for (const std::uint32_t id : block.exchange) {
    for (const Operand& o : ops[id].operands) {
      if (o.scope == Scope::previous && o.access == Access::write) ops[id].allocates.push_back(o);
    }
    // The reductions of the loss's sums over the stages, and the ops after them, run as soon as all stages have their
    // inputs. They therefore do not belong to the pass that computes weight gradients, even if the schedule splits
    // backward.
    ops[id].weight_gradient = false;
  }
  return block;
}

}  // namespace orrery
