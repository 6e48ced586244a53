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

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/load/schema.h"
#include "sim/cli/command_line.h"
#include "sim/cli/commands.h"
#include "sim/cli/commit.h"
#include "sim/cli/completion.h"
#include "sim/cli/heartbeat.h"
#include "sim/cli/manual.h"
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

// Whether a file descriptor is a terminal that a user sees. Under mpirun the answer is no: mpirun gives every process a
// terminal of its own and forwards the output to a terminal or a file.
bool is_terminal(int descriptor) {
  const char* kind = std::getenv("TERM");
  return ::isatty(descriptor) != 0 && orrery::launched_rank() < 0 && kind != nullptr && std::strcmp(kind, "dumb") != 0;
}

orrery::Common common_of(const orrery::CommandLine& o) {
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
orrery::Outcome search(const orrery::CommandLine& o, orrery::Common common, std::unique_ptr<orrery::Peers>& peers) {
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

orrery::Outcome run(const CLI::App& app, const orrery::CommandLine& o, std::unique_ptr<orrery::Peers>& peers) {
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
  orrery::CommandLine options;
  options.command = orrery::command_words(argc, argv);
  std::unique_ptr<orrery::Peers> peers;
  CLI::App app("A clockwork model of a training cluster.", "orrery");
  app.set_version_flag("--version", orrery::version_line("orrery"));
  orrery::set_up(app, options);
  try {
    app.parse(argc, argv);
    orrery::check_extras(app);
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
