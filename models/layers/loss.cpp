// The loss of LayerBuilder's logits: computed on fp32 copies of the logits, or on the logits as they are.
#include <algorithm>

#include "models/layers/layer_builder.h"

namespace orrery {
namespace {

CrossEntropy part_of(CrossEntropy whole, CrossEntropy::Part part) {
  whole.part = part;
  return whole;
}

}  // namespace

// DataParallel's outputs come together on rank 0, which alone knows the loss and hands its gradient back.
void LayerBuilder::gathered_cross_entropy(Id logits, std::int64_t columns) {
  const std::int64_t replicas = c_.spec.strategy.data;
  const bool master = c_.duty == Duty::master;
  const Bytes bytes = replicas * c_.rows * columns * c_.width;
  const auto move = [=, this](const char* name, CollectiveKind kind, const BlockBuilder::Uses& uses) {
    tape.emit(name, Collective{.kind = kind, .group = Dimension::data, .bytes = bytes, .width = c_.width}, uses,
              LaneKind::data_gather);
  };
  BlockBuilder::Uses gather = {.reads = {logits}};
  const Id all = master ? activation("gathered logits", replicas * c_.rows, columns) : logits;
  if (master) gather.writes = {all};
  move("gather outputs", CollectiveKind::gather, gather);
  tape.on_backward([=, this] {
    const Id own = activation("scattered logits gradient", c_.rows, columns);
    BlockBuilder::Uses scatter = {.writes = {own}};
    if (master) scatter.reads = {tape.gradient(all)};
    move("scatter output gradients", CollectiveKind::scatter, scatter);
    tape.contribute(logits, own);
  });
  if (master) cross_entropy(all, columns, replicas);
}

// A cross-entropy like flash-attention's and Transformer Engine's, without fp32 logits; the second writes the gradient
// over the logits.
void LayerBuilder::narrow_cross_entropy(const CrossEntropy& whole, Id logits, const LossRows& of) {
  tape.emit("loss maximum", part_of(whole, CrossEntropy::Part::maximum), {.reads = {logits}, .writes = {of.maxima}});
  if (c_.tensor > 1) tensor_all_reduce("loss maximum reduce", of.maxima, whole.rows * 4, 4, true);
  tape.emit("loss exponent", part_of(whole, CrossEntropy::Part::exponent),
            {.reads = {of.maxima, of.labels, logits}, .writes = {of.sums}});
  tape.on_backward([=, this] {
    const bool over = c_.spec.software.fused_loss_on == "in_place" && m_.logit_softcap == 0;
    BlockBuilder::Uses uses = {.reads = {of.labels, of.sums, of.maxima}};
    if (c_.spec.strategy.precision == Precision::fp16) uses.numbers = {kLossScale};
    const Id gradient = over ? logits : activation("logits gradient", whole.rows, whole.columns);
    if (over) uses.updates = {logits};
    if (!over) uses.reads.push_back(logits), uses.writes = {gradient};
    tape.emit("loss gradient", part_of(whole, CrossEntropy::Part::gradient), uses);
    tape.contribute(logits, gradient);
  });
}

void LayerBuilder::wide_cross_entropy(const CrossEntropy& whole, Id logits, const LossRows& of) {
  const std::int64_t elements = whole.rows * whole.columns;
  const Id wide = tape.slot("fp32 logits", elements * 4);  // the fp32 logits become the softmax in place
  tape.emit("logits to fp32", Cast{elements, c_.width, 4}, {.reads = {logits}, .writes = {wide}});
  tape.emit("loss maximum", part_of(whole, CrossEntropy::Part::maximum), {.reads = {wide}, .writes = {of.maxima}});
  if (c_.tensor > 1) tensor_all_reduce("loss maximum reduce", of.maxima, whole.rows * 4, 4, true);
  BlockBuilder::Uses exponent = {.reads = {of.maxima, of.labels}, .writes = {of.sums}, .updates = {wide}};
  if (!whole.fused) exponent.writes.push_back(tape.slot("shifted logits", elements * 4));
  tape.emit("loss exponent", part_of(whole, CrossEntropy::Part::exponent), exponent);
  tape.on_backward([=, this] {
    const Software& stack = c_.spec.software;
    BlockBuilder::Uses uses = {.reads = {of.labels, of.sums}, .updates = {wide}};
    if (!whole.fused && stack.keeps_logits) uses.reads.push_back(exponent.writes.back());
    if (c_.spec.strategy.precision == Precision::fp16) uses.numbers = {kLossScale};
    const std::int64_t copies = stack.loss_gradient_copies + (c_.tensor > 1 ? stack.loss_parallel_copies : 0);
    for (std::int64_t i = 0; i < (whole.fused ? 0 : copies); ++i)
      uses.writes.push_back(tape.slot("log-probabilities' gradient", elements * 4));
    tape.emit("loss gradient", part_of(whole, CrossEntropy::Part::gradient), uses);
    const Id gradient = activation("logits gradient", whole.rows, whole.columns);
    tape.emit("logits gradient", Cast{elements, 4, c_.width}, {.reads = {wide}, .writes = {gradient}});
    tape.contribute(logits, gradient);
  });
}

void LayerBuilder::cross_entropy(Id logits, std::int64_t columns, std::int64_t replicas) {
  const Software& stack = c_.spec.software;
  const std::int64_t predictions = 1 + m_.mtp_layers, parts = c_.sequence_parallel ? c_.tensor : 1;
  const std::int64_t rows = c_.rows * std::max<std::int64_t>(1, replicas);
  CrossEntropy work = {rows, columns, {}, stack.fused_cross_entropy, predictions, parts, c_.inner.columns};
  work.narrow = work.fused && stack.fused_loss_on != "copy";
  const LossRows of = {.labels = tape.slot("labels", rows * 8),
                       .maxima = tape.slot("row maxima", rows * 4),
                       .sums = tape.slot("row sums", rows * 8)};
  tape.emit("labels", Load{rows, true, 0, predictions, parts, replicas, c_.inner}, {.writes = {of.labels}});
  work.narrow ? narrow_cross_entropy(work, logits, of) : wide_cross_entropy(work, logits, of);
  if (c_.tensor > 1) tensor_all_reduce("loss sum reduce", of.sums, rows * 8, 4);
  work.part = CrossEntropy::Part::loss;
  work.metrics = stack.loss_metrics;
  tape.emit("loss", work, {.reads = {of.sums}, .writes = {tape.slot("loss", rows * 4)}});
}

}  // namespace orrery
