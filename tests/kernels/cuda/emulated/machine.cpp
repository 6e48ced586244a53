#include <machine.cuh>

#include <ucontext.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

namespace orrery::kernels::cuda {

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace emulated {
namespace {

constexpr std::size_t kStack = 64 << 10;
constexpr unsigned kLanes = 32;

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "emulated GPU: block (%u, %u, %u), thread %u: %s\n", blockIdx.x, blockIdx.y, blockIdx.z,
               threadIdx.x, what);
  std::abort();
}
void expect(bool holds, const char* what) {
  if (!holds) fail(what);
}

struct Copy {
  std::uint32_t to;
  const void* from;
  bool valid;
};

// A barrier: a new generation begins when all live threads have come.
struct Meeting {
  unsigned arrived = 0, members = 0, generation = 0;

  void arrive() {
    if (++arrived >= members) open();
  }
  void leave() {
    --members;
    if (members > 0 && arrived >= members) open();
  }
  void open() {
    arrived = 0;
    ++generation;
  }
};

struct Warp {
  Meeting meeting;
  unsigned char buffers[2][64 * kLanes] = {};
};

// A place to jump to, of the compiler's own jumps: they keep three words where setjmp keeps all registers.
using Place = void* [5];
[[noreturn, gnu::noinline]] void jump(Place& to) { __builtin_longjmp(to, 1); }

// A fiber, entered once in its life by its context and afterwards by jumps: unlike contexts these make no system calls.
// It runs one thread of one block after another.
struct Thread {
  ucontext_t context = {};
  Place place = {};
  bool entered = false;
  std::vector<unsigned char> stack = std::vector<unsigned char>(kStack);
  unsigned index = 0;
  bool done = false;
  Meeting* waits_for = nullptr;
  unsigned generation = 0;
  std::deque<std::vector<Copy>> groups;
  std::vector<Copy> open;
};

// The state of the running block.
struct Block {
  Place scheduler = {};
  std::vector<std::unique_ptr<Thread>> threads;  // kept from block to block for their stacks
  std::vector<Warp> warps;
  Meeting all;
  Thread* current = nullptr;
  std::vector<unsigned char> memory;
  const std::function<void()>* kernel = nullptr;
};
Block the_block;
Block& block() { return the_block; }

void perform(const Copy& c) {
  unsigned char* to = block_memory(c.to, 16);
  if (c.valid)
    std::memcpy(to, c.from, 16);
  else
    std::memset(to, 0, 16);
}

[[gnu::noinline]] void hand_over(Thread& t) {
  if (__builtin_setjmp(t.place) == 0) jump(block().scheduler);
}

void wait_for(Meeting& meeting) {
  Block& b = block();
  Thread& t = *b.current;
  t.generation = meeting.generation;
  meeting.arrive();
  if (meeting.generation != t.generation) return;
  t.waits_for = &meeting;
  hand_over(t);
}

void enter() {
  for (;;) {
    Block& b = block();
    (*b.kernel)();
    Thread& t = *b.current;
    t.done = true;
    expect(t.open.empty() || !order().late_copies, "ended with copies that were never waited for");
    b.all.leave();
    b.warps[t.index / kLanes].meeting.leave();
    hand_over(t);
  }
}

[[gnu::noinline]] void go_on(Thread& t) {
  if (t.entered) jump(t.place);
  t.entered = true;
  getcontext(&t.context);
  t.context.uc_stack.ss_sp = t.stack.data();
  t.context.uc_stack.ss_size = t.stack.size();
  makecontext(&t.context, enter, 0);
  setcontext(&t.context);
}

// Runs a thread until it waits or ends.
[[gnu::noinline]] void run_on(Thread& t) {
  if (__builtin_setjmp(block().scheduler) == 0) go_on(t);
}

bool resume(Thread& t) {
  if (t.done || (t.waits_for != nullptr && t.waits_for->generation == t.generation)) return false;
  t.waits_for = nullptr;
  block().current = &t;
  threadIdx = {t.index, 0, 0};
  run_on(t);
  return true;
}

void start(unsigned count) {
  Block& b = block();
  while (b.threads.size() < count) b.threads.push_back(std::make_unique<Thread>());
  expect(count % kLanes == 0, "blocks are whole warps here");
  b.warps.assign(count / kLanes, {});
  for (Warp& w : b.warps) w.meeting.members = kLanes;
  b.all = {0, count, 0};
  for (unsigned i = 0; i < count; ++i) {
    Thread& t = *b.threads[i];
    t.index = i;
    t.done = false;
    t.waits_for = nullptr;
    t.groups.clear();
    t.open.clear();
  }
}

// Runs a block warp by warp: each warp goes on until all its lanes wait for the block or are done.
void run_block(unsigned count) {
  start(count);
  Block& b = block();
  const unsigned warps = count / kLanes;
  for (bool moved = true; moved;) {
    moved = false;
    for (unsigned i = 0; i < warps; ++i) {
      const unsigned w = order().reversed ? warps - 1 - i : i;
      for (bool again = true; again;) {
        again = false;
        for (unsigned l = 0; l < kLanes; ++l) again |= resume(*b.threads[w * kLanes + l]);
        moved |= again;
      }
    }
  }
  for (unsigned i = 0; i < count; ++i) expect(b.threads[i]->done, "threads wait for each other for ever");
}

}  // namespace

