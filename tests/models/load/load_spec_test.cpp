#include "models/spec/spec.h"

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/base/data.h"
#include "models/base/error.h"
#include "models/load/load_spec.h"
#include "models/load/open_spec.h"
#include "models/spec/sharding.h"
#include "tests/random_bits.h"
#include "tests/temporary_folder.h"

namespace orrery {
namespace {

// A spec with every key, whole.
constexpr const char* kWhole = R"(model:
  name: my-model
  layers: 80
  hidden: 8192
  heads: 64
  kv_heads: 8
  head_dim: 128
  feed_forward: 28672
  gated: true
  vocab: 128256
  tied_embeddings: false
  positions: rope
  norm: rmsnorm
  bias: false
  dropout: 0.0
  parallel_block: false
  sliding_window: {window: 4096, every: 2}
  moe: {experts: 8, top_k: 2, feed_forward: 14336, shared_feed_forward: 0, first_layer: 0, every: 1, capacity_factor: null, pad_to_capacity: false, imbalance: 1.0, score: softmax, aux_loss: 0.01, dispatch: flat}
  mtp_layers: 0
sequence: 8192
cluster: {node: dgx-h100, nodes: 8}
gpus: 64
software: megatron-core
strategy:
  tensor: 8
  tensor_kind: 1d
  sequence_parallel: true
  pipeline: 4
  virtual_stages: 1
  schedule: 1f1b
  stage_layers: null
  context: 1
  context_kind: ring
  expert: 1
  expert_tensor: 1
  data: 2
  rank_order: null
  sharding: zero1
  shard_group: null
  bucket_MiB: null
  prefetch_units: 1
  units_in_flight: 2
  micro_batch: 1
  global_batch: 512
  precision: bf16
  gradient_precision: fp32
  optimizer: adamw
  clip: 1.0
  recompute: selective
  recompute_layers: null
  partition_activations: false
  attention: flash
  overlap: {gradient_reduce: true, parameter_gather: true, tensor: false, pipeline: true}
  offload: {optimizer: none, parameters: none, gradients: none, activations: none}
steps: 1
seed: 0
)";

// The shortest valid spec.
constexpr const char* kShort = R"(model: llama-3.1-8b
sequence: 8192
cluster: {node: dgx-h100, nodes: 1}
)";

Spec short_spec(const std::vector<std::string>& overrides) { return parse_spec(kShort, "spec.yaml", overrides); }

std::string error_of(const std::string& text, const std::vector<std::string>& overrides = {}) {
  const std::clock_t start = std::clock();  // processor time of this process: other processes may be using the machine
  std::string message = "no error";
  try {
    parse_spec(text, "spec.yaml", overrides);
  } catch (const Error& e) {
    message = e.what();
    EXPECT_EQ(e.exit_code, 2);
  } catch (const std::exception& e) {
    message = std::string("not an Error: ") + e.what();
  }
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  EXPECT_LT(message.size(), 1500u) << message;
  EXPECT_LT(std::clock() - start, CLOCKS_PER_SEC) << message;
  return message;
}

std::map<std::string, Origin> origins_of(const Spec& spec) {
  std::map<std::string, Origin> map;
  for (const Origin& origin : spec.origins) {
    EXPECT_TRUE(map.emplace(origin.key, origin).second) << origin.key << " is recorded twice";
  }
  return map;
}

TEST(Spec, ReadsTheContractsExample) {
  const Spec spec = parse_spec(kWhole, "whole.yaml");
  EXPECT_EQ(spec.name, "whole");
  EXPECT_EQ(spec.model.name, "my-model");
  EXPECT_EQ(spec.model.moe->experts, 8);
  EXPECT_EQ(spec.model.sliding_window->every, 2);
  EXPECT_EQ(spec.cluster.gpu.id, "h100-sxm");
  EXPECT_EQ(spec.gpus, 64);
  EXPECT_EQ(spec.strategy.sharding, find_sharding("zero1"));
  EXPECT_TRUE(spec.strategy.recompute.attention);
  EXPECT_FALSE(spec.strategy.recompute.layer);
  EXPECT_EQ(spec.strategy.micro_batches(), 256);
  EXPECT_EQ(spec.strategy.rank_order, "tp-cp-ep-dp-pp");
}

