// Which operation has happened before which: clocks of streams, events and host threads, and the accesses to memory
// that they order.
#include <algorithm>
#include <condition_variable>
#include <queue>
#include <thread>

#include <fmt/format.h>

#include "tests/exec/cuda/null_gpu/machine.h"

namespace orrery::null_gpu {
namespace {

constexpr double kLate = 100e-6;  // seconds that a host function comes after its stream has reached it

// The operations that a host thread has seen to be over.
struct Seen {
  std::uint64_t generation = 0;
  Clock clock;
};

Clock& seen() {
  thread_local Seen of_thread;
  if (of_thread.generation != gpu().generation) of_thread = {gpu().generation, {}};
  return of_thread.clock;
}

// One thread runs the host functions of all streams in the order of their calls, as CUDA may (runtime API,
// cudaLaunchHostFunc); a function's dependencies have been enqueued before it, so that none can wait in vain.
class HostThread {
 public:
  HostThread() {
    std::thread([this] { work(); }).detach();
  }
  void add(std::shared_ptr<HostCall> call) {
    const std::lock_guard lock(mutex_);
    calls_.push(std::move(call));
    changed_.notify_one();
  }

 private:
  [[noreturn]] void work() {
    while (true) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return !calls_.empty(); });
      const std::shared_ptr<HostCall> call = calls_.front();
      calls_.pop();
      lock.unlock();
      while (now() < call->due + kLate) std::this_thread::sleep_for(std::chrono::microseconds(20));
      call->run();
      call->ended_at = now();
      call->ended = true;
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::queue<std::shared_ptr<HostCall>> calls_;
};

HostThread& host_thread() {
  static HostThread* const the = new HostThread;
  return *the;
}

bool is_before(const Access& a, const Clock& clock) {
  return a.by == nullptr || (a.queue < clock.size() && clock[a.queue] >= a.count);
}

// Cuts the cells at a place, so that one begins there.
void cut(std::map<std::uintptr_t, Cell>& cells, std::uintptr_t at) {
  auto after = cells.upper_bound(at);
  if (after == cells.begin()) return;
  auto& [begin, cell] = *std::prev(after);
  if (begin == at || cell.end <= at) return;
  Cell rest = cell;
  cell.end = at;
  cells.emplace(at, std::move(rest));
}

void check_order(const Access& before, const char* did, const Access& mine, bool writes, const Clock& clock) {
  if (is_before(before, clock)) return;
  complain(fmt::format("{} {} what {} {}, and no event orders the two", *mine.by, writes ? "writes" : "reads",
                       *before.by, did));
}

void note(Cell& cell, const Access& mine, bool writes, const Clock& clock) {
  check_order(cell.write, "writes", mine, writes, clock);
  if (writes) {
    for (const Access& read : cell.reads) check_order(read, "reads", mine, writes, clock);
    cell.write = mine;
    cell.reads.clear();
    return;
  }
  const auto same =
      std::find_if(cell.reads.begin(), cell.reads.end(), [&](const Access& r) { return r.queue == mine.queue; });
  if (same != cell.reads.end())
    *same = mine;
  else
    cell.reads.push_back(mine);
}

}  // namespace

void join(Clock& into, const Clock& from) {
  if (into.size() < from.size()) into.resize(from.size(), 0);
  for (std::size_t i = 0; i < from.size(); ++i) into[i] = std::max(into[i], from[i]);
}

bool includes(const Clock& clock, const Clock& other) {
  for (std::size_t i = 0; i < other.size(); ++i) {
    if (other[i] > (i < clock.size() ? clock[i] : 0)) return false;
  }
  return true;
}

bool Moment::reached() const { return now() >= at && (behind == nullptr || behind->ended); }

double Moment::reached_at() const { return behind == nullptr ? at : std::max(at, behind->ended_at); }

void Moment::wait_for(const Moment& other) {
  at = std::max(at, other.at);
  if (other.behind != nullptr && (behind == nullptr || behind->number < other.behind->number)) behind = other.behind;
  join(clock, other.clock);
}

void enqueue(Stream& stream, double seconds) {
  Moment& m = stream.last;
  m.at = std::max(m.at, now()) + seconds * gpu().slowness;
  join(m.clock, seen());
  if (m.clock.size() <= stream.queue) m.clock.resize(stream.queue + 1, 0);
  ++m.clock[stream.queue];
}

void enqueue_call(Stream& stream, std::function<void()> run) {
  auto call = std::make_shared<HostCall>();
  call->run = std::move(run);
  call->due = stream.last.at;
  call->number = ++gpu().host_calls;
  stream.last.behind = call;
  host_thread().add(call);
}

void wait_until(const Moment& moment) {
  while (!moment.reached()) std::this_thread::yield();
  const Lock lock(gpu().mutex);
  seen_by_host(moment);
}

void seen_by_host(const Moment& moment) { join(seen(), moment.clock); }

Moment everything() {
  Gpu& g = gpu();
  const Lock lock(g.mutex);
  Moment all = g.null_stream.last;
  for (const Stream* s : g.streams) all.wait_for(s->last);
  return all;
}

void access(Stream& stream, const std::string& by, const void* at, std::size_t bytes, bool writes, const void* space) {
  if (bytes == 0) return;
  Gpu& g = gpu();
  const Clock& clock = stream.last.clock;
  const Access mine = {stream.queue, clock[stream.queue], &*g.names.insert(by).first};
  stream.did = mine.by;
  auto& cells = g.cells[space];
  const auto begin = reinterpret_cast<std::uintptr_t>(at), end = begin + bytes;
  cut(cells, begin);
  cut(cells, end);
  std::uintptr_t place = begin;
  while (place < end) {
    auto it = cells.lower_bound(place);
    if (it == cells.end() || it->first > place) {  // bytes that nobody has accessed yet
      const std::uintptr_t until = it == cells.end() ? end : std::min(end, it->first);
      it = cells.emplace(place, Cell{until, {}, {}}).first;
    }
    note(it->second, mine, writes, clock);
    place = it->second.end;
  }
}

void forget(const void* at, std::size_t bytes) {
  auto& cells = gpu().cells[nullptr];
  const auto begin = reinterpret_cast<std::uintptr_t>(at);
  cut(cells, begin);
  cut(cells, begin + bytes);
  cells.erase(cells.lower_bound(begin), cells.lower_bound(begin + bytes));
}

}  // namespace orrery::null_gpu

// The bytes of a range that hold what the host brought, or nothing: no kernel, copy on the device or message has
// written them since.
extern "C" std::size_t orrery_untouched_by_device(const void* at, std::size_t bytes) {
  using namespace orrery::null_gpu;
  const Lock lock(gpu().mutex);
  const auto& cells = gpu().cells[nullptr];
  const auto begin = reinterpret_cast<std::uintptr_t>(at), end = begin + bytes;
  std::size_t written = 0;
  auto cell = cells.upper_bound(begin);
  if (cell != cells.begin()) --cell;
  for (; cell != cells.end() && cell->first < end; ++cell) {
    const std::string* const by = cell->second.write.by;
    if (by == nullptr || *by == kFromHost || cell->second.end <= begin) continue;
    written += std::min(end, cell->second.end) - std::max(begin, cell->first);
  }
  return bytes - written;
}
