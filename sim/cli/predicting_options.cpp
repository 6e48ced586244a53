// Commands that predict.
#include "sim/cli/command_options.h"

namespace orrery {

static void add_prices(CLI::App& c, PriceOptions& o) {
  c.add_option("--prices", o.file, "a price list, instead of models/data/prices.json")->type_name("FILE");
  take_positive(c.add_option("--energy-price", o.usd_per_kWh, "of a kWh, instead of the list's"), "USD");
  take_positive(c.add_option("--write-off", o.write_off_years, "over which a node's price is written off"), "YEARS", "",
                100);
}

void add_simulate(CLI::App& app, CommandLine& o) {
  CLI::App& c = *app.add_subcommand("simulate", "predict one training step: time, memory, communication");
  c.add_option("SPEC", o.simulate.spec,
               "what to train, on what, and how (YAML or JSON); a recipe (list recipes); with --on a model: built in, "
               "a config.json, or its folder")
      ->required();
  take_specs(c.get_option("SPEC"));
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

void add_compare(CLI::App& app, CommandLine& o) {
  CLI::App& c = *app.add_subcommand("compare", "strategies side by side");
  take_specs(c.add_option("SPEC", o.compare.specs, "one or more specs"))->required();
  add_repeated(c, "--vary", o.compare.vary,
               "try these values of a key, e.g. --vary strategy.tensor=1,2,4; repeated: every combination");
  add_shared(c, o.compare.overrides, o.compare.profile);
  take_positive(c.add_option("--tokens", o.compare.tokens, "length of the run, for its days and rent, e.g. 15T"), "N");
  add_prices(c, o.compare.prices);
  c.add_flag("--json", o.json, "print a list of {name, report or error}");
  c.add_flag("--csv", o.compare.csv, "print the table for a spreadsheet, with plain figures");
  add_page(c, o);
  c.footer("example: orrery compare examples/llama-3.1-70b.yaml --vary strategy.sharding=none,zero1,zero2,zero3");
}

void add_search(CLI::App& app, CommandLine& o) {
  CLI::App& c = *app.add_subcommand("search", "the best strategies that fit, proven; which machine, for how much");
  SearchCommandOptions& s = o.search;
  take_specs(c.add_option("SPEC", s.spec, "what is given is fixed, what is absent is searched"))->required();
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
  take_positive(c.add_option("--max-memory", s.max_memory_GiB, "of a GPU"), "GiB", "GiB", 1e6);
  take_count(c.add_option("--max-gpus", s.max_gpus, "leave larger machines out"), "N");
  take_positive(c.add_option("--tokens", s.tokens, "length of the run, for its time and price, e.g. 15T"), "N");
  take_positive(c.add_option("--deadline", s.deadline_days, "leave machines out whose run takes longer"), "DAYS",
                "days", 1e6);
  take_positive(c.add_option("--budget", s.budget_usd, "leave machines out whose run costs more to rent, e.g. 30M"),
                "USD");
  add_prices(c, s.prices);
  add_repeated(c, "--against", s.against, "a strategy to set beside the best, e.g. --against strategy.tensor=8");
  take_count(c.add_option("--top", s.top, "strategies to show (5)"), "K");
  take_positive(c.add_option("--within", s.within, "leave out what is not that much better than the best: faster"),
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

void add_explain(CLI::App& app, CommandLine& o) {
  CLI::App& c = *app.add_subcommand("explain", "every value and its origin, and the formulas behind the prediction");
  take_specs(c.add_option("SPEC", o.explain.spec, "what to train, on what, and how (YAML or JSON)"))->required();
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

void add_run_length(CLI::App& app, CommandLine& o) {
  CLI::App& c = *app.add_subcommand("run-length", "what failures and checkpoints leave of a run of days");
  take_specs(
      c.add_option("SPEC", o.run_length.spec, "the job: a spec, whose cluster.failures and strategy.checkpoint count"))
      ->required();
  add_shared(c, o.run_length.overrides, o.run_length.profile);
  take_positive(c.add_option("--days", o.run_length.days, "length of the run (54, that of Llama 3 405B)"), "DAYS", "",
                1e4);
  c.add_option("--seed", o.run_length.seed, "of the draws (1)")->type_name("N");
  take_count(c.add_option("--plays", o.run_length.plays, "how often the run is played (10000)"), "N");
  c.add_flag("--json", o.json, "print all figures as JSON (schema orrery.run_length/1)");
  c.footer("example: orrery run-length examples/llama-3.1-405b.yaml --set cluster.failures.restart_s=600 --days 54");
}

}  // namespace orrery
