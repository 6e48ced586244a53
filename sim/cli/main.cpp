// The program orrery: reads the command line, runs one command, and prints what the command returns.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/base/error.h"
#include "models/base/installed.h"
#include "models/base/names.h"
#include "models/load/schema.h"
#include "sim/advice/search_options.h"
#include "sim/cli/commands.h"
#include "sim/cli/commit.h"
#include "sim/cli/completion.h"
#include "sim/cli/heartbeat.h"
#include "sim/cli/manual.h"
#include "sim/cli/option_figures.h"
#include "sim/cli/page_file.h"
#include "sim/parallel/peers.h"
#include "sim/print/fold.h"
#include "sim/runs/launch.h"
#include "sim/runs/processes.h"
#include "sim/runs/rank_starter.h"

namespace {

using orrery::Error;

constexpr int kBadUsage = 2;
constexpr int kFailure = 1;
constexpr double kMostCount = 1e7;

struct Options {
  orrery::SimulateOptions simulate;
  orrery::CompareOptions compare;
  orrery::SearchCommandOptions search;
  orrery::ExplainOptions explain;
  orrery::RunOptions run;
  orrery::CalibrateOptions calibrate;
  orrery::ValidateOptions validate;
  orrery::ImportOptions import;
  orrery::ExportOptions exported;
  orrery::TraceOptions trace;
  orrery::WhatifOptions whatif;
  orrery::ImportTopologyOptions topology;
  orrery::RunLengthOptions run_length;
  std::string list, shell, page = "orrery", manual_folder;
  bool json = false, markdown = false, quiet = false;
  std::optional<std::string> html;  // path of the HTML page to write
  std::string command;              // the command line, to be shown on the HTML page
  unsigned threads = std::max(1U, std::thread::hardware_concurrency());
};

// Adds to a command an option that may be given several times, with one value each time.
void add_repeated(CLI::App& app, const std::string& name, std::vector<std::string>& values, const std::string& about) {
  app.add_option(name, values, about)->allow_extra_args(false)->type_name("KEY=VALUE");
}

void add_shared(CLI::App& app, std::vector<std::string>& overrides, std::string& profile) {
  add_repeated(app, "--set", overrides, "override a key of the spec, e.g. --set strategy.tensor=4; may be repeated");
  app.add_option("--profile", profile, "kernel times measured by calibrate, instead of the built-in ones")
      ->type_name("FILE");
}

// Adds the option --html to a command that can write its result as an HTML page.
void add_page(CLI::App& app, Options& o) {
  app.add_option("--html", o.html, "write the result as one page to read and to print, without scripts")
      ->type_name("FILE");
}

// Makes an option take the path of a spec file. If no file has that path, the name may be that of an installed example.
CLI::Option* specs(CLI::Option* option) {
  const auto read = [](std::string& path) {
    path = orrery::or_installed_example(path);
    return std::string();
  };
  return option->transform(CLI::Validator(read, ""))->type_name("");
}

// Makes an option take a positive number. name: what the help calls the number; unit: the unit of a number that is
// given without one; most: the largest number accepted.
void positive(CLI::Option* option, const char* name, std::string_view unit = "", double most = 1e18) {
  const auto read = [=](std::string& text) { return orrery::read_figure(text, {name, unit, most}); };
  option->transform(CLI::Validator(read, ""))->type_name(name);
}
void positive_count(CLI::Option* option, const char* name) {
  const auto read = [=](std::string& text) { return orrery::read_count(text, {name, "", kMostCount}); };
  option->transform(CLI::Validator(read, ""))->type_name(name);
}

void add_simulate(CLI::App& app, Options& o) {
  CLI::App& c = *app.add_subcommand("simulate", "predict one training step: time, memory, communication");
  c.add_option("SPEC", o.simulate.spec,
               "what to train, on what, and how (YAML or JSON); a recipe (list recipes); with --on a model: built in, "
               "a config.json, or its folder")
      ->required();
  specs(c.get_option("SPEC"));
  c.add_option("--on", o.simulate.on, "machines for a model without a spec: a strategy that fits is chosen")
      ->type_name("2xdgx-h100");
  c.add_option("--save", o.simulate.save, "write the spec as it was simulated")->type_name("FILE");
  add_shared(c, o.simulate.overrides, o.simulate.profile);
  c.add_flag("--json", o.json, "print the report as JSON (schema orrery.report/2)");
  add_page(c, o);
  c.add_option("--trace", o.simulate.trace, "write the timeline for Perfetto or chrome://tracing (.json, .json.gz)")
      ->type_name("FILE");
  c.add_flag("--timeline", o.simulate.timeline, "draw the step in letters, a line per class of ranks");
  c.add_flag("--unfold", o.simulate.unfold, "simulate every rank instead of one of each class");
  c.add_flag("--require-fit", o.simulate.require_fit, "exit 3 if the step does not fit in memory");
  c.footer("example: orrery simulate examples/llama-3.1-70b.yaml --set strategy.sharding=zero1");
}

void add_prices(CLI::App& c, orrery::PriceOptions& o) {
  c.add_option("--prices", o.file, "a price list, instead of models/data/prices.json")->type_name("FILE");
  positive(c.add_option("--energy-price", o.usd_per_kWh, "of a kWh, instead of the list's"), "USD");
  positive(c.add_option("--write-off", o.write_off_years, "over which a node's price is written off"), "YEARS", "",
           100);
}

void add_compare(CLI::App& app, Options& o) {
  CLI::App& c = *app.add_subcommand("compare", "strategies side by side");
  specs(c.add_option("SPEC", o.compare.specs, "one or more specs"))->required();
  add_repeated(c, "--vary", o.compare.vary,
               "try these values of a key, e.g. --vary strategy.tensor=1,2,4; repeated: every combination");
  add_shared(c, o.compare.overrides, o.compare.profile);
  positive(c.add_option("--tokens", o.compare.tokens, "length of the run, for its days and rent, e.g. 15T"), "N");
  add_prices(c, o.compare.prices);
  c.add_flag("--json", o.json, "print a list of {name, report or error}");
  c.add_flag("--csv", o.compare.csv, "print the table for a spreadsheet, with plain figures");
  add_page(c, o);
  c.footer("example: orrery compare examples/llama-3.1-70b.yaml --vary strategy.sharding=none,zero1,zero2,zero3");
}

void add_search(CLI::App& app, Options& o) {
  CLI::App& c = *app.add_subcommand("search", "the best strategies that fit, proven; which machine, for how much");
  orrery::SearchCommandOptions& s = o.search;
  specs(c.add_option("SPEC", s.spec, "what is given is fixed, what is absent is searched"))->required();
  add_shared(c, s.overrides, s.profile);
  c.add_option("--gpus", s.gpus, "numbers of GPUs to search with; the spec's, if absent")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("N,...");
  c.add_option("--cluster", s.clusters, "nodes to search on (list clusters); may be repeated")
      ->allow_extra_args(false)
      ->type_name("NODE");
  c.add_option("--objective", s.objective, "time (the default), cost or memory; of text: throughput, ttft, tpot")
      ->type_name("time|cost|memory|throughput|ttft|tpot");
  c.add_option("--maximize", s.maximize, "instead: the largest size that fits")
      ->type_name("micro_batch|sequence|layers");
  positive(c.add_option("--max-memory", s.max_memory_GiB, "of a GPU"), "GiB", "GiB", 1e6);
  positive_count(c.add_option("--max-gpus", s.max_gpus, "leave larger machines out"), "N");
  positive(c.add_option("--tokens", s.tokens, "length of the run, for its time and price, e.g. 15T"), "N");
  positive(c.add_option("--deadline", s.deadline_days, "leave machines out whose run takes longer"), "DAYS", "days",
           1e6);
  positive(c.add_option("--budget", s.budget_usd, "leave machines out whose run costs more to rent, e.g. 30M"), "USD");
  add_prices(c, s.prices);
  add_repeated(c, "--against", s.against, "a strategy to set beside the best, e.g. --against strategy.tensor=8");
  positive_count(c.add_option("--top", s.top, "strategies to show (5)"), "K");
  positive(c.add_option("--within", s.within, "leave out what is not that much better than the best: faster"),
           "PERCENT", "", 1e6);
  c.add_flag("--pareto", s.pareto,
             "the best in ever less memory too; of several machines the front over time, cost and memory");
  c.add_flag("--json", o.json, "print the result as JSON (schema orrery.search/1)");
  c.add_flag("--csv", s.csv, "print a row of each strategy, or of each machine");
  add_page(c, o);
  c.add_option("--save", s.save, "write the best strategy as a spec")->type_name("FILE");
  c.footer(
      "examples: orrery search examples/search-gpt3-175b.yaml\n"
      "          orrery search examples/search-gpt3-175b.yaml --gpus 512,1024,2048 --tokens 300G");
}

// Handles Ctrl-C, or SIGTERM from a scheduler: the search ends with the best strategy found so far. A second signal
// ends the program, unless it comes with the first, as timeout(1) and schedulers signal a process and then its group.
std::atomic<bool> stop_search = false;
std::atomic<std::int64_t> stopped_at_ms = 0;
void on_interrupt(int signal) {
  constexpr std::int64_t kTogether_ms = 500;
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const std::int64_t now_ms = now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
  if (!stop_search) stopped_at_ms = now_ms;
  if (stop_search.exchange(true) && now_ms - stopped_at_ms > kTogether_ms) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

void add_explain(CLI::App& app, Options& o) {
  CLI::App& c = *app.add_subcommand("explain", "every value and its origin, and the formulas behind the prediction");
  specs(c.add_option("SPEC", o.explain.spec, "what to train, on what, and how (YAML or JSON)"))->required();
  c.add_flag("--all", o.explain.all, "show every value and formula too, not only what decides the step");
  c.add_flag("--next-run", o.explain.next_run,
             "say which run to measure for calibrate --from-steps: this step or a variation of it");
  c.add_option("--picture", o.explain.picture,
               "draw how matrices are cut over ranks, what each rank holds, and who talks to whom (.svg)")
      ->type_name("FILE");
  add_page(c, o);
  add_shared(c, o.explain.overrides, o.explain.profile);
  c.footer("example: orrery explain examples/llama-3.1-8b-fsdp.yaml");
}

void add_run(CLI::App& app, Options& o) {
  CLI::App& c = *app.add_subcommand("run", "execute the plan for real, and report the same figures, measured");
  specs(c.add_option("SPEC", o.run.spec, "what to train, on what, and how (YAML or JSON)"))->required();
  add_shared(c, o.run.overrides, o.run.profile);
  c.add_option("--device", o.run.device, "cpu (the default) or cuda")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->type_name("cpu|cuda");
  c.add_flag("--composed", o.run.composed,
             "GPU ranks run one by one, each alone; the step is composed of what they measure and of modelled "
             "communication");
  c.add_option("--ranks", o.run.ranks, "processes; as many as the spec has GPUs, if absent")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{4096}))
      ->type_name("N");
  c.add_option("--steps", o.run.steps, "training steps; the spec's, if absent")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000}))
      ->type_name("K");
  positive(c.add_option("--hang-timeout", o.run.hang_timeout, "a rank that does nothing for so long is hung (30)"),
           "SECONDS", "s", 1e6);
  c.add_flag("--json", o.json, "print the report as JSON (schema orrery.report/2)");
  c.add_option("--trace", o.run.trace, "write the timeline of the median step (.json, .json.gz)")->type_name("FILE");
  c.footer("example: orrery run examples/cpu-small.yaml --steps 5");
}

