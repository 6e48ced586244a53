#include "sim/search.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <queue>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "models/error.h"
#include "sim/search_crew.h"
#include "sim/search_node.h"
#include "sim/simulate.h"
#include "sim/text.h"

namespace orrery {
namespace {

// How many nodes are opened, and points simulated, at once: a property of the search and not of the machine, so that
// the same are, whatever the number of threads.
constexpr std::size_t kOpened = 32, kSimulated = 8;

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
        crew_(options.threads, options.peers, options.stop) {
    const Bytes has = space.base().cluster.gpu.memory_bytes;
    room_ = has > 0 ? has : profile.memory_bytes;
    if (options.most_memory > 0) room_ = std::min(room_, options.most_memory);
    for (std::size_t i = 0; i < crew_.threads(); ++i)
      bounds_.push_back(std::make_unique<Bounds>(space, profile, costs_));
  }

  SearchResult run() {
    const auto start = std::chrono::steady_clock::now();
    look_at_layouts();
    while (!enough() && open() && simulate_next()) {
    }
    result_.proven = !enough();
    if (best_ != kNothing) result_.gap = gap();
    if (result_.proven) add_others();
    std::sort(result_.best.begin(), result_.best.end(), [&](const Found& a, const Found& b) {
      return std::pair(value_of(a.report), a.place) < std::pair(value_of(b.report), b.place);
    });
    keep_one_of_each_layout();
    take_from_peers();
    if (result_.best.empty()) result_.least_memory = least_;
    result_.stopped = stopped();
    const bool none = result_.best.empty() && result_.counts.without_room + result_.counts.did_not_fit == 0;
    if (result_.proven && none) result_.reason = why_nothing(space_, profile_, layouts_);
    result_.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return std::move(result_);
  }

 private:
  bool stopped() const { return crew_.stopped(); }
  bool enough() const { return stopped() || (options_.any && !result_.best.empty()); }
  std::int64_t value_of(const Bound& b) const {
    return options_.objective == SearchObjective::time ? b.time : b.memory;
  }
  std::int64_t value_of(const Report& r) const {
    return options_.objective == SearchObjective::time ? picoseconds(r.step_time_s) : r.memory.peak_device;
  }

  // What was left out is above limit_, and what is still to come is not below floor_.
  double gap() const {
    const std::int64_t least = result_.proven ? limit_ : std::min(floor_, limit_);
    return static_cast<double>(best_ - least) / static_cast<double>(best_);
  }

  void look_at_layouts() {
    std::vector<Node> nodes(layouts_.size());
    std::vector<std::uint64_t> points(layouts_.size());
    const auto look = [&](std::size_t worker, std::size_t i) {
      if (crew_.hurries()) return;
      nodes[i].layout = static_cast<std::uint32_t>(i);
      const bool rough = bounds_[worker]->has_rough(layouts_[i]);
      if (rough) nodes[i].level = Level::rough_layout;
      nodes[i].bound = rough ? bounds_[worker]->rough(layouts_[i]) : bounds_[worker]->of(layouts_[i]);
      nodes[i].value = value_of(nodes[i].bound);
      if (nodes[i].bound.time > 0) points[i] = space_.count(layouts_[i]);
    };
    const auto pass = [&](Wire& wire, std::size_t i) {
      share(wire, nodes[i]);
      wire.share(points[i]);
    };
    crew_.each(
        layouts_.size(), look, [&](std::size_t i) { return layouts_[i].pipeline; }, pass);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      result_.counts.points += points[i];
      if (points[i] > 0) queue_.push(nodes[i]);
    }
  }

  // Nodes whose bound may still win are opened until points come first. Returns false when none is left.
  bool open() {
    while (!queue_.empty() && queue_.top().value <= limit_) {
      std::vector<Node> nodes;
      floor_ = queue_.top().value;
      while (!queue_.empty() && nodes.size() < kOpened && queue_.top().level != Level::played &&
             queue_.top().value <= limit_) {
        nodes.push_back(queue_.top());
        queue_.pop();
      }
      if (nodes.empty()) return true;
      open_all(nodes);
      if (stopped()) return false;
    }
    return false;
  }

