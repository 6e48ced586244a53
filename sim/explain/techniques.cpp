#include "sim/explain/techniques.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/load/open_spec.h"
#include "models/schedule/schedules.h"
#include "models/spec/asynchrony.h"
#include "models/spec/sharding.h"
#include "sim/explain/formulas.h"
#include "sim/explain/techniques_memory.h"
#include "sim/print/text.h"

namespace orrery {
namespace {

using List = std::vector<Technique>;

std::string ranks(std::int64_t n) { return fmt::format("{} ranks", n); }

// Resets the options of techniques that the changed strategy no longer uses.
void drop_options(const Strategy& before, Strategy& s) {
  if (s.tensor == 1) {
    s.sequence_parallel = s.partition_activations = false;
    s.expert_tensor = 1;
  }
  if (!s.on_grid()) {
    s.tensor_kind = "1d";
    s.tensor_depth = 1;
  }
  if (s.on_grid() || !s.sequence_parallel) s.overlap.tensor = false;
  if (s.sequence_parallel) s.partition_activations = false;
  if (s.schedule != before.schedule) {
    s.schedule_file.clear();
    s.vertical_sync = false;
    s.interleave_group = s.extra_warm_up = 0;
  }
  s.overlap.micro_batches = s.overlap.micro_batches && weaves_if_asked(s.schedule, s.pipeline);
  if (s.pipeline != before.pipeline || s.virtual_stages != before.virtual_stages) s.stage_layers.clear();
  if (!s.recompute.layer) s.partition_activations = s.contiguous_activations = false;
  if (!row_of(s.sharding).servers) s.parameter_server.reset();
}

}  // namespace

Spec changed(const Spec& spec, const std::function<void(Strategy&)>& change) {
  Spec other = spec;
  Strategy& s = other.strategy;
  change(s);
  if (s.pipeline != spec.strategy.pipeline) s.stage_replicas.clear();
  const std::int64_t model_ranks = s.tensor * s.places() * s.context;
  s.data = std::max<std::int64_t>(1, spec.strategy.gpus() / model_ranks);
  drop_options(spec.strategy, s);
  if (s.sharding != spec.strategy.sharding) drop_sharding_options(s);
  // Schedules with two copies of the model (Chimera, DualPipe) reduce gradients only after the last backward.
  const bool both_ways = runs_both_ways(s.schedule);
  if (s.sharding != spec.strategy.sharding || both_ways != runs_both_ways(spec.strategy.schedule))
    s.overlap.gradient_reduce = reduces_beside(spec.software, s.sharding) && !both_ways;
  return other;
}

namespace {

// A text that says what a sharding saves.
std::string saved_by(const ShardingRow& row, std::int64_t shards) {
  if (row.shards_parameters)
    return fmt::format("parameters, gradients and optimizer states of a rank are 1/{} of the model's", shards);
  if (row.shards_gradients) return fmt::format("gradients and optimizer states of a rank are 1/{}", shards);
  return fmt::format("optimizer states of a rank are 1/{}, and so is its update", shards);
}
std::string cost_of(const ShardingRow& row) {
  if (row.shards_parameters && row.reshards_after_forward)
    return "weights are gathered before forward and again before backward: 1.5 times the bytes of an all-reduce";
  if (row.shards_parameters)
    return "weights are gathered and stay: the bytes of an all-reduce, weights whole meanwhile";
  return "no more bytes: a reduce-scatter and an all-gather of weights in the place of an all-reduce";
}

// Adds parameter servers as a technique and, as another, how the weights on servers are protected against loss.
void add_servers(const Spec& spec, List& list) {
  const Strategy& s = spec.strategy;
  if (!s.parameter_server) return;
  const ParameterServer& p = *s.parameter_server;
  list.push_back({fmt::format("{} parameter server{}, {}", p.servers, p.servers > 1 ? "s" : "", p.mode), true,
                  "workers hold no optimizer states: hosts do, and update",
                  fmt::format("every worker's gradients and weights pass through servers' links, {} times a model's "
                              "bytes and back over each of them",
                              fmt::format("{:.3g}", static_cast<double>(s.data) / static_cast<double>(p.servers))),
                  "without them (plain replicas)", changed(spec, [](Strategy& x) { x.sharding = Sharding::none; }),
                  "world"});
  if (asynchronous_workers(s))
    list.push_back({p.mode == "ssp" ? fmt::format("staleness of at most {} steps", p.staleness) : "no waiting at all",
                    true, "a slow worker holds back itself alone, or others only so far",
                    "gradients come from weights that others have changed since", "without it (sync)",
                    changed(spec, [](Strategy& x) {
                      x.parameter_server->mode = "sync";
                      x.parameter_server->staleness = 0;
                    })});
  if (p.replicas > 1)
    list.push_back({fmt::format("chains of {} servers", p.replicas), true, "a lost server costs no state and no step",
                    fmt::format("sums are handed on {} times, and servers' machines hold {} times the states",
                                p.replicas - 1, p.replicas),
                    "without them", changed(spec, [](Strategy& x) { x.parameter_server->replicas = 1; })});
}

// Adds sharding as a technique. Tensor ranks at different depths of a 2.5d grid count as replicas too.
void add_sharding(const Spec& spec, List& list) {
  const Strategy& s = spec.strategy;
  const std::int64_t copies = s.data * s.context * s.tensor_depth;
  const std::int64_t shards = s.shard_group > 0 ? s.shard_group : copies;
  // With sharded weights a forward and a backward cannot overlap op by op (overlap.micro_batches): one of the two
  // passes would free gathered weights that the other still reads.
  const auto weaves = [&](Sharding kind) { return s.overlap.micro_batches && row_of(kind).shards_parameters; };
  const auto as = [&](Sharding kind) {
    return changed(spec, [&](Strategy& x) {
      x.sharding = kind;
      x.overlap.micro_batches = x.overlap.micro_batches && !weaves(kind);
      x.fused_buffers = x.fused_buffers && !row_of(kind).shards_gradients;
    });
  };
  add_servers(spec, list);
  if (copies == 1) return;
  const ShardingRow& row = row_of(s.sharding);
  if (row.master)
    list.push_back({"DataParallel", true, "one process: nothing of it needs a launcher",
                    "rank 0 hands out weights and inputs, takes outputs and gradients, and alone updates while the "
                    "others wait",
                    "without it (plain replicas)", as(Sharding::none), "data"});
  if (row.shards_optimizer) {
    list.push_back({fmt::format("{} over {}", row.name, ranks(shards)), true, saved_by(row, shards), cost_of(row),
                    "without it (plain replicas)", as(Sharding::none), "data"});
  }
  const bool flushes = !s.schedule_file.empty() || find_schedule(s.schedule).updates == Updates::flush;
  const bool whole = !row.shards_parameters && !row.master && !row.servers;
  for (const ShardingRow& other : sharding_rows()) {
    const bool more = other.shards_parameters || !row.shards_optimizer;
    const bool weaving = weaves(sharding_of(other));
    if (other.suggested && more && flushes && whole && s.offload.parameters == MemoryTier::device)
      list.push_back({std::string(other.name), false, "", "",
                      fmt::format("with {}{}", other.name, weaving ? ", micro-batches not woven" : ""),
                      as(sharding_of(other))});
  }
}

// Adds tensor parallelism on grids (Optimus, Tesseract) and cubes (3D) as a technique, and what each rank holds and
// sends.
void add_grid(const Spec& spec, List& list) {
  const Strategy& s = spec.strategy;
  const std::int64_t q = grid_side(s);
  const std::string sides = s.on_cube()          ? fmt::format("{0} x {0} x {0}", q)
                            : s.tensor_depth > 1 ? fmt::format("{0} x {0} x {1}", q, s.tensor_depth)
                                                 : fmt::format("{0} x {0}", q);
  const std::string weights = fmt::format("{}", s.tensor / s.tensor_depth);
  list.push_back({fmt::format("{} tensor grid of {} ranks", s.tensor_kind, sides), true,
                  fmt::format("activations of a rank are 1/{}, weights, states and gradients 1/{}", s.tensor, weights),
                  s.on_cube() ? "inputs, weights and outputs of every product are gathered or scattered along an axis"
                              : "blocks of inputs and weights are broadcast along rows and columns, panel by panel",
                  "without it (as replicas)", changed(spec, [](Strategy& x) { x.tensor = 1; }), ""});
  list.push_back({"the grid", true, "no rank holds or sends a whole side of an activation",
                  "weights travel too, in every micro-batch", "with 1d in its place", changed(spec, [&](Strategy& x) {
                    x.tensor_kind = "1d";
                    x.sequence_parallel = spec.software.layout.sequence_parallel;
                  })});
}

void add_tensor(const Spec& spec, List& list) {
  const Strategy& s = spec.strategy;
  if (s.on_grid()) return add_grid(spec, list);
  if (s.tensor > 1) {
    const std::string form = s.sequence_parallel ? "an all-gather and a reduce-scatter" : "an all-reduce";
    list.push_back(
        {fmt::format("tensor parallelism over {}", ranks(s.tensor)), true,
         fmt::format("weights, states and matrix work of a rank are 1/{}", s.tensor),
         fmt::format("{} of hidden states for attention and for the MLP, forward and backward, in every layer "
                     "and micro-batch, on the critical path; narrower products",
                     form),
         "without it (as replicas)", changed(spec, [](Strategy& x) { x.tensor = x.expert_tensor = 1; }), "tensor"});
    const Spec other = changed(spec, [](Strategy& x) { x.sequence_parallel = !x.sequence_parallel; });
    if (s.sequence_parallel)
      list.push_back(
          {"sequence parallelism", true,
           fmt::format("activations of norms, dropouts and residuals are 1/{} too", s.tensor),
           "forward no more bytes: an all-reduce is a reduce-scatter and an all-gather; backward gathers the "
           "inputs of column-parallel products again, a quarter more in all",
           "without it", other});
    else
      list.push_back({"sequence parallelism", false, "", "", "with sequence parallelism", other});
  }
}

// Adds the techniques of a pipeline schedule (as split backward). once: the spec with plain 1F1B, to compare with.
void add_schedule(const Spec& spec, const Spec& once, List& list) {
  const Strategy& s = spec.strategy;
  if (!s.schedule_file.empty()) return;
  const ScheduleRow& row = find_schedule(s.schedule);
  if (row.updates != Updates::flush)
    list.push_back({fmt::format("asynchronous updates, {}", s.schedule), true,
                    "a step begins before the one before it has ended: the pipeline is never emptied",
                    "gradients are of older weights, whose versions are kept until their micro-batches are done",
                    "without them (1f1b)", once});
  if (runs_both_ways(s.schedule))
    list.push_back(
        {fmt::format("{} copies of the model in opposite directions, {}", model_copies(s.schedule), s.schedule), true,
         "the pipeline fills from both ends at once",
         fmt::format("every stage holds {} stages' parameters and gradients, and copies reduce them together",
                     model_copies(s.schedule)),
         "without it (1f1b)", once});
  else if (row.splits)
    list.push_back({fmt::format("backward in two parts, {}", s.schedule), true,
                    "weight gradients are left for when a stage would wait for others",
                    "what they are made of is kept until then", "without it (1f1b)", once});
  if (spec.software.communication.post_update_validation) {
    Spec barrier = spec;
    barrier.software.communication.post_update_validation = false;
    list.push_back({"updates validated in the next step", true,
                    "no stage waits for the gradients' norm of all: steps overlap",
                    "an update that should have been clipped, or left out, is taken back and made again, and what ran "
                    "since runs again",
                    "without it (a barrier ends each step)", barrier});
  }
  if (row.moves != nullptr)
    list.push_back({fmt::format("activations left with another stage, {}", s.schedule), true,
                    "the first stages keep no more than the average", "what is left goes there and comes back",
                    "without it (1f1b)", once});
}

void add_pipeline(const Spec& spec, List& list) {
  const Strategy& s = spec.strategy;
  if (s.pipeline == 1) return;
  const std::optional<Bubble> bubble = bubble_formula(s, spec.software.communication.post_update_validation);
  const auto plain = [](Strategy& x) {
    x.pipeline = x.virtual_stages = 1;
    x.schedule = kPlainSchedule;
  };
  list.push_back(
      {fmt::format("pipeline of {} stages, {}", s.pipeline, s.schedule), true,
       fmt::format("layers and their states of a rank are 1/{}; only hidden states pass between stages", s.pipeline),
       fmt::format("a bubble{}; {} micro-batches in all, and those in flight keep their activations",
                   bubble ? fmt::format(" of {} = {} of the step", bubble->formula, percent_text(bubble->share)) : "",
                   s.micro_batches()),
       "without it (as replicas)", changed(spec, plain), "pipeline"});
  const auto once = [](Strategy& x) {
    x.virtual_stages = 1;
    x.schedule = kPlainSchedule;
  };
  add_schedule(spec, changed(spec, once), list);
  const auto one_each = [&](Strategy& x) { x.pipeline = s.places(); };
  if (s.places() > s.pipeline)
    list.push_back({fmt::format("stages of {} ranks", fmt::join(s.stage_replicas, ", ")), true,
                    "as many ranks share a stage's micro-batches as its layers need",
                    "they reduce its gradients, and micro-batches are cut and put together between stages",
                    "with a stage for each rank", changed(spec, one_each)});
  const auto twice = [](Strategy& x) {
    x.virtual_stages = 2;
    x.schedule = kChunkedSchedule;
  };
  const auto at_the_ends = [](Strategy& x) { x.schedule = find_schedule(x.schedule).ends; };
  if (spreads_vocabulary(s.schedule))
    list.push_back(
        {fmt::format("vocabulary shared by {} stages", s.pipeline), true,
         fmt::format("embedding table, output and logits of a stage are 1/{}; no stage waits for the last one's "
                     "logits",
                     s.pipeline),
         fmt::format("hidden states pass every stage four times more; {} more micro-batches in flight",
                     find_schedule(s.schedule).vocabulary_barriers),
         fmt::format("without it ({})", find_schedule(s.schedule).ends), changed(spec, at_the_ends)});
  if (s.schedule == kChunkedSchedule)
    list.push_back({fmt::format("{} virtual stages a rank", s.virtual_stages), true,
                    fmt::format("the bubble is 1/{} of 1F1B's", s.virtual_stages),
                    fmt::format("{} times the sends, and more activations in flight", s.virtual_stages),
                    "without them (1f1b)", changed(spec, once)});
  else if (s.schedule == kPlainSchedule)
    list.push_back({"virtual stages", false, "", "", "with 2 virtual stages a rank", changed(spec, twice)});
}

void add_context(const Spec& spec, List& list) {
  const Strategy& s = spec.strategy;
  if (s.context == 1) return;
  list.push_back({fmt::format("context parallelism over {}, {}", ranks(s.context), s.context_kind), true,
                  fmt::format("tokens of a rank, and their activations, are 1/{} of the sequence", s.context),
                  s.context_kind == "ulysses"
                      ? "all-to-alls that turn tokens into heads and back, in every layer"
                      : "keys and values pass every rank, under attention where it lasts longer",
                  "without it (as replicas)",
                  changed(spec, [](Strategy& x) { x.context = x.context_ring = x.context_ulysses = 1; })});
}

void add_recompute(const Spec& spec, List& list) {
  const Strategy& s = spec.strategy;
  const auto with = [&](Recompute r) { return changed(spec, [&](Strategy& x) { x.recompute = r; }); };
  if (s.recompute.any())
    list.push_back({s.recompute.layer ? "full recomputation" : "selective recomputation", true,
                    s.recompute.layer ? "only the input of a layer is kept between forward and backward"
                                      : "what is cheap to compute again is not kept",
                    s.recompute.layer ? "every forward runs twice: up to a third more work" : "those parts run twice",
                    "without it", with({})});
  Recompute full;
  full.layer = true;
  if (!s.recompute.layer) list.push_back({"full recomputation", false, "", "", "with full recomputation", with(full)});
}

void add_offload(const Spec& spec, List& list) {
  const Strategy& s = spec.strategy;
  if (!s.offload.any()) return;
  list.push_back({"offload", true, "states or activations lie on the host or on disks and not on the GPU",
                  "they come and go over PCIe, and the host's processors update what lies there", "without it",
                  changed(spec, [](Strategy& x) { x.offload = {}; })});
}

void add_overlap(const Spec& spec, List& list) {
  const Overlap& o = spec.strategy.overlap;
  const Strategy& s = spec.strategy;
  const bool any =
      (s.data * s.context * s.tensor_depth > 1 && (o.gradient_reduce || o.parameter_gather || o.gather_in_update)) ||
      (s.pipeline > 1 && o.pipeline) || (s.tensor > 1 && o.tensor) || (s.expert > 1 && o.expert) || o.micro_batches;
  if (!any) return;
  list.push_back({"overlap", true, "transfers run under compute", "compute beside them is slower, and buffers are kept",
                  "without any",
                  changed(spec, [](Strategy& x) { x.overlap = {false, false, false, false, false, false}; })});
  if (!o.micro_batches) return;
  list.push_back({"woven micro-batches", true, "one computes while the other's transfers run",
                  "both keep their activations", "without them",
                  changed(spec, [](Strategy& x) { x.overlap.micro_batches = false; })});
}

}  // namespace

List techniques(const Spec& spec) {
  List list;
  for (const auto add : {add_sharding, add_tensor, add_pipeline, add_context, add_experts, add_recompute, add_memory,
                         add_training, add_offload, add_overlap, add_neighbours})
    add(spec, list);
  std::stable_partition(list.begin(), list.end(), [](const Technique& t) { return t.used; });
  return list;
}

List situations(const Spec& spec) {
  List list;
  const Cluster& c = spec.cluster;
  const auto add = [&](std::string name, std::string instead, Spec other) {
    list.push_back({std::move(name), true, "", "", std::move(instead), std::move(other)});
  };
  const auto plain = [](Strategy& x) {
    x.tensor = x.pipeline = x.context = x.virtual_stages = x.expert = x.expert_tensor = 1;
    x.context_ring = x.context_ulysses = 1;
    x.schedule = kPlainSchedule;
    x.overlap.micro_batches = x.overlap.gather_in_update = x.keep_16bit_gradients = false;
    x.sharding = Sharding::none;
    x.offload = {};
    x.fused_buffers = false;
  };
  if (spec.gpus > 1) add("one GPU", "a model on every GPU, as plain replicas", changed(spec, plain));
  const auto shards_all = [](const ShardingRow& row) { return row.suggested && row.shards_parameters; };
  const ShardingRow& smallest = *std::ranges::find_if(sharding_rows(), shards_all);
  if (spec.gpus > c.gpus_per_node) {
    Spec node = changed(spec, plain);
    node.gpus = c.gpus_per_node;
    node.cluster.nodes = 1;
    node.strategy.data = c.gpus_per_node;
    node.strategy.sharding = sharding_of(smallest);
    node.strategy.recompute = {};
    node.strategy.recompute.layer = true;
    node.strategy.micro_batch = 1;
    node.strategy.global_batch = c.gpus_per_node;
    add("one node", fmt::format("one node of {}, {} and full recomputation", c.gpus_per_node, smallest.name),
        std::move(node));
  }
  if (c.nvlink_domain > 1) {
    Spec without = spec;
    without.cluster.nvlink_domain = 1;
    without.cluster.gpu.nvlink_links = 0;
    without.cluster.gpu.nvlink_GBps = without.cluster.gpu.link_GBps = 0;
    add("no NVLink", "the same without NVLink, over PCIe", std::move(without));
  }
  if (c.fabric != Fabric::ethernet && spec.gpus > c.gpus_per_node && c.nics > 0) {
    Spec slow = spec;
    slow.cluster.fabric = Fabric::ethernet;
    slow.cluster.nics = 1;
    slow.cluster.nic_Gbps = 100;
    add(fmt::format("no {}", name_of(c.fabric)),
        fmt::format("the same over one 100 Gb/s Ethernet NIC a node in the place of {} x {:.0f} Gb/s", c.nics,
                    c.nic_Gbps),
        std::move(slow));
  }
  return list;
}

}  // namespace orrery
