#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/units.h"
#include "models/spec/spec.h"
#include "sim/report/report.h"

namespace orrery {

// A cause of failures, with its share of all failures of a job, and whether the node it strikes needs a repair.
struct FailureKind {
  std::string_view name;
  double share = 0;
  bool breaks_node = false;
};
// The unexpected interruptions of Llama 3 405B by cause, 419 in 54 days on 2,048 nodes of eight GPUs (arXiv 2407.21783,
// table 5). Shares sum to 1.
std::span<const FailureKind> failure_kinds();
double share_of_switches();  // the share of failures of switches and cables

// A long run of one job. All times are in seconds.
struct LongRun {
  Seconds length = 0;            // how long the run lasts
  Seconds between_failures = 0;  // mean time between failures of the job; 0: it never fails
  Seconds interval = 0;          // training time between two checkpoints
  Seconds stall = 0;             // time in which a checkpoint holds training up
  Seconds writing = 0;           // time after the stall until the checkpoint can be restored from (asynchronous ones)
  Seconds detection = 0;         // time from a failure until it is noticed
  Seconds restart = 0;           // time from then to the first new step
  Seconds between_flaps = 0;     // mean time between outages of links that the job survives; 0: none
  Seconds flap = 0;              // time for which such an outage holds training up
  // Mean time between failures of switches and cables that the job survives on other planes, 0: there are none; how
  // much of the time until such a repair a step's slow-down takes, as a share.
  Seconds between_lost_planes = 0;
  double slowed_share = 0;
  // Times in which a fault of the network slows the run (cluster.network.faults.down), in their order.
  struct Fault {
    std::string what;  // such as "NIC 3 of node 17"
    Seconds from = 0, until = 0;
    double lost = 0;    // share of this time that slower steps take, or 1 where nothing moves
    bool ends = false;  // whether the job fails at the begin; it starts again when its time is over, or on other nodes
  };
  std::vector<Fault> faults;
  Seconds repair = 0;        // time until a broken node, switch or cable can be used again
  std::int64_t spares = -1;  // number of nodes that stand in for broken ones; -1: always enough
};

// The parts of one run's time, which sum to LongRun::length, and its failures.
struct RunTimes {
  Seconds training = 0;               // steps that no failure undid
  Seconds undone = 0;                 // steps that were repeated after a failure
  Seconds flaps = 0;                  // outages of links that the job survives
  Seconds slowed = 0;                 // what steps take longer while a switch or cable is broken or slow
  Seconds checkpoints = 0;            // checkpoints holding training up
  Seconds restarting = 0;             // detection and restarts
  Seconds waiting = 0;                // waiting for a node to be repaired
  std::array<double, 32> failures{};  // number of failures of each kind, in the order of failure_kinds()
  double faults = 0;                  // number of failures by faults at given times, which failures has not
  double survived = 0;  // number of switches and cables that broke while the job went on over other planes

  double all_failures() const;
};

// Plays a run once. Times between failures are drawn from an exponential distribution; a failure may also strike during
// a restart, which then begins anew. The result depends on `seed` and `number` alone.
RunTimes play(const LongRun& run, std::uint64_t seed, std::uint64_t number);

// The distribution over many plays of one run: share of the run's time that was training, and the number of failures,
// each at 5, 50 and 95 % of the plays, and the means over the plays.
struct RunQuantiles {
  std::array<double, 3> training_share{}, failures{};
  RunTimes mean;
  double mean_share = 0;
};
// Throws Error if failures are too many to be played.
RunQuantiles play_often(const LongRun& run, std::uint64_t seed, std::int64_t plays);

// The run of a spec's job for some days: failures, checkpoints and restarts as the cluster and the strategy state them
// (cluster.failures, strategy.checkpoint), or else as goodput.h estimates them. report: the prediction of a step.
// slowed_step: the time of a step while a switch of one plane is broken (without_a_switch); 0: the job does not survive
// that.
// faults: those at given times, by timed_faults_of().
LongRun long_run(const Spec& spec, const Report& report, double days, Seconds slowed_step = 0,
                 std::vector<LongRun::Fault> faults = {});

// Faults of the network that hold at one time of a run (cluster.network.faults.down). slow: where steps go on, the spec
// in which these faults always hold; its step tells Fault::lost, which is 0 here.
struct FaultOfRun {
  LongRun::Fault fault;
  std::optional<Spec> slow;
};
// Returns those that strike the job's part of the network, in the order of their begins. Where several hold at once the
// time is one of its own, so that no two times overlap, apart from those of faults that end the job, and what a stop
// lasts beyond its cause until the timer of a transfer ends.
std::vector<FaultOfRun> timed_faults_of(const Spec& spec);

// Returns the spec with a switch of one plane broken, on the leaf of the job's first node, which the job survives on
// the others; nullopt if it does not, or has one plane only.
std::optional<Spec> without_a_switch(const Spec& spec);

std::string run_length_text(const Spec& spec, const Report& report, const LongRun& run, const RunQuantiles& q,
                            std::int64_t plays);
std::string run_length_json(const Report& report, const LongRun& run, const RunQuantiles& q, std::int64_t plays);

}  // namespace orrery
