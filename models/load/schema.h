#pragma once

#include <string>

namespace orrery {

// Returns the JSON Schema (draft 2020-12) of a spec, from the keys, types and words of spec_reference() and the other
// names of aliases.h: editors complete and check specs by it. The schema accepts every spec that the reader accepts,
// and refuses unknown keys, values of another type and unknown words; rules between keys are the reader's alone.
std::string spec_schema();

}  // namespace orrery
