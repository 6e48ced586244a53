#include "sim/report/remarks.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include <fmt/format.h>

#include "models/base/units.h"
#include "models/cost/nccl/model.h"
#include "models/load/open_spec.h"
#include "models/schedule/schedules.h"
#include "models/spec/stragglers.h"

namespace orrery {
namespace {

constexpr std::string_view kOwnSoftware = "orrery";  // the executor, on which every habit can be asked for

const Origin* origin_of(const Spec& spec, std::string_view key) {
  const auto found =
      std::find_if(spec.origins.begin(), spec.origins.end(), [&](const Origin& o) { return o.key == key; });
  return found == spec.origins.end() ? nullptr : &*found;
}

// Returns a remark that names the attention kernel whose times the prediction uses, if the profile has no times of the
// kernel that the framework runs.
std::string attention_remark(const Spec& spec, const Plan& plan, const Profile& profile) {
  // A profile without formulas of attention kernels has measured times of all ops, so that none is replaced by another.
  if (profile.attention.empty()) return "";
  const std::string_view asked = name_in(kFlashKernels, spec.software.kernels.attention_kernel);
  const AttentionKernel& taken = find_attention(profile, asked);
  const bool flash = std::any_of(plan.ops.begin(), plan.ops.end(),
                                 [](const Op& op) { return std::holds_alternative<FlashAttention>(op.work); });
  if (!flash || taken.name == asked) return "";
  return fmt::format("attention: profile {} has no times of {}; those of {} stand in", profile.name, asked, taken.name);
}

// Returns a remark that names the device that an imported profile was measured on, if the spec has another GPU. A
// spec's "h100-sxm" is the same GPU as "NVIDIA H100 80GB".
std::string device_remark(const Profile& profile, const Gpu& gpu) {
  const std::string_view device = fingerprint_of(profile, "device");
  std::string part = gpu.id.substr(0, gpu.id.find('-'));
  std::transform(part.begin(), part.end(), part.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  if (!profile.rest_built_in || device.empty() || device.find(part) != std::string_view::npos) return "";
  return fmt::format("profile: measured on {}, not on {}", device, gpu.name);
}

// Returns a remark for a spec that gives the number of data ranks but not the number of GPUs, so that some GPUs of the
// cluster idle.
std::string gpus_remark(const Spec& spec) {
  const std::int64_t all = std::int64_t{spec.cluster.nodes} * spec.cluster.gpus_per_node;
  const Origin *gpus = origin_of(spec, "gpus"), *data = origin_of(spec, "strategy.data");
  const bool derived = gpus != nullptr && !is_given(*gpus) && data != nullptr && is_given(*data);
  if (!derived || spec.gpus >= all) return "";
  return fmt::format(
      "gpus: {} of the cluster's {} are used: {} data ranks were asked for; give gpus, or leave data out", spec.gpus,
      all, spec.strategy.data);
}

// Returns a remark for NICs that are much faster than the PCIe links by which their GPUs reach them.
std::string nic_remark(const Spec& spec) {
  const Cluster& c = spec.cluster;
  if (spec.gpus <= nccl_node_gpus(c) || c.nics == 0 || c.gpu.pcie_GBps <= 0) return "";  // 0: not known
  const double all = c.nics * c.nic_Gbps / 8,
               used = nccl_topology(c, 2, c.gpus_per_node).nic_GBps * std::min(c.nics, c.gpus_per_node);
  constexpr double kMuchFaster = 1.1;  // 400 Gb/s on PCIe 5.0 is 4 % too much, which every such cluster has
  if (all <= kMuchFaster * used) return "";
  return fmt::format("cluster.nic_Gbps: PCIe carries {:.4g} of the {:.4g} GB/s of a node's NICs", used, all);
}

// Returns a remark if faults hold for a time of a run only.
std::string timed_fault_remark(const Spec& spec) {
  if (!spec.cluster.network || spec.cluster.network->timed_faults.empty()) return "";
  return fmt::format("cluster.network.faults: the step is without the {} with down, which orrery run-length plays",
                     spec.cluster.network->timed_faults.size());
}

// Returns a remark for an Ethernet fabric whose routing the spec leaves open: it counts as even, as InfiniBand's is.
std::string routing_remark(const Spec& spec) {
  const Cluster& c = spec.cluster;
  const Origin* routing = origin_of(spec, "cluster.network.routing.kind");
  if (!c.network || c.network->leaf_nodes == 0 || c.fabric != Fabric::roce) return "";
  if (routing != nullptr && is_given(*routing)) return "";
  return "cluster.network.routing: taken as adaptive; where RoCE's switches choose uplinks by a hash (ECMP), give "
         "routing: {kind: ecmp, queue_pairs: N}";
}

// Returns a remark for a stack that is described as it runs on GPUs of another vendor. Files of stacks on ROCm are
// named so, and Orrery's own executor has no vendor.
std::string vendor_remark(const Spec& spec) {
  const std::string& name = spec.software.name;
  const Architecture gpu = spec.cluster.gpu.architecture;
  const bool amd = is_amd(spec.cluster.gpu), rocm = name.starts_with("rocm-");
  if (gpu == Architecture::other || amd == rocm || name == kOwnSoftware) return "";
  return fmt::format("software: {} is described as it runs on {} GPUs; not all that it uses need be there on {}", name,
                     rocm ? "AMD's" : "NVIDIA's", spec.cluster.gpu.name);
}

// Returns a remark for PyTorch's asynchronous tensor parallelism, a pass of torch.compile, without that.
std::string symmetric_memory_remark(const Spec& spec) {
  const Software& s = spec.software;
  const bool overlaps = spec.strategy.overlap.tensor && spec.strategy.tensor > 1 && spec.strategy.sequence_parallel;
  if (!overlaps || s.communication.tensor_overlap != TensorOverlap::symmetric_memory || s.kernels.compile ||
      s.name == kOwnSoftware)
    return "";
  return "strategy.overlap.tensor: in PyTorch it is a pass of torch.compile and does nothing without; planned as with "
         "software.compile: true, whose other effects are left out";
}

// Returns a remark that names the keys of training that a spec which generates text states.
std::string training_keys_remark(const Spec& spec) {
  constexpr std::string_view kOfTraining[] = {"strategy.recompute", "strategy.optimizer", "strategy.clip",
                                              "strategy.gradient_precision"};
  std::string keys;
  for (const Origin& o : spec.origins) {
    const bool trains = std::any_of(std::begin(kOfTraining), std::end(kOfTraining),
                                    [&](std::string_view key) { return o.key.starts_with(key); });
    if (spec.generation && trains && is_given(o)) keys += (keys.empty() ? "" : ", ") + o.key;
  }
  return keys.empty() ? "" : keys + ": of training; changes nothing where text is generated";
}

// Returns a remark for a generation whose sequences do not divide evenly among as many micro-batches as there are
// pipeline stages: with few, stages idle.
std::string stages_remark(const Spec& spec) {
  const Strategy& s = spec.strategy;
  const std::int64_t parts = s.micro_batches();
  if (!spec.generation || parts >= s.pipeline || states_micro_batch(spec)) return "";
  const std::int64_t own = parts * s.micro_batch, more = ceil_div(own, s.pipeline) * s.pipeline * s.data;
  const std::int64_t fewer = own / s.pipeline * s.pipeline * s.data;
  return fmt::format(
      "generate.batch: {} sequence{}{} pass{} through {} stages in {} micro-batch{} of {}, the most that divides {}; "
      "generate.batch={}{} makes one a stage",
      own, own == 1 ? "" : "s", s.data > 1 ? " of a data rank" : "", own == 1 ? "es" : "", s.pipeline, parts,
      parts == 1 ? "" : "es", s.micro_batch, own == 1 ? "it" : "them", fewer > 0 ? fmt::format("{} or ", fewer) : "",
      more);
}

std::string positions_remark(const Spec& spec) {
  const std::int64_t most = spec.model.trained_positions;
  const std::int64_t tokens = spec.generation ? spec.generation->input + spec.generation->output : spec.sequence;
  if (most == 0 || tokens <= most) return "";
  if (spec.generation)
    return fmt::format(
        "generate: {} tokens of input and {} of output are more than the {} positions that {} is made for",
        spec.generation->input, spec.generation->output, most, spec.model.name);
  return fmt::format("sequence: {} tokens are more than the {} positions that {} is made for", spec.sequence, most,
                     spec.model.name);
}

// Returns a remark for a model whose imbalance of experts is impossible: the busiest rank gets at most every token once
// for each of its experts, and at most all (token, chosen expert) pairs. key: the section of the spec that the model
// is.
std::string imbalance_remark(const Spec& spec, const Model& model, std::string_view key) {
  if (!model.moe || spec.strategy.expert == 1 || model.moe->zipf || !model.moe->loads_file.empty()) return "";
  const Moe& moe = *model.moe;
  const double most = std::min(static_cast<double>(spec.strategy.expert),
                               static_cast<double>(moe.experts) / static_cast<double>(moe.top_k));
  if (moe.imbalance <= most) return "";
  return fmt::format(
      "{}.moe.imbalance: {} is more than the busiest of {} expert ranks can get: planned as {:.4g} times the mean", key,
      moe.imbalance, spec.strategy.expert, std::max(1.0, most));
}

std::string sharding_remark(const Spec& spec) {
  const Origin* sharding = origin_of(spec, "strategy.sharding");
  if (sharding == nullptr || sharding->asked.empty()) return "";
  return fmt::format("strategy.sharding: {}, which shares its weights with no other: planned as none", sharding->asked);
}

// Returns a remark for a spec with too few micro-batches for the schedule ZB-H2: on p stages the schedule's warm-up
// needs at least 2p - 1 micro-batches; with fewer the schedule only delays the first gradients.
std::string schedule_remark(const Spec& spec, const Plan& plan) {
  const Strategy& s = spec.strategy;
  const ScheduleRow* row = schedule_in_table(s.schedule);
  if (row == nullptr || !row->warms_up_twice || plan.step_micro_batches() >= 2 * s.pipeline - 1) return "";
  return fmt::format("strategy.schedule: {} fills its bubble from {} micro-batches on; of {} {} is made shorter",
                     s.schedule, 2 * s.pipeline - 1, plan.step_micro_batches(), kPlainSplitSchedule);
}

// Returns a remark for a folded plan (one rank of each class of ranks that do the same) in which some slow ranks have
// no class of their own (models/layout/lags.h). Then the job has so many stragglers that only the replicas that are
// likely to be the slowest are planned with them.
std::string stragglers_remark(const Spec& spec, const Plan& plan) {
  if (std::ssize(plan.classes) == plan.ranks) return "";
  const std::vector<double> slow = slowdowns(spec);
  const std::vector<std::uint32_t> slot = slots_of_ranks(plan);
  const GroupTable& tensor = plan.dimensions[static_cast<std::size_t>(Dimension::tensor)];
  const auto lags = [&](std::int32_t rank) { return slow[rank] > 1; };
  std::int64_t all = 0, left_out = 0;
  for (std::size_t r = 0; r < slow.size(); ++r) {
    if (slow[r] == 1) continue;
    ++all;
    const auto group = tensor.groups[tensor.member_of[plan.classes[slot[r]].representative]];
    left_out += std::none_of(group.begin(), group.end(), lags) ? 1 : 0;
  }
  if (left_out == 0) return "";
  return fmt::format(
      "cluster.stragglers: of {} slow ranks, {} are in replicas that end before the slowest: planned as not slow", all,
      left_out);
}

}  // namespace

std::vector<std::string> remarks(const Spec& spec, const Plan& plan, const Profile& profile) {
  std::vector<std::string> list{attention_remark(spec, plan, profile),
                                device_remark(profile, spec.cluster.gpu),
                                imbalance_remark(spec, spec.model, "model"),
                                sharding_remark(spec),
                                schedule_remark(spec, plan),
                                gpus_remark(spec),
                                stragglers_remark(spec, plan),
                                positions_remark(spec),
                                stages_remark(spec),
                                nic_remark(spec),
                                routing_remark(spec),
                                timed_fault_remark(spec),
                                vendor_remark(spec),
                                training_keys_remark(spec),
                                symmetric_memory_remark(spec)};
  if (spec.second && spec.second->role == SecondModel::Role::teacher)
    list.push_back(imbalance_remark(spec, spec.second->model, "teacher"));
  for (const std::string& remark : spec.model.remarks) list.push_back("model: " + remark);
  std::erase(list, "");
  return list;
}

}  // namespace orrery
