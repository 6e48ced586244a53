// This file records the cross-entropy loss, either on logits cast to fp32 or on logits in the data type of activations,
// and the losses that read a second model.
#include "models/layers/loss.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "models/layers/layer_parts.h"
#include "models/layers/linear.h"
#include "models/partition/hand_over.h"

namespace orrery {
namespace {

// Buffers with one entry per row of logits. labels: the row's label. maxima: the largest logit. sums: two numbers, the
// sum of exponentials and the label's logit.
struct LossRows {
  Id labels, maxima, sums;
};

CrossEntropy part_of(CrossEntropy whole, CrossEntropy::Part part) {
  whole.part = part;
  return whole;
}

}  // namespace

void gathered_cross_entropy(LayerTape& layer, Id logits, std::int64_t columns) {
  const BlockContext& c = layer.context;
  const std::int64_t replicas = c.spec.strategy.data;
  const bool master = c.duty == Duty::master;
  const Bytes bytes = replicas * c.rows * columns * c.width;
  const auto move = [=, &layer, &c](const char* name, CollectiveKind kind, const BlockBuilder::Uses& uses) {
    layer.tape.emit(name, Collective{.kind = kind, .group = Dimension::data, .bytes = bytes, .width = c.width}, uses,
                    LaneKind::data_gather);
  };
  BlockBuilder::Uses gather = {.reads = {logits}};
  const Id all = master ? activation(layer, "gathered logits", replicas * c.rows, columns) : logits;
  if (master) gather.writes = {all};
  move("gather outputs", CollectiveKind::gather, gather);
  layer.tape.on_backward([=, &layer, &c] {
    const Id own = activation(layer, "scattered logits gradient", c.rows, columns);
    BlockBuilder::Uses scatter = {.writes = {own}};
    if (master) scatter.reads = {layer.tape.gradient(all)};
    move("scatter output gradients", CollectiveKind::scatter, scatter);
    layer.tape.contribute(logits, own);
  });
  if (master) cross_entropy(layer, all, columns, replicas);
}

// Records cross-entropy without fp32 logits, as in flash-attention and in Transformer Engine; Transformer Engine writes
// the gradient into the buffer of the logits.
static void narrow_cross_entropy(LayerTape& layer, const CrossEntropy& whole, Id logits, const LossRows& of) {
  const BlockContext& c = layer.context;
  layer.tape.emit("loss maximum", part_of(whole, CrossEntropy::Part::maximum),
                  {.reads = {logits}, .writes = {of.maxima}});
  if (c.tensor > 1) tensor_all_reduce(layer, "loss maximum reduce", of.maxima, whole.rows * 4, 4, true);
  layer.tape.emit("loss exponent", part_of(whole, CrossEntropy::Part::exponent),
                  {.reads = {of.maxima, of.labels, logits}, .writes = {of.sums}});
  layer.tape.on_backward([=, &layer, &c] {
    const bool over = c.spec.software.kernels.fused_loss_on == LossTensor::in_place && layer.model.logit_softcap == 0;
    BlockBuilder::Uses uses = {.reads = {of.labels, of.sums, of.maxima}};
    if (c.spec.strategy.precision == Precision::fp16) uses.numbers = {kLossScale};
    const Id gradient = over ? logits : activation(layer, "logits gradient", whole.rows, whole.columns);
    if (over) uses.updates = {logits};
    if (!over) uses.reads.push_back(logits), uses.writes = {gradient};
    layer.tape.emit("loss gradient", part_of(whole, CrossEntropy::Part::gradient), uses);
    layer.tape.contribute(logits, gradient);
  });
}

// factors: buffer with a number for each row that multiplies the row's gradient (Preference), if there is one.
static void wide_cross_entropy(LayerTape& layer, const CrossEntropy& whole, Id logits, const LossRows& of,
                               std::optional<Id> factors = std::nullopt) {
  const BlockContext& c = layer.context;
  const std::int64_t elements = whole.rows * whole.columns;
  const Id wide = layer.tape.slot("fp32 logits", elements * 4);  // fp32 logits; the softmax overwrites them
  layer.tape.emit("logits to fp32", Cast{elements, c.width, 4}, {.reads = {logits}, .writes = {wide}});
  layer.tape.emit("loss maximum", part_of(whole, CrossEntropy::Part::maximum),
                  {.reads = {wide}, .writes = {of.maxima}});
  if (c.tensor > 1) tensor_all_reduce(layer, "loss maximum reduce", of.maxima, whole.rows * 4, 4, true);
  BlockBuilder::Uses exponent = {.reads = {of.maxima, of.labels}, .writes = {of.sums}, .updates = {wide}};
  if (!whole.fused) exponent.writes.push_back(layer.tape.slot("shifted logits", elements * 4));
  layer.tape.emit("loss exponent", part_of(whole, CrossEntropy::Part::exponent), exponent);
  layer.tape.on_backward([=, &layer, &c] {
    const Software::Kernels& kernels = c.spec.software.kernels;
    CrossEntropy work = part_of(whole, CrossEntropy::Part::gradient);
    work.weighted = factors.has_value();
    BlockBuilder::Uses uses = {.reads = {of.labels, of.sums}, .updates = {wide}};
    if (factors) uses.reads.push_back(*factors);
    if (!whole.fused && kernels.keeps_logits) uses.reads.push_back(exponent.writes.back());
    if (c.spec.strategy.precision == Precision::fp16) uses.numbers = {kLossScale};
    const std::int64_t copies = kernels.loss_gradient_copies + (c.tensor > 1 ? kernels.loss_parallel_copies : 0);
    for (std::int64_t i = 0; i < (whole.fused ? 0 : copies); ++i)
      uses.writes.push_back(layer.tape.slot("log-probabilities' gradient", elements * 4));
    layer.tape.emit("loss gradient", work, uses);
    const Id gradient = activation(layer, "logits gradient", whole.rows, whole.columns);
    layer.tape.emit("logits gradient", Cast{elements, 4, c.width}, {.reads = {wide}, .writes = {gradient}});
    layer.tape.contribute(logits, gradient);
  });
}

static LossRows loss_rows(LayerTape& layer, std::int64_t rows) {
  return {.labels = layer.tape.slot("labels", rows * 8),
          .maxima = layer.tape.slot("row maxima", rows * 4),
          .sums = layer.tape.slot("row sums", rows * 8)};
}

void cross_entropy(LayerTape& layer, Id logits, std::int64_t columns, std::int64_t replicas) {
  const BlockContext& c = layer.context;
  const Software::Kernels& kernels = c.spec.software.kernels;
  const std::int64_t predictions = 1 + layer.model.mtp_layers, parts = c.sequence_parallel ? c.tensor : 1;
  const std::int64_t rows = c.rows * std::max<std::int64_t>(1, replicas);
  CrossEntropy work = {rows, columns, {}, kernels.fused_cross_entropy, predictions, parts, c.intermediate_side.columns};
  work.narrow = work.fused && kernels.fused_loss_on != LossTensor::copy;
  const LossRows of = loss_rows(layer, rows);
  layer.tape.emit("labels", Load{rows, true, 0, predictions, parts, replicas, c.intermediate_side},
                  {.writes = {of.labels}});
  work.narrow ? narrow_cross_entropy(layer, work, logits, of) : wide_cross_entropy(layer, work, logits, of);
  if (c.tensor > 1) tensor_all_reduce(layer, "loss sum reduce", of.sums, rows * 8, 4);
  work.part = CrossEntropy::Part::loss;
  work.metrics = kernels.loss_metrics;
  layer.tape.emit("loss", work, {.reads = {of.sums}, .writes = {layer.tape.slot("loss", rows * 4)}});
}

// Records the sums of cross-entropy over fp32 logits, and for a model that trains the gradient of the logits, of which
// each row is multiplied by a number in the buffer `factors`.
static Id sums_of_labels(LayerTape& layer, Id logits, std::int64_t columns, std::optional<Id> factors) {
  const BlockContext& c = layer.context;
  const std::int64_t parts = c.sequence_parallel ? c.tensor : 1;
  const CrossEntropy work = {
      c.rows, columns, {}, c.spec.software.kernels.fused_cross_entropy, 1, parts, c.intermediate_side.columns};
  const LossRows of = loss_rows(layer, c.rows);
  layer.tape.emit("labels", Load{c.rows, true, 0, 1, parts, 0, c.intermediate_side}, {.writes = {of.labels}});
  wide_cross_entropy(layer, work, logits, of, factors);
  if (c.tensor > 1) tensor_all_reduce(layer, "loss sum reduce", of.sums, c.rows * 8, 4);
  return of.sums;
}

Id label_sums(LayerTape& layer, Id logits, std::int64_t columns) {
  return sums_of_labels(layer, logits, columns, std::nullopt);
}

void preference_loss(LayerTape& layer, Id logits, std::int64_t columns) {
  const BlockContext& c = layer.context;
  const Id factors = layer.tape.slot("row factors", c.rows * 4);
  const Id sums = sums_of_labels(layer, logits, columns, factors);
  layer.tape.emit("loss", Preference{c.rows, c.batch, c.spec.second->beta},
                  {.reads = {sums, kBeside}, .writes = {layer.tape.slot("loss", c.rows * 4), factors}});
}

namespace {

constexpr Bytes kSumBytes = 4;

// The hand-over of `elements` elements of a rank's buffer, from element `first` on. columns_cut: as in Collective.
Collective transfer(const BlockContext& c, std::int64_t elements, std::int64_t first, Bytes width, bool columns_cut) {
  const HandOver h = hand_over_of(c.spec);
  const bool sends = c.second;
  const Bytes own = elements * width;
  // Every rank of a side has equally many bytes. Those that all ranks of a tensor group have alike are sent in shares.
  const Bytes sent = columns_cut ? (sends ? own : own * h.receivers() / h.senders())
                                 : (sends ? own : own * h.receivers_by_data / h.senders_by_data) / h.senders_by_tensor *
                                       h.receivers_by_tensor;
  const Bytes received = columns_cut ? (sends ? own * h.senders() / h.receivers() : own)
                                     : (sends ? own * h.senders_by_data / h.receivers_by_data : own);
  return {.kind = CollectiveKind::all_to_all,
          .group = Dimension::hand_over,
          .bytes = std::max(sent, received),
          .width = width,
          .first = first,
          .sent = sends ? sent : 0,
          .columns_cut = columns_cut};
}

// The copy between a matrix of logits and a buffer with the columns of each of `members` ranks by themselves.
MoveHeads by_members(const BlockContext& c, std::int64_t columns, std::int64_t members, Direction direction) {
  return {c.rows, members, 0, columns / members, members, true, direction};
}

}  // namespace

void send_logits(LayerTape& layer, Id logits, std::int64_t columns) {
  const BlockContext& c = layer.context;
  const std::int64_t members = hand_over_of(c.spec).receivers_by_tensor;
  Id sent = logits;
  if (members > 1) {
    sent = activation(layer, "logits by receiver", c.rows, columns);
    layer.tape.emit("logits by receiver", by_members(c, columns, members, Direction::forward),
                    {.reads = {logits}, .writes = {sent}});
  }
  layer.tape.emit("send logits", transfer(c, c.rows * columns, 0, c.width, true), {.reads = {sent}},
                  LaneKind::hand_over);
}

void receive_logits(LayerTape& layer, Id to, std::int64_t columns) {
  const BlockContext& c = layer.context;
  const std::int64_t members = hand_over_of(c.spec).senders_by_tensor, elements = c.rows * columns;
  Id logits = activation(layer, "received logits", c.rows, columns);
  layer.tape.emit("receive logits", transfer(c, elements, 0, c.width, true), {.writes = {logits}}, LaneKind::hand_over);
  if (members > 1) {
    const Id parts = std::exchange(logits, activation(layer, "joined logits", c.rows, columns));
    layer.tape.emit("join logits", by_members(c, columns, members, Direction::backward),
                    {.reads = {parts}, .writes = {logits}});
  }
  layer.tape.emit("received logits to fp32", Cast{elements, c.width, 4}, {.reads = {logits}, .writes = {to}});
}

void send_sums(LayerTape& layer, Id sums) {
  const BlockContext& c = layer.context;
  for (std::int64_t first : {std::int64_t{0}, c.rows})
    layer.tape.emit("send log-probabilities", transfer(c, c.rows, first, kSumBytes, false), {.reads = {sums}},
                    LaneKind::hand_over);
}

void receive_sums(LayerTape& layer, Id to) {
  const BlockContext& c = layer.context;
  layer.tape.emit("receive log-probabilities", transfer(c, c.rows, 0, kSumBytes, false), {.writes = {to}},
                  LaneKind::hand_over);
  layer.tape.emit("receive log-probabilities", transfer(c, c.rows, c.rows, kSumBytes, false), {.updates = {to}},
                  LaneKind::hand_over);
}

Block second_output_block(const BlockContext& c, std::vector<Op>& ops) {
  const Model& m = c.spec.model;
  LayerTape b(c, "output", BlockRole::output);
  b.tape.input(c.local_rows * c.hidden * c.width);
  const bool apart = has_second_apart(c.spec);  // whether the block is on ranks of the second model's own
  if (!apart) b.tape.handed_to = kBeside;
  const std::int64_t columns = c.padded_vocab / c.tensor;
  const std::string weight = m.tied_embeddings ? "embedding.word" : "output";
  const Id logits = column_parallel(b, "logits", kInput, m.hidden, columns, {weight});
  soft_cap(b, "logit cap", logits, c.rows * columns, m.logit_softcap, c.spec.software.kernels.compile);
  if (c.spec.second->role == SecondModel::Role::reference) {
    const Id sums = label_sums(b, logits, columns);
    if (!apart) return b.tape.finish(sums, ops);
    send_sums(b, sums);
    return b.tape.finish(ops);
  }
  if (apart) {
    send_logits(b, logits, columns);
    return b.tape.finish(ops);
  }
  const Id wide = b.tape.slot("fp32 logits", c.rows * columns * 4);
  b.tape.emit("logits to fp32", Cast{c.rows * columns, c.width, 4}, {.reads = {logits}, .writes = {wide}});
  return b.tape.finish(wide, ops);
}

void distillation_loss(LayerTape& layer, Id logits, std::int64_t columns) {
  const BlockContext& c = layer.context;
  const SecondModel& s = *c.spec.second;
  const std::int64_t elements = c.rows * columns;
  const auto work = [=](Distillation::Part part) {
    return Distillation{c.rows, columns, part, s.temperature, s.divergence, s.cross_entropy};
  };
  const Bytes maxima_bytes = c.rows * Distillation::kMaxima * 4, sums_bytes = c.rows * Distillation::kSums * 4;
  const Id labels = layer.tape.slot("labels", c.rows * 8), wide = layer.tape.slot("fp32 logits", elements * 4);
  const Id maxima = layer.tape.slot("row maxima", maxima_bytes), sums = layer.tape.slot("row sums", sums_bytes);
  layer.tape.emit("labels", Load{c.rows, true, 0, 1, 1, 0, c.intermediate_side}, {.writes = {labels}});
  layer.tape.emit("logits to fp32", Cast{elements, c.width, 4}, {.reads = {logits}, .writes = {wide}});
  layer.tape.emit("loss maximum", work(Distillation::Part::maximum), {.reads = {wide, kBeside}, .writes = {maxima}});
  if (c.tensor > 1) tensor_all_reduce(layer, "loss maximum reduce", maxima, maxima_bytes, 4, true);
  layer.tape.emit("loss exponent", work(Distillation::Part::exponent),
                  {.reads = {wide, kBeside, maxima, labels}, .writes = {sums}});
  layer.tape.on_backward([=, &layer, &c] {
    BlockBuilder::Uses uses = {.reads = {kBeside, maxima, labels, sums}, .updates = {wide}};
    if (c.spec.strategy.precision == Precision::fp16) uses.numbers = {kLossScale};
    layer.tape.emit("loss gradient", work(Distillation::Part::gradient), uses);
    const Id gradient = activation(layer, "logits gradient", c.rows, columns);
    layer.tape.emit("logits gradient", Cast{elements, 4, c.width}, {.reads = {wide}, .writes = {gradient}});
    layer.tape.contribute(logits, gradient);
  });
  if (c.tensor > 1) tensor_all_reduce(layer, "loss sum reduce", sums, sums_bytes, 4);
  layer.tape.emit("loss", work(Distillation::Part::loss),
                  {.reads = {sums}, .writes = {layer.tape.slot("loss", c.rows * 4)}});
}

void feature_loss(LayerTape& layer, std::int64_t number) {
  const BlockContext& c = layer.context;
  if (feature_of(c.spec, number, c.second) < 0) return;
  layer.tape.leaves_input = c.second;
  layer.tape.reads_beside = !c.second;
  if (c.second) return;
  const SecondModel& s = *c.spec.second;
  const std::int64_t columns = s.model.hidden;
  const Id own = projects_features(c.spec) ? replicated(layer, "feature projection", kInput, layer.model.hidden,
                                                        columns, {.name = "feature.projection"})
                                           : kInput;
  const Operand teacher = {Scope::beside, Access::read, kInput, -1};
  const auto work = [rows = c.local_rows, columns, weight = s.features.weight](FeatureLoss::Part part) {
    return FeatureLoss{rows, columns, part, weight};
  };
  layer.tape.emit("feature loss", work(FeatureLoss::Part::loss),
                  {.reads = {own}, .writes = {layer.tape.slot("feature loss", 4)}, .elsewhere = {teacher}});
  layer.tape.on_backward([=, &layer, &c] {
    BlockBuilder::Uses uses = {.reads = {own}, .elsewhere = {teacher}};
    if (c.spec.strategy.precision == Precision::fp16) uses.numbers = {kLossScale};
    const Id gradient = activation(layer, "feature loss gradient", c.local_rows, columns);
    uses.writes = {gradient};
    layer.tape.emit("feature loss gradient", work(FeatureLoss::Part::gradient), uses);
    layer.tape.contribute(own, gradient);
  });
}

}  // namespace orrery
