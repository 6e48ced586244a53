// Table of the options of Megatron-LM (megatron/training/arguments.py), of its forks and of Primus.
#include "sim/launch/framework.h"

namespace orrery {
namespace megatron_table {

constexpr OptionWord kShardsOptimizer[] = {{"true", "zero1"}, {"true", "zero2"}, {"true", "fsdp"}, {"false", "none"}};
constexpr OptionWord kMegatronFsdp[] = {{"true", "fsdp"}, {"true", "zero2"}, {"false", ""}};
constexpr OptionWord kShardingStrategy[] = {
    {"optim_grads", "zero2"}, {"optim_grads_params", "fsdp"}, {"optim", ""}, {"no_shard", ""}};
constexpr OptionWord kShardsLess[] = {
    {"no_shard", "none"}, {"optim", "zero1"}, {"optim_grads", ""}, {"optim_grads_params", ""}};
constexpr OptionWord kStages[] = {{"0", "none"}, {"1", "zero1"}, {"2", "zero2"}, {"3", "zero3"}};
constexpr OptionWord kBf16[] = {{"true", "bf16"}, {"true", "fp8"}, {"true", "mxfp8"}, {"false", ""}};
constexpr OptionWord kFp16[] = {{"true", "fp16"}, {"false", ""}};
constexpr OptionWord kFp8[] = {{"hybrid", "fp8"}, {"e4m3", "fp8"}, {"e4m3", "mxfp8"}, {"true", "fp8"}, {"false", ""}};
constexpr OptionWord kFp8Recipe[] = {{"mxfp8", "mxfp8"}, {"delayed", ""}};
constexpr OptionWord kGradientsFp32[] = {{"true", "fp32"}, {"false", ""}};
constexpr OptionWord kGradientsBf16[] = {{"true", "bf16"}, {"false", ""}};
constexpr OptionWord kGranularity[] = {{"full", "full"}, {"selective", "selective"}, {"null", "none"}};
constexpr OptionWord kSelective[] = {{"true", "selective"}, {"false", ""}};
constexpr OptionWord kFull[] = {{"true", "full"}, {"false", ""}};
constexpr OptionWord kOldMethod[] = {{"uniform", "full"}, {"block", "full"}};
constexpr OptionWord kBackend[] = {
    {"flash", "flash"}, {"fused", "flash"}, {"auto", "flash"}, {"unfused", "unfused"}, {"local", "unfused"}};
constexpr OptionWord kFlash[] = {{"true", "flash"}, {"false", ""}};
constexpr OptionWord kOnHost[] = {{"true", "cpu"}, {"false", "none"}};
constexpr OptionWord kDeepSpeed[] = {{"true", "megatron-deepspeed-2022"}};
constexpr OptionWord kOptimizers[] = {{"adam", "adamw"}, {"adamw", "adamw"}, {"sgd", "sgd"}};
constexpr OptionWord kNorms[] = {{"LayerNorm", "layernorm"}, {"RMSNorm", "rmsnorm"}};
constexpr OptionWord kPositions[] = {{"rope", "rope"}, {"learned_absolute", "learned"}, {"none", "none"}};
constexpr OptionWord kRope[] = {{"true", "rope"}, {"false", ""}};
constexpr OptionWord kGatedToo[] = {{"true", "true"}, {"false", ""}};
constexpr OptionWord kNotGated[] = {{"true", "false"}, {"false", ""}};
constexpr OptionWord kDispatchers[] = {{"alltoall", ""}};
constexpr OptionWord kBalanced[] = {{"true", "1"}, {"false", ""}};
constexpr OptionWord kLocalGraphs[] = {{"true", "local"}, {"false", ""}};
constexpr OptionWord kOuterGraphs[] = {{"true", "transformer_engine"}, {"false", ""}};
constexpr OptionWord kScores[] = {{"softmax", "softmax"}, {"sigmoid", "sigmoid"}};

constexpr OptionRow kStrategyRows[] = {
    {"tensor_model_parallel_size", "strategy.tensor"},
    {"pipeline_model_parallel_size", "strategy.pipeline"},
    {"virtual_pipeline_model_parallel_size", "strategy.virtual_stages", {}, {}, true},
    {"num_virtual_stages_per_pipeline_rank", "strategy.virtual_stages"},
    {"num_layers_per_virtual_pipeline_stage", "launch.layers_per_virtual_stage"},
    {"context_parallel_size", "strategy.context"},
    {"expert_model_parallel_size", "strategy.expert"},
    {"expert_tensor_parallel_size", "strategy.expert_tensor"},
    {"sequence_parallel", "strategy.sequence_parallel", kFlag, "false"},
    {"micro_batch_size", "strategy.micro_batch"},
    {"global_batch_size", "strategy.global_batch"},
    {"use_distributed_optimizer", "strategy.sharding", kShardsOptimizer},
    {"use_megatron_fsdp", "strategy.sharding", kMegatronFsdp},
    {"use_torch_fsdp2", "strategy.sharding", kMegatronFsdp, {}, true},
    {"data_parallel_sharding_strategy", "strategy.sharding", kShardingStrategy},
    {"data_parallel_sharding_strategy", "strategy.sharding", kShardsLess, {}, true},
    {"zero_stage", "strategy.sharding", kStages, {}, true},
    {"bf16", "strategy.precision", kBf16, "fp32"},
    {"fp16", "strategy.precision", kFp16},
    {"fp8", "strategy.precision", kFp8, {}, true},
    {"fp8_format", "strategy.precision", kFp8},
    {"fp8_recipe", "strategy.precision", kFp8Recipe},
    {"accumulate_allreduce_grads_in_fp32", "strategy.gradient_precision", kGradientsFp32},
    {"grad_reduce_in_fp32", "strategy.gradient_precision", kGradientsFp32, {}, true},
    {"grad_reduce_in_bf16", "strategy.gradient_precision", kGradientsBf16},
    {"recompute_granularity", "strategy.recompute", kGranularity},
    {"recompute_activations", "strategy.recompute", kSelective, {}, true},
    {"checkpoint_activations", "strategy.recompute", kFull, {}, true},
    {"activations_checkpoint_method", "strategy.recompute", kOldMethod, {}, true},
    {"recompute_modules", "launch.recompute_modules", {}, {}, false, true},
    {"recompute_method", "launch.recompute_method", {}, {}, false, true},
    {"cuda_graph_impl", "launch.graph_impl", {}, {}, true, true},
    {"enable_cuda_graph", "launch.graph_impl", kLocalGraphs, {}, true},
    {"external_cuda_graph", "launch.graph_impl", kOuterGraphs, {}, true},
    {"cuda_graph_scope", "launch.graph_scope", {}, {}, true, true},
    {"recompute_num_layers", "launch.recompute_num_layers"},
    {"distribute_saved_activations", "strategy.partition_activations", kFlag},
    {"partition_activations", "strategy.partition_activations", kFlag, {}, true},
    {"overlap_grad_reduce", "strategy.overlap.gradient_reduce", kFlag, "false"},
    {"overlap_param_gather", "strategy.overlap.parameter_gather", kFlag, "false"},
    {"tp_comm_overlap", "strategy.overlap.tensor", kFlag},
    {"no_overlap_p2p_communication", "strategy.overlap.pipeline", kUnless},
    {"overlap_moe_expert_parallel_comm", "strategy.overlap.micro_batches", kFlag},
    {"moe_shared_expert_overlap", "strategy.overlap.expert", kFlag},
    {"use_flash_attn", "strategy.attention", kFlash, {}, true},
    {"attention_backend", "strategy.attention", kBackend},
    {"optimizer_cpu_offload", "strategy.offload.optimizer", kOnHost},
    {"cpu_optimizer", "strategy.offload.optimizer", kOnHost, {}, true},
    {"optimizer", "strategy.optimizer", kOptimizers},
    {"clip_grad", "strategy.clip"},
    {"deepspeed", "software", kDeepSpeed},
    {"step_batch_size_schedule", "launch.batch_schedule", {}, {}, true, true},
    {"rampup_batch_size", "launch.batch_schedule", {}, {}, true, true},
};
constexpr OptionRow kModelRows[] = {
    {"num_layers", "model.layers"},
    {"hidden_size", "model.hidden"},
    {"num_attention_heads", "model.heads"},
    {"num_query_groups", "model.kv_heads"},
    {"group_query_attention", "launch.grouped", kFlag},
    {"kv_channels", "model.head_dim"},
    {"ffn_hidden_size", "model.feed_forward"},
    {"seq_length", "sequence"},
    {"max_position_embeddings", "launch.max_positions"},
    {"vocab_size", "model.vocab"},
    {"padded_vocab_size", "model.vocab", {}, {}, true},
    {"make_vocab_size_divisible_by", "software.vocab_multiple", {}, {}, true},
    {"swiglu", "model.gated", kFlag, "false"},
    {"squared_relu", "model.gated", kNotGated, {}, true},
    {"quick_geglu", "model.gated", kGatedToo, {}, true},
    {"activation_func_clamp_value", "model.activation_clamp"},
    {"untie_embeddings_and_output_weights", "model.tied_embeddings", kUnless, "true"},
    {"normalization", "model.norm", kNorms, "layernorm"},
    {"disable_bias_linear", "model.bias", kUnless, "true"},
    {"add_bias_linear", "model.bias", kFlag, {}, true},
    {"add_qkv_bias", "model.qkv_bias", kFlag},
    {"qk_layernorm", "model.qk_norm", kFlag},
    {"use_rotary_position_embeddings", "model.positions", kRope, {}, true},
    {"position_embedding_type", "model.positions", kPositions, "learned"},
    {"attention_dropout", "model.dropout", {}, {}, true},
    {"hidden_dropout", "model.dropout", {}, "0.1"},
    {"mtp_num_layers", "model.mtp_layers"},
    {"num_experts", "model.moe.experts"},
    {"moe_router_topk", "model.moe.top_k"},
    {"moe_ffn_hidden_size", "model.moe.feed_forward"},
    {"moe_shared_expert_intermediate_size", "model.moe.shared_feed_forward"},
    {"moe_layer_freq", "launch.moe_layer_freq", {}, {}, false, true},
    {"moe_router_score_function", "model.moe.score", kScores},
    {"moe_aux_loss_coeff", "model.moe.aux_loss"},
    {"moe_expert_capacity_factor", "model.moe.capacity_factor"},
    {"moe_pad_expert_input_to_capacity", "model.moe.pad_to_capacity", kFlag},
    {"moe_router_enable_expert_bias", "model.moe.correction_bias", kFlag},
    {"moe_router_num_groups", "model.moe.expert_groups"},
    {"moe_router_group_topk", "model.moe.top_groups"},
    {"moe_shared_expert_gate", "model.moe.shared_gate", kFlag},
    {"moe_router_force_load_balancing", "model.moe.imbalance", kBalanced},
    {"moe_token_dispatcher_type", "", kDispatchers},
    {"multi_latent_attention", "launch.latent", kFlag},
    {"q_lora_rank", "model.mla.q_lora_rank"},
    {"kv_lora_rank", "model.mla.kv_lora_rank"},
    {"qk_head_dim", "model.mla.qk_nope_head_dim"},
    {"qk_pos_emb_head_dim", "model.mla.qk_rope_head_dim"},
    {"v_head_dim", "model.mla.v_head_dim"},
};
constexpr std::string_view kPrefixes[] = {"MODEL_ARGS.", "modules.pre_trainer.overrides.", "language_model.",
                                          "model_parallel."};
constexpr std::string_view kSigns[] = {"tensor_model_parallel_size", "num_attention_heads", "num_layers", "MODEL_ARGS.",
                                       "modules.pre_trainer."};
constexpr std::string_view kIgnored[] = {"lr",
                                         "min_lr",
                                         "decoupled_",
                                         "weight_decay",
                                         "adam_",
                                         "sgd_",
                                         "init_method",
                                         "seed",
                                         "train_",
                                         "eval_",
                                         "test_",
                                         "valid_",
                                         "exit_",
                                         "data_",
                                         "dataset",
                                         "split",
                                         "mock_data",
                                         "tokenizer",
                                         "vocab_file",
                                         "merge_file",
                                         "num_workers",
                                         "dataloader",
                                         "no_mmap",
                                         "mmap",
                                         "no_create_attention_mask",
                                         "save",
                                         "load",
                                         "ckpt",
                                         "async_save",
                                         "use_persistent_ckpt",
                                         "dist_ckpt",
                                         "use_dist_ckpt",
                                         "no_load",
                                         "no_save",
                                         "finetune",
                                         "auto_continue",
                                         "disable_last_saving",
                                         "override_opt",
                                         "use_checkpoint",
                                         "log",
                                         "timing_log",
                                         "tensorboard",
                                         "wandb",
                                         "disable_wandb",
                                         "disable_tensorboard",
                                         "profile",
                                         "use_pytorch_profiler",
                                         "distributed_timeout",
                                         "distributed_backend",
                                         "use_mcore_models",
                                         "loss_scale",
                                         "initial_loss_scale",
                                         "min_loss_scale",
                                         "hysteresis",
                                         "rotary_",
                                         "rope_",
                                         "norm_epsilon",
                                         "layernorm_epsilon",
                                         "eod_mask",
                                         "reset_",
                                         "stderr_sink",
                                         "file_sink",
                                         "deepspeed_config",
                                         "deepspeed_activation",
                                         "no_pipeline_parallel",
                                         "modules.pre_trainer.config",
                                         "modules.pre_trainer.framework",
                                         "work_group",
                                         "user_name",
                                         "exp_name",
                                         "workspace",
                                         "TEST_TYPE",
                                         "LAUNCHER",
                                         "METRICS",
                                         "ENV_VARS.N",
                                         "moe_router_topk_scaling",
                                         "moe_router_load_balancing_type",
                                         "moe_router_dtype",
                                         "apply_layernorm_1p",
                                         "curriculum",
                                         "random_ltd",
                                         "steps_per_print",
                                         "no_async_tensor_model_parallel",
                                         "trust_remote",
                                         "local_rank",
                                         "rank",
                                         "eval_global_batch"};
// Shell variables, and the options to which scripts pass them, in the scripts of Narayanan et al. and many later ones.
// They are read because the commands with the options may be in another file.
constexpr OptionWord kVariables[] = {{"TP", "tensor_model_parallel_size"},
                                     {"PP", "pipeline_model_parallel_size"},
                                     {"CP", "context_parallel_size"},
                                     {"EP", "expert_model_parallel_size"},
                                     {"MBS", "micro_batch_size"},
                                     {"GBS", "global_batch_size"},
                                     {"NLS", "num_layers"},
                                     {"HS", "hidden_size"},
                                     {"NAH", "num_attention_heads"},
                                     {"SEQ_LEN", "seq_length"}};
constexpr std::string_view kRefers[] = {"extends", "bases", "modules.pre_trainer.model"};

}  // namespace megatron_table

const Framework& megatron() {
  static const Framework framework{"megatron",
                                   "Megatron-LM",
                                   "megatron-core",
                                   Syntax::shell,
                                   {launcher_rows(), megatron_table::kStrategyRows, megatron_table::kModelRows},
                                   megatron_table::kPrefixes,
                                   megatron_table::kSigns,
                                   megatron_table::kIgnored,
                                   megatron_table::kVariables,
                                   megatron_table::kRefers};
  return framework;
}

}  // namespace orrery
