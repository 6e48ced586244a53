// Finds how much time and memory techniques save, by simulating the step without each of them.
#include <atomic>
#include <thread>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/load/load_spec.h"
#include "sim/explain/techniques.h"
#include "sim/predict/long_steps.h"
#include "sim/predict/predict.h"
#include "sim/report/difference.h"
#include "sim/report/report_text.h"

namespace orrery {
namespace {

constexpr double kNoDifference = 0.0005;  // share of the step time below which a difference is not reported

Effect effect_of(Technique technique, const Profile& profile, const Report& report) {
  Effect e{.technique = std::move(technique)};
  try {
    check(e.technique.other);
    const Report other = predict_report(e.technique.other, profile);
    e.step_s = other.step_time_s;
    // Steps are compared by time per token, since the changed spec may have another batch and another number of GPUs.
    e.slower = report.tokens_per_s_per_gpu / other.tokens_per_s_per_gpu - 1;
    e.more = other.memory.peak_device - report.memory.peak_device;
    e.fits = other.memory.fits;
    if (!e.fits) e.lacks = lack_text(other.memory);
    const std::vector<Loss> lost = losses(report, other);
    if (e.slower > kNoDifference && !lost.empty()) e.loses = text_of(lost.front());
  } catch (const Error& error) {
    e.refused = error.what();
  }
  return e;
}

}  // namespace

std::vector<Effect> effects(const Profile& profile, const Report& report, std::vector<Technique> techniques,
                            unsigned threads) {
  std::vector<Effect> result(techniques.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < techniques.size(); i = next++)
      result[i] = effect_of(std::move(techniques[i]), profile, report);
  };
  std::vector<std::jthread> others;
  for (unsigned t = 1; t < std::min<std::size_t>(threads, techniques.size()); ++t) others.emplace_back(work);
  work();
  others.clear();  // waits for the threads: the destructor of a jthread joins it
  return result;
}

std::string text_of(const Effect& e) {
  std::string text = e.technique.instead + ": ";
  if (!e.refused.empty()) return text + "not possible: " + e.refused;
  if (std::abs(e.slower) < kNoDifference)
    text += "as fast";
  else
    text += fmt::format("{:.1f} % {}", 100 * std::abs(e.slower), e.slower > 0 ? "slower" : "faster");
  if (!e.loses.empty()) text += fmt::format(" ({})", e.loses);
  if (e.more != 0)
    text +=
        fmt::format(", {} {} a GPU", memory_text(static_cast<double>(std::abs(e.more))), e.more > 0 ? "more" : "less");
  if (!e.fits) text += fmt::format(", does not fit: {}", e.lacks);
  return text;
}

}  // namespace orrery
