#include "models/layers/layer_tape.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "models/base/error.h"

namespace orrery {
namespace {

Scope weight_scope(const ShardingRow& row) { return row.shards_parameters ? Scope::unit : Scope::state; }
Scope gradient_scope(const BlockContext& c) { return fresh_gradients(c.spec, c.sharding) ? Scope::unit : Scope::state; }

// Returns the precision of a block's products. With 8 bits only the layers' products read 8-bit operands (Transformer
// Engine), or those that strategy.quantise.layers names (QuantisedProducts); embedding and output stay in bf16
// (Megatron-Core, unless fp8_output_proj is set).
Precision precision_of(const BlockContext& c, BlockRole role) {
  const Precision p = c.spec.strategy.precision;
  const bool layer = role == BlockRole::layer && c.spec.strategy.quantised_layers == QuantisedLayers::all;
  const bool output = role == BlockRole::output && c.spec.software.kernels.eight_bit_output;
  return is_eight_bit(p) && !layer && !output ? Precision::bf16 : p;
}

// Throws Error if groups of weights do not end where a rank's part of the matrix ends.
WeightFormat fitting(const Spec& spec, const WeightFormat& format, const std::string& parameter, std::int64_t in) {
  if (format.group < 1 || in % format.group == 0) return format;
  const std::int64_t fits = std::gcd(format.group, in);
  const bool stated = std::ranges::none_of(
      spec.origins, [](const Origin& o) { return o.key == "strategy.quantise.group" && o.from == "format"; });
  throw Error(
      fmt::format("strategy.quantise.group: {}{} does not divide the {} inputs that a rank has of {}; set "
                  "quantise.group: {}, or take fewer tensor ranks",
                  format.group, stated ? "" : fmt::format(" ({}'s default)", name_of(format.code)), in, parameter,
                  fits > 1 ? std::to_string(fits) : "channel"));
}

}  // namespace

LayerTape::LayerTape(const BlockContext& c, const std::string& name, BlockRole role)
    : tape(c.second ? fmt::format("{} {}", name_of(c.spec.second->role), name) : name, role, precision_of(c, role),
           weight_scope(c.sharding),
           c.sharding.shards_parameters ? static_cast<Id>(kGathered) : static_cast<Id>(kParameters), gradient_scope(c),
           gradient_scope(c) == Scope::unit ? static_cast<Id>(kUnitGradient) : static_cast<Id>(kGradients)),
      context(c),
      model(c.spec.model),
      heads(model.heads / c.tensor),
      kv_heads(std::max<std::int64_t>(1, model.kv_heads / c.tensor)),
      eight_bit(is_eight_bit(precision_of(c, role))),
      dummy_gradients(role == BlockRole::output && c.spec.software.communication.dummy_gradients),
      rounds(role == BlockRole::layer && c.spec.strategy.inputs.narrow() && !c.second),
      overlaps(role == BlockRole::layer && c.spec.strategy.overlap.tensor && c.sequence_parallel),
      tiles(role == BlockRole::layer ? c.spec.strategy.offload.tiling : 1) {
  tape.splits_backward = c.splits_backward;
  if (c.spec.strategy.keep_16bit_gradients) tape.fresh_gradients = static_cast<Id>(kFreshGradients);
  tape.forward_only = c.spec.generation.has_value() || c.second;
  tape.second = c.second;
  if (c.second) tape.prefix = std::string(name_of(c.spec.second->role)) + " ";
  tape.releases_weights_after_forward = c.sharding.reshards_after_forward;
  tape.frees_gathered = c.spec.strategy.units.by_layer();
  if (c.spec.strategy.weights.narrow() && role == BlockRole::layer && !c.second)
    tape.format_of = [&spec = c.spec](const std::string& parameter, std::int64_t in) {
      const Strategy& s = spec.strategy;
      return is_quantised(parameter, in, s.quantised_layers) ? fitting(spec, s.weights, parameter, in) : WeightFormat{};
    };
  if (keeps_narrow_weights(c.spec)) tape.units_of_a_wide_weight = c.width;
  tape.frozen_slot = c.sharding.shards_parameters ? static_cast<Id>(kGatheredFrozen) : static_cast<Id>(kFrozen);
  if (!has_frozen(model)) return;
  tape.is_frozen = [&m = model](const std::string& parameter) { return is_frozen(m, parameter); };
  tape.is_nf4 = [&m = model](const std::string& parameter, std::int64_t in) { return is_nf4(m, parameter, in); };
}

bool runs_eight_bit(const LayerTape& layer, QuantisedLayers part) {
  const Strategy& s = layer.context.spec.strategy;
  if (s.quantised_layers == QuantisedLayers::all) return layer.eight_bit;
  return is_eight_bit(s.precision) &&
         (s.quantised_layers == QuantisedLayers::feed_forward || s.quantised_layers == part);
}

QuantisedProducts::QuantisedProducts(LayerTape& layer, QuantisedLayers part)
    : layer_(layer), precision_(layer.tape.precision()), eight_bit_(layer.eight_bit) {
  const Strategy& s = layer.context.spec.strategy;
  if (s.quantised_layers == QuantisedLayers::all || !is_eight_bit(s.precision)) return;
  layer.eight_bit = runs_eight_bit(layer, part);
  layer.tape.set_precision(layer.eight_bit ? s.precision : Precision::bf16);
}

QuantisedProducts::~QuantisedProducts() {
  layer_.tape.set_precision(precision_);
  layer_.eight_bit = eight_bit_;
}

Id activation(LayerTape& layer, const std::string& name, std::int64_t row_count, std::int64_t columns) {
  return layer.tape.slot(name, row_count * columns * layer.context.width);
}

void tensor_all_reduce(LayerTape& layer, const std::string& name, Id x, Bytes bytes, Bytes width, bool maximum) {
  layer.tape.emit(
      name,
      Collective{.group = layer.context.intermediate_side.columns, .bytes = bytes, .width = width, .maximum = maximum},
      {.updates = {x}}, LaneKind::tensor);
}

std::vector<std::int32_t> tiled_weight(LayerTape& layer, const std::string& name, std::int64_t out, std::int64_t in,
                                       Cut cut, const std::vector<std::int64_t>& apart) {
  for (const std::int64_t outputs : apart.empty() ? std::vector{out} : apart) {
    if (outputs % layer.tiles != 0)
      throw Error(
          fmt::format("strategy.offload.tiling: {} does not divide the {} outputs of {}", layer.tiles, outputs, name));
  }
  return layer.tape.tiled_parameter(name, out, in, cut, layer.tiles);
}

bool in_symmetric_memory(const LayerTape& layer) {
  return layer.context.spec.software.communication.tensor_overlap == TensorOverlap::symmetric_memory;
}

void tensor_collective(LayerTape& layer, const std::string& name, CollectiveKind kind, Id from, Id to,
                       std::int64_t columns, Bytes width, std::int64_t piece, std::int64_t parts) {
  const BlockContext& c = layer.context;
  Collective work = {kind, Dimension::tensor, c.rows * columns * width / parts, width};
  work.first = piece * (c.rows * columns / parts);
  if (parts > 1) work.algorithm = in_symmetric_memory(layer) ? kCopyEngines : kUserBuffers;
  const bool copies = c.spec.software.communication.sequence_copies && parts == 1,
             gathers = kind == CollectiveKind::all_gather;
  const Id aside = copies    ? layer.tape.slot(name + (gathers ? " arrived" : " by rank"), work.bytes)
                   : gathers ? to
                             : from;
  const auto copy = [&](Id source, Id result) {
    layer.tape.emit(name + " copy", Cast{c.rows * columns, width, width}, {.reads = {source}, .writes = {result}});
  };
  if (copies && !gathers) copy(from, aside);
  layer.tape.emit(name, work, {.reads = {gathers ? from : aside}, .writes = {gathers ? aside : to}}, LaneKind::tensor);
  if (copies && gathers) copy(aside, to);
}

std::int32_t vector_parameter(LayerTape& layer, const std::string& name) {
  const BlockContext& c = layer.context;
  if (!c.grid) return layer.tape.parameter(name, layer.model.hidden, 1, Cut::none, c.sequence_parallel);
  return layer.tape.parameter(
      {.name = name, .out = c.hidden, .in = 1, .cut = Cut::rows, .partial = true, .over = c.residual_side.columns});
}

void bias_gradient(LayerTape& layer, const std::string& name, Id dy, std::int64_t row_count, std::int64_t columns,
                   std::int32_t parameter) {
  layer.tape.emit(name + " bias gradient", BiasGradient{row_count, columns},
                  {.reads = {dy}, .weight_gradients = {parameter}});
}

Id rows_of(LayerTape& layer, const std::string& name, const TokenRows& rows, std::int64_t columns, Bytes width) {
  return layer.tape.slot_of_rows(name, rows.count * columns * width, rows.size);
}

// Returns whether a kernel finds the largest magnitude of what it writes: those of norms and activation functions
// (Transformer Engine since its pull requests 2004 and 2013), with torch.compile all element-wise ones (reductions
// fuse with what they read).
static bool finds_magnitude(const Work& work, bool compiles) {
  const auto is = [&]<class... Kind>() { return (std::holds_alternative<Kind>(work) || ...); };
  return is.operator()<Normalize, Activation>() ||
         (compiles && is.operator()<Residual, Rotary, Add, Cast, SigmoidGate, SoftCap>());
}

// Records the pass that finds a tensor's largest magnitude, where no kernel before does: nvfp4 has a scale for the
// tensor beside those of 16 numbers (Transformer Engine recipe NVFP4BlockScaling), of a transformed tensor if rows are
// mixed by a Hadamard matrix, which no other kernel knows.
static void find_magnitude(LayerTape& layer, const std::string& name, Id x, std::int64_t elements) {
  const BlockContext& c = layer.context;
  const Precision precision = layer.tape.precision();
  const bool current =
      precision == Precision::fp8 && c.spec.software.kernels.current_scales && !c.spec.software.kernels.rowwise_scales;
  const Op* writer = layer.tape.writer_of(x);
  const bool found = current && writer != nullptr && finds_magnitude(writer->work, c.spec.software.kernels.compile);
  if (c.spec.generation || found || (!current && precision != Precision::nvfp4)) return;
  const Id largest = layer.tape.slot(name + " largest magnitude", 4);
  layer.tape.emit(name + " largest magnitude", Cast{elements, c.width, 0}, {.reads = {x}, .writes = {largest}});
}

// Records the cast of the columns of a tensor whose rows follow each other, with a scale for each column: its numbers
// are transposed in 16 bits before (torchao float8/roofline_utils.py, "rowwise": x_bf16_dim0 -> x_bf16_dim1 ->
// x_float8_dim1).
static Id columns_to_fp8(LayerTape& layer, const std::string& name, Id x, std::int64_t elements) {
  const Bytes width = layer.context.width;
  const Id wide = layer.tape.slot(name + " transposed", elements * width, Category::buffers);
  const Id columns = layer.tape.slot(name + " in fp8, transposed", elements);
  layer.tape.emit(name + " transpose", Cast{elements, width, width}, {.reads = {x}, .writes = {wide}});
  layer.tape.emit(name + " columns to fp8", Cast{elements, width, 1}, {.reads = {wide}, .writes = {columns}});
  return columns;
}

CastSlots to_fp8(LayerTape& layer, const std::string& name, Id x, std::int64_t elements, bool transpose, bool within,
                 bool own_kernel) {
  if (!layer.eight_bit) return {x, x};
  const bool kept = transpose, apart = transpose && layer.context.spec.software.kernels.rowwise_scales;
  transpose = transpose && transposes_eight_bit(layer.context.spec);
  if (!within) find_magnitude(layer, name, x, elements);
  const Id rows = layer.tape.slot(name + " in fp8", elements);
  BlockBuilder::Uses uses = {.reads = {x}, .writes = {rows}, .within = within, .same_call = own_kernel};
  if (transpose && !apart) uses.writes.push_back(layer.tape.slot(name + " in fp8, transposed", elements));
  layer.tape.emit(name + " to fp8", Cast{elements, layer.context.width, 1, transpose && !apart, 1, own_kernel}, uses);
  if (!apart) return {rows, uses.writes.back(), kept};
  return {rows, columns_to_fp8(layer, name, x, elements), kept};
}

void rescale(LayerTape& layer, const std::string& name, Id x, std::int64_t elements) {
  if (!layer.eight_bit || !layer.context.spec.software.kernels.rowwise_scales) return;
  const Bytes width = layer.context.width;
  layer.tape.emit(name + " scale", Cast{elements, width, width}, {.reads = {x}, .updates = {x}});
}

Bytes operand_width(const LayerTape& layer) { return layer.eight_bit ? 1 : layer.context.width; }

// Returns whether a kernel of its own casts x, which a product of generated text reads: not where the kernel that
// writes x does it (InputCasts), which can where the whole tensor has one scale, known before. Kernels that
// torch.compile makes find the scale of a row too; norms and attention that are written by hand cast to nvfp4
// (TensorRT-LLM's allReduceFusionKernels, and its attention's out_scale). A norm by hand casts if it is one kernel with
// the all-reduce before it.
static bool casts_apart(const LayerTape& layer, Id x) {
  const BlockContext& c = layer.context;
  const InputCasts casts = c.spec.software.kernels.input_casts;
  const Op* writer = layer.tape.writer_of(x);
  const bool four_bits = layer.tape.precision() == Precision::nvfp4, fused = casts == InputCasts::fused;
  const std::int64_t group = c.spec.strategy.weights.group;
  // Inputs are taken to be scaled as their weights: by tensor, or by row where weights are by output.
  const bool whole_rows = group == kTensorGroup || (!fused && group == kChannelGroup);
  const bool eight_bits = layer.tape.precision() == Precision::fp8 && whole_rows;
  if (!c.spec.generation) return false;
  if (casts == InputCasts::apart || writer == nullptr || !(eight_bits || (four_bits && fused))) return true;
  const auto is = [&]<class... Kind>() { return (std::holds_alternative<Kind>(writer->work) || ...); };
  if (!fused) return is.operator()<FlashAttention, Gemm, GroupedGemm, Scan>();  // kernels of libraries
  if (is.operator()<Normalize>()) return !writer->same_call;
  return is.operator()<Activation>() ? four_bits : !is.operator()<FlashAttention>();
}

CastSlots input_to_fp8(LayerTape& layer, const std::string& name, Id x, std::int64_t rows, std::int64_t columns,
                       bool keep) {
  if (layer.rounds) {
    const Id rounded = activation(layer, name + " rounded input", rows, columns);
    const WeightFormat& format = fitting(layer.context.spec, layer.context.spec.strategy.inputs, name, columns);
    layer.tape.emit(name + " input rounding",
                    FakeQuantize{format, rows, columns, layer.context.spec.software.kernels.compile},
                    {.reads = {x}, .writes = {rounded}});
    return {rounded, rounded, true};
  }
  const bool kept = keep && !layer.context.spec.software.kernels.casts_again;
  return to_fp8(layer, name + " input", x, rows * columns, kept, false, casts_apart(layer, x));
}

Id input_columns(LayerTape& layer, const std::string& name, Id x, std::int64_t elements, const CastSlots& given) {
  if (!layer.eight_bit || given.kept) return given.columns;
  if (layer.context.spec.software.kernels.rowwise_scales)
    return columns_to_fp8(layer, name + " input again", x, elements);
  return to_fp8(layer, name + " input again", x, elements, true).columns;
}

Id transposed(LayerTape& layer, const std::string& name, Id x, std::int64_t elements) {
  if (!layer.eight_bit || !transposes_eight_bit(layer.context.spec)) return x;
  const Id y = layer.tape.slot(name + " transposed", elements);
  layer.tape.emit(name + " transpose", Cast{elements, 1, 1}, {.reads = {x}, .writes = {y}});
  return y;
}

std::vector<Id> with_weight(LayerTape& layer, const std::string& name, Id x, std::int32_t weight, const Gemm& forward) {
  const BlockContext& c = layer.context;
  const std::int64_t elements = forward.n * forward.k;
  if (layer.tape.is_nf4_weight(weight)) {
    const Id wide = layer.tape.slot(name + " weight", elements * c.width, Category::buffers);
    layer.tape.emit(name + " weight from nf4", Dequantize{.format = kNf4Format, .elements = elements, .wide = c.width},
                    {.writes = {wide}, .weights = {weight}});
    return {x, wide};
  }
  if (layer.rounds) {
    const auto [kept, first] = layer.rounded.try_emplace(weight);
    if (first) {
      kept->second = layer.tape.slot(name + " rounded weight", elements * c.width);
      layer.tape.emit(
          name + " weight rounding",
          FakeQuantize{layer.tape.format_of_weight(weight), forward.n, forward.k, c.spec.software.kernels.compile},
          {.writes = {kept->second}, .weights = {weight}});
    }
    return {x, kept->second};
  }
  if (!layer.eight_bit || !c.sharding.shards_parameters) return {x};
  const Id cast = layer.tape.slot(name + " weight in fp8", elements);
  layer.tape.emit(name + " weight to fp8", Cast{elements, c.width, 1}, {.writes = {cast}, .weights = {weight}});
  return {x, cast};
}

}  // namespace orrery
