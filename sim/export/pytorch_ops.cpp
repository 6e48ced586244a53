#include "sim/export/pytorch_ops.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/base/names.h"
#include "models/base/sensible.h"

namespace orrery {
namespace {

using TorchShape = std::vector<std::int64_t>;

// Reasons for which operators are not recognised. The user is shown how many operators of each name there are for each
// reason.
constexpr char kNoShapes[] = "without shapes; record with record_shapes=True";
constexpr char kOther[] = "no op of a plan, or one that is not told from the trace";
constexpr char kRole[] = "products of which forward or backward cannot be told";
constexpr char kMask[] = "attention that is not causal";
constexpr char kType[] = "on a type that is neither 16 nor 32 bits wide";

// Most elements along one dimension of a tensor.
constexpr std::int64_t kMostExtent = std::int64_t{1} << 31;
constexpr double kMostTensor = 1e15;  // most elements of a tensor

// The shape of an operator's input; empty if there is no such input, if the shape was not recorded, or if no GPU could
// hold a tensor of that shape.
TorchShape torch_shape(const nlohmann::json& op, std::size_t input) {
  const auto args = op.find("args");
  if (args == op.end() || !args->is_object() || !args->contains("Input Dims")) return {};
  const nlohmann::json& dims = args->at("Input Dims");
  if (!dims.is_array() || input >= dims.size() || !dims[input].is_array()) return {};
  TorchShape shape;
  double elements = 1;
  for (const nlohmann::json& d : dims[input]) {
    if (!d.is_number_integer()) return {};  // the input is a list of tensors, so its shape is unknown
    shape.push_back(d.get<std::int64_t>());
    elements *= static_cast<double>(shape.back());
    if (shape.back() < 1 || shape.back() > kMostExtent || elements > kMostTensor) return {};
  }
  return shape;
}

std::string torch_text(const nlohmann::json& op, const char* key, std::size_t input) {
  const auto args = op.find("args");
  if (args == op.end() || !args->is_object() || !args->contains(key)) return "";
  const nlohmann::json& list = args->at(key);
  return list.is_array() && input < list.size() && list[input].is_string() ? list[input].get<std::string>() : "";
}

std::int64_t leading_rows(const TorchShape& s) {
  return std::accumulate(s.begin(), s.end() - 1, std::int64_t{1}, std::multiplies<>());
}

// An operator of a PyTorch trace that is to be recognised, with what is needed to recognise it.
struct SeenOperator {
  const nlohmann::json& op;
  const OperatorPlace& place;
  const Products& forward;
  TorchShape first;  // shape of the input of the operator that table kOperators says is read
};

// The meaning of a recognised operator: an op of a plan, or the shape of a kernel that no plan has, with its kind's
// name without precision.
using Meant = std::variant<Work, WorkShape, const char*>;

// Whether the operator also adds a matrix to its product, which is then its input before the two factors.
bool adds_to_product(const std::string& name) {
  return name == "aten::addmm" || name == "aten::_addmm_activation" || name == "aten::baddbmm";
}

std::optional<TorchShape> torch_product_of(const nlohmann::json& op) {
  const auto name = op.value("name", "");
  if (name != "aten::mm" && name != "aten::addmm" && name != "aten::_addmm_activation") return std::nullopt;
  const std::size_t first = adds_to_product(name) ? 1 : 0;
  const TorchShape a = torch_shape(op, first), b = torch_shape(op, first + 1);
  if (a.size() != 2 || b.size() != 2) return std::nullopt;
  return TorchShape{a[0], b[1], a[1]};
}

Gemm torch_gemm(const TorchShape& mnk, Gemm::Role role) {
  return {.m = mnk[0], .n = mnk[1], .k = mnk[2], .role = role};
}

// The sizes (rows, experts, n, k) of a grouped matrix product, which multiplies rows (rows, k), sorted by expert, by
// one matrix (k, n) for each expert; nullopt for other operators. They are four sizes and a plain product has three, so
// that one set can hold both.
std::optional<TorchShape> torch_grouped_of(const nlohmann::json& op) {
  if (op.value("name", "") != "aten::_grouped_mm") return std::nullopt;
  const TorchShape a = torch_shape(op, 0), b = torch_shape(op, 1);
  if (a.size() != 2 || b.size() != 3) return std::nullopt;
  return TorchShape{a[0], b[0], b[2], b[1]};
}

// Recognises a grouped matrix product: either rows by the experts' matrices or, for the gradients of the experts'
// weights, a matrix (in, rows) by a matrix (rows, out), with rows sorted by expert.
Meant torch_grouped_product(const SeenOperator& s) {
  const TorchShape b = torch_shape(s.op, 1), ends = torch_shape(s.op, 2);
  if (s.first.size() != 2 || ends.size() != 1) return kNoShapes;
  if (b.size() == 2)
    return GroupedGemm{
        .groups = ends[0], .rows = b[0], .out = b[1], .in = s.first[0], .role = Gemm::Role::weight_gradient};
  const auto p = torch_grouped_of(s.op);
  if (!p) return kNoShapes;
  const std::int64_t rows = (*p)[0], groups = (*p)[1], n = (*p)[2], k = (*p)[3];
  if (s.place.backward && s.forward.count({rows, groups, k, n}) > 0)
    return GroupedGemm{.groups = groups, .rows = rows, .out = k, .in = n, .role = Gemm::Role::input_gradient};
  if (!s.place.backward || s.forward.count(*p) > 0)
    return GroupedGemm{.groups = groups, .rows = rows, .out = n, .in = k};
  return kRole;
}

// Recognises a product inside a node of autograd by the gradient that the node received, `gradient` (tokens, out);
// nullopt if that does not tell. The sizes (m, n, k) of a weight's gradient are out, in and tokens.
std::optional<Gemm> gradient_product(const TorchShape& mnk, const TorchShape& gradient) {
  if (gradient.size() != 2) return std::nullopt;
  const std::int64_t m = mnk[0], n = mnk[1], k = mnk[2], tokens = gradient[0], out = gradient[1];
  const bool input = m == tokens && k == out, weight = k == tokens && n == out, transposed = k == tokens && m == out;
  if (input && (weight || transposed)) return std::nullopt;  // square matrices
  if (input) return torch_gemm(mnk, Gemm::Role::input_gradient);
  if (transposed) return torch_gemm(mnk, Gemm::Role::weight_gradient);
  if (weight) return torch_gemm({n, m, k}, Gemm::Role::weight_gradient);
  return std::nullopt;
}

Meant torch_product(const SeenOperator& s) {
  const auto p = torch_product_of(s.op);
  if (!p) return kNoShapes;
  const std::int64_t m = (*p)[0], n = (*p)[1], k = (*p)[2];
  if (!s.place.backward) return torch_gemm({m, n, k}, Gemm::Role::output);
  if (const auto gemm = gradient_product(*p, s.place.gradient)) return *gemm;
  if (s.forward.count({m, k, n}) > 0) return torch_gemm({m, n, k}, Gemm::Role::input_gradient);
  if (s.forward.count({k, m, n}) > 0) return torch_gemm({m, n, k}, Gemm::Role::weight_gradient);
  if (s.forward.count({k, n, m}) > 0) return torch_gemm({n, m, k}, Gemm::Role::weight_gradient);
  // Either a forward product had the same sizes, so that this product in backward repeats it (recomputation of
  // activations), or nothing tells its role.
  return torch_gemm({m, n, k}, Gemm::Role::output);
}

// Recognises products of many matrices: (batch, m, k) by (batch, k, n).
Meant torch_batched_product(const SeenOperator& s) {
  const TorchShape b = torch_shape(s.op, adds_to_product(s.op.value("name", "")) ? 2 : 1);
  if (s.first.size() != 3 || b.size() != 3) return kNoShapes;
  const auto real = [](std::int64_t x) { return static_cast<double>(x); };
  const double batch = real(s.first[0]), m = real(s.first[1]), k = real(s.first[2]), n = real(b[2]);
  return WorkShape{"gemm/batched", {m, n, k, batch}, 2 * m * n * k * batch};
}

// Recognises attention. The input q_input, the queries, has the shape (batch, sequence, heads, head_dim) or, with
// heads_first, (batch, heads, sequence, head_dim); the keys are the next input.
Meant torch_attention(const SeenOperator& s, std::size_t q_input, std::size_t causal, bool heads_first,
                      Direction direction) {
  const TorchShape k = torch_shape(s.op, q_input + 1);
  if (s.first.size() != 4 || k.size() != 4) return kNoShapes;
  if (torch_text(s.op, "Concrete Inputs", causal) != "True") return kMask;
  const std::size_t heads = heads_first ? 1 : 2, sequence = heads_first ? 2 : 1;
  return FlashAttention{.batch = s.first[0],
                        .heads = s.first[heads],
                        .kv_heads = k[heads],
                        .query = s.first[sequence],
                        .key = k[sequence],
                        .head_dim = s.first[3],
                        .value_dim = s.first[3],
                        .direction = direction};
}

template <std::size_t q, std::size_t causal, bool heads_first, Direction direction>
Meant torch_attention(const SeenOperator& s) {
  return torch_attention(s, q, causal, heads_first, direction);
}

template <bool layernorm, Direction direction>
Meant torch_norm(const SeenOperator& s) {
  return Normalize{
      .rows = leading_rows(s.first), .columns = s.first.back(), .layernorm = layernorm, .direction = direction};
}

template <Direction direction>
Meant torch_gelu(const SeenOperator& s) {
  return Activation{.rows = leading_rows(s.first), .columns = s.first.back(), .gated = false, .direction = direction};
}

// Recognises the sum of two activations of the same shape: an addition to the residual stream or, in backward, a
// gradient with two contributions.
Meant torch_sum(const SeenOperator& s) {
  if (s.first.size() < 2 || s.first != torch_shape(s.op, 1)) return kOther;
  if (s.place.backward) return Add{leading_rows(s.first) * s.first.back()};
  return Residual{.rows = leading_rows(s.first), .columns = s.first.back()};
}

// The PyTorch operators that are recognised, each with the index of the input whose shape is read. The position of
// is_causal among the inputs is known from the operators' signatures (native_functions.yaml;
// flash_attn/flash_attn_interface.py).
struct Operator {
  std::string_view name;
  std::size_t input;
  Meant (*meant)(const SeenOperator&);
};
constexpr Direction kForward = Direction::forward, kBackward = Direction::backward;
constexpr Operator kOperators[] = {
    {"aten::mm", 0, torch_product},
    {"aten::addmm", 1, torch_product},
    {"aten::_addmm_activation", 1, torch_product},
    {"aten::bmm", 0, torch_batched_product},
    {"aten::baddbmm", 1, torch_batched_product},
    {"aten::_grouped_mm", 0, torch_grouped_product},
    {"aten::_flash_attention_forward", 0, torch_attention<0, 8, false, kForward>},
    {"aten::_flash_attention_backward", 1, torch_attention<1, 11, false, kBackward>},
    {"aten::_scaled_dot_product_cudnn_attention", 0, torch_attention<0, 6, true, kForward>},
    {"aten::_scaled_dot_product_cudnn_attention_backward", 1, torch_attention<1, 14, true, kBackward>},
    {"aten::_cudnn_attention_forward", 0, torch_attention<0, 10, true, kForward>},
    {"aten::_cudnn_attention_backward", 1, torch_attention<1, 14, true, kBackward>},
    {"flash_attn::_flash_attn_forward", 0, torch_attention<0, 5, false, kForward>},
    {"flash_attn::_flash_attn_backward", 1, torch_attention<1, 11, false, kBackward>},
    {"aten::native_layer_norm", 0, torch_norm<true, kForward>},
    {"aten::native_layer_norm_backward", 0, torch_norm<true, kBackward>},
    {"aten::_fused_rms_norm", 0, torch_norm<false, kForward>},
    {"aten::_fused_rms_norm_backward", 0, torch_norm<false, kBackward>},
    {"aten::gelu", 0, torch_gelu<kForward>},
    {"aten::gelu_backward", 0, torch_gelu<kBackward>},
    {"aten::add", 0, torch_sum},
    {"aten::add_", 0, torch_sum},
};

struct ElementType {
  std::string_view name;
  Bytes bytes;
};
constexpr ElementType kTypes[] = {{"float", 4}, {"c10::BFloat16", 2}, {"c10::Half", 2},  {"Float", 4},  {"BFloat16", 2},
                                  {"Half", 2},  {"Double", 8},        {"Long", 8},       {"Int", 4},    {"Short", 2},
                                  {"Byte", 1},  {"Char", 1},          {"Bool", 1},       {"double", 8}, {"long int", 8},
                                  {"int", 4},   {"Float8_e4m3fn", 1}, {"Float8_e5m2", 1}};

struct TorchCollective {
  std::string_view text, kind;
};
// PyTorch's names of collectives ("Collective name" of record_param_comms), and the names that Orrery uses.
constexpr TorchCollective kTorchCollectives[] = {{"allreduce", "all_reduce"},
                                                 {"allreduce_coalesced", "all_reduce"},
                                                 {"_allgather_base", "all_gather"},
                                                 {"all_gather", "all_gather"},
                                                 {"allgather", "all_gather"},
                                                 {"all_gather_into_tensor_coalesced", "all_gather"},
                                                 {"allgather_into_tensor_coalesced", "all_gather"},
                                                 {"_reduce_scatter_base", "reduce_scatter"},
                                                 {"reduce_scatter", "reduce_scatter"},
                                                 {"reduce_scatter_tensor_coalesced", "reduce_scatter"},
                                                 {"broadcast", "broadcast"},
                                                 {"_broadcast_oop", "broadcast"},
                                                 {"reduce", "reduce"},
                                                 {"_reduce_oop", "reduce"},
                                                 {"all_to_all", "all_to_all"},
                                                 {"all_to_allv", "all_to_all"},
                                                 {"send", "message"},
                                                 {"recv", "message"}};

}  // namespace

std::string_view collective_of_torch(std::string_view torch) {
  for (const TorchCollective& n : kTorchCollectives) {
    if (n.text == torch) return n.kind;
  }
  return "";
}

Bytes element_bytes(const std::string& type) {
  const auto found =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](const ElementType& t) { return t.name == type; });
  return found == std::end(kTypes) ? 0 : found->bytes;
}

