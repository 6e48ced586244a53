// orrery-rank: executes one rank of a job. `orrery run` starts it; so may mpirun or srun. models/trace_file.h says what
// it is asked and what it leaves behind.
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "exec/execute.h"
#include "exec/mpi_clock.h"
#include "exec/mpi_session.h"
#include "exec/mpi_transport.h"
#include "exec/text_data.h"
#include "exec/watch.h"
#include "kernels/gemm.h"
#include "models/make_plan.h"
#include "models/plan_hash.h"
#include "models/progress_ring.h"
#include "models/unfold.h"

namespace orrery {
namespace {

struct Options {
  std::string spec, out, text;
  std::vector<std::string> overrides;
  std::int64_t steps = 1;
  double hang_timeout = 0;
};

Options parse(int argc, char** argv) {
  Options o;
  CLI::App app("Executes one rank of a plan; orrery run starts it.", "orrery-rank");
  app.add_option("--spec", o.spec)->required();
  app.add_option("--set", o.overrides)->allow_extra_args(false);
  app.add_option("--out", o.out)->required();
  app.add_option("--steps", o.steps)->check(CLI::Range(1, 1000000));
  app.add_option("--hang-timeout", o.hang_timeout);
  app.add_option("--text", o.text, "what to train on, instead of the built-in text");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) std::exit(app.exit(error));
    throw Error(fmt::format("orrery-rank: {}", error.what()));
  }
  return o;
}

// The launcher's variable for this process's rank, where there is one: known before MPI is up.
std::int64_t rank_of_environment() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}) {
    if (const char* value = std::getenv(name)) return std::atoll(value);
  }
  return 0;
}

Training training_of(const Spec& spec) {
  Training t;
  const OptimizerKind kind = spec.strategy.optimizer.kind;
  using Kind = kernels::UpdateRule::Kind;
  t.rule.kind = kind == OptimizerKind::sgd ? Kind::sgd : kind == OptimizerKind::adam ? Kind::adam : Kind::adamw;
  t.clip = spec.strategy.clip;
  t.seed = spec.seed;
  return t;
}

Text text_of(const Options& o, const Spec& spec) {
  if (!o.text.empty()) return read_text(o.text, spec.model.vocab, spec.sequence);
  return checked_text(std::string(kText), spec.model.vocab, spec.sequence);
}

std::string processor() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2) + ", 1 thread";
  }
  return "CPU, 1 thread";
}

std::string host() {
  char name[HOST_NAME_MAX + 1] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

std::string library() {
  char name[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  ORRERY_CHECK_MPI(MPI_Get_library_version(name, &length));
  const std::string text(name);
  return text.substr(0, text.find(','));
}

// A rank that fails alone must not reach MPI's own end, which waits for the others: its launcher ends them.
[[noreturn]] void give_up(ProgressRing* ring, int code, const std::string& line) {
  if (ring != nullptr) ring->fail(code, line);
  std::fputs(fmt::format("orrery-rank: {}\n", line).c_str(), stderr);
  std::_Exit(code);
}

[[noreturn]] void give_up(ProgressRing* ring, const std::exception& error) {
  const auto* bad = dynamic_cast<const Error*>(&error);
  give_up(ring, bad != nullptr ? bad->exit_code : 1, error.what());
}

void run(const Options& o, const Spec& spec, const Plan& plan, const std::string& hash, const MpiSession& session,
         ProgressRing& ring) {
  if (session.size() != plan.ranks) {
    throw Error(fmt::format("{}: {} ranks were started for a plan of {}", o.spec, session.size(), plan.ranks));
  }
  const Rank rank(spec, plan, session.rank());
  std::optional<Watch> watch;
  if (o.hang_timeout > 0) {
    watch.emplace(o.out, unfold(plan), o.steps, Patience{o.hang_timeout, {}},
                  [](const Fault& fault) { give_up(nullptr, fault.exit_code, fault.line); });
  }
  const auto transport = mpi_transport(session.world(), rank.plan);
  const Text text = text_of(o, spec);
  std::int64_t step = 0;
  ExecuteOptions options;
  options.steps = o.steps;
  options.training = training_of(spec);
  options.on_step = [&](std::int64_t s) { step = s; };
  options.watcher = [&](TaskId task, bool entered) {
    const LaneKind lane = rank.plan.op_of(task).lane;
    entered ? ring.enter(lane, static_cast<std::uint32_t>(step), task)
            : ring.leave(lane, static_cast<std::uint32_t>(step), task);
  };
  const Clock clock = clock_of(session.world());
  Execution e = execute(rank, *transport, text, options);
  RankRun result = {.plan_hash = hash,
                    .rank = session.rank(),
                    .ranks = session.size(),
                    .device = processor(),
                    .library = library(),
                    .link = "shared memory",
                    .host = host(),
                    .steps = std::move(e.steps),
                    .losses = std::move(e.losses),
                    .memory = e.memory,
                    .clock_offset = clock.offset,
                    .clock_uncertainty = clock.uncertainty};
  write_rank_run(rank_file(o.out, session.rank()), result);
  ring.finish();
}

}  // namespace
}  // namespace orrery

int main(int argc, char** argv) {
  using namespace orrery;
  std::unique_ptr<ProgressRing> ring;
  try {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    kernels::products_on_one_thread();
    const Options options = parse(argc, argv);
    const Spec spec = load_spec(options.spec, options.overrides);
    const Plan plan = make_plan(spec);
    const std::string hash = plan_hash(plan);
    const std::int64_t number = rank_of_environment();
    ring = std::make_unique<ProgressRing>(progress_file(options.out, number), number, hash);
    check_executable(spec);
    const MpiSession session;
    try {
      run(options, spec, plan, hash, session, *ring);
    } catch (const std::exception& error) {
      give_up(ring.get(), error);  // before the session ends
    }
    return 0;
  } catch (const std::exception& error) {
    give_up(ring.get(), error);
  }
}
