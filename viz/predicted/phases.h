#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/plan/plan.h"
#include "models/spec/spec.h"
#include "viz/predicted/step.h"
#include "viz/timeline/timeline.h"

namespace orrery {

// The phases of a step (Timeline::phases): the passes over prompts and those of one token of a generated text, or the
// model that trains and the frozen one beside it; none for the step of one model.
class Phases {
 public:
  // plan: that of the step, which must outlive the phases.
  Phases(const Spec& spec, const Plan& plan);

  const std::vector<std::string>& names() const { return names_; }
  const std::vector<std::string>& passes() const { return passes_; }  // for each micro-batch, the name of its pass
  std::int8_t of(const Frame& frame) const {
    if (second_) return plan_.blocks[frame.block].second ? 1 : 0;
    if (decodes_.empty()) return kNoPhase;
    return decodes_[static_cast<std::size_t>(std::max(0, frame.micro_batch))] ? 1 : 0;
  }

 private:
  const Plan& plan_;
  bool second_ = false;
  std::vector<std::string> names_, passes_;
  std::vector<bool> decodes_;  // for each micro-batch of a generated text, whether its pass is of one token
};

// Adds to each rank of a generated text a counter of the bytes of its cache that hold keys and values, pass by pass.
void add_cache_use(const Step& step, Timeline& timeline);

}  // namespace orrery
