#include "models/cost/profile.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/base/data.h"
#include "models/base/error.h"
#include "models/base/input_file.h"
#include "models/base/json_value.h"
#include "models/base/once_by_name.h"
#include "models/base/sensible.h"
#include "models/cost/nccl/log.h"
#include "models/trace/measured_json.h"

namespace orrery {
namespace {

constexpr double kMostKeys = 1e6;
constexpr std::int64_t kLargestTile = 65536, kWidestHead = 65536;

constexpr const char* kProfileAdvice = "write it with orrery calibrate";

// Reads a number that is stored as {"value": x, "source": "..."}, so that every constant has its source next to it.
double constant(const JsonValue& section, const char* key, double least, double most) {
  const auto found = section.find(key);
  if (!found || !found->is_object() || !found->find("value"))
    section.fail(key, "is missing; write {\"value\": ..., \"source\": ...}");
  return found->at("value").number(least, most);
}

// Returns the hash of a profile file's contents (FNV-1a, 64 bits), which is only meant to tell two profiles apart.
std::string hash_of(std::string_view text) {
  std::uint64_t h = 14695981039346656037ULL;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return fmt::format("{:016x}", h);
}

// Returns the elements of a JSON list; throws Error if the list is empty.
std::vector<JsonValue> filled_list(const JsonValue& section, const char* key) {
  std::vector<JsonValue> list = section.at(key).items();
  if (list.empty()) section.at(key).fail("is empty; name at least one");
  return list;
}

std::vector<Tile> tiles_of(const JsonValue& gemm) {
  std::vector<Tile> tiles;
  for (const JsonValue& t : filled_list(gemm, "tiles")) {
    tiles.push_back({t.at("rows").whole(1, kLargestTile), t.at("columns").whole(1, kLargestTile),
                     t.at("efficiency").number(sensible::kLeastPart, sensible::kMostPart)});
  }
  return tiles;
}

constexpr double kMostGain = 2;  // of products of 8 bits over those of 16, beyond their peaks

EightBitGain gain_from(const JsonValue& head) {
  const auto found = head.find("eight_bit_gain");
  if (!found) return {};
  const auto gain = [&](const char* key) { return found->at(key).number(sensible::kLeastPart, kMostGain); };
  return {gain("tensor_forward"), gain("tensor_backward"), gain("block_forward"), gain("block_backward")};
}

AttentionHead head_from(const JsonValue& h) {
  return {h.at("head_dim").whole(1, kWidestHead),
          h.at("forward_fraction").number(sensible::kLeastPart, sensible::kMostPart),
          h.at("backward_fraction").number(sensible::kLeastPart, sensible::kMostPart),
          h.at("forward_keys").number(0, kMostKeys),
          h.at("backward_keys").number(0, kMostKeys),
          gain_from(h)};
}

AttentionKernel kernel_from(const JsonValue& k) {
  AttentionKernel kernel{k.at("name").text(), constant(k, "start_us", 0, sensible::kMostMicroseconds), {}};
  if (const auto drops = k.find("dropout")) {
    kernel.forward_dropout = drops->at("forward_fraction").number(sensible::kLeastPart, sensible::kMostPart);
    kernel.backward_dropout = drops->at("backward_fraction").number(sensible::kLeastPart, sensible::kMostPart);
  }
  for (const JsonValue& h : filled_list(k, "heads")) {
    kernel.heads.push_back(head_from(h));
    const std::size_t n = kernel.heads.size();
    if (n > 1 && kernel.heads[n - 1].head_dim <= kernel.heads[n - 2].head_dim)
      h.at("head_dim").fail("is not above the one before; list the widths in ascending order, each once");
  }
  return kernel;
}

void read_formulas(Profile& p, const JsonValue& root) {
  const JsonValue gemm = root.at("gemm"), memory = root.at("memory");
  p.gemm.tiles = tiles_of(gemm);
  p.gemm.prologue_us = constant(gemm, "prologue_us", 0, sensible::kMostMicroseconds);
  p.gemm.smoothing = constant(gemm, "smoothing", 0, 1);
  p.gemm.batched_fraction = constant(gemm, "batched_fraction", sensible::kLeastPart, sensible::kMostPart);
  if (gemm.find("grouped_fraction"))
    p.gemm.grouped_fraction = constant(gemm, "grouped_fraction", sensible::kLeastPart, sensible::kMostPart);
  if (gemm.find("narrow_gain")) p.gemm.narrow_gain = constant(gemm, "narrow_gain", sensible::kLeastPart, kMostGain);
  if (gemm.find("four_bit_part"))
    p.gemm.four_bit_part = constant(gemm, "four_bit_part", sensible::kLeastPart, sensible::kMostPart);
  if (gemm.find("exposed_result")) p.gemm.exposed_result = constant(gemm, "exposed_result", 0, sensible::kMostPart);
  for (const JsonValue& k : filled_list(root.at("attention"), "kernels")) p.attention.push_back(kernel_from(k));
  p.memory.fraction = constant(memory, "fraction", sensible::kLeastPart, sensible::kMostPart);
  p.memory.start_us = constant(memory, "start_us", 0, sensible::kMostMicroseconds);
  if (const auto recurrence = root.find("recurrence")) {
    p.recurrence.convolution_fraction =
        constant(*recurrence, "convolution_fraction", sensible::kLeastPart, sensible::kMostPart);
    p.recurrence.scan_fraction = constant(*recurrence, "scan_fraction", sensible::kLeastPart, sensible::kMostPart);
  }
  p.kernel_gap_us = constant(root, "kernel_gap_us", 0, sensible::kMostMicroseconds);
  p.vector_fraction = constant(root, "vector_fraction", sensible::kLeastPart, sensible::kMostPart);
  p.contention = constant(root, "contention", 0, sensible::kMostPart);
  p.spread = constant(root, "spread", 0, sensible::kMostPart);
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
    case Architecture::cdna2:
      return "profiles/cdna2.json";
    case Architecture::cdna3:
      return "profiles/cdna3.json";
    case Architecture::cdna4:
      return "profiles/cdna4.json";
    case Architecture::other:
      break;
  }
  return "";  // there is no built-in profile for this device
}

}  // namespace

