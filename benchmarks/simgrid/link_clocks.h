#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "benchmarks/simgrid/moving_times.h"
#include "models/base/units.h"
#include "sim/engine/event_queue.h"
#include "sim/engine/fair_share.h"

namespace orrery {

// The ends of flows whose rates FairShare decides, with a clock of virtual time for each link, as in generalised
// processor sharing (Parekh and Gallager, A generalized processor sharing approach to flow control, 1993): the clock
// runs at the level of the link, so that it says how far each flow that the link holds has come since the clock began.
// A flow keeps the reading at which it ends. A change of a link's level touches the clock and the link's first end, not
// the flows; a flow is touched when another link holds it.
//
// Lengths and readings are what a flow has to send, in picoseconds at its full speed times kFullRate. They are numbers
// of 128 bits, so that no flow of which the picoseconds are a number of 64 bits is too long. Ends are rounded up to
// whole picoseconds and are the same as if each flow were followed by itself.
class LinkClocks {
 public:
  __extension__ using Length = __int128;

  // share: the links; only this object may add flows to it.
  LinkClocks(FairShare& share, std::uint32_t link_count) : share_(share), firsts_(link_count), clocks_(link_count) {}

  Picoseconds now() const { return queue_.now(); }

  // Starts a flow now; see FairShare::add_flow. `name` is what next() returns when the flow has ended: a small number
  // that no running flow has.
  void start(std::uint32_t name, Length length, std::span<const LinkUse> uses, Rate limit = kFullRate);

  // Removes a flow, whether it has ended or not.
  void remove(std::uint32_t name);

  // Returns what a flow still has to send; at its end, nothing or, since ends are rounded up, a little less than
  // nothing.
  Length left(std::uint32_t name) const;

  // Lets a flow have another length left.
  void set_left(std::uint32_t name, Length left);

  // Lets a flow stand for `to` equal flows instead of `from`; see FairShare::resize_flow.
  void resize(std::uint32_t name, std::int64_t from, std::int64_t to) {
    share_.resize_flow(running_[name].flow, from, to);
  }

  FlowId flow(std::uint32_t name) const { return running_[name].flow; }
  std::uint32_t name(FlowId id) const { return names_[id]; }

  // Finds the rates of flows started, removed or resized since the last call; next() does so too.
  FairShare::Holders settle();

  // Goes on to the next time at which flows end and returns their names, in rising order; the span is valid until the
  // next call. The caller removes these flows or gives them something left. An empty span says that no flow will end.
  std::span<const std::uint32_t> next();

 private:
  struct End {
    Length reading = 0;        // reading of the clock of the flow's link when the flow ends
    std::uint32_t name = 0;    // name of the flow
    std::uint32_t serial = 0;  // tells an outdated end from the one that replaced it
    friend bool operator>(const End& a, const End& b) { return a.reading > b.reading; }
  };

  struct Clock {
    Rate level = 0;
    Length reading = 0;  // reading of the clock at the time `since`
    Picoseconds since = 0;
    std::vector<End> ends;     // ends of the link's flows, a heap with the first end on top, and outdated ones
    std::size_t outdated = 0;  // number of outdated ends in `ends`
    bool dirty = false;
  };

  static constexpr std::uint32_t kLinks = UINT32_MAX;  // in queue_, above all names

  struct Running {
    FlowId flow = 0;
    std::uint32_t serial = 0;
    Length left = 0;  // for a flow that no link holds, what was left at the time `since`; for others, the reading
    Picoseconds since = 0;
    LinkId holder = FlowTable::kNobody;
    Rate rate = 0;        // rate of a flow that no link holds
    bool listed = false;  // whether the flow's end stands in the queue or on the clock of its holder
  };

  Length reading(const Clock& clock) const { return clock.reading + Length{clock.level} * (now() - clock.since); }
  void hang(std::uint32_t name);
  void list(std::uint32_t name, Length left);
  void unlist(std::uint32_t name);
  void wind(LinkId id);
  void mark(LinkId id);
  void schedule(LinkId id);
  bool outdated(const End& end) const { return running_[end.name].serial != end.serial; }
  void pop(Clock& clock);
  void wait_for_links();
  void take_links();
  void take(LinkId id);
  void end(std::uint32_t name);

  FairShare& share_;
  EventQueue queue_;             // ends of flows that no link holds, by name, and under kLinks the first end of a link
  MovingTimes firsts_;           // for each link, when the first of its flows ends
  Picoseconds waited_for_ = -1;  // the last time at which queue_ was given the first end of a link
  std::vector<Clock> clocks_;
  std::vector<Running> running_;      // for each name
  std::vector<std::uint32_t> names_;  // for each flow
  std::vector<LinkId> dirty_;         // links whose first end is to be found again
  std::vector<std::uint32_t> ended_;
};

}  // namespace orrery
