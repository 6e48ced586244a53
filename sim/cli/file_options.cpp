// Commands that read and write the files of other programs.
#include "sim/cli/command_options.h"

namespace orrery {

void add_import(CLI::App& app, CommandLine& o) {
  CLI::App& c = *app.add_subcommand("import", "a spec from the launch files of a training framework");
  c.add_option("FILE", o.import.files,
               "a script or arguments of Megatron-LM, DeepSpeed JSON, Accelerate YAML, torchtitan TOML, nanotron YAML, "
               "NeMo YAML, a Hugging Face config.json; several of one run together. Or Chakra execution traces "
               "(NAME.RANK.et), which are played on the machines of --on")
      ->required()
      ->type_name("");
  c.add_option("--on", o.import.on, "the cluster, as in 2xdgx-h100 (list clusters)")->type_name("CLUSTER");
  c.add_option("--out", o.import.out, "write the spec to a file instead of stdout")->type_name("SPEC");
  c.add_flag("--json", o.json, "print {spec, not_translated, missing, assumed, remarks}");
  c.footer(
      "examples: orrery import pretrain.sh --on 16xdgx-h100 --out spec.yaml\n"
      "          orrery import trace.0.et --on 2xdgx-h100");
}

void add_export(CLI::App& app, CommandLine& o) {
  CLI::App& c = *app.add_subcommand("export", "the options that run a spec with a training framework");
  take_specs(c.add_option("SPEC", o.exported.spec, "what to train, on what, and how, or a recipe"))->required();
  c.add_option("--to", o.exported.to, "the framework, or chakra: execution traces")
      ->required()
      ->type_name("megatron|deepspeed|torchtitan|nanotron|fsdp|chakra");
  add_repeated(c, "--set", o.exported.overrides,
               "override a key of the spec, e.g. --set strategy.tensor=4; may be repeated");
  c.add_option("--out", o.exported.out, "write to a file instead of stdout; of traces the prefix, FILE.RANK.et")
      ->type_name("FILE");
  c.footer(
      "examples: orrery export examples/llama-3.1-70b.yaml --to megatron\n"
      "          orrery export examples/llama-3.1-70b.yaml --to chakra --out trace");
}

void add_import_topology(CLI::App& app, CommandLine& o) {
  CLI::App& c = *app.add_subcommand("import-topology", "a spec's cluster from what the cluster's own tools print");
  c.add_option(
       "FILE", o.topology.files,
       "nvidia-smi topo -m, NCCL's topology XML, ibnetdiscover, dump_lfts.sh, Slurm's topology.conf, lldpctl -f json")
      ->required()
      ->type_name("");
  c.add_option("--out", o.topology.out, "the file to write; stdout without it")->type_name("FILE");
  c.footer("example: orrery import-topology topo.txt topology.conf --out fabric.yaml");
}

}  // namespace orrery
