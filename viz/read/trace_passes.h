#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "viz/timeline/timeline.h"

namespace orrery {

// The passes of a generated text in a trace that Orrery wrote ("orreryPasses": the name of each micro-batch's pass).
// The first word of a name, "prefill" or "decode", is the phase.
class TracePasses {
 public:
  // Reads the list into a timeline's phases and passes, unless another file of the timeline has given these. Text that
  // is no list of names gives none.
  void read(std::string_view list, Timeline& timeline);

  // Returns the phase of an event with this text as its micro-batch.
  std::int8_t phase_of(std::string_view micro_batch) const;

 private:
  std::vector<std::int8_t> phases_;  // for each micro-batch
};

}  // namespace orrery
