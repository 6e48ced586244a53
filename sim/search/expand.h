#pragma once

#include <optional>
#include <vector>

#include "sim/search/bounds.h"
#include "sim/search/node.h"
#include "sim/search/search.h"

namespace orrery {

// Splits parts of the search space, and gives each new part a lower bound: strategies with equal parallel degrees
// (RankLayout) into groups of memory plans, a group into cells (strategies with one memory plan), a cell into single
// strategies and the next cell. Drops parts that need more than the GPU's memory (room), or whose bound is above the
// limit that the best strategy so far sets. The class keeps no state; several threads may use it, each with its own
// cache.
class SearchOpener {
 public:
  // Totals that the search keeps over all parts of the search space that it has split so far.
  struct Found {
    // Number of parts of the search space for which a lower bound was computed, and of those that do not fit in memory.
    SearchCounts& counts;
    Bytes& least;  // least memory bound of all memory plans bounded so far; 0: none yet
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
  // A strategy that differs from `point` only in recomputation and offload (SearchFamily) and keeps everything on the
  // device; nullopt where there is none.
  std::optional<SearchNode> where_all_stays(const SearchNode& point) const;
  // The strategies to try after a simulation showed that `point` lacks memory: the same strategy with the activations
  // of one more layer offloaded.
  std::vector<SearchNode> with_more_away(const SearchNode& point) const;

 private:
  struct Tally {
    SearchCounts& counts;
    Bytes& least;
    std::int64_t limit;
  };

  bool hurries() const { return options_.stop != nullptr && *options_.stop; }
  std::vector<SearchNode> parts_of(BoundCache& cache, const SearchNode& node, Tally tally) const;
  // `point` with the activations of one more layer of each stage offloaded; nullopt where the activations of all layers
  // are offloaded already.
  std::optional<SearchNode> with_one_more(const SearchNode& point) const;
  // `point` with the activations of one layer of each stage offloaded: one such strategy for each memory tier that may
  // hold them.
  std::vector<SearchNode> with_activations_away(const SearchNode& point) const;
  std::int64_t layers_needed(LayoutCosts& costs, MemoryPlan cell) const;
  bool make_room(LayoutCosts& costs, const CellBounds& cell, SearchNode& point, bool plays) const;
  std::vector<SearchNode> bound_by_schedule(LayoutCosts& costs, SearchNode node, Tally tally) const;
  std::vector<SearchNode> with_offload_instead(const CellWork& cell, const SearchNode& point, Tally tally) const;
  std::vector<SearchNode> without_rough(LayoutCosts& costs, SearchNode node) const;
  std::vector<SearchNode> groups_of(LayoutCosts& costs, const SearchNode& node, Tally tally) const;
  std::vector<SearchNode> cells_of(LayoutCosts& costs, const SearchNode& node, Tally tally) const;
  std::size_t first_with_room(LayoutCosts& costs, const std::vector<MemoryPlan>& cells, std::size_t c, std::size_t end,
                              Tally tally) const;
  bool defers_offload(LayoutCosts& costs, MemoryPlan cell) const;
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
