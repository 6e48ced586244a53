#pragma once

#include <cstddef>
#include <vector>

#include "exec/buffers.h"
#include "exec/rank.h"
#include "exec/transport.h"

namespace orrery {

// Calls of a transport for a task that moves bytes. What lies scattered in a flat buffer is packed first and unpacked
// when the call has ended.
struct Packed {
  struct Run {
    std::byte* at;
    std::size_t bytes;
  };
  std::vector<Run> runs;
  std::vector<std::byte> buffer;

  void pack();
  void unpack() const;
};

struct PreparedCollective {
  CollectiveCall call;
  Packed packed;
};

PreparedCollective prepare(const Rank& rank, const Collective& work, const Launch& launch);
MessageCall prepare(const Rank& rank, const Transfer& work, const Launch& launch);

// Elements of every member's piece of a run that is cut over `members` ranks.
std::vector<std::int64_t> cut(std::int64_t elements, std::int64_t members);

}  // namespace orrery
