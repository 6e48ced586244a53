#pragma once

#include <cstdint>
#include <string>

#include "models/spec/spec.h"
#include "sim/generate/served.h"

namespace orrery {

// The built-in software that is a row's inference stack. Throws Error if it is not built in.
std::string stack_of(const ServedRow& row);
// The spec of a row's model, machine and layout, for `batch` sequences (rounded up to a multiple of the ranks with
// attention of their own) and `output` tokens. Throws Error if specs do not have the row's model, precision or stack.
Spec served_spec(const ServedRow& row, std::int64_t batch, std::int64_t output);

}  // namespace orrery
