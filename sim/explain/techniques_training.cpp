// Techniques that concern training itself: when gradients are reduced, FSDP units, adapters, packed samples, and
// optimizers with different states.
#include <fmt/format.h>

#include "models/spec/gradients.h"
#include "models/spec/sharding.h"
#include "sim/explain/techniques_memory.h"

namespace orrery {
namespace {

using List = std::vector<Technique>;

void add_transfers(const Spec& spec, List& list) {
  const Strategy& s = spec.strategy;
  const ShardingRow& row = row_of(s.sharding);
  const auto with_sync = [&](bool once) { return changed(spec, [&](Strategy& x) { x.no_sync = once; }); };
  if (reduces_each_time(spec, row) && s.micro_batches() > 1)
    list.push_back({"reductions with every micro-batch", true, "nothing",
                    fmt::format("{} times the bytes of gradients", s.micro_batches()), "with no_sync", with_sync(true),
                    "data"});
  if (unit_gradients(spec, row) && !fresh_gradients(spec, row))
    list.push_back({"no_sync", true, "gradients are reduced with the last micro-batch alone",
                    "every rank keeps whole gradients until then", "without it", with_sync(false), "data"});
  if (s.keep_16bit_gradients)
    list.push_back({"16-bit gradients beside fp32 sums", true,
                    "what a micro-batch added can still be read after backward", "2 bytes more a parameter",
                    "without them", changed(spec, [](Strategy& x) { x.keep_16bit_gradients = false; })});
  if (!s.units.by_layer())
    list.push_back({s.units.model ? "one unit of the whole model" : "units of several layers", true,
                    "fewer and larger gathers", "gathered weights of a unit lie on every rank at once",
                    "with a unit a layer", changed(spec, [](Strategy& x) { x.units = {}; }), "data"});
  if (s.zero_quantize.any())
    list.push_back({"narrow transfers (ZeRO++)", true, "weights and gradients cross the network in few bits",
                    s.zero_quantize.secondary_shards
                        ? "secondary shards on every node, and passes that narrow and widen"
                        : "passes that narrow and widen",
                    "without them", changed(spec, [](Strategy& x) { x.zero_quantize = {}; }), "data"});
}

}  // namespace

void drop_sharding_options(Strategy& s) {
  s.shard_group = 0;
  s.no_sync.reset();
  s.keep_16bit_gradients = s.overlap.gather_in_update = false;
  s.units = {};
  s.zero_quantize = {};
}

void add_training(const Spec& spec, List& list) {
  add_transfers(spec, list);
  const Strategy& s = spec.strategy;
  if (s.weights.narrow())
    list.push_back({fmt::format("weights rounded to {} in forward (quantisation-aware training)", text_of(s.weights)),
                    true, "nothing of the step: the model learns weights that lose little in this format",
                    s.inputs.narrow() ? "matrices and the inputs of their products are rounded before every product"
                                      : "matrices are rounded before every product",
                    "without it", changed(spec, [](Strategy& x) { x.weights = x.inputs = {}; })});
  if (s.optimizer.eight_bit)
    list.push_back({"moments of 8 bits", true, "moments take a byte each, and a scale a block",
                    "they are rounded anew in every step", "with moments of fp32", changed(spec, [](Strategy& x) {
                      x.optimizer.eight_bit = false;
                      x.optimizer.moment_bytes = 4;
                    })});
  if (spec.model.lora) {
    Spec whole = spec;
    whole.model.lora.reset();
    list.push_back({fmt::format("adapters of rank {} (LoRA)", spec.model.lora->rank), true,
                    "what is frozen has no gradient, no states and no reduction", "a small model of changes is trained",
                    "with all weights trained", std::move(whole)});
  }
  if (spec.second) {
    Spec alone = spec;
    alone.gpus -= spec.second->gpus;
    alone.second.reset();
    if (!alone.model.moe) alone.strategy.expert = alone.strategy.expert_tensor = 1;
    if (!alone.model.moe || alone.model.moe->shared_feed_forward == 0) alone.strategy.overlap.expert = false;
    list.push_back({fmt::format("a frozen {} beside the model", name_of(spec.second->role)), true,
                    spec.second->role == SecondModel::Role::teacher ? "the model learns the teacher's distribution"
                                                                    : "the model stays close to where it began",
                    "a forward of the other model, and its weights", "without it", std::move(alone)});
  }
  if (spec.second && !spec.second->features.student.empty()) {
    Spec without = spec;
    without.second->features = {};
    list.push_back({"hidden states compared with the teacher's", true, "the student learns the teacher's features",
                    "kept hidden states of the teacher, and a projection where widths differ",
                    "with the loss of the logits alone", std::move(without)});
  }
  if (spec.second && spec.second->offload) {
    Spec here = spec;
    here.second->offload = false;
    list.push_back({fmt::format("the {}'s weights on the host", name_of(spec.second->role)), true,
                    "they take no memory of the device between uses", "they come up over PCIe for every forward",
                    "with these weights on the device", std::move(here)});
  }
  if (spec.documents) {
    Spec whole = spec;
    whole.documents.reset();
    list.push_back({"packed documents", true, "a token attends to its own document alone",
                    "ranks with longer documents keep the others waiting", "with samples of one document",
                    std::move(whole)});
  }
}

void add_neighbours(const Spec& spec, List& list) {
  if (!spec.cluster.network || spec.cluster.network->jobs.empty()) return;
  Spec alone = spec;
  alone.cluster.network->jobs.clear();
  const std::size_t jobs = spec.cluster.network->jobs.size();
  list.push_back({fmt::format("{} other job{} on the cluster", jobs, jobs > 1 ? "s" : ""), true,
                  "the nodes that this job leaves are used",
                  "jobs take from each other what they send over the same uplinks", "without them", std::move(alone)});
}

}  // namespace orrery
