#pragma once

#include "sim/search/cell_work.h"

namespace orrery {

// Load that a rank's offloaded states put on the host in a step. down, up: bytes to and from the host over the rank's
// link; read, written: bytes from and to the node's disks; swapped: the part of read and written that belongs to the
// update. update: time of the node's processors behind the last gradient, with the disk transfers of the update;
// beside: the longest time that any of link, processors and disks works, since that can overlap with everything else.
struct HostLoad {
  double down = 0, up = 0, read = 0, written = 0, swapped = 0;
  Picoseconds update = 0, beside = 0;
};

// Load by a rank that holds the stage, beside other ranks of the node that hold no less. A step takes at least as long
// as the rank's link, the node's processors and the node's disks need for the bytes that they move or update; the
// update, and the state fetches that belong to it, come after the last gradient.
HostLoad host_load(const Space& space, const SearchCell& cell, const StageWeights& stage);

// Time of the transfers to and from the host, offloaded activations included, on the stage that moves the fewest bytes
// of activations.
Picoseconds through_host(const Space& space, const CellWork& work, const HostLoad& states);

// Whether the ranks of a node keep more on their host than its memory holds. activations: the fewest bytes offloaded by
// any stage.
bool lacks_host(const Space& space, const CellWork& work, Bytes activations);

}  // namespace orrery
