#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/spec/spec.h"

namespace orrery {

// A step that somebody measured: the properties that make steps alike, and the error of our prediction of it.
struct ValidatedRow {
  std::string source, id;
  std::string gpu;  // the GPU's architecture: "ampere"
  std::string software, model, sharding;
  double parameters = 0;
  std::int64_t gpus = 0, tensor = 1, pipeline = 1, context = 1, expert = 1, sequence = 0;
  double error = 0;  // predicted / measured - 1
};

// The row of a spec: the properties that make steps alike, without source and error.
ValidatedRow described(const Spec& spec);

// The text of models/data/validated_rows.json, which `orrery validate --published FILE... --rows FILE` writes.
std::string validated_rows_json(const std::vector<ValidatedRow>& rows);

// How unlike two steps are: the number of halvings or doublings between their sizes, summed; another software stack
// counts as kOtherSoftware halvings, another generation of GPU as kOtherGpu, another sharding as one. The distance
// serves for sorting only.
inline constexpr double kOtherSoftware = 3, kOtherGpu = 3;
double distance(const ValidatedRow& a, const ValidatedRow& b);

// The `count` built-in rows (measured steps) that are nearest to the spec, the nearest first; among rows of one source
// that are equally far, only the first.
std::vector<ValidatedRow> nearest_rows(const Spec& spec, std::size_t count);

}  // namespace orrery