Order& order() {
  static Order o;
  return o;
}
Findings& findings() {
  static Findings f;
  return f;
}

unsigned lane() { return threadIdx.x % kLanes; }

unsigned char* block_memory(std::uint32_t address, std::uint32_t bytes) {
  Block& b = block();
  expect(address % bytes == 0 && address + bytes <= b.memory.size(), "address outside shared memory or misaligned");
  return b.memory.data() + address;
}

void copy(std::uint32_t to, const void* from, bool valid) {
  const Copy c = {to, from, valid};
  expect(!valid || reinterpret_cast<std::uintptr_t>(from) % 16 == 0, "asynchronous copy from a misaligned address");
  if (!order().late_copies) perform(c);
  block().current->open.push_back(c);
}

void commit() {
  Thread& t = *block().current;
  t.groups.push_back(std::move(t.open));
  t.open.clear();
}

void wait(int pending) {
  Thread& t = *block().current;
  for (; t.groups.size() > static_cast<std::size_t>(pending); t.groups.pop_front()) {
    if (!order().late_copies) continue;
    for (const Copy& c : t.groups.front()) perform(c);
  }
}

// Two buffers take turns: no lane reuses a buffer before all lanes have left the barrier between.
const unsigned char* exchange(const void* value, std::size_t bytes) {
  Warp& w = block().warps[threadIdx.x / kLanes];
  expect(w.meeting.members == kLanes, "a warp's instruction after some of its lanes have ended");
  unsigned char* buffer = w.buffers[w.meeting.generation % 2];
  std::memcpy(buffer + std::size_t{64} * lane(), value, bytes);
  wait_for(w.meeting);
  return buffer;
}

void sync_block() { wait_for(block().all); }

void note_matrix_loads(const unsigned char* addresses) {
  if (lane() != 0) return;
  for (unsigned m = 0; m < 4; ++m) {
    unsigned groups = 0;  // bit set of the groups of four banks that are touched, of eight
    for (unsigned i = 0; i < 8; ++i) groups |= 1U << (of_lane<std::uint32_t>(addresses, 8 * m + i) / 16 % 8);
    ++findings().matrix_loads;
    findings().conflicts += groups != 0xff;
  }
}

void run(dim3 grid, unsigned threads, std::int64_t shared_bytes, const std::function<void()>& kernel) {
  static std::mutex one_at_a_time;  // host threads take turns
  const std::lock_guard lock(one_at_a_time);
  Block& b = block();
  b.kernel = &kernel;
  gridDim = grid;
  blockDim = {threads, 1, 1};
  expect(shared_bytes <= 227 << 10, "more shared memory than an H100 gives a block");
  for (unsigned z = 0; z < grid.z; ++z) {
    for (unsigned y = 0; y < grid.y; ++y) {
      for (unsigned x = 0; x < grid.x; ++x) {
        blockIdx = {x, y, z};
        b.memory.assign(static_cast<std::size_t>(shared_bytes), 0xff);  // NaNs
        run_block(threads);
      }
    }
  }
}

}  // namespace emulated

unsigned char* shared_memory() { return emulated::block().memory.data(); }
std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(static_cast<const unsigned char*>(pointer) - shared_memory());
}

}  // namespace orrery::kernels::cuda

// The part of the CUDA runtime that kernels and tests call.
extern "C" {
cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** pointer, std::size_t bytes) {
  *pointer = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  return cudaSuccess;
}
cudaError_t cudaFree(void* pointer) {
  std::free(pointer);
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t) {
  std::memset(to, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t) { return "an error"; }
}
