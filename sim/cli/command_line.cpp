#include "sim/cli/command_line.h"

#include <algorithm>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/base/error.h"
#include "models/base/names.h"
#include "sim/cli/command_options.h"

namespace orrery {

static void add_list(CLI::App& app, CommandLine& o) {
  CLI::App& c = *app.add_subcommand("list", "what is built in");
  c.add_option("WHAT", o.list, "what to list")->required()->type_name(fmt::format("{}", fmt::join(list_names(), "|")));
  c.add_flag("--json", o.json, "print a list of objects");
  c.add_flag("--markdown", o.markdown, "print a table as pages of docs/ hold it");
}

static void add_own(CLI::App& app, CommandLine& o) {
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

void set_up(CLI::App& app, CommandLine& o) {
  o.threads = std::max(1U, std::thread::hardware_concurrency());
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
  if (option) throw Error(unknown_name("option", extras[0], known));
  if (!extras.empty() && chosen.empty()) throw Error(unknown_name("command", extras[0], known));
  if (!extras.empty()) throw Error(fmt::format("{}: takes no further argument '{}'", at.get_name(), extras[0]));
  if (chosen.empty()) throw Error(fmt::format("no command; known: {}; orrery -h says more", fmt::join(known, ", ")));
}

}  // namespace orrery
