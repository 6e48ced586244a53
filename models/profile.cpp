#include "models/profile.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/data.h"
#include "models/error.h"
#include "models/names.h"

namespace orrery {
namespace {

using nlohmann::json;

// Numbers live as {"value": x, "source": "..."} so that every constant stands beside where it comes from.
double number(const json& section, const char* key, const std::string& path) {
  if (!section.contains(key) || !section.at(key).contains("value") || !section.at(key).at("value").is_number()) {
    throw Error(fmt::format("{}: '{}' is missing; write {{\"value\": ..., \"source\": ...}}", path, key));
  }
  return section.at(key).at("value").get<double>();
}

// FNV-1a, 64 bits: tells two profiles apart, nothing more.
std::string hash_of(std::string_view text) {
  std::uint64_t h = 14695981039346656037ULL;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return fmt::format("{:016x}", h);
}

Profile parse(std::string_view text, const std::string& path) {
  const json root = json::parse(text, nullptr, false, true);
  if (root.is_discarded() || !root.is_object())
    throw Error(path + ": not a JSON object; write one with orrery calibrate");
  const auto section = [&](const char* key) { return root.value(key, json::object()); };
  Profile p;
  p.name = root.value("name", path);
  p.hash = hash_of(text);
  const json gemm = section("gemm"), attention = section("attention"), memory = section("memory");
  for (const json& t : gemm.value("tiles", json::array())) {
    p.gemm.tiles.push_back(
        {t.at("rows").get<std::int64_t>(), t.at("columns").get<std::int64_t>(), t.at("efficiency").get<double>()});
  }
  if (p.gemm.tiles.empty()) throw Error(path + ": gemm.tiles is empty; name at least one tile");
  p.gemm.prologue_us = number(gemm, "prologue_us", path);
  p.gemm.smoothing = number(gemm, "smoothing", path);
  p.gemm.batched_fraction = number(gemm, "batched_fraction", path);
  p.attention.start_us = number(attention, "start_us", path);
  p.attention.forward_fraction = number(attention, "forward_fraction", path);
  p.attention.backward_fraction = number(attention, "backward_fraction", path);
  p.attention.head_64_factor = number(attention, "head_64_factor", path);
  p.memory.fraction = number(memory, "fraction", path);
  p.memory.start_us = number(memory, "start_us", path);
  p.kernel_gap_us = number(root, "kernel_gap_us", path);
  p.vector_fraction = number(root, "vector_fraction", path);
  p.contention = number(root, "contention", path);
  return p;
}

std::string_view architecture_file(Architecture a) {
  switch (a) {
    case Architecture::volta:
      return "profiles/volta.json";
    case Architecture::ampere:
      return "profiles/ampere.json";
    case Architecture::ada:
      return "profiles/ada.json";
    case Architecture::hopper:
      return "profiles/hopper.json";
    case Architecture::blackwell:
      return "profiles/blackwell.json";
    case Architecture::other:
      break;
  }
  return "profiles/other.json";
}

}  // namespace

Profile find_profile(const Gpu& gpu) {
  const auto names = data_names("profiles");
  const bool own = std::find(names.begin(), names.end(), gpu.id) != names.end();
  if (!own && gpu.architecture == Architecture::other) {
    throw Error(fmt::format("cluster.gpu: no kernel times are built in for {}{}; give measured ones with --profile", gpu.id,
                            gpu.uncalibrated ? ", and its communication is uncalibrated" : ""));
  }
  const std::string file = own ? "profiles/" + gpu.id + ".json" : std::string(architecture_file(gpu.architecture));
  return parse(data_file(file), file);
}

Profile load_profile(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw Error(path + ": cannot be read; give a profile written by orrery calibrate");
  std::stringstream text;
  text << in.rdbuf();
  try {
    return parse(text.str(), path);
  } catch (const json::exception& e) {
    throw Error(fmt::format("{}: {}", path, e.what()));
  }
}

}  // namespace orrery