TEST(Spec, FillsWhatIsAbsent) {
  const Spec spec = short_spec({});
  const Strategy& s = spec.strategy;
  EXPECT_EQ(spec.gpus, 8);
  EXPECT_EQ(s.data, 8);
  EXPECT_EQ(s.micro_batch, 1);
  EXPECT_EQ(s.global_batch, 8);
  EXPECT_FALSE(s.sequence_parallel);
  EXPECT_EQ(s.schedule, "1f1b");
  EXPECT_EQ(s.sharding, Sharding::none);
  EXPECT_EQ(s.precision, Precision::bf16);
  EXPECT_EQ(s.gradient_precision, Precision::fp32);
  EXPECT_EQ(s.optimizer.kind, OptimizerKind::adamw);
  EXPECT_EQ(s.optimizer.master_bytes, 4);
  EXPECT_EQ(s.clip, 1.0);
  EXPECT_FALSE(s.recompute.any());
  EXPECT_EQ(s.attention, Attention::flash);
  EXPECT_TRUE(s.overlap.gradient_reduce && s.overlap.parameter_gather && s.overlap.pipeline);
  EXPECT_FALSE(s.overlap.tensor);
  EXPECT_FALSE(s.offload.any());
  EXPECT_EQ(spec.software.name, "megatron-core");
}

TEST(Spec, DerivesDegreesFromEachOther) {
  EXPECT_EQ(short_spec({"strategy.tp=2", "strategy.pp=2"}).strategy.data, 2);
  EXPECT_EQ(short_spec({"strategy.tp=2", "strategy.dp=2"}).gpus, 4);
  EXPECT_EQ(short_spec({"gpus=4", "strategy.tensor=2"}).strategy.data, 2);
  EXPECT_TRUE(short_spec({"strategy.tensor=2"}).strategy.sequence_parallel);
  const Spec chunked = short_spec({"strategy.pp=2", "strategy.vp=2", "strategy.global_batch=8"});
  EXPECT_EQ(chunked.strategy.schedule, "interleaved");
}

TEST(Spec, TakesTheProfilesHabits) {
  const Spec old = short_spec({"software=megatron-lm-2021", "strategy.tensor=2", "strategy.precision=fp16"});
  EXPECT_FALSE(old.strategy.sequence_parallel);
  EXPECT_EQ(old.strategy.attention, Attention::unfused);
  EXPECT_EQ(old.strategy.gradient_precision, Precision::fp16);
  EXPECT_FALSE(old.strategy.overlap.gradient_reduce);
  EXPECT_EQ(origins_of(old).at("strategy.attention").from, "profile megatron-lm-2021");
  EXPECT_TRUE(short_spec({"software=nanotron"}).strategy.overlap.gradient_reduce);
  EXPECT_FALSE(short_spec({"software=nanotron", "strategy.sharding=zero1"}).strategy.overlap.gradient_reduce);
  const Spec compiled = short_spec({"software={profile: torchtitan, compile: true, launch_us: 2 us}"});
  EXPECT_TRUE(compiled.software.kernels.compile);
  EXPECT_EQ(compiled.software.host.launch_us, 2);
  const std::vector<std::string> mixtral{"model=mixtral-8x7b", "strategy.tp=2", "strategy.ep=2"};
  EXPECT_EQ(short_spec(mixtral).strategy.expert_tensor, 2);
}

// Selective checkpointing by operation keeps what its list names: FlashAttention's output, not cuDNN's.
TEST(Spec, OperationsThatAreNotListedRunAgain) {
  for (const bool cudnn : {false, true}) {
    const std::string kernel = fmt::format("software.attention_kernel={}", cudnn ? "cudnn" : "fa2");
    const Spec spec = short_spec({"software=torchtitan", kernel, "strategy.recompute=selective"});
    EXPECT_TRUE(spec.strategy.recompute.every_second_mlp);
    EXPECT_EQ(spec.strategy.recompute.attention, cudnn);
  }
}

