// The commands for Chakra execution traces: `orrery export --to chakra` and `orrery import FILE.et`.
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/base/error.h"
#include "models/base/input_file.h"
#include "models/base/names.h"
#include "models/base/output_file.h"
#include "models/load/load_spec.h"
#include "sim/chakra/from_plan.h"
#include "sim/chakra/replay.h"
#include "sim/cli/commands.h"
#include "sim/launch/import.h"
#include "sim/predict/predict.h"
#include "sim/print/table.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

// The most bytes that an export writes, all files together: more would fill a disk unnoticed.
constexpr std::uint64_t kMostExported = std::uint64_t{4} << 30;

// The rank number in a file name such as "trace.12.et"; nullopt where it has none.
std::optional<std::int64_t> rank_in(const fs::path& path) {
  const std::string stem = path.stem().string();
  const std::size_t dot = stem.find_last_of('.');
  std::int64_t rank = 0;
  const char *begin = stem.data() + (dot == std::string::npos ? stem.size() : dot + 1),
             *end = stem.data() + stem.size();
  const auto [stop, error] = std::from_chars(begin, end, rank);
  return begin != end && stop == end && error == std::errc() && rank >= 0 ? std::optional(rank) : std::nullopt;
}

// The trace files of one job by rank: those given or, if only one is given, those of all ranks in its folder.
std::map<std::int64_t, fs::path> files_by_rank(const std::vector<std::string>& given) {
  std::vector<fs::path> files(given.begin(), given.end());
  const fs::path only = files.front();
  if (files.size() == 1 && rank_in(only)) {
    const fs::path folder = only.has_parent_path() ? only.parent_path() : fs::path(".");
    const std::string prefix = only.stem().stem().string();
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
      const fs::path& path = entry.path();
      const bool same = path.extension() == ".et" && path.stem().stem() == prefix && rank_in(path);
      if (same && path.filename() != only.filename()) files.push_back(path);
    }
  }
  std::map<std::int64_t, fs::path> by_rank;
  for (const fs::path& path : files) {
    const std::int64_t rank = rank_in(path).value_or(static_cast<std::int64_t>(by_rank.size()));
    if (!by_rank.emplace(rank, path).second)
      throw Error(fmt::format("{}: rank {} is there twice; give each rank's file once", path.string(), rank));
  }
  if (by_rank.rbegin()->first + 1 != static_cast<std::int64_t>(by_rank.size()))
    throw Error(fmt::format("{}: files of {} ranks, of which one is rank {}; give the files of all ranks",
                            by_rank.rbegin()->second.string(), by_rank.size(), by_rank.rbegin()->first));
  return by_rank;
}

ReplayedRank mean_of(const std::vector<ReplayedRank>& ranks) {
  ReplayedRank mean;
  for (const ReplayedRank& r : ranks) {
    mean.end += r.end / static_cast<double>(ranks.size());
    mean.compute += r.compute / static_cast<double>(ranks.size());
    mean.exposed += r.exposed / static_cast<double>(ranks.size());
  }
  return mean;
}

std::string json_text(const ChakraReplay& r) {
  using Json = nlohmann::ordered_json;
  const ReplayedRank mean = mean_of(r.ranks);
  Json out = {{"ranks", r.ranks.size()},
              {"nodes", r.nodes},
              {"collectives", r.collectives},
              {"messages", r.messages},
              {"step_time_s", r.time},
              {"compute_s", mean.compute},
              {"exposed_communication_s", mean.exposed},
              {"remarks", r.remarks},
              {"by_rank", Json::array()}};
  for (const ReplayedRank& rank : r.ranks)
    out["by_rank"].push_back(
        {{"end_s", rank.end}, {"compute_s", rank.compute}, {"exposed_communication_s", rank.exposed}});
  return out.dump(2) + "\n";
}

std::string table_text(const ChakraReplay& r, const std::string& on) {
  const ReplayedRank mean = mean_of(r.ranks);
  const auto part = [&](Seconds s) { return fmt::format("{:.6g} s ({:.1f} %)", s, r.time > 0 ? 100 * s / r.time : 0); };
  Table t;
  t.columns = {{"", "", Align::left}, {"", "", Align::left}};
  t.rows = {{"ranks", fmt::format("{} on {}", r.ranks.size(), on)},
            {"nodes", fmt::format("{}, {} collectives, {} messages", r.nodes, r.collectives, r.messages)},
            {"step time", fmt::format("{:.6g} s", r.time)},
            {"compute", part(mean.compute) + ", mean of ranks"},
            {"exposed communication", part(mean.exposed) + ", mean of ranks"}};
  for (const std::string& remark : r.remarks) t.rows.push_back({"remark", remark});
  return print(t);
}

}  // namespace

Outcome export_chakra_command(const ExportOptions& options) {
  if (options.out.empty())
    throw Error("--out: missing; --to chakra writes a file for each rank: give their prefix, as in --out trace");
  const Prediction p = predict(load_spec(options.spec, options.overrides));
  const ChakraWriter writer(p.plan, p.trace);
  std::uint64_t bytes = 0;
  for (std::int64_t rank = 0; rank < p.plan.ranks; ++rank) {
    const std::string text = chakra_text(writer.of_rank(rank));
    bytes += text.size();
    if (text.size() * static_cast<std::uint64_t>(p.plan.ranks) > kMostExported)
      throw Error(
          fmt::format("--to chakra: {} ranks of {} MiB each are above {} GiB; choose fewer GPUs or micro-batches",
                      p.plan.ranks, text.size() >> 20, kMostExported >> 30));
    OutputFile file(fmt::format("{}.{}.et", options.out, rank));
    file.write(text);
    file.commit();
  }
  OutputFile groups(options.out + ".groups.json");
  groups.write(writer.groups());
  groups.commit();
  return {fmt::format("{0}.0.et to {0}.{1}.et and {0}.groups.json are written: {2} ranks, {3:.1f} MiB\n", options.out,
                      p.plan.ranks - 1, p.plan.ranks, static_cast<double>(bytes) / (1 << 20))};
}

bool is_chakra(const ImportOptions& options) {
  return std::ranges::any_of(options.files, [](const std::string& f) { return f.ends_with(".et"); });
}

Outcome import_chakra_command(const ImportOptions& options, const Common& common) {
  if (options.on.empty()) throw Error("--on: missing; execution traces are played on machines, as in --on 2xdgx-h100");
  if (!options.out.empty())
    throw Error("--out: execution traces hold no model, so that no spec can be made of them; leave it out");
  std::vector<ChakraTrace> traces;
  for (const auto& [rank, path] : files_by_rank(options.files))
    traces.push_back(read_chakra(read_input(path.string(), kMostMeasurements), path.string()));
  const ClusterName on = cluster_of(options.on);
  const ChakraReplay result = replay(traces, find_cluster(on.node, on.nodes));
  return {common.json ? json_text(result) : table_text(result, options.on)};
}

}  // namespace orrery
