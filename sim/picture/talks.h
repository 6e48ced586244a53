#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/base/dimension.h"
#include "models/plan/plan.h"
#include "models/spec/spec.h"
#include "sim/report/report.h"

namespace orrery {

// Transfers of one kind in the groups of one dimension over one link, as the report of a step counts them. bytes: bytes
// that a rank sends in a step; count: number of transfers of a rank; both are means over ranks. kind: "all-gather",
// "send and receive".
struct Talk {
  std::string kind, link;
  double bytes = 0;
  std::int64_t count = 0;
};

// The transfers of the groups of one dimension in a step. about: a text on what the ranks of a group share. pairs: for
// transfers between pipeline stages, each pair of stages (sender, receiver), ascending.
struct DimensionTalk {
  Dimension dimension = Dimension::tensor;
  std::string_view about;
  std::vector<Talk> talks;
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs;
};

// Returns the transfers of every dimension whose groups move bytes in a step, in the order of the enum Dimension.
std::vector<DimensionTalk> talks_of(const Spec& spec, const Plan& plan, const Report& report);

}  // namespace orrery
