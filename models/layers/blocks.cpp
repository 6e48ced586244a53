#include "models/layers/blocks.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "models/layers/generation.h"
#include "models/layers/grid_linear.h"
#include "models/layers/hyper_connections.h"
#include "models/layers/layer_body.h"
#include "models/layers/layer_parts.h"
#include "models/layers/layer_tape.h"
#include "models/layers/linear.h"
#include "models/layers/loss.h"
#include "models/layers/norms.h"
#include "models/layers/vision.h"
#include "models/schedule/schedules.h"
#include "models/spec/vision.h"

namespace orrery {

// Returns the number of parts into which a micro-batch's samples are cut over a grid of tensor ranks.
static std::int64_t sample_parts(const Strategy& s) {
  if (!s.on_grid()) return 1;
  return grid_side(s) * (s.on_cube() ? grid_side(s) : s.tensor_depth);
}

BlockContext::BlockContext(const Spec& s, const ShardingRow& r)
    : spec(s),
      sharding(r),
      grid(s.strategy.on_grid()),
      cube(s.strategy.on_cube()),
      intermediate_side(cube   ? Side{Dimension::tensor_column, Dimension::tensor_row}
                        : grid ? residual_side
                               : Side{.columns = Dimension::tensor}),
      sequence(s.sequence / s.strategy.context),
      tensor(grid ? grid_side(s.strategy) : s.strategy.tensor),
      hidden(grid ? s.model.hidden / tensor : s.model.hidden),
      stream(hidden * streams_of(s.model)),
      kv_copies(std::max<std::int64_t>(1, tensor / std::max<std::int64_t>(1, s.model.kv_heads))),
      sequence_parallel(s.strategy.sequence_parallel && s.strategy.tensor > 1),
      width(storage_bytes(s.strategy.precision)) {
  divide_among(1);
  if (spreads_vocabulary(s.strategy.schedule)) shared.stages = s.strategy.pipeline;
  second = s.second && s.second->alone;
  const std::int64_t parts = tensor * (cube ? tensor : 1) * shared.stages;
  // Models that are cut apart over ranks of their own have logits of the same number of columns, to compare them.
  const std::int64_t most = has_second_apart(s) ? std::max(parts, s.second->strategy->tensor) : parts;
  padded_vocab =
      ceil_div(s.model.vocab, s.software.layout.vocab_multiple * most) * s.software.layout.vocab_multiple * most;
  table_rows = padded_vocab / parts;
}

void BlockContext::divide_among(std::int64_t replicas) {
  batch = spec.strategy.micro_batch / sample_parts(spec.strategy) / replicas;
  rows = batch * sequence;
  local_rows = sequence_parallel ? rows / tensor : rows;
}

bool transposes_eight_bit(const Spec& spec) {
  const bool tensor_scales = spec.strategy.precision == Precision::fp8 && !spec.software.kernels.rowwise_scales;
  return !tensor_scales || spec.software.kernels.casts_again || spec.cluster.gpu.compute_capability / 10 != 10;
}

std::int64_t eight_bit_elements(const Spec& spec, const Block& block) {
  if (!is_eight_bit(spec.strategy.precision) || block.role != BlockRole::layer) return 0;
  std::int64_t sum = 0;
  for (const LocalParameter& p : block.parameters) sum += p.in > 1 ? p.out * p.in : 0;
  return sum;
}

// Returns whether the last sharding unit of a stage (weights that are gathered and reduced together, as in FSDP) stays
// gathered from forward to backward although other units do not. KeptUnits::last keeps the unit that backward needs
// first; KeptUnits::ends keeps all weights of FSDP's root unit.
static bool keeps_last(const BlockContext& c) { return c.spec.software.communication.kept_units != KeptUnits::none; }

// Returns whether embedding and output, if they lie on one stage and share a tied matrix, belong to one FSDP unit that
// is gathered once for both (FSDP puts modules that share parameters into one unit). If passes of other micro-batches
// run between embedding and output, the embedding and the output each gather and reduce the unit for themselves.
static bool shares_unit(const BlockContext& c) {
  return c.spec.model.tied_embeddings && c.ends_meet && !c.ends_interleave;
}

// Returns whether the embedding block keeps its gathered table for the embedding lookups of multi-token prediction; the
// last lookup frees the table.
static bool keeps_table(const BlockContext& c) {
  return c.spec.model.mtp_layers > 0 && c.ends_meet && fresh_gradients(c.spec, c.sharding);
}

// Records the lookup of embedding rows by token. If each tensor rank holds a part of the vocabulary, the looked-up rows
// are summed over ranks.
static Id looked_up_tokens(LayerTape& b, const BlockContext& c) {
  const Model& m = c.spec.model;
  const std::int64_t vocab = c.table_rows;
  const auto tokens = b.tape.slot("tokens", c.rows * 8);  // token ids are 64-bit
  const auto table = b.tape.parameter("embedding.word.weight", vocab, m.hidden, Cut::rows);
  const auto looked_up = activation(b, "embeddings", c.rows, m.hidden);
  take_tokens(b, tokens);
  b.tape.emit("embedding", Embedding{c.rows, m.hidden, vocab},
              {.reads = {tokens}, .writes = {looked_up}, .weights = {table}});
  b.tape.on_backward([&b, &c, &m, table, vocab, looked_up, tokens] {
    table_gradient(b, "embedding", Embedding{c.rows, m.hidden, vocab, false, Direction::backward},
                   {b.tape.gradient(looked_up), tokens}, table, !shares_unit(c) && !keeps_table(c));
  });
  if (!m.vision || !c.sequence_parallel) return reduce_from_tensor(b, "embedding", looked_up, c.rows, m.hidden);
  // The rows of image tokens replace rows of the complete embeddings, before each tensor rank keeps only its local rows
  // (sequence parallelism).
  tensor_all_reduce(b, "embedding reduce", looked_up, c.rows * m.hidden * c.width, c.width);
  return looked_up;
}

Block embedding_block(const BlockContext& c, std::vector<Op>& ops) {
  LayerTape b(c, "embedding", BlockRole::embedding);
  b.tape.lends_weights = shares_unit(c) || keeps_table(c);
  if (c.spec.software.communication.kept_units == KeptUnits::ends) b.tape.releases_weights_after_forward = false;
  const Model& m = c.spec.model;
  b.tape.input_trains = vision_trains(m);
  if (m.vision) b.tape.input(c.batch * image_tokens(c.spec) * c.hidden * c.width);
  b.tape.output_gradient(c.local_rows * c.stream * c.width);
  if (c.spec.software.communication.blocking_forwards) b.tape.emit("wait for device", Wait{true}, {.host_waits = true});
  auto x = c.grid ? grid_embedding(b, "embedding", std::string(kEmbeddingTable)) : looked_up_tokens(b, c);
  if (m.vision) x = place_images(b, x, kInput);
  if (m.scaled_embedding) scale(b, "embedding scale", x, std::sqrt(static_cast<double>(m.hidden)));
  if (m.embedding_norm) x = norm(b, "embedding norm", x);
  x = dropout(b, "embedding dropout", add_positions(b, x));
  return b.tape.finish(m.hyper_connections ? repeat_streams(b, x) : x, ops);
}

Block layer_block(const BlockContext& c, std::int64_t layer, bool recompute, std::vector<Op>& ops, bool offload) {
  const bool sees = c.spec.model.bidirectional;
  LayerTape b(c, std::string(sees ? "vision layer" : "layer") + (recompute ? ", recomputed" : ""),
              sees ? BlockRole::vision : BlockRole::layer);
  if (recompute) b.recompute = c.spec.strategy.recompute;
  b.tape.offloads = offload;
  b.tape.offload_tier = c.spec.strategy.offload.activations;
  if (b.recompute.layer && c.spec.strategy.partition_activations) b.tape.input_parts = c.tensor;
  b.tape.contiguous = b.recompute.layer && c.spec.strategy.contiguous_activations;
  if (b.recompute.every_second_mlp && layer % 2 == 1) b.recompute.mlp = true;
  const Bytes boundary = c.local_rows * c.stream * c.width;
  b.tape.input_trains = trains_below(c.spec.model, layer);
  const auto x = b.tape.input(boundary);
  b.tape.output_gradient(boundary);
  if (!sees) feature_loss(b, layer);
  if (b.recompute.layer) b.tape.begin_region(true);
  return b.tape.finish(layer_body(b, c, layer, x), ops);
}

// Records the final norm; with hyper-connections, a token's streams are first summed to one.
static Id final_norm(LayerTape& b, const std::string& name, Id x) {
  if (b.model.hyper_connections) x = collapse_streams(b, name == "final norm" ? "head" : "prediction", x, true).hidden;
  return norm(b, name, x);
}

Block final_norm_block(const BlockContext& c, std::vector<Op>& ops) {
  LayerTape b(c, "final norm", BlockRole::final_norm);
  if (keeps_last(c)) b.tape.releases_weights_after_forward = false;
  b.tape.input_trains = trains_below(c.spec.model, c.spec.model.layers);
  b.tape.input(c.local_rows * c.stream * c.width);
  b.tape.output_gradient(c.local_rows * c.hidden * c.width);
  feature_loss(b, c.spec.model.layers);
  return b.tape.finish(final_norm(b, "final norm", kInput), ops);
}

// Returns the operand (an op's reference to a buffer) by which other blocks on the same stage read the embedding table
// or write its gradient. The buffer is that of the sharding unit (as in FSDP) which has the table, if units are
// gathered (for the table) or reduced by themselves (for the gradient); otherwise it is the chunk's flat buffer of
// weights or gradients.
static Operand lent_table(const BlockContext& c, Access access) {
  const bool reads = access == Access::read;
  if (reads ? c.sharding.shards_parameters : fresh_gradients(c.spec, c.sharding))
    return {Scope::unit, access, reads ? kGathered : kUnitGradient, -1, Part::tied};
  return {Scope::state, access, reads ? kParameters : kGradients, -1, Part::tied};
}

// Records the lookup of the embedding of the token `ahead` positions later, for multi-token prediction. If the
// embedding block is on another stage, this stage has a table of its own, whose gradient is summed with the embedding
// block's; on the same stage the lookup reads the embedding block's table (`table` is empty).
static Id predicted_embedding(LayerTape& b, const BlockContext& c, std::int64_t ahead,
                              const std::vector<std::int32_t>& table) {
  const std::int64_t vocab = c.padded_vocab / c.tensor, hidden = c.spec.model.hidden;
  const auto tokens = b.tape.slot("tokens", c.rows * 8);
  const auto looked_up = activation(b, "embeddings", c.rows, hidden);
  const auto lent = [=, &c](Access access) {
    return table.empty() ? std::vector{lent_table(c, access)} : std::vector<Operand>{};
  };
  b.tape.emit("tokens", Load{c.rows, false, ahead}, {.writes = {tokens}});
  b.tape.emit("embedding", Embedding{c.rows, hidden, vocab},
              {.reads = {tokens}, .writes = {looked_up}, .weights = table, .elsewhere = lent(Access::read)});
  b.tape.on_backward([=, &b, &c] {
    Embedding back = {c.rows, hidden, vocab, false, Direction::backward};
    const bool unit = fresh_gradients(c.spec, c.sharding);
    back.gradient_bytes = unit ? c.width : storage_bytes(c.spec.strategy.gradient_precision);
    // In backward, the lookup of the last multi-token prediction module is the first to add to the table's gradient, so
    // it sets that gradient to zero before.
    if (unit && ahead == c.spec.model.mtp_layers)
      b.tape.emit("embedding gradient zero", Fill{vocab * hidden * c.width},
                  {.weight_gradients = table, .elsewhere = lent(Access::write)});
    b.tape.emit("embedding gradient", back,
                {.reads = {b.tape.gradient(looked_up), tokens},
                 .weight_gradients = table,
                 .elsewhere = lent(Access::read_write)});
  });
  return reduce_from_tensor(b, "embedding", looked_up, c.rows, hidden);
}

// Sets when the embedding's table and gradient are allocated and freed if the lookups of multi-token prediction use
// them too: the gathered table is freed after the last lookup, and the gradient is allocated by the first op that
// writes it.
static void lend_lifetimes(const BlockContext& c, const Block& block, std::vector<Op>& ops) {
  const auto uses = [&](std::uint32_t id, std::uint16_t slot) {
    const auto& operands = ops[id].operands;
    return std::any_of(operands.begin(), operands.end(), [&](const Operand& o) {
      return o.scope == Scope::unit && o.part == Part::tied && o.slot == slot;
    });
  };
  const auto reads = [&](std::uint32_t id) { return uses(id, kGathered); };
  const auto last = std::find_if(block.forward.rbegin(), block.forward.rend(), reads);
  const bool stays = !c.splits_backward && (!c.sharding.reshards_after_forward ||
                                            c.spec.software.communication.kept_units == KeptUnits::ends);
  if (last != block.forward.rend() && !stays) ops[*last].frees.push_back(lent_table(c, Access::read));
  for (const std::uint32_t id : block.backward) {
    if (uses(id, kUnitGradient)) ops[id].allocates.push_back(lent_table(c, Access::write));
  }
}

// Records the input of the layer of one multi-token prediction module: a projection of the hidden states of the module
// before it, and of the embedding of the next token. With hyper-connections there are two projections: that of the
// hidden states runs on every stream, and that of the embedding is added to all streams (DeepSeek-V4,
// inference/model.py beside its weights: MTPBlock).
static Id prediction_input(LayerTape& b, const BlockContext& c, Id embedded, Id hidden) {
  const std::int64_t h = c.spec.model.hidden, rows = c.local_rows * streams_of(c.spec.model);
  // `next` and `before` are computed in separate statements because C++ leaves the order in which arguments of a call
  // are evaluated to the compiler, and ops must be recorded in the same order everywhere.
  const auto next = norm(b, "prediction embedding norm", embedded);
  const auto before = norm_rows(b, "prediction hidden norm", hidden, rows, h, true);
  if (!c.spec.model.hyper_connections)
    return replicated(b, "prediction projection", join(b, "prediction input", next, before, c.local_rows, h, h), 2 * h,
                      h, {.name = "prediction.projection"});
  const auto of_next =
      replicated(b, "prediction embedding projection", next, h, h, {.name = "prediction.embedding_projection"});
  const auto of_streams = replicated(b, "prediction hidden projection", before, h, h,
                                     {.name = "prediction.hidden_projection", .rows = rows});
  return add_to_streams(b, "prediction input", of_next, of_streams);
}

// With hyper-connections, the modules of multi-token prediction read the streams before the final norm, so the block of
// these modules then includes the final norm.
Block prediction_block(const BlockContext& c, std::vector<Op>& ops) {
  const Model& m = c.spec.model;
  LayerTape b(c, "multi-token prediction", BlockRole::layer);
  b.recompute = c.spec.strategy.recompute;
  const bool streams = m.hyper_connections.has_value();
  auto before = b.tape.input(c.local_rows * c.stream * c.width);
  b.tape.output_gradient((1 + m.mtp_layers) * c.local_rows * m.hidden * c.width);
  std::vector<std::int32_t> table;
  if (!c.ends_meet)
    table = {b.tape.parameter(std::string(kEmbeddingTable), c.padded_vocab / c.tensor, m.hidden, Cut::rows)};
  auto all = streams ? final_norm(b, "final norm", before) : before;
  for (std::int64_t d = 0; d < m.mtp_layers; ++d) {
    b.tape.prefix = fmt::format("prediction {} ", d);
    const auto x = prediction_input(b, c, predicted_embedding(b, c, 1 + d, table), before);
    if (b.recompute.layer) b.tape.begin_region(true);
    const auto y = layer_body(b, c, prediction_layer(m), x);
    if (b.recompute.layer) b.tape.end_region();
    const auto hidden = final_norm(b, "prediction final norm", y);
    before = streams ? y : hidden;
    all = join(b, "predictions", all, hidden, 1, (1 + d) * c.local_rows * m.hidden, c.local_rows * m.hidden);
  }
  Block block = b.tape.finish(all, ops);
  if (keeps_table(c)) lend_lifetimes(c, block, ops);
  return block;
}

// Returns a copy of the context whose numbers of rows cover the model's own output and all multi-token predictions.
static BlockContext with_predictions(const BlockContext& c) {
  BlockContext all = c;
  const std::int64_t predictions = 1 + c.spec.model.mtp_layers;
  all.batch *= predictions;
  all.rows *= predictions;
  all.local_rows *= predictions;
  return all;
}

Block output_block(const BlockContext& context, std::vector<Op>& ops) {
  if (context.spec.generation) return next_token_block(context, ops);
  if (context.second) return second_output_block(context, ops);
  const BlockContext c = with_predictions(context);
  LayerTape b(c, "output", BlockRole::output);
  if (keeps_last(c)) b.tape.releases_weights_after_forward = false;
  // A gathered table that the embedding and the output share (tied) is freed after the embedding's backward. A frozen
  // table has no embedding backward, so the output's backward frees it.
  const bool embedding_runs_back = !is_frozen(c.spec.model, kEmbeddingTable);
  b.tape.releases_weights_after_backward = !shares_unit(c) || c.splits_backward || !embedding_runs_back;
  b.tape.input(c.local_rows * c.hidden * c.width);
  const std::optional<SecondModel>& second = c.spec.second;
  const bool teaches = second && second->role == SecondModel::Role::teacher;
  // the buffer kBeside is the first that is added after the block's input and output gradient
  const std::int64_t columns = c.padded_vocab / c.tensor;
  if (second) {
    const std::string name(name_of(second->role));
    const Bytes bytes = c.rows * (teaches ? columns * 4 : 8);
    if (second->gpus == 0)
      b.tape.input_beside(name, bytes);
    else
      teaches ? receive_logits(b, b.tape.slot(name, bytes), columns) : receive_sums(b, b.tape.slot(name, bytes));
  }
  const std::string weight = c.spec.model.tied_embeddings ? "embedding.word" : "output";
  const auto logits = c.grid ? grid_logits(b, "logits", kInput, weight + ".weight")
                             : column_parallel(b, "logits", kInput, c.spec.model.hidden, columns, {weight});
  soft_cap(b, "logit cap", logits, c.rows * columns, c.spec.model.logit_softcap, c.spec.software.kernels.compile);
  if (c.duty == Duty::master || c.duty == Duty::replica)
    gathered_cross_entropy(b, logits, columns);
  else if (second)
    teaches ? distillation_loss(b, logits, columns) : preference_loss(b, logits, columns);
  else
    cross_entropy(b, logits, columns);
  return b.tape.finish(ops);
}

// Makes the host wait for a received tensor, because the host reads the tensor's shape before it issues the next op.
// device: the host also waits until the GPU has done all launched work.
static void wait_on_host(LayerTape& b, const BlockContext& c, const char* name, Id received, bool device) {
  if (c.spec.software.communication.blocking_receives || device)
    b.tape.emit(name, Wait{device}, {.reads = {received}, .host_waits = true});
}

std::int64_t parts_sent(const Spec& spec, bool activations) {
  const Strategy& s = spec.strategy;
  const ScatteredSends what = spec.software.communication.scattered_sends;
  const bool scattered = what == ScatteredSends::all || (what == ScatteredSends::activations && activations);
  return scattered && !s.on_grid() && !s.sequence_parallel ? s.tensor : 1;
}

// Records one transfer for each rank of the neighbouring stage to which this rank sends some of its rows, or from which
// it receives some.
static void pass_slices(LayerTape& b, const BlockContext& c, const char* name, const Transfer& like,
                        const BlockBuilder::Uses& uses, LaneKind lane) {
  const Bytes row = c.stream * c.width;
  for (const Slice& s : c.slices)
    b.tape.emit(name, Transfer{like.send, s.offset, s.rows * row, s.first * row, like.parts}, uses, lane);
}

static Transfer passed_activation(const BlockContext& c, bool send) {
  return {.send = send, .parts = parts_sent(c.spec, true)};
}
static Transfer passed_gradient(const BlockContext& c, bool send) {
  return {.send = send, .parts = parts_sent(c.spec, false)};
}

Block receive_block(const BlockContext& c, std::vector<Op>& ops) {
  const Bytes bytes = c.local_rows * c.stream * c.width;
  LayerTape b(c, "receive", BlockRole::receive);
  b.tape.output_gradient(bytes);
  const auto x = b.tape.slot("received activation", bytes);
  const bool onwards = c.stage_step > 0;
  pass_slices(b, c, "receive activation", passed_activation(c, false), {.writes = {x}},
              onwards ? LaneKind::receive_previous : LaneKind::receive_next);
  wait_on_host(b, c, "wait for activation", x, c.spec.software.communication.blocking_forwards);
  b.tape.on_backward([&b, &c, onwards] {
    pass_slices(b, c, "send gradient", passed_gradient(c, true), {.reads = {kOutputGradient}},
                onwards ? LaneKind::send_previous : LaneKind::send_next);
  });
  return b.tape.finish(x, ops);
}

Block send_block(const BlockContext& c, std::vector<Op>& ops) {
  const Bytes bytes = c.local_rows * c.stream * c.width;
  LayerTape b(c, "send", BlockRole::send);
  const auto x = b.tape.input(bytes);
  const bool onwards = c.stage_step > 0;
  pass_slices(b, c, "send activation", passed_activation(c, true), {.reads = {x}},
              onwards ? LaneKind::send_next : LaneKind::send_previous);
  b.tape.on_backward([&b, &c, x, onwards, bytes] {
    const auto received = b.tape.slot("received gradient", bytes);
    pass_slices(b, c, "receive gradient", passed_gradient(c, false), {.writes = {received}},
                onwards ? LaneKind::receive_next : LaneKind::receive_previous);
    wait_on_host(b, c, "wait for gradient", received, false);
    b.tape.contribute(x, received);
  });
  return b.tape.finish(ops);
}

}  // namespace orrery
