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

// Lower bounds of one strategy: the time of a simulated step, and the memory of the fullest rank.
struct Bound {
  Picoseconds time = 0;
  Bytes memory = 0;
};

// Memory bound of a strategy for which no device makes room: the host lacks the memory.
inline constexpr Bytes kNoRoom = Bytes{1} << 60;

// Lower bounds of strategies, computed from costs that many strategies share: costs of blocks (StackCosts), and
// transfers at a rate that their group never exceeds. Time of a pipeline: before the first action of stage s a
// micro-batch has come through the stages before s, and after the last action of stage s a gradient goes back through
// them (Narayanan et al. 2021, section 2.2), so
//   step >= head(s) + micro-batches * work(s) + tail(s) + update
// and under 1F1B, where stage s holds at most p - s micro-batches, every p - s of them take a whole round trip:
//   step >= head(s) + rounds * trip(s) + tail(s) + update.
// A schedule whose order is known is played with the least time that every action takes (order.h).
// Transfers that gather weights and reduce gradients again and again slow the kernels beside them: beside a transfer of
// pressure p (timing.h) kernels lose p / (1 + p) of their time. A gather and a reduction overlap no longer than the
// link that they share allows. With M the time in which at least one transfer moves, and B the time in which both move,
// of pressure P together:
//   step >= work(s) + B P / (1 + P) + (M - B) p / (1 + p) - time hidden where no kernels run + update.
// Strategies of one family differ only in the layers that run again in backward. Once one of them has been simulated,
// all of the family are known to have the same forward, event by event, until the first stage s turns to backward:
//   step >= turn + work(s) that the order leaves after the turn + the time behind that work.
// States on the host or on disks: a step takes at least as long as a rank's link, the node's processors and the node's
// disks need for the bytes that they move or update (host.cpp); the update, and the fetches that belong to it, come
// behind the last gradient.
// Memory: states, the activations that forwards keep where a stage has most of them alive, the bytes that the next pass
// needs beside these, the weights that stay gathered, and NCCL's buffers. One object for each thread; it keeps the
// bounds that it has worked out.
class Bounds {
 public:
  Bounds(const Space& space, const Profile& profile, StackCosts& costs);

  // A bound below the bounds of all cells of the layout; time is 0 where no cell is possible.
  Bound of(const Degrees& layout);
  // A bound below of(layout), shared by all layouts with as many tokens in a micro-batch: it leaves out the exchange
  // between context ranks, and tokens attend to a few neighbours alone.
  Bound rough(const Degrees& layout);
  bool has_rough(const Degrees& layout) const;
  // Prepares the costs that all cells of the layout share; the next calls are about this layout.
  void enter(const Degrees& layout);
  const Degrees& layout() const { return layout_; }
  bool possible(const Recipe& cell);
  Bound of(const Recipe& cell);
  // A time below the bounds of all cells of the group.
  Picoseconds time_of_group(const Recipe& group);
  // Time bounds of the cell last asked for, without and with features, as if all activations stayed on the device.
  // Neither falls as more layers run again, except by may_fall().
  Picoseconds time_on_device() const { return on_device_; }
  Picoseconds on_device(const Features& features);
  // Bytes on the device of the cell last asked for, whether or not the host has room.
  Bytes device_memory() const { return device_memory_; }
  // Whether a cell that runs more layers again has a memory bound no higher than that of the cell last asked for.
  bool frees_memory() const;
  // The most by which the time bound of a cell that runs more layers again may lie below that of the cell last asked
  // for. nullopt: any amount.
  std::optional<Picoseconds> may_fall() const;
  // The bound of the cell last asked for, with these features.
  Bound of(const Features& features);
  // The same bound with the order of the schedule played; for the features last asked for.
  Bound played(const Features& features);
  // Whether points that differ only in the layers that run again do the same before their first backward op.
  bool forward_is_shared() const;
  // Whether some stage of the cell begins backward with layers that run again, which waits for no gradient.
  bool runs_whole_stage_again() const;
  // Lower bound of the time from the moment when `stage`, the first of all stages, begins backward, to the end of the
  // step, with these features.
  Picoseconds after_turn(const Features& features, std::int64_t stage);

 private:
  struct Stage {
    PassCost forward, backward, weight;  // cost of one micro-batch in all chunks; through: in the first chunk alone
    Picoseconds last_forward = 0;        // busy time of the forward of the last layer

