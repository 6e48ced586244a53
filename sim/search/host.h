#pragma once

#include "sim/search/cell_work.h"

namespace orrery {

// Load that a rank's offloaded states put on the host in a step. down, up: bytes to and from the host over the rank's
// link; read, written: bytes from and to each tier behind the host; swapped: bytes of the update read from and written
// to the tier of the optimizer. update: time of the node's processors behind the last gradient, with those transfers;
// beside: the longest time that any of link, processors and disks works, since that can overlap with everything else.
struct HostLoad {
  double down = 0, up = 0, swapped = 0;
  std::array<double, kTiers> read{}, written{};  // for each memory tier, the bytes read and the bytes written
  Picoseconds update = 0, beside = 0;
};

// The load of a rank of the stage, where the other ranks of its node have no fewer states. A step takes at least as
// long as the rank's link, the node's processors and the node's disks need for the bytes that they move or update; the
// update, and the state fetches that belong to it, come after the last gradient.
HostLoad host_load(const Space& space, const SearchCell& cell, const StageWeights& stage);

// Time of the transfers to and from the host, offloaded activations included, on the stage that moves the fewest bytes
// of activations.
Picoseconds through_host(const Space& space, const CellWork& work, const HostLoad& states);

// Whether the ranks of a node keep more bytes on their host than its memory has. activations: the fewest bytes of
// activations that any stage offloads.
bool lacks_host(const Space& space, const CellWork& work, Bytes activations);

}  // namespace orrery
