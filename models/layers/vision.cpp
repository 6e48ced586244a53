#include "models/layers/vision.h"

#include <string>

#include <fmt/format.h>

#include "models/layers/layer_parts.h"
#include "models/layers/linear.h"
#include "models/layers/norms.h"
#include "models/spec/vision.h"

namespace orrery {

VisionContext::VisionContext(const BlockContext& text)
    : spec(encoder_spec(text.spec)), patches(spec, text.sharding), projected(patches) {
  const VisionEncoder& v = *spec.model.vision;
  patches.splits_backward = projected.splits_backward = text.splits_backward;
  projected.sequence = spec.sequence / (v.projector.merge * v.projector.merge);
  projected.rows = projected.local_rows = projected.batch * projected.sequence;
}

// Records the copy of the images' pixels from the host to the device; a pixel's values have the width of activations.
static Id loaded_pixels(LayerTape& b, const BlockContext& c) {
  const Bytes bytes = c.rows * c.spec.model.vision->patches.pixels() * c.width;
  const Id pixels = b.tape.slot("pixels", bytes);
  // The op Load states its amount as a number of token ids, of 8 bytes each, so the bytes of the pixels are divided by
  // 8.
  constexpr Bytes kToken = 8;
  b.tape.emit("pixels", Load{bytes / kToken, false}, {.writes = {pixels}});
  return pixels;
}

Block patches_block(const VisionContext& context, std::vector<Op>& ops) {
  const BlockContext& c = context.patches;
  const VisionEncoder& v = *c.spec.model.vision;
  LayerTape b(c, "vision patches", BlockRole::vision);
  b.tape.output_gradient(c.rows * c.hidden * c.width);
  const Id pixels = loaded_pixels(b, c);
  const ColumnWeight weight = {.name = "embedding.patch", .bias = v.patches.bias, .input_gradient = false};
  const Id x = replicated(b, "patch embedding", pixels, v.patches.pixels(), v.hidden, weight);
  return b.tape.finish(v.patches.positions > 0 ? add_learned_positions(b, x, v.patches.positions) : x, ops);
}

// Records the addition of a bias to the result of a row-parallel product, after the sum over tensor ranks.
static Id add_bias(LayerTape& b, const std::string& name, Id x, std::int64_t columns, const std::string& parameter) {
  const BlockContext& c = b.context;
  const std::int32_t bias = b.tape.parameter(parameter, columns, 1, Cut::none);
  const Residual work = {.rows = c.rows,
                         .columns = columns,
                         .residual = false,
                         .bias = true,
                         .fused = c.spec.software.kernels.fused_residual};
  const Id y = activation(b, name, c.rows, columns);
  b.tape.emit(name, work, {.reads = {x}, .writes = {y}, .weights = {bias}});
  b.tape.on_backward([=, &b, &c] {
    bias_gradient(b, name, b.tape.gradient(y), c.rows, columns, bias);
    b.tape.contribute(x, b.tape.gradient(y));
  });
  return y;
}

static Id gelu(LayerTape& b, const std::string& name, Id x, std::int64_t width) {
  const BlockContext& c = b.context;
  const Activation work = {c.rows, width, false, c.spec.software.kernels.fused_activation, Direction::forward};
  const Id y = activation(b, name, c.rows, width);
  b.tape.emit(name, work, {.reads = {x}, .writes = {y}});
  b.tape.on_backward([=, &b, &c] {
    Activation back = work;
    back.direction = Direction::backward;
    const Id dx = activation(b, name + " gradient", c.rows, width);
    b.tape.emit(name + " gradient", back, {.reads = {x, b.tape.gradient(y)}, .writes = {dx}});
    b.tape.contribute(x, dx);
  });
  return y;
}

static Id sum_of(LayerTape& b, Id first, Id second, std::int64_t columns) {
  const std::int64_t rows = b.context.rows;
  const Id y = activation(b, "projectors", rows, columns);
  b.tape.emit("projectors", Add{rows * columns}, {.reads = {first, second}, .writes = {y}});
  b.tape.on_backward([=, &b] {
    b.tape.contribute(first, b.tape.gradient(y));
    b.tape.contribute(second, b.tape.gradient(y));
  });
  return y;
}

// Records one projector (an MLP from the vision encoder's hidden states to the text model's). The first projector norms
// patches before they are joined, the others after it (Qwen3-VL).
static Id projector(LayerTape& b, const VisionContext& context, std::int64_t number, std::int64_t text_hidden) {
  const BlockContext& c = context.projected;
  const VisionEncoder& v = *c.spec.model.vision;
  const std::string name = fmt::format("projector{}", number);
  const Id scaled = number == 0 ? norm_rows(b, name + ".scale", kInput, context.patches.rows, v.hidden, true)
                                : norm_rows(b, name + ".scale", kInput, c.rows, v.merged(), true);
  const std::int64_t width = v.projector.width / c.tensor;
  const Id up = column_parallel(b, name + " up", scaled, v.merged(), width, {name + ".up", Cut::rows, v.bias});
  const Id active = gelu(b, name + " activation", up, width);
  const Id down = row_parallel(b, name + " down", active, width, text_hidden, name + ".down.weight", true);
  return v.bias ? add_bias(b, name + " output", down, text_hidden, name + ".down.bias") : down;
}

Block projector_block(const VisionContext& context, std::int64_t text_hidden, std::vector<Op>& ops) {
  const BlockContext& c = context.projected;
  const VisionEncoder& v = *c.spec.model.vision;
  LayerTape b(c, "vision projector", BlockRole::vision);
  b.tape.input_trains = trains_below(c.spec.model, v.layers);
  b.tape.input(context.patches.rows * v.hidden * c.width);
  b.tape.output_gradient(c.rows * text_hidden * c.width);
  Id sum = projector(b, context, 0, text_hidden);
  for (std::int64_t p = 1; p < v.projector.count; ++p)
    sum = sum_of(b, sum, projector(b, context, p, text_hidden), text_hidden);
  return b.tape.finish(sum, ops);
}

// Records the selection of this rank's rows of x, all rows of which are on every tensor rank; backward gathers the
// gradient of all rows.
static Id kept_rows(LayerTape& b, Id x) {
  const BlockContext& c = b.context;
  if (!c.sequence_parallel) return x;
  const Id local = activation(b, "local embeddings", c.local_rows, c.hidden);
  b.tape.emit("local embeddings", Cast{c.local_rows * c.hidden, c.width, c.width}, {.reads = {x}, .writes = {local}});
  b.tape.on_backward([=, &b, &c] {
    const Id whole = activation(b, "embeddings gradient", c.rows, c.hidden);
    tensor_collective(b, "embeddings gradient gather", CollectiveKind::all_gather, b.tape.gradient(local), whole,
                      c.hidden, c.width);
    b.tape.contribute(x, whole);
  });
  return local;
}

Id place_images(LayerTape& b, Id x, Id images) {
  const BlockContext& c = b.context;
  const std::int64_t elements = c.batch * image_tokens(c.spec) * c.hidden;
  b.tape.emit("image tokens", Cast{elements, c.width, c.width}, {.reads = {images}, .updates = {x}});
  b.tape.on_backward([=, &b, &c] {
    if (!b.tape.input_trains) return;
    const Id of_images = activation(b, "image tokens gradient", elements / c.hidden, c.hidden);
    b.tape.emit("image tokens gradient", Cast{elements, c.width, c.width},
                {.reads = {b.tape.gradient(x)}, .writes = {of_images}});
    b.tape.contribute(images, of_images);
  });
  return kept_rows(b, x);
}

}  // namespace orrery
