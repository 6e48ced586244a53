#pragma once

#include <string>
#include <vector>

#include "sim/runs/machine_facts.h"

namespace orrery {

// The result of a check: all is well; something that a command of every machine needs is missing or too small;
// something is not there that only some machines have (a GPU, a display).
enum class Health : unsigned char { good, lacking, absent };

// One check of `orrery doctor`: what is there, which commands need it, and how to mend it ("" where all is well).
struct Finding {
  std::string name;
  Health health = Health::good;
  std::string found, needed_for, mend;
};

// The findings about a machine, always of the same checks in the same order.
std::vector<Finding> diagnose(const MachineFacts& facts);

}  // namespace orrery