void add_calibrate(CLI::App& app, Options& o) {
  CLI::App& c =
      *app.add_subcommand("calibrate", "measure single ops and transfers of this machine, or import such measurements");
  c.add_option("--out,-o", o.calibrate.out,
               "the profile to write; what is imported or comes from steps goes to stdout without it")
      ->type_name("FILE");
  c.add_option("--from-steps", o.calibrate.from_steps,
               "measured steps of your stack and cluster to correct constants by: a table, or published measurements")
      ->type_name("FILE");
  c.add_option("--import", o.calibrate.imports,
               "files to read instead: nccl-tests output (text, -J), NCCL's log (GRAPH, TUNING), Kineto traces")
      ->type_name("FILE...");
  c.add_option("--device", o.calibrate.device, "cpu (the default) or cuda")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->type_name("cpu|cuda");
  c.add_option("--ranks", o.calibrate.ranks, "processes that run at once, as in the steps to predict (2)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{64}))
      ->type_name("N");
  specs(c.add_option("--for", o.calibrate.own, "measure the very shapes of these specs too, with few layers of each"))
      ->type_name("SPEC...");
  positive(
      c.add_option("--settle", o.calibrate.settle, "how long a GPU runs each spec, to find the clocks it keeps (1)"),
      "SECONDS", "", 60);
  c.add_flag("--quick", o.calibrate.quick, "two small shapes, in some ten seconds: enough for specs of their size");
  positive(c.add_option("--noise", o.calibrate.noise, "the spread of repetitions that is accepted (0.3)"), "SHARE", "",
           1e6);
  c.footer(
      "examples:\n"
      "  orrery calibrate --device cpu --out machine.json\n"
      "  orrery calibrate --device cuda --for my-step.yaml --out gpu.json\n"
      "  orrery calibrate --from-steps my-steps.csv --out stack.json\n"
      "  orrery calibrate --import all_reduce_perf.txt nccl.log rank0.json.gz --out cluster.json");
}

void add_validate(CLI::App& app, Options& o) {
  CLI::App& c = *app.add_subcommand("validate", "predict, run, and print predicted against measured");
  specs(c.add_option("SPEC", o.validate.specs, "one or more specs"));
  c.add_option("--published", o.validate.published, "instead: files of published measurements to predict")
      ->type_name("FILE...");
  c.add_option("--kernels", o.validate.kernels,
               "instead: tables of measured kernels to predict, GPU_KIND.csv, or folders of them")
      ->type_name("FILE...");
  c.add_option("--fit", o.validate.fit, "kernels: fit the laws of kernels to the tables and write them, JSON")
      ->type_name("FILE");
  c.add_option("--served", o.validate.served, "instead: files of measured inference to predict")->type_name("FILE...");
  c.add_flag("--recipes", o.validate.recipes, "instead: the built-in recipes beside what was published of them");
  c.add_flag("--leave-one-out", o.validate.leave_one_out,
             "published: fit the listed numbers again without each source, and judge it; kernels: the laws without "
             "each kind of GPU");
  c.add_option("--by", o.validate.by,
               "published, leave one out: what is left out: source (the default), release, model")
      ->check(CLI::IsMember({"source", "release", "model"}))
      ->type_name("source|release|model");
  c.add_flag("--without-inferred", o.validate.without_inferred,
             "published: predict without what is not stated of the runs but inferred");
  c.add_option(
       "--from-steps", o.validate.from_steps,
       "published: judge calibrate --from-steps with so many known steps of each source, of a stack that is not "
       "known")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{20}))
      ->type_name("N");
  c.add_option("--priors", o.validate.priors,
               "published, from steps: estimate what is known of a new stack from all sources and write it, JSON")
      ->type_name("FILE");
  c.add_option("--page", o.validate.page, "published: write the errors per source, Markdown")->type_name("FILE");
  c.add_option("--scatter", o.validate.scatter, "published: write predicted over measured, SVG")->type_name("FILE");
  c.add_option("--intervals", o.validate.intervals, "published: write the 80 % intervals of like rows, JSON")
      ->type_name("FILE");
  c.add_option("--rows", o.validate.rows, "published: write every row's error, for explain, JSON")->type_name("FILE");
  add_shared(c, o.validate.overrides, o.validate.profile);
  c.add_option("--device", o.validate.device, "cpu (the default) or cuda")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->type_name("cpu|cuda");
  c.add_flag("--composed", o.validate.composed,
             "compute and memory of GPU ranks that run one by one, instead of steps");
  c.add_option("--ranks", o.validate.ranks, "processes of each run; as many as a spec has GPUs, if absent")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{4096}))
      ->type_name("N");
  c.add_option("--steps", o.validate.steps, "of each run (20)")
      ->check(CLI::Range(std::int64_t{2}, std::int64_t{1'000'000}))
      ->type_name("K");
  c.add_option("--mark-every", o.validate.mark_every, "GPU ranks time single tasks in each N-th step only (1)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000}))
      ->type_name("N");
  positive(c.add_option("--tolerance", o.validate.tolerance, "exit 4 when a step is further off (0.25)"), "SHARE", "",
           1e6);
  c.add_option("--out", o.validate.out, "keep the ranks' files and the reports in this folder")->type_name("FOLDER");
  c.add_flag("--json", o.json, "print a list with both reports and the errors of every spec");
  add_page(c, o);
  c.footer(
      "examples: orrery validate examples/cpu-small.yaml --profile machine.json\n"
      "          orrery validate --published benchmarks/offload_papers.json --scatter published.svg");
}