    // Bytes that the blocks after the last layer keep of one micro-batch.
    Bytes head_kept = 0;
    // Bytes held beyond the kept activations in the last chunk: in forward and backward of the blocks after the last
    // layer, and in forward and backward of the last layer, each beyond the bytes that the block and the blocks before
    // it keep.
    Bytes head_forward = 0, head_backward = 0, layer_forward = 0, layer_backward = 0;
    std::int64_t last_layers = 0;  // layers of the last chunk
    std::int64_t elements = 0, expert_elements = 0, eight_bit_elements = 0;
    std::int64_t first_elements = 0;  // elements of the first chunk
    std::int64_t layers = 0, layer_elements = 0;
    std::int64_t first_place = 0;    // virtual stage of the first chunk
    Picoseconds head = 0, tail = 0;  // head: forward, tail: backward time of the virtual stages before, without hops
    Picoseconds update = 0;
    Bytes held = 0, prefetched = 0;  // bytes held at least; prefetched: where weights are gathered ahead
  };
  // Load of a rank's offloaded states in a step. down, up: bytes to and from the host over the rank's link; read,
  // written: bytes from and to the node's disks; swapped: the part of read and written that belongs to the update.
  // update: time of the node's processors behind the last gradient, with the disk transfers of the update; beside: the
  // longest time of any port that may work beside everything else.
  struct HostLoad {
    double down = 0, up = 0, read = 0, written = 0, swapped = 0;
    Picoseconds update = 0, beside = 0;
  };
  struct GroupTime {
    Picoseconds time = 0;
    Stage least;  // a stage with the fewest elements of any stage
  };
  struct Cut {
    // Number of layers of each virtual stage, and index of its first layer; empty: the model cannot be cut so.
    std::vector<std::int64_t> layers, first;
  };
  // The stages on which the virtual stages of a schedule lie.
  struct Placed {
    ChunkPlacement placement = ChunkPlacement::in_turn;
    std::int64_t pipeline = 0, virtual_stages = 0;
    Schedule where;
    std::vector<std::vector<std::int64_t>> of_stage;  // [stage]: virtual stages, chunk by chunk
  };
  struct Moved {
    // time: that of the transfer alone; nic, nvlink: the part in which the link would be full
    Picoseconds time = 0, nic = 0, nvlink = 0;
    double pressure = 0;
  };
  // Ranks that hold the same weights, on the nodes that they lie on.
  struct Group {
    // ranks by node; empty where stages lie differently, and where nothing is known of transfers
    std::vector<int> spread;
    std::int64_t channels = 0;
    std::map<CollectiveKind, double> rates;
    std::map<std::pair<CollectiveKind, Bytes>, Moved> moved;
  };
  // Times of the transfers of a stage in a step. reduce, gather: reductions of gradients and gathers of weights alone;
  // links: both, on a link that they share; before: the gathers before the first compute; after: the reductions after
  // the last compute. pressure: slowdown of kernels by both at once; least_pressure: by the lesser of the two.
  struct UnitTimes {
    Picoseconds reduce = 0, gather = 0, links = 0, before = 0, after = 0;
    double pressure = 0, least_pressure = 0;
  };

  // A class of shardings under which blocks cost the same: a sharding that stands for the class, and whether gradients
  // lie on the host.
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
  // Layers of a stage that are still to be marked: again, as run again in backward; away, as having activations that
  // leave the device.
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
  bool knows_order_times(const Features& f) const;
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
  std::optional<Bound> known_;   // the bound of cell_
  const Cut* cut_ = nullptr;     // the cut of the model that cell_ uses
  std::int64_t own_tokens_ = 0;  // tokens of a rank, where they alone stand for the sequence (rough())
  bool splits_ = false, units_ = false, woven_ = false;
  const StackCost* plain_ = nullptr;
  const StackCost* again_ = nullptr;
  Placed placed_;
  std::int64_t copies_ = 1, micro_batches_ = 1;  // copies of the model, and micro-batches of each copy

  // the order of the schedule, where it is needed to know which micro-batches are alive
  const KnownOrder* order_ = nullptr;
  KnownOrders orders_;
  std::vector<Stage> stages_;
  std::vector<VirtualStage> virtual_stages_;
  std::int64_t chunks_ = 1;                   // chunks of a stage, of all copies of the model
  std::vector<Bytes> chunk_kept_;             // bytes that a micro-batch keeps, [stage * chunks + chunk]
  std::vector<Bytes> chunk_left_;             // bytes of activations that leave the device, [stage * chunks + chunk]
  std::vector<std::int64_t> chunk_elements_;  // elements, [stage * chunks + chunk]
  std::map<std::tuple<std::string_view, Kind, bool, bool>, const StackCost*> stacks_;
  std::map<std::pair<std::int64_t, std::int64_t>, Cut> cuts_;
  std::map<std::pair<std::int64_t, bool>, std::int64_t> ahead_;
  // Time bounds of groups of the current layout.
  std::map<std::tuple<std::string_view, std::int64_t, Kind>, GroupTime> groups_known_;
  std::map<std::int64_t, Picoseconds> updates_;  // time of an update, by elements
  std::map<std::vector<int>, NcclModel> models_;
  std::map<std::array<std::int64_t, 7>, Group> groups_;
  std::array<std::optional<Picoseconds>, 2> sends_;  // send times of the current layout: across nodes, within a node
  std::optional<std::int64_t> tensor_channels_;      // channels of the tensor group of the current layout
  std::vector<Picoseconds> boundary_hops_;           // sends from a virtual stage to the next one
  std::vector<Picoseconds> hops_, works_;  // by stage: sends of one micro-batch in the stages before; work of the stage
  Picoseconds least_update_ = 0;           // least update time of any stage
  Picoseconds beside_ = 0;                 // time that transfers to and from the host take
  Picoseconds on_device_ = 0;              // time bound of cell_ without transfers to and from the host
  Bytes memory_ = 0, device_memory_ = 0;   // memory bounds of cell_; memory_ is kNoRoom where the host lacks memory

  // bytes of NCCL buffers, by shard group and copies of the model
  std::map<std::pair<std::int64_t, std::int64_t>, Bytes> communicator_bytes_;
};

}  // namespace orrery
