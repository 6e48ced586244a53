#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/spec/spec.h"
#include "sim/print/section.h"

namespace orrery {

// A published measured step: properties by which similar steps are found, and the error of Orrery's prediction of the
// step.
struct ValidatedRow {
  std::string source, id;
  std::string gpu;  // the GPU's architecture: "ampere"
  std::string software, model, sharding;
  double parameters = 0;
  std::int64_t gpus = 0, tensor = 1, pipeline = 1, context = 1, expert = 1, sequence = 0;
  double error = 0;  // error of the step time: predicted / measured - 1
};

// Returns the properties of a spec's step by which similar published steps are found. The fields source, id and error
// stay empty.
ValidatedRow described(const Spec& spec);

// Returns the contents of models/data/validated_rows.json, which `orrery validate --published FILE... --rows FILE`
// writes.
std::string validated_rows_json(const std::vector<ValidatedRow>& rows);

// Returns how different two steps are: the sum, over the sizes of the steps (GPUs, parallel degrees, parameters, ...),
// of the number of doublings between them. Another software stack counts as kOtherSoftware doublings, another GPU
// architecture as kOtherGpu, another sharding as one. The number serves for sorting only.
inline constexpr double kOtherSoftware = 3, kOtherGpu = 3;
double distance(const ValidatedRow& a, const ValidatedRow& b);

// Returns the `count` built-in rows (measured steps) with the least distance() to the spec, nearest first; rows at the
// same distance are in the order of the file.
std::vector<ValidatedRow> nearest_rows(const Spec& spec, std::size_t count);

// The same as a table, with the errors of the rows' predictions.
Section nearest_section(const Spec& spec, std::size_t count);

// Returns the names of the stacks of all built-in rows, sorted.
std::vector<std::string> validated_stacks();

}  // namespace orrery
