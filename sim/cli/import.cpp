// `orrery calibrate --import`: makes a profile from measurements by other tools.
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/base/output_file.h"
#include "sim/calibrate/import.h"
#include "sim/cli/commands.h"
#include "sim/print/table.h"

namespace orrery {
namespace {

struct SampleCounts {
  std::size_t ops = 0, transfers = 0;
};

SampleCounts samples_of(const MeasuredTimes& times) {
  SampleCounts counts;
  for (const OpTable& table : times.ops) counts.ops += table.samples.size();
  for (const TransferTable& table : times.transfers) counts.transfers += table.samples.size();
  return counts;
}

// Returns the most frequent reasons for which measurements were refused, with their counts, and all other reasons as
// one entry.
std::vector<std::pair<std::string, std::int64_t>> most_refused(const std::map<std::string, std::int64_t>& refused) {
  constexpr std::size_t kShown = 12;
  std::vector<std::pair<std::string, std::int64_t>> reasons(refused.begin(), refused.end());
  std::stable_sort(reasons.begin(), reasons.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  if (reasons.size() <= kShown + 1) return reasons;
  std::int64_t rest = 0;
  for (std::size_t i = kShown; i < reasons.size(); ++i) rest += reasons[i].second;
  const std::size_t others = reasons.size() - kShown;
  reasons.resize(kShown);
  reasons.emplace_back(fmt::format("{} other operators or reasons", others), rest);
  return reasons;
}

// Returns, as text, the share of the kernels' time in the imported traces that became samples of the profile; "" if no
// file is a trace.
std::string taken_share(const std::vector<Imported>& files) {
  Seconds all = 0, taken = 0;
  for (const Imported& file : files) {
    all += file.kernel_time;
    taken += file.taken_time;
  }
  return all > 0 ? fmt::format("{:.1f} % of the kernels' time in the traces, collectives apart", 100 * taken / all)
                 : "";
}

// Returns why nothing can be taken: what was refused most, with counts.
std::string all_refused(const std::map<std::string, std::int64_t>& refused) {
  std::string text;
  for (const auto& [reason, rows] : most_refused(refused)) text += fmt::format("; {}: {}", rows, reason);
  return text.empty() ? "" : "; refused are" + text.substr(1);
}

// Adds to an imported profile the names of the files from which it was made, and how many measurements were refused.
void describe_import(Profile& profile, const std::vector<std::string>& files,
                     const std::map<std::string, std::int64_t>& refused) {
  std::string names;
  for (const std::string& file : files)
    names += (names.empty() ? "" : ", ") + std::filesystem::path(file).filename().string();
  const std::string_view device = fingerprint_of(profile, "device");
  profile.name = fmt::format("{}{}imported from {}", device, device.empty() ? "" : ", ", names);
  const SampleCounts counts = samples_of(profile.measured);
  profile.fingerprint.emplace_back("files", names);
  profile.fingerprint.emplace_back("samples", fmt::format("{}", counts.ops + counts.transfers));
  for (const auto& [reason, rows] : refused)
    profile.fingerprint.emplace_back("refused: " + reason, fmt::format("{}", rows));
}

std::string import_summary(const Profile& profile, const std::vector<Imported>& files, const std::string& out,
                           const std::map<std::string, std::int64_t>& refused) {
  const SampleCounts counts = samples_of(profile.measured);
  Table table;
  table.columns = {{"", "", Align::left}, {"", "", Align::left}};
  table.rows = {{"profile", out},
                {"measured by", profile.name},
                {"ops", fmt::format("{} samples of {} kinds", counts.ops, profile.measured.ops.size())},
                {"transfers",
                 fmt::format("{} samples of {} kinds and groups", counts.transfers, profile.measured.transfers.size())},
                {"NCCL's tables", fmt::format("of {} sizes of communicators", profile.nccl.size())}};
  if (const std::string share = taken_share(files); !share.empty()) table.rows.push_back({"measured", share});
  for (const auto& [reason, rows] : most_refused(refused))
    table.rows.push_back({"refused", fmt::format("{}: {}", rows, reason)});
  table.rows.push_back({"the rest", "of the GPU's built-in profile"});
  return print(table);
}

}  // namespace

Outcome import_command(const CalibrateOptions& options) {
  std::vector<Imported> files;
  for (const std::string& path : options.imports) files.push_back(import_file(path));
  std::map<std::string, std::int64_t> refused;
  Profile profile = profile_of(files, refused);
  if (profile.measured.empty() && profile.nccl.empty()) {
    throw Error(fmt::format("{}: holds nothing to take{}", options.imports.front(), all_refused(refused)));
  }
  describe_import(profile, options.imports, refused);
  if (options.out.empty()) return {.text = to_json(profile), .verbatim = true};
  OutputFile file(options.out);
  file.write(to_json(profile));
  file.commit();
  return {import_summary(profile, files, options.out, refused)};
}

}  // namespace orrery
