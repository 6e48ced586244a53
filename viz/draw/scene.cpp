#include "viz/draw/scene.h"

#include <algorithm>

#include "viz/draw/layout.h"
#include "viz/draw/scene_cache.h"

namespace orrery {
namespace {

std::vector<std::vector<Run>> runs_by_process(const Timeline& t) {
  std::vector<std::vector<Run>> runs(t.processes.size());
  for (std::uint32_t p = 0; p < t.processes.size(); ++p) {
    const std::uint32_t track = compute_track(t, p);
    if (track != kNone) runs[p] = runs_of(t, t.tracks[track]);
  }
  return runs;
}

std::vector<std::vector<Band>> bands_by_process(const Timeline& t) {
  std::vector<std::vector<Band>> bands(t.processes.size());
  for (std::uint32_t p = 0; p < t.processes.size() && !t.phases.empty(); ++p) {
    const std::uint32_t track = compute_track(t, p);
    if (track != kNone) bands[p] = bands_of(t, t.tracks[track]);
  }
  return bands;
}

std::vector<std::vector<CounterPeak>> peaks_by_process(const Timeline& t) {
  std::vector<std::vector<CounterPeak>> peaks;
  for (const Process& p : t.processes) {
    std::vector<CounterPeak>& own = peaks.emplace_back();
    for (const Counter& c : p.counters) {
      const bool limited = p.capacity > 0 && &c == memory_of(p);
      own.push_back({memory_peak(c, 0, t.end), limited ? first_above(c, static_cast<double>(p.capacity)) : -1});
    }
  }
  return peaks;
}

std::vector<bool> seen_series(const Timeline& t) {
  std::vector<bool> seen;
  for (const Process& p : t.processes) {
    const Counter* const memory = memory_of(p);
    if (memory == nullptr) continue;
    const std::size_t series = memory->series.size();
    seen.resize(std::max(seen.size(), series), false);
    for (std::size_t i = 0; i < memory->values.size(); ++i) {
      if (memory->values[i] > 0) seen[i % series] = true;
    }
  }
  return seen;
}

}  // namespace

Scene::Scene(Document d, unsigned threads, std::shared_ptr<const Prepared> at_hand)
    : document(std::move(d)),
      prepared(std::move(at_hand)),
      runs(runs_by_process(document.timeline)),
      bands(bands_by_process(document.timeline)),
      peaks(peaks_by_process(document.timeline)),
      memory_seen(seen_series(document.timeline)) {
  if (!prepared)
    prepared = std::make_shared<const Prepared>(
        Prepared{build_pyramids(document.timeline, threads), AreaIndex(document.timeline, threads)});
}

KernelLaunch Scene::launch_of(EventId e, EventId most_tied) const {
  if (timeline().events() > most_tied) return orrery::launch_of(timeline(), e);
  if (!launches_) launches_ = launches_of(timeline());
  return launches_->empty() ? KernelLaunch{} : KernelLaunch{launches_->call[e], launches_->op[e]};
}

const std::vector<FabricLoad>& Scene::fabric() const {
  if (!fabric_) fabric_ = document.simulated() ? fabric_of(*document.step) : std::vector<FabricLoad>{};
  return *fabric_;
}

std::vector<std::shared_ptr<const Scene>> open_scenes(const std::vector<std::string>& paths, const SpecOptions& options,
                                                      const LoadProgress& progress, unsigned threads) {
  std::vector<std::shared_ptr<const Scene>> scenes;
  for (const Input& input : inputs_of(paths)) {
    const std::string key = input.format == Format::trace ? cache_key(input.files) : std::string();
    std::shared_ptr<const Scene> scene = scene_from_cache(key, input.files);
    if (!scene) {
      Document d = open_input(input, options, progress);
      d.cache_key = key;
      scene = std::make_shared<const Scene>(std::move(d), threads);
      if (shows_links(scene->document)) scene->fabric();
    }
    scenes.push_back(std::move(scene));
  }
  return scenes;
}

}  // namespace orrery
