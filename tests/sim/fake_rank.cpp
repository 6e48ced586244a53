// A stand-in for orrery-rank in tests of its surroundings: it plays the plan task by task without computing anything,
// waits in every transfer until the other ranks are there (as their progress files show), and writes the spans of a
// simulated step. $FAKE_FAULT, "rank step task what", selects a fault.
#include <sys/prctl.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/error.h"
#include "models/load/load_spec.h"
#include "models/plan/hash.h"
#include "models/plan/unfold.h"
#include "models/planner/make_plan.h"
#include "models/run/progress_ring.h"
#include "models/trace/trace_file.h"
#include "tests/sim/fake_runs.h"

namespace {

using namespace orrery;

struct Arguments {
  std::string spec, folder;
  std::vector<std::string> overrides;
  std::size_t steps = 1;
};

Arguments parse(int argc, char** argv) {
  Arguments a;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string key = argv[i], value = argv[i + 1];
    if (key == "--spec") a.spec = value;
    if (key == "--set") a.overrides.push_back(value);
    if (key == "--out") a.folder = value;
    if (key == "--steps") a.steps = std::stoul(value);
  }
  return a;
}

struct FaultPlace {
  long rank = -1, step = 0, task = 0;
  std::string what;
};

FaultPlace fault_place() {
  FaultPlace f;
  const char* text = std::getenv("FAKE_FAULT");
  if (text != nullptr) std::istringstream(text) >> f.rank >> f.step >> f.task >> f.what;
  return f;
}

class Fake {
 public:
  Fake(const Arguments& a, std::int64_t rank)
      : arguments_(a),
        rank_(rank),
        folded_(make_plan(load_spec(a.spec, a.overrides))),
        plan_(unfold(folded_)),
        hash_(plan_hash(folded_)),
        fault_(fault_place()),
        ring_(progress_file(a.folder, rank), rank, hash_) {}

  void run() {
    for (std::uint32_t step = 0; step < arguments_.steps; ++step) {
      const RankClass& slot = plan_.classes[rank_];
      for (TaskId t = slot.begin; t < slot.end;) {
        TaskId end = t + 1;
        while (end < slot.end && (plan_.tasks[end].flags & kJoinsPrevious) != 0) ++end;
        play(step, t, end);
        t = end;
      }
    }
    finish();
  }

 private:
  LaneKind lane(TaskId t) const { return static_cast<LaneKind>(plan_.tasks[t].lane % kLanes); }
  bool fails(const std::string& what) const { return fault_.rank == rank_ && fault_.what == what; }

  // Plays tasks; the tasks of a batch enter and end together.
  void play(std::uint32_t step, TaskId begin, TaskId end) {
    const TaskId first = plan_.classes[rank_].begin;
    for (TaskId t = begin; t < end; ++t) {
      ring_.enter(lane(t), step, t - first);
      if (fault_.rank == rank_ && fault_.step == step && fault_.task == t - first) go_wrong();
    }
    for (TaskId t = begin; t < end; ++t) {
      if (plan_.tasks[t].match != kNone) {
        for (const TaskId m : plan_.members_of(plan_.tasks[t].match)) wait_for(step, m);
      }
      ring_.leave(lane(t), step, t - first);
    }
  }

  void wait_for(std::uint32_t step, TaskId t) {
    const std::uint32_t other = plan_.slot_of(t);
    for (;;) {
      if (const auto p = read_progress(progress_file(arguments_.folder, other))) {
        const ProgressEvent& e = p->lanes[plan_.tasks[t].lane % kLanes];
        const TaskId reached = plan_.classes[other].begin + e.task;
        if (e.task != kNone && (e.step > step || (e.step == step && reached >= t))) return;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  void go_wrong() {
    if (fault_.what == "kill") ::raise(SIGKILL);
    if (fault_.what == "stop") ::raise(SIGSTOP);
    if (fault_.what == "spin") std::this_thread::sleep_for(std::chrono::hours(1));
    if (fault_.what == "fail") throw Error("device: out of memory", 1);
  }

  void finish() {
    RankRun run = fake_runs(folded_, arguments_.steps)[rank_];
    if (const char* clock = std::getenv("FAKE_MHZ"); clock != nullptr) {
      const double mhz = std::atof(clock);
      run.conditions = {.during = "fake", .samples = 3, .sm_low_MHz = mhz, .sm_MHz = mhz, .sm_high_MHz = mhz};
    }
    if (fails("hash")) run.plan_hash = "0123456789abcdef";
    const std::string path = rank_file(arguments_.folder, rank_);
    write_rank_run(path, run);
    if (fails("garbage")) std::ofstream(path, std::ios::app) << "more";
    ring_.finish();
  }

 public:
  void tell(const Error& error) { ring_.fail(error.exit_code, error.what()); }

 private:
  Arguments arguments_;
  std::int64_t rank_;
  Plan folded_, plan_;
  std::string hash_;
  FaultPlace fault_;
  ProgressRing ring_;
};

}  // namespace

// Runs one job; returns the exit status.
int run_job(int argc, char** argv) {
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  Fake fake(parse(argc, argv), rank == nullptr ? 0 : std::atoi(rank));
  try {
    fake.run();
  } catch (const orrery::Error& error) {
    fake.tell(error);
    return error.exit_code;
  }
  return 0;
}

// With --jobs PIPE it runs the jobs whose words come through the pipe, as the program for GPU ranks does.
int main(int argc, char** argv) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (argc != 3 || std::string(argv[1]) != "--jobs") return run_job(argc, argv);
  std::ifstream jobs(argv[2]);
  for (std::string line; std::getline(jobs, line);) {
    auto words = nlohmann::json::parse(line).get<std::vector<std::string>>();
    std::vector<char*> list = {argv[0]};
    for (std::string& word : words) list.push_back(word.data());
    if (const int status = run_job(static_cast<int>(list.size()), list.data()); status != 0) return status;
  }
  return 0;
}
