// Measures the viewer's promised speed and memory on a trace of ten million events (1.7 GB of JSON):
//   viewer_figures [FOLDER [EVENTS]]
// It writes the trace into FOLDER (unless it is there), opens it, opens it again from the cache (in FOLDER/cache), and
// prints times and the memory of the process, without the pages of files that the kernel caches. viewer_window_figures
// measures drawing and the what-if panel.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "models/base/output_file.h"
#include "viz/draw/scene.h"
#include "viz/draw/scene_cache.h"

namespace {

constexpr int kRanks = 16, kLanesPerRank = 4;

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Writes a trace with kernels on four lanes of 16 ranks in PyTorch's form, about 170 bytes each.
void write_trace(const std::string& path, std::int64_t events) {
  static constexpr const char* names[] = {"qkv", "flash attention", "mlp up", "mlp down", "norm", "residual"};
  orrery::OutputFile file(path);
  fmt::memory_buffer text;
  fmt::format_to(std::back_inserter(text), "{{\"schemaVersion\":1,\"traceEvents\":[\n");
  // Current time of each lane in nanoseconds.
  std::vector<std::int64_t> clock(kRanks * kLanesPerRank, 1'700'000'000'000'000'000);
  std::uint64_t random = 1;
  for (std::int64_t i = 0; i < events; ++i) {
    random = random * 6364136223846793005ULL + 1442695040888963407ULL;
    const auto track = static_cast<std::size_t>(i) % clock.size();
    const auto lane = track % kLanesPerRank;
    const auto duration = static_cast<std::int64_t>(2000 + (random >> 33) % 40000);
    std::int64_t& t = clock[track];
    t += static_cast<std::int64_t>((random >> 50) % 3000);
    const char* name = lane == 0 ? names[(random >> 40) % 6] : "ncclDevKernel_AllReduce_Sum_bf16";
    fmt::format_to(std::back_inserter(text),
                   "{{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"{}\",\"pid\":{},\"tid\":{},\"ts\":{}.{:03},\"dur\":{}."
                   "{:03},\"args\":{{\"phase\":\"{}\",\"Process Group Description\":\"{}\"}}}},\n",
                   name, track / kLanesPerRank, lane, t / 1000, t % 1000, duration / 1000, duration % 1000,
                   random >> 63 ? "forward" : "backward",
                   lane == 1   ? "tensor"
                   : lane == 2 ? "data"
                               : "pipeline");
    t += duration;
    if (text.size() > (1 << 20)) {
      file.write({text.data(), text.size()});
      text.clear();
    }
  }
  fmt::format_to(std::back_inserter(text), "{{\"ph\":\"M\",\"name\":\"end\",\"pid\":0,\"args\":{{}}}}]}}\n");
  file.write({text.data(), text.size()});
  file.commit();
}

// Returns the processor time of all threads in seconds. Unlike elapsed time, it is not affected by other users of the
// machine.
double processor_s() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// Reads a value of /proc/self/status, and returns it in MiB.
double status_MiB(const std::string& key) {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(key + ":", 0) == 0) return std::atof(line.c_str() + key.size() + 1) / 1024;
  }
  return 0;
}

template <class Function>
double p95_ms(int repetitions, Function function) {
  std::vector<double> times;
  for (int i = 0; i < repetitions; ++i) {
    const double start = processor_s();
    function(i);
    times.push_back((processor_s() - start) * 1e3);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() * 95 / 100];
}

// Samples the anonymous memory of the process until destroyed, and keeps the highest value.
class MemoryWatch {
 public:
  MemoryWatch() : thread_([this] { watch(); }) {}
  ~MemoryWatch() { stop(); }
  double stop() {
    stopped_ = true;
    if (thread_.joinable()) thread_.join();
    return most_;
  }

 private:
  void watch() {
    while (!stopped_) {
      most_ = std::max(most_, status_MiB("RssAnon"));
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  std::atomic<bool> stopped_ = false;
  double most_ = 0;
  std::thread thread_;
};

void measure(const std::string& path) {
  using namespace orrery;
  const double start = now_s(), processor = processor_s();
  MemoryWatch watch;
  const Document d = open_trace({path});
  const double loaded = now_s(), used = processor_s() - processor;
  const double loaded_MiB = watch.stop();
  const Scene scene(d, 2);
  const double prepared = now_s();
  fmt::print("open            {:6.2f} s, {:.2f} s of processors  {} events, {} tracks, {} labels\n", loaded - start,
             used, d.timeline.events(), d.timeline.tracks.size(), d.timeline.labels.size());
  fmt::print("prepare         {:6.2f} s  levels of detail and area index\n", prepared - loaded);
  fmt::print("own memory      {:6.0f} MiB at most while opening, {:.0f} MiB in the end\n", loaded_MiB,
             status_MiB("RssAnon"));
  std::vector<Cell> cells(1920);
  for (const double share : {1.0, 0.1, 0.01, 1e-4, 1e-6}) {
    const double frame = p95_ms(40, [&](int i) {
      const auto length = static_cast<Picoseconds>(static_cast<double>(d.timeline.end) * share);
      const TimeScale scale =
          clamped({d.timeline.end / 41 * i, d.timeline.end / 41 * i + length, 1920}, d.timeline.end);
      for (std::size_t t = 0; t < d.timeline.tracks.size() && t < 64; ++t)
        render_track(d.timeline, d.timeline.tracks[t], scene.prepared->pyramids[t], scale, cells);
    });
    fmt::print("64 rows x 1920  {:6.2f} ms p95 at {:g} of the trace\n", frame, share);
  }
  const double area = p95_ms(40, [&](int i) {
    area_statistics(d.timeline, scene.prepared->areas, d.timeline.end / 80 * i,
                    d.timeline.end - d.timeline.end / 90 * i);
  });
  fmt::print("area statistics {:6.2f} ms p95\n", area);
}

// Opens the trace twice: the first time stores the scene in the cache, unless it is there.
void measure_reopening(const std::string& path) {
  using namespace orrery;
  const std::string key = cache_key({path});
  if (!scene_from_cache(key, {path})) {
    Document d = open_trace({path});
    d.cache_key = key;
    const double start = now_s();
    put_in_cache(Scene(std::move(d), 2));
    fmt::print("keep            {:6.2f} s  prepared and written, after it is shown\n", now_s() - start);
  }
  const double start = now_s(), processor = processor_s();
  const auto scene = open_scenes({path}, {}, {}, 2)[0];
  fmt::print("reopen          {:6.2f} s, {:.2f} s of processors  {} events, {:.0f} MiB of own memory\n",
             now_s() - start, processor_s() - processor, scene->timeline().events(), status_MiB("RssAnon"));
}

}  // namespace

int main(int count, char** arguments) {
  const std::string folder = count > 1 ? arguments[1] : std::filesystem::temp_directory_path().string();
  const std::int64_t events = count > 2 ? std::atoll(arguments[2]) : 10'000'000;
  const std::string path = fmt::format("{}/orrery_{}_events.json", folder, events);
  if (!std::filesystem::exists(path)) write_trace(path, events);
  fmt::print("{}: {:.2f} GB\n", path, static_cast<double>(std::filesystem::file_size(path)) / 1e9);
  std::ifstream load("/proc/loadavg");
  std::string loads;
  std::getline(load, loads);
  fmt::print("load of the machine now, over 1, 5 and 15 minutes: {}\n", loads);
  setenv("XDG_CACHE_HOME", (folder + "/cache").c_str(), 1);
  measure(path);
  measure_reopening(path);
}
