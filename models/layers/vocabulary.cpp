// Blocks of a vocabulary that the stages of a pipeline share (Yeung et al. 2024, arXiv:2411.05288): each stage holds
// equally many rows of the word table and of the output matrix. The first stage's token embeddings are the sum of what
// all stages look up; the last stage's hidden states go to all stages, which take their exponents to maxima of their
// own, then exchange maxima and sums. On stages of several tensor ranks each rank has a part, and each stage sums what
// its ranks give before the sum goes to other stages. Two barriers (algorithm 1): the gradient of the hidden states is
// summed when each stage knows the softmax. One barrier (algorithm 2): each stage multiplies its exponents with its
// rows before, so that this sum follows those of the loss at once.
#include <cmath>

#include "models/layers/layer_builder.h"

namespace orrery {

// Slots of a stage's part of the output layer.
struct LayerBuilder::LogitsPart {
  std::int32_t table = 0;  // the block's first weight
  Id logits = 0, labels = 0;
  Id wide = 0;  // fp32 logits, then exponents, then their gradient
  // Maxima over all stages; factors: first a stage's own maxima, then what scales its exponents to the maxima of all
  Id maxima = 0, factors = 0;
  Id sums = 0;               // sums of exponents, and the labels' logits
  Id product = 0, rows = 0;  // one barrier: exponents times the table's rows, and the labels' rows

