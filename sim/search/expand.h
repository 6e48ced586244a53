#pragma once

#include <optional>
#include <vector>

#include "sim/search/bounds.h"
#include "sim/search/node.h"
#include "sim/search/search.h"

namespace orrery {

// Splits parts of the search space: the strategies with equal parallel degrees (RankLayout) into groups of memory
// plans, a group into cells (strategies with one memory plan), a cell into single strategies and the next cell, each
// with a lower bound. Parts that need more memory than a GPU has (room), or whose bound is above the limit, are
// dropped. The opener keeps no state; several threads may use it, each with a cache of the thread's own.
class SearchOpener {
 public:
  // Figures of the search that are summed over all nodes that were split.
  struct Found {
    SearchCounts& counts;  // numbers of parts that got a bound, and of parts that do not fit in memory
    Bytes& least;          // least memory bound of any memory plan; 0: none is known yet
  };

  SearchOpener(const Space& space, const std::vector<RankLayout>& layouts, const SearchOptions& options, Bytes room)
      : space_(space), layouts_(layouts), options_(options), room_(room) {}

  std::int64_t value_of(const Bound& b) const {
    return options_.objective == SearchObjective::time ? b.time : b.memory;
  }
  std::vector<SearchNode> parts_of(BoundCache& cache, const SearchNode& node, std::int64_t limit, Found found) const;
  // Whether the strategy keeps on the device all states and activations that may stay there.
  bool stays(const MemoryPlan& what) const;
  SearchFamily family_of(const SearchNode& point) const;
  // A strategy with the same forward (SearchFamily) that keeps everything on the device; nullopt where there is none.
  std::optional<SearchNode> where_all_stays(const SearchNode& point) const;
  // Strategies to try after one whose simulation showed that it lacks memory: the same with activations of one layer
  // more offloaded.
  std::vector<SearchNode> with_more_away(const SearchNode& point) const;

 private:
  struct Tally {
    SearchCounts& counts;
    Bytes& least;
    std::int64_t limit;
  };

  bool hurries() const { return options_.stop != nullptr && *options_.stop; }
  std::vector<SearchNode> parts_of(BoundCache& cache, const SearchNode& node, Tally tally) const;
  // The same strategy with activations of one layer more of each stage offloaded; nullopt where the activations of all
  // layers are offloaded already.
  std::optional<SearchNode> with_one_more(const SearchNode& point) const;
  // The same strategy with activations of one layer of each stage offloaded, for each memory tier to which they may be
  // offloaded.
  std::vector<SearchNode> with_activations_away(const SearchNode& point) const;
  std::int64_t layers_needed(LayoutCosts& costs, MemoryPlan cell) const;
  bool make_room(LayoutCosts& costs, const CellBounds& cell, SearchNode& point, bool plays) const;
  std::vector<SearchNode> played(LayoutCosts& costs, SearchNode node, Tally tally) const;
  std::vector<SearchNode> without_room(const CellWork& cell, const SearchNode& point, Tally tally) const;
  std::vector<SearchNode> without_rough(LayoutCosts& costs, SearchNode node) const;
  std::vector<SearchNode> groups_of(LayoutCosts& costs, const SearchNode& node, Tally tally) const;
  std::vector<SearchNode> cells_of(LayoutCosts& costs, const SearchNode& node, Tally tally) const;
  std::size_t first_with_room(LayoutCosts& costs, const std::vector<MemoryPlan>& cells, std::size_t c, std::size_t end,
                              Tally tally) const;
  bool may_stay(LayoutCosts& costs, MemoryPlan cell) const;
  void add_cell(LayoutCosts& costs, const SearchNode& node, const std::vector<MemoryPlan>& cells, std::size_t c,
                Tally tally, std::vector<SearchNode>& result) const;
  Picoseconds least_of_points(LayoutCosts& costs, const CellBounds& cell) const;
  void add_each_number(LayoutCosts& costs, SearchNode cell, Tally tally, std::vector<SearchNode>& result) const;
  std::vector<SearchNode> points_of(LayoutCosts& costs, const SearchNode& node, Tally tally) const;

  const Space& space_;
  const std::vector<RankLayout>& layouts_;
  const SearchOptions& options_;
  Bytes room_;
};

}  // namespace orrery
