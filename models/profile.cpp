#include "models/profile.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/data.h"
#include "models/error.h"
#include "models/measured_json.h"
#include "models/names.h"
#include "models/nccl_log.h"

namespace orrery {
namespace {

using nlohmann::json;

json section_of(const json& root, const char* key, const std::string& path) {
  const auto it = root.find(key);
  if (it == root.end() || !it->is_object()) throw Error(fmt::format("{}: '{}' is missing; write an object", path, key));
  return *it;
}

// Numbers live as {"value": x, "source": "..."} so that every constant stands beside where it comes from. where:
// "gemm." or "".
double number(const json& section, const char* key, const std::string& path, const char* where) {
  const auto it = section.find(key);
  if (it == section.end() || !it->is_object() || !it->contains("value") || !it->at("value").is_number()) {
    throw Error(fmt::format("{}: '{}{}' is missing; write {{\"value\": ..., \"source\": ...}}", path, where, key));
  }
  return it->at("value").get<double>();
}

// FNV-1a, 64 bits: tells two profiles apart, nothing more.
std::string hash_of(std::string_view text) {
  std::uint64_t h = 14695981039346656037ULL;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return fmt::format("{:016x}", h);
}

std::vector<Tile> tiles_of(const json& gemm, const std::string& path) {
  std::vector<Tile> tiles;
  for (const json& t : gemm.value("tiles", json::array())) {
    tiles.push_back(
        {t.at("rows").get<std::int64_t>(), t.at("columns").get<std::int64_t>(), t.at("efficiency").get<double>()});
  }
  if (tiles.empty()) throw Error(path + ": gemm.tiles is empty; name at least one tile");
  return tiles;
}

std::vector<AttentionKernel> attention_of(const json& attention, const std::string& path) {
  std::vector<AttentionKernel> kernels;
  for (const json& k : attention.value("kernels", json::array())) {
    AttentionKernel kernel{k.at("name").get<std::string>(), number(k, "start_us", path, "attention.kernels."), {}};
    if (const auto drops = k.find("dropout"); drops != k.end()) {
      kernel.forward_dropout = drops->at("forward_fraction").get<double>();
      kernel.backward_dropout = drops->at("backward_fraction").get<double>();
    }
    for (const json& h : k.at("heads")) {
      kernel.heads.push_back({h.at("head_dim").get<std::int64_t>(), h.at("forward_fraction").get<double>(),
                              h.at("backward_fraction").get<double>(), h.at("forward_keys").get<double>(),
                              h.at("backward_keys").get<double>()});
    }
    if (kernel.heads.empty()) throw Error(path + ": attention.kernels.heads is empty; name at least one head_dim");
    kernels.push_back(std::move(kernel));
  }
  if (kernels.empty()) throw Error(path + ": attention.kernels is empty; name at least one kernel");
  return kernels;
}

Profile parse(std::string_view text, const std::string& path) {
  const json root = json::parse(text, nullptr, false, true);
  if (root.is_discarded() || !root.is_object())
    throw Error(path + ": not a JSON object; write one with orrery calibrate");
  Profile p;
  p.name = root.value("name", path);
  p.hash = hash_of(text);
  if (root.contains("measured")) p.measured = measured_of(section_of(root, "measured", path), path);
  p.memory_bytes = root.value("memory_bytes", Bytes{0});
  if (root.contains("fingerprint")) {
    const json fingerprint = section_of(root, "fingerprint", path);
    for (const auto& [key, value] : fingerprint.items()) p.fingerprint.emplace_back(key, value.get<std::string>());
  }
  for (const json& n : root.value("nccl", json::array())) p.nccl.push_back(logged_nccl_of(n, path));
  p.rest_built_in = root.value("rest", "") == "built-in";
  if ((p.rest_built_in || !p.measured.empty()) && !root.contains("gemm")) return p;  // no formulas
  const json gemm = section_of(root, "gemm", path), memory = section_of(root, "memory", path);
  p.gemm.tiles = tiles_of(gemm, path);
  p.gemm.prologue_us = number(gemm, "prologue_us", path, "gemm.");
  p.gemm.smoothing = number(gemm, "smoothing", path, "gemm.");
  p.gemm.batched_fraction = number(gemm, "batched_fraction", path, "gemm.");
  if (gemm.contains("grouped_fraction")) p.gemm.grouped_fraction = number(gemm, "grouped_fraction", path, "gemm.");
  if (gemm.contains("exposed_result")) p.gemm.exposed_result = number(gemm, "exposed_result", path, "gemm.");
  p.attention = attention_of(section_of(root, "attention", path), path);
  p.memory.fraction = number(memory, "fraction", path, "memory.");
  p.memory.start_us = number(memory, "start_us", path, "memory.");
  p.kernel_gap_us = number(root, "kernel_gap_us", path, "");
  p.vector_fraction = number(root, "vector_fraction", path, "");
  p.contention = number(root, "contention", path, "");
  p.spread = number(root, "spread", path, "");
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
  return "";  // none is built in
}

}  // namespace

const AttentionKernel& find_attention(const Profile& profile, std::string_view name) {
  for (const AttentionKernel& k : profile.attention) {
    if (k.name == name) return k;
  }
  return profile.attention.front();
}

AttentionHead head_of(const AttentionKernel& kernel, std::int64_t head_dim) {
  const auto above = std::find_if(kernel.heads.begin(), kernel.heads.end(),
                                  [&](const AttentionHead& h) { return h.head_dim >= head_dim; });
  if (above == kernel.heads.end()) return kernel.heads.back();
  if (above == kernel.heads.begin()) return *above;
  const AttentionHead &a = *std::prev(above), &b = *above;
  const double x = static_cast<double>(head_dim - a.head_dim) / static_cast<double>(b.head_dim - a.head_dim);
  const auto mix = [x](double low, double high) { return low + x * (high - low); };
  return {head_dim, mix(a.forward_fraction, b.forward_fraction), mix(a.backward_fraction, b.backward_fraction),
          mix(a.forward_keys, b.forward_keys), mix(a.backward_keys, b.backward_keys)};
}

Profile find_profile(const Gpu& gpu) {
  const auto names = data_names("profiles");
  const bool own = std::find(names.begin(), names.end(), gpu.id) != names.end();
  const std::string file = own ? "profiles/" + gpu.id + ".json" : std::string(architecture_file(gpu.architecture));
  if (file.empty()) {
    throw Error(
        fmt::format("cluster.gpu: no kernel times are built in for {}{}; measure them with orrery calibrate "
                    "--out FILE and give them with --profile FILE",
                    gpu.id, gpu.uncalibrated ? ", and its communication is uncalibrated" : ""));
  }
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

std::string to_json(const Profile& p) {
  nlohmann::ordered_json root;
  root["name"] = p.name;
  for (const auto& [key, value] : p.fingerprint) root["fingerprint"][key] = value;
  if (p.rest_built_in) root["rest"] = "built-in";
  root["memory_bytes"] = p.memory_bytes;
  root["measured"] = json_of(p.measured);
  for (const LoggedNccl& n : p.nccl) root["nccl"].push_back(json_of(n));
  return root.dump(1) + '\n';
}

std::string_view fingerprint_of(const Profile& profile, std::string_view key) {
  for (const auto& [name, value] : profile.fingerprint) {
    if (name == key) return value;
  }
  return "";
}

}  // namespace orrery
