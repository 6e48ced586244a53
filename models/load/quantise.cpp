// This file reads strategy.precision, gradient_precision and quantise: the format in which a model that generates text
// stores its weights, and the formats to which quantisation-aware training rounds weights and inputs of products.
#include <algorithm>
#include <cmath>

#include "models/base/names.h"
#include "models/load/reader.h"

namespace orrery {
namespace {

constexpr SpecKey kQuantiseKeys[] = {
    {"weights",
     "format of the layers' matrices; awq, gptq, smoothquant and spqr name the formats that these algorithms make",
     "int4", "none | fp8 | int8 | int4 | nvfp4 | mxfp8 | mxfp4 | awq | gptq | smoothquant | spqr",
     "that of an eight-bit precision of a model that generates text, else none"},
    {"layers",
     "matrices of a layer that have the format: all, those of MLP and experts, or those of routed experts alone; the "
     "other products run in 16 bits (text generation)",
     "experts", "all | feed_forward | experts", "all"},
    {"group", "weights of an output that share a scale, or channel (all of an output), or tensor (all of a matrix)",
     "64", "whole number | channel | tensor", "that of the format; 32 in training"},
    {"zero_points", "each group has a zero point", "true", "", "as the format has them"},
    {"outliers", "share of the weights that are kept in 16 bits beside the codes", "0.01", "", "that of the format"},
    {"calibration", "range of a matrix that codes stand for: all of it, or that of least divergence of histograms",
     "kl", "minmax | kl"},
    {"activations",
     "format of the inputs of products, which run at its rate; in training, the format to which they are rounded",
     "int8", "none | fp8 | int8 | int4 | nvfp4 | mxfp8", "that of an eight-bit precision, else none; int8 in training"},
};

// A word for weights: their format, and the format of activations that goes with it by itself.
struct FormatRow {
  std::string_view word;
  WeightFormat format;
  WeightCode activations = WeightCode::wide;
};
// fp8: a scale a matrix, as in the checkpoints that vLLM and TensorRT-LLM make by default (vLLM docs,
// features/quantization/fp8: "static per-tensor"). int8: a scale an output (vLLM docs, features/quantization/int8).
// nvfp4, mxfp8: blocks of 16 and 32 (NVIDIA, cuDNN and cuBLAS documentation: block scaling). mxfp4: blocks of 32 (OCP
// Microscaling Formats Specification 1.0), as gpt-oss's experts are published.
// awq: groups of 128 with zero points (Lin et al. 2023, 2306.00978, section 5.1: INT4-g128; AutoAWQ's defaults
// q_group_size 128, zero_point true). gptq: groups of 128 without (Frantar et al. 2022, 2210.17323; AutoGPTQ's defaults
// bits 4, group_size 128, sym true). smoothquant: a scale a matrix, inputs in 8 bits too (Xiao et al. 2022, 2211.10438,
// table 2: W8A8, weights per-tensor). spqr: 3 bits in groups of 16, whose scales and zero points have 3 bits in groups
// of 16, and 1 % of outliers (Dettmers et al. 2023, 2306.03078, section 4).
constexpr FormatRow kFormats[] = {
    {"none", {}},
    {"fp8", {.code = WeightCode::fp8}},
    {"int8", {.code = WeightCode::int8, .group = kChannelGroup}},
    {"int4", {.code = WeightCode::int4, .group = 128}},
    {"nvfp4", {.code = WeightCode::nvfp4, .group = 16}},
    {"mxfp8", {.code = WeightCode::mxfp8, .group = 32}},
    {"mxfp4", {.code = WeightCode::mxfp4, .group = 32}},
    {"awq", {.code = WeightCode::int4, .group = 128, .zeros = true}},
    {"gptq", {.code = WeightCode::int4, .group = 128}},
    {"smoothquant", {.code = WeightCode::int8}, WeightCode::int8},
    {"spqr", {.code = WeightCode::int3, .group = 16, .zeros = true, .outliers = 10'000, .scale_group = 16}},
};
constexpr std::string_view kCalibrations[] = {"minmax", "kl"};
constexpr std::int64_t kMostGroup = 1'000'000;
constexpr std::int64_t kTrainingGroup = 32;  // torchao's Int4WeightFakeQuantizeConfig: group_size 32
constexpr double kMillion = 1e6;

constexpr Named<WeightCode> kActivations[] = {{"none", WeightCode::wide},   {"fp8", WeightCode::fp8},
                                              {"int8", WeightCode::int8},   {"int4", WeightCode::int4},
                                              {"nvfp4", WeightCode::nvfp4}, {"mxfp8", WeightCode::mxfp8}};

const FormatRow& find_format(std::string_view word) {
  std::vector<std::string_view> words;
  for (const FormatRow& row : kFormats) {
    if (row.word == word) return row;
    words.push_back(row.word);
  }
  throw Error(unknown_name("format", word, words));
}

std::string group_text(std::int64_t group) {
  return group == kChannelGroup ? "channel" : group == kTensorGroup ? "tensor" : fmt::format("{}", group);
}

void read_group(const SpecSection& map, WeightFormat& format) {
  if (const SpecNode* node = map.find("group")) {
    std::string word;
    convert(map.reader(), *node, map.name("group"), word);
    if (word == "channel" || word == "tensor") {
      format.group = word == "channel" ? kChannelGroup : kTensorGroup;
    } else {
      convert(map.reader(), *node, map.name("group"), format.group);
      if (format.group < 1 || format.group > kMostGroup)
        map.reader().fail(*node, map.name("group"),
                          fmt::format("{} is not between 1 and {}, channel or tensor", format.group, kMostGroup));
    }
  }
  map.record("group", format.narrow() ? group_text(format.group) : "-", map.find("group"), "format");
}

void read_outliers(const SpecSection& map, WeightFormat& format) {
  double share = static_cast<double>(format.outliers) / kMillion;
  if (map.take("outliers", share, "format") && !(share >= 0 && share <= 0.5))
    map.reader().fail(*map.find("outliers"), map.name("outliers"), fmt::format("{} is not between 0 and 0.5", share));
  if (share > 0 && share < 1 / kMillion)
    map.reader().fail(*map.find("outliers"), map.name("outliers"),
                      fmt::format("{} is less than one in a million", share));
  format.outliers = std::llround(share * kMillion);
}

bool says_more(const SpecSection& map) {
  return std::ranges::any_of(kQuantiseKeys,
                             [&](const SpecKey& k) { return k.name != "weights" && map.find(k.name) != nullptr; });
}

WeightCode code_of(Precision precision) { return format_of_precision(precision).code; }

// In text generation, activations in few bits are the precision of the layers' products.
void take_precision(SpecReader& reader, Strategy& s, WeightCode activations) {
  s.precision = find_precision(name_of(activations));
  for (Origin& o : reader.origins) {
    if (o.key == "strategy.precision" && !o.value.empty() && o.value != name_of(s.precision)) {
      o.value = name_of(s.precision);
      o.from = "quantise.activations";
    }
  }
}

Precision gradient_habit(const Software& software, Precision p) {
  if (software.memory.gradient_precision != "precision") return find_precision(software.memory.gradient_precision);
  if (storage_bytes(p) == 4) return Precision::fp32;
  return p == Precision::fp16 ? Precision::fp16 : Precision::bf16;
}

void read_quantise(const SpecSection& section, const Spec& spec, Strategy& s) {
  const SpecSection map(section.reader(), section.find("quantise"), "strategy.quantise", kQuantiseKeys);
  const bool trains = !spec.generation;
  const SpecNode* node = map.find("weights");
  FormatRow row = {name_of(code_of(s.precision)), format_of_precision(s.precision)};
  if (trains) row = kFormats[0];
  if (node != nullptr) {
    std::string word;
    convert(map.reader(), *node, map.name("weights"), word);
    row = map.located(*node, "weights", [&] { return find_format(word); });
  }
  map.record("weights", std::string(row.word), node, trains ? "default" : "strategy.precision");
  WeightFormat& format = s.weights = row.format;
  if (!format.narrow() && says_more(map))
    map.reader().fail(*section.find("quantise"), map.name("weights"), "none; the other keys say nothing without it");
  if (trains && format.narrow()) format.group = kTrainingGroup;
  read_group(map, format);
  map.take_named(
      "layers", s.quantised_layers, [](std::string_view word) { return find_named(kQuantisedLayers, "part", word); },
      [](QuantisedLayers layers) { return name_in(kQuantisedLayers, layers); }, "default");
  map.take("zero_points", format.zeros, "format");
  read_outliers(map, format);
  std::string calibration = "minmax";
  map.take_word("calibration", calibration, kCalibrations);
  s.clips_by_divergence = calibration == "kl";
  WeightCode activations = !format.narrow()                      ? WeightCode::wide
                           : row.activations != WeightCode::wide ? row.activations
                           : trains                              ? WeightCode::int8
                                                                 : code_of(s.precision);
  const auto find = [](std::string_view word) { return find_named(kActivations, "format", word); };
  map.take_named(
      "activations", activations, find, [](WeightCode code) { return name_of(code); }, "format");
  if (trains) {
    s.inputs = {.code = activations, .group = format.group};
    return;
  }
  const SpecNode* said = map.find("activations");
  if (said != nullptr && activations == WeightCode::int4)
    map.reader().fail(*said, map.name("activations"), "int4; no product has such inputs where text is generated");
  if (said != nullptr && is_eight_bit(s.precision) && activations != code_of(s.precision))
    map.reader().fail(
        *said, map.name("activations"),
        fmt::format("{} with precision: {}; leave one of them out", name_of(activations), name_of(s.precision)));
  const SpecNode* precision = section.find("precision");
  const bool wide = s.precision == Precision::bf16 || s.precision == Precision::fp16;
  const bool other = activations != code_of(s.precision) && !wide;
  if (activations != WeightCode::wide && precision != nullptr && other)
    map.reader().fail(*precision, section.name("precision"),
                      fmt::format("{}, but the format's activations are {}; leave it out, or choose "
                                  "quantise.activations: none",
                                  name_of(s.precision), name_of(activations)));
  if (activations != WeightCode::wide) take_precision(section.reader(), s, activations);
}

}  // namespace

void read_precision(const SpecSection& section, const Spec& spec, Strategy& s) {
  const auto precision_name = [](Precision p) { return name_of(p); };
  section.take_named("precision", s.precision, find_precision, precision_name, "default");
  read_quantise(section, spec, s);
  s.gradient_precision = gradient_habit(spec.software, s.precision);
  section.take_named("gradient_precision", s.gradient_precision, find_precision, precision_name,
                     "profile " + spec.software.name);
}

static Broken training_rules(const Strategy& s) {
  const auto few = [](WeightCode c) { return c == WeightCode::int8 || c == WeightCode::int4 || c == WeightCode::fp8; };
  if (!few(s.weights.code) || s.weights.zeros || s.weights.outliers > 0)
    return broken(
        "quantise.weights",
        "strategy.quantise: training rounds to int8, int4 or fp8 without zero points and outliers; {} is none "
        "of these",
        text_of(s.weights));
  if (s.quantised_layers != QuantisedLayers::all)
    return broken("quantise.layers", "strategy.quantise.layers: {}: training rounds all of a layer's matrices",
                  name_in(kQuantisedLayers, s.quantised_layers));
  if (s.clips_by_divergence)
    return broken("quantise.calibration",
                  "strategy.quantise.calibration: kl: training rounds by the largest magnitude");
  if (!few(s.inputs.code))
    return broken("quantise.activations",
                  "strategy.quantise.activations: {}: training rounds weights and inputs; choose int8, int4 or fp8",
                  name_of(s.inputs.code));
  if (s.weights.group < 1)
    return broken("quantise.group",
                  "strategy.quantise.group: {}: a rank may have a part of it alone; training needs a number of weights",
                  group_text(s.weights.group));
  return {};
}

Broken quantise_rules(const Spec& spec) {
  const Strategy& s = spec.strategy;
  const WeightFormat& f = s.weights;
  if (s.precision == Precision::int4 || (s.precision == Precision::int8 && !spec.generation))
    return broken("precision", "precision: {} is none in which a model trains; quantise.activations has it",
                  name_of(s.precision));
  if (spec.generation && !f.narrow() && is_eight_bit(s.precision))
    return broken("quantise.weights",
                  "strategy.quantise.weights: none: products of precision {} read weights that are stored so; choose "
                  "bf16, or leave it out",
                  name_of(s.precision));
  if (!f.narrow()) return {};
  if (!spec.generation) return training_rules(s);
  if (s.clips_by_divergence && (f.code != WeightCode::int8 || f.group != kTensorGroup || f.zeros))
    return broken("quantise.calibration",
                  "strategy.quantise.calibration: kl: {} has no histograms to clip; choose int8 with group: tensor and "
                  "without zero points",
                  text_of(f));
  const WeightCode inputs = code_of(s.precision);
  const bool whole = f.code == WeightCode::int8 || f.code == WeightCode::int4 || f.code == WeightCode::int3;
  if (s.quantised_layers == QuantisedLayers::experts && !spec.model.moe)
    return broken("quantise.layers", "strategy.quantise.layers: experts: model {} has none; choose feed_forward or all",
                  spec.model.name);
  const bool in_32 = f.code == WeightCode::mxfp8 || f.code == WeightCode::mxfp4;
  if ((f.code == WeightCode::nvfp4 && f.group != 16) || (in_32 && f.group != 32))
    return broken("quantise.group", "strategy.quantise.group: {}: {} has blocks of {}", group_text(f.group),
                  name_of(f.code), f.code == WeightCode::nvfp4 ? 16 : 32);
  if (!whole && f.zeros)
    return broken("quantise.zero_points", "strategy.quantise.zero_points: true: {} has no zero points",
                  name_of(f.code));
  if (!whole && f.outliers > 0)
    return broken("quantise.outliers", "strategy.quantise.outliers: {} has none; choose int4 or int8", name_of(f.code));
  const bool together = inputs == WeightCode::wide || inputs == f.code ||
                        (f.code == WeightCode::mxfp4 && inputs == WeightCode::mxfp8) ||
                        (f.code == WeightCode::int4 && (inputs == WeightCode::int8 || inputs == WeightCode::fp8));
  if (!together)
    return broken("quantise.activations",
                  "strategy.quantise: weights: {} with activations in {}: no product reads both; choose weights: {}",
                  name_of(f.code), name_of(inputs), name_of(inputs));
  return {};
}

}  // namespace orrery
