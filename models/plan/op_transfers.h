// Work that other ranks share.
#pragma once

#include <cstdint>
#include <string_view>

#include "models/base/dimension.h"
#include "models/base/units.h"
#include "models/collectives/algorithms.h"

namespace orrery {

// Values of Collective::algorithm. kUserBuffers: the collective is launched by Transformer Engine through its user
// buffers, in one call with the pieces of a matrix product that run at the same time. kCopyEngines: a collective in
// user buffers that runs on the GPU's copy engines, which occupy no multiprocessors.
inline constexpr const char* kUserBuffers = "user buffers";
inline constexpr const char* kCopyEngines = "copy engines";

// A collective operation among the ranks of one process group. bytes is the larger of the input and the output of one
// rank (NCCL's size): S for an all-reduce of S bytes, the gathered output for an all-gather. If the gradients of a unit
// (parameters that are gathered and reduced together) are all-reduced, `first` is an index into the rank's shard of the
// unit. A shift sends data from each member to the next one in a ring. If its `first` is above 0, the buffer has a part
// of every member, and the part that comes in lies `first` elements before this member's own (round the ring).
struct Collective {
  CollectiveKind kind = CollectiveKind::all_reduce;
  Dimension group = Dimension::data;
  Bytes bytes = 0;
  Bytes width = 2;         // number of bytes of an element of the data
  std::int64_t first = 0;  // index of the element of the flat buffer at which the collective begins
  // the algorithm; the characters of the name outlive the plan, as those of a literal do
  std::string_view algorithm = "library";
  bool maximum = false;  // whether an all-reduce yields the largest value instead of the sum
  // for a push to or a pull from parameter servers: number of pieces of the buffer, each on one server; the servers are
  // the group's last members
  std::int64_t servers = 0;
  // for a push or a pull: number of parameter servers that hold copies of the same piece; in the group each of them
  // comes `servers` members after the one before
  std::int64_t copies = 1;
  // number of tensors that one launch moves, each by a collective of its own (a coalesced group)
  std::int64_t tensors = 1;
  std::int64_t root = 0;  // index in the group of the rank that has the data (broadcast) or receives it (reduce)
  // whether an all-to-all of layers' shards (Muon) returns what an earlier all-to-all has brought
  bool back = false;
  // For an all-to-all of the group hand_over, in which the ranks of a frozen model send its output to those of the
  // model that trains (models/partition/hand_over.h): the bytes that this rank sends (0 if it receives) and whether the
  // ranks of a tensor group have parts of the output's columns, else the same output. `bytes` are the most that a rank
  // of the group sends or receives.
  Bytes sent = 0;
  bool columns_cut = false;
};

// The send or the receive of a point-to-point transfer between pipeline stages. offset: number of stages by which the
// peer is ahead in the pipeline group, modulo the group's size. parts: if above 1, the ranks of the tensor parallel
// group hold the same bytes, so that each sends only one of this many parts, and the receivers all-gather the parts.
struct Transfer {
  bool send = true;
  std::int64_t offset = 1;
  Bytes bytes = 0;
  Bytes first = 0;  // offset in the buffer, in bytes, at which the transfer begins
  std::int64_t parts = 1;
};

}  // namespace orrery
