#include "sim/advice/first_answer.h"

#include <algorithm>
#include <bit>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/base/data.h"
#include "models/base/error.h"
#include "models/base/input_file.h"
#include "models/load/aliases.h"
#include "models/load/tree.h"
#include "sim/generate/layout_search.h"
#include "sim/launch/import.h"
#include "sim/print/text.h"
#include "sim/search/search.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

// The longest sequence, in tokens, that is chosen for a user who gives none. Llama 3 was trained on sequences of this
// length before its context was lengthened (arXiv 2407.21783, section 3.4).
constexpr std::int64_t kUsualSequence = 8192;
// The tokens of the global batch that is chosen for a user who gives none: 4 M, with which the training of Llama 3
// began (arXiv 2407.21783, section 3.4.1).
constexpr std::int64_t kBatchTokens = std::int64_t{4} << 20;

// The path of the config.json of a model, if `what` is that file or its folder; else "".
std::string config_of(const std::string& what) {
  const fs::path path = fs::is_directory(what) ? fs::path(what) / "config.json" : fs::path(what);
  if (path.extension() != ".json" || !fs::is_regular_file(path)) return "";
  const SpecNode root = parse_tree(read_input(path.string(), kMostSettings), path.string());
  const bool model = root.find("model_type") != nullptr || root.find("architectures") != nullptr;
  return model && root.find("cluster") == nullptr ? path.string() : "";
}

// The sequence length and global batch that are chosen for a model on a number of GPUs, and the reasons in words.
struct Sizes {
  std::int64_t sequence = 0, batch = 0;
  std::vector<std::string> why;
};

Sizes sizes_of(const Model& m, std::int64_t gpus) {
  Sizes s;
  const std::int64_t most = m.max_positions > 0 ? m.max_positions : m.trained_positions;
  s.sequence = most > 0 ? std::min(most, kUsualSequence) : kUsualSequence;
  s.why.push_back(
      most > 0 ? fmt::format("sequence {}: the model takes {}; longer ones by --set sequence=N", s.sequence, most)
               : fmt::format("sequence {}: the model's file says none", s.sequence));
  const std::int64_t least = std::max(gpus, kBatchTokens / s.sequence);
  s.batch = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(least)));
  s.why.push_back(fmt::format("strategy.global_batch {}: {} tokens a step, at least one sequence a GPU", s.batch,
                              count_text(static_cast<double>(s.batch * s.sequence))));
  return s;
}

// Makes a spec for generating text: the layout and batch of which all GPUs generate the most tokens a second.
FirstAnswer generating_answer(const SpecText& bare, const std::vector<std::string>& overrides, unsigned threads,
                              const std::atomic<bool>* stop) {
  const LayoutsFound found = search_layouts(bare, {.overrides = overrides, .threads = threads, .stop = stop});
  if (found.stopped && found.found.empty()) throw Error("interrupted before a layout was found");
  if (found.found.empty())
    throw Error(found.predicted == 0
                    ? found.refusal
                    : fmt::format("{}: no layout fits; take more nodes, or a smaller batch", bare.path));
  const GenerationLayout& best = found.found.front().layout;
  std::vector<std::string> all = overrides;
  all.insert(all.end(), best.settings.begin(), best.settings.end());
  return {{bare.path, print_tree(overridden_tree(bare, all))},
          {fmt::format("{}: the most tokens a second of those that fit{}; orrery search has other objectives",
                       fmt::join(best.settings, ", "), found.stopped ? ", as far as the search came" : "")}};
}

std::string quoted(const std::string& text) { return "\"" + text + "\""; }

}  // namespace

bool names_a_model(const std::string& what) {
  const std::vector<std::string_view> known = data_names("models");
  if (fs::exists(what)) return !config_of(what).empty();
  return std::find(known.begin(), known.end(), canonical_model(what)) != known.end();
}

FirstAnswer first_answer(const std::string& what, const std::string& on, const std::vector<std::string>& overrides,
                         unsigned threads, const std::atomic<bool>* stop) {
  const ClusterName machines = cluster_of(on);
  const std::string config = fs::exists(what) ? fs::absolute(config_of(what)).string() : what;
  const std::string head =
      fmt::format("model: {}\ncluster: {{node: {}, nodes: {}}}\n", quoted(config), machines.node, machines.nodes);
  const std::string path = fmt::format("{} --on {}", what, on);
  const auto generates = [](const std::string& o) {
    return o.starts_with("generate.") || o.starts_with("generate=") || o == "workload=generate";
  };
  if (std::ranges::any_of(overrides, generates)) return generating_answer({path, head}, overrides, threads, stop);
  const OpenSpec bare = parse_open_spec(head + "sequence: 1\nstrategy: {global_batch: 1}\n", path);
  const Sizes sizes = sizes_of(bare.spec.model, bare.spec.gpus);
  FirstAnswer answer{
      {path, fmt::format("{}sequence: {}\nstrategy:\n  global_batch: {}\n", head, sizes.sequence, sizes.batch)},
      sizes.why};
  OpenSpec open = parse_open_spec(answer.spec.text, path, overrides);
  const std::int64_t gpus = open.spec.gpus;
  const Space space(std::move(open), gpus);
  const SearchResult found =
      search(space, profile_for(space.base(), ""), {.top = 1, .any = true, .threads = threads, .stop = stop});
  if (found.best.empty()) {
    throw Error(found.reason.empty()
                    ? fmt::format("{}: no strategy fits: the leanest needs {} of a GPU; take more nodes", path,
                                  memory_text(static_cast<double>(found.least_memory)))
                    : found.reason);
  }
  const Point& point = found.best.front().point;
  answer.spec.text = print_tree(overridden_tree(answer.spec, space.overrides_of(point)));
  answer.chosen.push_back(
      fmt::format("strategy {}: the first tried that fits; orrery search finds the best", space.text_of(point)));
  return answer;
}

}  // namespace orrery