Profile parse_profile(std::string_view text, const std::string& path) {
  const nlohmann::json file = parse_json(path, text, kProfileAdvice);
  const JsonValue root(file, path, kProfileAdvice);
  root.require_object();
  Profile p;
  p.name = root.text_or("name", path);
  p.hash = hash_of(text);
  if (const auto measured = root.find("measured")) p.measured = measured_of(*measured);
  if (const auto conditions = root.find("conditions")) {
    for (const JsonValue& c : conditions->items()) p.conditions.push_back(conditions_of(c));
  }
  p.memory_bytes = root.whole_or("memory_bytes", 0, 0, sensible::kMostBytes);
  if (const auto fingerprint = root.find("fingerprint")) {
    for (const auto& [key, value] : fingerprint->members()) p.fingerprint.emplace_back(key, value.text());
  }
  if (const auto nccl = root.find("nccl")) {
    for (const JsonValue& n : nccl->items()) p.nccl.push_back(logged_nccl_of(n));
  }
  if (const auto steps = root.find("steps")) p.steps = step_fit_of(*steps);
  p.rest_built_in = root.text_or("rest", "") == "built-in";
  if ((!p.rest_built_in && p.measured.empty()) || root.find("gemm")) read_formulas(p, root);
  return p;
}

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
  const EightBitGain &low = a.eight_bit_gain, &high = b.eight_bit_gain;
  const double x = static_cast<double>(head_dim - a.head_dim) / static_cast<double>(b.head_dim - a.head_dim);
  const auto mix = [x](double from, double to) { return from + x * (to - from); };
  return {head_dim,
          mix(a.forward_fraction, b.forward_fraction),
          mix(a.backward_fraction, b.backward_fraction),
          mix(a.forward_keys, b.forward_keys),
          mix(a.backward_keys, b.backward_keys),
          {mix(low.tensor_forward, high.tensor_forward), mix(low.tensor_backward, high.tensor_backward),
           mix(low.block_forward, high.block_forward), mix(low.block_backward, high.block_backward)}};
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
  static OnceByName<Profile> profiles;
  return profiles.of(file, [&] { return parse_profile(data_file(file), file); });
}

Profile load_profile(const std::string& path) { return parse_profile(read_input(path, kMostTables), path); }

std::string to_json(const Profile& p) {
  nlohmann::ordered_json root;
  root["name"] = p.name;
  for (const auto& [key, value] : p.fingerprint) root["fingerprint"][key] = value;
  if (p.rest_built_in) root["rest"] = "built-in";
  root["memory_bytes"] = p.memory_bytes;
  for (const Conditions& c : p.conditions) root["conditions"].push_back(json_of(c));
  root["measured"] = json_of(p.measured);
  if (p.steps.steps > 0) root["steps"] = json_of(p.steps);
  for (const LoggedNccl& n : p.nccl) root["nccl"].push_back(json_of(n));
  // Imported logs may contain any bytes, so bytes that are not UTF-8 are replaced.
  return root.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

std::string_view fingerprint_of(const Profile& profile, std::string_view key) {
  for (const auto& [name, value] : profile.fingerprint) {
    if (name == key) return value;
  }
  return "";
}

}  // namespace orrery