void add_import(CLI::App& app, Options& o) {
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

void add_export(CLI::App& app, Options& o) {
  CLI::App& c = *app.add_subcommand("export", "the options that run a spec with a training framework");
  specs(c.add_option("SPEC", o.exported.spec, "what to train, on what, and how, or a recipe"))->required();
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

void add_run_length(CLI::App& app, Options& o) {
  CLI::App& c = *app.add_subcommand("run-length", "what failures and checkpoints leave of a run of days");
  specs(
      c.add_option("SPEC", o.run_length.spec, "the job: a spec, whose cluster.failures and strategy.checkpoint count"))
      ->required();
  add_shared(c, o.run_length.overrides, o.run_length.profile);
  positive(c.add_option("--days", o.run_length.days, "length of the run (54, that of Llama 3 405B)"), "DAYS", "", 1e4);
  c.add_option("--seed", o.run_length.seed, "of the draws (1)")->type_name("N");
  positive_count(c.add_option("--plays", o.run_length.plays, "how often the run is played (10000)"), "N");
  c.add_flag("--json", o.json, "print all figures as JSON (schema orrery.run_length/1)");
  c.footer("example: orrery run-length examples/llama-3.1-405b.yaml --set cluster.failures.restart_s=600 --days 54");
}

void add_import_topology(CLI::App& app, Options& o) {
  CLI::App& c = *app.add_subcommand("import-topology", "a spec's cluster from what the cluster's own tools print");
  c.add_option(
       "FILE", o.topology.files,
       "nvidia-smi topo -m, NCCL's topology XML, ibnetdiscover, dump_lfts.sh, Slurm's topology.conf, lldpctl -f json")
      ->required()
      ->type_name("");
  c.add_option("--out", o.topology.out, "the file to write; stdout without it")->type_name("FILE");
  c.footer("example: orrery import-topology topo.txt topology.conf --out fabric.yaml");
}

void add_whatif(CLI::App& app, Options& o) {
  CLI::App& c = *app.add_subcommand("whatif", "a measured run, replayed without what slowed it down");
  c.add_option("FILE", o.whatif.files, "traces of all ranks (.json, .json.gz), or rows of ops (.csv)")
      ->required()
      ->type_name("");
  c.add_option("--without", o.whatif.without, "without the slowness of rank=NAME or stage=N, or without op=NAME")
      ->type_name("KEY=VALUE");
  c.add_option("--speed", o.whatif.speed, "network=FACTOR or compute=FACTOR: how many times as fast")
      ->type_name("KEY=FACTOR");
  c.add_option("--between", o.whatif.between,
               "two ranks: where they part first; without it the slowest and the fastest")
      ->type_name("A,B");
  c.add_option("--roofline", o.whatif.roofline, "a GPU: how near its peaks the measured kernels come")
      ->type_name("GPU");
  c.add_flag("--even-stages", o.whatif.even_stages, "stages of a pipeline take equal time for an op");
  c.add_flag("--json", o.json, "print all figures as JSON (schema orrery.whatif/1)");
  add_page(c, o);
  c.footer("example: orrery whatif rank*.json.gz --without rank=17");
}

void add_trace(CLI::App& app, Options& o) {
  CLI::App& c = *app.add_subcommand("trace", "where the time of a trace goes: PyTorch's profiler's, or one of ours");
  c.add_option("ACTION", o.trace.action, "what to do with the traces")->required()->type_name("summarize");
  c.add_option("FILE", o.trace.files, "traces of torch.profiler or of --trace (.json, .json.gz), a file per rank")
      ->required()
      ->type_name("");
  positive_count(c.add_option("--top", o.trace.top, "kernels and operators to list (15)"), "K");
  c.add_flag("--json", o.json, "print all figures as JSON (schema orrery.trace_summary/1)");
  c.footer("example: orrery trace summarize rank0.json.gz rank1.json.gz");
}

void add_list(CLI::App& app, Options& o) {
  CLI::App& c = *app.add_subcommand("list", "what is built in");
  c.add_option("WHAT", o.list, "what to list")
      ->required()
      ->type_name(fmt::format("{}", fmt::join(orrery::list_names(), "|")));
  c.add_flag("--json", o.json, "print a list of objects");
  c.add_flag("--markdown", o.markdown, "print a table as pages of docs/ hold it");
}

void add_own(CLI::App& app, Options& o) {
  app.add_subcommand("schema", "the JSON Schema of a spec, by which editors complete and check");
  CLI::App& doctor = *app.add_subcommand("doctor", "what is missing or too small on this machine, and how to mend it");
  doctor.add_flag("--json", o.json, "print {ready, checks} (schema orrery.doctor/1)");
  CLI::App& completion = *app.add_subcommand("completion", "the script that completes commands, options and keys");
  completion.add_option("SHELL", o.shell, "the shell")->required()->type_name("bash|zsh|fish");
  completion.footer("example: source <(orrery completion bash)");
  CLI::App& manual = *app.add_subcommand("manual", "a page of the manual, for man");
  manual.add_option("PAGE", o.page, "orrery (the default), orrery-spec, or the page of a command: orrery-simulate")
      ->type_name("");
  manual.add_option("--out", o.manual_folder, "write all pages into this folder instead")->type_name("FOLDER");
  manual.footer("example: man <(orrery manual orrery-spec)");
}

void set_up(CLI::App& app, Options& o) {
  app.set_version_flag("--version", orrery::version_line("orrery"));
  app.add_flag("--quiet", o.quiet, "no progress on stderr");
  app.add_option("--threads", o.threads, "workers; results do not depend on it")
      ->check(CLI::Range(1, 1024))
      ->type_name("N");
  app.allow_extras();  // check_extras() refuses extra words with its own message
  app.fallthrough();
  app.require_subcommand(0, 1);
  add_simulate(app, o);
  add_compare(app, o);
  add_search(app, o);
  add_explain(app, o);
  add_run(app, o);
  add_calibrate(app, o);
  add_validate(app, o);
  add_import(app, o);
  add_export(app, o);
  add_trace(app, o);
  add_run_length(app, o);
  add_import_topology(app, o);
  add_whatif(app, o);
  add_list(app, o);
  add_own(app, o);
  app.footer(
      "examples:\n"
      "  orrery simulate examples/gpt-64-gpus.yaml\n"
      "  orrery compare examples/llama-3.1-70b.yaml --vary strategy.sharding=none,zero1,zero2,zero3\n"
      "  orrery explain examples/llama-3.1-8b-fsdp.yaml --set strategy.micro_batch=2\n"
      "  orrery run examples/cpu-small.yaml --steps 5\n"
      "exit status: 0 ok, 1 failure, 2 bad usage or input, 3 does not fit (simulate --require-fit), 4 out of tolerance "
      "(validate), 5 a rank was lost or hung");
}

// Throws Error if the command line has words that belong to no command or option.
void check_extras(const CLI::App& app) {
  const std::vector<std::string> extras = app.remaining(true);
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  const CLI::App& at = chosen.empty() ? app : *chosen[0];
  std::vector<std::string> names;
  const bool option = !extras.empty() && extras[0].starts_with("-");
  if (option) {
    for (const CLI::App* level : {&at, &app}) {
      for (const CLI::Option* o : level->get_options([](const CLI::Option* x) { return !x->get_positional(); })) {
        if (std::find(names.begin(), names.end(), o->get_name()) == names.end()) names.push_back(o->get_name());
      }
    }
  } else {
    for (const CLI::App* c : app.get_subcommands([](const CLI::App*) { return true; })) names.push_back(c->get_name());
  }
  const std::vector<std::string_view> known(names.begin(), names.end());
  if (option) throw Error(orrery::unknown_name("option", extras[0], known));
  if (!extras.empty() && chosen.empty()) throw Error(orrery::unknown_name("command", extras[0], known));
  if (!extras.empty()) throw Error(fmt::format("{}: takes no further argument '{}'", at.get_name(), extras[0]));
  if (chosen.empty()) throw Error(fmt::format("no command; known: {}; orrery -h says more", fmt::join(known, ", ")));
}

// Whether a file descriptor is a terminal that a user sees. Under mpirun the answer is no: mpirun gives every process a
// terminal of its own and forwards the output to a terminal or a file.
bool is_terminal(int descriptor) {
  const char* kind = std::getenv("TERM");
  return ::isatty(descriptor) != 0 && orrery::launched_rank() < 0 && kind != nullptr && std::strcmp(kind, "dumb") != 0;
}

orrery::Common common_of(const Options& o) {
  orrery::Common common;
  // Colours are off if the environment variable NO_COLOR is set and not empty (no-color.org).
  const char* no_color = std::getenv("NO_COLOR");
  common.style.bars = is_terminal(STDOUT_FILENO);
  common.style.columns = orrery::terminal_columns(common.style.bars);
  common.style.colour = common.style.bars && (no_color == nullptr || *no_color == '\0');
  common.threads = o.threads;
  common.json = o.json;
  common.page = o.html.has_value();
  common.command = o.command;
  common.version = orrery::version_line("orrery");
  const bool shown = !o.quiet && is_terminal(STDERR_FILENO);
  common.progress = [shown](std::string_view line) {
    if (shown) std::fputs(fmt::format("\r\x1b[K{}", line).c_str(), stderr);
  };
  return common;
}

// Prints progress on stderr as separate lines, at most one every ten seconds, for use where a launcher forwards stderr
// and no terminal line can be redrawn.
orrery::Progress progress_in_lines() {
  using Clock = std::chrono::steady_clock;
  const auto last = std::make_shared<Clock::time_point>(Clock::now());
  return [last](std::string_view line) {
    if (line.empty() || Clock::now() - *last < std::chrono::seconds(10)) return;
    *last = Clock::now();
    std::fputs(fmt::format("orrery: {}\n", line).c_str(), stderr);
  };
}

// Runs a search. Under mpirun or srun all processes search together. The first process reports the result while the
// others still run, because mpirun, which forwards Ctrl-C as SIGTERM, ends all processes about a second later.
orrery::Outcome search(const Options& o, orrery::Common common, std::unique_ptr<orrery::Peers>& peers) {
  peers = orrery::peers_of_environment();
  orrery::SearchCommandOptions options = o.search;
  options.stop = &stop_search;
  options.peers = peers.get();
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, on_interrupt);
  if (peers == nullptr) return orrery::search_command(options, common);
  const bool speaks = peers->rank() == 0;
  common.progress = speaks && !o.quiet ? progress_in_lines() : [](std::string_view) {};
  try {
    return orrery::search_command(options, common);
  } catch (const Error&) {
    // All processes get the same error. The first process that is still alive reports it, and the others wait for that.
    if (peers->first() != peers->rank()) return {};
    peers->gather("failed");
    throw;
  } catch (const std::exception& error) {
    std::fputs(fmt::format("orrery: rank {}: {}\n", peers->rank(), error.what()).c_str(), stderr);
    peers->abort(kFailure);
    throw;
  }
}

orrery::Outcome run(const CLI::App& app, const Options& o, std::unique_ptr<orrery::Peers>& peers) {
  orrery::Common common = common_of(o);
  const std::string name = app.get_subcommands().at(0)->get_name();
  orrery::Heartbeat heart(common.progress, name);
  common.progress = [&heart](std::string_view line) { heart.say(line); };
  if (name == "simulate") return orrery::simulate_command(o.simulate, common);
  if (name == "compare") return orrery::compare_command(o.compare, common);
  if (name == "search") return search(o, common, peers);
  if (name == "explain") return orrery::explain_command(o.explain, common);
  if (name == "calibrate") return orrery::calibrate_command(o.calibrate, common);
  if (name == "validate") return orrery::validate_command(o.validate, common);
  if (name == "run") return orrery::run_command(o.run, common);
  if (name == "import" && orrery::is_chakra(o.import)) return orrery::import_chakra_command(o.import, common);
  if (name == "import") return orrery::import_launch_command(o.import, common);
  if (name == "export" && o.exported.to == "chakra") return orrery::export_chakra_command(o.exported);
  if (name == "export") return orrery::export_command(o.exported);
  if (name == "schema") return {.text = orrery::spec_schema(), .verbatim = true};
  if (name == "trace") return orrery::trace_command(o.trace, common);
  if (name == "run-length") return orrery::run_length_command(o.run_length, common);
  if (name == "import-topology") return orrery::import_topology_command(o.topology);
  if (name == "whatif") return orrery::whatif_command(o.whatif, common);
  if (name == "doctor") return orrery::doctor_command(common);
  if (name == "completion") return {.text = orrery::completion(o.shell, orrery::option_tree(app)), .verbatim = true};
  if (name == "manual") return orrery::manual_command(orrery::option_tree(app), o.page, o.manual_folder);
  return orrery::list_command(o.list, common, o.markdown);
}

void write_out(const std::string& text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (!written) throw Error(fmt::format("stdout: cannot write: {}", std::strerror(errno)), kFailure);
}

int fail(std::string_view what, int status) {
  std::fputs(fmt::format("orrery: {}\n", orrery::one_line(what)).c_str(), stderr);
  return status;
}

int run_command_line(int argc, char** argv) {
  Options options;
  options.command = orrery::command_words(argc, argv);
  std::unique_ptr<orrery::Peers> peers;
  CLI::App app("A clockwork model of a training cluster.", "orrery");
  set_up(app, options);
  try {
    app.parse(argc, argv);
    check_extras(app);
    orrery::PageFile page(options.html);
    const orrery::Outcome outcome = run(app, options, peers);
    const auto say = [&] {
      common_of(options).progress("");
      page.write(outcome.page);
      const bool data = options.json || options.compare.csv || options.search.csv || options.markdown;
      const bool whole = data || outcome.verbatim;
      write_out(orrery::fold(orrery::printable_lines(outcome.text), whole ? 0 : common_of(options).style.columns));
      if (!options.quiet && !outcome.log.empty()) std::fputs(orrery::printable_lines(outcome.log).c_str(), stderr);
    };
    peers == nullptr ? say() : orrery::said_by_one(*peers, say);
    return outcome.status;
  } catch (const CLI::CallForHelp&) {
    write_out(orrery::fold(app.help(), orrery::terminal_columns(is_terminal(STDOUT_FILENO))));
  } catch (const CLI::CallForVersion& version) {
    write_out(std::string(version.what()) + '\n');
  } catch (const CLI::ParseError& error) {
    return fail(error.what(), kBadUsage);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc > 3 && argv[1] == std::string_view(orrery::kStartRank)) return orrery::start_rank(argv[2], argv + 3);
    return run_command_line(argc, argv);
  } catch (const Error& error) {
    return fail(error.what(), error.exit_code);
    // All child processes and files of the command have been removed. The program ends by the signal that interrupted
    // it, as its parent process expects.
  } catch (const orrery::Interrupted& stop) {
    std::signal(stop.signal, SIG_DFL);
    std::raise(stop.signal);
    return kFailure;
  } catch (const std::bad_alloc&) {
    return fail("out of memory", kFailure);
  } catch (const std::exception& error) {
    return fail(error.what(), kFailure);
  }
}
