#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/engine/flow_table.h"

namespace orrery {

// Max-min fair rates after a small change: the levels of touched links are found again, from the least level to the
// greatest, and each link whose level changes passes the change on to the links that its flows cross. Links whose
// levels stay pass nothing on, so the work is that of the levels that truly change. A change at which every flow of the
// link keeps its holder is passed on by links (Fans); flows are looked at one by one where holders change.
//
// The rates are those of progressive filling, to the last unit. Filling fixes the rates below any level x from nothing
// but rates below x. So there is one table in which every rate is the least of the flow's limit and the levels of its
// links, and every level is the one at which its link fills among these rates (the certificate; one proves it by
// induction over x). The first condition holds after every step, the second for every link that is not touched, and the
// update ends when none is.
class Levels {
 public:
  explicit Levels(FlowTable& table) : table_(table) {}

  // Brings the levels of all touched links and all that depends on them up to date. Gives up once it has looked at
  // `budget` flows of links, and then returns false and leaves the links that may still be wrong touched.
  bool settle(std::size_t budget);

 private:
  struct Part {
    FlowId flow;
    std::int64_t weight;
    Rate limit;
    Rate other;  // rate of the flow if this link did not slow it
  };

  // A flow and its next holder.
  struct Switch {
    FlowId flow;
    LinkId holder;
  };

  std::uint32_t key(const FlowTable::Link& link) const;
  bool plain(const FlowTable::Link& link, Rate level) const;
  void queue(LinkId id);
  void settle_link(LinkId id);
  bool may_rise(LinkId id, Rate level);
  bool own_may_rise(LinkId id, Rate level);
  void lower(LinkId id, Rate level);
  void take_tied(LinkId id);
  void gather(LinkId id, bool held_alone);
  void gather_all(LinkId id);
  Rate fill(std::int64_t& left, std::int64_t& weight);
  bool due_later(LinkId id, Rate level);
  void apply(LinkId id, Rate level, std::int64_t left, std::int64_t weight, FlowTable::Speed below);
  LinkId next_holder(const Part& part, LinkId id, Rate level) const;
  void pass_on(LinkId id, Rate level);
  void finish_switches(LinkId id);

  FlowTable& table_;
  std::vector<std::uint64_t> queue_;  // a heap of links to settle: key in the upper half, link in the lower
  std::vector<Part> parts_;           // the flows of the link being settled
  std::vector<Switch> switches_;      // flows whose holders the settling of a link changes
  std::size_t looked_ = 0;            // number of flows of links that the current update has looked at
};

}  // namespace orrery
