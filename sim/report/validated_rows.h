#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/spec/spec.h"

namespace orrery {

// A step that somebody measured, by what makes steps alike, and how far off our prediction of it is.
struct ValidatedRow {
  std::string source, id;
  std::string gpu;  // the architecture
  std::string software, model, sharding;
  double parameters = 0;
  std::int64_t gpus = 0, tensor = 1, pipeline = 1, context = 1, expert = 1, sequence = 0;
  double error = 0;  // predicted / measured - 1
};

// What makes a spec's step like others; no source and no error.
ValidatedRow described(const Spec& spec);

// The text of models/data/validated_rows.json, which `orrery validate --published FILE... --rows FILE` writes.
std::string validated_rows_json(const std::vector<ValidatedRow>& rows);

// How unlike two steps are: halvings or doublings of every size between them; another stack counts as kOtherSoftware of
// those, another generation of GPU as kOtherGpu, another sharding as one. A yardstick for sorting, no physics.
inline constexpr double kOtherSoftware = 3, kOtherGpu = 3;
double distance(const ValidatedRow& a, const ValidatedRow& b);

// Of the built-in rows the nearest `count`, the nearest first; of rows of one source equally far, the first.
std::vector<ValidatedRow> nearest_rows(const Spec& spec, std::size_t count);

}  // namespace orrery
