// Table of the options of Accelerate's YAML files (huggingface.co/docs/accelerate, FSDP, DeepSpeed and Megatron
// plugins).
#include "sim/launch/framework.h"

namespace orrery {
namespace accelerate_table {

constexpr OptionWord kStacks[] = {{"FSDP", "pytorch-fsdp"},
                                  {"MULTI_GPU", "pytorch-fsdp"},
                                  {"NO", "pytorch-fsdp"},
                                  {"DEEPSPEED", "megatron-deepspeed-2022"},
                                  {"MEGATRON_LM", "megatron-core"}};
constexpr OptionWord kPlain[] = {
    {"MULTI_GPU", "none"}, {"NO", "none"}, {"FSDP", ""}, {"DEEPSPEED", ""}, {"MEGATRON_LM", ""}};
constexpr OptionWord kPrecisions[] = {{"no", "fp32"}, {"bf16", "bf16"}, {"fp16", "fp16"}, {"fp8", "fp8"}};
constexpr OptionWord kVersions[] = {{"2", "fsdp"}, {"2", "fsdp-grad-op"}, {"1", ""}, {"1", "hsdp"}, {"1", "none"}};
constexpr OptionWord kStrategies[] = {{"FULL_SHARD", "fsdp"},
                                      {"SHARD_GRAD_OP", "fsdp-grad-op"},
                                      {"HYBRID_SHARD", "hsdp"},
                                      {"NO_SHARD", "none"},
                                      {"1", "fsdp"},
                                      {"2", "fsdp-grad-op"},
                                      {"3", "none"},
                                      {"4", "hsdp"}};
constexpr OptionWord kReshard[] = {{"true", "fsdp"},         {"false", "fsdp-grad-op"},
                                   {"FULL_SHARD", "fsdp"},   {"SHARD_GRAD_OP", "fsdp-grad-op"},
                                   {"HYBRID_SHARD", "hsdp"}, {"NO_SHARD", "none"}};
constexpr OptionWord kOnHost[] = {{"true", "cpu"}, {"false", "none"}};
constexpr OptionWord kRecompute[] = {{"true", "full"}, {"false", "none"}};
constexpr OptionWord kSelective[] = {{"true", "selective"}, {"false", ""}};
constexpr OptionWord kStages[] = {{"0", "none"}, {"1", "zero1"}, {"2", "zero2"}, {"3", "zero3"}};
constexpr OptionWord kDevices[] = {{"none", "none"}, {"cpu", "cpu"}, {"nvme", "nvme"}};
constexpr OptionWord kPrefetch[] = {{"BACKWARD_PRE", ""}};
constexpr OptionWord kWrap[] = {{"TRANSFORMER_BASED_WRAP", ""}};
constexpr OptionWord kZero1[] = {{"true", "zero1"}, {"false", ""}};

constexpr OptionRow kRows[] = {
    {"distributed_type", "software", kStacks},
    {"distributed_type", "strategy.sharding", kPlain, {}, true},
    {"num_processes", "gpus"},
    {"num_machines", "launch.machines"},
    {"mixed_precision", "strategy.precision", kPrecisions},
    {"gradient_accumulation_steps", "launch.accumulation", {}, {}, true},
    {"fsdp_config.fsdp_version", "strategy.sharding", kVersions, {}, true},
    {"fsdp_config.fsdp_sharding_strategy", "strategy.sharding", kStrategies},
    {"fsdp_config.fsdp_reshard_after_forward", "strategy.sharding", kReshard, {}, true},
    {"fsdp_config.fsdp_offload_params", "strategy.offload.parameters", kOnHost},
    {"fsdp_config.fsdp_offload_params", "strategy.offload.optimizer", kOnHost},
    {"fsdp_config.fsdp_activation_checkpointing", "strategy.recompute", kRecompute},
    {"fsdp_config.fsdp_backward_prefetch", "", kPrefetch},
    {"fsdp_config.fsdp_auto_wrap_policy", "", kWrap},
    {"parallelism_config.parallelism_config_tp_size", "strategy.tensor"},
    {"parallelism_config.parallelism_config_cp_size", "strategy.context"},
    {"parallelism_config.parallelism_config_dp_replicate_size", "launch.replicate"},
    {"parallelism_config.parallelism_config_dp_shard_size", "launch.shard"},
    {"deepspeed_config.zero_stage", "strategy.sharding", kStages, {}, true},
    {"deepspeed_config.offload_optimizer_device", "strategy.offload.optimizer", kDevices, {}, true},
    {"deepspeed_config.offload_param_device", "strategy.offload.parameters", kDevices, {}, true},
    {"deepspeed_config.gradient_accumulation_steps", "launch.accumulation", {}, {}, true},
    {"deepspeed_config.gradient_clipping", "strategy.clip", {}, {}, true},
    {"megatron_lm_config.megatron_lm_tp_degree", "strategy.tensor", {}, {}, true},
    {"megatron_lm_config.megatron_lm_pp_degree", "strategy.pipeline", {}, {}, true},
    {"megatron_lm_config.megatron_lm_num_micro_batches", "launch.accumulation", {}, {}, true},
    {"megatron_lm_config.megatron_lm_sequence_parallelism", "strategy.sequence_parallel", kFlag, {}, true},
    {"megatron_lm_config.megatron_lm_recompute_activations", "strategy.recompute", kSelective, {}, true},
    {"megatron_lm_config.megatron_lm_use_distributed_optimizer", "strategy.sharding", kZero1, {}, true},
    {"megatron_lm_config.megatron_lm_gradient_clipping", "strategy.clip", {}, {}, true},
    {"dynamo_config.dynamo_backend", "launch.compile", {}, {}, false, true},
};
constexpr std::string_view kSigns[] = {"compute_environment", "distributed_type", "fsdp_config.",
                                       "parallelism_config."};
constexpr std::string_view kIgnored[] = {"compute_environment",
                                         "debug",
                                         "downcast_bf16",
                                         "enable_cpu_affinity",
                                         "machine_rank",
                                         "main_process",
                                         "main_training",
                                         "rdzv",
                                         "same_network",
                                         "tpu_",
                                         "use_cpu",
                                         "fsdp_config.fsdp_cpu_ram",
                                         "fsdp_config.fsdp_state_dict",
                                         "fsdp_config.fsdp_sync_module",
                                         "fsdp_config.fsdp_use_orig",
                                         "deepspeed_config.deepspeed_multinode",
                                         "deepspeed_config.deepspeed_hostfile",
                                         "deepspeed_config.zero3_init",
                                         "deepspeed_config.zero3_save",
                                         "gpu_ids",
                                         "commands",
                                         "command_file",
                                         "tpu",
                                         "dynamo_config",
                                         "fsdp_config.fsdp_transformer_layer"};
constexpr std::string_view kRefers[] = {"deepspeed_config.deepspeed_config_file"};

}  // namespace accelerate_table

const Framework& accelerate() {
  static const Framework framework{"fsdp",
                                   "Accelerate",
                                   "pytorch-fsdp",
                                   Syntax::yaml,
                                   {accelerate_table::kRows},
                                   {},
                                   accelerate_table::kSigns,
                                   accelerate_table::kIgnored,
                                   {},
                                   accelerate_table::kRefers};
  return framework;
}

}  // namespace orrery
