// Commands that measure, and hold predictions against measurements.
#include "sim/cli/command_options.h"

namespace orrery {

void add_run(CLI::App& app, CommandLine& o) {
  CLI::App& c = *app.add_subcommand("run", "execute the plan for real, and report the same figures, measured");
  take_specs(c.add_option("SPEC", o.run.spec, "what to train, on what, and how (YAML or JSON)"))->required();
  add_shared(c, o.run.overrides, o.run.profile);
  add_device(c, o.run.device);
  c.add_flag("--composed", o.run.composed,
             "GPU ranks run one by one, each alone; the step is composed of what they measure and of modelled "
             "communication");
  c.add_option("--ranks", o.run.ranks, "processes; as many as the spec has GPUs, if absent")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{4096}))
      ->type_name("N");
  c.add_option("--steps", o.run.steps, "training steps; the spec's, if absent")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000}))
      ->type_name("K");
  take_positive(c.add_option("--hang-timeout", o.run.hang_timeout, "a rank that does nothing for so long is hung (30)"),
                "SECONDS", "s", 1e6);
  c.add_flag("--json", o.json, "print the report as JSON (schema orrery.report/2)");
  c.add_option("--trace", o.run.trace, "write the timeline of the median step (.json, .json.gz)")->type_name("FILE");
  c.footer("example: orrery run examples/cpu-small.yaml --steps 5");
}

void add_calibrate(CLI::App& app, CommandLine& o) {
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
  add_device(c, o.calibrate.device);
  c.add_option("--ranks", o.calibrate.ranks, "processes that run at once, as in the steps to predict (2)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{64}))
      ->type_name("N");
  take_specs(
      c.add_option("--for", o.calibrate.own, "measure the very shapes of these specs too, with few layers of each"))
      ->type_name("SPEC...");
  take_positive(
      c.add_option("--settle", o.calibrate.settle, "how long a GPU runs each spec, to find the clocks it keeps (1)"),
      "SECONDS", "", 60);
  c.add_flag("--quick", o.calibrate.quick, "two small shapes, in some ten seconds: enough for specs of their size");
  take_positive(c.add_option("--noise", o.calibrate.noise, "the spread of repetitions that is accepted (0.3)"), "SHARE",
                "", 1e6);
  c.footer(
      "examples:\n"
      "  orrery calibrate --device cpu --out machine.json\n"
      "  orrery calibrate --device cuda --for my-step.yaml --out gpu.json\n"
      "  orrery calibrate --from-steps my-steps.csv --out stack.json\n"
      "  orrery calibrate --import all_reduce_perf.txt nccl.log rank0.json.gz --out cluster.json");
}

void add_validate(CLI::App& app, CommandLine& o) {
  CLI::App& c = *app.add_subcommand("validate", "predict, run, and print predicted against measured");
  take_specs(c.add_option("SPEC", o.validate.specs, "one or more specs"));
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
  add_device(c, o.validate.device);
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
  take_positive(c.add_option("--tolerance", o.validate.tolerance, "exit 4 when a step is further off (0.25)"), "SHARE",
                "", 1e6);
  c.add_option("--out", o.validate.out, "keep the ranks' files and the reports in this folder")->type_name("FOLDER");
  c.add_flag("--json", o.json, "print a list with both reports and the errors of every spec");
  add_page(c, o);
  c.footer(
      "examples: orrery validate examples/cpu-small.yaml --profile machine.json\n"
      "          orrery validate --published benchmarks/offload_papers.json --scatter published.svg");
}

void add_trace(CLI::App& app, CommandLine& o) {
  CLI::App& c = *app.add_subcommand("trace", "where the time of a trace goes: PyTorch's profiler's, or one of ours");
  c.add_option("ACTION", o.trace.action, "what to do with the traces")->required()->type_name("summarize");
  c.add_option("FILE", o.trace.files, "traces of torch.profiler or of --trace (.json, .json.gz), a file per rank")
      ->required()
      ->type_name("");
  take_count(c.add_option("--top", o.trace.top, "kernels and operators to list (15)"), "K");
  c.add_flag("--json", o.json, "print all figures as JSON (schema orrery.trace_summary/1)");
  c.footer("example: orrery trace summarize rank0.json.gz rank1.json.gz");
}

void add_whatif(CLI::App& app, CommandLine& o) {
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

}  // namespace orrery
