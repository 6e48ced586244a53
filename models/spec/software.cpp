#include "models/spec/software.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/base/data.h"
#include "models/base/names.h"
#include "models/base/once_by_name.h"

namespace orrery {
namespace {

// A group of properties of a training stack: its name in the data files, and the member of Software that holds it.
template <class Part>
struct SoftwareGroup {
  std::string_view name;
  Part Software::*part;
};
constexpr std::tuple kGroups = {SoftwareGroup<Software::Layout>{"layout", &Software::layout},
                                SoftwareGroup<Software::Kernels>{"kernels", &Software::kernels},
                                SoftwareGroup<Software::Communication>{"communication", &Software::communication},
                                SoftwareGroup<Software::Host>{"host", &Software::host},
                                SoftwareGroup<Software::Memory>{"memory", &Software::memory},
                                SoftwareGroup<Software::Log>{"log", &Software::log}};

// Gives access to one field of one group of properties in a Software; the template's argument is a pointer to the field
// as a member of its group.
template <auto Field>
struct PlaceOf;
template <class Part, class T, T Part::*Field>
struct PlaceOf<Field> {
  using Value = T;
  static constexpr SoftwareGroup<Part> group = std::get<SoftwareGroup<Part>>(kGroups);
  static const T& of(const Software& software) { return software.*group.part.*Field; }
  static T& of(Software& software) { return software.*group.part.*Field; }
};

// Returns the entry, in the table of a training stack's properties (kKeys), of a field that holds a number, a flag or a
// string.
template <auto Field>
constexpr SoftwareKey value_key(std::string_view name) {
  using At = PlaceOf<Field>;
  using T = typename At::Value;
  return {At::group.name, name,
          SoftwareValue<T>{[](const Software& software) { return At::of(software); },
                           [](Software& software, const T& value) { At::of(software) = value; }}};
}

// Returns the entry, in the table of a training stack's properties (kKeys), of a field that holds one of a few named
// values. what: what the values are called in error messages.
template <auto Field, const auto& Names>
constexpr SoftwareKey word_key(std::string_view name, std::string_view what = "choice") {
  using At = PlaceOf<Field>;
  return {At::group.name, name,
          SoftwareWord{what, [] { return names_of(Names); },
                       [](const Software& software) { return name_in(Names, At::of(software)); },
                       [](Software& software, std::string_view kind, std::string_view value) {
                         At::of(software) = find_named(Names, kind, value);
                       }}};
}

constexpr SoftwareKey kKeys[] = {
    value_key<&Software::Layout::rank_order>("rank_order"),
    word_key<&Software::Layout::stage_rule, kStageRules>("stage_rule", "rule"),
    value_key<&Software::Layout::vocab_multiple>("vocab_multiple"),
    value_key<&Software::Layout::schedule>("schedule"),
    value_key<&Software::Layout::uneven_interleaving>("uneven_interleaving"),
    word_key<&Software::Layout::interleave_group, kInterleaveGroups>("interleave_group"),
    word_key<&Software::Layout::selective_recompute, kSelectiveRecomputes>("selective_recompute"),
    value_key<&Software::Layout::sequence_parallel>("sequence_parallel"),
    value_key<&Software::Layout::expert_tensor_is_tensor>("expert_tensor_is_tensor"),
    value_key<&Software::Layout::dropout>("dropout"),
    word_key<&Software::Kernels::attention, kAttentions>("attention", "attention"),
    word_key<&Software::Kernels::attention_kernel, kFlashKernels>("attention_kernel", "kernel"),
    word_key<&Software::Kernels::expert_kernels, kExpertKernels>("expert_kernels", "kernels"),
    value_key<&Software::Kernels::fused_softmax>("fused_softmax"),
    value_key<&Software::Kernels::fused_activation>("fused_activation"),
    value_key<&Software::Kernels::fused_clamp>("fused_clamp"),
    value_key<&Software::Kernels::fused_residual>("fused_residual"),
    value_key<&Software::Kernels::fused_norm>("fused_norm"),
    value_key<&Software::Kernels::fused_rotary>("fused_rotary"),
    value_key<&Software::Kernels::attention_copies>("attention_copies"),
    value_key<&Software::Kernels::fused_cross_entropy>("fused_cross_entropy"),
    word_key<&Software::Kernels::fused_loss_on, kLossTensors>("fused_loss_on"),
    value_key<&Software::Kernels::loss_gradient_copies>("loss_gradient_copies"),
    value_key<&Software::Kernels::loss_parallel_copies>("loss_parallel_copies"),
    value_key<&Software::Kernels::keeps_logits>("keeps_logits"),
    value_key<&Software::Kernels::loss_metrics>("loss_metrics"),
    value_key<&Software::Kernels::casts_again>("casts_again"),
    value_key<&Software::Kernels::fp8_activation_inputs>("fp8_activation_inputs"),
    value_key<&Software::Kernels::packs_attention_output>("packs_attention_output"),
    value_key<&Software::Kernels::fused_optimizer>("fused_optimizer"),
    value_key<&Software::Kernels::fused_clip>("fused_clip"),
    value_key<&Software::Kernels::dense_embedding_gradient>("dense_embedding_gradient"),
    value_key<&Software::Kernels::gradient_accumulation_fusion>("gradient_accumulation_fusion"),
    value_key<&Software::Kernels::separate_projections>("separate_projections"),
    value_key<&Software::Kernels::fused_experts>("fused_experts"),
    value_key<&Software::Kernels::rowwise_scales>("rowwise_scales"),
    value_key<&Software::Kernels::current_scales>("current_scales"),
    value_key<&Software::Kernels::eight_bit_output>("eight_bit_output"),
    word_key<&Software::Kernels::eight_bit_attention, kEightBitAttentions>("eight_bit_attention"),
    value_key<&Software::Kernels::compile>("compile"),
    value_key<&Software::Kernels::cuda_graphs>("cuda_graphs"),
    word_key<&Software::Kernels::cuda_graph_scope, kGraphScopes>("cuda_graph_scope", "scope"),
    value_key<&Software::Kernels::grouped_attention>("grouped_attention"),
    word_key<&Software::Kernels::input_casts, kInputCasts>("input_casts"),
    value_key<&Software::Kernels::attention_rotates>("attention_rotates"),
    value_key<&Software::Communication::regather_input>("regather_input"),
    value_key<&Software::Communication::tensor_reduce_overlaps_wgrad>("tensor_reduce_overlaps_wgrad"),
    word_key<&Software::Communication::tensor_overlap, kTensorOverlaps>("tensor_overlap"),
    value_key<&Software::Communication::nccl_minor>("nccl_minor"),
    value_key<&Software::Communication::direct_all_reduce>("direct_all_reduce"),
    value_key<&Software::Communication::all_reduce_norms>("all_reduce_norms"),
    word_key<&Software::Communication::scattered_sends, kScatteredSends>("scattered_sends"),
    value_key<&Software::Communication::sequence_copies>("sequence_copies"),
    value_key<&Software::Communication::blocking_receives>("blocking_receives"),
    value_key<&Software::Communication::blocking_forwards>("blocking_forwards"),
    value_key<&Software::Communication::blocking_steps>("blocking_steps"),
    value_key<&Software::Communication::post_update_validation>("post_update_validation"),
    value_key<&Software::Communication::batched_p2p>("batched_p2p"),
    value_key<&Software::Communication::bucket_MiB>("bucket_MiB"),
    value_key<&Software::Communication::bucket_elements>("bucket_elements"),
    value_key<&Software::Communication::bucket_elements_of_rank>("bucket_elements_of_rank"),
    value_key<&Software::Communication::buckets_for_overlap>("buckets_for_overlap"),
    value_key<&Software::Communication::sharded_in_one_bucket>("sharded_in_one_bucket"),
    value_key<&Software::Communication::shards_all_reduce>("shards_all_reduce"),
    value_key<&Software::Communication::overlap_gradient_reduce>("overlap_gradient_reduce"),
    value_key<&Software::Communication::own_rows_first>("own_rows_first"),
    value_key<&Software::Communication::overlap_sharded>("overlap_sharded"),
    word_key<&Software::Communication::one_queue, kOneQueues>("one_queue"),
    value_key<&Software::Communication::buckets_on_first_chunk>("buckets_on_first_chunk"),
    value_key<&Software::Communication::overlap_parameter_gather>("overlap_parameter_gather"),
    value_key<&Software::Communication::overlap_pipeline>("overlap_pipeline"),
    value_key<&Software::Communication::gathers_eight_bit>("gathers_eight_bit"),
    value_key<&Software::Communication::keep_gradients_whole>("keep_gradients_whole"),
    value_key<&Software::Communication::accumulates_after_backward>("accumulates_after_backward"),
    word_key<&Software::Communication::gradient_average, kAveragings>("gradient_average", "way"),
    word_key<&Software::Communication::unit_average, kUnitAveragings>("unit_average", "way"),
    value_key<&Software::Communication::gradient_buckets_beside>("gradient_buckets_beside"),
    value_key<&Software::Communication::widens_gradient_shards>("widens_gradient_shards"),
    word_key<&Software::Communication::whole_master, kWholeMasters>("whole_master", "precision"),
    value_key<&Software::Communication::dummy_gradients>("dummy_gradients"),
    word_key<&Software::Communication::unit_copies, kUnitCopies>("unit_copies"),
    word_key<&Software::Communication::kept_units, kKeptUnits>("kept_units"),
    value_key<&Software::Host::launch_us>("launch_us"),
    value_key<&Software::Host::call_us>("call_us"),
    value_key<&Software::Host::backward_call_share>("backward_call_share"),
    value_key<&Software::Host::collective_launch_us>("collective_launch_us"),
    value_key<&Software::Host::layer_us>("layer_us"),
    value_key<&Software::Host::far_stage_layer_us>("far_stage_layer_us"),
    value_key<&Software::Host::micro_batch_us>("micro_batch_us"),
    value_key<&Software::Host::step_us>("step_us"),
    value_key<&Software::Host::rank_us>("rank_us"),
    value_key<&Software::Host::segment_us>("segment_us"),
    value_key<&Software::Host::blocking_launches>("blocking_launches"),
    value_key<&Software::Host::host_layer_us>("host_layer_us"),
    value_key<&Software::Memory::expandable_segments>("expandable_segments"),
    word_key<&Software::Memory::moments, kMomentTensors>("moments"),
    word_key<&Software::Memory::gradients, kGradientTensors>("gradients"),
    value_key<&Software::Memory::flat_copies>("flat_copies"),
    value_key<&Software::Memory::collectives_hold_tensors>("collectives_hold_tensors"),
    value_key<&Software::Memory::gathers_lists>("gathers_lists"),
    value_key<&Software::Memory::context_MiB>("context_MiB"),
    value_key<&Software::Memory::workspace_MiB>("workspace_MiB"),
    value_key<&Software::Memory::backward_workspace>("backward_workspace"),
    value_key<&Software::Memory::waits_for_loss>("waits_for_loss"),
    value_key<&Software::Memory::holds_attention_output>("holds_attention_output"),
    value_key<&Software::Memory::buffers_MiB>("buffers_MiB"),
    value_key<&Software::Memory::gradient_precision>("gradient_precision"),
    word_key<&Software::Log::logged_memory, kLoggedMemories>("logged_memory"),
    value_key<&Software::Log::logs_first_rank>("logs_first_rank"),
    value_key<&Software::Log::logs_update>("logs_update"),
};

const SoftwareKey& find_key(std::string_view group, std::string_view name) {
  for (const SoftwareKey& key : kKeys) {
    if (key.name == name && (group.empty() || key.group == group)) return key;
  }
  throw Error(fmt::format("software: no '{}' in '{}'", name, group));
}

template <class T>
void assign(Software& software, const SoftwareValue<T>& field, const nlohmann::json& value) {
  field.set(software, value.get<T>());
}
void assign(Software& software, const SoftwareWord& field, const nlohmann::json& value) {
  field.set(software, field.what, value.get<std::string>());
}
void assign(Software& software, const SoftwareKey& key, const nlohmann::json& value) {
  std::visit([&](const auto& field) { assign(software, field, value); }, key.field);
}

// Sets those properties of a training stack whose numbers were fitted to measured steps; one file has these numbers for
// all stacks.
void take_fitted_numbers(Software& software, std::string_view name) {
  static const nlohmann::json file = nlohmann::json::parse(data_file("fitted.json"));
  const std::string holder = fmt::format("software {}", name);
  for (const nlohmann::json& number : file.at("numbers")) {
    const nlohmann::json& holders = number.at("of");
    if (std::find(holders.begin(), holders.end(), holder) != holders.end())
      assign(software, find_key("", number.at("key").get<std::string>()), number.at("value"));
  }
  // An inference stack launches transfers as it launches kernels.
  const nlohmann::json &launch = file.at("generation").at("launch_us"), &step = file.at("generation").at("step_us");
  if (const auto found = launch.find(name); found != launch.end())
    software.host.launch_us = software.host.collective_launch_us = found->get<double>();
  if (const auto found = step.find(name); found != step.end()) software.host.step_us = found->get<double>();
}

}  // namespace

std::span<const SoftwareKey> software_keys() { return kKeys; }

static bool has_scope(const Software& software, GraphScope scope) {
  return software.kernels.cuda_graphs && software.kernels.cuda_graph_scope == scope;
}
bool graphs_step(const Software& software) { return has_scope(software, GraphScope::step); }
bool graphs_layer(const Software& software) { return has_scope(software, GraphScope::layer); }
bool graphs_attention(const Software& software) {
  return has_scope(software, GraphScope::attention) || has_scope(software, GraphScope::attention_and_router);
}
bool graphs_router(const Software& software) {
  return has_scope(software, GraphScope::router) || has_scope(software, GraphScope::attention_and_router);
}

static Software read_software(std::string_view name) {
  const nlohmann::json file = nlohmann::json::parse(data_file(fmt::format("software/{}.json", name)));
  Software software;
  if (const auto like = file.find("like"); like != file.end()) software = read_software(like->get<std::string>());
  software.name = name;
  for (const auto& [group, features] : file.items()) {
    if (!features.is_object()) continue;  // the keys "about" and "like" are not groups of properties
    for (const auto& [key, feature] : features.items()) assign(software, find_key(group, key), feature.at("value"));
  }
  take_fitted_numbers(software, name);
  return software;
}

Software find_software(std::string_view name) {
  const std::vector<std::string_view> known = data_names("software");
  if (std::find(known.begin(), known.end(), name) == known.end()) throw Error(unknown_name("software", name, known));
  static OnceByName<Software> stacks;
  return stacks.of(name, [&] { return read_software(name); });
}

void take_launch_time_on(int compute_capability, Software& software) {
  constexpr int kBlackwell = 100;
  static const nlohmann::json launch =
      nlohmann::json::parse(data_file("fitted.json")).at("generation").at("launch_us_on_blackwell");
  const auto found = launch.find(software.name);
  if (compute_capability >= kBlackwell && found != launch.end())
    software.host.launch_us = software.host.collective_launch_us = found->get<double>();
}

}  // namespace orrery
