#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

#include "tests/exec/cuda/null_gpu/null_gpu.h"

// The state of the null GPU, which its files share. Functions here ask that the caller holds the lock, unless they say
// otherwise.
namespace orrery::null_gpu {

// By queue (a stream): the number of its operations that have happened before. Vector clocks (Mattern 1989).
using Clock = std::vector<std::uint32_t>;
void join(Clock& into, const Clock& from);
bool includes(const Clock& clock, const Clock& other);

// A function that the thread of host functions runs once its stream has come so far.
struct HostCall {
  std::function<void()> run;
  double due = 0;
  std::uint64_t number = 0;
  double ended_at = 0;  // set before `ended`
  std::atomic<bool> ended{false};
};

// A place in the order of a stream: when it is reached, and what has happened before it.
struct Moment {
  double at = 0;
  std::shared_ptr<HostCall> behind;  // the last host function before it; host functions run in the order of their calls
  Clock clock;

  bool reached() const;
  double reached_at() const;  // once it is reached
  void wait_for(const Moment& other);
};

struct Stream {
  std::uint32_t queue = 0;
  Moment last;
  const std::string* did = nullptr;  // name of the last access to memory
};

struct Event {
  bool timed = false, recorded = false;
  Moment moment;
  const std::string* after = nullptr;  // name of the last access before it in its stream
};

// An access of an operation on a queue, and whose it is.
struct Access {
  std::uint32_t queue = 0, count = 0;
  const std::string* by = nullptr;
};

// The last accesses to a range of bytes: the last write, and the reads since, one of each queue.
struct Cell {
  std::uintptr_t end = 0;
  Access write;
  std::vector<Access> reads;
};

struct Gpu {
  std::recursive_mutex mutex;
  std::map<std::string, std::int64_t> found, called;
  std::string failing;
  std::int64_t failing_number = 0;
  bool failed = false;
  std::int64_t left_out = 0;  // waits until the one that is left out
  std::string left_out_wait;  // the wait that was left out, in words

  std::map<const char*, std::size_t> device, pinned;  // allocations: begin and bytes
  std::size_t used = 0;
  std::map<const void*, std::string> kernels;  // names of the kernels that nvcc's objects have registered
  std::map<const void*, std::int64_t> shared;  // shared memory that a kernel has been granted
  Stream null_stream;
  std::set<Stream*> streams;
  std::set<Event*> events;
  std::map<std::string, std::int64_t> objects;  // other things that must be given back, by kind
  std::uint32_t queues = 1;

  std::uint64_t generation = 0;                                 // of the clocks
  std::map<const void*, std::map<std::uintptr_t, Cell>> cells;  // by space: memory (nullptr), or a disk
  std::set<std::string> names;                                  // of those who access

  std::set<std::string> cached_products;  // sizes of products whose operands an L2 cache may have held

  std::uint64_t host_calls = 0;
  double patience = 20;
  double slowness = 1;
};
Gpu& gpu();

using Lock = std::lock_guard<std::recursive_mutex>;

double now();
void complain(const std::string& what);

// Counts a call; true where it is the one that was planted to fail. Takes the lock itself.
bool fails(const char* function);
// Notes an error as this thread's last one, and returns it.
cudaError_t error(cudaError_t code);
cudaError_t last_error();

bool on_device(const void* at, std::size_t bytes);
bool is_pinned(const void* at, std::size_t bytes);

// The stream of a handle; complains about one that is none.
Stream* stream_of(cudaStream_t stream);
// Adds an operation to a stream: it begins when all before it has ended and the host has called.
void enqueue(Stream& stream, double seconds);
// Runs a function late, when the stream has come so far; the stream goes on behind it.
void enqueue_call(Stream& stream, std::function<void()> run);
// Waits without the lock; the caller then knows what has happened before.
void wait_until(const Moment& moment);
// The host has seen that the moment is reached.
void seen_by_host(const Moment& moment);
Moment everything();

// Notes that the stream's last operation reads or writes bytes, and complains where an earlier access to them has no
// order before it. space: nullptr for memory, or the disk that `at` counts in.
void access(Stream& stream, const std::string& by, const void* at, std::size_t bytes, bool writes,
            const void* space = nullptr);
void forget(const void* at, std::size_t bytes);

inline constexpr char kFromHost[] = "a copy from host to device";  // who writes, in access()

}  // namespace orrery::null_gpu
