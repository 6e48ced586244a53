#pragma once

#include <cstdint>

#include "models/base/units.h"

namespace orrery {

// Other jobs fill a link for `burst` seconds, in which nothing else passes, and leave it free until the next burst, so
// that they take the share `load` of the time, from 0 to below 1. Such links of several domains are taken to be filled
// independently of each other, by bursts that come at even distances.
struct Bursts {
  double load = 0;
  Seconds burst = 0;
  std::int64_t domains = 1;
};

// Returns the mean time until `work` seconds of free time have passed on the links of all domains, from a moment that
// is drawn evenly. A free time between two bursts lasts f = burst (1 - load) / load. Of whole ones, k = floor(work /
// f), each costs a burst more; the rest of the work, r, meets another burst whole with probability load r / burst,
// begins within one with probability load and waits for a part of it that is drawn evenly, and meets none else. The
// largest of these waits over all domains has the mean
//   burst - burst ((p + load)^(n+1) - p^(n+1)) / (load (n + 1)) with p = 1 - load (1 + r / burst) and n domains.
// For one domain and long work this is work / (1 - load), as if the load were even.
Seconds time_among_bursts(Seconds work, const Bursts& bursts);

}  // namespace orrery
