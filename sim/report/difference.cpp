#include "sim/report/difference.h"

#include <algorithm>

#include <fmt/format.h>

#include "sim/print/text.h"
#include "sim/report/report_text.h"

namespace orrery {
namespace {

// The smallest difference in a kind of time that is reported, as a fraction of the best step's time.
constexpr double kWorthSaying = 0.01;

std::string words(std::string_view name) {
  std::string text(name);
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

// Describes the transfer that accounts for most of this kind of exposed time: "all_reduce over nvlink, 8.1 GB a step".
std::string exposed_transfer(const Report& r, TimeKind kind) {
  const std::string_view name = name_of(kind);
  constexpr std::string_view prefix = "exposed_";
  if (!name.starts_with(prefix)) return "";
  const std::string_view group = name.substr(prefix.size());
  const CommunicationRow* most = nullptr;
  for (const CommunicationRow& row : r.communication) {
    if (row.group == group && (most == nullptr || row.exposed_s > most->exposed_s)) most = &row;
  }
  if (most == nullptr) return "";
  return fmt::format("{} over {}, {} a step", most->op, most->link, volume_text(most->bytes_per_gpu));
}

}  // namespace

std::vector<Loss> losses(const Report& best, const Report& other) {
  std::vector<Loss> result;
  for (int k = 0; k < kTimeKinds; ++k) {
    const double more = other.time_s[k] - best.time_s[k];
    const auto kind = static_cast<TimeKind>(k);
    if (more > kWorthSaying * best.step_time_s) result.push_back({kind, more, exposed_transfer(other, kind)});
  }
  std::stable_sort(result.begin(), result.end(), [](const Loss& a, const Loss& b) { return a.seconds > b.seconds; });
  return result;
}

std::string text_of(const Loss& loss) {
  const std::string what = fmt::format("{} {} more", words(name_of(loss.kind)), time_text(loss.seconds));
  return loss.transfer.empty() ? what : fmt::format("{} ({})", what, loss.transfer);
}

}  // namespace orrery
