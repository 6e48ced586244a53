#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/base/units.h"
#include "models/plan/plan.h"
#include "sim/summary/kernel_class.h"
#include "viz/timeline/column.h"

namespace orrery {

// The kind of an event, shown by the colour of its bar. Compute has a kind for each part of the step (forward,
// backward, ...) or, where a trace does not tell the part, for what the kernel does; communication has a kind for each
// form of parallelism.
enum class Kind : std::uint8_t {
  forward,
  backward,
  recompute,
  optimizer,
  tensor,
  context,
  expert,
  data,
  pipeline,
  communication,  // transfers in groups of ranks whose form of parallelism the trace does not name
  copy,
  wait,
  host,
  other,
  product,    // kernels of matrix products and convolutions
  attention,  // kernels of attention
  pointwise   // kernels bound by memory: element-wise ops, norms, sums, lookups
};
inline constexpr int kKinds = 17;
std::string_view name_of(Kind kind);
inline bool computes(Kind k) { return k <= Kind::optimizer || k >= Kind::other; }
inline bool communicates(Kind k) { return k >= Kind::tensor && k <= Kind::communication; }

// The name and the kind of events; all events with the same name and kind share one label. op_class: the class of
// kernels to which the events belong, by what they compute, in any phase of the step; `other` if it is not known.
// phase: index in Timeline::phases of the phase that the events are part of; kNoPhase: none.
inline constexpr std::int8_t kNoPhase = -1;
struct Label {
  std::string name;
  Kind kind = Kind::other;
  KernelClass op_class = KernelClass::other;
  std::int8_t phase = kNoPhase;
};

// The micro-batch, layer and model chunk of the task that an event shows, where the trace tells them; -1: unknown.
struct OpInstance {
  std::int32_t micro_batch = -1;
  std::int16_t layer = -1, chunk = 0;
};

using EventId = std::uint32_t;
inline constexpr EventId kNoEvent = 0xffffffffU;

// A row of events that do not overlap, sorted by time: the events of a lane, or those nested `level` deep inside them.
struct Track {
  std::uint32_t process = 0;
  std::string name;
  std::uint32_t level = 0;
  EventId first = 0, count = 0;
};

// Name of the counter of a generated text's cache: bytes of keys and values in use.
inline constexpr const char* kCacheCounter = "keys and values";
// A value that changes over time, constant between samples: memory by category (models/plan/plan.h), or other counters.
struct Counter {
  std::string name;
  std::vector<std::string> series;
  std::vector<Picoseconds> times;
  std::vector<double> values;  // values at all times: for each sample, one value of each series
};

// A rank, or a class of ranks that do the same, whose events the timeline shows. A coordinate is the rank's index in
// its group of one form of parallelism; -1 if unknown.
struct Process {
  std::string name;
  std::int64_t rank = -1, ranks = 1;
  bool shares_rank = false;  // whether other processes have the same rank, so that only names distinguish them
  // numbers of all ranks of a class of ranks, in ascending order; empty if they are not known
  std::vector<std::int64_t> members;
  // index of the rank in its data-, tensor-, pipeline-, context- and expert-parallel group; -1: unknown
  std::array<std::int64_t, 5> coordinates = {-1, -1, -1, -1, -1};
  std::vector<std::uint32_t> tracks;
  std::vector<Counter> counters;
  // bytes of memory of the process's GPU, and most bytes that its allocator reserved; 0: unknown
  Bytes capacity = 0, reserved = 0;
  std::int64_t order = 0;
};
inline constexpr std::array<std::string_view, 5> kCoordinates = {"data", "tensor", "pipeline", "context", "expert"};

// An arrow from the send of a message to its receive.
struct Arrow {
  std::uint32_t from_track = 0, to_track = 0;
  Picoseconds from = 0, to = 0;
};

using Details = std::vector<std::pair<std::string, std::string>>;

// The ids by which a profiler ties a kernel to the host's call that launched it (correlation) and to the host's
// operator (external); 0: none.
struct EventIds {
  enum class Role : std::uint8_t { other, kernel, launch, op, annotation };
  Role role = Role::other;
  std::uint64_t correlation = 0, external = 0;
};

// A source of further details of events: the simulated plan, or the trace file. key: the event's entry in
// Timeline::detail.
class DetailSource {
 public:
  virtual ~DetailSource() = default;
  virtual Details details(std::uint64_t key) const = 0;
  virtual EventIds ids(std::uint64_t) const { return {}; }
  // Returns the sizes of what an op, or a host's operator, works on, in the same words for all sources
  // (viz/timeline/op_shape.h); "" if they are not known.
  virtual std::string shape(std::uint64_t) const { return ""; }
};

// A trace to be drawn: columns of events, grouped by track (row of the timeline), in picoseconds from the beginning of
// the trace. Constant once built; independent of pixels and colours.
struct Timeline {
  std::string title, source;
  Picoseconds end = 0;
  std::vector<Process> processes;
  std::vector<Track> tracks;
  std::vector<Label> labels;
  MappedColumn<Picoseconds> begins, ends;  // begin and end times of the events
  MappedColumn<std::uint32_t> label;       // for each event, the index of its label in `labels`
  MappedColumn<std::uint64_t> detail;      // for each event, the key of its details, which sources[key >> 56] gives
  MappedColumn<OpInstance> places;  // for each event, its micro-batch, layer and model chunk; empty if none has any
  std::vector<Arrow> arrows;        // arrows, sorted by the time of sending
  std::vector<std::shared_ptr<DetailSource>> sources;
  // Parts of different work that a simulated step consists of: the passes of a generated text ("prefill", "decode"), or
  // the models that a step computes ("student", "teacher"). Empty: all of the step is of one kind.
  std::vector<std::string> phases;
  std::vector<std::string> pass_of_batch;  // of a generated text, the name of each micro-batch's pass: "decode 12"
  Picoseconds step_time = 0;         // duration of a simulated step, which may be shown several times; 0: not known
  std::vector<std::string> remarks;  // remarks about content of the trace file that was repaired or left out
  // The view that was saved in the trace file (viz/draw/saved_view.h), as JSON; "": none.
  std::string saved_view;

  EventId events() const { return static_cast<EventId>(begins.size()); }
  Kind kind(EventId e) const { return labels[label[e]].kind; }
  const std::string& name(EventId e) const { return labels[label[e]].name; }
  OpInstance place(EventId e) const { return places.empty() ? OpInstance{} : places[e]; }
};

std::uint32_t track_of(const Timeline& t, EventId e);
// Returns the first event of a track (a row of events) that ends after `time`; the index after the track's last event
// if none does.
EventId first_after(const Timeline& t, const Track& track, Picoseconds time);
// Returns the event of a track at a time; kNoEvent if there is none.
EventId event_at(const Timeline& t, std::uint32_t track, Picoseconds time);
Details details_of(const Timeline& t, EventId e);
EventIds ids_of(const Timeline& t, EventId e);
std::string shape_of(const Timeline& t, EventId e);
// Returns whether an event shows work of a device or of an executor's rank: neither a host's work nor waiting.
bool works(const Timeline& t, EventId e);
// Returns the value of the detail with this key; "" if there is none.
std::string detail_named(const Details& details, std::string_view key);
// Returns the events, on all ranks, of the collective or message of which an event is part, including the event itself.
// They are recognised as events of the same op and group that run when the event ends. Empty for events that do not
// communicate.
std::vector<EventId> members_of(const Timeline& t, EventId e);

}  // namespace orrery
