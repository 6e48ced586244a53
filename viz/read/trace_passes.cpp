#include "viz/read/trace_passes.h"

#include <algorithm>
#include <string>

#include "models/trace/json_scan.h"
#include "viz/read/chrome_event.h"

namespace orrery {
namespace {

// The greatest number of phases; limited because a damaged file may have a new word in every name.
constexpr std::ptrdiff_t kMostPhases = 8;

// Returns the index of a pass's phase, which is added if it is new; kNoPhase if there are too many.
std::int8_t phase_index(const std::string& pass, std::vector<std::string>& phases) {
  const std::string phase = pass.substr(0, pass.find(' '));
  const auto found = std::ranges::find(phases, phase);
  const std::ptrdiff_t index = found - phases.begin();
  if (index == kMostPhases) return kNoPhase;
  if (found == phases.end()) phases.push_back(phase);
  return static_cast<std::int8_t>(index);
}

}  // namespace

void TracePasses::read(std::string_view list, Timeline& timeline) {
  std::vector<std::string> names;
  JsonScan scan(list);
  scan.take('[');
  while (scan.peek() == '"') {
    names.push_back(unescaped(scan.string()));
    if (!scan.take(',')) break;
  }
  if (timeline.pass_of_batch.empty()) timeline.pass_of_batch = names;
  phases_.clear();
  for (const std::string& name : names) phases_.push_back(phase_index(name, timeline.phases));
}

std::int8_t TracePasses::phase_of(std::string_view micro_batch) const {
  if (phases_.empty() || micro_batch.empty()) return kNoPhase;
  const auto batch = number_in<std::int64_t>(micro_batch, -1);
  return batch >= 0 && batch < std::ssize(phases_) ? phases_[static_cast<std::size_t>(batch)] : kNoPhase;
}

}  // namespace orrery
