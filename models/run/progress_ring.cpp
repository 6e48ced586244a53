#include "models/run/progress_ring.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <new>

#include <fmt/format.h>

#include "models/base/error.h"

namespace orrery {

// The number of events in a lane's ring: one more than is read, because the writer may be overwriting the oldest event.
constexpr std::size_t kRing = kRecentEvents + 1;
constexpr std::size_t kCacheLine = 64;

// An event of a lane's ring as two 64-bit words, so that it is written by two stores.
struct ProgressEntry {
  std::atomic<std::uint64_t> what;  // the event packed in one number: step << 33 | open << 32 | task
  std::atomic<std::int64_t> time_ns;
};

struct alignas(kCacheLine) ProgressLane {
  std::atomic<std::uint64_t> count;
  std::array<ProgressEntry, kRing> entries;
};

namespace {

constexpr std::array<char, 8> kMagic = {'O', 'R', 'R', 'E', 'R', 'Y', 'P', '1'};

ProgressEvent unpack(const ProgressEntry& entry) {
  const std::uint64_t what = entry.what.load(std::memory_order_relaxed);
  return {static_cast<std::uint32_t>(what >> 33), static_cast<TaskId>(what), ((what >> 32) & 1) != 0,
          entry.time_ns.load(std::memory_order_relaxed)};
}

// Reads the last events of a lane, and returns the number of its events so far. If the writer overwrites any of them
// meanwhile, they are read again.
std::uint64_t read_lane(const ProgressLane& lane, std::vector<ProgressEvent>& events) {
  for (;;) {
    const std::uint64_t count = lane.count.load(std::memory_order_acquire);
    events.clear();
    for (std::uint64_t i = count - std::min<std::uint64_t>(count, kRecentEvents); i < count; ++i)
      events.push_back(unpack(lane.entries[i % kRing]));
    std::atomic_thread_fence(std::memory_order_acquire);
    if (lane.count.load(std::memory_order_relaxed) == count) return count;
  }
}

struct Descriptor {
  int number;
  ~Descriptor() { ::close(number); }
};

[[noreturn]] void fail_to_make(const std::string& path) {
  throw Error(fmt::format("{}: cannot be made: {}", path, std::strerror(errno)), 1);
}

template <std::size_t n>
void copy_text(std::array<char, n>& to, std::string_view text) {
  const std::size_t length = std::min(text.size(), n - 1);
  std::copy_n(text.data(), length, to.data());
  to[length] = '\0';
}

template <std::size_t n>
std::string text_of(const std::array<char, n>& from) {
  return {from.data(), ::strnlen(from.data(), n)};
}

}  // namespace

struct ProgressRing::File {
  std::array<char, 8> magic;
  std::int64_t rank;
  std::int64_t pid;
  std::array<char, 24> plan_hash;
  std::atomic<RankState> state;
  std::atomic<std::int32_t> exit_code;
  std::array<char, 1024> line;
  std::array<ProgressLane, kLanes> lanes;

  static std::optional<RankProgress> read(const std::string& path);
};

ProgressRing::ProgressRing(const std::string& path, std::int64_t rank, std::string_view plan_hash) {
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
  const std::string temporary = path + ".tmp";
  const Descriptor file{::open(temporary.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666)};
  // The file's disk space is reserved when it is created: on a full disk, a page of a mapped file without space would
  // cause a SIGBUS.
  if (file.number < 0 || ::ftruncate(file.number, sizeof(File)) != 0) fail_to_make(path);
  if (const int error = ::posix_fallocate(file.number, 0, sizeof(File)); error != 0) {
    errno = error;
    fail_to_make(path);
  }
  void* at = ::mmap(nullptr, sizeof(File), PROT_READ | PROT_WRITE, MAP_SHARED, file.number, 0);
  if (at == MAP_FAILED) fail_to_make(path);
  file_ = new (at) File{};
  file_->magic = kMagic;
  file_->rank = rank;
  file_->pid = ::getpid();
  copy_text(file_->plan_hash, plan_hash);
  if (::rename(temporary.c_str(), path.c_str()) != 0) fail_to_make(path);
}

void ProgressRing::set_plan(std::string_view plan_hash) noexcept { copy_text(file_->plan_hash, plan_hash); }

ProgressRing::~ProgressRing() { ::munmap(file_, sizeof(File)); }

void ProgressRing::note(LaneKind kind, std::uint32_t step, TaskId task, bool open) noexcept {
  ProgressLane& lane = file_->lanes[static_cast<std::size_t>(kind)];
  const std::uint64_t count = lane.count.load(std::memory_order_relaxed);
  ProgressEntry& entry = lane.entries[count % kRing];
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  // The stores have release order, so that a reader that sees a word of a new event, where it expected an older one,
  // also sees that the count has increased.
  entry.what.store(std::uint64_t{step} << 33 | std::uint64_t{open} << 32 | task, std::memory_order_release);
  entry.time_ns.store(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count(), std::memory_order_release);
  lane.count.store(count + 1, std::memory_order_release);
}

void ProgressRing::finish() noexcept { file_->state.store(RankState::finished, std::memory_order_release); }

void ProgressRing::fail(int exit_code, std::string_view line) noexcept {
  copy_text(file_->line, line);
  file_->exit_code.store(exit_code, std::memory_order_relaxed);
  file_->state.store(RankState::failed, std::memory_order_release);
}

std::optional<RankProgress> ProgressRing::File::read(const std::string& path) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.number < 0) return std::nullopt;
  struct stat status {};
  if (::fstat(file.number, &status) != 0 || status.st_size != sizeof(File))
    throw Error(fmt::format("{}: is no progress file of a rank", path), 1);
  void* at = ::mmap(nullptr, sizeof(File), PROT_READ, MAP_SHARED, file.number, 0);
  if (at == MAP_FAILED) throw Error(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)), 1);
  const auto unmap = [](const File* f) { ::munmap(const_cast<File*>(f), sizeof(File)); };
  const std::unique_ptr<const File, decltype(unmap)> map(static_cast<const File*>(at), unmap);
  if (map->magic != kMagic) throw Error(fmt::format("{}: is no progress file of a rank", path), 1);
  RankProgress p{.rank = map->rank, .pid = map->pid, .plan_hash = text_of(map->plan_hash)};
  p.state = map->state.load(std::memory_order_acquire);
  if (p.state == RankState::failed) {
    p.exit_code = map->exit_code.load(std::memory_order_relaxed);
    p.line = text_of(map->line);
  }
  p.lanes.resize(kLanes);
  p.recent.resize(kLanes);
  for (std::size_t l = 0; l < kLanes; ++l) {
    p.events += read_lane(map->lanes[l], p.recent[l]);
    if (!p.recent[l].empty()) p.lanes[l] = p.recent[l].back();
  }
  return p;
}

std::string progress_file(const std::string& folder, std::int64_t rank) {
  return fmt::format("{}/rank_{}.progress", folder, rank);
}

std::optional<RankProgress> read_progress(const std::string& path) { return ProgressRing::File::read(path); }

}  // namespace orrery
