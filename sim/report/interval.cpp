#include "sim/report/interval.h"

#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/data.h"

namespace orrery {

// The interval of GPUs of which no measured step was ever compared with a prediction (Gpu::uncalibrated). Sources that
// no constant had been adjusted to were off by 13 to 24 % on average, slower more often than faster.
static constexpr Interval kUnmeasuredGpu = {0.75, 1.35};

Interval interval_of(const Spec& spec) {
  const std::string gpu(name_of(spec.cluster.gpu.architecture));
  const nlohmann::json file = nlohmann::json::parse(data_file("intervals.json"));
  if (spec.cluster.gpu.architecture == Architecture::other) return {};
  if (spec.cluster.gpu.uncalibrated) return kUnmeasuredGpu;
  using Class = std::pair<std::string, std::string>;
  for (const auto& [of_gpu, software] : {Class(gpu, spec.software.name), Class(gpu, ""), Class("", "")}) {
    for (const nlohmann::json& e : file.at("classes")) {
      if (e.at("gpu") == of_gpu && e.at("software") == software)
        return {e.at("low").get<double>(), e.at("high").get<double>()};
    }
  }
  return {};
}

}  // namespace orrery
