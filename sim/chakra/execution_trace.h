#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/collectives/algorithms.h"

namespace orrery {

// A node of a Chakra execution trace (MLCommons, schema/protobuf/et_def.proto): one operation of a rank, with the nodes
// that it waits for. Attributes are those that ASTRA-sim reads.
struct ChakraNode {
  enum class Kind : std::uint8_t { other, compute, send, receive, collective };
  std::uint64_t id = 0;
  std::string name;
  Kind kind = Kind::other;
  std::vector<std::uint64_t> waits_for;  // ids of nodes of the same rank
  std::uint64_t start_us = 0, duration_us = 0;
  bool on_host = false;                                    // is_cpu_op
  std::int64_t operations = 0;                             // num_ops
  std::uint64_t bytes = 0;                                 // tensor_size of compute; comm_size of transfers
  CollectiveKind collective = CollectiveKind::all_reduce;  // comm_type
  bool barrier = false;                                    // a collective without data
  std::string group;                                       // pg_name; "": all ranks
  std::int64_t peer = 0;                                   // comm_dst of a send, comm_src of a receive
  std::int64_t tag = 0;                                    // comm_tag

  friend bool operator==(const ChakraNode&, const ChakraNode&) = default;
};

// The trace of one rank.
struct ChakraTrace {
  std::vector<ChakraNode> nodes;

  friend bool operator==(const ChakraTrace&, const ChakraTrace&) = default;
};

// Reads a file's bytes: the metadata, then nodes, each message behind its length. Throws Error for what is no such
// trace, a node whose id is given twice or that waits for a node that is not there. Nodes for metadata, memory and
// storage are `other`: they take no time.
ChakraTrace read_chakra(std::string_view bytes, const std::string& path);
std::string chakra_text(const ChakraTrace& trace);

}  // namespace orrery
