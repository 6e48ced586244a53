#include "models/base/error.h"
#include "sim/chakra/replay.h"
#include "tests/fuzz/fuzz.h"

// A trace that can be read is played too, as that of the only rank.
void orrery::fuzz::read_chakra(std::string_view bytes) {
  static const Cluster cluster = find_cluster("dgx-h100", 1);
  replay({orrery::read_chakra(bytes, "trace.0.et")}, cluster);
}
