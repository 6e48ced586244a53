#pragma once

#include <cstdint>

#include "sim/generate/served.h"

namespace orrery {

// How the server and the clients of a measured row were started, where the row itself does not say.
struct ServedOptions {
  bool overlaps = true;            // whether the host launches a pass while the one before it runs (ClosedLoop)
  double shortest = 1;             // share of the stated lengths from which on lengths of requests are drawn evenly
  std::int64_t poll_passes = 1;    // passes of answers between two looks for new requests (ClosedLoop)
  std::int64_t stream_tokens = 1;  // tokens in a piece of a streamed answer (ClosedLoop)
};

// Options that a row's source, stack, model and GPU tell. None is fitted: a number is an option's value.
ServedOptions served_options(const ServedRow& row);

}  // namespace orrery