TEST(Spec, RecordsEveryOrigin) {
  const Spec spec = parse_spec(std::string(kShort) + "strategy:\n  tp: 2\n", "spec.yaml", {"strategy.pp=2"});
  const auto origins = origins_of(spec);
  EXPECT_EQ(origins.at("model.base").from, "spec.yaml:1");
  EXPECT_EQ(origins.at("model.layers").value, "32");
  EXPECT_EQ(origins.at("model.layers").from, "model llama-3.1-8b");
  EXPECT_EQ(origins.at("sequence").from, "spec.yaml:2");
  EXPECT_EQ(origins.at("cluster.gpu").from, "node dgx-h100");
  EXPECT_EQ(origins.at("gpus").from, "all of the cluster");
  EXPECT_EQ(origins.at("strategy.tensor").from, "spec.yaml:5");
  EXPECT_EQ(origins.at("strategy.pipeline").from, "--set");
  EXPECT_EQ(origins.at("strategy.data").value, "2");
  EXPECT_EQ(origins.at("strategy.data").from, "gpus / (tensor * pipeline * context)");
  EXPECT_EQ(origins.at("strategy.micro_batch").from, "default");
  EXPECT_EQ(spec.origins.front().key, "model.base");
  EXPECT_EQ(spec.origins.back().key, "seed");
}

TEST(Spec, ReadsUnits) {
  const std::string parts =
      "cluster: {gpu: h100-sxm, gpus_per_node: 8, nodes: 2, nics: 8, nic_Gbps: 50 GB/s, fabric: roce,\n"
      "  oversubscription: {above_gpus: 3072, ratio: 7}, host: {dram_GiB: 2 TiB, dram_GBps: 600},\n"
      "  nvme: {TB: 30.7, read_GBps: 50, write_GBps: 20 GB/s}, pcie: {gpus_per_switch: 1}}\n";
  const Spec spec =
      parse_spec("model: gpt2\nsequence: 1024\n" + parts + "strategy: {bucket_MiB: 1 GiB}\n", "spec.yaml");
  EXPECT_DOUBLE_EQ(spec.cluster.nic_Gbps, 400);
  EXPECT_EQ(spec.cluster.fabric, Fabric::roce);
  EXPECT_EQ(spec.cluster.host->dram_bytes, Bytes{2} << 40);
  EXPECT_EQ(spec.cluster.nvlink_domain, 8);
  EXPECT_EQ(spec.cluster.oversubscription, 7);
  EXPECT_DOUBLE_EQ(spec.strategy.bucket_MiB, 1024);
}

TEST(Spec, ReadsJsonAsWell) {
  const std::string text =
      "{\n\t\"model\": \"gpt2\",\n\t\"sequence\": 1024,\n\t\"cluster\": {\"node\": \"dgx-a100\", \"nodes\": 1},\n"
      "\t\"strategy\": {\"tensor\": 2, \"recompute\": [\"norm\", \"mlp\"], \"stage_layers\": null}\n}\n";
  const Spec spec = parse_spec(text, "spec.json");
  EXPECT_EQ(spec.strategy.tensor, 2);
  EXPECT_TRUE(spec.strategy.recompute.norm && spec.strategy.recompute.mlp);
}

