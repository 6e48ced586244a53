#pragma once

#include "sim/summary/records.h"

namespace orrery {

// Ties every kernel to the operator on the host that launched it, and to the moment of its launch. Kernels of PyTorch
// 2.0 and later carry the id of their operator ("External id"). In older traces, and in some of ROCm, that field
// repeats the correlation id; there the kernel's launch is found by the correlation id, and the operator is the
// innermost one that was running on the launch's thread at that time. Where no operator was running, an annotation of
// the program takes its place. Afterwards the kernels are in the order of devices and times, and the launches and
// operators are dropped.
void tie(TraceRecords& records);

}  // namespace orrery
