// The program orrery-rank executes one CPU rank of a job. `orrery run` starts it; mpirun or srun may start it directly.
// models/trace/trace_file.h describes its arguments and the files that it writes.
#include <signal.h>  // NOLINT(modernize-deprecated-headers): sigaction is POSIX
#include <sys/prctl.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "exec/cpu/host_device.h"
#include "exec/host/logit_rows.h"
#include "exec/host/snapshot.h"
#include "exec/mpi/clock.h"
#include "exec/mpi/server.h"
#include "exec/mpi/session.h"
#include "exec/mpi/transport.h"
#include "exec/program/rank_program.h"
#include "exec/program/text_data.h"
#include "exec/program/watch.h"
#include "kernels/cpu/gemm.h"
#include "models/generation/generation_plan.h"
#include "models/load/load_spec.h"
#include "models/plan/hash.h"
#include "models/plan/unfold.h"
#include "models/run/lost_ranks.h"

namespace orrery {
namespace {

constexpr char kName[] = "orrery-rank";

// Returns the number of this process's rank, from the MPI launcher's environment variable if there is one: the variable
// is set before MPI is initialised.
std::int64_t rank_of_environment() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}) {
    if (const char* value = std::getenv(name)) return std::atoll(value);
  }
  return 0;
}

std::string processor() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2) + ", 1 thread";
  }
  return "CPU, 1 thread";
}

