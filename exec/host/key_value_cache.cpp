#include "exec/host/key_value_cache.h"

#include <algorithm>
#include <cassert>

#include "models/spec/generation.h"

namespace orrery {

KeyValueCache::KeyValueCache(const Rank& rank) {
  const Spec& spec = rank.spec;
  const Generation& g = *spec.generation;
  block_ = g.kv_block;
  const std::int64_t sequences = g.batch / spec.strategy.data;
  std::map<std::uint32_t, Bytes> ends;  // for each chunk's states, the end of the layers so far
  for (const Frame& frame : rank.plan.frames) {
    if (frame.micro_batch != 0 || rank.plan.blocks[frame.block].role != BlockRole::layer) continue;
    const Bytes row = cached_bytes(spec, frame.layer);
    const std::int64_t tokens = cached_tokens(spec, frame.layer, g.input + g.output);
    Bytes& end = ends[frame.state];
    Layer layer = {
        .at = end, .row = row, .window = has_window(spec.model, frame.layer) ? spec.model.sliding_window->window : 0};
    layer.blocks = sequences * tokens / block_;
    layer.held.resize(static_cast<std::size_t>(sequences));
    end += sequences * tokens * row;
    layers_[{frame.state, frame.layer}] = std::move(layer);
  }
  clear();
}

void KeyValueCache::clear() {
  for (auto& [key, layer] : layers_) {
    for (std::vector<std::int64_t>& sequence : layer.held) sequence.clear();
    layer.free.resize(static_cast<std::size_t>(layer.blocks));
    for (std::int64_t b = 0; b < layer.blocks; ++b) layer.free[static_cast<std::size_t>(b)] = layer.blocks - 1 - b;
  }
}

std::int64_t KeyValueCache::blocks() const {
  std::int64_t sum = 0;
  for (const auto& [key, layer] : layers_) sum += layer.blocks - static_cast<std::int64_t>(layer.free.size());
  return sum;
}

std::vector<CachedRun> KeyValueCache::runs(const Frame& frame, std::int64_t sequence, std::int64_t first,
                                           std::int64_t end) const {
  const Layer& layer = layer_of(frame);
  const std::vector<std::int64_t>& held = layer.held[static_cast<std::size_t>(sequence)];
  std::vector<CachedRun> list;
  for (std::int64_t t = first; t < end;) {
    const std::int64_t in_block = t % block_, count = std::min(end - t, block_ - in_block);
    const std::int64_t block = held[static_cast<std::size_t>(t / block_)];
    assert(block >= 0);
    const Bytes at = layer.at + (block * block_ + in_block) * layer.row;
    if (!list.empty() && list.back().at + list.back().count * layer.row == at)
      list.back().count += count;
    else
      list.push_back({t, count, at});
    t += count;
  }
  return list;
}

std::vector<CachedRun> KeyValueCache::store(const Frame& frame, std::int64_t sequence, std::int64_t first,
                                            std::int64_t end) {
  Layer& layer = layers_.at({frame.state, frame.layer});
  std::vector<std::int64_t>& held = layer.held[static_cast<std::size_t>(sequence)];
  // the first token that the query after these tokens, at position `end`, can see
  const std::int64_t seen = layer.window > 0 ? std::max<std::int64_t>(0, end - layer.window + 1) : 0;
  for (std::int64_t b = 0; b < std::min<std::int64_t>(seen / block_, static_cast<std::int64_t>(held.size())); ++b) {
    std::int64_t& block = held[static_cast<std::size_t>(b)];
    if (block >= 0) layer.free.push_back(block);
    block = -1;
  }
  for (auto b = static_cast<std::int64_t>(held.size()); b * block_ < end; ++b) {
    held.push_back(-1);
    if ((b + 1) * block_ <= seen) continue;
    assert(!layer.free.empty());
    held.back() = layer.free.back();
    layer.free.pop_back();
  }
  const std::int64_t kept = std::max(first, seen / block_ * block_);
  return runs(frame, sequence, std::min(kept, end), end);
}

}  // namespace orrery
