// `orrery import`: makes a spec from the launch files of a training framework.
#include <filesystem>
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/base/error.h"
#include "models/base/input_file.h"
#include "models/base/output_file.h"
#include "models/load/load_spec.h"
#include "models/load/open_spec.h"
#include "sim/cli/commands.h"
#include "sim/launch/import.h"

namespace orrery {
namespace {

// Reads a launch file. A folder stands for the config.json in it; an argument that contains options, such as "torchrun
// --nnodes 2 ...", is itself the command line to read.
LaunchText read_launch(const std::string& path) {
  if (path.find(" -") != std::string::npos && !std::filesystem::exists(path)) return {"command line", path};
  const std::string file = std::filesystem::is_directory(path) ? path + "/config.json" : path;
  return {file, read_input(file, kMostSettings)};
}

std::string line_of(const Untranslated& u) { return fmt::format("{}: {}: {}: {}", u.from, u.option, u.value, u.why); }

std::vector<std::string> missing_keys(const LaunchImport& imported) {
  std::vector<std::string> keys;
  for (const SpecValue& v : imported.values.all) {
    if (v.said == Said::missing) keys.push_back(v.key);
  }
  return keys;
}

// The reason why load_spec() would refuse the imported spec; "" if it would accept the spec, or if keys are still
// missing.
std::string refusal(const LaunchImport& imported, const std::vector<std::string>& missing) {
  if (!missing.empty()) return "";
  try {
    parse_spec(spec_yaml(imported.values, {}), "spec");
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

// The number of the model's parameters; nullopt if too few of the model's shapes are known.
std::optional<std::int64_t> parameters(const LaunchImport& imported) {
  SpecValues model;
  for (const SpecValue& v : imported.values.all) {
    if (v.key == "model" || v.key.starts_with("model.")) model.all.push_back(v);
  }
  const std::int64_t sequence = imported.values.number_or("sequence", 1);
  model.set("sequence", fmt::format("{}", sequence), Said::derived, "");
  model.set("cluster", "localhost", Said::derived, "");
  try {
    const Model read = parse_open_spec(spec_yaml(model, {}), "spec").spec.model;
    const bool by_sequence = read.positions == Positions::learned && read.max_positions == 0;
    if (by_sequence && imported.values.number("sequence") == std::nullopt) return {};
    return parameter_count(read, sequence);
  } catch (const Error&) {
    return {};
  }
}

std::string json_text(const LaunchImport& imported, const std::vector<std::string>& missing) {
  using Json = nlohmann::ordered_json;
  Json out;
  out["framework"] = imported.framework;
  out["spec"] = Json::parse(spec_json(imported.values));
  out["not_translated"] = Json::array();
  for (const Untranslated& u : imported.not_translated)
    out["not_translated"].push_back({{"from", u.from}, {"option", u.option}, {"value", u.value}, {"why", u.why}});
  out["missing"] = missing;
  out["assumed"] = Json::object();
  for (const SpecValue& v : imported.values.all) {
    if (v.said == Said::assumed) out["assumed"][v.key] = v.from;
  }
  out["remarks"] = imported.remarks;
  if (const auto count = parameters(imported)) out["parameters"] = *count;
  return out.dump(2) + "\n";
}

}  // namespace

Outcome import_launch_command(const ImportOptions& options, const Common& common) {
  std::vector<LaunchText> texts;
  for (const std::string& path : options.files) texts.push_back(read_launch(path));
  LaunchImport imported = import_launch(texts, options.on);
  // A path in a spec is relative to the folder of the spec file.
  if (const SpecValue* base = imported.values.find("model.base"); base != nullptr && !options.out.empty()) {
    const std::filesystem::path folder = std::filesystem::absolute(options.out).parent_path();
    imported.values.set("model.base", std::filesystem::proximate(std::filesystem::absolute(base->value), folder),
                        base->said, base->from);
  }
  const std::vector<std::string> missing = missing_keys(imported);
  const std::string refused = refusal(imported, missing);
  if (!refused.empty()) imported.remarks.push_back(fmt::format("the spec is refused: {}", refused));
  std::vector<std::string> head = {fmt::format("Imported from {}: {}.", texts[0].path, imported.framework)};
  if (!missing.empty()) head.push_back("null: no file states it; give a value before a simulation.");
  const std::string spec = spec_yaml(imported.values, head);
  std::string log;
  for (const std::string& remark : imported.remarks) log += "remark: " + remark + "\n";
  for (const std::string& key : missing) log += fmt::format("missing: {}: not stated\n", key);
  for (const Untranslated& u : imported.not_translated) log += "not translated: " + line_of(u) + "\n";
  if (!options.out.empty()) {
    OutputFile file(options.out);
    file.write(spec);
    file.commit();
  }
  if (common.json) return {json_text(imported, missing), 0, ""};
  if (options.out.empty()) return {.text = spec, .log = log, .verbatim = true};
  return {log + fmt::format("{} is written\n", options.out), 0, ""};
}

}  // namespace orrery
