#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "models/load/open_spec.h"
#include "models/schedule/schedules.h"

namespace orrery {

struct ScheduleRow;
struct ShardingRow;
bool has_bounds(const ScheduleRow& row);  // whether the search has lower bounds for strategies with this schedule

inline constexpr std::array<std::string_view, 3> kContextKinds = {"ring", "allgather", "ulysses"};

// The names of all choices of what is offloaded: "none" (all states on the device), or states joined by "+", always
// with the optimizer first ("optimizer+gradients+parameters"), on the host or, as "optimizer:nvme", on disks. The list
// lives as long as the program.
const std::vector<std::string_view>& offload_names();

// The memory tiers in which a layer's activations may be between forward and backward. "none" stands for the device.
inline constexpr std::array<std::string_view, kTiers> kActivationPlaces = [] {
  std::array<std::string_view, kTiers> places;
  for (std::size_t i = 0; i < kTiers; ++i) places[i] = kMemoryTiers[i].in_spec;
  return places;
}();

// A value of MemoryPlan::activation_layers that means: offload the activations of as few layers as let the strategy fit
// in memory without the allocator giving segments back (cudaFree).
inline constexpr std::int64_t kAsNeeded = 0;

// The values that the search may give to one key of the strategy: any that the rules allow (open), or those listed.
template <class T>
struct Choices {
  bool open = true;
  std::vector<T> values;

  bool admits(const T& value) const {
    if (open) return true;
    for (const T& v : values) {
      if (v == value) return true;
    }
    return false;
  }
};

// Returns the divisors of n, the smallest first.
inline std::vector<std::int64_t> divisors(std::int64_t n) {
  std::vector<std::int64_t> small, large;
  for (std::int64_t i = 1; i * i <= n; ++i) {
    if (n % i != 0) continue;
    small.push_back(i);
    if (i != n / i) large.push_back(n / i);
  }
  small.insert(small.end(), large.rbegin(), large.rend());
  return small;
}

// The values that the search tries for an on/off switch (axis): on and off, as far as the spec allows both. If the
// switch makes no difference (useful: false), only one value is tried: the spec's, or `habit` (the software's usual
// one) if the spec gives none.
inline std::vector<bool> both(const Choices<bool>& axis, bool useful, bool habit) {
  if (!useful) return {axis.open ? habit : axis.values.front()};
  std::vector<bool> values;
  for (const bool v : {true, false}) {
    if (axis.admits(v)) values.push_back(v);
  }
  return values;
}

// The first part of a strategy: the parallel degrees, and the size of a micro-batch. A strategy has two more parts,
// MemoryPlan and Features; choices and costs of each part depend only on the parts before it.
struct RankLayout {
  std::int64_t tensor = 1, context = 1, pipeline = 1, data = 1, expert = 1, expert_tensor = 1;
  std::int64_t micro_batch = 1, micro_batches = 1;
  std::string_view context_kind = "ring";
  bool sequence_parallel = false, overlap_tensor = false, overlap_expert = false;

  std::int64_t replicas() const { return data * context; }
};

// The second part of a strategy: the schedule of the passes, recomputation, sharding, and the memory tiers of states
// (weights, gradients, optimizer states) and activations.
struct MemoryPlan {
  std::string_view schedule = kPlainSchedule, recompute = "none";
  std::int64_t virtual_stages = 1;
  std::int64_t recompute_layers = -1;  // number of layers that are recomputed; -1: all
  Sharding sharding = Sharding::none;
  std::int64_t shard_group = 0;
  std::string_view offload = "none";      // which states are offloaded: one of offload_names()
  std::string_view activations = "none";  // memory tier of offloaded activations: one of kActivationPlaces
  std::int64_t activation_layers = -1;    // number of layers of a stage whose activations are offloaded; -1: all