  CrossEntropy work(const BlockContext& c, CrossEntropy::Part which, std::int64_t columns) const {
    return {c.rows, columns, which, c.spec.software.fused_cross_entropy, 1, 1, Dimension::vocabulary};
  }
};

LayerBuilder::Id LayerBuilder::words(Id tokens) {
  const auto table = tape.parameter({.name = std::string(kWordTable),
                                     .out = c_.table_rows,
                                     .in = m_.hidden,
                                     .cut = Cut::rows,
                                     .over = Dimension::vocabulary});
  const Id y = activation("embeddings", c_.rows, m_.hidden);
  const Embedding work = {.rows = c_.rows, .columns = m_.hidden, .vocab = c_.table_rows, .over = Dimension::vocabulary};
  tape.emit("embedding", work, {.reads = {tokens}, .writes = {y}, .weights = {table}});
  tape.on_backward([=, this] {
    Embedding back = work;
    back.direction = Direction::backward;
    table_gradient("embedding", back, {tape.gradient(y), tokens}, table, true);
  });
  return reduce_from_tensor("embedding", y, c_.rows, m_.hidden);
}

void LayerBuilder::exponents(const LogitsPart& part) {
  const std::int64_t elements = c_.rows * c_.table_rows;
  const auto work = [&](CrossEntropy::Part which) { return part.work(c_, which, c_.table_rows); };
  tape.emit("labels", Load{c_.rows, true, 0, 1, 1, 0, c_.inner}, {.writes = {part.labels}});
  tape.emit("logits to fp32", Cast{elements, c_.width, 4}, {.reads = {part.logits}, .writes = {part.wide}});
  tape.emit("loss maximum", work(CrossEntropy::Part::maximum),
            {.reads = {part.wide}, .writes = {part.maxima, part.factors}});
  BlockBuilder::Uses uses = {.reads = {part.factors, part.labels}, .writes = {part.sums}, .updates = {part.wide}};
  if (!c_.spec.software.fused_cross_entropy) uses.writes.push_back(tape.slot("shifted logits", elements * 4));
  tape.emit("loss exponent", work(CrossEntropy::Part::exponent), uses);
}

// Computes the parts of the hidden states' gradient that are possible before the sums over all stages are known.
void LayerBuilder::early_gradient(const LogitsPart& part) {
  const std::int64_t rows = c_.rows, columns = c_.table_rows, hidden = m_.hidden;
  const Id exps = activation("exponents", rows, columns);
  tape.emit("exponents", Cast{rows * columns, 4, c_.width}, {.reads = {part.wide}, .writes = {exps}});
  input_gradients("logits", {.m = rows, .n = columns, .k = hidden, .result_bytes = c_.width}, {exps}, part.product,
                  {part.table});
  const Embedding lookup = {.rows = rows, .columns = hidden, .vocab = columns, .over = Dimension::vocabulary};
  tape.emit("labels' rows", lookup, {.reads = {part.labels}, .writes = {part.rows}, .weights = {part.table}});
}

void LayerBuilder::exchange_sums(const LogitsPart& part) {
  const auto reduce = [&](const std::string& name, Id of, Bytes bytes, bool maximum) {
    tape.emit(name, Collective{.group = Dimension::vocabulary, .bytes = bytes, .width = 4, .maximum = maximum},
              {.updates = {of}}, LaneKind::vocabulary_sums);
  };
  tape.begin_exchange();
  reduce("loss maximum reduce", part.maxima, c_.rows * 4, true);
  tape.emit("loss rescale", part.work(c_, CrossEntropy::Part::rescale, c_.table_rows),
            {.reads = {part.maxima, part.labels}, .updates = {part.sums, part.factors}}, LaneKind::vocabulary_sums);
  reduce("loss sum reduce", part.sums, c_.rows * 8, false);
  if (c_.shared.barriers == 1) combine_gradient(part);
}

// The gradient of the hidden states that this rank's part of the vocabulary gives, summed over its tensor group.
void LayerBuilder::combine_gradient(const LogitsPart& part) {
  const auto handed_on = [](Access access) { return Operand{Scope::previous, access, kOutputGradient, -1}; };
  const bool sp = c_.sequence_parallel;
  BlockBuilder::Uses uses = {.reads = {part.product, part.rows, part.sums, part.factors}};
  if (c_.spec.strategy.precision == Precision::fp16) uses.numbers = {kLossScale};
  if (sp) uses.writes = {activation("hidden gradient", c_.rows, m_.hidden)};
  if (!sp) uses.elsewhere = {handed_on(Access::write)};
  tape.emit("hidden gradient", part.work(c_, CrossEntropy::Part::combine, m_.hidden), uses, LaneKind::vocabulary_sums);
  if (c_.tensor == 1) return;
  const auto kind = sp ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
  tape.emit("hidden gradient over tensor",
            Collective{kind, Dimension::tensor, c_.rows * m_.hidden * c_.width, c_.width},
            {.reads = uses.writes, .elsewhere = {handed_on(sp ? Access::write : Access::read_write)}},
            LaneKind::vocabulary_sums);
}

void LayerBuilder::logits_gradient(const LogitsPart& part) {
  const std::int64_t rows = c_.rows, columns = c_.table_rows;
  const auto work = [&](CrossEntropy::Part which) { return part.work(c_, which, columns); };
  if (c_.shared.at_root())
    tape.emit("loss", work(CrossEntropy::Part::loss), {.reads = {part.sums}, .writes = {tape.slot("loss", rows * 4)}});
  BlockBuilder::Uses uses = {.reads = {part.labels, part.sums, part.factors}, .updates = {part.wide}};
  if (c_.spec.strategy.precision == Precision::fp16) uses.numbers = {kLossScale};
  const Software& stack = c_.spec.software;
  const std::int64_t copies = stack.loss_gradient_copies + stack.loss_parallel_copies;
  for (std::int64_t i = 0; i < (stack.fused_cross_entropy ? 0 : copies); ++i)
    uses.writes.push_back(tape.slot("log-probabilities' gradient", rows * columns * 4));
  tape.emit("loss gradient", work(CrossEntropy::Part::gradient), uses);
  const Id gradient = activation("logits gradient", rows, columns);
  tape.emit("logits gradient", Cast{rows * columns, 4, c_.width}, {.reads = {part.wide}, .writes = {gradient}});
  tape.contribute(part.logits, gradient);
}

void LayerBuilder::logits_part(const std::string& name) {
  const std::int64_t rows = c_.rows, columns = c_.table_rows, hidden = m_.hidden;
  const bool late = c_.shared.barriers > 1;
  LogitsPart part;
  part.logits = column_parallel("logits", kInput, hidden, columns,
                                {.name = name, .over = Dimension::vocabulary, .input_gradient = late});
  part.labels = tape.slot("labels", rows * 8);
  part.wide = tape.slot("fp32 logits", rows * columns * 4);
  part.maxima = tape.slot("row maxima", rows * 4);
  part.factors = tape.slot("row factors", rows * 4);
  part.sums = tape.slot("row sums", rows * 8);
  if (!late) {
    part.product = activation("exponents' product", rows, hidden);
    part.rows = activation("labels' rows", rows, hidden);
  }
  exponents(part);
  if (!late) early_gradient(part);
  exchange_sums(part);
  tape.on_backward([=, this] { logits_gradient(part); });
}

Block words_block(const BlockContext& c, std::vector<Op>& ops) {
  LayerBuilder b(c, "words", BlockRole::embedding);
  b.tape.output_gradient(c.local_rows * c.hidden * c.width);
  const auto tokens = b.tape.slot("tokens", c.rows * 8);
  b.take_tokens(tokens);
  const auto y = b.words(tokens);
  if (c.spec.model.scaled_embedding) b.scale("embedding scale", y, std::sqrt(static_cast<double>(c.spec.model.hidden)));
  return b.tape.finish(y, ops);
}

static Collective between_stages(const BlockContext& c, CollectiveKind kind) {
  return {.kind = kind,
          .group = Dimension::pipeline,
          .bytes = c.local_rows * c.hidden * c.width,
          .width = c.width,
          .root = c.shared.root};
}

// A rank that is not the root may lend its own buffer to the sum.
Block words_exchange_block(const BlockContext& c, std::vector<Op>& ops) {
  LayerBuilder b(c, "words' ways", BlockRole::exchange);
  const Bytes bytes = c.local_rows * c.hidden * c.width;
  const bool root = c.shared.at_root();
  const auto x = b.tape.input(bytes);
  const auto y = root ? b.tape.slot("sum of words", bytes) : x;
  const auto reduce = between_stages(c, CollectiveKind::reduce),
             broadcast = between_stages(c, CollectiveKind::broadcast);
  if (root) b.tape.output_gradient(bytes);
  BlockBuilder::Uses sum;
  if (root) sum = {.reads = {x}, .writes = {y}};
  if (!root) sum.updates = {x};
  b.tape.emit("words reduce", reduce, sum, LaneKind::words);
  b.tape.on_backward([&] {
    const auto gradient = b.tape.slot("words' gradient", bytes);
    BlockBuilder::Uses uses = {.writes = {gradient}};
    if (root) uses.reads = {b.tape.gradient(y)};
    b.tape.emit("words' gradient broadcast", broadcast, uses, LaneKind::words);
    b.tape.contribute(x, gradient);
  });
  return root ? b.tape.finish(y, ops) : b.tape.finish(ops);
}

bool has_positions_block(const BlockContext& c) {
  const Model& m = c.spec.model;
  return m.positions == Positions::learned || m.dropout > 0;
}

Block positions_block(const BlockContext& c, std::vector<Op>& ops) {
  LayerBuilder b(c, "positions", BlockRole::embedding);
  const auto x = b.tape.input(c.local_rows * c.hidden * c.width);
  b.tape.output_gradient(c.local_rows * c.hidden * c.width);
  return b.tape.finish(b.dropout("embedding dropout", b.add_positions(x)), ops);
}

Block hidden_exchange_block(const BlockContext& c, std::vector<Op>& ops) {
  LayerBuilder b(c, "hidden states' ways", BlockRole::exchange);
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

// The hidden states' gradient is allocated at its first writer: with one barrier that is before backward.
Block logits_block(const BlockContext& c, std::vector<Op>& ops) {
  LayerBuilder b(c, "output", BlockRole::output);
  b.tape.input(c.local_rows * c.hidden * c.width);
  b.logits_part(c.spec.model.tied_embeddings ? "embedding.word" : "output");
  Block block = b.tape.finish(ops);
  for (const std::uint32_t id : block.exchange) {
    for (const Operand& o : ops[id].operands) {
      if (o.scope == Scope::previous && o.access == Access::write) ops[id].allocates.push_back(o);
    }
    ops[id].weight_gradient = false;  // the op works on other blocks' buffers and writes no weight's gradient
  }
  return block;
}

}  // namespace orrery