TEST(Spec, ReadsTheLongFormsOfStrategyKeys) {
  const test::TemporaryFolder folder;
  const std::string order = folder.path("order.txt");
  std::ofstream(order) << "F0 B0";
  const Spec spec = short_spec(
      {"strategy.optimizer={name: adam, moments: bf16}", "strategy.context=4",
       "strategy.context_kind={ring: 2, ulysses: 2}", "strategy.schedule={file: " + order + "}",
       "strategy.sharding=zero2", "strategy.offload={optimizer: {device: cpu, delayed_update: true}, tiling: 4}",
       "strategy.offload.activations.layers=20", "strategy.offload.activations.device=cpu", "strategy.recompute=full",
       "strategy.recompute_layers=3", "search={tensor: [1, 2, 4]}"});
  const Strategy& s = spec.strategy;
  EXPECT_EQ(s.optimizer.moment_bytes, 2);
  EXPECT_EQ(s.context_kind, "mixed");
  EXPECT_EQ(s.context_ring * s.context_ulysses, 4);
  EXPECT_EQ(s.schedule, "file");
  EXPECT_EQ(s.schedule_file, order);
  EXPECT_EQ(s.schedule_text, "F0 B0");
  EXPECT_TRUE(s.offload.delayed_update);
  EXPECT_EQ(s.offload.activation_layers, 20);
  EXPECT_EQ(s.offload.tiling, 4);
  EXPECT_TRUE(s.recompute.layer);
  EXPECT_EQ(s.recompute.layers, 3);
}

TEST(Spec, OverridesReachIntoShortForms) {
  const Spec spec = short_spec(
      {"model.layers=4", "software.compile=true", "strategy.optimizer.moments=bf16", "cluster.nic_Gbps=200"});
  EXPECT_EQ(spec.model.layers, 4);
  EXPECT_EQ(spec.model.hidden, 4096);
  EXPECT_EQ(spec.cluster.nic_Gbps, 200);
  EXPECT_EQ(parse_spec(kWhole, "w.yaml", {"strategy.tp=4", "strategy.data=4"}).strategy.tensor, 4);
}

TEST(Spec, ReadsAConfigBesideTheSpec) {
  const test::TemporaryFolder folder;
  std::filesystem::create_directory(folder.path("hub"));
  std::ofstream(folder.path("hub/config.json")) << data_file("models/llama-3.2-1b.json");
  std::ofstream(folder.path("spec.yaml")) << "model: hub/config.json\nsequence: 128\ncluster: {node: dgx-h100}\n";
  const Spec spec = load_spec(folder.path("spec.yaml"));
  EXPECT_EQ(spec.model.layers, 16);
  EXPECT_EQ(spec.model.name, "hub");
  EXPECT_EQ(load_spec(folder.path("spec.yaml"), {"model=hub/"}).model.layers, 16);
}

TEST(Spec, LocalhostHasAsManyRanksAsAsked) {
  const Spec spec =
      short_spec({"cluster={node: localhost}", "model=gpt2", "sequence=64", "strategy.tp=2", "strategy.dp=3"});
  EXPECT_EQ(spec.gpus, 6);
  EXPECT_EQ(gpus_of(spec.cluster), 6);
  EXPECT_EQ(short_spec({"cluster={node: localhost}", "gpus=4"}).strategy.data, 4);
  EXPECT_EQ(short_spec({"cluster={node: localhost}"}).gpus, 1);
}

TEST(Spec, EveryModelNodeAndProfileCombines) {
  for (std::string_view model : data_names("models")) {
    EXPECT_NO_THROW(short_spec({"sequence=1024", "model=" + std::string(model)})) << model;
  }
  for (std::string_view node : data_names("nodes")) {
    const bool old = node.starts_with("dgx-1v") || node == "dgx-2";
    EXPECT_NO_THROW(short_spec({"cluster={node: " + std::string(node) + ", nodes: 2}",
                                std::string("strategy.precision=") + (old ? "fp16" : "bf16")}))
        << node;
  }
  for (std::string_view profile : data_names("software")) {
    EXPECT_EQ(short_spec({"software=" + std::string(profile)}).software.name, profile);
  }
}

struct Case {
  std::vector<std::string> overrides;
  std::string expected;  // a part of the message
};

