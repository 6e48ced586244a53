#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "models/load/load_spec.h"
#include "sim/generate/generate.h"

namespace orrery {

// The figure by which layouts of a generation are compared: tokens per second and GPU, the time to the first token, or
// the time of each further token.
enum class GenerationObjective : std::uint8_t { throughput, first_token, each_token };
inline constexpr std::string_view kGenerationObjectives[] = {"throughput", "ttft", "tpot"};

// One layout: the degrees of parallelism, the batch (sequences of all data ranks together), and the settings
// (strategy.tensor=4) that select it.
struct GenerationLayout {
  std::int64_t tensor = 1, pipeline = 1, data = 1, expert = 1, batch = 1;
  std::vector<std::string> settings;
};
struct FoundLayout {
  GenerationLayout layout;
  GenerationReport report;
};

// The result of a search. found: the layouts that fit in memory, the best first. Unless the search was stopped, every
// layout was predicted with every batch that is tried, so that none of these is better; another batch may be.
// batches_stated: whether the spec states the batch, so that no other one is of interest.
struct LayoutsFound {
  std::vector<FoundLayout> found;
  std::int64_t predicted = 0, too_large = 0, refused = 0;
  std::string refusal;  // why one of the refused layouts is impossible: of all reasons the first by text
  bool stopped = false, batches_stated = false;
};

// Predicts all layouts of a spec that generates text: every division of its GPUs into tensor, pipeline and data ranks,
// every division of experts, and batches of 1, 2, 4, ... sequences a data rank and the largest one that fits
// (largest_batch.h), also into max_memory. A value that the spec states stays as it is. Throws Error if the objective
// is the time of each further token and there is none.
struct LayoutSearchOptions {
  std::vector<std::string> overrides;
  std::string profile;
  GenerationObjective objective = GenerationObjective::throughput;
  Bytes max_memory = 0;  // bytes of a GPU's memory that may be used; 0: what the spec allows
  unsigned threads = 1;
  const std::atomic<bool>* stop = nullptr;
  std::function<void(std::string_view)> progress = [](std::string_view) {};
};
LayoutsFound search_layouts(const SpecText& text, const LayoutSearchOptions& options);

}  // namespace orrery
