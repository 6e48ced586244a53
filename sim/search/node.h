#pragma once

#include <array>
#include <optional>
#include <tuple>
#include <vector>

#include "sim/parallel/wire.h"
#include "sim/predict/predict.h"
#include "sim/report/report.h"
#include "sim/search/search.h"

namespace orrery {

// The kinds of nodes of the search tree, from the largest set of strategies to the smallest.
//   rough_layout:  all strategies with one RankLayout (parallel degrees), with the fast bound rough_bound()
//   layout:        all strategies with one RankLayout, with the stricter bound layout_bound()
//   group:         strategies that differ only in recomputation, offloaded activations, overlaps and order of ranks
//   cell:          strategies with one memory plan, and with later plans of the group that recompute more layers
//   point:         one strategy
//   replayed:      one strategy, with a bound from timing the passes of its schedule in order (schedule_bound)
enum class SearchLevel : std::uint8_t { rough_layout, layout, group, cell, point, replayed };

// A node of the search tree: a set of strategies, with its position in the order in which the space lists strategies.
struct SearchNode {
  std::int64_t value = 0;  // lower bound of the objective (time or memory) for the node's strategies
  std::uint32_t layout = 0;
  std::int32_t group = -1, cell = -1, feature = -1;
  SearchLevel level = SearchLevel::layout;
  // For a cell (strategies with one memory plan): the lower bound of the group of memory plans from which the cell was
  // split.
  std::int64_t floor = 0;
  // Whether the number of layers with offloaded activations is left open: the search takes the least number with which
  // the strategy fits in memory.
  bool as_needed = false;
  Bound bound;
  MemoryPlan what;
  Features features;

  SearchPosition place() const { return {layout, group, cell, feature, what.activation_layers}; }
  auto order() const { return std::tie(value, layout, group, cell, feature, what.activation_layers); }
  bool operator>(const SearchNode& other) const { return order() > other.order(); }
};

// The key of strategies that differ only in recomputation and offload. Of strategies with one key, none has a shorter
// forward than the one that keeps everything on the device and recomputes nothing. The key holds the index of the
// RankLayout, schedule, virtual stages, sharding, shard group, index of overlaps and order of ranks (Features), and the
// memory tiers of the states if every strategy of the space offloads states.
using SearchFamily =
    std::tuple<std::uint32_t, std::string_view, std::int64_t, Sharding, std::int64_t, std::int32_t, std::string_view>;

// The key of strategies that differ only in how many layers offload their activations, and to which memory tier.
using SearchPlaces = std::tuple<std::uint32_t, std::int32_t, std::string_view, std::int64_t, std::int32_t>;
inline SearchPlaces places_of(const SearchNode& n) {
  return {n.layout, n.group, n.what.recompute, n.what.recompute_layers, n.feature};
}

// Sends a node of the search tree to other processes, or receives one (Wire). The sizes asserted here change when a
// field is added to a struct, so that no field is forgotten below.
static_assert(sizeof(MemoryPlan) == 104 && sizeof(Features) == 24 && sizeof(Bound) == 16);
inline void share(Wire& wire, SearchNode& n) {
  MemoryPlan& w = n.what;
  Features& f = n.features;
  for (std::int64_t* x : {&n.value, &n.floor, &n.bound.time, &n.bound.memory, &w.virtual_stages, &w.recompute_layers,
                          &w.shard_group, &w.activation_layers})
    wire.share(*x);
  for (std::int32_t* x : {&n.group, &n.cell, &n.feature}) wire.share(*x);
  for (std::string_view* x : {&w.schedule, &w.recompute, &w.offload, &w.activations, &f.rank_order}) wire.share(*x);
  for (bool* x : {&n.as_needed, &f.gradient_reduce, &f.parameter_gather, &f.pipeline}) wire.share(*x);
  wire.share(n.layout);
  wire.share(n.level);
  wire.share(w.sharding);
}

inline void share_all(Wire& wire, std::vector<SearchNode>& nodes) {
  std::size_t size = nodes.size();
  wire.share(size);
  nodes.resize(size);
  for (SearchNode& node : nodes) share(wire, node);
}

inline void share(Wire& wire, ForwardPart& forward) {
  for (Turn* turn : {&forward.begins, &forward.free}) {
    wire.share(turn->time);
    wire.share(turn->stage);
  }
}

// Sends to other processes, or receives from them, those figures of a report that a search uses.
inline void share_result(Wire& wire, std::optional<Report>& report) {
  bool has = report.has_value();
  wire.share(has);
  if (!has) return;
  if (!report) report.emplace();
  wire.share(report->step_time_s);
  wire.share(report->memory.fits);
  wire.share(report->memory.peak_device);
  wire.share(report->memory.device_calls);
}

}  // namespace orrery
