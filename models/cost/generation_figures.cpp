#include "models/cost/generation_figures.h"

#include <nlohmann/json.hpp>

#include "models/base/data.h"
#include "models/cost/host_time.h"

namespace orrery {

const GenerationFigures& generation_figures() {
  static const GenerationFigures figures = [] {
    const nlohmann::json file = nlohmann::json::parse(data_file("fitted.json"));
    const auto of = [&](const char* key) { return file.at("generation").at("numbers").at(key).get<double>(); };
    return GenerationFigures{.memory_part = of("memory_part"),
                             .product_start_us = of("product_start_us"),
                             .attention_start_us = of("attention_start_us"),
                             .direct_part = of("direct_part"),
                             .direct_start_us = of("direct_start_us"),
                             .kernel_start_us = of("kernel_start_us"),
                             .expert_zipf = of("expert_zipf"),
                             .vector_part = of("vector_part"),
                             .tokenise_us = of("tokenise_us")};
  }();
  return figures;
}

double session_us(const std::string& stack) {
  static const nlohmann::json all = nlohmann::json::parse(data_file("fitted.json")).at("generation").at("session_us");
  return all.value(stack, 0.0);
}

Profile generating(Profile profile) {
  profile.generates = true;
  if (is_calibrated(profile)) return profile;
  profile.memory.start_us = generation_figures().kernel_start_us;
  profile.kernel_gap_us = 0;
  return profile;
}

}  // namespace orrery
