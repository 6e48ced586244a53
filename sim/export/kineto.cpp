#include "sim/export/kineto.h"

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/trace/measured_times.h"

namespace orrery {
namespace {

// The names of a collective in PyTorch (record_param_comms) and in NCCL (src/device/generate.py).
struct CollectiveNames {
  std::string_view torch, nccl;
  bool sums = false;  // whether NCCL has a separate function for each reduction operator and data type
  // in_is_part, out_is_part: whether a rank's input, or output, is only 1/n of the collective's buffer, with n the
  // number of ranks in the group.
  bool in_is_part = false;
  bool out_is_part = false;
};

const CollectiveNames& names_of(CollectiveKind kind) {
  static constexpr CollectiveNames names[] = {
      {"allreduce", "AllReduce", true, false, false},
      {"_allgather_base", "AllGather", false, true, false},
      {"_reduce_scatter_base", "ReduceScatter", true, false, true},
      {"broadcast", "Broadcast", false, false, false},
      {"reduce", "Reduce", true, false, false},
      {"all_to_allv", "SendRecv", false, false, false},
      {"coalesced", "SendRecv", false, false, false},
      {"gather", "SendRecv", false, true, false},
      {"scatter", "SendRecv", false, false, true},
      {"coalesced", "SendRecv", false, false, false},
      {"coalesced", "SendRecv", false, false, false},
  };
  return names[static_cast<std::size_t>(kind)];
}

struct TypeNames {
  std::string_view torch, nccl;
};

TypeNames type_of(Bytes width, Precision precision) {
  if (width == 4) return {"Float", "f32"};
  if (width == 1) return {"Byte", "u8"};
  return precision == Precision::fp16 ? TypeNames{"Half", "f16"} : TypeNames{"BFloat16", "bf16"};
}

std::string_view name_of(Phase phase) {
  static constexpr std::array<std::string_view, 5> names = {"forward", "backward", "input gradient", "weight gradient",
                                                            "step"};
  return names[static_cast<std::size_t>(phase)];
}

struct Group {
  std::int32_t index = 0;
  GroupList::Group ranks;
};

Group group_of(const Plan& plan, Dimension dimension, std::int64_t rank) {
  const GroupTable& table = plan.dimensions[static_cast<std::size_t>(dimension)];
  const std::int32_t index = table.member_of[rank];
  return {index, table.groups[index]};
}

// A list of ranks as text, such as "[0, 1]". From a list of more than 30 only some are written, as Kineto does.
std::string list_of(GroupList::Group ranks) {
  constexpr std::size_t kMost = 30;
  if (ranks.size() <= kMost) return fmt::format("[{}]", fmt::join(ranks, ", "));
  return fmt::format("[{}, ..., {}]", fmt::join(ranks.begin(), ranks.begin() + kMost - 1, ", "), ranks.back());
}

std::string group_arguments(Dimension dimension, const Group& group) {
  const std::string_view name = orrery::name_of(dimension);
  return fmt::format(
      R"(,"Group size":{},"Process Group Name":"{} {}","Process Group Description":"{}","Process Group Ranks":"{}")",
      group.ranks.size(), name, group.index, name, list_of(group.ranks));
}

std::string message(std::string_view name, std::int64_t in, std::int64_t out, std::string_view type) {
  return fmt::format(R"(,"Collective name":"{}","In msg nelems":{},"Out msg nelems":{},"dtype":"{}")", name, in, out,
                     type);
}

std::string arguments_of(const Plan& plan, std::int64_t rank, const Collective& c, Precision precision) {
  const CollectiveNames& names = names_of(c.kind);
  const Group group = group_of(plan, c.group, rank);
  const std::int64_t whole = ceil_div(c.bytes, c.width);
  const std::int64_t part = ceil_div(whole, static_cast<std::int64_t>(group.ranks.size()));
  return message(names.torch, names.in_is_part ? part : whole, names.out_is_part ? part : whole,
                 type_of(c.width, precision).torch) +
         group_arguments(c.group, group);
}

std::string arguments_of(const Plan& plan, std::int64_t rank, const Transfer& t, Precision precision) {
  const Group group = group_of(plan, Dimension::pipeline, rank);
  const auto size = static_cast<std::int64_t>(group.ranks.size());
  const std::int64_t place = std::find(group.ranks.begin(), group.ranks.end(), rank) - group.ranks.begin();
  const std::int64_t peer = group.ranks[((place + t.offset) % size + size) % size];
  const std::int64_t elements = ceil_div(t.bytes, plan.element_bytes);
  return message(t.send ? "send" : "recv", elements, elements, type_of(plan.element_bytes, precision).torch) +
         group_arguments(Dimension::pipeline, group) +
         fmt::format(R"(,"Src Rank":{},"Dst Rank":{})", t.send ? rank : peer, t.send ? peer : rank);
}

}  // namespace

std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string kernel_name(const Op& op) {
  if (std::holds_alternative<Transfer>(op.work)) return "ncclDevKernel_SendRecv";
  const auto* c = std::get_if<Collective>(&op.work);
  if (c == nullptr) return op.name;
  if (c->algorithm == kCopyEngines) return "Memcpy PtoP (Device -> Device)";
  const CollectiveNames& names = names_of(c->kind);
  std::string name = fmt::format("ncclDevKernel_{}", names.nccl);
  if (names.sums) name += fmt::format("_Sum_{}", type_of(c->width, op.precision).nccl);
  if (c->algorithm == "library") return name;
  name += '_';
  for (const char letter : c->algorithm) {
    name += static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  }
  return name;
}

std::string kernel_arguments(const Plan& plan, std::uint32_t slot, const Op& op) {
  const Cost cost = cost_of(op.work, plan.element_bytes);
  const WorkShape shape = shape_of(op.work, plan.element_bytes);
  std::string text = fmt::format(R"("op":{},"phase":"{}","flops":{:.0f},"bytes":{:.0f})", json_string(op.name),
                                 name_of(op.phase), cost.flops, cost.bytes);
  if (!moves(op))
    text += fmt::format(R"(,"kind":"{}","sizes":[{:.0f}],"amount":{:.0f})", shape.kind, fmt::join(shape.sizes, ","),
                        shape.amount);
  const std::int64_t rank = plan.classes[slot].representative;
  if (const auto* c = std::get_if<Collective>(&op.work)) text += arguments_of(plan, rank, *c, op.precision);
  if (const auto* t = std::get_if<Transfer>(&op.work)) text += arguments_of(plan, rank, *t, op.precision);
  return text;
}

}  // namespace orrery
