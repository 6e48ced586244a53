#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/spec/spec.h"

namespace orrery {

// A step that somebody measured: the properties that make steps alike, and the error of our prediction of it.
struct ValidatedRow {
  std::string source, id;
  std::string gpu;  // the architecture
  std::string software, model, sharding;
  double parameters = 0;
  std::int64_t gpus = 0, tensor = 1, pipeline = 1, context = 1, expert = 1, sequence = 0;
  double error = 0;  // predicted / measured - 1
};

// The row of a spec: the properties that make steps alike, without source and error.
ValidatedRow described(const Spec& spec);

// The text of models/data/validated_rows.json, which `orrery validate --published FILE... --rows FILE` writes.
std::string validated_rows_json(const std::vector<ValidatedRow>& rows);

// How unlike two steps are: the number of halvings or doublings of every size between them; another stack counts as
// kOtherSoftware halvings, another generation of GPU as kOtherGpu, another sharding as one. The distance serves for
// sorting and is no physics.
inline constexpr double kOtherSoftware = 3, kOtherGpu = 3;
double distance(const ValidatedRow& a, const ValidatedRow& b);

// The nearest `count` of the built-in rows, the nearest first; among rows of one source that are equally far, the
// first.
std::vector<ValidatedRow> nearest_rows(const Spec& spec, std::size_t count);

}  // namespace orrery
