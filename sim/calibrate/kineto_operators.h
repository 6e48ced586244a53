#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/base/json_value.h"
#include "sim/export/pytorch_ops.h"

namespace orrery {

// The operators of the host in a trace of PyTorch's profiler, and which of them launched each kernel
// (sim/summary/tie.h). Events are indices into the list of all events of the trace, which must outlive this.
class KinetoOperators {
 public:
  explicit KinetoOperators(const std::vector<JsonValue>& events);

  // The operator that launched a kernel or, if no operator was running then, the annotation of the program that was;
  // nullopt if neither is known.
  std::optional<std::size_t> of_kernel(std::size_t kernel) const;
  OperatorPlace place_of(std::size_t op) const;
  const std::vector<std::size_t>& operators() const { return operators_; }

 private:
  void note_host(std::size_t e, const std::string& category);
  void nest();
  std::uint32_t thread_of(const JsonValue& event);

  const std::vector<JsonValue>& events_;
  std::vector<std::size_t> operators_;
  std::map<std::size_t, std::size_t> launched_by_;             // operators of kernels
  std::map<std::size_t, std::vector<std::int64_t>> gradient_;  // what the nodes of autograd around operators received
  std::map<std::string, std::uint32_t> threads_;               // numbers of threads, by process and thread
  std::map<std::size_t, std::uint32_t> thread_;                // threads of operators
  std::vector<std::uint32_t> autograd_;                        // threads that autograd runs on
};

}  // namespace orrery
