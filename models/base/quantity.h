#pragma once

#include <optional>
#include <string_view>

namespace orrery {

// The unit that a key's name ends in: "bucket_MiB" -> "MiB", "cluster.nvme.TB" -> "TB", "tensor" -> "".
std::string_view unit_of_key(std::string_view key);

// Parses a number with or without a unit ("80 GiB", "400 Gb/s", "2 us", "3.5") and returns it in the given unit; a
// number without a unit is taken to be in the given unit already. A count, which has no unit, may end in a multiplier
// ("15T", "8k", "4 Ki"). Returns nothing if the number is not finite, or if its unit measures something else. B is
// bytes, b is bits; k, M, G, T are powers of 1000 and Ki, Mi, Gi, Ti powers of 1024.
std::optional<double> parse_quantity(std::string_view text, std::string_view unit);

}  // namespace orrery
