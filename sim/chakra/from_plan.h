#pragma once

#include <map>
#include <string>

#include "models/plan/plan.h"
#include "models/trace/trace.h"
#include "sim/chakra/execution_trace.h"

namespace orrery {

// Writes a plan with its simulated (or measured) times as Chakra execution traces, one for each rank. Every task
// becomes a node that lasts as long as in the trace, without the time that it waits for other ranks. A node waits for
// the tasks that its task depends on, and for the task before it in its lane. Sizes of collectives are the bytes that a
// rank puts in, as ASTRA-sim counts them. Throws Error for transfers that such traces cannot name (those of parameter
// servers, and passes around a ring).
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
  // By dimension and lane: the number of the first process group. Each dimension has its own groups in every lane that
  // uses it.
  std::map<std::pair<Dimension, LaneKind>, std::int64_t> first_group_;
};

}  // namespace orrery
