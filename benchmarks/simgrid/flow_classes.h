#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "benchmarks/simgrid/flow_sets.h"
#include "sim/engine/fair_share.h"

namespace orrery::flows {

// Chains of flows that are alike: their flows have the same bytes in the same order and cross links that are alike, so
// that they have the same max-min rates and end at the same times. One chain of each class is played, each of its flows
// with the weight of all flows of the class that cross one link.
//
// Classes are found by colour refinement (Weisfeiler and Leman, 1968): the colour of a chain tells its bytes and the
// colours of its links, that of a link the colours of the chains that cross it, until no more colours appear. Each link
// of a colour is then crossed by equally many chains of each class. Colours are hashes of 64 bits: that two of n
// different ones are equal has the probability n^2 / 2^65.
class FlowClasses {
 public:
  explicit FlowClasses(const FlowSet& set);

  std::uint32_t count() const { return static_cast<std::uint32_t>(chains_.size()); }
  // Returns how many links uses() tells of: one of each colour, or all of the set if no chains are alike.
  std::uint32_t links() const { return links_; }
  // Return the chain that stands for a class, and the class of a chain.
  std::uint32_t chain(std::uint32_t name) const { return chains_[name]; }
  std::uint32_t class_of(std::uint32_t chain) const { return classes_[chain]; }

  // Returns what a flow of the chain that stands for a class takes of links, of which one flow takes `weight`. flow:
  // its index in FlowSet::flows, which may not fall from call to call for one class. The span is valid until the next
  // call.
  std::span<const LinkUse> uses(std::uint32_t name, std::uint32_t flow, std::int64_t weight);

 private:
  // Flows of a chain that follow each other over one route with the same bytes.
  struct Run {
    std::uint32_t route = 0;
    std::uint32_t end = 0;    // index of the flow behind the last of these
    std::uint32_t links = 0;  // index in run_links_ behind those of its route
    std::int64_t bytes = 0;
  };
  // One link of a run's route, and how many flows of the run's class cross it.
  struct Crossing {
    std::uint32_t original = 0, link = 0;
    std::int64_t flows = 0;
  };
  struct Crossings {
    std::array<Crossing, FairShare::kMaxUses> all{};
    std::size_t count = 0;
  };

  bool folded() const { return chains_.size() < classes_.size(); }
  void find_runs();
  std::uint64_t colour_of(std::uint32_t chain) const;
  std::size_t refine();  // colours chains, then links; returns the number of the links' colours
  void number_classes();
  void count_crossings();
  std::span<const std::uint32_t> links_of(std::uint32_t run) const {
    const std::uint32_t begin = run == 0 ? 0 : runs_[run - 1].links;
    return {&run_links_[begin], runs_[run].links - begin};
  }

  const FlowSet& set_;
  std::vector<Run> runs_;
  std::vector<std::uint32_t> run_links_;  // the links of the runs' routes, behind each other
  std::vector<std::uint32_t> first_run_;  // of each chain, and the number of runs
  std::vector<std::uint64_t> chain_colours_, link_colours_;
  std::vector<std::uint32_t> chains_, classes_;
  std::uint32_t links_ = 0;
  std::vector<Crossings> crossings_;           // of the runs of the chains that stand for classes, if folded
  std::vector<std::uint32_t> first_crossing_;  // for each class, of its first run
  std::vector<std::uint32_t> run_;             // for each class, the number of the run of the latest flow
  std::array<LinkUse, FairShare::kMaxUses> uses_{};
};

}  // namespace orrery::flows
