#pragma once

#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "models/trace/measured_times.h"

namespace orrery {

// The functions below read an operator of PyTorch as its profiler recorded it with record_shapes: {"name": "aten::mm",
// "args": {"Input Dims", "Input type", "Concrete Inputs"}}.

// Sizes (m, n, k) of a trace's forward matrix products; they tell which gradient a backward product of the same sizes
// computes.
using Products = std::set<std::vector<std::int64_t>>;
// Adds the sizes of the matrix product that an operator does, if it does one.
void add_product(const nlohmann::json& op, Products& products);

// The work of an operator, in the plan's terms, or the reason why it is not recognised. backward: the operator runs on
// autograd's thread. Matrix products get their role from their shape: dy (m, k) W (k, n) belongs to a forward product
// (m, k, n), dy^T x to (k, m, n), and x^T dy, the transpose of dy^T x, to (k, n, m).
using Recognised = std::variant<WorkShape, std::string>;
Recognised recognise(const nlohmann::json& op, bool backward, const Products& forward);

// Bytes of an element, by PyTorch's name of its data type as operators ("c10::BFloat16") or collectives ("BFloat16")
// state it; 0 for an unknown type.
Bytes element_bytes(const std::string& type);

}  // namespace orrery