std::string library() {
  char name[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  ORRERY_CHECK_MPI(MPI_Get_library_version(name, &length));
  const std::string text(name);
  return text.substr(0, text.find(','));
}

// Returns a message for the user about optimizer updates of fp16 training that were skipped; "" if none was.
std::string skipped_text(const Execution& e) {
  if (e.skipped_updates == 0) return "";
  return fmt::format("{} update{} skipped because a gradient was infinite, and the loss scale halved each time",
                     e.skipped_updates, e.skipped_updates == 1 ? " was" : "s were");
}

// The begins of the texts that the last step generated, for the report: so many that the file's header stays small.
std::map<std::int64_t, std::vector<std::int64_t>> first_texts(const Execution& e) {
  constexpr std::size_t kTexts = 16, kTokens = 64;
  std::map<std::int64_t, std::vector<std::int64_t>> texts;
  for (std::size_t i = 0; i < std::min(kTexts, e.generated.size()); ++i) {
    const std::vector<std::int64_t>& all = e.generated[i].tokens;
    texts[e.generated[i].number].assign(all.begin(),
                                        all.begin() + static_cast<std::ptrdiff_t>(std::min(kTokens, all.size())));
  }
  return texts;
}

// Executes a spec that generates text once, with the logits kept. follow: ExecuteOptions::follow.
Execution generated(const RankOptions& o, const Spec& spec, const MpiSession& session, const Training& training,
                    const std::vector<GeneratedSequence>& follow) {
  const Plan plan = make_executed_plan(spec);
  const Rank rank(spec, plan, session.rank());
  const auto transport = mpi_transport(session.world(), rank.plan);
  ExecuteOptions once;
  once.training = training;
  once.keep_logits = true;
  once.follow = follow;
  Execution made = execute(rank, *transport, text_of(o, spec, kText), once);
  transport->finish();
  return made;
}

// Compares logits where the spec quantises weights or cache: generates the texts with the model as it is, computes them
// with the quantised one, and compares the logits.
std::vector<LogitRow> compared_with_wide(const RankOptions& o, const Spec& spec, const MpiSession& session,
                                         const Training& training) {
  if (!is_quantised(spec)) return {};
  const Execution wide = generated(o, unquantised(spec), session, training, {});
  return logit_rows(wide, generated(o, spec, session, training, wide.generated));
}

void run(const RankOptions& o, const Spec& spec, const Plan& plan, const std::string& hash, const MpiSession& session,
         ProgressRing& ring) {
  if (session.size() != plan.ranks) {
    throw Error(fmt::format("{}: {} ranks were started for a plan of {}", o.spec, session.size(), plan.ranks));
  }
  const Spec own = spec_of_rank(spec, session.rank());
  const Rank rank(own, plan, session.rank());
  std::optional<Watch> watch;
  if (o.hang_timeout > 0) {
    watch.emplace(o.out, unfold(plan), o.steps, Patience{o.hang_timeout, {}},
                  [](const Fault& fault) { give_up(nullptr, kName, fault.exit_code, fault.line); });
  }
  // clock_of() is a collective call, so all ranks call it at the same point: before the transport is created.
  const Clock clock = clock_of(session.world());
  LostRanks lost(lost_file(o.out));
  const auto transport = serves_arrivals(rank) ? nullptr : mpi_transport(session.world(), rank.plan, &lost);
  const Text text = text_of(o, spec, kText);
  std::int64_t step = 0;
  ExecuteOptions options;
  options.steps = o.steps;
  options.first_step = o.first_step;
  std::vector<double> losses;  // losses of the steps that ran before this run was resumed
  const std::int64_t every = o.snapshots.empty() ? 0 : spec.strategy.parameter_server->snapshot_every;
  options.on_begin = [&](std::int64_t s, Buffers& buffers, const std::vector<double>& made) {
    if (every == 0 || s == 0 || s % every != 0) return;
    if (s == o.first_step) {
      losses = read_snapshot(o.snapshots, rank, buffers, s);
      return;
    }
    std::vector<double> all = losses;
    all.insert(all.end(), made.begin(), made.end());
    write_snapshot(o.snapshots, rank, buffers, s, every, all);
  };
  options.training = training_of(spec);
  options.on_step = [&](std::int64_t s) { step = s; };
  options.watcher = watcher_of(rank, ring, step);
  std::vector<Served> order;
  Execution e = serves_arrivals(rank) ? serve(session.world(), rank, text, options, order)
                                      : execute(rank, *transport, text, options);
  if (transport) transport->finish();
  losses.insert(losses.end(), e.losses.begin(), e.losses.end());
  RankRun result = {.plan_hash = hash,
                    .rank = session.rank(),
                    .ranks = session.size(),
                    .device = processor(),
                    .library = library(),
                    .link = "shared memory",
                    .host = host_name(),
                    .note = order.empty() ? skipped_text(e) : text_of(staleness_of(order, plan.workers())),
                    .steps = std::move(e.steps),
                    .losses = std::move(losses),
                    .memory = e.memory,
                    .clock_offset = clock.offset,
                    .clock_uncertainty = clock.uncertainty};
  result.texts = first_texts(e);
  result.logits = compared_with_wide(o, spec, session, options.training);
  write_rank_run(rank_file(o.out, session.rank()), result);
  ring.finish();
  lost.look();
  if (lost.any()) std::_Exit(0);  // MPI_Finalize would wait forever for the lost ranks
}

}  // namespace
}  // namespace orrery

int main(int argc, char** argv) {
  using namespace orrery;
  std::unique_ptr<ProgressRing> ring;
  try {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    kernels::products_on_one_thread();
    const RankOptions options = parse_rank_options(argc, argv, kName);
    const std::int64_t number = rank_of_environment();
    // The progress file is opened first, because it tells the launcher the rank of this process.
    ring = std::make_unique<ProgressRing>(progress_file(options.out, number), number);
    const Spec spec = load_spec(options.spec, options.overrides);
    const Plan plan = make_executed_plan(spec);
    const std::string hash = plan_hash(plan);
    ring->set_plan(hash);
    check_executable(spec);
    const MpiSession session;
    try {
      run(options, spec, plan, hash, session, *ring);
    } catch (const std::exception& error) {
      // Ends the process before the destructor of MpiSession would wait for other ranks.
      give_up(ring.get(), kName, error);
    }
    return 0;
  } catch (const std::exception& error) {
    give_up(ring.get(), kName, error);
  }
}
