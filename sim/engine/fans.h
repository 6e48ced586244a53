#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/engine/rate.h"

namespace orrery {

// The flows that a link holds, counted by each other link that they cross: a change of the link's level is passed on
// once for each such link instead of once for each flow. The counts stand in a list; a hash table with open addressing
// (Knuth, The Art of Computer Programming, volume 3, section 6.4) says where in the list a link is.
class Fans {
 public:
  struct Fan {
    LinkId link = 0;
    std::uint32_t count = 0;  // number of flows, at least 1
    std::int64_t weight = 0;  // sum of the weights of these flows on `link`
  };

  std::span<const Fan> all() const { return fans_; }

  void add(LinkId link, std::int64_t weight) {
    if (2 * (fans_.size() + 1) > places_.size()) grow();
    std::uint32_t& place = places_[find(link)];
    if (place == kFree) {
      place = static_cast<std::uint32_t>(fans_.size());
      fans_.push_back({link, 0, 0});
    }
    ++fans_[place].count;
    fans_[place].weight += weight;
  }

  // Takes away what add() has added.
  void take(LinkId link, std::int64_t weight) {
    const std::size_t at = find(link);
    Fan& fan = fans_[places_[at]];
    fan.weight -= weight;
    if (--fan.count > 0) return;
    const Fan last = fans_.back();
    places_[find(last.link)] = places_[at];
    fan = last;
    fans_.pop_back();
    free(at);
  }

  // Changes the weight of a link that was added and not taken away.
  void change(LinkId link, std::int64_t more) { fans_[places_[find(link)]].weight += more; }

  void clear() {
    fans_.clear();
    places_.clear();
  }

 private:
  static constexpr std::uint32_t kFree = UINT32_MAX;
  static constexpr std::size_t kLeast = 16;

  std::size_t home(LinkId link) const { return (link * 0x9e3779b1U) >> shift_; }
  std::size_t after(std::size_t at) const { return (at + 1) & (places_.size() - 1); }

  // Returns the place in places_ of a link, or the free one that it would have.
  std::size_t find(LinkId link) const {
    std::size_t at = home(link);
    while (places_[at] != kFree && fans_[places_[at]].link != link) at = after(at);
    return at;
  }

  // Frees a place, and moves what stands behind it back to where find() looks for it.
  void free(std::size_t at) {
    for (std::size_t next = after(at); places_[next] != kFree; next = after(next)) {
      const std::size_t mask = places_.size() - 1, from = home(fans_[places_[next]].link);
      if (((next - from) & mask) < ((next - at) & mask)) continue;
      places_[at] = places_[next];
      at = next;
    }
    places_[at] = kFree;
  }

  void grow() {
    places_.assign(std::max(kLeast, 2 * places_.size()), kFree);
    shift_ = 32 - std::countr_zero(places_.size());
    for (std::uint32_t i = 0; i < fans_.size(); ++i) places_[find(fans_[i].link)] = i;
  }

  std::vector<Fan> fans_;
  std::vector<std::uint32_t> places_;  // indices in fans_; as many as a power of two, and at most half of them used
  int shift_ = 0;                      // leaves of a hash of 32 bits as many bits as number a place
};

}  // namespace orrery
