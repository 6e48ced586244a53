// Table of the options of nanotron's YAML files (nanotron/config).
#include "models/schedule/framework_names.h"
#include "sim/launch/framework.h"

namespace orrery {
namespace nanotron_table {

constexpr OptionWord kModes[] = {{"REDUCE_SCATTER", "true"}, {"ALL_REDUCE", "false"}};
constexpr OptionWord kRecompute[] = {{"true", "full"}, {"false", "none"}};
constexpr OptionWord kStages[] = {{"0", "none"}, {"1", "zero1"}};
constexpr OptionWord kGradients[] = {{"true", "fp32"}, {"false", "bf16"}};
constexpr OptionWord kPrecisions[] = {{"bfloat16", "bf16"}, {"float16", "fp16"}, {"float32", "fp32"}};
constexpr OptionWord kOptimizers[] = {{"adamW", "adamw"}, {"sgd", "sgd"}};
constexpr OptionWord kActivations[] = {{"silu", "true"}};
constexpr OptionWord kAttention[] = {{"flash_attention_2", "flash"},
                                     {"sdpa", "flash"},
                                     {"llama3_ring_attention", "flash"},
                                     {"ring_flash_triton", "flash"}};
constexpr OptionWord kDispatchers[] = {{"alltoall", ""}};

constexpr OptionRow kRows[] = {
    {"parallelism.dp", "strategy.data"},
    {"parallelism.tp", "strategy.tensor"},
    {"parallelism.pp", "strategy.pipeline"},
    {"parallelism.context_parallel_size", "strategy.context"},
    {"parallelism.expert_parallel_size", "strategy.expert"},
    {"parallelism.expert_tensor_parallel_size", "strategy.expert_tensor"},
    {"parallelism.tp_mode", "strategy.sequence_parallel", kModes},
    {"parallelism.pp_engine", "strategy.schedule", kNanotronSchedules},
    {"parallelism.recompute_layer", "strategy.recompute", kRecompute},
    {"tokens.micro_batch_size", "strategy.micro_batch"},
    {"tokens.batch_accumulation_per_replica", "launch.accumulation"},
    {"tokens.sequence_length", "sequence"},
    {"optimizer.zero_stage", "strategy.sharding", kStages},
    {"optimizer.accumulate_grad_in_fp32", "strategy.gradient_precision", kGradients},
    {"optimizer.clip_grad", "strategy.clip"},
    {"optimizer.optimizer_factory.name", "strategy.optimizer", kOptimizers},
    {"model.dtype", "strategy.precision", kPrecisions},
    {"model.ddp_bucket_cap_mb", "strategy.bucket_MiB"},
    {"model.make_vocab_size_divisible_by", "software.vocab_multiple", {}, {}, true},
    {"model.model_config.num_hidden_layers", "model.layers"},
    {"model.model_config.hidden_size", "model.hidden"},
    {"model.model_config.num_attention_heads", "model.heads"},
    {"model.model_config.num_key_value_heads", "model.kv_heads"},
    {"model.model_config.intermediate_size", "model.feed_forward"},
    {"model.model_config.vocab_size", "model.vocab"},
    {"model.model_config.tie_word_embeddings", "model.tied_embeddings", kFlag},
    {"model.model_config.attention_bias", "model.qkv_bias", kFlag},
    {"model.model_config.hidden_act", "model.gated", kActivations},
    {"model.model_config.sliding_window_size", "model.sliding_window"},
    {"model.model_config._attn_implementation", "strategy.attention", kAttention},
    {"model.model_config.moe_config.num_experts", "model.moe.experts"},
    {"model.model_config.moe_config.top_k", "model.moe.top_k"},
    {"model.model_config.moe_config.moe_intermediate_size", "model.moe.feed_forward"},
    {"model.model_config.moe_config.shared_expert_intermediate_size", "model.moe.shared_feed_forward"},
    {"model.model_config.moe_config.token_dispatcher_type", "", kDispatchers},
};
constexpr std::string_view kSigns[] = {"parallelism.dp", "parallelism.tp", "parallelism.pp_engine",
                                       "tokens.micro_batch_size", "model.model_config."};
constexpr std::string_view kIgnored[] = {"checkpoints.",
                                         "checkpoints",
                                         "data_stages",
                                         "general.",
                                         "lighteval",
                                         "logging.",
                                         "metrics_logging",
                                         "profiler",
                                         "s3_upload",
                                         "tokenizer.",
                                         "tokens.limit",
                                         "tokens.train_steps",
                                         "tokens.val",
                                         "optimizer.learning_rate",
                                         "optimizer.weight_decay",
                                         "optimizer.optimizer_factory.",
                                         "model.init_method",
                                         "model.model_config.bos",
                                         "model.model_config.eos",
                                         "model.model_config.pad",
                                         "model.model_config.initializer",
                                         "model.model_config.is_",
                                         "model.model_config.max_position",
                                         "model.model_config.rms_norm_eps",
                                         "model.model_config.rope",
                                         "model.model_config.use_cache",
                                         "model.model_config.pretraining_tp",
                                         "model.model_config.z_loss",
                                         "model.model_config.ring_attn"};

}  // namespace nanotron_table

const Framework& nanotron() {
  static const Framework framework{"nanotron",
                                   "nanotron",
                                   "nanotron",
                                   Syntax::yaml,
                                   {nanotron_table::kRows},
                                   {},
                                   nanotron_table::kSigns,
                                   nanotron_table::kIgnored};
  return framework;
}

}  // namespace orrery
