#include "sim/picture/weights.h"

#include <algorithm>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "models/layers/blocks.h"

namespace orrery {
namespace {

// The weights of one block (a layer, an embedding), by the title of the section of the picture that shows them.
using WeightsByTitle = std::map<std::string, std::vector<PlanWeight>>;

// The order in which the picture lists types of weights.
enum class WeightRank : std::uint8_t { vision, ends, mixer, feed_forward, prediction };

std::string mixer_title(const Model& m, std::int64_t layer) {
  switch (layer_kind(m, layer).mixer) {
    case Mixer::recurrence:
      return "Recurrence";
    case Mixer::windowed:
      return "Window attention";
    case Mixer::compressed_sparse:
      return "Compressed sparse attention";
    case Mixer::heavily_compressed:
      return "Heavily compressed attention";
    default:
      return m.mla ? "Latent attention" : "Attention";
  }
}

bool has_weights_of(const Block& block, std::string_view prefix) {
  return std::ranges::any_of(block.parameters, [&](const LocalParameter& p) { return p.name.starts_with(prefix); });
}

// Returns the title under which the picture shows a weight of a block, such as "MLP" or "Experts".
std::string title_of(const Model& m, const Frame& frame, const Block& block, const std::string& name) {
  const auto begins = [&](std::string_view prefix) { return name.starts_with(prefix); };
  if (block.role == BlockRole::vision)
    return begins("embedding")   ? "Vision encoder: patches"
           : begins("projector") ? "Vision encoder: projector"
                                 : "Vision encoder: layer";
  if (begins("prediction")) return "Multi-token prediction";
  if (block.role != BlockRole::layer) return "Embedding and head";
  if (begins("moe.") || begins("mlp")) return has_weights_of(block, "moe.") ? "Experts" : "MLP";
  // With hyper-connections, a block of its own after the last layer merges the residual streams.
  return frame.layer < m.layers ? mixer_title(m, frame.layer) : "Embedding and head";
}

// Returns the number of the prediction module that a weight belongs to, and takes "prediction 0 " off its name.
std::int32_t take_module(std::string& name) {
  constexpr std::string_view kPrefix = "prediction ";
  const std::size_t end = name.find(' ', kPrefix.size());
  if (!name.starts_with(kPrefix) || end == std::string::npos) return 0;
  const std::string number = name.substr(kPrefix.size(), end - kPrefix.size());
  if (number.empty() || !std::ranges::all_of(number, [](char c) { return c >= '0' && c <= '9'; })) return 0;
  name.erase(0, end + 1);
  return static_cast<std::int32_t>(std::stoi(number));
}

// Returns a key by which layers with equal weights are found: a text that is the same for weights with the same title,
// names, shapes and cuts.
std::string signature_of(const std::string& title, const std::vector<PlanWeight>& weights) {
  std::string text = title;
  for (const PlanWeight& w : weights) {
    const LocalParameter& p = w.tiles.front();
    text += fmt::format("|{} {} {} {} {} {}", w.name, p.out, p.in, static_cast<int>(p.cut), p.experts, p.frozen);
  }
  return text;
}

// Collects types of weights from the frames of a plan, each of which is a block of one class of ranks.
class KindCollector {
 public:
  explicit KindCollector(const Spec& spec, const Plan& plan) : spec_(spec), plan_(plan) {}

  void add(const Frame& frame) {
    const Block& block = plan_.blocks[frame.block];
    if (block.second) return;  // the picture shows the model that trains
    std::map<std::pair<std::string, std::int32_t>, std::vector<PlanWeight>> found;
    for (const LocalParameter& p : block.parameters) {
      const std::string title = title_of(spec_.model, frame, block, p.name);
      std::string name = p.name;
      const std::int32_t module = title == "Multi-token prediction" ? take_module(name) : 0;
      const std::int64_t first = (p.frozen ? frame.frozen_base : frame.base) + p.offset;
      auto& list = found[{title, module}];
      if (p.tile > 1 && !list.empty() && list.back().name == name) {
        list.back().tiles.push_back(p);
        list.back().first.push_back(first);
      } else {
        list.push_back({name, {p}, {first}, frame.state, frame.slot});
      }
    }
    for (auto& [key, weights] : found) add_kind(frame, block, key.first, key.second, std::move(weights));
  }

  std::vector<WeightKind> finish() {
    const auto rank = [](const WeightKind& k) {
      if (k.vision) return WeightRank::vision;
      if (k.title == "Embedding and head") return WeightRank::ends;
      if (k.title == "Multi-token prediction") return WeightRank::prediction;
      return k.title == "MLP" || k.title == "Experts" ? WeightRank::feed_forward : WeightRank::mixer;
    };
    std::ranges::stable_sort(kinds_, {}, rank);
    for (WeightKind& kind : kinds_) std::ranges::sort(kind.layers);
    return std::move(kinds_);
  }

 private:
  void add_kind(const Frame& frame, const Block& block, const std::string& title, std::int32_t module,
                std::vector<PlanWeight> weights) {
    const bool ends = title == "Embedding and head", vision = block.role == BlockRole::vision;
    const bool prediction = title == "Multi-token prediction";
    if (ends) return add_ends(title, std::move(weights));
    const auto [at, fresh] = kind_at_.try_emplace(signature_of(title, weights), kinds_.size());
    if (fresh) kinds_.push_back({.title = title, .vision = vision, .weights = std::move(weights)});
    WeightKind& kind = kinds_[at->second];
    const std::int32_t layer = prediction ? module : frame.layer;
    if (vision) {
      kind.count += seen_.insert({title, frame.slot, static_cast<std::int64_t>(frame.first_buffer)}).second ? 1 : 0;
    } else if (seen_.insert({title, layer, 0}).second) {
      kind.layers.push_back(layer);
      ++kind.count;
    }
  }

  // Adds weights outside the layers, each once: the first and the last stage may both have the token embeddings.
  void add_ends(const std::string& title, std::vector<PlanWeight> weights) {
    const auto [at, fresh] = kind_at_.try_emplace(title, kinds_.size());
    if (fresh) kinds_.push_back({.title = title, .count = 1});
    for (PlanWeight& w : weights) {
      if (seen_.insert({w.name, -1, 0}).second) kinds_[at->second].weights.push_back(std::move(w));
    }
  }

  const Spec& spec_;
  const Plan& plan_;
  std::vector<WeightKind> kinds_;
  std::map<std::string, std::size_t> kind_at_;
  std::set<std::tuple<std::string, std::int64_t, std::int64_t>> seen_;
};

}  // namespace

std::vector<WeightKind> weight_kinds(const Spec& spec, const Plan& plan) {
  // for each stage, the index of its first class of equal ranks, parameter servers left out
  std::map<std::int64_t, std::uint32_t> slot_of_stage;
  for (std::uint32_t s = 0; s < plan.classes.size(); ++s) {
    if (!plan.classes[s].server) slot_of_stage.try_emplace(plan.classes[s].stage, s);
  }
  KindCollector kinds(spec, plan);
  for (const Frame& f : plan.frames) {
    const Block& block = plan.blocks[f.block];
    if (f.micro_batch != 0 || f.state == kNone || block.parameters.empty()) continue;
    if (slot_of_stage.at(plan.classes[f.slot].stage) == f.slot) kinds.add(f);
  }
  return kinds.finish();
}

}  // namespace orrery
