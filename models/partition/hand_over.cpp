#include "models/partition/hand_over.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "models/partition/rank_groups.h"

namespace orrery {

HandOver hand_over_of(const Spec& spec) {
  const Strategy& other = *spec.second->strategy;
  const Strategy &from = spec.second->alone ? spec.strategy : other, &to = spec.second->alone ? other : spec.strategy;
  const auto times = [](std::int64_t a, std::int64_t b) { return std::max<std::int64_t>(1, a / b); };
  return {times(from.tensor, to.tensor), times(from.data, to.data), times(to.tensor, from.tensor),
          times(to.data, from.data)};
}

GroupTable hand_over_groups(const Spec& spec) {
  const HandOver h = hand_over_of(spec);
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, std::int32_t> known;
  GroupTable table;
  std::int32_t groups = 0;
  const auto add = [&](const Strategy& s, std::int64_t by_tensor, std::int64_t by_data) {
    for (const Coordinates& c : coordinates(s)) {
      if (c.pipeline + 1 < s.pipeline) {
        table.member_of.push_back(groups++);
        continue;
      }
      const auto [it, fresh] = known.try_emplace({c.context, c.data / by_data, c.tensor / by_tensor}, groups);
      if (fresh) ++groups;
      table.member_of.push_back(it->second);
    }
  };
  add(spec.strategy, h.receivers_by_tensor, h.receivers_by_data);
  add(second_spec(spec).strategy, h.senders_by_tensor, h.senders_by_data);
  table.groups = GroupList(table.member_of, static_cast<std::size_t>(groups));
  return table;
}

HandedPart handed_part(const Spec& spec, std::int64_t sender, std::int64_t receiver, std::int64_t elements,
                       bool columns_cut) {
  const bool sends = spec.second->alone;
  const HandOver h = hand_over_of(spec);
  const Strategy other = sends ? *spec.second->strategy : second_spec(spec).strategy;
  const Strategy &senders = sends ? spec.strategy : other, &receivers = sends ? other : spec.strategy;
  const Coordinates from = coordinates(senders)[static_cast<std::size_t>(sender - receivers.gpus())];
  const Coordinates to = coordinates(receivers)[static_cast<std::size_t>(receiver)];
  const std::int64_t from_tensor = from.tensor % h.senders_by_tensor, from_data = from.data % h.senders_by_data;
  const std::int64_t to_tensor = to.tensor % h.receivers_by_tensor, to_data = to.data % h.receivers_by_data;
  if (columns_cut) {
    const std::int64_t n = elements / (sends ? h.receivers() : h.senders());
    return {(to_tensor * h.receivers_by_data + to_data) * n, (from_tensor * h.senders_by_data + from_data) * n, n};
  }
  // All tensor ranks of the frozen model have the same rows, and each sends an equal share of them.
  const std::int64_t n = elements / (sends ? h.receivers_by_data : h.senders_by_data) / h.senders_by_tensor;
  return {(to_data * h.senders_by_tensor + from_tensor) * n, (from_data * h.senders_by_tensor + from_tensor) * n, n};
}

}  // namespace orrery
