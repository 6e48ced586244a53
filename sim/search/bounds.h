#pragma once

#include <array>
#include <map>
#include <optional>
#include <vector>

#include "models/cost/nccl/model.h"
#include "models/plan/plan.h"
#include "sim/search/costs.h"
#include "sim/search/order.h"
#include "sim/search/space.h"

namespace orrery {

// What a simulated step takes at least, and its fullest rank holds at least.
struct Bound {
  Picoseconds time = 0;
  Bytes memory = 0;
};

// Memory of what no device makes room for: the host lacks it.
inline constexpr Bytes kNoRoom = Bytes{1} << 60;

// Lower bounds of strategies, from what they share: costs of blocks (StackCosts), and transfers at a rate that their
// group never exceeds. Time of a pipeline: for every stage s, before its first action a micro-batch has come through
// the stages before it, and after its last one a gradient goes back through them (Narayanan et al. 2021, section 2.2),
// so
//   step >= head(s) + micro-batches * work(s) + tail(s) + update
// and under 1F1B, where stage s holds at most p - s micro-batches, every p - s of them take a whole round trip:
//   step >= head(s) + rounds * trip(s) + tail(s) + update.
// Where the order of the schedule is known it is played with what every action takes at least (order.h).
// Where weights are gathered and gradients reduced again and again, what moves slows the kernels beside it: beside a
// transfer of pressure p (timing.h) they lose p / (1 + p) of their time. The two overlap no longer than the link allows
// that they share, so that for a time M something moves, and for a time B both, of pressure P together:
//   step >= work(s) + B P / (1 + P) + (M - B) p / (1 + p) - what hides where kernels do not run + update.
// Where one of a family of strategies has been simulated that differ in what runs again in backward alone, all of them
// have its forward, event by event, until the first stage s turns back:
//   step >= turn + work(s) that its order leaves after that + what comes behind.
// Of what lies on the host or on disks: what a rank's link, its node's processors and its disks have to move or update
// takes as long as that (host.cpp), and behind the last gradient come the update and what it fetches.
// Memory: states, what forwards keep where a stage has most of them alive, what the pass that follows needs beside it,
// the weights that stay gathered, and NCCL's buffers. One object for each thread; it keeps what it has worked out.
class Bounds {
 public:
  Bounds(const Space& space, const Profile& profile, StackCosts& costs);

  // Below every cell's of the layout; time is 0 where none is possible.
  Bound of(const Degrees& layout);
  // Below that, and shared by layouts that have as many tokens in a micro-batch: what context ranks exchange is left
  // out, and tokens attend to a few neighbours alone.
  Bound rough(const Degrees& layout);
  bool has_rough(const Degrees& layout) const;
  // What the layout's cells have in common; the layout of the next calls.
  void enter(const Degrees& layout);
  const Degrees& layout() const { return layout_; }
  bool possible(const Recipe& cell);
  Bound of(const Recipe& cell);
  // Below every cell's of a group.
  Picoseconds time_of_group(const Recipe& group);
  // Of that cell, and of it with features, had all its activations stayed on the device; none of that grows less as
  // more layers run again, but for may_fall().
  Picoseconds time_on_device() const { return on_device_; }
  Picoseconds on_device(const Features& features);
  // Of that cell, whatever its host lacks.
  Bytes device_memory() const { return device_memory_; }
  // Whether the memory bound of one that runs more layers again is no higher than that cell's.
  bool frees_memory() const;
  // How far below that cell's time the bound of one may lie that runs more layers again. nullopt: anywhere.
  std::optional<Picoseconds> may_fall() const;
  // Of the cell that was last asked for.
  Bound of(const Features& features);
  // The same, with the order of the schedule played; of the features that were last asked for.
  Bound played(const Features& features);
  // Whether some stage of the cell begins to run back with what runs again, which waits for no gradient.
  // Whether points that differ in what runs again do the same before their first backward op.
  bool forward_is_shared() const;
  bool runs_whole_stage_again() const;
  // What is left of the step when `stage`, the first of all, begins to run back; of these features.
  Picoseconds after_turn(const Features& features, std::int64_t stage);

