#include "sim/explain/techniques_memory.h"

#include <utility>

#include <fmt/format.h>

#include "models/partition/rank_groups.h"

namespace orrery {

void add_experts(const Spec& spec, std::vector<Technique>& list) {
  const Strategy& s = spec.strategy;
  if (!has_experts(spec) || s.expert == 1) return;
  const auto held = [&](const Model& m) {
    return !m.moe ? "" : fmt::format("{} of {} experts", m.moe->experts / s.expert, m.moe->experts);
  };
  std::string text = held(spec.model);
  if (spec.second && spec.second->model.moe)
    text +=
        fmt::format("{}{} of the {}", text.empty() ? "" : ", ", held(spec.second->model), name_of(spec.second->role));
  list.push_back({fmt::format("expert parallelism over {} ranks", s.expert), true, "a rank holds " + text,
                  "an all-to-all to the experts and one back, forward and backward, and waiting for the fullest rank",
                  "without it", changed(spec, [](Strategy& x) { x.expert = x.expert_tensor = 1; }), "expert"});
}

void add_memory(const Spec& spec, std::vector<Technique>& list) {
  const Strategy& s = spec.strategy;
  const auto add = [&](std::string name, std::string saves, std::string costs, const char* without,
                       const std::function<void(Strategy&)>& change) {
    list.push_back({std::move(name), true, std::move(saves), std::move(costs), without, changed(spec, change)});
  };
  if (s.partition_activations)
    add("partitioned checkpoints (ZeRO-R)", fmt::format("inputs that layers keep for backward are 1/{}", s.tensor),
        "each is gathered over the tensor ranks before its layer runs again", "without it",
        [](Strategy& x) { x.partition_activations = false; });
  if (s.contiguous_activations)
    add("checkpoints side by side (ZeRO-R)", "what is kept long leaves no holes between what is not",
        "its room is taken before the first step, and inputs are copied there", "without it",
        [](Strategy& x) { x.contiguous_activations = false; });
  if (s.fused_buffers)
    add("buffers of constant size (ZeRO-R)", "what gradients are reduced in does not grow with the model",
        "gradients are copied there and back, bucket by bucket", "without them",
        [](Strategy& x) { x.fused_buffers = false; });
  if (s.offload.tiling > 1)
    add(fmt::format("operators in {} tiles", s.offload.tiling),
        "of a large product's weights one tile is gathered at a time", "smaller products and gathers, and more of them",
        "without them", [](Strategy& x) { x.offload.tiling = 1; });
  if (s.attention == Attention::unfused)
    list.push_back({"flash attention", false, "", "", "with flash attention",
                    changed(spec, [](Strategy& x) { x.attention = Attention::flash; })});
  Spec flat = spec;
  bool staged = false;
  for (Model* model : {&flat.model, flat.second ? &flat.second->model : nullptr}) {
    if (model != nullptr && model->moe) staged = std::exchange(model->moe->hierarchical_dispatch, false) || staged;
  }
  if (staged && s.expert > 1) {
    list.push_back({"two-stage dispatch", true, "a token crosses the network once for each node that has its experts",
                    "a second way inside the node", "with flat dispatch", flat});
  }
}

}  // namespace orrery
