#include "exec/program/rank_program.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <new>

#include <fmt/format.h>

#include "kernels/cpu/adafactor.h"
#include "models/base/error.h"
#include "models/base/version.h"

namespace orrery {

RankOptions parse_rank_options(int argc, char** argv, const std::string& name) {
  RankOptions o;
  CLI::App app("Executes ranks of a plan; orrery run starts it.", name);
  app.add_option("--spec", o.spec)->required();
  app.add_option("--set", o.overrides)->allow_extra_args(false);
  app.add_option("--out", o.out)->required();
  app.add_option("--steps", o.steps)->check(CLI::Range(1, 1000000));
  app.add_option("--hang-timeout", o.hang_timeout);
  app.add_option("--mark-every", o.mark_every, "times the tasks of each so many steps")->check(CLI::Range(1, 1000000));
  app.add_option("--first-step", o.first_step, "goes on after so many steps, from the snapshots");
  app.add_option("--snapshots", o.snapshots, "folder of what to go on from");
  app.add_option("--text", o.text, "what to train on, instead of the built-in text");
  app.set_version_flag("--version", fmt::format("{} {}", name, kVersion));
  app.add_flag("--turns", o.turns, "the ranks run one by one, each alone on a GPU");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) std::exit(app.exit(error));
    throw Error(fmt::format("{}: {}", name, error.what()));
  }
  return o;
}

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

Training training_of(const Spec& spec) {
  Training t;
  using Kind = kernels::UpdateRule::Kind;
  switch (spec.strategy.optimizer.kind) {
    case OptimizerKind::sgd:
      t.rule.kind = Kind::sgd;
      break;
    case OptimizerKind::adam:
      t.rule.kind = Kind::adam;
      break;
    // For Lion, beta2 and the learning rate are those of Chen et al. 2023, section 5: 0.99, and a tenth of AdamW's.
    case OptimizerKind::lion:
      t.rule = {.kind = Kind::lion, .learning_rate = 1e-4, .beta2 = 0.99};
      break;
    case OptimizerKind::muon:
      t.rule.kind = Kind::muon;
      break;
    case OptimizerKind::adafactor:
      t.rule = {.kind = Kind::adafactor, .learning_rate = kernels::kLargestStep};
      break;
    case OptimizerKind::adamw:
      t.rule.kind = Kind::adamw;
  }
  t.clip = spec.strategy.clip;
  t.seed = spec.seed;
  return t;
}

Text text_of(const RankOptions& o, const Spec& spec, std::string_view built_in) {
  const std::int64_t length = spec.generation ? spec.generation->input : spec.sequence;
  if (!o.text.empty()) return read_text(o.text, spec.model.vocab, length);
  std::string repeated(built_in);
  while (static_cast<std::int64_t>(repeated.size()) <= length + 1) repeated += built_in;
  return checked_text(std::move(repeated), spec.model.vocab, length);
}

Watcher watcher_of(const Rank& rank, ProgressRing& ring, const std::int64_t& step) {
  return [&](TaskId task, bool entered) {
    const LaneKind lane = rank.plan.op_of(task).lane;
    entered ? ring.enter(lane, static_cast<std::uint32_t>(step), task)
            : ring.leave(lane, static_cast<std::uint32_t>(step), task);
  };
}

void give_up(ProgressRing* ring, const std::string& name, int code, const std::string& line) {
  if (ring != nullptr) ring->fail(code, line);
  std::fputs(fmt::format("{}: {}\n", name, line).c_str(), stderr);
  std::_Exit(code);
}

int exit_code_of(const std::exception& error) {
  const auto* bad = dynamic_cast<const Error*>(&error);
  return bad != nullptr ? bad->exit_code : 1;
}

void give_up(ProgressRing* ring, const std::string& name, const std::exception& error) {
  const bool no_memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
  give_up(ring, name, exit_code_of(error), no_memory ? "out of memory" : error.what());
}

}  // namespace orrery
