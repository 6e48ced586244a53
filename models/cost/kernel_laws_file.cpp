#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/base/data.h"
#include "models/base/json_value.h"
#include "models/cost/kernel_law_keys.h"
#include "models/cost/kernel_laws.h"

namespace orrery {
namespace {

std::vector<std::string> texts(const JsonValue& list) {
  std::vector<std::string> all;
  for (const JsonValue& item : list.items()) all.push_back(item.text());
  return all;
}

template <class Keys, class Numbers>
void read_numbers(const JsonValue& json, const Keys& keys, Numbers& numbers) {
  for (const auto& key : keys) numbers.*key.number = json.at(key.name).number(key.least, key.most);
}

template <class Law, class Keys>
KernelFamily<Law> family_of_json(const JsonValue& json, const Keys& keys) {
  KernelFamily<Law> family{.name = json.at("name").text(),
                           .gpus = texts(json.at("gpus")),
                           .framework = json.at("framework").text(),
                           .kernels = texts(json.at("kernels")),
                           .law = {}};
  read_numbers(json.at("law"), keys, family.law);
  return family;
}

// The keys of a law that has maps of numbers.
constexpr std::array<LawNumber<ExpertLaws>, 0> kNoKeys{};

// A number with four digits, which is more than measurements tell.
double rounded(double number) {
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.4g", number);
  return std::strtod(digits, nullptr);
}

template <class Keys, class Numbers>
void round_numbers(const Keys& keys, Numbers& numbers) {
  for (const auto& key : keys) numbers.*key.number = rounded(numbers.*key.number);
}

template <class Keys, class Numbers>
void write_numbers(nlohmann::ordered_json& json, const Keys& keys, const Numbers& numbers) {
  for (const auto& key : keys) json[key.name] = rounded(numbers.*key.number);
}

template <class Law, class Keys>
nlohmann::ordered_json json_of(const KernelFamily<Law>& family, const Keys& keys) {
  nlohmann::ordered_json json = {{"name", family.name},
                                 {"gpus", family.gpus},
                                 {"framework", family.framework},
                                 {"kernels", family.kernels},
                                 {"law", nlohmann::ordered_json::object()}};
  write_numbers(json["law"], keys, family.law);
  return json;
}

KernelFamily<ExpertLaws> experts_of_json(const JsonValue& json) {
  KernelFamily<ExpertLaws> family = family_of_json<ExpertLaws>(json, kNoKeys);
  for (const auto& [format, numbers] : json.at("law").members())
    read_numbers(numbers, kExpertKeys, family.law[find_named(kExpertFormats, "format", format)]);
  return family;
}

nlohmann::ordered_json json_of_experts(const KernelFamily<ExpertLaws>& family) {
  nlohmann::ordered_json json = json_of(family, kNoKeys);
  for (const auto& [format, law] : family.law)
    write_numbers(json["law"][name_in(kExpertFormats, format)], kExpertKeys, law);
  return json;
}

// The file says this of itself.
constexpr const char* kAbout =
    "Laws of kernels that run alone in a burst. What a family's numbers mean stands in models/cost/kernel_laws.h, "
    "narrow_product.h and expert_law.h. Six "
    "numbers are a kind of GPU's own: fractions of the peaks of products in 16 and 8 bits and of the memory bandwidth, "
    "microseconds of a product's start, the fraction of the 16-bit peak that attention reaches with long heads, and "
    "its tail in blocks of queries.";

}  // namespace

KernelLaws parse_kernel_laws(std::string_view text, const std::string& path) {
  const nlohmann::json parsed = parse_json(path, text, "write it with orrery validate --kernels FILE... --fit");
  const JsonValue root(parsed, path);
  KernelLaws laws;
  laws.source = root.at("_source").text();
  laws.experts_source = root.at("_experts_source").text();
  for (const JsonValue& family : root.at("products").items())
    laws.products.push_back(family_of_json<ProductLaw>(family, kProductKeys));
  for (const JsonValue& family : root.at("attention").items())
    laws.attention.push_back(family_of_json<AttentionLaw>(family, kAttentionKeys));
  for (const JsonValue& family : root.at("narrow_products").items())
    laws.narrow.push_back(family_of_json<NarrowProductLaw>(family, kNarrowKeys));
  for (const JsonValue& family : root.at("experts").items()) laws.experts.push_back(experts_of_json(family));
  for (const auto& [gpu, numbers] : root.at("gpus").members()) read_numbers(numbers, kRateKeys, laws.rates[gpu]);
  return laws;
}

KernelLaws rounded(KernelLaws laws) {
  for (auto& family : laws.products) round_numbers(kProductKeys, family.law);
  for (auto& family : laws.attention) round_numbers(kAttentionKeys, family.law);
  for (auto& family : laws.narrow) round_numbers(kNarrowKeys, family.law);
  for (auto& family : laws.experts) {
    for (auto& [format, law] : family.law) round_numbers(kExpertKeys, law);
  }
  for (auto& [gpu, rates] : laws.rates) round_numbers(kRateKeys, rates);
  return laws;
}

std::string to_json(const KernelLaws& laws) {
  nlohmann::ordered_json root = {{"_source", laws.source}, {"_experts_source", laws.experts_source}, {"about", kAbout}};
  for (const auto& family : laws.products) root["products"].push_back(json_of(family, kProductKeys));
  for (const auto& family : laws.attention) root["attention"].push_back(json_of(family, kAttentionKeys));
  for (const auto& family : laws.narrow) root["narrow_products"].push_back(json_of(family, kNarrowKeys));
  for (const auto& family : laws.experts) root["experts"].push_back(json_of_experts(family));
  root["gpus"] = nlohmann::ordered_json::object();
  for (const auto& [gpu, rates] : laws.rates) write_numbers(root["gpus"][gpu], kRateKeys, rates);
  return root.dump(1) + '\n';
}

const KernelLaws& built_in_kernel_laws() {
  static const KernelLaws laws = parse_kernel_laws(data_file("kernel_laws.json"), "kernel_laws.json");
  return laws;
}

}  // namespace orrery
