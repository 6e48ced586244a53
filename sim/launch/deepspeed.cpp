// Table of the options of DeepSpeed's JSON configuration (deepspeed.ai, config-json).
#include "sim/launch/framework.h"

namespace orrery {
namespace deepspeed_table {

constexpr OptionWord kStages[] = {{"0", "none"}, {"1", "zero1"}, {"2", "zero2"}, {"3", "zero3"}};
constexpr OptionWord kDevices[] = {{"none", "none"}, {"cpu", "cpu"}, {"nvme", "nvme"}};
constexpr OptionWord kBf16[] = {{"true", "bf16"}, {"false", ""}};
constexpr OptionWord kFp16[] = {{"true", "fp16"}, {"false", ""}};
constexpr OptionWord kAccumulation[] = {{"fp32", "fp32"}, {"fp16", "fp16"}, {"bf16", "bf16"}};
constexpr OptionWord kOptimizers[] = {{"AdamW", "adamw"}, {"Adam", "adamw"}, {"SGD", "sgd"}, {"FusedAdam", "adamw"}};
constexpr OptionWord kOnHost[] = {{"true", "cpu"}, {"false", "none"}};

constexpr OptionRow kRows[] = {
    {"train_batch_size", "strategy.global_batch"},
    {"train_micro_batch_size_per_gpu", "strategy.micro_batch"},
    {"gradient_accumulation_steps", "launch.accumulation"},
    {"zero_optimization.stage", "strategy.sharding", kStages},
    {"zero_optimization.offload_optimizer.device", "strategy.offload.optimizer", kDevices},
    {"zero_optimization.offload_param.device", "strategy.offload.parameters", kDevices},
    {"zero_optimization.overlap_comm", "strategy.overlap.gradient_reduce", kFlag},
    {"bf16.enabled", "strategy.precision", kBf16},
    {"fp16.enabled", "strategy.precision", kFp16},
    {"data_types.grad_accum_dtype", "strategy.gradient_precision", kAccumulation},
    {"gradient_clipping", "strategy.clip"},
    {"optimizer.type", "strategy.optimizer", kOptimizers},
    {"tensor_parallel.autotp_size", "strategy.tensor"},
    {"activation_checkpointing.partition_activations", "strategy.partition_activations", kFlag},
    {"activation_checkpointing.contiguous_memory_optimization", "strategy.contiguous_activations", kFlag},
    {"activation_checkpointing.cpu_checkpointing", "strategy.offload.activations", kOnHost},
};
constexpr std::string_view kSigns[] = {"zero_optimization.", "zero_optimization", "train_micro_batch_size_per_gpu",
                                       "train_batch_size"};
constexpr std::string_view kIgnored[] = {"_comment",
                                         "comment",
                                         "steps_per_print",
                                         "wall_clock_breakdown",
                                         "zero_allow_untested",
                                         "zero_force_ds_cpu",
                                         "optimizer.params",
                                         "scheduler.",
                                         "fp16.",
                                         "bf16.",
                                         "tensorboard",
                                         "wandb",
                                         "csv_monitor",
                                         "flops_profiler",
                                         "zero_optimization.stage3_gather_16bit",
                                         "zero_optimization.offload_param.nvme_path",
                                         "zero_optimization.offload_optimizer.nvme_path",
                                         "zero_optimization.ignore_unused",
                                         "curriculum_learning",
                                         "data_efficiency",
                                         "checkpoint.",
                                         "dump_state",
                                         "load_from_fp32",
                                         "elastic"};

}  // namespace deepspeed_table

const Framework& deepspeed() {
  static const Framework framework{"deepspeed",
                                   "DeepSpeed",
                                   "megatron-deepspeed-2022",
                                   Syntax::json,
                                   {deepspeed_table::kRows},
                                   {},
                                   deepspeed_table::kSigns,
                                   deepspeed_table::kIgnored};
  return framework;
}

}  // namespace orrery
