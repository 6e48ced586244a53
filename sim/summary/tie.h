#pragma once

#include "sim/summary/records.h"

namespace orrery {

// Ties every kernel to the operator on the host that launched it, and to the moment of its launch. Kernels of PyTorch
// 2.0 and later carry the id of their operator ("External id"). In older traces, in some of ROCm, and for kernels that
// no operator launched, that field repeats the correlation id; there the kernel's launch is found by the correlation
// id, and the operator is the innermost one that was running on the launch's thread at that time. Where no operator was
// running there, it is the one with that id if that was running on another thread and other kernels' ids name
// operators, else an annotation of the program. Afterwards the kernels are in the order of devices and times, and the
// launches and operators are dropped.
void tie(TraceRecords& records);

}  // namespace orrery
