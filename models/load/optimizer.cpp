// This file reads strategy.optimizer: the optimizer and the widths of its states.
#include "models/base/names.h"
#include "models/load/reader.h"

namespace orrery {
namespace {

constexpr Named<OptimizerKind> kOptimizers[] = {
    {"adamw", OptimizerKind::adamw}, {"adam", OptimizerKind::adam},           {"sgd", OptimizerKind::sgd},
    {"lion", OptimizerKind::lion},   {"adafactor", OptimizerKind::adafactor}, {"muon", OptimizerKind::muon}};
constexpr SpecKey kOptimizerKeys[] = {
    {"name", "optimizer", "sgd", "adamw | adam | sgd | lion | adafactor | muon"},
    {"master", "precision of master weights", "fp32", "fp32 | bf16"},
    {"moments", "precision of moments", "bf16", "fp32 | bf16"},
    {"states", "moments in 8 bits, with a scale for each block of 256", "8bit", "wide | 8bit", "wide: as moments says"},
};
constexpr Named<Bytes> kStateWidths[] = {{"fp32", 4}, {"bf16", 2}};
constexpr std::string_view kStates[] = {"wide", "8bit"};

Bytes state_bytes(std::string_view name) { return find_named(kStateWidths, "width", name); }

}  // namespace

void read_optimizer(const SpecSection& strategy, Optimizer& o) {
  const SpecSection map(strategy.reader(), strategy.find("optimizer"), "strategy.optimizer", kOptimizerKeys, "name");
  const auto kind = [](std::string_view word) { return find_named(kOptimizers, "optimizer", word); };
  const auto kind_name = [](OptimizerKind k) { return name_in(kOptimizers, k); };
  const auto width = [](Bytes bytes) { return name_in(kStateWidths, bytes); };
  map.take_named("name", o.kind, kind, kind_name, "default");
  map.take_named("master", o.master_bytes, state_bytes, width, "default");
  map.take_named("moments", o.moment_bytes, state_bytes, width, "default");
  std::string states = "wide";
  map.take_word("states", states, kStates);
  if (states == "wide") return;
  o.eight_bit = true;
  o.moment_bytes = 1;
}

}  // namespace orrery
