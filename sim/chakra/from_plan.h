#pragma once

#include <map>
#include <string>

#include "models/plan/plan.h"
#include "models/trace/trace.h"
#include "sim/chakra/execution_trace.h"

namespace orrery {

// Writes a plan with its simulated (or measured) times as Chakra execution traces, one for each rank. Every task
// becomes a node with the duration that the task has without waiting for other ranks. A node waits for the nodes of the
// tasks that its task depends on, and of the task before it in its lane (stream). Sizes of collectives are the bytes
// that a rank puts in, as ASTRA-sim counts them. Throws Error for transfers that Chakra traces cannot name (those of
// parameter servers, and passes around a ring).
class ChakraWriter {
 public:
  ChakraWriter(const Plan& plan, const Trace& trace);

  ChakraTrace of_rank(std::int64_t rank) const;
  // The members of every process group by name, as a JSON object: the file comm-group-configuration of ASTRA-sim.
  std::string groups() const;

 private:
  struct Pairs;
  ChakraNode node_of(TaskId task, std::int64_t rank, Pairs& pairs) const;
  void set_collective(ChakraNode& node, const Collective& c, LaneKind lane, std::int64_t rank) const;
  void set_transfer(ChakraNode& node, const Transfer& t, LaneKind lane, std::int64_t rank, Pairs& pairs) const;
  std::int64_t group_of(Dimension d, LaneKind lane, std::int64_t rank) const;

  const Plan& plan_;
  const Trace& trace_;
  std::vector<std::uint32_t> class_of_;  // for each rank, the index of its class of ranks
  // The number of the first process group of each dimension of parallelism in each lane (stream): every dimension has
  // process groups of its own in every lane that it uses.
  std::map<std::pair<Dimension, LaneKind>, std::int64_t> first_group_;
};

}  // namespace orrery
