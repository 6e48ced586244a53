#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "models/trace/measured_times.h"

namespace orrery {

// The functions below read one operator of a PyTorch trace, as the profiler records it with record_shapes: {"name":
// "aten::mm", "args": {"Input Dims", "Input type", "Concrete Inputs"}}.

// Sizes (m, n, k) of the forward matrix products (m x k by k x n) in a trace, and sizes (rows, experts, n, k) of the
// grouped products of experts. They tell which gradient a product in backward computes.
using Products = std::set<std::vector<std::int64_t>>;
// Adds the sizes of the operator's matrix product, if the operator is a matrix product.
void add_product(const nlohmann::json& op, Products& products);

// The work of a PyTorch operator as an op of a plan has it, or the reason why the operator is not recognised. backward:
// whether the operator runs on autograd's thread. The sizes (m, n, k) of a matrix product in backward (an m x k by a k
// x n matrix) tell its role: if a forward product has sizes (m, k, n), it computes the gradient of that product's
// input; if one has sizes (k, m, n) or (k, n, m), it computes the gradient of the weight or that gradient's transpose.
using Recognised = std::variant<WorkShape, std::string>;
Recognised recognise(const nlohmann::json& op, bool backward, const Products& forward);

// Bytes of one element of a tensor; 0 for an unknown type. type: PyTorch's name of the data type, as operators
// ("c10::BFloat16") or collectives ("BFloat16") write it.
Bytes element_bytes(const std::string& type);

// Orrery's name of a collective ("all_gather"; "message" for a send or a receive); "" for an unknown one. torch:
// PyTorch's name of the collective ("_allgather_base").
std::string_view collective_of_torch(std::string_view torch);

}  // namespace orrery
