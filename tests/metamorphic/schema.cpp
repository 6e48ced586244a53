#include "tests/metamorphic/schema.h"

#include <cmath>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/load/load_spec.h"
#include "models/load/schema.h"
#include "tests/json_schema.h"
#include "tests/metamorphic/random_spec.h"

namespace orrery::test {
namespace {

bool is_read(const Json& spec) {
  try {
    parse_spec(spec.dump(), "spec.yaml");
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Collects the maps of a spec that hold keys.
void collect_maps(Json& at, std::vector<Json*>& maps) {
  if (!at.is_object() || at.empty()) return;
  maps.push_back(&at);
  for (Json& item : at) collect_maps(item, maps);
}

// The spec with one mistake: a key misspelt, or a value in the place of another kind of value.
Json with_a_mistake(Draw& draw, Json spec) {
  std::vector<Json*> maps;
  collect_maps(spec, maps);
  Json& map = *maps[draw.below(maps.size())];
  auto chosen = map.begin();
  for (auto n = draw.below(map.size()); n > 0; --n) ++chosen;
  const std::string key = chosen.key();
  const Json value = *chosen;
  const bool takes_any_text = key == "imbalance";  // a figure, or the path of a file
  if (takes_any_text || draw.chance(.5)) {
    map.erase(key);
    map[key + "x"] = value;
  } else {
    map[key] = value.is_number()    ? Json("several")
               : value.is_boolean() ? Json("perhaps")
                                    : Json::array({Json::array()});
  }
  return spec;
}

}  // namespace

std::uint64_t schema_violations(std::uint64_t seed, std::uint64_t count) {
  const SchemaCheck schema(Json::parse(spec_schema()));
  std::uint64_t violations = 0, valid = 0;
  for (std::uint64_t number = 0; valid < count; ++number) {
    Draw draw(seed * 1'000'003 + number);
    const Json spec = random_spec(draw);
    if (!is_read(spec)) continue;
    ++valid;
    const Json wrong = with_a_mistake(draw, spec);
    const auto say = [&](const char* what, const Json& which) {
      fmt::print("{} {}: {}\n", number, what, which.dump());
      ++violations;
    };
    if (!schema.holds(spec)) say("is refused by the schema", spec);
    if (schema.holds(wrong)) say("holds to the schema in spite of a mistake", wrong);
    if (is_read(wrong)) say("is read in spite of a mistake", wrong);
  }
  fmt::print(stderr, "# {} random specs and as many with a mistake: {} violations of the schema\n", valid, violations);
  return violations;
}

}  // namespace orrery::test
