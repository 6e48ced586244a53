#pragma once

#include <string_view>

namespace orrery {

// Whether a name comes before another one where digits count as numbers: "rank 2" comes before "rank 10". Names that
// differ only in leading zeros are in the order of their bytes, so that two names are equal only if their texts are.
bool in_natural_order(std::string_view a, std::string_view b);

}  // namespace orrery
