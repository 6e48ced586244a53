// The program orrery-rank-cuda executes the ranks of a job on NVIDIA GPUs. `orrery run --device cuda` starts it once,
// without a rank number: with a GPU for every rank the program starts itself again for each rank; with fewer GPUs, the
// ranks are threads of this process on the first GPU, all at once or, with --turns, one after the other. torchrun, srun
// and mpirun start it once for every rank. --describe prints the GPU's name and versions; --bench FILE measures single
// kernels (gpu_bench.h). --jobs FILE reads jobs from a pipe, each as a line with a JSON list of the words of one such
// command line, and runs them one after the other until the pipe is closed, so that CUDA starts once for all jobs:
// `orrery calibrate` and `orrery validate` use --jobs. A job that fails ends the process, as it does without --jobs.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "exec/cuda/device.h"
#include "exec/cuda/gpu_bench.h"
#include "exec/cuda/nccl_transport.h"
#include "exec/cuda/sensors.h"
#include "exec/program/rank_program.h"
#include "exec/program/rendezvous.h"
#include "exec/program/text_data.h"
#include "exec/program/watch.h"
#include "exec/transport/alone_transport.h"
#include "exec/transport/threads_transport.h"
#include "models/base/output_file.h"
#include "models/load/load_spec.h"
#include "models/plan/hash.h"
#include "models/plan/unfold.h"
#include "models/planner/make_plan.h"
#include "models/run/rank_end.h"
#include "models/trace/warm_up.h"

namespace orrery::cuda {
namespace {

constexpr char kName[] = "orrery-rank-cuda";
constexpr Seconds kRendezvousPatience = 120;  // time in seconds to wait for the other processes to connect
// Size in bytes of the memory with the bf16 numbers that replace received data when a rank runs alone.
constexpr Bytes kBank = 8 << 20;

using Words = std::vector<std::string>;

// The sensors of each GPU that this process uses, opened once for all jobs.
class AllSensors {
 public:
  Sensors& of(int gpu) {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<Sensors>& sensors = by_gpu_[gpu];
    if (sensors == nullptr) sensors = std::make_unique<Sensors>(gpu);
    return *sensors;
  }

