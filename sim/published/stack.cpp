#include "sim/published/stack.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "models/base/data.h"
#include "models/base/json_value.h"
#include "models/spec/sharding.h"

namespace orrery {
namespace {

// The GPU generation on which a step ran, from which the age of its software is guessed: V100, A100, or later.
enum class Era : std::uint8_t { volta, ampere, later };

struct Stack {
  // Word, in lower case, by which a software stack is recognised in the framework or software of a published step.
  std::string_view word;
  // names of the stack's software profiles, for steps on V100, on A100 and on later GPUs
  std::array<std::string_view, 3> profiles;
};
// The known software stacks. A published step is taken to use the first stack whose word is in its framework or
// software. The last stack, whose word is empty, stands for unknown stacks with unsharded parameters.
constexpr Stack kStacks[] = {
    {"nanotron", {"nanotron", "nanotron", "nanotron"}},
    {"torchtitan", {"torchtitan", "torchtitan", "torchtitan"}},
    {"axonn", {"axonn", "axonn", "axonn"}},
    {"deepspeed", {"deepspeed-megatron-2021", "megatron-deepspeed-2022", "megatron-deepspeed-2022"}},
    {"mlperf", {"megatron-lm-2021", "megatron-lm-2022", "megatron-core-mlperf"}},
    {"fsdp", {"pytorch-fsdp", "pytorch-fsdp", "pytorch-fsdp"}},
    {"composer", {"pytorch-fsdp", "pytorch-fsdp", "pytorch-fsdp"}},
    {"llama 3", {"meta-llama3", "meta-llama3", "meta-llama3"}},
    {"nemo", {"megatron-lm-2021", "megatron-core", "megatron-core"}},
    {"megatron-core", {"megatron-lm-2021", "megatron-core", "megatron-core"}},
    {"megatron", {"megatron-lm-2021", "megatron-lm-2022", "megatron-core"}},
    {"pytorch", {"pytorch-fsdp", "pytorch-fsdp", "pytorch-fsdp"}},
    {"", {"megatron-lm-2021", "megatron-lm-2022", "megatron-core"}},
};

std::string small_letters(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

bool has(const std::string& text, std::string_view word) { return text.find(word) != std::string::npos; }

Era era_of(const nlohmann::json& spec) {
  const std::string cluster = small_letters(spec.value("cluster", nlohmann::json()).dump());
  if (has(cluster, "v100") || has(cluster, "dgx-1v") || has(cluster, "dgx-2\"")) return Era::volta;
  return has(cluster, "a100") || has(cluster, "p4d") ? Era::ampere : Era::later;
}

// Guesses the software stack of a published step that names no known one, from how the step shards parameters. Returns
// the stack's word in kStacks; "" (Megatron's stack) if parameters are unsharded.
std::string word_of_sharding(const nlohmann::json& spec) {
  const std::string sharding = text_in(spec.value("strategy", nlohmann::json()), "sharding");
  const auto named = [&](const ShardingRow& row) { return row.name == sharding; };
  const auto row = std::ranges::find_if(sharding_rows(), named);
  if (row == sharding_rows().end() || !row->shards_parameters) return "";
  return row->fp32_shards ? "fsdp" : "deepspeed";
}

bool built_in(const std::string& name) {
  const auto names = data_names("software");
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The stack as it runs on AMD's GPUs, of which a step says "ROCm": Megatron and torchtitan have profiles of their own
// there, which no stack of NVIDIA's GPUs shares.
std::string_view on_rocm(std::string_view profile) {
  return profile.starts_with("torchtitan") || profile.starts_with("pytorch") ? "rocm-torchtitan" : "rocm-megatron";
}

std::string profile_of(const nlohmann::json& software) {
  return software.is_string() ? software.get<std::string>() : text_in(software, "profile");
}

}  // namespace

static void name_any_stack(nlohmann::json& row) {
  nlohmann::json& spec = row.at("spec");
  const nlohmann::json framework = row.value("framework", nlohmann::json());
  nlohmann::json& software = spec["software"];
  if (built_in(profile_of(software))) return;
  if (software.is_null() && built_in(profile_of(framework))) {
    software = framework;
    return;
  }
  const std::string words = small_letters(software.dump() + ' ' + framework.dump());
  const auto stack_for = [](const std::string& text) {
    return std::find_if(std::begin(kStacks), std::end(kStacks), [&](const Stack& s) { return has(text, s.word); });
  };
  auto stack = stack_for(words);
  if (stack->word.empty()) stack = stack_for(word_of_sharding(spec));
  // if the spec gives `software` as a map, the map is kept, since it may have other keys than the profile
  if (!software.is_object()) software = nlohmann::json::object();
  software["profile"] = stack->profiles[static_cast<std::size_t>(era_of(spec))];
}

void name_stack(nlohmann::json& row) {
  name_any_stack(row);
  if (!has(small_letters(row.value("framework", nlohmann::json()).dump()), "rocm")) return;
  nlohmann::json& software = row.at("spec").at("software");
  const std::string_view own = on_rocm(profile_of(software));
  if (software.is_object())
    software["profile"] = own;
  else
    software = own;
}

}  // namespace orrery
