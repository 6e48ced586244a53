#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/base/units.h"
#include "sim/engine/clocks.h"
#include "sim/engine/fair_share.h"

namespace orrery {

// How flows get on, for Clocks: lengths are what a flow has to send, in picoseconds at its full speed times kFullRate.
// They are numbers of 128 bits, so that no flow of which the picoseconds are a number of 64 bits is too long. Ends are
// rounded up to whole picoseconds, so that a flow at its end may have a little less than nothing left.
struct Sending {
  __extension__ using Length = __int128;
  using Speed = Rate;
  static constexpr bool kAdditive = true;

  static Length progress(Picoseconds time, Rate rate) { return Length{rate} * time; }
  static Picoseconds time_for(Length left, Rate rate) {
    // Most numbers have no more than 64 bits, of which division takes less time.
    if (left >> 62 == 0) return static_cast<Picoseconds>((static_cast<std::int64_t>(left) + rate - 1) / rate);
    return static_cast<Picoseconds>((left + rate - 1) / rate);
  }
  static Length after(Length left, Length progress) { return left - progress; }
};

// The ends of flows whose rates FairShare decides: a flow that a link holds is on the clock of that link (Clocks),
// whose speed is the link's level; a flow that no link holds runs by itself.
class LinkClocks {
 public:
  using Length = Sending::Length;

  // share: the links; only this object may add flows to it.
  explicit LinkClocks(FairShare& share) : share_(share) {}

  Picoseconds now() const { return clocks_.now(); }

  // Starts a flow now; see FairShare::add_flow. `name` is what next() returns when the flow has ended: a small number
  // that no running flow has.
  void start(std::uint32_t name, Length length, std::span<const LinkUse> uses, Rate limit = kFullRate);

  // Removes a flow, whether it has ended or not.
  void remove(std::uint32_t name);

  // Returns what a flow still has to send; at its end, nothing or, since ends are rounded up, a little less than
  // nothing.
  Length left(std::uint32_t name) const { return clocks_.left(name); }

  // Lets a flow have another length left.
  void set_left(std::uint32_t name, Length left);

  // Lets a flow stand for `to` equal flows instead of `from`; see FairShare::resize_flow.
  void resize(std::uint32_t name, std::int64_t from, std::int64_t to) { share_.resize_flow(flows_[name], from, to); }

  FlowId flow(std::uint32_t name) const { return flows_[name]; }
  std::uint32_t name(FlowId id) const { return names_[id]; }

  // Finds the rates of flows started, removed or resized since the last call; next() does so too.
  FairShare::Changes settle();

  // Goes on to the next time at which flows end and returns their names, in rising order; the span is valid until the
  // next call. The caller removes these flows or gives them something left. An empty span says that no flow will end.
  std::span<const std::uint32_t> next();

 private:
  void go_on(std::uint32_t name);

  FairShare& share_;
  Clocks<Sending> clocks_;            // with the links as clocks
  std::vector<FlowId> flows_;         // for each name
  std::vector<std::uint32_t> names_;  // for each flow
  std::vector<std::uint32_t> ended_;
};

}  // namespace orrery
