#include "models/layers/compressed_attention.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "models/layers/layer_parts.h"
#include "models/layers/linear.h"
#include "models/layers/norms.h"
#include "models/layers/sparse_attention.h"
#include "models/spec/compressed.h"

namespace orrery {
namespace {

// Compressed keys of `columns` columns, which the op Pool computes from the layer's input; the names of their weights
// begin with `weights`. trains: false if the layer's input gets no gradient from these keys.
struct Compressor {
  std::string name, weights;
  std::int64_t columns = 0;
  bool trains = true;
};

// The inputs of attention: queries of this rank's heads, the keys of all tokens, the compressed keys, and the numbers
// of the compressed keys (`chosen`) that the index, a small attention, has chosen. target: attention's probabilities of
// the chosen keys, which attention's backward writes because the index is trained to match them.
struct Attended {
  Id queries{}, keys{};
  std::optional<Id> compressed, chosen, target;

  std::vector<Id> slots() const {
    std::vector<Id> list = {queries, keys};
    for (const std::optional<Id>& slot : {compressed, chosen}) {
      if (slot) list.push_back(*slot);
    }
    return list;
  }
};

}  // namespace

// Returns the number of compressed keys of one sample.
static std::int64_t compressed_keys(const LayerTape& layer, Mixer mixer) {
  const std::int64_t rate = layer.model.compressed_attention->rate(mixer);
  return rate == 0 ? 0 : layer.context.sequence / rate;
}

// Records the pooling of runs of tokens into compressed keys. A run may begin on one tensor rank and end on another, so
// the rows are gathered first and every rank pools all of them.
static Id pooled(LayerTape& layer, const Compressor& of, Mixer mixer, Id content, Id gate) {
  const BlockContext& c = layer.context;
  const CompressedAttention& a = *layer.model.compressed_attention;
  const std::int64_t summed = CompressedAttention::runs(mixer) * of.columns;
  const Pool work = {c.batch, c.sequence, of.columns, a.rate(mixer), CompressedAttention::runs(mixer) > 1};
  const std::int32_t bias =
      layer.tape.parameter(of.weights + ".position_bias", work.rate * summed, 1, Cut::none, c.sequence_parallel);
  const Id y = activation(layer, of.name, c.batch * work.keys(), of.columns);
  layer.tape.emit(of.name, work, {.reads = {content, gate}, .writes = {y}, .weights = {bias}});
  layer.tape.on_backward([=, &layer, &c] {
    Pool back = work;
    back.direction = Direction::backward;
    const Id dcontent = activation(layer, of.name + " contents gradient", c.rows, summed);
    const Id dgate = activation(layer, of.name + " gates gradient", c.rows, summed);
    layer.tape.emit(of.name + " gradient", back,
                    {.reads = {content, gate, layer.tape.gradient(y)},
                     .writes = {dcontent, dgate},
                     .weights = {bias},
                     .weight_gradients = {bias}});
    layer.tape.contribute(content, dcontent);
    layer.tape.contribute(gate, dgate);
  });
  return y;
}

// Records the compression of the layer's input into normed, rotated keys. The compression's matrix products stay in 16
// bits, as the weights do in DeepSeek's files (inference/model.py: Compressor).
static Id compress(LayerTape& layer, const Compressor& of, Mixer mixer, Id x) {
  const BlockContext& c = layer.context;
  const std::int64_t summed = CompressedAttention::runs(mixer) * of.columns, hidden = layer.model.hidden;
  const auto product = [&](const std::string& what, const char* weight) {
    const Id y = replicated(layer, of.name + what, x, hidden, summed,
                            {.name = of.weights + weight, .wide = true, .input_gradient = of.trains});
    return gather_rows(layer, of.name + what, y, summed);
  };
  const Id content = product(" contents", ".key");
  const Id gate = product(" gates", ".gate");
  const std::int64_t keys = c.batch * compressed_keys(layer, mixer);
  const Id normed =
      norm_rows(layer, of.name + " norm", pooled(layer, of, mixer, content, gate), keys, of.columns, true);
  const std::int64_t rope = layer.model.compressed_attention->rope_head_dim;
  rotate_rows(layer, of.name + " rotary", normed, keys, std::min(rope, of.columns), rope);
  return normed;
}

// Records the ops that compute the queries, keys and weights of the index, a small attention that chooses compressed
// keys. The index is trained separately, as in sparse_attention.cpp, and its keys are compressed in the same way as
// attention's keys.
static Index compressed_index(LayerTape& layer, Mixer mixer, Id x, Id compressed_queries) {
  const BlockContext& c = layer.context;
  const Model& m = layer.model;
  const Indexer& i = *m.indexer;
  const std::int64_t rope = std::min(m.compressed_attention->rope_head_dim, i.head_dim);
  const Id queries = replicated(layer, "index queries", compressed_queries, m.compressed_attention->q_lora_rank,
                                i.heads * i.head_dim, {.name = "indexer.query", .wide = true, .input_gradient = false});
  const Id gathered = gather_rows(layer, "index queries", queries, i.heads * i.head_dim);
  rotate_rows(layer, "index query rotary", gathered, c.rows, i.heads * rope, rope);
  const Id keys = compress(layer, {"index keys", "indexer", i.head_dim, false}, mixer, x);
  const Id weights = replicated(layer, "index weights", x, m.hidden, i.heads,
                                {.name = "indexer.weights", .wide = true, .input_gradient = false});
  return {gathered, keys, gather_rows(layer, "index weights", weights, i.heads), compressed_keys(layer, mixer)};
}

static FlashAttention attention_work(const LayerTape& layer, Mixer mixer) {
  const BlockContext& c = layer.context;
  const Model& m = layer.model;
  FlashAttention work{c.batch, layer.heads, 1, c.sequence, c.sequence, m.head_dim, m.head_dim, 0, Direction::forward};
  work.softcap = m.attention_softcap;
  work.drops = m.dropout > 0;
  if (mixer == Mixer::windowed) {
    work.window = m.compressed_attention->window;
    return work;
  }
  work.compressed = compressed_keys(layer, mixer);
  work.pairs = attended_pairs(m, mixer, c.sequence);
  return work;
}

static Id attend(LayerTape& layer, Mixer mixer, const Attended& from) {
  const BlockContext& c = layer.context;
  const FlashAttention work = attention_work(layer, mixer);
  const std::int64_t columns = layer.heads * work.head_dim;
  std::vector<std::int32_t> sinks;
  if (layer.model.attention_sinks) sinks = {layer.tape.parameter("attention.sinks", layer.heads, 1, Cut::rows)};
  const Id y = activation(layer, "attention values", c.rows, columns);
  const Id statistics = layer.tape.slot("statistics", c.rows * layer.heads * 4);
  layer.tape.emit("attention", work, {.reads = from.slots(), .writes = {y, statistics}, .weights = sinks});
  layer.tape.on_backward([=, &layer, &c] {
    FlashAttention back = work;
    back.direction = Direction::backward;
    const Id dq = activation(layer, "queries gradient", c.rows, columns);
    const Id dk = activation(layer, "keys gradient", c.rows, work.head_dim);
    BlockBuilder::Uses uses = {.reads = from.slots(), .writes = {dq, dk}, .weights = sinks, .weight_gradients = sinks};
    uses.reads.insert(uses.reads.end(), {y, statistics, layer.tape.gradient(y)});
    if (from.compressed) {
      const Id dc = activation(layer, "compressed keys gradient", c.batch * work.compressed, work.head_dim);
      uses.writes.push_back(dc);
      layer.tape.contribute(*from.compressed, dc);
    }
    if (from.target) uses.writes.push_back(*from.target);
    layer.tape.emit("attention gradient", back, uses);
    layer.tape.contribute(from.queries, dq);
    layer.tape.contribute(from.keys, dk);
  });
  return y;
}

// Records the ops that compute the keys of all tokens. All heads share these keys, which also serve as the values.
static Id shared_keys(LayerTape& layer, Id x) {
  const BlockContext& c = layer.context;
  const Model& m = layer.model;
  const Id projected = replicated(layer, "key", x, m.hidden, m.head_dim, {.name = "attention.key"});
  const Id keys = gather_rows(layer, "keys", norm(layer, "key norm", projected, m.head_dim), m.head_dim);
  const std::int64_t rope = m.compressed_attention->rope_head_dim;
  rotate_rows(layer, "key rotary", keys, c.rows, rope, rope);
  return keys;
}

// Records the output projection in two steps: each group of heads is projected by itself, and the results of all groups
// together are projected to the hidden states.
static Id grouped_output(LayerTape& layer, Id values) {
  const BlockContext& c = layer.context;
  const Model& m = layer.model;
  const CompressedAttention& a = *m.compressed_attention;
  const std::int64_t groups = a.output_groups / c.tensor, in = layer.heads / groups * m.head_dim;
  const std::int32_t weight =
      layer.tape.parameter("attention.output_groups.weight", groups * a.output_rank, in, Cut::rows);
  const Id projected = batched_product(layer, "attention output groups", values,
                                       {c.rows, in, a.output_rank, groups, weight, c.rows * groups * in * c.width,
                                        c.rows * groups * a.output_rank * c.width});
  return row_parallel(layer, "attention output", projected, groups * a.output_rank, m.hidden, "attention.output.weight",
                      true);
}

Id compressed_attention(LayerTape& layer, Id x, Mixer mixer) {
  const BlockContext& c = layer.context;
  const Model& m = layer.model;
  const CompressedAttention& a = *m.compressed_attention;
  const std::int64_t rope = a.rope_head_dim, columns = layer.heads * m.head_dim;
  const Id down = replicated(layer, "query down", x, m.hidden, a.q_lora_rank, {.name = "attention.query_down"});
  const Id compressed = norm(layer, "query norm", down, a.q_lora_rank);
  Attended from;
  if (mixer == Mixer::compressed_sparse) {
    const Bytes bytes = c.rows * std::min(m.indexer->top_k, compressed_keys(layer, mixer)) * 4;
    from.target = layer.tape.slot("index target", bytes);
    from.chosen = chosen_tokens(layer, compressed_index(layer, mixer, x, compressed), *from.target);
  }
  const Id up = column_parallel(layer, "query up", compressed, a.q_lora_rank, columns, {"attention.query_up"});
  from.queries = norm_rows(layer, "query head norm", up, c.rows * layer.heads, m.head_dim, false);
  rotate_rows(layer, "query rotary", from.queries, c.rows, layer.heads * rope, rope);
  from.keys = shared_keys(layer, x);
  if (mixer != Mixer::windowed)
    from.compressed = compress(layer, {"compressed keys", "compressor", m.head_dim, true}, mixer, x);
  const Id values = attend(layer, mixer, from);
  rotate_rows(layer, "values rotary", values, c.rows, layer.heads * rope, rope);
  return grouped_output(layer, values);
}

}  // namespace orrery
