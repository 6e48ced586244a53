#include "sim/picture/holdings.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace orrery {
namespace {

void add_state(Holding& holding, const Block& block) {
  for (const BlockBuffer& buffer : block.buffers) {
    if (buffer.bytes == 0) continue;
    if (buffer.category == Category::parameters) holding.parameters[buffer.home] += buffer.bytes;
    if (buffer.category == Category::gradients) holding.gradients[buffer.home] += buffer.bytes;
    if (buffer.category == Category::optimizer) holding.optimizer[buffer.home] += buffer.bytes;
  }
}

HeldChunk& chunk_at(Holding& holding, std::int32_t number) {
  const auto at = std::ranges::lower_bound(holding.chunks, number, {}, &HeldChunk::chunk);
  if (at != holding.chunks.end() && at->chunk == number) return *at;
  return *holding.chunks.insert(at, HeldChunk{.chunk = number});
}

// Adds to a chunk the part of the model (a layer, the embedding, ...) whose weights a block has. frame: the block's
// instance for one class of ranks and the first micro-batch. Blocks without weights, such as transfers, add nothing.
void add_block(HeldChunk& chunk, const Frame& frame, const Block& block) {
  if (block.parameters.empty() || block.second) return;
  const bool predicts =
      std::ranges::any_of(block.parameters, [](const LocalParameter& p) { return p.name.starts_with("prediction"); });
  if (block.role == BlockRole::layer && !predicts) chunk.layers.push_back(frame.layer);
  chunk.prediction = chunk.prediction || predicts;
  chunk.vision = chunk.vision || block.role == BlockRole::vision;
  chunk.embedding = chunk.embedding || block.role == BlockRole::embedding;
  chunk.output = chunk.output || block.role == BlockRole::output;
}

}  // namespace

std::vector<Holding> holdings_of(const Plan& plan) {
  std::vector<Holding> result(plan.classes.size());
  for (const Frame& f : plan.frames) {
    const Block& block = plan.blocks[f.block];
    Holding& holding = result[f.slot];
    if (block.role == BlockRole::state || block.role == BlockRole::version) add_state(holding, block);
    if (block.role == BlockRole::state) chunk_at(holding, f.chunk);
    if (f.micro_batch == 0 && f.state != kNone && !outlives_steps(block.role))
      add_block(chunk_at(holding, f.chunk), f, block);
  }
  for (Holding& holding : result) {
    for (HeldChunk& chunk : holding.chunks) {
      std::ranges::sort(chunk.layers);
      chunk.layers.erase(std::unique(chunk.layers.begin(), chunk.layers.end()), chunk.layers.end());
    }
  }
  return result;
}

Bytes sum_of(const std::map<MemoryTier, Bytes>& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), Bytes{0},
                         [](Bytes sum, const auto& tier) { return sum + tier.second; });
}

std::string ranges_text(const std::vector<std::int32_t>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", numbers[i]);
    if (last > i) text += fmt::format("-{}", numbers[last]);
    i = last + 1;
  }
  return text;
}

std::string chunk_text(const HeldChunk& chunk) {
  std::string text;
  const auto add = [&](bool has, const std::string& what) {
    if (has) text += (text.empty() ? "" : ", ") + what;
  };
  add(chunk.vision, "vision encoder");
  add(chunk.embedding, "embedding");
  add(!chunk.layers.empty(), fmt::format("layer{} {}", chunk.layers.size() > 1 ? "s" : "", ranges_text(chunk.layers)));
  add(chunk.prediction, "prediction");
  add(chunk.output, "head");
  return text.empty() ? "no layers" : text;
}

}  // namespace orrery
