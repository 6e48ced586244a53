#include <array>

#include "benchmarks/simgrid/flow_bundles.h"
#include "benchmarks/simgrid/play.h"
#include "sim/engine/fair_share.h"

namespace orrery::flows {
namespace {

// Plays chains over links of equal capacity, which one flow alone fills.
class Player {
 public:
  Player(const FlowSet& set, std::span<double> ends)
      : set_(set), ends_(ends), next_(set.chains.begin(), set.chains.end() - 1), bundles_(share_, set.links) {
    for (std::uint32_t i = 0; i < set.links; ++i) share_.add_link(kCapacity);
  }

  void play() {
    for (std::uint32_t chain = 0; chain < set_.chain_count(); ++chain) start(chain);
    for (auto ended = bundles_.next(); !ended.empty(); ended = bundles_.next()) {
      const double now = static_cast<double>(bundles_.now()) * 1e-12;
      for (const std::uint32_t chain : ended) {
        ends_[next_[chain]] = now;
        if (++next_[chain] < set_.chains[chain + 1]) start(chain);
      }
    }
  }

 private:
  static constexpr std::int64_t kCapacity = 1 << 20;

  void start(std::uint32_t chain) {
    const Flow& flow = set_.flows[next_[chain]];
    std::array<LinkUse, FairShare::kMaxUses> uses;
    std::size_t count = 0;
    for (const std::uint32_t link : set_.routes[flow.route].links) uses[count++] = {link, kCapacity};
    bundles_.start(chain, FlowBundles::Length{flow.bytes * kPicosecondsPerByte} * kFullRate,
                   std::span(uses.data(), count));
  }

  const FlowSet& set_;
  std::span<double> ends_;
  std::vector<std::uint32_t> next_;  // for each chain, its flow that runs
  FairShare share_;
  FlowBundles bundles_;
};

}  // namespace

double play_fair_share(const FlowSet& set, std::span<double> ends) {
  Player player(set, ends);
  const double begin = processor_time();
  player.play();
  return processor_time() - begin;
}

}  // namespace orrery::flows
