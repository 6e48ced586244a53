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
#include "viz/timeline/column.h"

namespace orrery {

// The kind of a bar of the timeline: compute by its part in the step, communication by its group, copies, waiting,
// host.
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
  communication,  // communication of a group that the trace does not name
  copy,
  wait,
  host,
  other
};
inline constexpr int kKinds = 14;
std::string_view name_of(Kind kind);
inline bool computes(Kind k) { return k <= Kind::optimizer || k == Kind::other; }
inline bool communicates(Kind k) { return k >= Kind::tensor && k <= Kind::communication; }

// A name and kind that several events share.
struct Label {
  std::string name;
  Kind kind = Kind::other;
};

// The instance of an op that an event shows (micro-batch, layer, chunk), where the trace says so.
struct OpInstance {
  std::int32_t micro_batch = -1;
  std::int16_t layer = -1, chunk = 0;
};

using EventId = std::uint32_t;
inline constexpr EventId kNoEvent = 0xffffffffU;

// A row of events that do not overlap, sorted by time: a lane of a process, or the events nested `level` deep in the
// lane.
struct Track {
  std::uint32_t process = 0;
  std::string name;
  std::uint32_t level = 0;
  EventId first = 0, count = 0;
};

// A value over time, constant between samples: bytes by category (models/plan/plan.h), or one series of another
// counter.
struct Counter {
  std::string name;
  std::vector<std::string> series;
  std::vector<Picoseconds> times;
  std::vector<double> values;  // index (sample, series)
};

// A rank, or a class of ranks that do the same. Coordinates are -1 where they are unknown.
struct Process {
  std::string name;
  std::int64_t rank = -1, ranks = 1;
  bool shares_rank = false;  // other processes of the trace have this rank too: their names tell them apart
  std::array<std::int64_t, 5> coordinates = {-1, -1, -1, -1, -1};  // data, tensor, pipeline, context, expert
  std::vector<std::uint32_t> tracks;
  std::vector<Counter> counters;
  Bytes capacity = 0, reserved = 0;  // bytes of the process's memory; 0: unknown
  std::int64_t order = 0;
};
inline constexpr std::array<std::string_view, 5> kCoordinates = {"data", "tensor", "pipeline", "context", "expert"};

// An arrow from a send to the receive.
struct Arrow {
  std::uint32_t from_track = 0, to_track = 0;
  Picoseconds from = 0, to = 0;
};

using Details = std::vector<std::pair<std::string, std::string>>;

// A source of details of events beyond their columns: the simulated plan, or the trace file. `key`: Timeline::detail.
class DetailSource {
 public:
  virtual ~DetailSource() = default;
  virtual Details details(std::uint64_t key) const = 0;
};

// A trace to be drawn: columns of events grouped by track, in picoseconds from the beginning of the trace. Immutable
// once built; it contains no pixels and no colours.
struct Timeline {
  std::string title, source;
  Picoseconds end = 0;
  std::vector<Process> processes;
  std::vector<Track> tracks;
  std::vector<Label> labels;
  MappedColumn<Picoseconds> begins, ends;  // by event
  MappedColumn<std::uint32_t> label;       // by event: index into labels
  MappedColumn<std::uint64_t> detail;      // by event: key for sources[detail >> 56]
  MappedColumn<OpInstance> places;         // by event; empty where no event has one
  std::vector<Arrow> arrows;               // sorted by `from`
  std::vector<std::shared_ptr<DetailSource>> sources;
  std::vector<std::string> remarks;  // remarks on content that was repaired or left out
  std::string saved_view;            // the view stored in the trace file (viz/draw/saved_view.h), as JSON; "": none

  EventId events() const { return static_cast<EventId>(begins.size()); }
  Kind kind(EventId e) const { return labels[label[e]].kind; }
  const std::string& name(EventId e) const { return labels[label[e]].name; }
  OpInstance place(EventId e) const { return places.empty() ? OpInstance{} : places[e]; }
};

std::uint32_t track_of(const Timeline& t, EventId e);
// The first event of a track that ends after `time`; the track's end if none does.
EventId first_after(const Timeline& t, const Track& track, Picoseconds time);
// The event of a track at a time, or kNoEvent.
EventId event_at(const Timeline& t, std::uint32_t track, Picoseconds time);
Details details_of(const Timeline& t, EventId e);
// value of the detail with this key; "" if none
std::string detail_named(const Details& details, std::string_view key);
// All ends of the collective or message to which an event belongs: events of the same op and group that run at the
// moment the event ends, including the event itself. Empty for events that do not communicate.
std::vector<EventId> members_of(const Timeline& t, EventId e);

}  // namespace orrery
