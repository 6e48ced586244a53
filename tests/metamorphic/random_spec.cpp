#include "tests/metamorphic/random_spec.h"

#include "models/base/data.h"
#include "models/base/error.h"
#include "models/families/hugging_face.h"
#include "models/load/load_spec.h"
#include "models/load/open_spec.h"
#include "models/schedule/schedules.h"
#include "models/spec/recipes.h"
#include "models/spec/sharding.h"
#include "models/spec/spec.h"
#include "sim/search/space.h"

namespace orrery::test {
namespace {

constexpr std::string_view kRankOrders[] = {"tp-cp-pp-dp", "pp-tp-cp-ep-dp", "tp-cp-ep-dp-pp", "dp-tp-cp-pp"};

// The strategy drawn so far, with the degrees on which its other parts depend.
struct Drawn {
  Json model, strategy;
  const ScheduleRow* schedule = nullptr;
  std::int64_t micro_batches = 1;

  std::int64_t degree(const char* key) const { return strategy.value(key, std::int64_t{1}); }
  std::int64_t gpus() const { return degree("tensor") * degree("pipeline") * degree("context") * degree("data"); }
  void set_batch(std::int64_t micro_batch) {
    strategy["micro_batch"] = micro_batch;
    strategy["global_batch"] = micro_batch * degree("data") * micro_batches;
  }
};

void draw_schedule(Draw& draw, Drawn& d, const std::vector<std::string>& schedules) {
  const std::int64_t p = d.degree("pipeline");
  if (p > 1) {
    d.schedule = schedules.empty() ? &schedule_rows()[draw.below(schedule_rows().size())]
                                   : &find_schedule(schedules[draw.below(schedules.size())]);
    d.strategy["schedule"] = d.schedule->name;
    if (d.schedule->chunks == 0) d.strategy["virtual_stages"] = draw.of({2, 3});
    const std::int64_t chunks = d.schedule->chunks == 0 ? d.degree("virtual_stages") : d.schedule->chunks;
    if (d.model.is_object()) d.model["layers"] = p * std::max<std::int64_t>(2, chunks) * draw.of({1, 1, 2});
  }
  const bool twice = d.schedule != nullptr && d.schedule->placement == ChunkPlacement::both_ways;
  d.micro_batches = draw.of({1, 2, 3, 5}) * (draw.chance(.8) ? p : 1) * (twice ? d.schedule->copies : 1);
  d.set_batch(draw.of({1, 1, 2, 4}));
}

void draw_servers(Draw& draw, Drawn& d) {
  Json& s = d.strategy;
  s["parameter_server"] = {{"servers", draw.of({1, 2, 4})}, {"mode", draw.of({"sync", "async", "ssp"})}};
  if (draw.chance(.7)) {
    for (const char* key : {"tensor", "pipeline", "context"}) s[key] = 1;
    s.erase("schedule");
    s.erase("virtual_stages");
    d.schedule = nullptr;
    d.micro_batches = 2;
    d.set_batch(d.degree("micro_batch"));
  }
  if (draw.chance(.7) || s["parameter_server"]["mode"] != "sync") s["clip"] = 0;
}

void draw_sharding(Draw& draw, Drawn& d) {
  const std::vector<ShardingRow>& rows = sharding_rows();
  const ShardingRow* row = &rows[draw.below(rows.size())];
  while ((row->servers || row->master) && !draw.chance(.4)) row = &rows[draw.below(rows.size())];
  d.strategy["sharding"] = row->name;
  if (row->servers) draw_servers(draw, d);
}

void draw_experts(Draw& draw, Drawn& d) {
  const std::string name = d.model.is_string() ? d.model.get<std::string>() : "";
  std::int64_t experts = 0;
  if (name.empty() && d.model.contains("moe")) experts = d.model["moe"]["experts"].get<std::int64_t>();
  if (!name.empty() && find_model(name).moe) experts = find_model(name).moe->experts;
  if (experts == 0) return;
  const std::int64_t ranks = d.degree("tensor") * d.degree("context") * d.degree("data");
  std::int64_t expert = draw.of({1, 2, 4, 8}), cut = draw.of({1, 1, 1, 2});
  while (expert > 1 && (experts % expert != 0 || ranks % (expert * cut) != 0)) expert /= 2;
  if (ranks % (expert * cut) != 0) cut = 1;
  d.strategy["expert"] = expert;
  d.strategy["expert_tensor"] = cut;
}

void draw_layout(Draw& draw, Drawn& d) {
  Json& s = d.strategy;
  if (d.degree("context") > 1) s["context_kind"] = draw.from(kContextKinds);
  draw_experts(draw, d);
  if (draw.chance(.08) && d.degree("tensor") >= 4) {
    s["tensor_kind"] = d.degree("tensor") == 4 ? "2d" : draw.of({"2.5d", "3d"});
    d.set_batch(4);
  }
  if (draw.chance(.1) && d.degree("tensor") > 1) s["sequence_parallel"] = false;
  if (draw.chance(.1)) s["rank_order"] = draw.from(kRankOrders);
  if (d.schedule != nullptr && draw.chance(.04)) {
    s["stage_replicas"] = Json::array();
    for (std::int64_t i = 0; i < d.degree("pipeline"); ++i) s["stage_replicas"].push_back(draw.of({1, 2}));
    s["context"] = 1;
    d.set_batch(2);
  }
}

void draw_memory(Draw& draw, const Json& m, Json& s) {
  std::vector<std::string_view> parts = recompute_parts();
  std::erase_if(parts, [&](std::string_view part) {
    return (part.starts_with("moe") && !m.contains("moe")) || (part.starts_with("mla") && !m.contains("mla"));
  });
  s["recompute"] =
      draw.of<Json>({"none", "none", "selective", "full", Json::array({draw.from(parts), draw.from(parts)})});
  if (draw.chance(.1)) s["recompute_layers"] = 1;
  if (draw.chance(.2))
    s["optimizer"] = draw.of<Json>({"sgd", "adam", Json::object({{"name", "adamw"}, {"moments", "bf16"}})});
  if (!draw.chance(.15)) return;
  const Json kinds = Json::parse(R"([{"optimizer": "cpu"}, {"optimizer": "cpu", "gradients": "cpu"},
    {"activations": "cpu"}, {"optimizer": "nvme"}, {"optimizer": "cpu", "parameters": "cpu", "gradients": "cpu"},
    {"optimizer": {"device": "cpu", "delayed_update": true}}, {"activations": {"device": "cpu", "layers": 1}},
    {"tiling": 2}, {"activations": "nvme"}])");
  s["offload"] = kinds[draw.below(kinds.size())];
  const bool whole = s["sharding"] == "none" || s["sharding"] == "hsdp" || s["sharding"] == "data-parallel";
  if (s["offload"].contains("optimizer") && whole) s["sharding"] = "zero2";
  if (s["offload"].contains("parameters")) s["sharding"] = "zero3";
}

void draw_transfers(Draw& draw, Json& s) {
  for (const char* key : {"gradient_reduce", "parameter_gather", "tensor", "pipeline"})
    if (draw.chance(.18)) s["overlap"][key] = draw.chance(.5);
  if (draw.chance(.06)) s["overlap"]["parameter_gather"] = "update";
  if (draw.chance(.1)) s["bucket_MiB"] = draw.of({0, 1, 25, 200});
  if (draw.chance(.15)) {
    s["prefetch_units"] = draw.of({0, 1, 2, 4});
    s["units_in_flight"] = draw.of({1, 2, 4});
  }
  if (draw.chance(.15) && s.value("context", 1) == 1) s["attention"] = "unfused";
  if (draw.chance(.2)) s["gradient_precision"] = draw.of({"bf16", "fp32"});
}

// When gradients are reduced, units of several layers, and ZeRO++.
void draw_reductions(Draw& draw, Json& s) {
  const std::string sharding = s["sharding"];
  if (draw.chance(.12)) s["no_sync"] = draw.chance(.5);
  if (draw.chance(.08)) {
    s["keep_16bit_gradients"] = true;
    s["gradient_precision"] = "fp32";
  }
  const bool gathers = row_of(find_sharding(sharding)).shards_parameters;
  if (gathers && draw.chance(.2)) s["units"] = draw.of<Json>({"model", 2, 3, Json::parse("[[0, 1]]")});
  if (sharding == "zero3" && draw.chance(.2))
    s["zero_quantize"] =
        Json::parse(draw.of({R"({"weights": "int8"})", R"({"gradients": "int4"})", R"({"gradients": "int8"})",
                             R"({"secondary_shards": "node"})",
                             R"({"weights": "int8", "gradients": "int4", "secondary_shards": "node"})"}));
}

// Adapters, frozen parts, and optimizers that keep other states than Adam.
void draw_training(Draw& draw, Drawn& d) {
  if (draw.chance(.15) && d.model.is_object()) {
    if (draw.chance(.5))
      d.model["lora"] = {{"rank", draw.of({4, 16, 64})},
                         {"targets", draw.of<Json>({"qkv", "mlp", Json::array({"qkv", "out", "mlp"})})}};
    else
      d.model["frozen"] =
          draw.of<Json>({"embedding", "attention", Json::array({"embedding", "attention", "mlp"}), "head"});
    if (draw.chance(.7)) d.model.erase("moe");
    if (d.model.contains("lora") && draw.chance(.3)) d.model["lora"]["weights"] = "nf4";
  }
  if (draw.chance(.12))
    d.strategy["optimizer"] =
        draw.of<Json>({"lion", "adafactor", "muon", Json::object({{"name", "adamw"}, {"states", "8bit"}})});
}

bool computes(const Gpu& gpu, std::string_view precision) {
  try {
    return peak_flops(gpu, find_precision(precision)) > 0;
  } catch (const Error&) {
    return false;
  }
}

// Mostly bf16, else any that the GPU has.
std::string_view random_precision(Draw& draw, const Gpu& gpu) {
  const std::vector<std::string_view> all = precision_names();
  const std::string_view drawn = draw.chance(.5) ? "bf16" : draw.from(all);
  for (const std::string_view p : {drawn, std::string_view("bf16"), std::string_view("fp16")})
    if (computes(gpu, p)) return p;
  return "fp32";
}

// Removes settings that the drawn schedule cannot be combined with.
void fit_to_schedule(Drawn& d) {
  if (d.schedule == nullptr) return;
  const bool plain = d.schedule->placement == ChunkPlacement::in_turn && d.schedule->moves == nullptr &&
                     d.schedule->vocabulary_barriers == 0 && d.schedule->updates == Updates::flush;
  if (!plain) d.strategy.erase("offload");
  if (d.schedule->updates != Updates::flush) {
    d.strategy["clip"] = 0;
    d.strategy["sharding"] = "none";
    d.strategy.erase("parameter_server");
    if (d.model.is_object()) d.model.erase("tied_embeddings");
  }
  if (d.schedule->vocabulary_barriers > 0 && d.model.is_object()) {
    d.model.erase("logit_softcap");
    d.model.erase("mtp_layers");
  }
}

// A frozen model beside the one that trains: a teacher of another shape, or a policy's reference. What no second model
// is built with yet is left out. Returns the sections of the spec.
Json draw_second(Draw& draw, Drawn& d) {
  for (const char* key : {"lora", "frozen", "mtp_layers", "vision"}) d.model.erase(key);
  for (const char* key : {"units", "zero_quantize", "stage_replicas", "tensor_kind", "quantise"}) d.strategy.erase(key);
  const std::string precision = d.strategy["precision"];
  if (precision != "fp16" && precision != "fp32") d.strategy["precision"] = "bf16";
  const std::string sharding = d.strategy.value("sharding", "none");
  const bool hosts_weights = (sharding == "zero3" || sharding == "fsdp") && draw.chance(.3);
  if (draw.chance(.35)) {
    d.set_batch(draw.of({2, 4}));
    Json dpo = {{"beta", 0.1}};
    if (hosts_weights) dpo["offload"] = true;
    return {{"dpo", dpo}};
  }
  Json teacher = random_model(draw);
  while (!teacher.is_object()) teacher = random_model(draw);
  if (teacher["heads"].get<std::int64_t>() % d.degree("tensor") != 0) teacher = d.model;
  teacher["layers"] = d.model["layers"].get<std::int64_t>() * draw.of({1, 2});
  teacher["vocab"] = d.model["vocab"];
  for (const char* key : {"mtp_layers", "vision"}) teacher.erase(key);
  if (!d.model.contains("moe")) {
    std::swap(d.model, teacher);
    draw_experts(draw, d);
    std::swap(d.model, teacher);
  }
  if (teacher.contains("moe") && teacher["moe"]["experts"].get<std::int64_t>() % d.degree("expert") != 0)
    teacher.erase("moe");
  Json distill = {{"temperature", draw.of({1, 2})}};
  if (hosts_weights) distill["offload"] = true;
  // The first and the last hidden states of both models are on one stage in every layout.
  const bool streams = teacher.contains("hyper_connections") || d.model.contains("hyper_connections");
  if (!streams && draw.chance(.4))
    distill["features"] = {{"student", {0, d.model["layers"]}}, {"teacher", {0, teacher["layers"]}}, {"weight", 0.5}};
  return {{"teacher", teacher}, {"distill", distill}};
}

// The divisors and multiples of a degree, small ones.
std::vector<std::int64_t> nested(std::int64_t degree) {
  std::vector<std::int64_t> all;
  for (const std::int64_t n : {1, 2, 4, 8}) {
    if (n % degree == 0 || degree % n == 0) all.push_back(n);
  }
  return all;
}

// Puts a drawn second model on GPUs of its own, cut in its own way; returns their number.
std::int64_t draw_own_gpus(Draw& draw, const Drawn& d, Json& second) {
  Json& section = second[second.contains("dpo") ? "dpo" : "distill"];
  for (const char* key : {"offload", "features"}) section.erase(key);
  const Json& model = second.contains("teacher") ? second["teacher"] : d.model;
  Json s = {{"tensor", draw.from(nested(d.degree("tensor")))},
            {"pipeline", draw.of({1, 1, 2, 3})},
            {"data", draw.from(nested(d.degree("data")))}};
  if (model["layers"].get<std::int64_t>() < s["pipeline"].get<std::int64_t>()) s["pipeline"] = 1;
  if (model.contains("moe") && draw.chance(.5)) s["expert"] = draw.of({2, 4});
  std::int64_t gpus = d.degree("context");
  for (const char* key : {"tensor", "pipeline", "data"}) gpus *= s[key].get<std::int64_t>();
  section["gpus"] = gpus;
  section["strategy"] = s;
  return gpus;
}

Json random_software(Draw& draw) {
  const std::string_view name = draw.chance(.35)   ? "megatron-core"
                                : draw.chance(.35) ? "orrery"
                                                   : draw.from(data_names("software"));
  if (!draw.chance(.15)) return name;
  if (draw.chance(.3))
    return {{"profile", name},
            {"cuda_graphs", true},
            {"cuda_graph_scope", draw.of({"layer", "attention", "attention_and_router"})}};
  return {{"profile", name}, {draw.of({"compile", "cuda_graphs"}), true}};
}

// A built-in training recipe, with few micro-batches.
Json random_recipe(Draw& draw) {
  Json spec = Json::parse(find_recipe(draw.from(recipe_names())).spec);
  const Strategy s = parse_spec(spec.dump(), "spec.yaml").strategy;
  spec["strategy"]["global_batch"] = std::min(s.global_batch, s.micro_batch * s.data * s.pipeline);
  return spec;
}

}  // namespace

