#include <sys/resource.h>

#include <algorithm>

#include "benchmarks/simgrid/flow_bundles.h"
#include "benchmarks/simgrid/flow_classes.h"
#include "benchmarks/simgrid/play.h"
#include "sim/engine/fair_share.h"

namespace orrery::flows {
namespace {

// Plays one chain of each class over links of equal capacity, which one flow alone fills.
class Player {
 public:
  Player(const FlowSet& set, std::span<double> ends)
      : set_(set), ends_(ends), classes_(set), bundles_(share_, classes_.links()) {
    for (std::uint32_t i = 0; i < classes_.links(); ++i) share_.add_link(kCapacity);
    for (std::uint32_t name = 0; name < classes_.count(); ++name) next_.push_back(set.chains[classes_.chain(name)]);
  }

  void play() {
    for (std::uint32_t name = 0; name < classes_.count(); ++name) start(name);
    for (auto ended = bundles_.next(); !ended.empty(); ended = bundles_.next()) {
      const double now = static_cast<double>(bundles_.now()) * 1e-12;
      for (const std::uint32_t name : ended) {
        ends_[next_[name]] = now;
        if (++next_[name] < set_.chains[classes_.chain(name) + 1]) start(name);
      }
    }
    for (std::uint32_t chain = 0; chain < set_.chain_count(); ++chain) {
      const std::uint32_t same = classes_.chain(classes_.class_of(chain));
      if (same == chain) continue;
      const auto from = ends_.begin() + set_.chains[same];
      std::copy(from, from + (set_.chains[same + 1] - set_.chains[same]), ends_.begin() + set_.chains[chain]);
    }
  }

 private:
  static constexpr std::int64_t kCapacity = 1 << 20;

  void start(std::uint32_t name) {
    const Flow& flow = set_.flows[next_[name]];
    bundles_.start(name, FlowBundles::Length{flow.bytes * kPicosecondsPerByte} * kFullRate,
                   classes_.uses(name, next_[name], kCapacity));
  }

  const FlowSet& set_;
  std::span<double> ends_;
  FlowClasses classes_;
  std::vector<std::uint32_t> next_;  // for each class, the flow of its chain that runs
  FairShare share_;
  FlowBundles bundles_;
};

}  // namespace

double processor_time() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(use.ru_utime) + seconds(use.ru_stime);
}

double play_fair_share(const FlowSet& set, std::span<double> ends) {
  const double begin = processor_time();
  Player player(set, ends);
  player.play();
  return processor_time() - begin;
}

}  // namespace orrery::flows
