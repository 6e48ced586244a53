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

// The memory of one rank slot over two steps, more where the second gives cached segments back, on the memory clock: a
// buffer is taken when its first task is issued and returned when its last user is issued, or, on another stream, when
// that user's event has completed.
struct SlotMemory {
  Bytes first_step_peak = 0;  // most bytes allocated up to the end of the first step
  Bytes peak = 0;             // most bytes allocated in all steps
  Bytes peak_reserved = 0;    // bytes that the caching allocator holds

  // Bytes that the caching allocator holds from the last pass of the last step on: less where segments were given back
  // before.
  Bytes update_reserved = 0;
  CategoryBytes at_peak{};  // bytes by category at the peak; they sum to peak
  TaskId peak_task = kNone;
  int peak_step = 0;
  std::vector<std::string> alive;  // the largest buffers at the peak, "38.5 GiB logits x 2"
  std::int64_t retries = 0;        // the allocator had to give cached segments back

  // Calls of cudaMalloc and cudaFree in a steady step, if the allocator has to make them there and there is room.
  // Expandable segments have none: the time to map their pages is not known.
  std::int64_t device_calls = 0;
  bool out_of_memory = false;
  // The first request for which there was no room: refused: bytes that it asked for; free_then: bytes that nobody held
  // at that moment. If free_then is as much or more, the memory was fragmented.
  Bytes refused = 0, free_then = 0;
  Bytes host_peak = 0, nvme_peak = 0;  // peak bytes on the host and on disks
};

struct MemoryOptions {
  Bytes capacity = 0;   // bytes that segments may take
  Bytes workspace = 0;  // bytes of the cuBLAS workspace, taken through the allocator at the first task
  bool expandable_segments = false;
  // A collective's tensors come back when the host sees that the collective has ended.
  bool collectives_hold_tensors = false;
  bool gathers_lists = false;  // as Software::Memory::gathers_lists

  // States that otherwise appear at the first update are there from the start.
  bool moments_at_start = false;
  // Moments are one tensor for each weight.
  bool moments_by_weight = false;
  // Gradients are one tensor for each weight, from the first contribution in a step until the update.
  bool gradients_by_weight = false;
  std::int64_t flat_copies = 0;    // as Software::Memory::flat_copies
  Bytes flat_copy = 0;             // most bytes of one flat copy
  bool blocking_launches = false;  // the host sees the end of every kernel before it goes on

  // Share of the time of issuing that the host needs; the host runs ahead by the rest.
  double host_part = 1;
  double filling_part = 1;  // host_part while a pipeline fills
};

// Replays every slot's allocations through the caching allocator. curves: if given, gets one for every slot.
std::vector<SlotMemory> replay_memory(const Plan& plan, const Trace& trace, const MemoryOptions& options,
                                      std::vector<MemoryCurve>* curves = nullptr);

}  // namespace orrery
