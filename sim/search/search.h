#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/cost/profile.h"
#include "models/run/peers.h"
#include "sim/predict/predict.h"
#include "sim/report/report.h"
#include "sim/search/bounds.h"
#include "sim/search/space.h"

namespace orrery {

enum class SearchObjective : std::uint8_t { time, memory };

struct SearchOptions {
  SearchObjective objective = SearchObjective::time;
  Bytes most_memory = 0;  // of a GPU; 0: what it has
  std::size_t top = 5;    // strategies to show: the best, and the best found of other layouts
  bool any = false;       // end with the first that fits
  double within = 0;      // of the best: strategies whose bound is not that much better are left out
  unsigned threads = 1;
  const std::atomic<bool>* stop = nullptr;           // set: end with the best so far
  Peers* peers = nullptr;                            // processes that make the same search at the same time
  std::function<void(std::string_view)> progress{};  // a line now and then
};

// In the order of the space: layout, group, cell of the group, features; then of how many layers of a stage activations
// lie elsewhere.
using SearchPlace = std::array<std::int64_t, 5>;

// A point that was simulated.
struct Found {
  Point point;
  Bound bound;
  Report report;
  SearchPlace place{};
  bool here = true;  // simulated by this process
};

struct SearchCounts {
  std::uint64_t points = 0;        // that the spec leaves open and the rules allow
  std::uint64_t bounded = 0;       // by themselves; the others as part of a cell or a layout
  std::uint64_t without_room = 0;  // of cells and points: bounds say that they do not fit
  std::uint64_t simulated = 0;     // event by event
  std::uint64_t late = 0;          // of those, given up when the clock had passed the best
  std::uint64_t refused = 0;       // of those, what the planner does not build
  std::uint64_t did_not_fit = 0;   // of those
};

struct SearchResult {
  std::vector<Found> best;       // that fit: the optimum, then other layouts' best found, by objective
  std::optional<Found> roomier;  // the fastest of those simulated that did not fit; its report may be but in part
  SearchCounts counts;
  bool stopped = false;    // by the user, in some process
  bool proven = false;     // nothing that was not simulated can be better than the best by more than gap
  double gap = 1;          // of the best; 0 without SearchOptions::within, and what bounds leave open when stopped
  Bytes least_memory = 0;  // bound of the leanest cell, where nothing fits
  // The point whose simulated step is shorter than its bound, "" where none is: a fault of the bounds, which withdraws
  // the proof. It is looked for in every step that has room and is simulated to its end, where time is the objective.
  std::string contradiction;
  std::string reason;  // why there is no strategy at all, the first broken rule; "" where memory is what lacks
  double wall_s = 0;
};

// Best first: layouts, then groups of their cells, cells, and points come up in the order of their bounds; of cells
// that differ in how many layers run again the next only after the one before. Points are simulated, folded, event by
// event, until the next bound is above the best that fits. Points that differ only in what runs again in backward have
// one forward: what it takes in the first of them, and a bound of the rest, may rule the others out. Equal times: the
// first in the order of Space. The result, and what is simulated, do not depend on the number of threads and processes.
// Throws Error for what stops every strategy (a profile that lacks what a layout needs).
SearchResult search(const Space& space, const Profile& profile, const SearchOptions& options);

// What became of a point: its report, or that it takes longer than was asked, or why a rule or the planner refuses it.
struct Evaluation : ReportWithin {
  bool late = false;
  std::string refused{};
};
Evaluation evaluate_within(const Space& space, const Profile& profile, const Point& point, Picoseconds latest,
                           const std::atomic<bool>* stop = nullptr);  // throws Stopped (simulate.h)

// A point's report. nullopt: a rule or the planner refuses it; why, if given, says so. Throws Stopped.
std::optional<Report> evaluate(const Space& space, const Profile& profile, const Point& point,
                               std::string* why = nullptr, const std::atomic<bool>* stop = nullptr);

// Of layouts() and a place as Found has it.
Point point_at(const Space& space, const std::vector<Degrees>& layouts, const SearchPlace& place);

// Of a space without a strategy: the rule that its first point breaks, or the planner's refusal.
std::string why_nothing(const Space& space, const Profile& profile, const std::vector<Degrees>& layouts);

}  // namespace orrery