  friend bool operator==(const MemoryPlan&, const MemoryPlan&) = default;
};

// The third part of a strategy: which transfers overlap with compute, and the order of ranks, which decides over which
// links transfers go.
struct Features {
  std::string_view rank_order = "tp-cp-dp-pp";
  bool gradient_reduce = true, parameter_gather = true, pipeline = true;
};

struct Point {
  RankLayout layout;
  MemoryPlan cell;
  Features features;
};

// The search space: all strategies for `gpus` GPUs that the spec leaves open. A key that the spec gives is fixed, a key
// under `search:` takes the listed values, any other key takes all values that the rules allow:
//   tensor, context, pipeline, expert, expert_tensor, micro_batch, shard_group: every divisor
//   virtual_stages, recompute_layers: every number
//   schedule: all schedules except dapple (1f1b under another name) and schedules that overlap a forward with a
//     backward op by op, which are tried where they are listed; with one stage only 1f1b
//   sharding: all shardings of sharding.cpp; of two that make the same plan only one
//   offload: every one of offload_names() that the rules allow
//   offload_activations: on the device; other memory tiers where they are listed
//   offload_activation_layers: where the spec says nothing, as few as are needed to fit without the allocator giving
//     segments back (software.segment_us), since offloading more layers makes no step shorter (or only a little, where
//     backward is split)
//   recompute: none, selective, full, and every single part of a layer that the model has
//   rank_order: tensor ranks innermost, other dimensions in every order that makes a difference
//   overlap: on and off where the software can do both and there is something to overlap
// To add a key: add a field to one of the structs above, list its values here, and set it in spec_of().
class Space {
 public:
  // Throws Error for ranges of keys that the search does not vary, for values that a key cannot have, for a schedule
  // that the search does not support, and for a spec without a global batch.
  Space(OpenSpec open, std::int64_t gpus);

  const Spec& base() const { return base_; }
  std::int64_t gpus() const { return gpus_; }
  const std::string& path() const { return path_; }
  std::vector<RankLayout> layouts() const;
  std::vector<MemoryPlan> cells(const RankLayout& layout) const;
  // The memory plans are listed in two steps. groups(): one memory plan for each group of plans that differ only in
  // recomputation and offloaded activations, namely the one without either. cells_of(): all memory plans of a group,
  // sorted by memory tier of activations, then by recomputed parts, then by the number of recomputed layers.
  std::vector<MemoryPlan> groups(const RankLayout& layout) const;
  std::vector<MemoryPlan> cells_of(const RankLayout& layout, const MemoryPlan& group) const;
  std::vector<Features> features(const RankLayout& layout, const MemoryPlan& cell) const;
  // The orders of ranks that differ in effect with these parallel degrees. Orders that differ only in the position of a
  // dimension with a single rank have the same effect, and only one of them is listed.
  std::vector<std::string_view> rank_orders(const RankLayout& layout) const;
  // The number of strategies of a RankLayout, counted without listing them.
  std::uint64_t count(const RankLayout& layout) const;
  // The number of layers of every virtual stage in model order; empty where the model cannot be cut into that many.
  // Several threads may call it.
  const std::vector<std::int64_t>& cut(std::int64_t pipeline, std::int64_t virtual_stages) const;
  // The same of the frozen model beside the one that trains, which is cut into as many.
  const std::vector<std::int64_t>& second_cut(std::int64_t pipeline, std::int64_t virtual_stages) const;
  // The number of layers of the stage that has most; with two copies of the model (Chimera), the layers of one copy.
  std::int64_t fullest_stage(std::int64_t pipeline, const MemoryPlan& cell) const;
  bool splits() const;  // whether some schedule of the space splits backward

  // Whether some strategy of the space offloads gradients, which are then reduced layer by layer.
  bool offloads_gradients() const;
  // Whether some strategy of the space offloads anything (leaves_device), keeps all activations on the device
  // (keeps_activations), offloads activations (leaves_activations), or keeps all states on the device (keeps_states).
  bool leaves_device() const { return offloads_.size() > 1 || leaves_activations(); }
  bool keeps_activations() const { return activations_.admits("none"); }
  bool leaves_activations() const {
    return std::any_of(kActivationPlaces.begin() + 1, kActivationPlaces.end(),
                       [&](std::string_view place) { return activations_.admits(std::string(place)); });
  }
  bool keeps_states() const { return !offloads_.empty() && offloads_.front().first == "none"; }

  // The keys of a strategy that the planner supports and the spec does not give, but which the search leaves at their
  // default.
  std::vector<std::string_view> left_out() const;

  Spec spec_of(const Point& point) const;
  // The settings ("strategy.tensor=8", ...) with which load_spec() turns the spec's file into the strategy's spec:
  // first those that the spec was read with, then those of the strategy.
  std::vector<std::string> overrides_of(const Point& point) const;
  // The strategy in words, "tensor 8, pipeline 16, ...". Values that are 1, none or the software stack's default are
  // left out.
  std::string text_of(const Point& point) const;