 private:
  std::mutex mutex_;
  std::map<int, std::unique_ptr<Sensors>> by_gpu_;
};

struct RankJob {
  const Words& words;  // command line of the job
  const RankOptions& options;
  const Spec& spec;
  const Plan& plan;  // the folded plan: one rank for each class of ranks that do the same
  std::string hash;
  AllSensors& sensors;
};

struct How {
  int gpu = 0;
  bool one_queue = false;
  std::string source = "measured", library, link, sharing;
};

// Executes one rank, and writes the file with the rank's results.
void run_rank(const RankJob& job, const Rank& rank, QueuedTransport& transport, SharedGpu& gpu, const How& how,
              ProgressRing& ring, const ClockOffset& clock) {
  const Text text = text_of(job.options, job.spec, kText);
  Sensors& sensors = job.sensors.of(how.gpu);
  std::int64_t step = 0;
  Picoseconds warm = host_now();
  Conditions conditions;
  ExecuteOptions options;
  options.steps = job.options.steps;
  options.training = training_of(job.spec);
  options.on_step = [&](std::int64_t s) {
    step = s;
    if (s <= static_cast<std::int64_t>(warm_up(static_cast<std::size_t>(job.options.steps)))) warm = host_now();
  };
  options.on_end = [&](const Buffers&) { conditions = sensors.since(warm, job.spec.model.name); };
  options.watcher = watcher_of(rank, ring, step);
  CudaDevice device(rank, gpu, transport, how.one_queue, job.options.mark_every);
  Execution e = execute(rank, device, text, options);
  const RankRun result = {.source = how.source,
                          .plan_hash = job.hash,
                          .rank = rank.number,
                          .ranks = job.plan.ranks,
                          .device = gpu_name(how.gpu) + how.sharing,
                          .library = how.library,
                          .link = how.link,
                          .host = host_name(),
                          .steps = std::move(e.steps),
                          .unmarked = std::move(e.unmarked),
                          .losses = std::move(e.losses),
                          .memory = e.memory,
                          .conditions = std::move(conditions),
                          .clock_offset = clock.offset,
                          .clock_uncertainty = clock.uncertainty + device.clock_uncertainty()};
  write_rank_run(rank_file(job.options.out, rank.number), result);
  ring.finish();
}

std::unique_ptr<ProgressRing> ring_of(const RankJob& job, std::int64_t rank) {
  return std::make_unique<ProgressRing>(progress_file(job.options.out, rank), rank, job.hash);
}

// Runs this process as one rank of several.
void run_process(const RankJob& job, const RankPlacement& placement, int gpus) {
  if (placement.ranks != job.plan.ranks)
    throw Error(
        fmt::format("{}: {} ranks were started for a plan of {}", job.options.spec, placement.ranks, job.plan.ranks));
  const auto ring = ring_of(job, placement.rank);
  try {
    const int gpu = static_cast<int>(placement.local_rank % gpus);
    use_gpu(gpu);
    std::optional<Watch> watch;
    if (job.options.hang_timeout > 0) {
      watch.emplace(job.options.out, unfold(job.plan), job.options.steps, Patience{job.options.hang_timeout, {}},
                    [](const Fault& fault) { give_up(nullptr, kName, fault.exit_code, fault.line); });
    }
    const Rank rank(job.spec, job.plan, placement.rank);
    Rendezvous rendezvous(placement, kRendezvousPatience);
    const auto transport = nccl_transport(rendezvous, placement.rank, rank.plan);
    const ClockOffset clock = clock_of(rendezvous);
    rendezvous.barrier("begin");
    SharedGpu shared;
    run_rank(job, rank, *transport, shared, {.gpu = gpu, .library = "NCCL", .link = "nvlink"}, *ring, clock);
    rendezvous.barrier("end");
  } catch (const std::exception& error) {
    give_up(ring.get(), kName, error);
  }
}

// Starts this program once for every rank, and waits until all have ended.
void run_processes(const RankJob& job) {
  Words words = job.words;
  std::vector<char*> argv = {const_cast<char*>(kName)};
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::setenv("MASTER_ADDR", "127.0.0.1", 0);
  ::setenv("MASTER_PORT", fmt::format("{}", free_port()).c_str(), 0);
  ::setenv("WORLD_SIZE", fmt::format("{}", job.plan.ranks).c_str(), 1);
  const pid_t parent = ::getpid();
  std::map<pid_t, std::unique_ptr<RankEndFile>> ends;
  for (std::int64_t r = 0; r < job.plan.ranks; ++r) {
    const std::string number = fmt::format("{}", r);
    const pid_t child = ::fork();
    if (child < 0) throw Error("fork: no further process can be started", 1);
    if (child > 0) {
      ends[child] = std::make_unique<RankEndFile>(ended_file(job.options.out, r));
      ends[child]->started(child);
      continue;
    }
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    ::setenv("RANK", number.c_str(), 1);
    ::setenv("LOCAL_RANK", number.c_str(), 1);
    ::execv("/proc/self/exe", argv.data());
    ::_exit(127);
  }
  int worst = 0;
  int status = 0;
  for (pid_t child = ::wait(&status); child > 0; child = ::wait(&status)) {
    ends.at(child)->ended(status);
    worst = std::max(worst, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  }
  if (worst != 0) std::_Exit(worst);  // no message is printed, because the failed rank has printed the reason
}

// Runs all ranks at the same time, as threads that share one GPU.
void run_threads(const RankJob& job) {
  use_gpu(0);
  Meetings meetings(job.plan);
  SharedGpu gpu;
  std::vector<std::thread> threads;
  for (std::int64_t r = 0; r < job.plan.ranks; ++r) {
    threads.emplace_back([&, r] {
      std::unique_ptr<ProgressRing> ring;
      try {
        ring = ring_of(job, r);
        use_gpu(0);
        const Rank rank(job.spec, job.plan, r);
        const auto transport = meetings.transport(r);
        run_rank(job, rank, *transport, gpu,
                 {.library = "copies",
                  .link = "device memory",
                  .sharing = fmt::format(", shared by {} ranks", job.plan.ranks)},
                 *ring, {});
      } catch (const std::exception& error) {
        give_up(ring.get(), kName, error);
      }
    });
  }
  for (std::thread& t : threads) t.join();
}

Memory bank() {
  const std::int64_t n = kBank / 2;
  std::vector<std::int64_t> columns(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) columns[static_cast<std::size_t>(i)] = i;
  const std::int64_t row = 0;
  Memory memory(Memory::Place::device, kBank);
  initial_on_cuda({.to = memory.data(),
                   .width = 2,
                   .count = n,
                   .in = n,
                   .key = 1,
                   .deviation = 0.02,
                   .rows = {&row, 1},
                   .columns = columns},
                  nullptr);
  return memory;
}

// Runs the only rank of a job on the GPU or, with `turns`, all ranks of a job one after the other.
void run_alone(const RankJob& job, bool turns) {
  use_gpu(0);
  const Memory numbers = bank();
  for (std::int64_t r = 0; r < job.plan.ranks; ++r) {
    const auto ring = ring_of(job, r);
    try {
      const Rank rank(job.spec, job.plan, r);
      const auto transport = alone_transport(rank, {numbers.data(), static_cast<std::size_t>(numbers.bytes())});
      SharedGpu gpu;
      run_rank(job, rank, *transport, gpu,
               {.one_queue = turns, .source = turns ? "composed" : "measured", .library = "none", .link = "none"},
               *ring, {});
    } catch (const std::exception& error) {
      give_up(ring.get(), kName, error);
    }
  }
}

// Prints the GPU's name and versions, as a measured profile records them.
void describe() {
  use_gpu(0);
  for (const auto& [key, value] : gpu_fingerprint(0)) fmt::print("{}: {}\n", key, value);
}

// Writes measured times of single kernels, and the GPU's name and versions, to a file.
void bench(const std::string& path, bool quick, AllSensors& sensors) {
  use_gpu(0);
  OutputFile file(path);
  file.write(to_json(bench_gpu(quick, sensors.of(0)), gpu_fingerprint(0)));
  file.commit();
}

RankOptions options_of(const Words& words) {
  std::vector<char*> argv = {const_cast<char*>(kName)};
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  return parse_rank_options(static_cast<int>(argv.size()), argv.data(), kName);
}

void run_ranks(const Words& words, const GpuCount& gpus, AllSensors& sensors) {
  const RankOptions options = options_of(words);
  const Spec spec = load_spec(options.spec, options.overrides);
  const Plan plan = make_plan(spec);
  const RankJob job = {words, options, spec, plan, plan_hash(plan), sensors};
  const RankPlacement placement = placement_of_environment();
  try {
    if (gpus.count == 0) throw Error("no GPU: " + gpus.why, 1);
    check_executable(spec, "GPU");
  } catch (const std::exception& error) {
    give_up(ring_of(job, placement.rank).get(), kName, error);
  }
  if (placement.launched && plan.ranks > 1) return run_process(job, placement, gpus.count);
  if (plan.ranks == 1 || options.turns) return run_alone(job, options.turns);
  gpus.count >= plan.ranks ? run_processes(job) : run_threads(job);
}

void run_job(const Words& words, const GpuCount& gpus, AllSensors& sensors) {
  const std::string first = words.empty() ? "" : words[0];
  const bool describes = first == "--describe", benches = first == "--bench" && words.size() > 1;
  if (gpus.count == 0 && (describes || benches)) throw Error("no GPU: " + gpus.why, 1);
  if (describes) return describe();
  if (benches) return bench(words[1], words.size() > 2, sensors);
  run_ranks(words, gpus, sensors);
}

// Resets the peak memory that Linux counts for this process, so that the next job measures only its own peak (proc(5),
// /proc/PID/clear_refs).
void forget_host_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

void run_jobs(const std::string& pipe, const GpuCount& gpus, AllSensors& sensors) {
  std::ifstream jobs(pipe);
  if (!jobs) throw Error(fmt::format("{}: cannot be read", pipe), 1);
  for (std::string line; std::getline(jobs, line);) {
    forget_host_peak();
    run_job(nlohmann::json::parse(line).get<Words>(), gpus, sensors);
  }
}

void run(const Words& words) {
  const GpuCount gpus = count_gpus();
  AllSensors sensors;
  if (words.size() == 2 && words[0] == "--jobs") return run_jobs(words[1], gpus, sensors);
  run_job(words, gpus, sensors);
}

}  // namespace
}  // namespace orrery::cuda

int main(int argc, char** argv) {
  try {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    orrery::cuda::run({argv + 1, argv + argc});
    return 0;
  } catch (const std::exception& error) {
    orrery::give_up(nullptr, orrery::cuda::kName, error);
  }
}
