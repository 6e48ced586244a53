#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/explain/techniques.h"
#include "sim/print/section.h"
#include "sim/print/text.h"
#include "sim/search/search.h"

namespace orrery {

// The effect of one change of the machine or of the batch on a simulated training step, found by simulating the changed
// step. what: the change in words; faster: share by which a token takes less time (0.03: 3 % less); fits: whether the
// changed step fits in the memory of a GPU.
struct Sensitivity {
  std::string what;
  double faster = 0;
  bool fits = true;
  // Share of the step time by which the critical path gets shorter if the changed rate (of compute, memory or a link)
  // is 10 % higher and everything else is unchanged; nullopt where the change is not that of a rate.
  std::optional<double> slope{};
};

// Simulates the spec's step with each rate of the machine doubled (compute, memory and the links that the step uses),
// one at a time, and with twice the batch; returns the effects, the most helpful change first.
std::vector<Sensitivity> sensitivities(const Spec& spec, const Profile& profile);
// The effect of a change as a line of text, the share of a token's time that it saves first: "42.7 %  twice the matrix
// rate (7.6 % for the first 10 %)".
std::string text_of(const Sensitivity& sensitivity);
// The effect of a change as a line of text, the change first: "twice the matrix rate: 42.7 % less time a token (10 %
// faster: 7.6 %)".
std::string lever_text(const Sensitivity& sensitivity);

// Advice about the best strategy of a search, from simulations of that strategy with single changes.
struct Advice {
  std::vector<Sensitivity> helps;  // changes of machine or batch that may make the step faster, the most helpful first
  std::vector<Effect> parts;       // effects of leaving out each technique in use, one technique at a time
  std::vector<Effect> situations;  // effects of running on one GPU, on one node, without NVLink, without InfiniBand
};
Advice advice(const Space& space, const Profile& profile, const SearchResult& result, unsigned threads);

// The advice as sections of the printed report, each with a line for every change.
std::vector<Section> advice_sections(const Advice& advice);
// The advice as a text. A sample:
//   what would make the best faster
//    42.7 %  twice the matrix rate (7.6 % for the first 10 %)
//   what each part of it is worth
//    without tensor parallelism over 8 ranks (as replicas): 1.4 % slower, 238.0 GiB more a GPU, does not fit: 206.8 GiB
//    over
std::string advice_text(const Advice& advice, const Style& style);
// The advice as a JSON object {"sensitivities": [...], "techniques": [...], "situations": [...]}.
std::string advice_json(const Advice& advice);

}  // namespace orrery
