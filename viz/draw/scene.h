#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "viz/draw/area.h"
#include "viz/draw/pyramid.h"
#include "viz/predicted/fabric.h"
#include "viz/read/load.h"
#include "viz/timeline/bands.h"
#include "viz/timeline/launches.h"
#include "viz/timeline/runs.h"

namespace orrery {

// Data for drawing a timeline that are computed once, when the trace is opened.
struct Prepared {
  std::vector<Pyramid> pyramids;  // for each track, its levels of detail
  AreaIndex areas;
};

// The peak of a memory counter, and the first time at which the counter exceeds the memory capacity of its process's
// GPU (-1: never).
struct CounterPeak {
  MemoryPeak peak;
  Picoseconds above = -1;
};

// A scene: a document (an opened trace or step) together with the data for drawing it.
struct Scene {
  // Computes the data for drawing unless `prepared` is given.
  explicit Scene(Document d, unsigned threads, std::shared_ptr<const Prepared> prepared = nullptr);
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  Document document;
  std::shared_ptr<const Prepared> prepared;
  // for each process, the stretches of time in which its compute lane is busy with one micro-batch
  std::vector<std::vector<Run>> runs;
  std::vector<std::vector<Band>> bands;         // for each process, the stretches of time of its phases
  std::vector<std::vector<CounterPeak>> peaks;  // for each process and each of its counters, the counter's peak
  std::vector<bool> memory_seen;  // for each series of memory counters, whether it is above 0 in some process

  const Timeline& timeline() const { return document.timeline; }
  // The launch of an event. Those of all events are found when the first is asked for, but in a trace of more than
  // `most_tied` events, where this takes seconds, that of the one alone. Not for several threads.
  static constexpr EventId kMostTied = 4'000'000;  // reading the ids of an event takes some 0.3 us
  KernelLaunch launch_of(EventId e, EventId most_tied = kMostTied) const;

  // How full the links of the cluster are over a simulated step, found when it is first asked for; none for traces. Not
  // for several threads.
  const std::vector<FabricLoad>& fabric() const;
  bool knows_fabric() const { return fabric_.has_value() || !document.simulated(); }
  // Takes the loads that fabric_of() gave for the scene's step in another thread.
  void keep_fabric(std::vector<FabricLoad> loads) const { fabric_ = std::move(loads); }

 private:
  mutable std::optional<Launches> launches_;
  mutable std::optional<std::vector<FabricLoad>> fabric_;
};

// Returns whether the load of links is shown at once: of a step on a cluster with a network.
inline bool shows_links(const Document& d) { return d.simulated() && d.step->spec.cluster.network.has_value(); }

// Opens inputs as open_inputs() does, and computes the data for drawing. A large trace that was opened before is read
// from the cache.
std::vector<std::shared_ptr<const Scene>> open_scenes(const std::vector<std::string>& paths,
                                                      const SpecOptions& options = {},
                                                      const LoadProgress& progress = {}, unsigned threads = 1);

}  // namespace orrery
