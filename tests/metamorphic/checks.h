#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "models/cost/profile.h"
#include "models/spec/spec.h"
#include "sim/report/report.h"
#include "tests/metamorphic/random_spec.h"

namespace orrery::test {

// Tolerance for schedules whose orders are searched, or filled from estimated times of their phases: they jump where a
// time changes a little. The program prints the largest deviation at its end; --strict applies the tolerance of all
// other schedules.
inline constexpr double kSearchedTolerance = 0.02;
// Orders know what stages compute and what their hosts issue, not the network beside the pipeline: tolerance where a
// step waits for other ranks' data, for neighbours' transfers, for the host, or for collectives that other transfers
// slow on the NICs, in more than this share of its time.
inline constexpr double kWaitingShare = 0.05, kWaitingTolerance = 0.15;
// Tolerance for schedules with fixed orders: transfers of two lanes may share links differently.
inline constexpr double kTolerance = 0.005;
// Tolerance where copies to the host, or activations evicted to other stages, bound a step beside its other transfers:
// the order in which these meet moves the step time further.
inline constexpr double kContestedTolerance = 0.02;

// A spec with the results of simulating it.
struct Run {
  Spec spec;
  Profile profile;
  Report report;
};

// A random spec whose relations are checked.
struct Subject {
  const Json& spec;
  const Run& run;
  Draw& draw;
};

// Simulates specs, and says where a relation does not hold.
class Checks {
 public:
  explicit Checks(bool strict) : strict_(strict) {}

  // Simulates a spec, keeping the result until forget(). Returns nullptr where the spec is refused in one line, which
  // is then in `refusal`.
  const Run* simulate(const Json& spec);
  void forget() { runs_.clear(); }

  // Reports a violated relation as a line of JSON on stdout.
  void violated(std::string_view relation, const std::string& what, const Json& spec, const Json& other = nullptr);

  // Checks that a changed spec's step takes no longer than that of `run`, within a tolerance. Returns the changed run,
  // nullptr if refused. Steps that remap memory are not compared.
  const Run* not_slower(std::string_view relation, const Json& spec, const Run& run, const Json& changed,
                        double tolerance = kTolerance);
  double slack(const Run& run) const;
  // Records by how much a searched order deviated from a relation, as a share of the value.
  void went(std::string_view relation, const Run& run, double excess);

  std::string refusal;
  std::uint64_t number = 0;  // number of the spec that is drawn, which --first takes
  std::uint64_t simulated = 0;
  std::map<std::string, std::uint64_t, std::less<>> violations;
  std::map<std::string, double, std::less<>> furthest;

 private:
  bool strict_;
  std::map<std::string, std::unique_ptr<Run>> runs_;  // by the spec's text
};

bool is_searched(const Strategy& s);  // whether the order of the schedule is searched
bool is_asynchronous(const Strategy& s);
bool is_offloaded(const Strategy& s);  // or whether layers are cut into tiles
// Whether a step waits for what orders do not know in more than kWaitingShare of its time.
bool waits(const Run& run);
// Seconds that the step before took longer or less, where a remark says that steps differ.
double unsteady_s(const Run& run);
// Seconds by which a step may exceed the one that it is compared with, though it has no more to do: transfers of the
// same bytes take longer where they meet others on shared links, and an asynchronous pipeline's steps differ from each
// other.
double meetings_s(const Run& run, const Run& longer);
// Seconds by which the transfers of `longer` take longer than their bytes would at the rates of `run`. Pipelines
// without a flush begin no step like the one before it, so that transfers may go on meeting each other on shared links
// with one number of micro-batches, and go on missing each other with another. Where parameters are sharded, the
// gathers of a second micro-batch meet the reductions of the first; where a unit is a whole model, those of as many
// micro-batches as have units in flight meet none. 0 for all other strategies.
double overlapping_meetings_s(const Run& run, const Run& longer);
// The collectives of a run by group and operation, from the largest to the smallest, as "group operation algorithm
// count": NCCL's choices, and where buckets end, do not follow sizes evenly.
std::vector<std::string> calls_of(const Run& run);
// Whether a step returns memory segments to the device and takes them again: which segments does not follow the load.
bool remaps(const Run& run);
// Bytes by which blocks may exceed what is asked for: the caching allocator does not split one whose rest is below 1
// MiB, and a layer has some eight large tensors, and three of each expert; at most 2.5 % of the peak.
Bytes unsplit_bytes(const Run& run);
bool close(double a, double b, double relative, double absolute = 1e-9);

}  // namespace orrery::test
