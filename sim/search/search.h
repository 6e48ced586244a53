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
  Bytes most_memory = 0;  // bytes of a GPU that may be used; 0: all of them
  std::size_t top = 5;    // strategies to show: the best, and the best found of other layouts
  bool any = false;       // end the search with the first strategy that fits

  // Strategies whose bound is not better than the best by this share are left out.
  double within = 0;
  unsigned threads = 1;
  const std::atomic<bool>* stop = nullptr;           // set: end with the best so far
  Peers* peers = nullptr;                            // processes that make the same search at the same time
  std::function<void(std::string_view)> progress{};  // a line now and then
};

// A place in the order of the space: layout, group, cell of the group, features; then the number of layers of a stage
// whose activations lie elsewhere.
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
  std::uint64_t points = 0;        // points that the spec leaves open and the rules allow
  std::uint64_t bounded = 0;       // points bounded by themselves; the others as part of a cell or a layout
  std::uint64_t without_room = 0;  // cells and points whose bounds say that they do not fit
  std::uint64_t simulated = 0;     // points simulated event by event
  std::uint64_t late = 0;          // simulations given up when the clock had passed the best
  std::uint64_t refused = 0;       // simulations of points that the planner does not build
  std::uint64_t did_not_fit = 0;   // simulated points that did not fit
};

struct SearchResult {
  std::vector<Found> best;  // strategies that fit: the optimum, then the best found of other layouts, by objective

  // The fastest simulated point that did not fit; the report may be partial.
  std::optional<Found> roomier;
  SearchCounts counts;
  bool stopped = false;  // whether the user stopped the search, in some process
  bool proven = false;   // nothing that was not simulated can be better than the best by more than gap

  // Share of the best by which a strategy that was not simulated may be better: 0 without SearchOptions::within; where
  // the search was stopped, the share that bounds leave open.
  double gap = 1;
  Bytes least_memory = 0;  // memory bound of the leanest cell, where nothing fits

  // The point whose simulated step is shorter than its bound, "" where there is none: a fault of the bounds, which
  // withdraws the proof. Every step that has room and is simulated to its end is checked, where time is the objective.
  std::string contradiction;
  std::string reason;  // why there is no strategy at all: the first broken rule; "" where only memory is short
  double wall_s = 0;
};

// Searches best first: layouts, then groups of cells, cells, and points come up in the order of their bounds; of cells
// that differ in how many layers run again, the next comes only after the one before. Points are simulated, folded,
// event by event, until the next bound is above the best that fits. Points that differ only in the layers that run
// again in backward share one forward: the time of the forward in the first of them, and a bound of the rest, may rule
// the others out. Of equal times the first in the order of Space wins. The result, and the set of simulated points, do
// not depend on the number of threads and processes. Throws Error for anything that stops every strategy (a profile
// that lacks a figure that a layout needs).
SearchResult search(const Space& space, const Profile& profile, const SearchOptions& options);

// The outcome of a point: the report, or that the step takes longer than was asked, or why a rule or the planner
// refuses the point.
struct Evaluation : ReportWithin {
  bool late = false;
  std::string refused{};
};
Evaluation evaluate_within(const Space& space, const Profile& profile, const Point& point, Picoseconds latest,
                           const std::atomic<bool>* stop = nullptr);  // throws Stopped (simulate.h)

// A point's report. nullopt: a rule or the planner refuses it; why, if given, says so. Throws Stopped.
std::optional<Report> evaluate(const Space& space, const Profile& profile, const Point& point,
                               std::string* why = nullptr, const std::atomic<bool>* stop = nullptr);

// The point at a place (Found::place), from the layouts of layouts().
Point point_at(const Space& space, const std::vector<RankLayout>& layouts, const SearchPlace& place);

// Why a space has no strategy: the rule that the first point breaks, or the reason why the planner refuses it.
std::string why_nothing(const Space& space, const Profile& profile, const std::vector<RankLayout>& layouts);

}  // namespace orrery
