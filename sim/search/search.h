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
  Bytes most_memory = 0;  // bytes of memory that may be used on each GPU; 0: all of them
  std::size_t top = 5;    // number of strategies to show: the best one, then the best ones with other parallel degrees
  bool any = false;       // whether the search ends with the first strategy that fits

  // The tolerance of the search, as a share of the best strategy's time or memory. A strategy whose lower bound is
  // better than the best by no more than this need not be simulated.
  double within = 0;
  unsigned threads = 1;
  // A flag that another thread may set to true; the search then ends with the best strategy found so far.
  const std::atomic<bool>* stop = nullptr;
  Peers* peers = nullptr;                            // other processes that make the same search at the same time
  std::function<void(std::string_view)> progress{};  // called now and then with a line about the progress
};

// A position in the order in which the space lists strategies: index of the RankLayout; index of the group of memory
// plans that differ only in recomputation and offloaded activations; index of the memory plan (cell) in the group;
// index of overlaps and order of ranks (Features); number of layers of a stage whose activations are offloaded.
using SearchPosition = std::array<std::int64_t, 5>;

// A strategy that was simulated, with its lower bounds and its report.
struct Found {
  Point point;
  Bound bound;
  Report report;
  SearchPosition place{};
  bool here = true;  // whether this process has simulated the strategy
};

struct SearchCounts {
  // Number of strategies that the spec leaves open and the rules allow.
  std::uint64_t points = 0;
  // Number of lower bounds on step time that were computed for groups (strategies that differ only in recomputation,
  // offloaded activations, overlaps and order of ranks), cells (strategies with the same memory plan) and single
  // strategies. Coarser bounds, one for each choice of parallel degrees, are not counted.
  std::uint64_t bounded = 0;
  // Number of cells (strategies with equal memory plan) and of single strategies whose lower bound of memory is more
  // than a GPU has.
  std::uint64_t without_room = 0;
  std::uint64_t simulated = 0;  // number of strategies simulated event by event
  // number of simulations stopped early because the step took longer than the best strategy's
  std::uint64_t late = 0;
  std::uint64_t refused = 0;      // number of strategies that a rule or the planner refused
  std::uint64_t did_not_fit = 0;  // number of simulated strategies that did not fit in memory
};

struct SearchResult {
  // Strategies that fit: the optimum, then the best found with other parallel degrees, in the order of the objective.
  std::vector<Found> best;

  // The fastest simulated strategy that did not fit in memory. Its report may be partial.
  std::optional<Found> roomier;
  SearchCounts counts;
  bool stopped = false;  // whether the user stopped the search in any of the processes that share it
  // Whether it is proven that the step time of the best strategy found is within `gap` of the least possible.
  bool proven = false;

  // The optimality gap: how much better than the best strategy found a strategy that was not simulated may still be, as
  // a fraction of the best one's time or memory. It is 0 if SearchOptions::within is 0 and the search ended by itself;
  // if the user stopped the search, it follows from the lower bounds of the strategies not yet simulated.
  double gap = 1;
  Bytes least_memory = 0;  // if no strategy fits, the least memory bound of any strategy

  // A strategy whose simulated step is shorter than its lower bound, with both times; "" where there is none. Such a
  // strategy shows that the bounds are wrong, so that nothing is proven. If time is the objective, every strategy that
  // fits in memory and is simulated to its end is checked.
  std::string contradiction;
  std::string reason;  // why there is no strategy at all: the first broken rule; "" if only memory is short
  double wall_s = 0;
};

// Finds the best strategy of a space and proves that no other is better, by branch and bound, lowest bound first. All
// strategies with one RankLayout (parallel degrees) are split into groups of memory plans that differ only in
// recomputation and offloaded activations, a group into cells (strategies with one memory plan), a cell into single
// strategies. Cells that differ only in how many layers are recomputed are looked at one after the other, those with
// fewer recomputed layers first. Strategies are simulated event by event, with one rank of each class of ranks that do
// the same, until the next bound is above the best strategy that fits. Strategies that differ only in the recomputed
// layers share one forward: its time in the first of them that is simulated, plus a bound of the rest of the step, may
// rule the others out. Of strategies with equal times the first in the order of Space wins. The result and the set of
// simulated strategies do not depend on the number of threads and processes. Throws Error for anything that stops every
// strategy, such as a profile without a figure that is needed.
SearchResult search(const Space& space, const Profile& profile, const SearchOptions& options);

// The outcome of simulating a strategy: its report or, where there is none, why: the step takes longer than the given
// limit (late), or a rule or the planner refuses the strategy (refused: the reason).
struct Evaluation : ReportWithin {
  bool late = false;
  std::string refused{};
};
Evaluation evaluate_within(const Space& space, const Profile& profile, const Point& point, Picoseconds latest,
                           // flag that the user sets to stop the simulation; Stopped is then thrown (simulate.h)
                           const std::atomic<bool>* stop = nullptr);

// A strategy's report. nullopt: a rule or the planner refuses it; `why`, if given, gets the reason. Throws Stopped.
std::optional<Report> evaluate(const Space& space, const Profile& profile, const Point& point,
                               std::string* why = nullptr, const std::atomic<bool>* stop = nullptr);

// The strategy at a position of the space (Found::place). layouts: the result of Space::layouts().
Point point_at(const Space& space, const std::vector<RankLayout>& layouts, const SearchPosition& place);

// Why a space has no strategy: the rule that the first strategy breaks, or the reason why the planner refuses it.
std::string why_nothing(const Space& space, const Profile& profile, const std::vector<RankLayout>& layouts);

}  // namespace orrery
