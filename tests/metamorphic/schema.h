#pragma once

#include <cstdint>

namespace orrery::test {

// Holds random specs that the reader accepts to the JSON Schema of specs; and the same with one mistake each, a key
// that there is not or a value of another type, which the schema and the reader must both refuse. Prints each that
// does not hold, and returns their number. seed, count: which specs, as for the relations.
std::uint64_t schema_violations(std::uint64_t seed, std::uint64_t count);

}  // namespace orrery::test
