#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "models/layout/placement.h"
#include "models/plan/plan.h"
#include "models/spec/spec.h"

namespace orrery {

// Index of a rank in one of its groups (tensor, data, pipeline, ...), and the group's size.
struct GroupPosition {
  std::int64_t index = 0, size = 1;
};

// Returns the position of a rank in its group of dimension d.
GroupPosition position_in(const Plan& plan, Dimension d, std::int64_t rank);

// Consecutive rows of a rank's part of a weight that are also consecutive in the uncut weight. local: index of the
// first row in the rank's part; uncut: index of the first row in the uncut weight. section: number of the matrix that
// the rows belong to, of those that one weight packs (queries, keys and values, or gate and up projection).
struct UncutRows {
  std::int64_t section = 0, local = 0, uncut = 0, rows = 0;
};

// Maps a rank's part of a weight to the uncut weight: the part has several ranges of rows, listed in the order of the
// part, and one range of columns. The uncut weight of experts has the matrices of all experts, one after another;
// `expert_rows` is the number of rows of one expert's matrix, or for a weight without experts of the complete weight.
// first_row: the index of the first row of each section (packed matrix) of an expert's matrix or of the weight, and at
// the end the number of rows.
struct UncutPlace {
  std::vector<UncutRows> rows;
  std::int64_t column = 0;
  std::int64_t columns = 0;
  UncutShape whole;
  std::int64_t expert_rows = 0;
  std::vector<std::int64_t> first_row;
};

// Returns where in the uncut weight a rank's part of the weight lies. position: the function that returns the rank's
// position in its group of a dimension.
UncutPlace uncut_place(const Model& model, const LocalParameter& p,
                       const std::function<GroupPosition(Dimension)>& position);

}  // namespace orrery
