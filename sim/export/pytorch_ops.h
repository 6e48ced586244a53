#pragma once

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

// The place of an operator in its trace, which its own event does not tell. backward: whether the operator runs on
// autograd's thread. gradient: shape of the gradient that the node of autograd around the operator receives ("Input
// Dims" of AddmmBackward0); empty: not known.
struct OperatorPlace {
  bool backward = false;
  std::vector<std::int64_t> gradient;
};

// The work of a PyTorch operator as an op of a plan has it, or the reason ("aten::sort: no op of a plan") why the
// operator is not recognised. A matrix product in backward (an m x k by a k x n matrix) computes the gradient of a
// product's input or of its weight. The gradient that the node around it received tells which, for it is the first
// factor of the former, and the second factor, or the transposed first one, of the latter. Without a node, sizes of
// forward products tell it: if one has sizes (m, k, n), this is the gradient of that product's input; if one has sizes
// (k, m, n) or (k, n, m), of the weight or that gradient's transpose. A product of which none of this tells the role,
// as in graphs of TorchScript, counts as a forward product: products of equal sizes and different roles differ in the
// layout of their factors alone. Products of many small matrices (aten::bmm) are of a kind of their own, gemm/batched,
// with the number of matrices as their fourth size.
using Recognised = std::variant<WorkShape, std::string>;
Recognised recognise(const nlohmann::json& op, const OperatorPlace& place, const Products& forward);

// The shape of an operator's first input; empty if it was not recorded.
std::vector<std::int64_t> first_shape(const nlohmann::json& op);
// Precision of the operator's first input that is a matrix of numbers: "bf16", "fp16" or "fp32"; "" if the trace does
// not tell, or for another type.
std::string_view precision_of(const nlohmann::json& op);

// Bytes of one element of a tensor; 0 for an unknown type. type: PyTorch's name of the data type, as operators
// ("c10::BFloat16") or collectives ("BFloat16") write it.
Bytes element_bytes(const std::string& type);

// Orrery's name of a collective ("all_gather"; "message" for a send or a receive); "" for an unknown one. torch:
// PyTorch's name of the collective ("_allgather_base").
std::string_view collective_of_torch(std::string_view torch);

}  // namespace orrery
