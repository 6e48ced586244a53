#include "sim/memory/largest_alive.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

namespace orrery {
namespace {

constexpr std::size_t kLargest = 6;

using BytesByName = std::map<std::string, std::pair<Bytes, int>>;

// Goes through the tasks of a class up to task `at`, and notes which buffers they allocate and free.
BytesByName alive_by_name(const Plan& plan, TaskId at, std::vector<char>& alive) {
  BytesByName by_name;
  const auto count_one = [&](std::uint32_t frame, std::uint16_t s, bool on) {
    const BlockBuffer& what = plan.blocks[plan.frames[frame].block].buffers[s];
    char& is = alive[plan.frames[frame].first_buffer + s];
    if (what.bytes == 0 || what.contiguous || what.home != MemoryTier::device || (is != 0) == on) return;
    is = on ? 1 : 0;
    auto& [bytes, number] = by_name[what.name];
    bytes += on ? what.bytes : -what.bytes;
    number += on ? 1 : -1;
  };
  for (TaskId t = plan.classes[plan.slot_of(at)].begin; t <= at; ++t) {
    const std::uint32_t frame = plan.tasks[t].frame;
    for (const Operand& o : plan.op_of(t).allocates) count_one(frame_of(plan, frame, o), o.slot, true);
    if (t == at) break;
    for (const Operand& o : plan.op_of(t).frees) count_one(frame_of(plan, frame, o), o.slot, false);
  }
  return by_name;
}

}  // namespace

std::vector<std::string> largest_alive(const Plan& plan, TaskId at, std::vector<char>& alive) {
  std::vector<std::pair<Bytes, std::string>> largest;
  for (const auto& [name, sum] : alive_by_name(plan, at, alive)) {
    if (sum.first > 0) largest.emplace_back(sum.first, fmt::format("{} x {}", name, sum.second));
  }
  std::sort(largest.rbegin(), largest.rend());
  largest.resize(std::min(kLargest, largest.size()));
  std::vector<std::string> texts;
  texts.reserve(largest.size());
  for (const auto& [bytes, text] : largest)
    texts.push_back(fmt::format("{:.2f} GiB {}", static_cast<double>(bytes) / kGiB, text));
  return texts;
}

}  // namespace orrery
