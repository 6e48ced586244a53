#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "benchmarks/simgrid/link_clocks.h"
#include "sim/engine/fair_share.h"

namespace orrery {

// The ends of flows, as LinkClocks finds them, with links that have much room left out. Flows that cross the same other
// links with the same weights and limits are one flow to FairShare, a bundle: it stands for as many as run, and ends
// when the first of them does. So a change of a level touches few links and few bundles.
//
// A link that is left out is idle. Max-min rates are the same without it as long as it would not fill, which holds if
// all its flows together, each one unit faster than it is, fit into it. So that rates need not be added up again
// whenever one changes, each bundle has a ceiling, and an idle link counts its flows at their ceilings. A bundle that
// has become faster than its ceiling gets a higher one, and a link that does not have room for that is looked at: it is
// woken if its flows nearly fill it.
class FlowBundles {
 public:
  using Length = LinkClocks::Length;

  // share: the links; only this object may add flows to it. A link may be left out when it has `least_parts` flows or
  // bundles.
  FlowBundles(FairShare& share, std::uint32_t link_count, std::size_t least_parts = 16)
      : share_(share), clocks_(share), links_(link_count), least_parts_(least_parts) {}

  Picoseconds now() const { return clocks_.now(); }

  // As LinkClocks::start().
  void start(std::uint32_t name, Length length, std::span<const LinkUse> uses, Rate limit = kFullRate);

  // Goes on to the next time at which flows end, removes these flows and returns their names, in rising order; the span
  // is valid until the next call. An empty span says that no flow is left.
  std::span<const std::uint32_t> next();

  std::size_t idle_links() const { return idle_count_; }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  static constexpr Rate kNoCeiling = FlowTable::kNever;

  struct Uses {
    std::array<LinkUse, FairShare::kMaxUses> uses{};
    std::uint32_t count = 0;
    Rate limit = 0;

    void add(LinkUse use) { uses[count++] = use; }
    std::span<const LinkUse> all() const { return {uses.data(), count}; }
    bool operator==(const Uses& other) const;
  };
  struct Hash {
    std::size_t operator()(const Uses& uses) const;
  };

  // a flow of a bundle
  struct Flow {
    Uses route;  // idle links too
    std::uint32_t bundle = kNone;
    Length end = 0;           // length that each flow of the bundle has sent when this one ends
    std::uint32_t runs = 0;   // number of times that a flow of this name has started or ended
    std::uint32_t joins = 0;  // number of times that it has joined a bundle
  };

  // The end of a flow, told by the length that each flow of the bundle has sent since the bundle began.
  struct End {
    Length sent = 0;
    std::uint32_t name = 0;
    std::uint32_t join = 0;
    friend bool operator>(const End& a, const End& b) { return a.sent > b.sent; }
  };

  struct Bundle {
    Uses uses;              // of one flow, without idle links
    std::int64_t size = 0;  // number of flows
    Rate ceiling = 0;       // no flow of the bundle is faster
    Length first = 0;       // what each flow has sent when LinkClocks says that the bundle ends
    std::vector<End> ends;  // a heap with the first end on top, and outdated ones
  };

  struct Member {
    std::uint32_t name = 0;
    std::uint32_t run = 0;
  };

  struct Moved {
    std::uint32_t name = 0;
    Length left = 0;
    Rate rate = 0;
  };

  struct Link {
    bool idle = false, due = false;
    bool fresh = false;           // whether the link is being left out
    std::int64_t load = 0;        // of an idle link: sum of weight times ceiling over its flows
    std::int64_t weight = 0;      // of an idle link: sum of the weights of its flows
    Rate lowest = kNoCeiling;     // of others: lower bound of the ceilings of the bundles that the link holds
    std::vector<Member> members;  // of an idle link: its flows, and outdated ones
  };

  // Names in clocks_: even ones are flows by themselves, odd ones bundles.
  static std::uint32_t alone(std::uint32_t name) { return 2 * name; }
  static std::uint32_t bundled(std::uint32_t bundle) { return 2 * bundle + 1; }

  std::uint32_t bundle_of(FlowId id) const;
  bool crosses_idle(std::span<const LinkUse> uses) const;
  Length sent(std::uint32_t bundle) const;
  bool running(const Member& member) const { return flows_[member.name].runs == member.run; }
  bool outdated(std::uint32_t bundle, const End& end) const;
  void begin(std::uint32_t name, const Uses& route);
  void join(std::uint32_t name, Length left, Rate rate);
  std::uint32_t new_bundle(const Uses& uses, Length left, Rate rate);
  void leave(std::uint32_t name);
  void dissolve(std::uint32_t bundle);
  void pop(Bundle& bundle);
  void drop_outdated(std::uint32_t bundle);
  void wait_for_first(std::uint32_t bundle, Length so_far);
  void end_bundle(std::uint32_t bundle);
  void charge(const Uses& route, Rate ceiling, std::int64_t flows);
  void note_due(LinkId id);
  void set_ceiling(std::uint32_t bundle, Rate ceiling);
  void settle();
  void watch_bundle(FlowId id);
  void watch_link(LinkId id);
  void look_at_due();
  bool stays_idle(LinkId id);
  void wake(LinkId id);
  void look_for_idle();
  void leave_out();
  void unbundle(FlowId part);

  FairShare& share_;
  LinkClocks clocks_;
  std::vector<Link> links_;
  std::size_t least_parts_;
  std::size_t idle_count_ = 0;
  std::size_t settled_ = 0;     // number of solves since links to leave out were looked for
  std::size_t candidates_ = 0;  // number of links that were found then
  std::vector<Flow> flows_;
  std::vector<Bundle> bundles_;
  std::vector<std::uint32_t> spare_;  // bundles that are no longer there
  std::unordered_map<Uses, std::uint32_t, Hash> bundles_by_uses_;
  std::vector<LinkId> due_;  // idle links whose flows may nearly fill them
  std::vector<LinkId> woken_;
  std::vector<LinkId> left_out_;  // links that are being left out
  std::vector<Moved> moved_;      // flows that have no bundle for a while
  std::vector<std::uint32_t> ended_;
};

}  // namespace orrery
