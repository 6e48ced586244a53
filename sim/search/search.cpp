#include "sim/search/search.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <queue>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "models/base/error.h"
#include "sim/engine/simulate.h"
#include "sim/parallel/workers.h"
#include "sim/print/text.h"
#include "sim/search/expand.h"
#include "sim/search/node.h"
#include "sim/search/schedule_bound.h"
#include "sim/search/seed.h"

namespace orrery {
namespace {

// How many nodes of the search tree are split at the same time (kOpened), and how many strategies are simulated at the
// same time (kSimulated). The same numbers everywhere make the search split the same nodes whatever the number of
// threads.
constexpr std::size_t kOpened = 128, kSimulated = 8;
// Before the search proper, one strategy is simulated for each of kLookedAt likely combinations of parallel degrees;
// where it does not fit, a strategy that needs less memory is tried, kTries times at most.
constexpr std::size_t kLookedAt = 16;
constexpr int kTries = 3;
// With more RankLayouts (combinations of parallel degrees) than this, it takes minutes to compute a bound for each.
// Before doing that, the search looks for better strategies near the first one.
constexpr std::size_t kManyLayouts = 4096;

using Level = SearchLevel;
using Node = SearchNode;

class Search {
 public:
  Search(const Space& space, const Profile& profile, const SearchOptions& options)
      : space_(space),
        profile_(profile),
        options_(options),
        costs_(space.base(), profile),
        layouts_(space.layouts()),
        workers_(options.threads, options.peers, options.stop),
        room_(room_of(space, profile, options)),
        opener_(space, layouts_, options, room_) {
    for (std::size_t i = 0; i < workers_.threads(); ++i)
      caches_.push_back(std::make_unique<BoundCache>(space, profile, costs_));
  }

  SearchResult run() {
    const auto start = std::chrono::steady_clock::now();
    if (options_.objective == SearchObjective::time) look_first();
    if (!enough() && layouts_.size() > kManyLayouts) look_nearby();
    if (!enough()) look_at_layouts();
    if (!enough() && options_.objective == SearchObjective::time) look_at_sites();
    for (const Node& node : possible_) queue_.push(node);
    if (!possible_.empty()) floor_ = queue_.top().value;
    while (!enough() && open()) simulate_next();
    result_.proven = !enough() && result_.contradiction.empty();
    if (result_.proven) add_others();
    if (best_ != kNothing && result_.contradiction.empty()) result_.gap = gap();
    std::sort(result_.best.begin(), result_.best.end(), [&](const Found& a, const Found& b) {
      return std::pair(value_of(a.report), a.place) < std::pair(value_of(b.report), b.place);
    });
    result_.best = best_of_each_site(std::move(result_.best), options_.top);
    take_from_peers();
    if (result_.best.empty()) result_.least_memory = least_;
    result_.stopped = stopped();
    add_variation();
    const bool none = result_.best.empty() && result_.counts.without_room + result_.counts.did_not_fit == 0;
    if (result_.proven && none) result_.reason = why_nothing(space_, profile_, layouts_);
    result_.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return std::move(result_);
  }

 private:
  static Bytes room_of(const Space& space, const Profile& profile, const SearchOptions& options) {
    const Bytes has = space.base().cluster.gpu.memory_bytes, room = has > 0 ? has : profile.memory_bytes;
    return options.most_memory > 0 ? std::min(room, options.most_memory) : room;
  }
  bool stopped() const { return workers_.stopped(); }
  bool enough() const { return stopped() || (options_.any && !result_.best.empty()); }
  std::int64_t value_of(const Report& r) const {
    return options_.objective == SearchObjective::time ? picoseconds(r.step_time_s) : r.memory.peak_device;
  }

  // How much better than the best strategy a strategy that was not simulated may still be, as a share of the best one's
  // time or memory. The bounds of dropped nodes are above limit_, those of nodes still to be split at least floor_.
  double gap() const {
    const std::int64_t least = result_.proven ? limit_ : std::min(floor_, limit_);
    return static_cast<double>(best_ - least) / static_cast<double>(best_);
  }

