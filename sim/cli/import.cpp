// `orrery calibrate --import`: makes a profile from measurements by other tools.
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

// Adds to an imported profile what it was made of: the names of the files, and how many measurements were refused.
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

std::string import_summary(const Profile& profile, const std::string& out,
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
  for (const auto& [reason, rows] : refused) table.rows.push_back({"refused", fmt::format("{}: {}", rows, reason)});
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
    throw Error(fmt::format("{}: holds nothing to take{}{}", options.imports.front(), refused.empty() ? "" : ": ",
                            refused.empty() ? "" : refused.begin()->first));
  }
  describe_import(profile, options.imports, refused);
  if (options.out.empty()) return {.text = to_json(profile), .verbatim = true};
  OutputFile file(options.out);
  file.write(to_json(profile));
  file.commit();
  return {import_summary(profile, options.out, refused)};
}

}  // namespace orrery