TEST(Spec, RefusesBrokenRulesInOneLine) {
  const std::string moe = "model=mixtral-8x7b";
  const std::vector<Case> cases = {
      {{"strategy.tensr=4"}, "--set: strategy.tensr: unknown key tensr; did you mean tensor?"},
      {{"strategy.tensor=3"}, "tensor * pipeline * context: 3"},
      {{"strategy.tensor=16", "cluster.nodes=2", "model.heads=40", "model.kv_heads=40"},
       "tensor: 16 does not divide heads: 40"},
      {{"strategy.tensor=0"}, "strategy.tensor: 0 is not between 1"},
      {{"strategy.tensor=-2"}, "strategy.tensor: -2"},
      {{"strategy.tensor=two"}, "strategy.tensor: two is not a whole number"},
      {{"strategy.tensor=2.5"}, "strategy.tensor: 2.5 is not a whole number"},
      {{"strategy.tensor=[1, 2]"}, "strategy.tensor: a single value is needed"},
      {{"strategy.tensor=1000000000000000000"}, "strategy.tensor"},
      {{"strategy.tensor=1e300"}, "strategy.tensor"},
      {{"strategy.tensor=8000000", "strategy.pp=8000000"}, "is above 10000000"},
      {{"strategy.tensor=8", "model.kv_heads=6", "model.heads=48"}, "kv_heads: 6"},
      {{"strategy.tensor=8", "model.feed_forward=14340"}, "tensor: 8 does not divide feed_forward: 14340"},
      {{"strategy.tensor=8", "sequence=1001"}, "sequence_parallel needs it"},
      {{"strategy.tensor_kind=4d"}, "unknown word 4d"},
      {{"strategy.tensor=8", "strategy.tensor_kind=2d"}, "tensor: 8 makes no 2d grid"},
      {{"strategy.tensor=4", "strategy.tensor_kind=2d", "model.kv_heads=3", "model.heads=48"},
       "tensor: the side 2 of its grid and kv_heads: 3: neither divides the other"},
      {{"strategy.keep_16bit_gradients=true", "strategy.gradient_precision=bf16"},
       "keep_16bit_gradients: precision: bf16 with gradient_precision: bf16 has no 16-bit gradients beside fp32 sums"},
      {{"strategy.keep_16bit_gradients=true", "strategy.sharding=zero3", "strategy.gradient_precision=fp32"},
       "a unit's gradient has 16 bits until it is reduced"},
      {{"strategy.tensor=8", "strategy.tensor_kind=3d", "model.kv_heads=1"},
       "tensor: the side 2 of its cube does not divide kv_heads: 1; choose 2d or 2.5d"},
      {{"strategy.pipeline=8", "model.layers=5"}, "pipeline: 8 * virtual_stages: 1 are more stages than layers: 5"},
      {{"strategy.pipeline=2", "strategy.virtual_stages=2", "strategy.schedule=1f1b"}, "virtual_stages: 2"},
      {{"strategy.pipeline=2", "strategy.schedule=interleaved"}, "at least 2"},
      {{"strategy.interleave_group=4"},
       "strategy.interleave_group: interleave_group with a schedule whose chunks take no turns"},
      {{"strategy.extra_warm_up=1"},
       "strategy.extra_warm_up: extra_warm_up with a schedule whose chunks take no turns"},
      {{"strategy.pipeline=4", "strategy.vp=2", "strategy.global_batch=12"}, "multiples of pipeline: 4"},
      {{"strategy.pipeline=2", "strategy.schedule=1f2b"}, "did you mean 1f1b?"},
      {{"strategy.pipeline=2", "strategy.stage_layers=[16, 15]"}, "stage_layers: they sum to 31, not to layers: 32"},
      {{"strategy.pipeline=2", "strategy.stage_layers=[32]"},
       "stage_layers: 1 entries, but pipeline * virtual_stages = 2"},
      {{"strategy.pipeline=2", "strategy.stage_layers=[33, -1]"}, "stage_layers: 33 is not between"},
      {{"strategy.stage_layers=32"}, "a list [a, b, ...] is needed"},
      {{"strategy.context=3", "gpus=3"}, "context: 3 does not divide sequence: 8192"},
      {{"strategy.context=8", "strategy.context_kind={ring: 2, ulysses: 2}"}, "context: 8 is not ring * ulysses"},
      {{"strategy.context=8", "strategy.context_kind=ulysses", "model.heads=36", "model.kv_heads=4"},
       "ulysses 8 does not divide"},
      {{"strategy.context_kind=rings"}, "did you mean ring?"},
      {{"strategy.expert=2"}, "strategy.expert: expert above 1 with models without experts"},
      {{moe, "strategy.expert=3", "gpus=3"}, "expert: 3 does not divide experts: 8"},
      {{moe, "strategy.expert=8", "strategy.tp=8"},
       "expert_tensor: 8 * expert: 8 does not divide tensor * context * data: 8"},
      {{"strategy.data=3", "gpus=8"}, "gpus: 8 is not tensor * pipeline * context * data"},
      {{"gpus=16"}, "gpus: 16 are more than the cluster's 8"},
      {{"gpus=0"}, "gpus: 0 is not between 1"},
      {{"cluster.nodes=0"}, "cluster.nodes: 0"},
      {{"cluster.nodes=1000000000000000000"}, "cluster.nodes"},
      {{"cluster.gpus_per_node=0"}, "cluster.gpus_per_node: 0"},
      {{"cluster.node=dgx-h10"}, "unknown node dgx-h10; did you mean dgx-h100?"},
      {{"cluster.gpu=h101"}, "unknown gpu h101"},
      {{"cluster.fabric=infinband"}, "did you mean infiniband?"},
      {{"cluster={gpu: h100-sxm, nodes: 2}"}, "cluster.nic_Gbps: missing"},
      {{"cluster={nodes: 2}"}, "cluster: missing: node"},
      {{"cluster.nic_Gbps=400 GiB"}, "400 GiB is not a number of Gbps"},
      {{"cluster.nic_Gbps=nan"}, "nan is not a number"},
      {{"cluster.nic_Gbps=.inf"}, ".inf is not a number"},
      {{"cluster.nic_Gbps=-1"}, "cluster.nic_Gbps: -1"},
      {{"cluster.host={dram_GiB: -5}"}, "cluster.host.dram_GiB: -5"},
      {{"cluster.oversubscription={above_gpus: 8, ratio: 0.5}"}, "oversubscription.ratio: 0.5"},
      {{"cluster.stragglers=[{rank: 8, slowdown: 2}]"}, "cluster.stragglers: 8"},
      {{"cluster.stragglers=yes"}, "a list [{rank"},
      {{"strategy.global_batch=12"}, "global_batch: 12 is not a multiple of micro_batch * data: 1 * 8 = 8"},
      {{"strategy.global_batch=0"}, "global_batch: 0"},
      {{"model.layers=100000"}, "model.layers: 100000 is not between 1 and 4096"},
      {{"strategy.global_batch=80000000"}, "global_batch: 80000000 makes 10000000 micro-batches of "},
      {{"software={profile: megatron-core, context_MiB: 1e300}"}, "software.context_MiB: 1e+300 is above"},
      {{"strategy.bucket_MiB=1e30"}, "bucket_MiB: 1e+30 is above"},
      {{"software={profile: megatron-core, bucket_MiB: 25}"}, "bucket_elements count too; set one of them to 0"},
      {{"strategy.micro_batch=0"}, "strategy.micro_batch: 0"},
      {{"strategy.sharding=zero4"}, "unknown sharding zero4; did you mean zero1?"},
      {{"strategy.sharding=hsdp", "strategy.shard_group=3"}, "shard_group: 3 does not divide data * context: 8"},
      {{"strategy.sharding=zero3", "strategy.shard_group=4"}, "only hsdp has groups"},
      {{"strategy.sharding=data-parallel", "cluster.nodes=2"}, "one process on one node"},
      {{"strategy.parameter_server={servers: 2}"}, "choose sharding: parameter-server"},
      {{"strategy.sharding=parameter-server", "strategy.parameter_server={servers: 0}"}, "parameter_server.servers: 0"},
      {{"strategy.sharding=parameter-server", "strategy.parameter_server={servers: 2, replicas: 3}"},
       "parameter_server.replicas: 3 is not between 1 and 2"},
      {{"strategy.sharding=parameter-server", "strategy.parameter_server={servers: 2, colocated: false}"},
       "give cluster.nodes: 3 with gpus: 8, or colocated: true"},
      {{"strategy.precision=bf17"}, "unknown precision bf17; did you mean"},
      {{"strategy.precision=fp8", "cluster.node=dgx-a100"}, "a100-sxm-80gb: no peak for fp8"},
      {{"strategy.precision=mxfp8"}, "mxfp8 needs Blackwell"},
      {{"strategy.precision=mxfp8", "cluster.node=amd-mi300x"}, "mxfp8 needs CDNA 4"},
      {{"strategy.gradient_precision=fp8"}, "gradient_precision: fp8"},
      {{"strategy.optimizer=sophia"}, "unknown optimizer sophia"},
      {{"strategy.optimizer={name: adam, moment: bf16}"}, "did you mean moments?"},
      {{"strategy.recompute=selectiv"}, "did you mean selective?"},
      {{"strategy.recompute=[norm, mpl]"}, "did you mean mlp?"},
      {{"strategy.recompute_layers=33"}, "recompute_layers: 33"},
      {{"strategy.attention=flsh"}, "did you mean flash?"},
      {{"strategy.overlap={tensors: true}"}, "did you mean tensor?"},
      {{"strategy.overlap={tensor: maybe}"}, "strategy.overlap.tensor: maybe is not true or false"},
      {{"strategy.offload={optimizer: gpu}"}, "unknown device gpu"},
      {{"strategy.offload.tiling=0"}, "offload.tiling: 0"},
      {{"strategy.rank_order=tp-cp-dp"}, "rank_order: tp-cp-dp lacks pp"},
      {{"strategy.rank_order=tp-tp-dp-pp"}, "each once"},
      {{"strategy.clip=-1"}, "clip: -1"},
      {{"strategy=4"}, "strategy: keys with values are needed"},
      {{"software=megatronn"}, "unknown software megatronn;"},
      {{"software.compiel=true"}, "did you mean compile?"},
      {{"software.stage_rule=odd"}, "--set: software.stage_rule: unknown rule odd"},
      {{"software.one_queue=odd"}, "--set: software.one_queue: unknown choice odd"},
      {{"software.whole_master=fp32"}, "--set: software.whole_master: unknown precision fp32"},
      {{"software.launch_us=-1"}, "launch_us: -1"},
      {{"model=llama-3.1-7b"}, "unknown model llama-3.1-7b; did you mean llama-3.1-"},
      {{"model=nowhere/config.json"}, "nowhere/config.json: cannot be read"},
      {{"model.layers=0"}, "model.layers: 0 is not between 1"},
      {{"model.layers=1000000000000000000"}, "model.layers: 1000000000000000000 is not between"},
      {{"model.vocab=0"}, "model.vocab: 0"},
      {{"model.kv_heads=5"}, "heads: 32 is not a multiple of kv_heads: 5"},
      {{"model.dropout=1.5"}, "model.dropout: 1.5"},
      {{"model.positions=absolute"}, "unknown positions absolute"},
      {{"model={layers: 2, hidden: 64, heads: 4, feed_forward: 256}"}, "model.vocab: missing"},
      {{"model={layers: 2, hidden: 64, heads: 5, feed_forward: 256, vocab: 10}"}, "5 does not divide hidden: 64"},
      {{moe, "model.moe={top_k: 9}"}, "model.moe.top_k: 9"},
      {{moe, "model.moe={imbalance: 0.5}"}, "imbalance: 0.5"},
      {{moe, "model.moe={pad_to_capacity: true}"}, "needs a capacity_factor"},
      {{moe, "model.moe={score: relu}"}, "unknown word relu"},
      {{"model=gpt2", "sequence=2048"}, "sequence: 2048 is longer than the model's 1024 learned positions"},
      {{"sequence=0"}, "sequence: 0"},
      {{"sequence=null"}, "sequence: missing"},
      {{"steps=0"}, "steps: 0"},
      {{"seed=-1"}, "seed: must be at least 0"},
      {{"strategy"}, "KEY=VALUE is needed"},
      {{"=4"}, "KEY=VALUE is needed"},
      {{"steps=4", "steps.length=4"}, "steps holds a single value"},
  };
  for (const Case& c : cases) {
    const std::string message = error_of(kShort, c.overrides);
    EXPECT_NE(message.find(c.expected), std::string::npos) << c.expected << "\n  got: " << message;
  }
}