  // Simulates one strategy for each likely RankLayout (parallel degrees) in turn, until a strategy fits in memory.
  void look_first() {
    for (const FirstGuess& guess : first_guesses(space_, layouts_, room_)) {
      const LookedAt where{space_, layouts_, options_, guess.states};
      std::vector<Likely> tried{{{.layout = static_cast<std::uint32_t>(guess.layout), .level = Level::layout}, room_}};
      for (int tries = 0; tries < kTries && !tried.empty(); ++tries) {
        const std::vector<Likely> found = most_likely(where, workers_, caches_, tried);
        if (!found.empty()) simulate_all({found.front().node});
        if (stopped() || !result_.best.empty()) return;
        tried = leaner(found, too_large_, room_);
      }
    }
  }

  // Goes from the best strategy so far to the best of those with nearby RankLayouts, and so on, until no such move
  // makes the best better.
  void look_nearby() {
    std::set<std::uint32_t> seen;
    for (std::int64_t before = kNothing; best_ < before && !stopped();) {
      before = best_;
      const auto best = std::ranges::min_element(
          result_.best, {}, [&](const Found& found) { return std::pair(value_of(found.report), found.place); });
      std::vector<Likely> near;
      for (const Node& node : nearby(layouts_, best->point.layout)) {
        if (seen.insert(node.layout).second) near.push_back({node, room_});
      }
      try_likely(near, before);
    }
  }

  // Simulates for each of these RankLayouts (parallel degrees) the strategy that is likeliest to be the best with these
  // degrees, if the strategy's bound is below both `limit` and the best so far.
  void try_likely(std::vector<Likely> layouts, std::int64_t limit) {
    for (int tries = 0; tries < kTries && !layouts.empty() && !stopped(); ++tries) {
      const std::vector<Likely> found = most_likely({space_, layouts_, options_}, workers_, caches_, layouts);
      for (std::size_t i = 0; i < found.size() && !stopped();) {
        std::vector<Node> nodes;
        for (; i < found.size() && nodes.size() < kSimulated; ++i) {
          const bool better = found[i].node.value < std::min(limit, best_);
          if (better && simulated_.count(found[i].node.place()) == 0) nodes.push_back(found[i].node);
        }
        if (!nodes.empty()) simulate_all(nodes);
      }
      layouts = leaner(found, too_large_, room_);
    }
  }

  void look_at_layouts() {
    std::vector<Node> nodes(layouts_.size());
    std::vector<std::uint64_t> points(layouts_.size());
    const auto look = [&](std::size_t worker, std::size_t i) {
      if (workers_.hurries()) return;
      nodes[i].layout = static_cast<std::uint32_t>(i);
      const bool rough = has_rough_bound(space_.base(), layouts_[i]);
      if (rough) nodes[i].level = Level::rough_layout;
      LayoutCosts costs(*caches_[worker], layouts_[i]);
      nodes[i].bound = {.time = rough ? rough_bound(*caches_[worker], layouts_[i]) : layout_bound(costs)};
      nodes[i].value = opener_.value_of(nodes[i].bound);
      if (nodes[i].bound.time > 0) points[i] = space_.count(layouts_[i]);
    };
    const auto pass = [&](Wire& wire, std::size_t i) {
      share(wire, nodes[i]);
      wire.share(points[i]);
    };
    workers_.each(
        layouts_.size(), look, [&](std::size_t i) { return layouts_[i].pipeline; }, pass);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      result_.counts.points += points[i];
      if (points[i] > 0) possible_.push_back(nodes[i]);
    }
  }

  // Simulates one strategy for each of the combinations of parallel degrees that are likeliest to be the best; where a
  // strategy does not fit in memory, simulates one that needs less memory.
  void look_at_sites() {
    std::vector<Likely> sites;
    for (const Node& node : one_of_each_site(layouts_, possible_)) sites.push_back({node, room_});
    for (int tries = 0; tries < kTries && !sites.empty() && !enough(); ++tries) {
      std::vector<Likely> found = most_likely({space_, layouts_, options_}, workers_, caches_, sites);
      found.resize(std::min(found.size(), kLookedAt));
      for (std::size_t i = 0; i < found.size() && !enough(); i += kSimulated) {
        std::vector<Node> nodes;
        for (std::size_t k = i; k < std::min(i + kSimulated, found.size()); ++k) {
          if (simulated_.count(found[k].node.place()) == 0) nodes.push_back(found[k].node);
        }
        simulate_all(nodes);
      }
      sites = leaner(found, too_large_, room_);
    }
  }

