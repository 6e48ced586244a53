#pragma once

#include <string>

namespace orrery {

// Returns the JSON Schema (draft 2020-12) of a spec, made from the keys, types and words of spec_reference() and the
// alternative names of aliases.h, by which editors complete and check specs. The schema accepts every spec that the
// reader accepts, and rejects unknown keys, values of another type and unknown words. Rules about several keys together
// are checked by the reader only.
std::string spec_schema();

}  // namespace orrery
