// Table of the options of torchtitan's TOML files and command line (torchtitan/config/job_config.py). Rows marked as
// older are options of the 2024 schema.
#include "models/schedule/framework_names.h"
#include "sim/launch/framework.h"

namespace orrery {
namespace torchtitan_table {

constexpr OptionWord kModes[] = {{"none", "none"}, {"selective", "selective"}, {"full", "full"}};
constexpr OptionWord kOperations[] = {{"op", ""}};
constexpr OptionWord kPrecisions[] = {
    {"bfloat16", "bf16"}, {"float16", "fp16"}, {"float32", "fp32"}, {"bfloat16", "fp8"}, {"bfloat16", "mxfp8"}};
constexpr OptionWord kConverters[] = {
    {"float8", "fp8"}, {"quantize.linear.float8", "fp8"}, {"mx", "mxfp8"}, {"quantize.linear.mx", "mxfp8"}};
constexpr OptionWord kFloat8[] = {{"true", "fp8"}, {"false", ""}};
constexpr OptionWord kReduce[] = {{"float32", "fp32"}, {"bfloat16", "bf16"}};
constexpr OptionWord kReshard[] = {{"always", "fsdp"}, {"always", "hsdp"}, {"never", "fsdp-grad-op"}, {"default", ""}};
constexpr OptionWord kRotate[] = {{"allgather", "allgather"}, {"alltoall", "ring"}};
constexpr OptionWord kOptimizers[] = {{"AdamW", "adamw"}, {"Adam", "adam"}, {"SGD", "sgd"}};
constexpr OptionWord kOnHost[] = {{"true", "cpu"}, {"false", "none"}};

constexpr OptionRow kRows[] = {
    {"model.name", "launch.model_name", {}, {}, false, true},
    {"model.flavor", "launch.model_flavor", {}, {}, false, true},
    {"training.seq_len", "sequence"},
    {"training.batch_size", "launch.local_batch", {}, {}, true},
    {"training.local_batch_size", "launch.local_batch"},
    {"training.global_batch_size", "strategy.global_batch"},
    {"training.max_norm", "strategy.clip"},
    {"training.mixed_precision_param", "strategy.precision", kPrecisions, "bf16"},
    {"model.converters", "strategy.precision", kConverters},
    {"training.mixed_precision_reduce", "strategy.gradient_precision", kReduce},
    {"training.compile", "software.compile", kFlag, {}, true},
    {"compile.enable", "software.compile", kFlag},
    {"training.enable_cpu_offload", "strategy.offload.optimizer", kOnHost},
    {"training.enable_cpu_offload", "strategy.offload.parameters", kOnHost},
    {"parallelism.data_parallel_replicate_degree", "launch.replicate"},
    {"training.data_parallel_replicate_degree", "launch.replicate", {}, {}, true},
    {"parallelism.data_parallel_shard_degree", "launch.shard"},
    {"training.data_parallel_shard_degree", "launch.shard", {}, {}, true},
    {"training.data_parallel_degree", "launch.shard", {}, {}, true},
    {"parallelism.fsdp_reshard_after_forward", "strategy.sharding", kReshard},
    {"parallelism.tensor_parallel_degree", "strategy.tensor"},
    {"training.tensor_parallel_degree", "strategy.tensor", {}, {}, true},
    {"parallelism.enable_async_tensor_parallel", "strategy.overlap.tensor", kFlag},
    {"experimental.enable_async_tensor_parallel", "strategy.overlap.tensor", kFlag, {}, true},
    {"parallelism.pipeline_parallel_degree", "strategy.pipeline"},
    {"experimental.pipeline_parallel_degree", "strategy.pipeline", {}, {}, true},
    {"parallelism.pipeline_parallel_schedule", "strategy.schedule", kTorchSchedules},
    {"experimental.pipeline_parallel_schedule", "strategy.schedule", kTorchSchedules, {}, true},
    {"parallelism.pipeline_parallel_microbatch_size", "launch.pipeline_micro_batch"},
    {"parallelism.pipeline_parallel_layers_per_stage", "launch.layers_per_virtual_stage"},
    {"parallelism.context_parallel_degree", "strategy.context"},
    {"experimental.context_parallel_degree", "strategy.context", {}, {}, true},
    {"parallelism.context_parallel_rotate_method", "strategy.context_kind", kRotate},
    {"parallelism.expert_parallel_degree", "strategy.expert"},
    {"parallelism.expert_tensor_parallel_degree", "strategy.expert_tensor"},
    {"activation_checkpoint.mode", "strategy.recompute", kModes},
    {"activation_checkpoint.selective_ac_option", "", kOperations},
    {"float8.enable_float8_linear", "strategy.precision", kFloat8, {}, true},
    {"optimizer.name", "strategy.optimizer", kOptimizers},
};
constexpr std::string_view kSigns[] = {"parallelism.tensor_parallel_degree",
                                       "parallelism.data_parallel_shard_degree",
                                       "training.seq_len",
                                       "training.local_batch_size",
                                       "training.batch_size",
                                       "training.tensor_parallel_degree",
                                       "activation_checkpoint."};
constexpr std::string_view kIgnored[] = {"job.",
                                         "profiling.",
                                         "metrics.",
                                         "model.norm_type",
                                         "model.tokenizer",
                                         "model.hf_assets",
                                         "optimizer.lr",
                                         "optimizer.eps",
                                         "optimizer.beta",
                                         "optimizer.weight",
                                         "lr_scheduler.",
                                         "training.warmup",
                                         "training.steps",
                                         "training.dataset",
                                         "training.seed",
                                         "training.deterministic",
                                         "checkpoint.",
                                         "comm.",
                                         "validation.",
                                         "compile.components",
                                         "fault_tolerance.",
                                         "float8.",
                                         "quantize.",
                                         "experimental.custom",
                                         "debug."};

}  // namespace torchtitan_table

const Framework& torchtitan() {
  static const Framework framework{"torchtitan",
                                   "torchtitan",
                                   "torchtitan",
                                   Syntax::toml,
                                   {launcher_rows(), torchtitan_table::kRows},
                                   {},
                                   torchtitan_table::kSigns,
                                   torchtitan_table::kIgnored};
  return framework;
}

}  // namespace orrery
