#pragma once

#include "sim/search/cell_work.h"

namespace orrery {

// The load that one rank's offloaded states put on the host in a step.
//   down, up: bytes to and from the host over the rank's link
//   read, written: for each memory tier, bytes read from it and written to it
//   swapped: bytes that the update reads from disks and writes to them; 0 if these do not hold the optimizer states
//   update: time of the update on the node's processors after the last gradient, transfers to and from disks included
//   beside: the longest time that any of link, processors and disks works; it can overlap with everything else
struct HostLoad {
  double down = 0, up = 0, swapped = 0;
  std::array<double, kTiers> read{}, written{};  // by memory tier, the bytes read from it and written to it
  Picoseconds update = 0, beside = 0;
};

// Lower bounds of the time that offloaded states take in a step, if every rank of the node has at least as many states
// as a rank of this stage: the rank's link, the node's processors and the node's disks need this time for the bytes
// that they move or update. Unless it is delayed, the update comes after the last gradient, and so do the reads of
// states for it.
HostLoad host_load(const Space& space, const SearchCell& cell, const StageWeights& stage);

// Time of the transfers to and from the host, offloaded activations included, on the stage that offloads the fewest
// bytes of activations.
Picoseconds through_host(const Space& space, const CellWork& work, const HostLoad& states);

// Whether the ranks of a node offload more bytes than the memory of their host has. activations: the fewest bytes of
// activations that any stage offloads.
bool lacks_host(const Space& space, const CellWork& work, Bytes activations);

}  // namespace orrery
