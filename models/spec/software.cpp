#include "models/spec/software.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/base/data.h"
#include "models/base/names.h"

namespace orrery {
namespace {

constexpr SoftwareKey kKeys[] = {
    {"layout", "rank_order", &Software::rank_order},
    {"layout", "stage_rule", &Software::stage_rule},
    {"layout", "vocab_multiple", &Software::vocab_multiple},
    {"layout", "schedule", &Software::schedule},
    {"layout", "uneven_interleaving", &Software::uneven_interleaving},
    {"layout", "interleave_group", &Software::interleave_group},
    {"layout", "selective_recompute", &Software::selective_recompute},
    {"layout", "sequence_parallel", &Software::sequence_parallel},
    {"layout", "expert_tensor_is_tensor", &Software::expert_tensor_is_tensor},
    {"layout", "dropout", &Software::dropout},
    {"kernels", "attention", &Software::attention},
    {"kernels", "attention_kernel", &Software::attention_kernel},
    {"kernels", "fused_softmax", &Software::fused_softmax},
    {"kernels", "fused_activation", &Software::fused_activation},
    {"kernels", "fused_residual", &Software::fused_residual},
    {"kernels", "fused_norm", &Software::fused_norm},
    {"kernels", "fused_rotary", &Software::fused_rotary},
    {"kernels", "attention_copies", &Software::attention_copies},
    {"kernels", "fused_cross_entropy", &Software::fused_cross_entropy},
    {"kernels", "fused_loss_on", &Software::fused_loss_on},
    {"kernels", "loss_gradient_copies", &Software::loss_gradient_copies},
    {"kernels", "loss_parallel_copies", &Software::loss_parallel_copies},
    {"kernels", "keeps_logits", &Software::keeps_logits},
    {"kernels", "loss_metrics", &Software::loss_metrics},
    {"kernels", "casts_again", &Software::casts_again},
    {"kernels", "fp8_activation_inputs", &Software::fp8_activation_inputs},
    {"kernels", "packs_attention_output", &Software::packs_attention_output},
    {"kernels", "fused_optimizer", &Software::fused_optimizer},
    {"kernels", "fused_clip", &Software::fused_clip},
    {"kernels", "dense_embedding_gradient", &Software::dense_embedding_gradient},
    {"kernels", "gradient_accumulation_fusion", &Software::gradient_accumulation_fusion},
    {"kernels", "compile", &Software::compile},
    {"kernels", "cuda_graphs", &Software::cuda_graphs},
    {"communication", "regather_input", &Software::regather_input},
    {"communication", "tensor_reduce_overlaps_wgrad", &Software::tensor_reduce_overlaps_wgrad},
    {"communication", "nccl_minor", &Software::nccl_minor},
    {"communication", "scattered_sends", &Software::scattered_sends},
    {"communication", "sequence_copies", &Software::sequence_copies},
    {"communication", "blocking_receives", &Software::blocking_receives},
    {"communication", "blocking_forwards", &Software::blocking_forwards},
    {"communication", "blocking_steps", &Software::blocking_steps},
    {"communication", "validates_after_update", &Software::validates_after_update},
    {"communication", "batched_p2p", &Software::batched_p2p},
    {"communication", "bucket_MiB", &Software::bucket_MiB},
    {"communication", "bucket_elements", &Software::bucket_elements},
    {"communication", "bucket_elements_of_rank", &Software::bucket_elements_of_rank},
    {"communication", "buckets_for_overlap", &Software::buckets_for_overlap},
    {"communication", "sharded_in_one_bucket", &Software::sharded_in_one_bucket},
    {"communication", "shards_all_reduce", &Software::shards_all_reduce},
    {"communication", "overlap_gradient_reduce", &Software::overlap_gradient_reduce},
    {"communication", "own_rows_first", &Software::own_rows_first},
    {"communication", "overlap_sharded", &Software::overlap_sharded},
    {"communication", "one_queue", &Software::one_queue},
    {"communication", "buckets_on_first_chunk", &Software::buckets_on_first_chunk},
    {"communication", "overlap_parameter_gather", &Software::overlap_parameter_gather},
    {"communication", "overlap_pipeline", &Software::overlap_pipeline},
    {"communication", "gathers_eight_bit", &Software::gathers_eight_bit},
    {"communication", "keep_gradients_whole", &Software::keep_gradients_whole},
    {"communication", "accumulates_after_backward", &Software::accumulates_after_backward},
    {"communication", "gradient_average", &Software::gradient_average},
    {"communication", "unit_average", &Software::unit_average},
    {"communication", "gradient_buckets_beside", &Software::gradient_buckets_beside},
    {"communication", "widens_gradient_shards", &Software::widens_gradient_shards},
    {"communication", "whole_master", &Software::whole_master},
    {"communication", "dummy_gradients", &Software::dummy_gradients},
    {"communication", "unit_copies", &Software::unit_copies},
    {"communication", "kept_units", &Software::kept_units},
    {"host", "launch_us", &Software::launch_us},
    {"host", "call_us", &Software::call_us},
    {"host", "backward_call_share", &Software::backward_call_share},
    {"host", "collective_launch_us", &Software::collective_launch_us},
    {"host", "layer_us", &Software::layer_us},
    {"host", "far_stage_layer_us", &Software::far_stage_layer_us},
    {"host", "micro_batch_us", &Software::micro_batch_us},
    {"host", "step_us", &Software::step_us},
    {"host", "rank_us", &Software::rank_us},
    {"host", "segment_us", &Software::segment_us},
    {"host", "blocking_launches", &Software::blocking_launches},
    {"host", "host_layer_us", &Software::host_layer_us},
    {"memory", "expandable_segments", &Software::expandable_segments},
    {"memory", "moments", &Software::moments},
    {"memory", "gradients", &Software::gradients},
    {"memory", "flat_copies", &Software::flat_copies},
    {"memory", "collectives_hold_tensors", &Software::collectives_hold_tensors},
    {"memory", "gathers_lists", &Software::gathers_lists},
    {"memory", "context_MiB", &Software::context_MiB},
    {"memory", "workspace_MiB", &Software::workspace_MiB},
    {"memory", "buffers_MiB", &Software::buffers_MiB},
    {"memory", "gradient_precision", &Software::gradient_precision},
    {"log", "logged_memory", &Software::logged_memory},
    {"log", "logs_first_rank", &Software::logs_first_rank},
    {"log", "logs_update", &Software::logs_update},
};

const SoftwareKey& find_key(std::string_view group, std::string_view name) {
  for (const SoftwareKey& key : kKeys) {
    if (key.name == name && (group.empty() || key.group == group)) return key;
  }
  throw Error(fmt::format("software: no '{}' in '{}'", name, group));
}

void assign(Software& software, const SoftwareKey& key, const nlohmann::json& value) {
  std::visit([&](auto field) { value.get_to(software.*field); }, key.field);
}

// Numbers that were fitted to measured steps stand in one file for all stacks.
void take_fitted_numbers(Software& software, std::string_view name) {
  static const nlohmann::json file = nlohmann::json::parse(data_file("fitted.json"));
  const std::string holder = fmt::format("software {}", name);
  for (const nlohmann::json& number : file.at("numbers")) {
    const nlohmann::json& holders = number.at("of");
    if (std::find(holders.begin(), holders.end(), holder) != holders.end())
      assign(software, find_key("", number.at("key").get<std::string>()), number.at("value"));
  }
}

}  // namespace

std::span<const SoftwareKey> software_keys() { return kKeys; }

Software find_software(std::string_view name) {
  const std::vector<std::string_view> known = data_names("software");
  if (std::find(known.begin(), known.end(), name) == known.end()) {
    throw Error(unknown_name("software", name, known));
  }
  const nlohmann::json file = nlohmann::json::parse(data_file(fmt::format("software/{}.json", name)));
  Software software;
  if (const auto like = file.find("like"); like != file.end()) software = find_software(like->get<std::string>());
  software.name = name;
  for (const auto& [group, features] : file.items()) {
    if (!features.is_object()) continue;  // "about" and "like"
    for (const auto& [key, feature] : features.items()) assign(software, find_key(group, key), feature.at("value"));
  }
  take_fitted_numbers(software, name);
  return software;
}

}  // namespace orrery
