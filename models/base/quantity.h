#pragma once

#include <optional>
#include <string_view>

namespace orrery {

// The unit that the end of a key names: "bucket_MiB" -> "MiB", "cluster.nvme.TB" -> "TB", "tensor" -> "".
std::string_view unit_of_key(std::string_view key);

// A figure with or without a unit ("80 GiB", "400 Gb/s", "2 us", "3.5"), in the given unit; a bare figure has it
// already. A figure that has no unit may be one of thousands, millions ("15T", "8k", "4 Ki"). Nothing when it is no
// finite number, or its unit is of another kind. B is bytes, b is bits; k, M, G, T are powers of 1000 and Ki, Mi, Gi,
// Ti powers of 1024.
std::optional<double> parse_quantity(std::string_view text, std::string_view unit);

}  // namespace orrery
