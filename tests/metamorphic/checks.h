#pragma once

#include <map>
#include <memory>
#include <string>

#include "models/cost/profile.h"
#include "models/spec/spec.h"
#include "sim/report/report.h"
#include "tests/metamorphic/random_spec.h"

namespace orrery::test {

// Orders that are searched, or filled from guessed times of their phases, jump where a time changes a little: monotony
// holds of them within this much. 2 % is the aim; --strict holds them to what all others are held to. The
// program prints how far they went at its end.
inline constexpr double kSearchedSlack = 0.15;
// Tolerance for schedules with fixed orders: transfers of two lanes may share links differently.
inline constexpr double kTolerance = 0.005;
// Tolerance where copies to the host, or activations evicted to other stages, bound a step beside its other transfers:
// the order in which these meet moves the step time further.
inline constexpr double kContestedTolerance = 0.02;

// A spec with what became of it.
struct Run {
  Spec spec;
  Profile profile;
  Report report;
};

// A random spec under its relations.
struct Subject {
  const Json& spec;
  const Run& run;
  Draw& draw;
};

// Simulates specs, and says where a relation does not hold.
class Checks {
 public:
  explicit Checks(bool strict) : strict_(strict) {}

  // nullptr where the spec is refused in a line, which `refusal` is then. Kept until forget().
  const Run* simulate(const Json& spec);
  void forget() { runs_.clear(); }

  // A line of JSON on stdout.
  void violated(std::string_view relation, const std::string& what, const Json& spec, const Json& other = nullptr);

  // Holds a changed spec's step to what a run takes: no longer but for a tolerance. The changed run, nullptr if
  // refused. Steps that remap memory are not compared.
  const Run* not_slower(std::string_view relation, const Json& spec, const Run& run, const Json& changed,
                        double tolerance = kTolerance);
  double slack(const Run& run) const;
  // Keeps how far a searched order went against a relation, a part of the value.
  void went(std::string_view relation, const Run& run, double excess);

  std::string refusal;
  std::uint64_t simulated = 0;
  std::map<std::string, std::uint64_t, std::less<>> violations;
  std::map<std::string, double, std::less<>> furthest;

 private:
  bool strict_;
  std::map<std::string, std::unique_ptr<Run>> runs_;  // by the spec's text
};

bool is_searched(const Strategy& s);  // the order of its schedule
bool is_asynchronous(const Strategy& s);
bool is_offloaded(const Strategy& s);  // or cut into tiles
// Whether a step gives segments of memory back and takes them again: which ones does not follow the load.
bool remaps(const Run& run);
bool close(double a, double b, double relative, double absolute = 1e-9);

}  // namespace orrery::test