Json random_spec(Draw& draw, const std::vector<std::string>& schedules) {
  if (draw.chance(.03) && schedules.empty()) return random_recipe(draw);
  Drawn d;
  d.strategy = {{"tensor", draw.of({1, 1, 2, 2, 4, 8})},
                {"pipeline", draw.of({1, 1, 2, 4, 4, 8})},
                {"context", draw.of({1, 1, 1, 1, 2, 4})},
                {"data", draw.of({1, 2, 2, 4, 8})}};
  if (!schedules.empty() && d.degree("pipeline") == 1) d.strategy["pipeline"] = 4;
  d.model = random_model(draw);
  if (d.model.is_object() && d.model["heads"].get<std::int64_t>() % d.degree("tensor") != 0) {
    d.model["heads"] = 8;
    d.model["hidden"] = 1024;
    d.model.erase("kv_heads");
  }
  draw_schedule(draw, d, schedules);
  draw_sharding(draw, d);
  draw_layout(draw, d);
  draw_memory(draw, d.model, d.strategy);
  draw_transfers(draw, d.strategy);
  fit_to_schedule(d);
  std::int64_t gpus = d.gpus();
  if (d.strategy.contains("stage_replicas")) {
    std::int64_t places = 0;
    for (const Json& n : d.strategy["stage_replicas"]) places += n.get<std::int64_t>();
    gpus = gpus / d.degree("pipeline") * places;
  }
  Json cluster = random_cluster(draw, gpus);
  d.strategy["precision"] = random_precision(draw, cluster_of(cluster).gpu);
  std::int64_t sequence = draw.of({256, 512, 1024, 2048, 4096, 8192});
  if (d.model.is_string()) {
    const std::int64_t most = find_model(d.model.get<std::string>()).max_positions;
    if (most > 0) sequence = std::min(sequence, most);
  }
  const Json software = random_software(draw);
  draw_reductions(draw, d.strategy);
  draw_training(draw, d);
  const bool plain = d.schedule == nullptr || d.schedule->placement == ChunkPlacement::in_turn;
  const bool two = plain && d.model.is_object() && draw.chance(.08);
  Json second = two ? draw_second(draw, d) : Json::object();
  if (two && !cluster.contains("network") && draw.chance(.4)) {
    gpus += draw_own_gpus(draw, d, second);
    cluster["nodes"] = ceil_div(gpus, cluster_of(cluster).gpus_per_node);
  }
  Json samples = sequence;
  if (draw.chance(.1)) samples = {{"length", sequence}, {"documents", {{"mean", sequence / draw.of({2, 5, 12})}}}};
  Json spec = {{"model", d.model}, {"sequence", samples},  {"cluster", cluster},
               {"gpus", gpus},     {"software", software}, {"strategy", d.strategy}};
  spec.update(second);
  return spec;
}

Json with(Json spec, std::string_view path, const Json& value) {
  Json* at = &spec;
  for (std::size_t dot = path.find('.'); dot != std::string_view::npos; dot = path.find('.')) {
    const std::string key(path.substr(0, dot));
    const std::string named = key == "software"  ? "profile"
                              : key == "model"   ? "base"
                              : key == "cluster" ? "node"
                                                 : "name";
    at = &(*at)[key];
    if (at->is_string()) *at = Json{{named, at->get<std::string>()}};
    path.remove_prefix(dot + 1);
  }
  if (value.is_null())
    at->erase(std::string(path));
  else
    (*at)[std::string(path)] = value;
  return spec;
}

Json with_a_switch_turned(Draw& draw, const Json& spec) {
  std::vector<const Origin*> switches;
  const Spec parsed = parse_spec(spec.dump(), "spec.yaml");
  for (const Origin& o : parsed.origins) {
    if (o.value == "true" || o.value == "false") switches.push_back(&o);
  }
  const Origin& turned = *draw.from(switches);
  return with(spec, turned.key, turned.value == "false");
}

}  // namespace orrery::test
