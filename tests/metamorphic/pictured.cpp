// The picture of a plan.
#include "models/planner/make_plan.h"
#include "sim/picture/picture.h"
#include "tests/metamorphic/relations.h"
#include "tests/picture_checks.h"

namespace orrery::test {

void pictured(Checks& checks, const Subject& s) {
  const Plan plan = make_plan(s.run.spec);
  const std::string svg = picture(s.run.spec, plan, s.run.report);
  if (picture(s.run.spec, plan, s.run.report) != svg) checks.violated("picture", "not the same twice", s.spec);
  const PictureChecks found(svg, plan, s.run.report);
  for (const std::string& wrong : found.wrong()) checks.violated("picture", wrong, s.spec);
}

}  // namespace orrery::test
