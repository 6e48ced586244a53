#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/summary/names.h"
#include "sim/summary/records.h"

namespace orrery {

// The names of kernels and operators in all trace files of a summary, spelled as in the files (escapes not decoded).
struct TraceNames {
  Names names;
  std::vector<std::optional<KernelClass>> classes;  // class of kernel for each name; nullopt: not a kernel's name
  std::vector<std::uint32_t> classed;               // the names of kernels, in the order in which they appear

  // Returns the index of a kernel's name among all names, and finds the kernel's class when the name first appears.
  // kind: the op kind that Orrery's own traces give for the kernel, "" in other traces (class_of_kernel()).
  std::uint32_t kernel(std::string_view name, std::string_view kind);
  // Sets the class of a name that has none yet.
  void set_class(std::uint32_t name, KernelClass kernel_class);
  KernelClass class_of(std::uint32_t name) const { return classes[name].value_or(KernelClass::other); }
};

// Reads the records that a summary needs from one trace file of Orrery or of any version of PyTorch's profiler. Throws
// Error as read_trace() does, and for a file without kernels. piece: a function that is called about once a MiB of
// text.
TraceRecords collect(const std::string& path, TraceNames& names, const std::function<void()>& piece = {});

}  // namespace orrery
