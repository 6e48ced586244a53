#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/base/units.h"
#include "sim/print/text.h"

namespace orrery {

// A strategy on a cluster, with its time, cost and memory: a candidate for the Pareto front.
struct FrontRow {
  std::string machine;
  std::int64_t gpus = 0;
  std::string strategy;
  std::vector<std::string> overrides;  // settings (KEY=VALUE) that turn the spec into this strategy
  double step_s = 0, tokens_per_s = 0;
  // cost of a million tokens on rented GPUs, US dollars; nullopt: no price is known
  std::optional<double> usd_per_Mtoken;
  Bytes memory = 0;  // peak memory in bytes of the fullest GPU
};

// A strategy is listed on the Pareto front only if it needs at most this share of the memory of the strategy listed
// before it: of strategies whose memory differs by less, only the fastest is listed.
inline constexpr double kFrontStep = 0.95;

// The Pareto front: rows for which no other row is at least as good in time, cost and memory and better in one of the
// three. The fastest row comes first; of equal rows only the first stays. An unknown price counts as higher than any.
std::vector<FrontRow> front_of(std::vector<FrontRow> rows);

// The Pareto front as lines for the terminal. Samples of a line for one machine (time and memory), and for several
// machines:
//   22.51 ms   2.34 GiB  TP2 PP2 DP2 MB1 1f1b zero1
//   dgx-h100  8   72,800 tokens/s  0.09 $/Mtoken  2.34 GiB  TP2 PP2 DP2 MB1 1f1b zero1
std::string front_text(const std::vector<FrontRow>& rows, bool cut = false, const Style& style = {});
std::string front_json(const std::vector<FrontRow>& rows);  // a JSON list, part of schema orrery.search/1

}  // namespace orrery
