#pragma once

#include <memory>
#include <vector>

#include "viz/draw/area.h"
#include "viz/draw/pyramid.h"
#include "viz/read/load.h"
#include "viz/timeline/runs.h"

namespace orrery {

// What drawing a timeline needs besides, made once.
struct Prepared {
  std::vector<Pyramid> pyramids;  // by track
  AreaIndex areas;
};

// Of a counter over all of its time: its peak, and when it first holds more than its process's memory (-1: never).
struct CounterPeak {
  MemoryPeak peak;
  Picoseconds above = -1;
};

// A document that can be drawn.
struct Scene {
  // Prepares it where `prepared` is not at hand.
  explicit Scene(Document d, unsigned threads, std::shared_ptr<const Prepared> prepared = nullptr);
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  Document document;
  std::shared_ptr<const Prepared> prepared;
  std::vector<std::vector<Run>> runs;           // by process, of its computing lane
  std::vector<std::vector<CounterPeak>> peaks;  // by process and counter

  const Timeline& timeline() const { return document.timeline; }
};

// What open_inputs() opens, to be drawn. A large trace that was opened before is taken from the cache.
std::vector<std::shared_ptr<const Scene>> open_scenes(const std::vector<std::string>& paths,
                                                      const SpecOptions& options = {},
                                                      const LoadProgress& progress = {}, unsigned threads = 1);

}  // namespace orrery
