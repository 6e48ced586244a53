#pragma once

#include <cstdint>
#include <string>

#include "models/plan/plan.h"

namespace orrery::test {

// How often an op of a name runs, and over how many elements all together.
struct Passes {
  int count = 0;
  std::int64_t elements = 0;
};

inline Passes passes(const Plan& plan, const std::string& name) {
  Passes result;
  for (TaskId t = 0; t < plan.task_count(); ++t) {
    if (plan.op_of(t).name != name) continue;
    ++result.count;
    if (const auto* s = std::get_if<Multiply>(&plan.op_of(t).work)) result.elements += s->elements;
    if (const auto* s = std::get_if<SquaredNorm>(&plan.op_of(t).work)) result.elements += s->elements;
    if (const auto* c = std::get_if<Collective>(&plan.op_of(t).work)) result.elements += c->bytes / c->width;
  }
  return result;
}

}  // namespace orrery::test
