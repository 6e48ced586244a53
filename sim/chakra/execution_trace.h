#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/collectives/algorithms.h"

namespace orrery {

// A node of a Chakra execution trace (MLCommons, schema/protobuf/et_def.proto): one operation of a rank, and the nodes
// that it waits for. The fields are the attributes that ASTRA-sim reads; their names in the file stand beside them.
struct ChakraNode {
  enum class Kind : std::uint8_t { other, compute, send, receive, collective };
  std::uint64_t id = 0;
  std::string name;
  Kind kind = Kind::other;
  std::vector<std::uint64_t> waits_for;  // ids of the operations (nodes) of the same rank that this one waits for
  std::uint64_t start_us = 0, duration_us = 0;
  bool on_host = false;         // Chakra's attribute is_cpu_op: whether the host runs the operation
  std::int64_t operations = 0;  // Chakra's attribute num_ops: number of arithmetic operations
  std::uint64_t bytes = 0;      // Chakra's attribute tensor_size (for compute) or comm_size (for transfers)
  CollectiveKind collective = CollectiveKind::all_reduce;  // Chakra's attribute comm_type
  bool barrier = false;                                    // whether the collective is a barrier, without data
  std::string group;      // Chakra's attribute pg_name: the process group; "" = all ranks
  std::int64_t peer = 0;  // Chakra's attribute comm_dst (for a send) or comm_src (for a receive)
  std::int64_t tag = 0;   // Chakra's attribute comm_tag: tag of a message

  friend bool operator==(const ChakraNode&, const ChakraNode&) = default;
};

// The Chakra execution trace of one rank.
struct ChakraTrace {
  std::vector<ChakraNode> nodes;

  friend bool operator==(const ChakraTrace&, const ChakraTrace&) = default;
};

// Parses the bytes of a trace file: the metadata, then the nodes, each preceded by its length. Throws Error for a file
// that is not a Chakra trace, for two nodes with one id, and for a node that waits for a node that does not exist.
// Nodes of the types metadata, memory and storage are read as `other` and take no time.
ChakraTrace read_chakra(std::string_view bytes, const std::string& path);
std::string chakra_text(const ChakraTrace& trace);

}  // namespace orrery