void add_product(const nlohmann::json& op, Products& products) {
  if (const auto p = torch_product_of(op)) products.insert(*p);
  if (const auto p = torch_grouped_of(op)) products.insert(*p);
}

Recognised recognise(const nlohmann::json& op, const OperatorPlace& place, const Products& forward) {
  const auto name = op.value("name", "");
  const auto refused = [&](const char* reason) {
    return fmt::format("{}: {}", printable(name.substr(0, sensible::kLongestWord)), reason);
  };
  for (const Operator& o : kOperators) {
    if (o.name != name) continue;
    const SeenOperator seen{op, place, forward, torch_shape(op, o.input)};
    if (seen.first.empty()) return refused(kNoShapes);
    const Bytes width = element_bytes(torch_text(op, "Input type", o.input));
    if (width != 2 && width != 4) return refused(kType);
    Meant meant = o.meant(seen);
    if (const auto* reason = std::get_if<const char*>(&meant)) return refused(*reason);
    if (auto* shape = std::get_if<WorkShape>(&meant))
      return WorkShape{fmt::format("{} {}", shape->kind, width == 2 ? "bf16" : "fp32"), shape->sizes, shape->amount};
    Work& work = std::get<Work>(meant);
    // The result of a PyTorch matrix product has the data type of the inputs.
    if (auto* product = std::get_if<Gemm>(&work)) product->result_bytes = width;
    if (auto* product = std::get_if<GroupedGemm>(&work)) product->result_bytes = width;
    return shape_of(work, width);
  }
  return refused(kOther);
}

std::vector<std::int64_t> first_shape(const nlohmann::json& op) { return torch_shape(op, 0); }

std::string_view precision_of(const nlohmann::json& op) {
  static constexpr std::pair<std::string_view, std::string_view> kPrecisions[] = {
      {"c10::BFloat16", "bf16"}, {"c10::Half", "fp16"}, {"float", "fp32"},
      {"BFloat16", "bf16"},      {"Half", "fp16"},      {"Float", "fp32"}};
  constexpr std::size_t kMostInputs = 3;  // tensors come first among an operator's inputs
  for (std::size_t input = 0; input < kMostInputs; ++input) {
    const std::string type = torch_text(op, "Input type", input);
    for (const auto& [torch, precision] : kPrecisions) {
      if (type == torch) return precision;
    }
  }
  return "";
}

}  // namespace orrery