  // Splits nodes of the search tree that may hold a better strategy than the best, several at a time and lowest bound
  // first, until there are as many single strategies as are simulated at a time. Returns whether there are any. Parts
  // of the nodes that were split last may have lower bounds than these strategies.
  bool open() {
    std::vector<Node> points;
    while (may_win() && points.size() < kSimulated && !stopped()) {
      floor_ = queue_.top().value;
      for (const Node& point : points) floor_ = std::min(floor_, point.value);
      std::vector<Node> nodes;
      while (may_win() && points.size() < kSimulated && nodes.size() < kOpened) {
        (queue_.top().level == Level::replayed ? points : nodes).push_back(queue_.top());
        queue_.pop();
      }
      open_all(nodes);
    }
    for (const Node& point : points) queue_.push(point);
    return !points.empty() && !stopped();
  }

  bool may_win() const { return !queue_.empty() && queue_.top().value <= limit_; }

  void open_all(const std::vector<Node>& nodes) {
    std::vector<std::vector<Node>> parts(nodes.size());
    std::vector<SearchCounts> counts(nodes.size());
    std::vector<Bytes> least(nodes.size(), 0);
    const auto open_one = [&](std::size_t worker, std::size_t i) {
      if (!workers_.hurries()) parts[i] = opener_.parts_of(*caches_[worker], nodes[i], limit_, {counts[i], least[i]});
    };
    const auto pass = [&](Wire& wire, std::size_t i) {
      share_all(wire, parts[i]);
      for (std::uint64_t* n : {&counts[i].bounded, &counts[i].without_room}) wire.share(*n);
      wire.share(least[i]);
    };
    workers_.each(
        nodes.size(), open_one, [&](std::size_t i) { return layouts_[nodes[i].layout].pipeline; }, pass);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      for (const Node& node : parts[i]) queue_.push(node);
      result_.counts.bounded += counts[i].bounded;
      result_.counts.without_room += counts[i].without_room;
      if (least[i] > 0 && (least_ == 0 || least[i] < least_)) least_ = least[i];
    }
    progress();
  }

  // Simulates the strategies with the lowest bounds. Of several strategies that share a forward (SearchFamily), one is
  // simulated before the others if the forward's time is not known yet, since that time may rule others out. So is one
  // of several strategies that differ only in offloaded activations (SearchPlaces).
  void simulate_next() {
    std::vector<Node> nodes, later;
    std::set<SearchFamily> here;
    std::set<SearchPlaces> places;
    while (!queue_.empty() && nodes.size() < kSimulated && later.size() < kOpened &&
           queue_.top().level == Level::replayed && queue_.top().value <= limit_) {
      const Node node = queue_.top();
      queue_.pop();
      if (simulated_.count(node.place()) != 0 || need_not_leave(node)) continue;
      const auto known = forwards_.find(opener_.family_of(node));
      if (known != forwards_.end() && is_too_slow(node, known->second)) continue;
      const bool first = known != forwards_.end() || here.insert(opener_.family_of(node)).second;
      if (!first || !places.insert(places_of(node)).second) {
        later.push_back(node);
        continue;
      }
      nodes.push_back(known != forwards_.end() ? node : with_forward_of(node));
      if (nodes.back().place() != node.place()) later.push_back(node);
    }
    simulate_all(nodes);
    for (const Node& node : later) queue_.push(node);
  }

  // The strategy to simulate first if `node` is to be simulated but its forward's time, which it shares with others
  // (SearchFamily), is unknown: the one that keeps everything on the device if that is not simulated yet, else `node`.
  Node with_forward_of(const Node& node) const {
    if (opener_.stays(node.what) || options_.objective != SearchObjective::time) return node;
    const auto other = opener_.where_all_stays(node);
    return other && simulated_.count(other->place()) == 0 ? *other : node;
  }

  // Whether a strategy with offloaded activations need not be simulated: the same strategy with fewer of them offloaded
  // was too slow, or fits without the allocator giving segments back. More copies beside compute make no step shorter.
  bool need_not_leave(const Node& n) const {
    return n.what.activations != "none" && options_.objective == SearchObjective::time &&
           settled_.count(places_of(n)) != 0;
  }

  bool is_too_slow(const Node& node, const ForwardPart& known) {
    if (options_.objective != SearchObjective::time || !space_.keeps_activations()) return false;
    if (!forward_is_shared(space_.base(), node.what)) return false;
    LayoutCosts costs(*caches_.front(), layouts_[node.layout]);
    const CellBounds cell = cell_bounds(costs, node.what);
    const Turn& turn = runs_whole_stage_again(cell.work) ? known.free : known.begins;
    return turn.time + after_turn(costs, cell, node.features, turn.stage) > limit_;
  }

