#pragma once

#include <string>
#include <vector>

#include "sim/runs/machine_facts.h"

namespace orrery {

// The result of a check. good: all is well; lacking: something is missing or too small that commands on every machine
// need; absent: something is missing that only some machines have (a GPU, a display).
enum class Health : unsigned char { good, lacking, absent };

// One check of `orrery doctor`: what was found, which commands need it, and how to mend it ("" where nothing is wrong).
struct Finding {
  std::string name;
  Health health = Health::good;
  std::string found, needed_for, mend;
};

// Checks a machine; the findings are always in the same order.
std::vector<Finding> diagnose(const MachineFacts& facts);

}  // namespace orrery