struct Text {
  std::string text;
  std::string expected;
};

std::string repeated(const std::string& part, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += part;
  return text;
}

std::string alias_bomb() {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    text +=
        fmt::format("a{}: &a{} [{}", i, i, repeated(fmt::format("*a{}, ", i - 1), 8)) + fmt::format("*a{}]\n", i - 1);
  }
  return text;
}

TEST(Spec, RefusesBadTextsInOneLine) {
  const std::string tail = "sequence: 8\ncluster: {node: dgx-h100}\n";
  const std::vector<Text> cases = {
      {"", "model: missing"},
      {"42", "keys with values are needed"},
      {"- model\n", "keys with values are needed"},
      {"model: gpt2\nsequence: 8\nclutser: {}\n", "spec.yaml:3: clutser: unknown key clutser; did you mean cluster?"},
      {"model: gpt2\n" + tail + "model: gpt2\n", "spec.yaml:4: model: the key is given twice"},
      {"model: gpt2\n" + tail + "strategy: {tp: 2, tensor: 2}\n", "spec.yaml:4: strategy.tp: tensor is given too"},
      {"model: gpt2\n" + tail + "strategy:\n  tensor: 5\n  dp: 1\n",
       "spec.yaml:5: tensor: 5 does not divide heads: 12"},
      {"model: gpt2\n" + tail + "strategy: {global_batch: 9}\n", "spec.yaml:4: global_batch: 9"},
      {"model: gpt2\nsequence: 8\n", "cluster: missing"},
      {"model: [gpt2\n", "spec.yaml:"},
      {"model: {a: b\n", "not YAML"},
      {"model: \"gpt2\n", "unknown model gpt2"},
      {"\tmodel: gpt2\n", "spec.yaml:1"},
      {"model: gpt2\n---\nmodel: gpt2\n", "more than one document"},
      {"model: *nothing\n", "spec.yaml:1"},
      {"? [a, b]\n: 3\n", "a key must be a plain word"},
      {repeated("[", 100'000), "nested deeper than 32 levels"},
      {repeated("{a: ", 100'000), "nested deeper than 32 levels"},
      {repeated("- ", 100'000), "nested deeper than 32 levels"},
      {alias_bomb(), "more than 100000 values"},
      {"a: [" + repeated("1, ", 150'000) + "]", "more than 100000 values"},
      {std::string(5 << 20, 'a'), "larger than 4 MiB"},
      {std::string("model: \0", 8), "not a text file"},
      {"model: {moe: 3}\n", "model.moe: keys with values are needed"},
  };
  for (const Text& c : cases) {
    const std::string message = error_of(c.text);
    EXPECT_NE(message.find(c.expected), std::string::npos) << c.expected << "\n  got: " << message;
  }
}

// A damaged text of a spec is either still a spec or gives one Error; never a crash, a hang or another exception.
TEST(Spec, SurvivesDamagedTexts) {
  const std::string whole = kWhole;
  std::uint64_t counter = 0;
  const auto random = [&counter] { return test::random_bits(++counter); };
  const std::string signs = ":{}[],-#&*!|>'\"%@`\n \t09aE.~?";
  for (int i = 0; i < 300; ++i) {
    std::string text = whole;
    for (std::uint64_t k = 0; k <= random() % 3; ++k) text[random() % text.size()] = signs[random() % signs.size()];
    if (random() % 4 == 0) text.resize(random() % text.size());
    error_of(text);
  }
}

// A search looks at every layer, long before the rules of a whole spec are asked.
TEST(LoadSpec, OpenSpecsHaveFewEnoughLayers) {
  try {
    parse_open_spec(kShort, "t.yaml", {"model.layers=100000"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "--set: model.layers: 100000 is not between 1 and 4096");
  }
}

}  // namespace
}  // namespace orrery
