#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/summary/kernel_class.h"

namespace orrery {

inline constexpr std::uint32_t kNoName = UINT32_MAX;
// value of KernelRecord::launch if the launch is not known, or ended more than four seconds before the kernel began
inline constexpr std::uint32_t kNotKnown = UINT32_MAX;

// How a kernel was tied to the operator that launched it: by the operator's id (id), by the operator that was running
// on the host thread when the kernel was launched (launch), by an annotation of the program that was running then
// instead of an operator (annotation), or by the op that Orrery's own traces name (own).
enum class Tie : std::uint8_t { none, id, launch, annotation, own };
inline constexpr std::size_t kTies = 5;

// The records of one trace file. They are as small as possible (a kernel takes 32 bytes), since a file may hold ten
// million of them. Times are nanoseconds. Of ids, which are counters, only the low 32 bits are kept.

// A kernel, or a copy, on a device. waits: whether the record is no kernel, but the part of a collective in which
// its rank waits for other ranks.
struct KernelRecord {
  std::int64_t begin = 0, end = 0;
  // Before tie(): the correlation id of the kernel's launch, 0 if not known. After tie(): nanoseconds from the end of
  // the launch to the kernel's begin, or kNotKnown.
  std::uint32_t launch = 0;
  // Before tie(): the id of the operator that launched the kernel, 0 if not known. After tie(): the index of that
  // operator's name, or kNoName.
  std::uint32_t operation = 0;
  std::uint32_t name = 0;
  std::uint16_t device = 0;
  bool waits = false;
  Tie tie = Tie::none;
};
static_assert(sizeof(KernelRecord) == 32);

// A call on the host that launches work.
struct LaunchRecord {
  std::int64_t begin = 0, end = 0;
  std::uint32_t correlation = 0, thread = 0;
};

// An operator on the host, or an annotation of the program. Operators of a thread are nested.
struct OperatorRecord {
  std::int64_t begin = 0, end = 0;
  std::uint32_t external = 0, thread = 0, name = 0;
  bool annotation = false;
};

struct StepRecord {
  std::int64_t number = 0, begin = 0, end = 0;
};

// A process of the trace: the host's threads, or the streams of a device.
struct ProcessRecord {
  std::string pid, name, labels;
  bool has_kernels = false;
  std::vector<StepRecord> steps;
  std::int64_t allocated = 0, reserved = 0;  // peaks of memory in bytes; 0: not known
};

struct TraceRecords {
  std::int64_t events = 0;
  std::int64_t untimed = 0;                      // number of kernels that are left out because they have no time
  std::map<std::string, std::int64_t> left_out;  // number of other events that the summary leaves out, by category
  std::optional<std::int64_t> rank;              // rank that wrote the file, if the file says so
  std::string device;                            // name of the GPU: "NVIDIA H100 80GB HBM3"
  std::vector<ProcessRecord> processes;
  std::deque<KernelRecord> kernels;
  std::deque<LaunchRecord> launches;
  std::deque<OperatorRecord> operators;
  std::map<std::int64_t, std::pair<std::int64_t, std::int64_t>> memory;  // by device id: peaks {allocated, reserved}
};

}  // namespace orrery
