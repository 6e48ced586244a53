// Counting, complaints, and the calls that are planted to fail.
#include "tests/exec/cuda/null_gpu/machine.h"

#include <chrono>

#include <fmt/format.h>

namespace orrery::null_gpu {
namespace {

thread_local cudaError_t last = cudaSuccess;

}  // namespace

// Never destroyed: the thread of host functions may outlive main().
Gpu& gpu() {
  static Gpu* const the = new Gpu;
  return *the;
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void complain(const std::string& what) {
  const Lock lock(gpu().mutex);
  ++gpu().found[what];
}

bool fails(const char* function) {
  Gpu& g = gpu();
  const Lock lock(g.mutex);
  const std::int64_t number = ++g.called[function];
  if (g.failing != function || number != g.failing_number) return false;
  g.failed = true;
  return true;
}

cudaError_t error(cudaError_t code) {
  last = code;
  return code;
}

cudaError_t last_error() { return last; }

std::vector<std::string> complaints() {
  Gpu& g = gpu();
  const Lock lock(g.mutex);
  std::vector<std::string> all;
  for (const auto& [what, times] : g.found) all.push_back(fmt::format("{}x {}", times, what));
  g.found.clear();
  return all;
}

std::vector<std::string> left_behind() {
  Gpu& g = gpu();
  const Lock lock(g.mutex);
  std::vector<std::string> all;
  const auto add = [&](std::size_t n, const std::string& what) {
    if (n > 0) all.push_back(fmt::format("{} {}", n, what));
  };
  add(g.device.size(), "device allocations");
  add(g.pinned.size(), "page-locked allocations");
  add(g.streams.size(), "streams");
  add(g.events.size(), "events");
  for (const auto& [kind, n] : g.objects) add(static_cast<std::size_t>(n), kind);
  return all;
}

std::map<std::string, std::int64_t> calls() {
  const Lock lock(gpu().mutex);
  return gpu().called;
}

bool has_failed() {
  const Lock lock(gpu().mutex);
  return gpu().failed;
}

void begin(const std::string& failing, std::int64_t number) {
  Gpu& g = gpu();
  wait_until(everything());
  const Lock lock(g.mutex);
  last = cudaSuccess;
  g.called.clear();
  g.failing = failing;
  g.failing_number = number;
  g.failed = false;
  g.cells.clear();
  g.cached_products.clear();
  g.names.clear();
  g.null_stream.did = nullptr;
  for (Stream* s : g.streams) s->did = nullptr;
  for (Event* e : g.events) e->after = nullptr;
  if (!g.streams.empty() || !g.events.empty()) return;  // whose clocks go on
  ++g.generation;
  g.null_stream.last.clock.clear();
  g.queues = 1;
}

void leave_out_wait(std::int64_t number) {
  const Lock lock(gpu().mutex);
  gpu().left_out = number;
}

std::string left_out_wait() {
  const Lock lock(gpu().mutex);
  return gpu().left_out_wait;
}

void set_slowness(double factor) {
  const Lock lock(gpu().mutex);
  gpu().slowness = factor;
}

void set_patience(double seconds) {
  const Lock lock(gpu().mutex);
  gpu().patience = seconds;
}

}  // namespace orrery::null_gpu
