#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "exec/memory/buffers.h"
#include "exec/memory/rank.h"
#include "exec/transport/transport.h"

namespace orrery {

// Copies bytes between two memory areas of one device, which do not overlap.
using Copy = std::function<void(std::byte* to, const std::byte* from, std::size_t bytes)>;
void copy_on_host(std::byte* to, const std::byte* from, std::size_t bytes);

// Contiguous ranges of bytes that lie scattered in a flat buffer and are sent as one message; they are packed before
// the call and unpacked after it.
struct Packed {
  struct Run {
    std::byte* at;
    std::size_t bytes;
  };
  std::vector<Run> runs;

  Bytes bytes() const;
  void pack(std::byte* to, const Copy& copy) const;
  void unpack(const std::byte* from, const Copy& copy) const;
};

// The arguments of the transport call for a collective task. If scattered ranges must be packed first, the call has no
// address until pack_into() packs them and sets it.
struct PreparedCollective {
  CollectiveCall call;
  Packed packed;
  // For a step of a ring exchange (each member sends to the next): this rank's own part of the data, which is copied to
  // `to` before the transfer begins.
  Packed placed;
  std::byte* to = nullptr;

  void pack_into(std::byte* memory, const Copy& copy);
};

PreparedCollective prepare(const Rank& rank, const Collective& work, const Launch& launch);
MessageCall prepare(const Rank& rank, const Transfer& work, const Launch& launch);

// Returns the number of elements of each member's piece when `elements` are cut evenly over `members` ranks.
std::vector<std::int64_t> cut(std::int64_t elements, std::int64_t members);

}  // namespace orrery
