#include "models/layers/hyper_connections.h"

#include <vector>

#include "models/layers/linear.h"

namespace orrery {

static MixStreams stream_work(const LayerTape& layer, MixStreams::Part part) {
  return {.rows = layer.context.local_rows,
          .streams = streams_of(layer.model),
          .columns = layer.model.hidden,
          .part = part};
}

static MixStreams reversed(MixStreams work) {
  work.direction = Direction::backward;
  return work;
}

static Id streams_slot(LayerTape& layer, const std::string& name) {
  return activation(layer, name, layer.context.local_rows, layer.context.stream);
}

static Id hidden_slot(LayerTape& layer, const std::string& name) {
  return activation(layer, name, layer.context.local_rows, layer.context.hidden);
}

Id repeat_streams(LayerTape& layer, Id hidden) {
  const MixStreams work = stream_work(layer, MixStreams::Part::repeat);
  const Id y = streams_slot(layer, "streams");
  layer.tape.emit("streams", work, {.reads = {hidden}, .writes = {y}});
  layer.tape.on_backward([=, &layer] {
    const Id dx = hidden_slot(layer, "streams' sum of gradients");
    layer.tape.emit("streams gradient", reversed(work), {.reads = {layer.tape.gradient(y)}, .writes = {dx}});
    layer.tape.contribute(hidden, dx);
  });
  return y;
}

Id add_to_streams(LayerTape& layer, const std::string& name, Id hidden, Id streams) {
  const MixStreams work = stream_work(layer, MixStreams::Part::add);
  const Id y = streams_slot(layer, name);
  layer.tape.emit(name, work, {.reads = {hidden, streams}, .writes = {y}});
  layer.tape.on_backward([=, &layer] {
    const Id dy = layer.tape.gradient(y), dx = hidden_slot(layer, name + " gradient");
    layer.tape.emit(name + " gradient", reversed(work), {.reads = {dy}, .writes = {dx}});
    layer.tape.contribute(hidden, dx);
    layer.tape.contribute(streams, dy);
  });
  return y;
}

// The weights with which streams are mixed are stored in fp32 (4 bytes), as in DeepSeek-V4 (inference/model.py beside
// its weights).
Collapsed collapse_streams(LayerTape& layer, const std::string& name, Id streams, bool head) {
  const BlockContext& c = layer.context;
  const HyperConnections& h = *layer.model.hyper_connections;
  const std::int64_t count = head ? h.streams : h.weights();
  const std::string weight = name + ".hyper";
  const Id logits = replicated(layer, name + " stream logits", streams, h.streams * layer.model.hidden, count,
                               {.name = weight, .wide = true});
  const std::vector<std::int32_t> learned = {
      layer.tape.parameter(weight + ".bias", count, 1, Cut::none, c.sequence_parallel),
      layer.tape.parameter(weight + ".scale", head ? 1 : 3, 1, Cut::none, c.sequence_parallel)};
  MixStreams work = stream_work(layer, MixStreams::Part::collapse);
  work.iterations = head ? 0 : h.iterations;
  const Collapsed y = {hidden_slot(layer, name + " input"),
                       layer.tape.slot(name + " stream weights", c.local_rows * count * 4)};
  layer.tape.emit(name + " input", work,
                  {.reads = {streams, logits}, .writes = {y.hidden, y.weights}, .weights = learned});
  layer.tape.on_backward([=, &layer, &c] {
    const Id dlogits = activation(layer, name + " stream logits gradient", c.local_rows, count);
    const Id dstreams = streams_slot(layer, name + " streams gradient");
    std::vector<Id> reads = {streams, logits, y.weights, layer.tape.gradient(y.hidden)};
    if (layer.tape.has_gradient(y.weights)) reads.push_back(layer.tape.gradient(y.weights));
    layer.tape.emit(name + " input gradient", reversed(work),
                    {.reads = reads, .writes = {dstreams, dlogits}, .weights = learned, .weight_gradients = learned});
    layer.tape.contribute(streams, dstreams);
    layer.tape.contribute(logits, dlogits);
  });
  return y;
}

Id mix_streams(LayerTape& layer, const std::string& name, Id streams, Id branch, Id weights) {
  const BlockContext& c = layer.context;
  const MixStreams work = stream_work(layer, MixStreams::Part::mix);
  const Id y = streams_slot(layer, name + " output");
  layer.tape.emit(name, work, {.reads = {streams, branch, weights}, .writes = {y}});
  layer.tape.on_backward([=, &layer, &c] {
    const Id dstreams = streams_slot(layer, name + " streams gradient"),
             dbranch = hidden_slot(layer, name + " gradient");
    const Id dweights =
        layer.tape.slot(name + " weights gradient", c.local_rows * layer.model.hyper_connections->weights() * 4);
    layer.tape.emit(
        name + " gradient", reversed(work),
        {.reads = {streams, branch, weights, layer.tape.gradient(y)}, .writes = {dstreams, dbranch, dweights}});
    layer.tape.contribute(streams, dstreams);
    layer.tape.contribute(branch, dbranch);
    layer.tape.contribute(weights, dweights);
  });
  return y;
}

}  // namespace orrery