 private:
  template <class Take>
  void each_layout(const Take& take) const;
  template <class Take>
  void each_mesh(const Take& take) const;
  template <class Take>
  void each_placement_of_experts(RankLayout layout, const Take& take) const;
  template <class Take>
  void each_overlap(RankLayout layout, const Take& take) const;
  void take_given(const Origin& origin);
  void take_range(const SearchRange& range);
  bool can_cut(const RankLayout& layout) const;
  bool can_cut_stages(std::int64_t pipeline, std::int64_t virtual_stages) const;
  void add_shardings(const RankLayout& layout, const MemoryPlan& cell, std::vector<MemoryPlan>& cells) const;
  bool builds_units(const RankLayout& layout, const ScheduleRow& schedule, const ShardingRow& row) const;
  bool shards_nothing_here(const RankLayout& layout, const MemoryPlan& cell) const;
  bool reduces_in_one_order(const RankLayout& layout, const ScheduleRow& schedule) const;
  std::vector<std::int64_t> shard_groups(const RankLayout& layout, const ShardingRow& hybrid) const;
  std::vector<std::string_view> offloads(const RankLayout& layout, const MemoryPlan& cell) const;
  std::vector<std::pair<std::string_view, std::int64_t>> activation_places(const MemoryPlan& group) const;
  void take_offload(std::string_view key);
  void find_offloads();
  void find_unlisted();
  std::vector<MemoryPlan> schedules(const RankLayout& layout) const;
  std::vector<std::string_view> recompute_kinds() const;
  std::vector<std::int64_t> recompute_numbers(std::int64_t layers) const;
  bool runs(const RankLayout& layout, const ScheduleRow& row) const;

  struct Cuts {
    std::mutex mutex;
    using Known = std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::int64_t>>;
    Known known, second;
    // Cached results of Space::reduces_in_one_order() (whether both copies of the model reach the same weights in the
    // same order in backward), by schedule, number of stages and number of micro-batches.
    std::map<std::tuple<std::string_view, std::int64_t, std::int64_t>, bool> mirrored;

    const std::vector<std::int64_t>& of(Known& list, Spec spec, std::int64_t pipeline, std::int64_t virtual_stages);
  };

  Spec base_;
  std::string path_;
  std::vector<std::string> overrides_;
  std::int64_t gpus_ = 1;
  std::unique_ptr<Cuts> cuts_ = std::make_unique<Cuts>();
  Choices<std::int64_t> tensor_, context_, pipeline_, data_, expert_, expert_tensor_, virtual_stages_, micro_batch_;
  Choices<std::int64_t> shard_group_, recompute_layers_, activation_layers_;
  Choices<std::string> schedule_, sharding_, recompute_, context_kind_, rank_order_, offload_, activations_;
  Choices<MemoryTier> optimizer_place_, gradients_place_, parameters_place_;
  std::vector<std::pair<std::string_view, Offload>> offloads_;
  Choices<bool> sequence_parallel_, gradient_reduce_, parameter_gather_, overlap_tensor_, overlap_pipeline_,
      overlap_expert_;
  bool batch_given_ = false, bucket_given_ = false, activations_unlisted_ = false, host_unlisted_ = false,
       disks_unlisted_ = false;
};

// The offloads of a strategy: as settings ("strategy.offload.optimizer=cpu", ...), and as text (", optimizer on the
// host"; "" where nothing is offloaded).
std::vector<std::string> offload_overrides(const MemoryPlan& cell);
std::string offload_text(const MemoryPlan& cell);

// Write into `offload` the memory tiers of states for a name of offload_names(), or the memory tier of activations of a
// memory plan.
void set_offload(Offload& offload, std::string_view name);
void set_activations(Offload& offload, const MemoryPlan& cell);

// Sets the context parallelism: all context ranks in a ring, or all in an all-to-all of heads (Ulysses); "mixed"
// (context_kind: {ring: 2, ulysses: 4}) leaves the spec's context parallelism as it is.
void set_context_kind(Strategy& s, std::string_view kind);

// The recomputation that a value of the key `recompute` stands for: "none", a part of a layer, or several parts ("mlp,
// norm").
Recompute recompute_of(std::string_view parts, const Software& software);

// For each dimension of parallelism, the distance in rank numbers between neighbouring ranks of one group.
struct Strides {
  std::int64_t tensor = 1, context = 1, data = 1, pipeline = 1;
};
Strides strides_of(const RankLayout& layout, std::string_view rank_order);

// The order of the dimensions that have more than one rank, such as "tpdp". Orders of ranks for which this is equal
// have the same effect.
std::string effective_order(const RankLayout& layout, std::string_view rank_order);

}  // namespace orrery