 private:
  struct Stage {
    PassCost forward, backward, weight;  // of one micro-batch, all chunks; through: of the first chunk
    Picoseconds last_forward = 0;        // busy time of its last layer
    Bytes head_kept = 0;                 // of one micro-batch, by what follows the last layer
    // Bytes beyond what is kept, in the last chunk: in the forward and the backward of what follows the last layer, and
    // of that layer, each beyond what it and those before it keep.
    Bytes head_forward = 0, head_backward = 0, layer_forward = 0, layer_backward = 0;
    std::int64_t last_layers = 0;  // of the last chunk
    std::int64_t elements = 0, expert_elements = 0, eight_bit_elements = 0;
    std::int64_t first_elements = 0;  // of the first chunk
    std::int64_t layers = 0, layer_elements = 0;
    std::int64_t first_place = 0;    // virtual stage of the first chunk
    Picoseconds head = 0, tail = 0;  // of the virtual stages before, without hops
    Picoseconds update = 0;
    Bytes held = 0, prefetched = 0;  // at least; more where weights are gathered ahead
  };
  // Bytes of a rank's states in a step: over its link, from and to its node's disks; swapped: of those, what an update
  // reads and writes. update: of its node's processors, behind the last gradient, with what disks bring them; beside:
  // the longest of what may run beside all else.
  struct HostLoad {
    double down = 0, up = 0, read = 0, written = 0, swapped = 0;
    Picoseconds update = 0, beside = 0;
  };
  struct GroupTime {
    Picoseconds time = 0;
    Stage least;  // the fewest elements of any stage
  };
  struct Cut {
    std::vector<std::int64_t> layers, first;  // by virtual stage; empty: the model cannot be cut so
  };
  // Where the virtual stages of a schedule lie.
  struct Placed {
    ChunkPlacement placement = ChunkPlacement::in_turn;
    std::int64_t pipeline = 0, virtual_stages = 0;
    Schedule where;
    std::vector<std::vector<std::int64_t>> of_stage;  // [stage]: virtual stages, chunk by chunk
  };
  struct Moved {
    Picoseconds time = 0, nic = 0, nvlink = 0;  // alone; of which the links are full
    double pressure = 0;
  };
  // Ranks that hold the same weights, on the nodes that they lie on.
  struct Group {
    std::vector<int> spread;  // empty where stages lie differently, and where nothing is known of transfers
    std::int64_t channels = 0;
    std::map<CollectiveKind, double> rates;
    std::map<std::pair<CollectiveKind, Bytes>, Moved> moved;
  };
  // links: both, on a link that they share. before: the first compute; after: the last. pressure: of both at once;
  // least_pressure: of one.
  struct UnitTimes {
    Picoseconds reduce = 0, gather = 0, links = 0, before = 0, after = 0;
    double pressure = 0, least_pressure = 0;
  };

  // Of a sharding, and whether its gradients lie on the host, what blocks cost alike in.
  struct Kind {
    Sharding sharding = Sharding::none;
    bool host_gradients = false;

