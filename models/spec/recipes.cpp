#include "models/spec/recipes.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/base/data.h"

namespace orrery {

std::vector<std::string_view> recipe_names() { return data_names("recipes"); }

NamedRecipe find_recipe(std::string_view name) {
  const auto j = nlohmann::ordered_json::parse(data_file(fmt::format("recipes/{}.json", name)));
  const auto& published = j.at("published");
  return {.name = std::string(name),
          .about = j.at("about").get<std::string>(),
          .source = j.at("source").get<std::string>(),
          .spec = j.at("spec").dump(2),
          .figure = published.at("figure").get<std::string>(),
          .value = published.at("value").get<double>(),
          .machine = published.value("machine", std::string()),
          .figure_source = published.at("source").get<std::string>()};
}

}  // namespace orrery