  Point point_of(const Node& node) const { return {layouts_[node.layout], node.what, node.features}; }

  // A limit for simulating a step: the simulation may stop at this simulated time, since the strategy can then be
  // neither the best of all nor, where that is to be shown, the best with these parallel degrees.
  Picoseconds latest_of(const Node& node) const {
    if (options_.objective != SearchObjective::time) return kNothing;
    const auto own = best_of_.find(site_of(layouts_[node.layout]));
    std::vector<std::int64_t> values;
    for (const auto& [layout, value] : best_of_) values.push_back(value);
    std::int64_t latest = own == best_of_.end() ? kNothing : own->second;
    if (values.size() >= options_.top) {
      const auto last = values.begin() + static_cast<std::ptrdiff_t>(options_.top) - 1;
      std::nth_element(values.begin(), last, values.end());
      latest = std::min(latest, *last);
    }
    return std::max(latest, best_);
  }

  void simulate_all(const std::vector<Node>& nodes) {
    std::vector<Evaluation> found(nodes.size());
    // done: some process has simulated the strategy (it has not, if the search was stopped); here: this process has
    // simulated it.
    std::vector<char> done(nodes.size()), here(nodes.size());
    std::vector<Picoseconds> latest;
    latest.reserve(nodes.size());
    for (const Node& node : nodes) latest.push_back(latest_of(node));
    const auto simulate_one = [&](std::size_t, std::size_t i) {
      if (workers_.hurries()) return;
      try {
        found[i] = evaluate_within(space_, profile_, point_of(nodes[i]), latest[i], options_.stop);
        done[i] = here[i] = 1;
      } catch (const Stopped&) {  // nothing to note: the strategy is left unsimulated
      }
    };
    const auto pass = [&](Wire& wire, std::size_t i) {
      wire.share(done[i]);
      wire.share(found[i].late);
      share(wire, found[i].forward);
      share_result(wire, found[i].report);
    };
    workers_.each(
        nodes.size(), simulate_one, [&](std::size_t i) { return layouts_[nodes[i].layout].micro_batches; }, pass);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (done[i] != 0) take(nodes[i], found[i], here[i] != 0);
    }
    progress();
  }

  // Records the result of a simulated strategy. here: this process simulated the strategy and has the complete report.
  void take(const Node& node, Evaluation& evaluation, bool here) {
    SearchCounts& counts = result_.counts;
    ++counts.simulated;
    simulated_.insert(node.place());
    if (opener_.stays(node.what) && (evaluation.report || evaluation.late))
      forwards_.try_emplace(opener_.family_of(node), evaluation.forward);
    if (evaluation.late) settled_.insert(places_of(node));
    if (!evaluation.report) {
      ++(evaluation.late ? counts.late : counts.refused);
      return;
    }
    Found found{point_of(node), node.bound, std::move(*evaluation.report), node.place(), here};
    const MemoryReport& memory = found.report.memory;
    // More offload is also tried where the allocator calls cudaMalloc and cudaFree in every step: these calls may take
    // longer than the copies to the host that would make them unnecessary.
    const bool short_of = memory.peak_device > room_, again = memory.device_calls > 0;
    if (short_of || again) {
      for (const Node& leaner : opener_.with_more_away(node)) queue_.push(leaner);
    }
    if (!memory.fits || short_of) {
      ++counts.did_not_fit;
      too_large_[node.place()] = memory.peak_device;
      if (!result_.roomier || found.report.step_time_s < result_.roomier->report.step_time_s)
        result_.roomier = std::move(found);
      return;
    }
    if (!again) settled_.insert(places_of(node));
    const std::int64_t value = value_of(found.report);
    // The bound is checked only for a strategy that fits in memory: for others the function has returned above.
    if (options_.objective == SearchObjective::time && found.bound.time > value) contradict(found);
    best_ = std::min(best_, value);
    limit_ = best_ - static_cast<std::int64_t>(options_.within * static_cast<double>(best_));
    const auto [own, fresh] = best_of_.try_emplace(site_of(layouts_[node.layout]), value);
    own->second = std::min(own->second, value);
    result_.best.push_back(std::move(found));
  }

  void contradict(const Found& found) {
    result_.proven = false;
    const std::string bound = time_text(seconds(found.bound.time)), simulated = time_text(found.report.step_time_s);
    result_.contradiction = fmt::format("{}: bound {}, simulated {}", space_.text_of(found.point), bound, simulated);
  }

  // Simulates the strategies of lowest bound with other parallel degrees (RankLayout) than the best, to show how the
  // best compares.
  void add_others() {
    std::set<std::int64_t> seen;
    for (const Found& found : result_.best) seen.insert(found.place[0]);
    const std::int64_t best = best_, limit = limit_;
    for (int tries = 0; tries < 4 && seen.size() < options_.top && !queue_.empty() && !stopped();) {
      limit_ = queue_.top().value + queue_.top().value / 16;
      const bool any = open();
      // Nodes are split further if one that is not yet a single strategy now has the lowest bound of the search tree.
      if (any && queue_.top().level != Level::replayed) continue;
      ++tries;
      if (!any) continue;
      std::vector<Node> nodes;
      while (!queue_.empty() && nodes.size() + seen.size() < options_.top && queue_.top().level == Level::replayed) {
        const bool known = simulated_.count(queue_.top().place()) != 0;
        if (!known && seen.insert(queue_.top().layout).second) nodes.push_back(queue_.top());
        queue_.pop();
      }
      simulate_all(nodes);
    }
    best_ = best;
    limit_ = limit;
  }

  // Completes the results of strategies that other processes simulated: points their names (string_view) at strings of
  // this process, and computes all figures of the report again.
  void take_from_peers() {
    if (!workers_.has_peers()) return;
    for (Found& found : result_.best) {
      found.point = point_at(space_, layouts_, found.place);
      if (!found.here) found.report = evaluate(space_, profile_, found.point).value();
    }
    if (result_.roomier) result_.roomier->point = point_at(space_, layouts_, result_.roomier->place);
  }

  // Adds the quantiles of steps whose GPUs differ to the strategies that are shown.
  void add_variation() {
    if (!space_.base().cluster.variation || result_.stopped) return;
    try {
      for (Found& found : result_.best)
        found.report.variation = predict(space_.spec_of(found.point), profile_, false, options_.stop).report.variation;
    } catch (const Stopped&) {
      result_.stopped = true;
    }
  }

  void progress() const {
    if (!options_.progress) return;
    const SearchCounts& c = result_.counts;
    std::string line = fmt::format("{} points, {} bounded, {} simulated", c.points, c.bounded, c.simulated);
    if (best_ != kNothing && options_.objective == SearchObjective::time)
      line += fmt::format("; best {}", time_text(seconds(best_)));
    if (floor_ > 0 && options_.objective == SearchObjective::time)
      line += fmt::format(", nothing below {}", time_text(seconds(floor_)));
    options_.progress(line);
  }

  static constexpr std::int64_t kNothing = std::int64_t{1} << 62;

  const Space& space_;
  const Profile& profile_;
  const SearchOptions& options_;
  ModelCostCache costs_;
  std::vector<RankLayout> layouts_;
  SearchWorkers workers_;
  Bytes room_ = 0;
  SearchOpener opener_;
  std::vector<std::unique_ptr<BoundCache>> caches_;  // one cache for each worker thread
  std::priority_queue<Node, std::vector<Node>, std::greater<>> queue_;
  std::map<SearchSite, std::int64_t> best_of_;
  std::vector<Node> possible_;  // search nodes of all RankLayouts that are possible
  std::set<SearchPosition> simulated_;
  std::map<SearchPosition, Bytes> too_large_;  // for each simulated strategy that did not fit, the bytes that it needed
  // limit_: the greatest bound (picoseconds or bytes) with which a search node is still worth a simulation
  std::int64_t best_ = kNothing, limit_ = kNothing;
  std::int64_t floor_ = 0;  // least bound of all search nodes that are still to be split
  std::map<SearchFamily, ForwardPart> forwards_;
  // Strategies that fit with the activations that they offload, or were too slow. The search does not try the same
  // strategies with more of their activations offloaded.
  std::set<SearchPlaces> settled_;
  Bytes least_ = 0;
  SearchResult result_;
};

}  // namespace

SearchResult search(const Space& space, const Profile& profile, const SearchOptions& options) {
  return Search(space, profile, options).run();
}

}  // namespace orrery