  void open_all(const std::vector<Node>& nodes) {
    std::vector<std::vector<Node>> parts(nodes.size());
    std::vector<SearchCounts> counts(nodes.size());
    std::vector<Bytes> least(nodes.size(), 0);
    const auto open_one = [&](std::size_t worker, std::size_t i) {
      if (!crew_.hurries()) parts[i] = parts_of(*bounds_[worker], nodes[i], {counts[i], least[i]});
    };
    const auto pass = [&](Wire& wire, std::size_t i) {
      std::size_t size = parts[i].size();
      wire.share(size);
      parts[i].resize(size);
      for (Node& part : parts[i]) share(wire, part);
      for (std::uint64_t* n : {&counts[i].bounded, &counts[i].without_room}) wire.share(*n);
      wire.share(least[i]);
    };
    crew_.each(
        nodes.size(), open_one, [&](std::size_t i) { return layouts_[nodes[i].layout].pipeline; }, pass);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      for (Node& node : parts[i]) queue_.push(std::move(node));
      result_.counts.bounded += counts[i].bounded;
      result_.counts.without_room += counts[i].without_room;
      if (least[i] > 0 && (least_ == 0 || least[i] < least_)) least_ = least[i];
    }
    progress();
  }

  struct Tally {
    SearchCounts& counts;
    Bytes& least;  // memory of any cell
  };

  std::vector<Node> parts_of(Bounds& bounds, const Node& node, Tally tally) const {
    switch (node.level) {
      case Level::rough_layout:
        return without_rough(bounds, node);
      case Level::layout:
        return groups_of(bounds, node, tally);
      case Level::group:
        return cells_of(bounds, node, tally);
      case Level::cell:
        return points_of(bounds, node, tally);
      case Level::point:
        return played(bounds, node, tally);
      case Level::played:
        break;
    }
    return {};
  }

  std::vector<Node> played(Bounds& bounds, Node node, Tally tally) const {
    bounds.enter(layouts_[node.layout]);
    bounds.of(node.what);
    node.level = Level::played;
    node.bound = bounds.played(node.features);
    node.value = std::max(node.value, value_of(node.bound));
    if (node.bound.memory > room_) ++tally.counts.without_room;
    if (node.bound.memory > room_ || node.value > limit_) return {};
    return {node};
  }

  // The same layout by its own bound; none where it is not possible.
  std::vector<Node> without_rough(Bounds& bounds, Node node) const {
    node.level = Level::layout;
    node.bound = bounds.of(layouts_[node.layout]);
    if (node.bound.time == 0) return {};
    node.value = std::max(node.value, value_of(node.bound));
    return {node};
  }

  // A group takes at least what its cell does that recomputes nothing; others of it may need less memory.
  std::vector<Node> groups_of(Bounds& bounds, const Node& node, Tally tally) const {
    std::vector<Node> result;
    bounds.enter(layouts_[node.layout]);
    const std::vector<Recipe> groups = space_.groups(layouts_[node.layout]);
    for (std::size_t g = 0; g < groups.size() && !crew_.hurries(); ++g) {
      if (!bounds.possible(groups[g])) continue;
      Node next{.value = node.value, .layout = node.layout, .group = static_cast<std::int32_t>(g), .what = groups[g]};
      next.level = Level::group;
      next.bound = {.time = bounds.time_of_group(groups[g])};
      if (options_.objective == SearchObjective::time) next.value = std::max(node.value, next.bound.time);
      ++tally.counts.bounded;
      if (next.value <= limit_) result.push_back(next);
    }
    return result;
  }

  std::vector<Node> cells_of(Bounds& bounds, const Node& node, Tally tally) const {
    std::vector<Node> result;
    bounds.enter(layouts_[node.layout]);
    const std::vector<Recipe> cells = space_.cells_of(layouts_[node.layout], node.what);
    for (std::size_t c = 0; c < cells.size(); ++c) {
      const bool first = c == 0 || cells[c].recompute != cells[c - 1].recompute;
      if (first || options_.objective == SearchObjective::memory) add_cell(bounds, node, cells, c, tally, result);
    }
    return result;
  }

  // Of the cells [c, end) of a kind, the first that may have room: by halving where more layers that run again never
  // need more.
  std::size_t first_with_room(Bounds& bounds, const std::vector<Recipe>& cells, std::size_t c, std::size_t end,
                              Tally tally) const {
    const auto lacks_room = [&](const Recipe& cell) {
      const Bytes memory = bounds.of(cell).memory;
      ++tally.counts.bounded;
      if (memory < kNoRoom && (tally.least == 0 || memory < tally.least)) tally.least = memory;
      return memory > room_;
    };
    bounds.of(cells[c]);
    const auto first = cells.begin() + static_cast<std::ptrdiff_t>(c),
               last = cells.begin() + static_cast<std::ptrdiff_t>(end);
    const auto found = bounds.frees_memory() ? std::partition_point(first, last, lacks_room)
                                             : std::find_if_not(first, last, lacks_room);
    tally.counts.without_room += static_cast<std::uint64_t>(found - first);
    return static_cast<std::size_t>(found - cells.begin());
  }

  // The first cell from c on, of its kind, that has room; it stands for the later ones.
  void add_cell(Bounds& bounds, const Node& node, const std::vector<Recipe>& cells, std::size_t c, Tally tally,
                std::vector<Node>& result) const {
    const bool time = options_.objective == SearchObjective::time;
    if (!bounds.possible(cells[c])) return;
    std::size_t end = c + 1;
    while (time && end < cells.size() && cells[end].recompute == cells[c].recompute) ++end;
    const std::size_t i = first_with_room(bounds, cells, c, end, tally);
    if (i == end) return;
    Node next = node;
    next.level = Level::cell;
    next.cell = static_cast<std::int32_t>(i);
    next.what = cells[i];
    next.bound = bounds.of(cells[i]);
    next.floor = node.level == Level::group ? node.value : node.floor;
    const std::optional<Picoseconds> fall = time ? bounds.may_fall() : 0;
    next.value = std::max(next.floor, fall ? value_of(next.bound) - *fall : 0);
    if (next.value <= limit_) result.push_back(next);
  }

  std::vector<Node> points_of(Bounds& bounds, const Node& node, Tally tally) const {
    const Degrees& layout = layouts_[node.layout];
    bounds.enter(layout);
    std::vector<Node> result;
    if (options_.objective == SearchObjective::time) {
      Recipe group = node.what;
      group.recompute = "none";
      group.recompute_layers = -1;
      const std::vector<Recipe> cells = space_.cells_of(layout, group);
      const std::size_t after = static_cast<std::size_t>(node.cell) + 1;
      if (after < cells.size() && cells[after].recompute == node.what.recompute)
        add_cell(bounds, node, cells, after, tally, result);
    }
    bounds.of(node.what);
    const std::vector<Features> all = space_.features(layout, node.what);
    for (std::size_t f = 0; f < all.size(); ++f) {
      Node next = node;
      next.level = layout.pipeline > 1 ? Level::point : Level::played;
      next.feature = static_cast<std::int32_t>(f);
      next.features = all[f];
      next.bound = bounds.of(all[f]);
      next.value = std::max(node.value, value_of(next.bound));
      ++tally.counts.bounded;
      if (next.bound.memory > room_)
        ++tally.counts.without_room;
      else if (next.value <= limit_)
        result.push_back(next);
    }
    return result;
  }

  // Simulates the points that come first. Returns false when none is left.
  bool simulate_next() {
    std::vector<Node> nodes;
    while (!queue_.empty() && nodes.size() < kSimulated && queue_.top().level == Level::played &&
           queue_.top().value <= limit_) {
      nodes.push_back(queue_.top());
      queue_.pop();
    }
    simulate_all(nodes);
    return !nodes.empty();
  }

  Point point_of(const Node& node) const { return {layouts_[node.layout], node.what, node.features}; }

  // When a point's step need not be played further: it is neither the best then, nor the best of its layout, if that
  // is to be shown.
  Picoseconds latest_of(const Node& node) const {
    if (options_.objective != SearchObjective::time) return kNothing;
    const auto own = best_of_.find(place(layouts_[node.layout]));
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
    std::vector<char> done(nodes.size()), here(nodes.size());  // done: all, unless stopped
    std::vector<Picoseconds> latest;
    for (const Node& node : nodes) latest.push_back(latest_of(node));
    const auto simulate_one = [&](std::size_t, std::size_t i) {
      if (crew_.hurries()) return;
      try {
        found[i] = evaluate_within(space_, profile_, point_of(nodes[i]), latest[i], options_.stop);
        done[i] = here[i] = 1;
      } catch (const Stopped&) {  // left undone
      }
    };
    const auto pass = [&](Wire& wire, std::size_t i) {
      wire.share(done[i]);
      wire.share(found[i].late);
      share_result(wire, found[i].report);
    };
    crew_.each(
        nodes.size(), simulate_one, [&](std::size_t i) { return layouts_[nodes[i].layout].micro_batches; }, pass);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (done[i] != 0) take(nodes[i], found[i], here[i] != 0);
    }
    progress();
  }

  // here: this process has the whole report.
  void take(const Node& node, Evaluation& evaluation, bool here) {
    SearchCounts& counts = result_.counts;
    ++counts.simulated;
    if (!evaluation.report) {
      ++(evaluation.late ? counts.late : counts.refused);
      return;
    }
    Found found{point_of(node),
                node.bound,
                std::move(*evaluation.report),
                {node.layout, node.group, node.cell, node.feature},
                here};
    if (!found.report.memory.fits || found.report.memory.peak_device > room_) {
      ++counts.did_not_fit;
      if (!result_.roomier || found.report.step_time_s < result_.roomier->report.step_time_s)
        result_.roomier = std::move(found);
      return;
    }
    const std::int64_t value = value_of(found.report);
    best_ = std::min(best_, value);
    limit_ = best_ - static_cast<std::int64_t>(options_.within * static_cast<double>(best_));
    const auto [own, fresh] = best_of_.try_emplace(place(layouts_[node.layout]), value);
    own->second = std::min(own->second, value);
    result_.best.push_back(std::move(found));
  }

  // Where the best found stands among other layouts: of those, the points whose bounds are lowest are simulated too.
  void add_others() {
    std::set<std::int64_t> seen;
    for (const Found& found : result_.best) seen.insert(found.place[0]);
    const std::int64_t best = best_, limit = limit_;
    for (int tries = 0; tries < 4 && seen.size() < options_.top && !queue_.empty() && !stopped(); ++tries) {
      limit_ = queue_.top().value + queue_.top().value / 16;
      if (!open()) continue;
      std::vector<Node> nodes;
      while (!queue_.empty() && nodes.size() + seen.size() < options_.top && queue_.top().level == Level::played) {
        if (seen.insert(queue_.top().layout).second) nodes.push_back(queue_.top());
        queue_.pop();
      }
      simulate_all(nodes);
    }
    best_ = best;
    limit_ = limit;
  }

  // What layouts are told apart by.
  using Place = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t>;
  static Place place(const Degrees& l) { return {l.tensor, l.context, l.pipeline, l.data, l.expert}; }

  void keep_one_of_each_layout() {
    std::vector<Found> kept;
    for (Found& found : result_.best) {
      const bool seen = std::any_of(kept.begin(), kept.end(), [&](const Found& other) {
        return place(other.point.layout) == place(found.point.layout);
      });
      if (!seen && kept.size() < options_.top) kept.push_back(std::move(found));
    }
    result_.best = std::move(kept);
  }

  // What other processes found, with names of this one's and all figures.
  void take_from_peers() {
    if (!crew_.has_peers()) return;
    for (Found& found : result_.best) {
      found.point = point_at(space_, layouts_, found.place);
      if (!found.here) found.report = evaluate(space_, profile_, found.point).value();
    }
    if (result_.roomier) result_.roomier->point = point_at(space_, layouts_, result_.roomier->place);
  }

  void progress() const {
    if (!options_.progress) return;
    const SearchCounts& c = result_.counts;
    std::string line = fmt::format("{} points, {} bounded, {} simulated", c.points, c.bounded, c.simulated);
    if (best_ != kNothing && options_.objective == SearchObjective::time)
      line += fmt::format("; best {}", time_text(seconds(best_)));
    if (!queue_.empty() && options_.objective == SearchObjective::time)
      line += fmt::format(", nothing below {}", time_text(seconds(queue_.top().value)));
    options_.progress(line);
  }

  static constexpr std::int64_t kNothing = std::int64_t{1} << 62;

  const Space& space_;
  const Profile& profile_;
  const SearchOptions& options_;
  StackCosts costs_;
  std::vector<Degrees> layouts_;
  SearchCrew crew_;
  std::vector<std::unique_ptr<Bounds>> bounds_;  // of each worker
  std::priority_queue<Node, std::vector<Node>, std::greater<>> queue_;
  std::map<Place, std::int64_t> best_of_;
  std::int64_t best_ = kNothing, limit_ = kNothing;  // limit_: what is worth a simulation
  std::int64_t floor_ = 0;                           // bound of whatever is still to come
  Bytes room_ = 0, least_ = 0;
  SearchResult result_;
};

}  // namespace

SearchResult search(const Space& space, const Profile& profile, const SearchOptions& options) {
  return Search(space, profile, options).run();
}

}  // namespace orrery