    auto operator<=>(const Kind&) const = default;
  };
  const StackCost* stack(std::string_view recompute, Kind kind, bool splits, bool leaves = false);
  Kind like(const Recipe& cell) const;
  Kind like(Sharding sharding) const;
  std::vector<Kind> kinds() const;
  bool reduces_units(const Recipe& cell) const;
  const Cut& cut(std::int64_t pipeline, std::int64_t virtual_stages);
  std::int64_t layers_ahead(std::int64_t pipeline, bool two);
  std::int64_t own_tokens_of(const Degrees& layout) const;
  void place();
  // Layers of a stage that are still to run again, and to leave.
  struct Counts {
    std::int64_t again = 0, away = 0;
  };
  void add_chunk(Stage& stage, std::int64_t k, Counts& counts);
  void add_weights(Stage& stage, std::int64_t place);
  void add_memory(Stage& stage, std::int64_t place, std::int64_t again, std::int64_t away);
  void add_up();
  Picoseconds update_time(std::int64_t elements);
  Bytes state_bytes(const Stage& stage) const;
  Stage fewest_elements() const;
  HostLoad host_moves(const Stage& stage, const Offload& away) const;
  Bytes moment_bytes() const;
  HostLoad host_load(const Stage& stage) const;
  Picoseconds through_link(double down, double up) const;
  Picoseconds through_host(const HostLoad& states) const;
  Bytes left(std::int64_t s) const;
  std::int64_t forwards_first(std::int64_t s) const;
  std::int64_t forwards_of_chunk(std::int64_t forwards, std::int64_t chunk) const;
  std::int64_t alive(std::int64_t s, std::int64_t chunk) const;
  Bytes in_flight(std::int64_t s) const;
  Bytes gathered(std::int64_t s) const;
  void hold(Stage& stage, std::int64_t s) const;
  Bytes fixed() const;
  bool lacks_host();
  Bytes memory();
  Bytes memory_in(const KnownOrder& order);
  Bytes memory_with(const Features& features, Group& group);
  ScheduleShape shape() const;
  bool in_usual_turns() const;
  std::vector<PhaseTimes> order_times() const;
  Bytes communicators(const Group& group);
  Bytes least_communicators();
  Group& group_of(const Strides& at, std::int64_t step, std::int64_t size);
  Group& replicas(const Strides& at);
  Picoseconds transfer(Group& group, CollectiveKind kind, Bytes bytes);
  Moved unit_of_layer(Group& group, CollectiveKind kind, Bytes bytes);
  void find_hops(const Strides& at);
  Picoseconds send_time(bool near);
  double pressure(int channels) const;
  UnitTimes unit_times(Group& group, const Stage& stage, std::int64_t gathered = 0);
  void add_ends(UnitTimes& times, Group& group, const Stage& stage, std::int64_t layer);
  static Picoseconds with_units(const UnitTimes& units, Picoseconds work, Picoseconds hides, Picoseconds idle);
  Picoseconds units_end(const UnitTimes& units, const Stage& stage, std::size_t s) const;
  Picoseconds pipeline_end(const Features& f, const Strides& at, Picoseconds& bound);
  Picoseconds replicas_end(const Features& f, Group& group, std::size_t s, Picoseconds done);
  double best_rate(Group& group, CollectiveKind kind);
  const NcclModel& model(const std::vector<int>& spread);
  std::int64_t own(const Stage& stage) const;

  const Space& space_;
  const Profile& profile_;
  StackCosts& costs_;
  Degrees layout_;
  Recipe cell_;
  std::optional<Bound> known_;   // of that cell
  const Cut* cut_ = nullptr;     // its
  std::int64_t own_tokens_ = 0;  // of a rank, where they alone stand for the sequence
  bool splits_ = false, units_ = false, woven_ = false;
  const StackCost* plain_ = nullptr;
  const StackCost* again_ = nullptr;
  Placed placed_;
  std::int64_t copies_ = 1, micro_batches_ = 1;  // of the model, and those of each copy
  const KnownOrder* order_ = nullptr;            // where that is needed to know what is alive
  KnownOrders orders_;
  std::vector<Stage> stages_;
  std::vector<VirtualStage> virtual_stages_;
  std::int64_t chunks_ = 1;                   // of a stage, of all copies
  std::vector<Bytes> chunk_kept_;             // [stage * chunks + chunk]
  std::vector<Bytes> chunk_left_;             // likewise, of activations elsewhere
  std::vector<std::int64_t> chunk_elements_;  // likewise
  std::map<std::tuple<std::string_view, Kind, bool, bool>, const StackCost*> stacks_;
  std::map<std::pair<std::int64_t, std::int64_t>, Cut> cuts_;
  std::map<std::pair<std::int64_t, bool>, std::int64_t> ahead_;
  std::map<std::tuple<std::string_view, std::int64_t, Kind>, GroupTime> groups_known_;  // of the layout
  std::map<std::int64_t, Picoseconds> updates_;                                         // by elements
  std::map<std::vector<int>, NcclModel> models_;
  std::map<std::array<std::int64_t, 7>, Group> groups_;
  std::array<std::optional<Picoseconds>, 2> sends_;  // of the layout: far, near
  std::optional<std::int64_t> tensor_channels_;      // of the layout
  std::vector<Picoseconds> boundary_hops_;           // by virtual stage: from it to the next
  std::vector<Picoseconds> hops_, works_;            // by stage: sends of one micro-batch before it, its own work
  Picoseconds least_update_ = 0;                     // of any stage
  Picoseconds beside_ = 0;                           // of what moves to and from the host
  Picoseconds on_device_ = 0;                        // the cell's bound without that
  Bytes memory_ = 0, device_memory_ = 0;             // of the cell
  std::map<std::pair<std::int64_t, std::int64_t>, Bytes> communicator_bytes_;  // by shard group and copies
};

}  // namespace orrery
