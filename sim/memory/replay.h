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

// The memory of one class of ranks over two steps, or more if the allocator still gives cached segments back to the
// device in the second. As in PyTorch, memory follows the host's time: a buffer is allocated when the host issues the
// first task that uses it, and freed when the host issues the last one or, if that task runs on another stream, when
// its event has completed.
struct SlotMemory {
  Bytes first_step_peak = 0;  // greatest number of bytes allocated up to the end of the first step
  Bytes peak = 0;             // greatest number of bytes allocated at one time in any step
  Bytes peak_reserved = 0;    // greatest number of bytes that the caching allocator reserves

  // The most bytes that the caching allocator reserves during the last step's update and after it: fewer than
  // peak_reserved if the allocator gave cached segments back before the update.
  Bytes update_reserved = 0;
  CategoryBytes at_peak{};  // bytes of each category at the peak; they sum to `peak`
  TaskId peak_task = kNone;
  int peak_step = 0;
  std::vector<std::string> alive;  // the largest buffers that are alive at the peak, as texts: "38.5 GiB logits x 2"
  std::int64_t retries = 0;        // number of times that the allocator gave cached segments back to make space

  // Number of calls of cudaMalloc and cudaFree in a step once memory is steady, so that later steps make as many. 0 if
  // the allocator makes none or runs out of memory, and for expandable segments, since the time to map their pages is
  // not known.
  std::int64_t device_calls = 0;
  bool out_of_memory = false;
  // The first request that did not fit in memory: the bytes that it asked for (refused), and the bytes that were free
  // at that moment (free_then). If free_then is not less than refused, the memory was fragmented.
  Bytes refused = 0, free_then = 0;
  // the class of ranks whose replay this is, if it was not replayed but has the same as a class before; else kNone
  std::uint32_t replay_of = kNone;
  TierBytes tier_peak{};  // greatest number of bytes in each memory tier beyond the device (host, disks)
};

struct MemoryOptions {
  Bytes capacity = 0;   // most bytes that all segments of the allocator may have together
  Bytes workspace = 0;  // bytes of the cuBLAS workspace, which the first task allocates
  // Bytes of the cuBLAS workspace that the first matrix product of backward allocates: autograd's thread has a cuBLAS
  // handle of its own, and PyTorch keeps a workspace for each handle (CublasHandlePool.cpp, setWorkspaceForHandle).
  Bytes backward_workspace = 0;
  bool expandable_segments = false;
  // Whether the input and output of a collective are freed only when the host notices that the collective has ended.
  bool collectives_hold_tensors = false;
  bool waits_for_loss = false;  // whether hosts that compute the loss wait for the device before they issue the update
  bool gathers_lists = false;   // whether ZeRO-1 copies gathered weights into one tensor per rank

  // Whether the optimizer states exist from the start of training, rather than from the first update on.
  bool moments_at_start = false;
  // Whether the optimizer moments are one tensor for each weight, rather than one flat buffer.
  bool moments_by_weight = false;
  // Whether gradients are one tensor for each weight, each allocated when a step first adds to it and freed at the
  // update.
  bool gradients_by_weight = false;
  std::int64_t flat_copies = 0;    // number of flat buffers to which gradients are copied for a reduction
  Bytes flat_copy = 0;             // size in bytes of the largest flat buffer to which gradients are copied
  bool blocking_launches = false;  // whether the host waits for the end of every kernel

  // The share of the launch time of ops in which the host thread is busy. Launches are asynchronous: in the rest of
  // that time the device starts the kernels, while the host goes on, gets ahead of the device and allocates earlier.
  double host_part = 1;
  // The value of host_part (the share of the launch time of ops in which the host thread is busy) where the host runs
  // ahead of the device (ahead_of in host_times.cpp).
  double filling_part = 1;
};

// Replays the allocations of every class of ranks through the caching allocator. curves: if not null, is filled with a
// memory curve for each class.
std::vector<SlotMemory> replay_memory(const Plan& plan, const Trace& trace, const MemoryOptions& options,
                                      std::vector<MemoryCurve>* curves = nullptr);

}  // namespace orrery
