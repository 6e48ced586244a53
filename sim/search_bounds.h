#pragma once

#include <array>
#include <map>
#include <optional>
#include <vector>

#include "models/nccl.h"
#include "models/plan.h"
#include "sim/search_costs.h"
#include "sim/search_space.h"

namespace orrery {

// What a simulated step takes at least, and its fullest rank holds at least.
struct Bound {
  Picoseconds time = 0;
  Bytes memory = 0;
};

// Lower bounds of strategies, from what they share: costs of blocks (StackCosts), and transfers at a rate that their
// group never exceeds. Time of a pipeline: for every stage s, before its first action a micro-batch has come through
// the stages before it, and after its last one a gradient goes back through them (Narayanan et al. 2021, section 2.2),
// so
//   step >= head(s) + micro-batches * work(s) + tail(s) + update
// and under 1F1B, where stage s holds at most p - s micro-batches, every p - s of them take a whole round trip:
//   step >= head(s) + rounds * trip(s) + tail(s) + update.
// Where weights are gathered and gradients reduced again and again, what moves slows the kernels beside it:
//   step >= kernels(s) + T p / (1 + p) + update
// with T the time in which anything moves, and p the pressure of a transfer on compute (timing.h): T of the step is run
// at a rate of 1 / (1 + p) at most.
// Memory: states, and what forwards keep that are issued before the first backward, with the weights that stay
// gathered. One object for each thread; it keeps what it has worked out.
class Bounds {
 public:
  Bounds(const Space& space, const Profile& profile, StackCosts& costs);

  // Below every cell's of the layout; time is 0 where none is possible.
  Bound of(const Degrees& layout);
  // Below that, and cheaper where many context ranks make many ops: what they exchange is left out, and they attend to
  // their own tokens alone.
  Bound rough(const Degrees& layout);
  bool has_rough(const Degrees& layout) const;
  // What the layout's cells have in common; the layout of the next calls.
  void enter(const Degrees& layout);
  bool possible(const Recipe& cell);
  Bound of(const Recipe& cell);
  // Whether the memory bound of one that runs more layers again is no higher than that cell's.
  bool frees_memory() const;
  // How far below that cell's time the bound of one may lie that runs more layers again. nullopt: anywhere.
  std::optional<Picoseconds> may_fall() const;
  // Of the cell that was last asked for.
  Bound of(const Features& features);

 private:
  struct Stage {
    PassCost forward, backward, weight;  // of one micro-batch, all chunks; through: of the first chunk
    Picoseconds last_forward = 0;        // busy time of its last layer
    Bytes kept = 0, extra = 0;           // of the last chunk: what the first backward adds
    std::int64_t elements = 0, expert_elements = 0, eight_bit_elements = 0;
    std::int64_t first_elements = 0;  // of the first chunk
    std::int64_t layers = 0, layer_elements = 0;
    Picoseconds head = 0, tail = 0;  // of the stages before, without hops
    Picoseconds update = 0;
  };
  struct Cut {
    std::vector<std::int64_t> layers, first;  // by virtual stage; empty: the model cannot be cut so
  };

  const StackCost* stack(std::string_view recompute, Sharding sharding, bool splits);
  Sharding like(Sharding sharding) const;
  const Cut& cut(std::int64_t pipeline, std::int64_t virtual_stages);
  void add_chunk(Stage& stage, std::int64_t k, std::int64_t& recomputed);
  void add_up();
  Picoseconds update_time(std::int64_t elements);
  Bytes state_bytes(const Stage& stage) const;
  std::int64_t forwards_first(std::int64_t s) const;
  std::int64_t forwards_of_chunk(std::int64_t forwards, std::int64_t chunk) const;
  Bytes in_flight(std::int64_t s) const;
  Bytes gathered(std::int64_t s) const;
  Bytes memory() const;
  Picoseconds hop(const Strides& at, std::int64_t stage);
  Picoseconds transfer(const Strides& at, CollectiveKind kind, Bytes bytes);
  // links: both, on a link that they share; slowed: what compute loses to them.
  struct UnitTimes {
    Picoseconds reduce = 0, gather = 0, links = 0, slowed = 0;
  };
  struct Moved {
    Picoseconds time = 0, nic = 0, nvlink = 0;  // alone; of which the links are full
    double pressure = 0;
  };
  Moved unit_of_layer(const Strides& at, CollectiveKind kind, Bytes bytes);
  std::vector<int> spread_of(const Strides& at);
  UnitTimes unit_times(const Strides& at, const Stage& stage);
  Picoseconds pipeline_end(const Features& f, const Strides& at, Picoseconds& bound);
  Picoseconds replicas_end(const Features& f, const Strides& at, std::size_t s, Picoseconds done);
  double best_rate(const std::vector<int>& spread, CollectiveKind kind);
  const NcclModel& model(const std::vector<int>& spread);
  std::int64_t own(const Stage& stage) const;

  const Space& space_;
  const Profile& profile_;
  StackCosts& costs_;
  Degrees layout_;
  Recipe cell_;
  std::int64_t own_tokens_ = 0;  // of a rank, where they alone stand for the sequence
  bool splits_ = false, units_ = false;
  const StackCost* plain_ = nullptr;
  const StackCost* again_ = nullptr;
  std::vector<Stage> stages_;
  std::vector<Bytes> chunk_kept_;  // [stage * chunks + chunk]
  std::vector<std::int64_t> chunk_elements_;
  std::map<std::tuple<std::string_view, Sharding, bool>, const StackCost*> stacks_;
  std::map<std::pair<std::int64_t, std::int64_t>, Cut> cuts_;
  std::map<std::int64_t, Picoseconds> updates_;
  std::map<std::pair<std::vector<int>, CollectiveKind>, double> rates_;
  std::map<std::vector<int>, NcclModel> models_;
  std::map<std::tuple<std::vector<int>, CollectiveKind, Bytes>, Moved> moved_;
  std::map<std::pair<bool, Bytes>, Picoseconds> sends_;
  std::vector<Picoseconds> hops_, works_;  // by stage: sends of one micro-batch before it, its own work
  Picoseconds least_update_ = 0;           // of any stage
  Bytes memory_ = 0;                       // of the cell
};

}  // namespace orrery
