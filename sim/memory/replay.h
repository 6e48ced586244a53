#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "models/base/units.h"
#include "models/plan/plan.h"
#include "models/trace/trace.h"
#include "sim/memory/allocator.h"
#include "sim/memory/memory_curve.h"

namespace orrery {

using CategoryBytes = std::array<Bytes, kCategories>;

// What one rank slot's memory does over two steps, more where the second gives cached segments back, on the memory
// clock: a buffer is taken when its first task is issued and returned when its last user is issued, or, on another
// stream, when that user's event has completed.
struct SlotMemory {
  Bytes first_step_peak = 0;  // allocated, up to the end of the first step
  Bytes peak = 0;             // allocated, all steps
  Bytes peak_reserved = 0;    // what the caching allocator holds
  Bytes update_reserved = 0;  // the same from the last step's last pass on: less where segments were given back before
  CategoryBytes at_peak{};    // sums to peak
  TaskId peak_task = kNone;
  int peak_step = 0;
  std::vector<std::string> alive;  // the largest buffers at the peak, "38.5 GiB logits x 2"
  std::int64_t retries = 0;        // the allocator had to give cached segments back
  // cudaMalloc and cudaFree of a steady step, where it has to there and there is room. Expandable segments have none:
  // what mapping their pages takes is not known.
  std::int64_t device_calls = 0;
  bool out_of_memory = false;
  // Of the first request for which there was no room: its bytes, and those that nobody held then. As many or more: the
  // memory was fragmented.
  Bytes refused = 0, free_then = 0;
  Bytes host_peak = 0, nvme_peak = 0;  // that lie beyond the device
};

struct MemoryOptions {
  Bytes capacity = 0;   // that segments may take
  Bytes workspace = 0;  // of cuBLAS, taken through the allocator at the first task
  bool expandable_segments = false;
  bool collectives_hold_tensors = false;  // what a collective used comes back when the host sees that it has ended
  bool gathers_lists = false;             // as Software's
  bool moments_at_start = false;          // states that appear at the first update are there before
  bool moments_by_weight = false;         // they are a tensor a weight each
  bool gradients_by_weight = false;       // so are gradients, from their first in a step until the update
  std::int64_t flat_copies = 0;           // as Software's
  Bytes flat_copy = 0;                    // how large one is at most
  bool blocking_launches = false;         // the host sees the end of every kernel before it goes on
  double host_part = 1;                   // of the time that issuing takes, what the host needs: the rest it runs ahead
  double filling_part = 1;                // the same while a pipeline fills
};

// Replays every slot's allocations through the caching allocator. curves: if given, gets one for every slot.
std::vector<SlotMemory> replay_memory(const Plan& plan, const Trace& trace, const MemoryOptions& options,
                                      std::vector<MemoryCurve>* curves = nullptr);

}  // namespace orrery
