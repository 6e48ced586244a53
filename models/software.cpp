#include "models/software.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/data.h"
#include "models/names.h"

namespace orrery {
namespace {

constexpr SoftwareKey kKeys[] = {
    {"rank_order", &Software::rank_order},
    {"stage_rule", &Software::stage_rule},
    {"vocab_multiple", &Software::vocab_multiple},
    {"schedule", &Software::schedule},
    {"uneven_interleaving", &Software::uneven_interleaving},
    {"interleave_group", &Software::interleave_group},
    {"selective_recompute", &Software::selective_recompute},
    {"sequence_parallel", &Software::sequence_parallel},
    {"expert_tensor_is_tensor", &Software::expert_tensor_is_tensor},
    {"dropout", &Software::dropout},
    {"attention", &Software::attention},
    {"attention_kernel", &Software::attention_kernel},
    {"fused_softmax", &Software::fused_softmax},
    {"fused_activation", &Software::fused_activation},
    {"fused_residual", &Software::fused_residual},
    {"fused_norm", &Software::fused_norm},
    {"fused_rotary", &Software::fused_rotary},
    {"attention_copies", &Software::attention_copies},
    {"fused_cross_entropy", &Software::fused_cross_entropy},
    {"fused_loss_on", &Software::fused_loss_on},
    {"loss_gradient_copies", &Software::loss_gradient_copies},
    {"keeps_logits", &Software::keeps_logits},
    {"loss_parallel_copies", &Software::loss_parallel_copies},
    {"loss_metrics", &Software::loss_metrics},
    {"casts_again", &Software::casts_again},
    {"fp8_activation_inputs", &Software::fp8_activation_inputs},
    {"packs_attention_output", &Software::packs_attention_output},
    {"fused_optimizer", &Software::fused_optimizer},
    {"fused_clip", &Software::fused_clip},
    {"dense_embedding_gradient", &Software::dense_embedding_gradient},
    {"gradient_accumulation_fusion", &Software::gradient_accumulation_fusion},
    {"compile", &Software::compile},
    {"cuda_graphs", &Software::cuda_graphs},
    {"regather_input", &Software::regather_input},
    {"tensor_reduce_overlaps_wgrad", &Software::tensor_reduce_overlaps_wgrad},
    {"own_rows_first", &Software::own_rows_first},
    {"nccl_minor", &Software::nccl_minor},
    {"scattered_sends", &Software::scattered_sends},
    {"sequence_copies", &Software::sequence_copies},
    {"blocking_receives", &Software::blocking_receives},
    {"blocking_forwards", &Software::blocking_forwards},
    {"blocking_steps", &Software::blocking_steps},
    {"validates_after_update", &Software::validates_after_update},
    {"batched_p2p", &Software::batched_p2p},
    {"bucket_MiB", &Software::bucket_MiB},
    {"bucket_elements", &Software::bucket_elements},
    {"bucket_elements_of_rank", &Software::bucket_elements_of_rank},
    {"buckets_for_overlap", &Software::buckets_for_overlap},
    {"sharded_in_one_bucket", &Software::sharded_in_one_bucket},
    {"one_queue", &Software::one_queue},
    {"buckets_on_first_chunk", &Software::buckets_on_first_chunk},
    {"shards_all_reduce", &Software::shards_all_reduce},
    {"overlap_gradient_reduce", &Software::overlap_gradient_reduce},
    {"overlap_sharded", &Software::overlap_sharded},
    {"overlap_parameter_gather", &Software::overlap_parameter_gather},
    {"overlap_pipeline", &Software::overlap_pipeline},
    {"gathers_eight_bit", &Software::gathers_eight_bit},
    {"keep_gradients_whole", &Software::keep_gradients_whole},
    {"accumulates_after_backward", &Software::accumulates_after_backward},
    {"gradient_average", &Software::gradient_average},
    {"unit_average", &Software::unit_average},
    {"gradient_buckets_beside", &Software::gradient_buckets_beside},
    {"widens_gradient_shards", &Software::widens_gradient_shards},
    {"whole_master", &Software::whole_master},
    {"dummy_gradients", &Software::dummy_gradients},
    {"unit_copies", &Software::unit_copies},
    {"kept_units", &Software::kept_units},
    {"launch_us", &Software::launch_us},
    {"call_us", &Software::call_us},
    {"backward_call_share", &Software::backward_call_share},
    {"collective_launch_us", &Software::collective_launch_us},
    {"layer_us", &Software::layer_us},
    {"far_stage_layer_us", &Software::far_stage_layer_us},
    {"micro_batch_us", &Software::micro_batch_us},
    {"step_us", &Software::step_us},
    {"rank_us", &Software::rank_us},
    {"segment_us", &Software::segment_us},
    {"blocking_launches", &Software::blocking_launches},
    {"expandable_segments", &Software::expandable_segments},
    {"moments", &Software::moments},
    {"gradients", &Software::gradients},
    {"flat_copies", &Software::flat_copies},
    {"host_layer_us", &Software::host_layer_us},
    {"collectives_hold_tensors", &Software::collectives_hold_tensors},
    {"gathers_lists", &Software::gathers_lists},
    {"context_MiB", &Software::context_MiB},
    {"workspace_MiB", &Software::workspace_MiB},
    {"buffers_MiB", &Software::buffers_MiB},
    {"logged_memory", &Software::logged_memory},
    {"logs_first_rank", &Software::logs_first_rank},
    {"logs_update", &Software::logs_update},
    {"gradient_precision", &Software::gradient_precision},
};

template <class T>
void assign(Software& software, T Software::*field, const nlohmann::json& value) {
  software.*field = value.get<T>();
}

}  // namespace

std::span<const SoftwareKey> software_keys() { return kKeys; }

Software find_software(std::string_view name) {
  const std::vector<std::string_view> known = data_names("software");
  if (std::find(known.begin(), known.end(), name) == known.end()) {
    throw Error(unknown_name("software", name, known));
  }
  const nlohmann::json json = nlohmann::json::parse(data_file(fmt::format("software/{}.json", name)));
  Software software;
  software.name = name;
  for (const SoftwareKey& key : kKeys) {
    const auto found = json.find(key.name);
    if (found == json.end()) continue;
    std::visit([&](auto field) { assign(software, field, *found); }, key.field);
  }
  return software;
}

}  // namespace orrery
