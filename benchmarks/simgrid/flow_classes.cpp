#include "benchmarks/simgrid/flow_classes.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

namespace orrery::flows {

FlowClasses::FlowClasses(const FlowSet& set)
    : set_(set),
      chain_colours_(set.chain_count()),
      link_colours_(set.links),
      classes_(set.chain_count()),
      links_(set.links) {
  find_runs();
  std::size_t colours = 0;
  for (std::size_t before = 1; colours != before;) {
    before = colours;
    colours = refine();
  }
  number_classes();
  if (folded()) count_crossings();
}

void FlowClasses::find_runs() {
  first_run_.reserve(set_.chains.size());
  runs_.reserve(set_.chain_count());
  run_links_.reserve(4 * runs_.capacity());
  for (std::uint32_t chain = 0; chain < set_.chain_count(); ++chain) {
    first_run_.push_back(static_cast<std::uint32_t>(runs_.size()));
    for (std::uint32_t i = set_.chains[chain]; i < set_.chains[chain + 1]; ++i) {
      const Flow& flow = set_.flows[i];
      const bool fresh = runs_.size() == first_run_.back();
      if (fresh || runs_.back().route != flow.route || runs_.back().bytes != flow.bytes) {
        for (const std::uint32_t link : set_.routes[flow.route].links) run_links_.push_back(link);
        runs_.push_back({flow.route, i, static_cast<std::uint32_t>(run_links_.size()), flow.bytes});
      }
      runs_.back().end = i + 1;
    }
  }
  first_run_.push_back(static_cast<std::uint32_t>(runs_.size()));
}

std::uint64_t FlowClasses::colour_of(std::uint32_t chain) const {
  std::uint64_t colour = 0;
  std::uint32_t begin = set_.chains[chain];
  for (std::uint32_t run = first_run_[chain]; run < first_run_[chain + 1]; ++run) {
    const std::span links = links_of(run);
    colour += mixed(static_cast<std::uint64_t>(runs_[run].bytes)) + (runs_[run].end - begin) + (links.size() << 32);
    for (std::size_t i = 0; i < links.size(); ++i)
      colour += std::rotl(link_colours_[links[i]], static_cast<int>(7 * i));
    colour = mixed(colour);
    begin = runs_[run].end;
  }
  return colour;
}

std::size_t FlowClasses::refine() {
  std::vector<std::uint64_t> next;
  for (const std::uint64_t colour : link_colours_) next.push_back(mixed(colour));
  for (std::uint32_t chain = 0; chain < set_.chain_count(); ++chain) {
    const std::uint64_t colour = chain_colours_[chain] = colour_of(chain);
    for (std::uint32_t run = first_run_[chain]; run < first_run_[chain + 1]; ++run) {
      const std::uint64_t crossing = mixed(colour + (run - first_run_[chain]));
      for (const std::uint32_t link : links_of(run)) next[link] += crossing;
    }
  }
  link_colours_ = next;
  std::sort(next.begin(), next.end());
  return static_cast<std::size_t>(std::unique(next.begin(), next.end()) - next.begin());
}

void FlowClasses::number_classes() {
  std::unordered_map<std::uint64_t, std::uint32_t> numbers;
  for (std::uint32_t chain = 0; chain < set_.chain_count(); ++chain) {
    if (chain > 0 && chain_colours_[chain] == chain_colours_[chain - 1]) {
      classes_[chain] = classes_[chain - 1];
      continue;
    }
    const auto [it, fresh] = numbers.try_emplace(chain_colours_[chain], count());
    if (fresh) chains_.push_back(chain);
    classes_[chain] = it->second;
  }
  for (const std::uint32_t chain : chains_) run_.push_back(first_run_[chain]);
}

void FlowClasses::count_crossings() {
  std::unordered_map<std::uint64_t, std::uint32_t> numbers;
  for (const std::uint32_t chain : chains_) {
    first_crossing_.push_back(static_cast<std::uint32_t>(crossings_.size()));
    for (std::uint32_t run = first_run_[chain]; run < first_run_[chain + 1]; ++run) {
      Crossings& crossings = crossings_.emplace_back();
      for (const std::uint32_t original : links_of(run)) {
        const auto number = static_cast<std::uint32_t>(numbers.size());
        const std::uint32_t link = numbers.try_emplace(link_colours_[original], number).first->second;
        const std::span known(crossings.all.data(), crossings.count);
        if (std::ranges::none_of(known, [&](const Crossing& c) { return c.link == link; }))
          crossings.all[crossings.count++] = {original, link, 0};
      }
    }
  }
  links_ = static_cast<std::uint32_t>(numbers.size());
  for (std::uint32_t chain = 0; chain < set_.chain_count(); ++chain) {
    Crossings* crossings = &crossings_[first_crossing_[classes_[chain]]];
    for (std::uint32_t run = first_run_[chain]; run < first_run_[chain + 1]; ++run, ++crossings) {
      for (const std::uint32_t link : links_of(run)) {
        for (std::size_t i = 0; i < crossings->count; ++i)
          crossings->all[i].flows += crossings->all[i].original == link;
      }
    }
  }
}

std::span<const LinkUse> FlowClasses::uses(std::uint32_t name, std::uint32_t flow, std::int64_t weight) {
  while (runs_[run_[name]].end <= flow) ++run_[name];
  std::size_t count = 0;
  if (folded()) {
    const Crossings& crossings = crossings_[first_crossing_[name] + run_[name] - first_run_[chains_[name]]];
    for (; count < crossings.count; ++count)
      uses_[count] = {crossings.all[count].link, weight * crossings.all[count].flows};
  } else {
    for (const std::uint32_t link : links_of(run_[name])) uses_[count++] = {link, weight};
  }
  return {uses_.data(), count};
}

}  // namespace orrery::flows
