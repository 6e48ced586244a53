#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/engine/flow_table.h"

namespace orrery {

// Max-min fair rates by progressive filling of whole regions: the flows that share links that can fill, directly or
// through other flows. The class knows no history; what it finds depends on the set of flows alone.
class Filling {
 public:
  explicit Filling(FlowTable& table) : table_(table) {}

  // Fills the regions of all touched links, and those of new flows that have not joined.
  void fill_touched(std::span<const FlowId> new_flows);

 private:
  struct Growth {
    std::int64_t left = 0;     // capacity, times kFullRate, that flows with a fixed rate leave free
    std::int64_t growing = 0;  // sum of the weights of the link's flows whose rate still grows
    std::uint64_t seen = 0;    // number of the last filling that met the link
  };

  // Returns the mark (in marks_) of flows that take part in the current filling and whose rate still grows. Flows whose
  // rate has been fixed have this mark plus one; flows that this filling has not visited have a lower mark.
  std::uint64_t growing_mark() const { return 2 * visit_; }
  bool growing(FlowId id) const { return marks_[id] == growing_mark(); }

  void fill_from(FlowId seed);
  void gather(FlowId seed);
  void see(FlowId id);
  Rate find_full_links();
  void push(Rate level, LinkId id);
  void stop_limited(Rate level);
  void stop_links(Rate level);
  void stop(FlowId id, LinkId holder, Rate rate);
  void close();

  FlowTable& table_;
  std::vector<Growth> growth_;  // for each link
  // for each flow, how far the current filling is with it: not visited, rate still growing, or rate fixed
  // (growing_mark()). The marks are kept outside the table, so that skipping a visited flow is cheap.
  std::vector<std::uint64_t> marks_;
  std::vector<FlowTable::Speed> taken_;  // for each flow of the region, the rate at which its links have counted it
  std::uint64_t visit_ = 0;              // number of the current filling, counted from the first
  std::vector<FlowId> region_flows_;     // flows whose rates are being computed: connected by links that can fill
  std::vector<LinkId> region_links_;
  // heap of the links that may fill: a lower bound of the level in the upper half, the link in the lower
  std::vector<std::uint64_t> heap_;
  std::vector<LinkId> full_;  // links that are full at the rate that the growing flows have reached
  std::size_t stopped_ = 0;   // number of flows in region_flows_ whose rates are fixed
  bool sorted_ = false;       // whether region_flows_ are in the order of their limits
  std::size_t limited_ = 0;   // number of flows, by limit, that are known to have stopped
  Rate lowest_limit_ = 0;     // lower bound of the limits of all flows whose rate still grows
};

}  // namespace orrery
