// This file reads the section `software`: the name of a stack's profile, and properties of the stack that a spec sets
// itself.
#include <fmt/ranges.h>

#include "models/load/reader.h"
#include "models/schedule/schedules.h"

namespace orrery {
namespace {

constexpr SpecKey kSoftwareKeys[] = {
    {"profile", "the stack whose habits hold where the spec is silent (orrery list software)", "torchtitan", "name"},
    {"rank_order", "order of ranks, innermost first", "tp-cp-ep-dp-pp"},
    {"stage_rule", "how layers are cut into stages", "even"},
    {"vocab_multiple", "the vocabulary is padded to a multiple of this times tensor", "128"},
    {"schedule", "pipeline schedule where the spec names none", kPlainSchedule},
    {"uneven_interleaving", "interleaved takes micro-batches that are no multiple of pipeline", "true"},
    {"interleave_group", "micro-batches of a chunk's turn: as many as stages, or the step in equal rounds", "rounds"},
    {"selective_recompute", "parts that `recompute: selective` runs again", "operations"},
    {"sequence_parallel", "sequence_parallel where tensor > 1 and the spec is silent", "true"},
    {"expert_tensor_is_tensor", "expert_tensor is tensor where the spec is silent, else 1", "true"},
    {"dropout", "model.dropout where the spec is silent", "0.1"},
    {"attention", "attention where the spec is silent", "flash"},
    {"attention_kernel", "kernel of flash attention, as far as the GPU's profile has it", "fa2"},
    {"expert_kernels", "whose kernels run the products of experts where a text is generated", "vllm"},
    {"fused_softmax", "mask, scale and softmax of unfused attention are one kernel", "true"},
    {"fused_activation", "bias and GeLU, or SwiGLU, are one kernel", "true"},
    {"fused_clamp", "the kernel of SwiGLU clamps what it reads (model.activation_clamp)", "true"},
    {"fused_residual", "bias, dropout and residual sum are one kernel", "true"},
    {"fused_norm", "a norm is one kernel, else about six", "true"},
    {"fused_rotary", "rotary positions are one kernel", "true"},
    {"attention_copies", "times that queries, keys and values are copied into another layout", "1"},
    {"fused_cross_entropy", "the loss reads logits twice, else in about seven fp32 passes", "true"},
    {"fused_loss_on", "tensor that a fused loss works on: an fp32 copy, the logits, or the logits in place", "logits"},
    {"loss_gradient_copies", "fp32 tensors as large as the logits that an unfused loss's backward writes", "2"},
    {"loss_parallel_copies", "further such tensors where logits are cut over tensor ranks", "1"},
    {"keeps_logits", "fp32 logits of an unfused loss are held during its backward", "true"},
    {"loss_metrics", "times that a micro-batch's loss is computed again, for metrics", "1"},
    {"casts_again", "backward of 8-bit products casts the 16-bit input again instead of keeping a copy", "true"},
    {"fp8_activation_inputs", "an activation that runs again reads a copy in 8 bits", "true"},
    {"packs_attention_output", "8-bit products keep the output of fused attention once, in 12 bits", "true"},
    {"fused_optimizer", "an update is one pass, else a kernel per operation and tensor", "true"},
    {"fused_clip", "the update multiplies gradients by clip coefficient and loss scale itself", "true"},
    {"dense_embedding_gradient", "backward of a lookup fills a zeroed table and adds it", "true"},
    {"gradient_accumulation_fusion", "weight gradients add into the fp32 sums inside the product", "true"},
    {"separate_projections", "queries, keys, values, and a gated MLP's two projections, are products of their own",
     "true"},
    {"fused_experts", "mxfp8 on Blackwell: one kernel for all experts' products, with activation and casts", "true"},
    {"rowwise_scales", "8-bit operands have a scale for each row: rows and columns are cast apart", "true"},
    {"current_scales", "8 bits: a tensor's scale follows from its own largest magnitude, found before the cast",
     "true"},
    {"eight_bit_output", "the products of the logits read 8-bit operands too", "true"},
    {"eight_bit_attention", "precisions in which attention's products are in 8 bits too", "nvfp4"},
    {"compile", "torch.compile: chains of element-wise operations fuse, fewer launches", "true"},
    {"cuda_graphs",
     "no host time per kernel within a step (see cuda_graph_scope), and of generated text within a pass of one token",
     "true"},
    {"cuda_graph_scope", "training: what the graphs hold; the host launches the rest kernel by kernel",
     "attention_and_router"},
    {"grouped_attention",
     "generated text: query heads of a key head for which attention runs on tensor cores, else on CUDA cores; 0: any",
     "8"},
    {"input_casts", "generated text: kernels that turn inputs of products with a tensor's scale into 8 bits",
     "compiled"},
    {"attention_rotates",
     "generated text: attention of passes after the prompts rotates queries and keys itself, except latent attention",
     "true"},
    {"regather_input", "sequence parallel: backward gathers the sharded input again", "true"},
    {"tensor_reduce_overlaps_wgrad", "backward's tensor collective runs under the weight gradient", "true"},
    {"tensor_overlap",
     "what overlap.tensor is done with: user buffers (Transformer Engine) or symmetric memory (PyTorch)",
     "symmetric_memory"},
    {"nccl_minor", "x of NCCL 2.x", "28"},
    {"direct_all_reduce", "small all-reduces over NVLink are kernels that read the other ranks' buffers", "true"},
    {"all_reduce_norms", "generated text: a tensor group's all-reduces end with the norm that follows", "true"},
    {"scattered_sends", "pipeline sends that tensor ranks share out, for the receivers to gather", "activations"},
    {"sequence_copies", "sequence parallel: gathered and scattered tensors are copied", "true"},
    {"blocking_receives", "the host waits for received tensors before it launches a pass", "true"},
    {"blocking_forwards", "the host waits for its device before a stage's forward", "true"},
    {"blocking_steps", "the host waits for its device at a step's end", "true"},
    {"post_update_validation", "stages update by partial gradient norms and roll wrong updates back in the next step",
     "true"},
    {"batched_p2p", "a send and the receive of the same turn are one NCCL group", "true"},
    {"bucket_MiB", "gradients in a bucket where the spec is silent; 0: one bucket", "25"},
    {"bucket_elements", "least gradient elements of a bucket, for stacks that count elements", "40000000"},
    {"bucket_elements_of_rank", "least elements of a bucket for each data and context rank", "1000000"},
    {"buckets_for_overlap", "one bucket where nothing runs beside the reduction", "true"},
    {"sharded_in_one_bucket", "one bucket where states are sharded", "true"},
    {"shards_all_reduce", "ZeRO-1 all-reduces gradients instead of scattering them", "true"},
    {"overlap_gradient_reduce", "overlap.gradient_reduce where the spec is silent", "true"},
    {"own_rows_first", "a product of gathered rows begins with the rank's own rows", "true"},
    {"overlap_sharded", "gradients are reduced under backward also where states are sharded", "true"},
    {"one_queue", "CUDA_DEVICE_MAX_CONNECTIONS=1: kernels of all streams start in launch order", "never"},
    {"buckets_on_first_chunk", "only the pipeline's first chunk has several buckets", "true"},
    {"overlap_parameter_gather", "overlap.parameter_gather where the spec is silent", "true"},
    {"overlap_pipeline", "overlap.pipeline where the spec is silent", "true"},
    {"gathers_eight_bit", "8-bit training: ZeRO-1 gathers matrices in 8 bits", "true"},
    {"keep_gradients_whole", "ZeRO-2 keeps gradients whole until the last micro-batch", "true"},
    {"accumulates_after_backward", "a micro-batch's gradients are added to the sums after its backward", "true"},
    {"gradient_average", "mean over data ranks: in the loss, by a pass, or by a divided copy into buckets", "scale"},
    {"unit_average", "the same for gradients that are reduced unit by unit", "scale"},
    {"gradient_buckets_beside", "buckets as wide as weights lie beside wider gradient sums", "true"},
    {"widens_gradient_shards", "FSDP keeps reduced gradients as wide as the shard that they update", "true"},
    {"whole_master", "precision in which each data rank keeps all master weights", "bf16"},
    {"dummy_gradients", "fused weight gradients return one kept tensor per shape", "true"},
    {"unit_copies", "copies of units that sharding gathers and reduces", "parameters"},
    {"kept_units", "sharded parameters that stay gathered until backward", "last"},
    {"launch_us", "host time of a kernel launch", "4"},
    {"call_us", "host time of a framework call, none for compiled code", "10"},
    {"backward_call_share", "part of call_us for a call that autograd makes", "0.33"},
    {"collective_launch_us", "host time of a collective, send or receive", "12"},
    {"layer_us", "host time of a layer and pass beyond its kernels", "50"},
    {"far_stage_layer_us",
     "layer_us of stages on several nodes, times tensor; a quarter more for each node of a tensor group but one", "10"},
    {"micro_batch_us", "host time of a micro-batch and pass", "100"},
    {"step_us", "host time of a step", "1000"},
    {"rank_us", "host time of a step and rank of the job", "10"},
    {"segment_us", "time of a cudaMalloc or cudaFree of a step that fits only with them", "500"},
    {"blocking_launches", "CUDA_LAUNCH_BLOCKING: the host waits for every kernel", "true"},
    {"host_layer_us", "part of a layer's issuing time that the host itself needs; 0: all", "20"},
    {"expandable_segments", "the allocator's expandable_segments", "true"},
    {"moments", "optimizer moments: two tensors, two a weight, or two made before the first step", "by_weight"},
    {"gradients", "gradients as wide as weights: one buffer, or a tensor a weight", "by_weight"},
    {"flat_copies", "flat copies in which gradients are reduced at a step's end", "1"},
    {"collectives_hold_tensors", "buffers of a collective return when the host sees its end", "true"},
    {"gathers_lists", "ZeRO-1 gathers parameters into a tensor a rank, by two copies", "true"},
    {"context_MiB", "CUDA context and loaded kernels", "500"},
    {"workspace_MiB", "cuBLAS workspace", "32"},
    {"backward_workspace", "backward's thread has a cuBLAS workspace of its own", "true"},
    {"waits_for_loss", "hosts that compute the loss wait for it before they issue the update", "true"},
    {"holds_attention_output", "attention's output stays until the layer's forward returns", "true"},
    {"buffers_MiB", "communication buffers where states are sharded", "100"},
    {"gradient_precision", "strategy.gradient_precision where the spec is silent; precision: as weights", "fp32"},
    {"logged_memory", "the peak that the stack's log prints", "reserved"},
    {"logs_first_rank", "the logged peak is the first rank's", "true"},
    {"logs_update", "the logged peak is what is reserved from the last micro-batch on", "true"},
};

// Sets the kernels that torch.compile fuses: chains of element-wise operations, for which other stacks have kernels
// written by hand. Layers are compiled, the loss is not (torchtitan compiles the loss too since 2025:
// fused_cross_entropy).
void fuse(Software::Kernels& k) {
  for (bool* kernel : {&k.fused_softmax, &k.fused_activation, &k.fused_residual, &k.fused_norm, &k.fused_rotary})
    *kernel = true;
}

template <class T>
void take(const SpecSection& section, std::string_view key, const SoftwareValue<T>& field, Software& software,
          const std::string& otherwise) {
  T value = field.get(software);
  section.take(key, value, otherwise);
  field.set(software, value);
}

void take(const SpecSection& section, std::string_view key, const SoftwareWord& field, Software& software,
          const std::string& otherwise) {
  std::string value(field.get(software));
  const auto known = [&](const std::string& word) {
    field.set(software, field.what, word);
    return word;
  };
  section.note_type(key, fmt::format("{}", fmt::join(field.names(), " | ")));
  section.take_named(
      key, value, known, [](const std::string& word) { return word; }, otherwise);
}

}  // namespace

Software read_software(SpecReader& reader, const SpecNode* node) {
  const SpecSection section(reader, node, "software", kSoftwareKeys, "profile");
  std::string profile = "megatron-core";
  section.take("profile", profile);
  const SpecNode* given = section.find("profile");
  Software software =
      given ? section.located(*given, "profile", [&] { return find_software(profile); }) : find_software(profile);
  section.take("compile", software.kernels.compile, "profile " + profile);
  if (software.kernels.compile) fuse(software.kernels);
  for (const SoftwareKey& key : software_keys()) {
    if (key.name == "compile") continue;  // `compile` was read before the loop, because other keys depend on it
    std::visit([&](const auto& field) { take(section, key.name, field, software, "profile " + profile); }, key.field);
  }
  return software;
}

}  // namespace orrery
