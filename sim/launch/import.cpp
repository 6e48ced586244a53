#include "sim/launch/import.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/base/names.h"
#include "models/families/hugging_face.h"
#include "models/spec/cluster.h"
#include "models/spec/model.h"
#include "sim/launch/launch_keys.h"
#include "sim/launch/model_values.h"

namespace orrery {
namespace {

constexpr std::string_view kNeededKeys[] = {
    "model.layers", "model.hidden", "model.heads",          "model.vocab",
    "sequence",     "cluster.node", "strategy.micro_batch", "strategy.global_batch"};
constexpr std::size_t kMostRemarks = 200;

bool is_number_text(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

// Writes numbers such as "2e8" and "512.0" as whole numbers; other numbers stay as they are.
std::string plain_number(const std::string& text) {
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = value == static_cast<double>(static_cast<std::int64_t>(std::clamp(value, -9e15, 9e15)));
  return whole ? fmt::format("{}", static_cast<std::int64_t>(value)) : text;
}

bool begins_with_one(const std::string& name, std::span<const std::string_view> starts) {
  return std::ranges::any_of(starts, [&](std::string_view start) { return name.starts_with(start); });
}

// Whether an option is one of a launcher (torchrun, Slurm) that has no effect on step time or memory. One-letter
// options are compared by the whole name, longer ones by their beginning.
bool is_launchers(const std::string& name) {
  return std::ranges::any_of(launcher_ignored(), [&](std::string_view word) {
    return word.size() == 1 ? name == word : name.starts_with(word);
  });
}

class LaunchImporter {
 public:
  explicit LaunchImporter(LaunchImport& out) : out_(out) {}

  void add(const Settings& settings, const std::string& path) {
    const Framework* framework = framework_of(settings);
    if (framework == nullptr && settings.parts.empty())
      throw Error(
          fmt::format("{}: no launch file that is known: Megatron-LM arguments, DeepSpeed JSON, Accelerate YAML, "
                      "torchtitan TOML, nanotron YAML, NeMo YAML, or a Hugging Face config.json",
                      path));
    for (const std::string& remark : settings.remarks) out_.remarks.push_back(remark);
    if (framework != nullptr) take(settings, *framework);
    for (const Settings& part : settings.parts) {
      if (framework_of(part) != nullptr) add(part, path);
    }
  }
  bool shapes() const { return shapes_; }
  void finish() {
    if (out_.values.find("software") == nullptr && software_ != nullptr)
      out_.values.set("software", std::string(software_->software), Said::assumed,
                      fmt::format("the stack nearest to {}", software_->about));
  }

 private:
  void take(const Settings& settings, const Framework& framework) {
    out_.framework += (out_.framework.empty() ? "" : ", ") + std::string(framework.about);
    if (software_ == nullptr) software_ = &framework;
    now_ = {};
    said_.clear();
    std::vector<bool> seen(settings.all.size(), false);
    const bool sourced = settings.refers && std::ranges::none_of(settings.all, [&](const Setting& s) {
                           return s.name == "micro_batch_size" || s.name == "num_layers";
                         });
    bool refers = settings.refers;
    for (const Setting& s : settings.all) {
      if (std::ranges::find(framework.refers, std::string_view(s.name)) == framework.refers.end() || s.null) continue;
      refers = true;
      out_.remarks.push_back(
          fmt::format("{}: {}: {} is a further file, whose options are not known; import it beside this one", s.from,
                      s.name, s.value));
    }
    for (const OptionRow& row : framework.rows()) {
      if (const Setting* s = find(settings, framework, row, seen))
        translate(*s, row);
      else if (sourced)
        translate_variable(settings, framework, row);
    }
    if (!refers && framework.assumes) assume(framework);
    merge();
    name_the_rest(settings, framework, seen);
  }

  // Finds the last setting in a launch file for one option (a row of the framework's table of options), and marks all
  // settings for that option as seen.
  const Setting* find(const Settings& settings, const Framework& framework, const OptionRow& row,
                      std::vector<bool>& seen) {
    const Setting* found = nullptr;
    for (std::size_t i = 0; i < settings.all.size(); ++i) {
      const Setting& s = settings.all[i];
      if (s.name != row.option && framework.without_prefix(s.name) != row.option) continue;
      if (found != nullptr && !seen[i] && found->value != s.value)
        out_.remarks.push_back(fmt::format("{}: {}: {} after {} at {}; the last one counts", s.from, row.option,
                                           s.value, found->value, found->from));
      seen[i] = true;
      found = &s;
    }
    return found;
  }

  void refuse(const Setting& s, std::string why) {
    const auto same = [&](const Untranslated& u) { return u.from == s.from && u.option == s.name; };
    if (std::ranges::find(said_, &s) != said_.end() || std::ranges::any_of(out_.not_translated, same)) return;
    out_.not_translated.push_back({s.from, s.name, s.value, std::move(why)});
  }

  // Records that a row of the framework's table of options has translated a setting of the launch file. If another row
  // for the same option could not translate the setting's value, that is no longer reported.
  void accept(const Setting& s, std::string_view key, std::string value) {
    said_.push_back(&s);
    std::erase_if(out_.not_translated, [&](const Untranslated& u) { return u.from == s.from && u.option == s.name; });
    if (!key.empty() && !value.empty())
      now_.set(key, std::move(value), Said::stated, fmt::format("{} {}", s.from, s.name));
  }

  void translate(const Setting& s, const OptionRow& row) {
    const std::string theirs = s.null || s.value == "None" ? "null" : s.value;
    const std::string unset = theirs.starts_with("$") ? "the file does not set this variable" : "";
    const bool silent = theirs == "null" || theirs == "auto" || theirs == "???" || theirs.empty();
    if (!row.words.empty()) {
      const auto word = std::ranges::find(row.words, std::string_view(theirs), &OptionWord::theirs);
      if (word != row.words.end()) return accept(s, row.key, std::string(word->ours));
      if (!silent) refuse(s, unset.empty() ? "no key of a spec says this" : unset);
      return;
    }
    if (silent || (theirs == "-1" && row.key != "launch.shard")) return;
    if (!row.text && !is_number_text(theirs)) return refuse(s, unset.empty() ? "is no number" : unset);
    // A count of zero means that the model has no component of the kind ("num_experts: 0").
    const bool none = theirs == "0" && row.key.starts_with("model.");
    accept(s, row.key, none ? "" : row.text ? theirs : plain_number(theirs));
  }

  // If the options are in another file that the script sources, takes the options' values from the script's variables.
  void translate_variable(const Settings& settings, const Framework& framework, const OptionRow& row) {
    for (const OptionWord& variable : framework.variables) {
      if (variable.ours != row.option) continue;
      for (const Setting& v : settings.variables) {
        if (v.name != variable.theirs) continue;
        translate(v, row);
        out_.remarks.push_back(fmt::format("{}: {} is taken for {}, as the arguments stand in a file that is sourced",
                                           v.from, v.name, row.option));
      }
    }
  }

  void assume(const Framework& framework) {
    const bool has_model = now_.find("model.layers") != nullptr;
    for (const OptionRow& row : framework.rows()) {
      if (row.assumed.empty() || (row.key.starts_with("model.") && !has_model)) continue;
      now_.fill(row.key, std::string(row.assumed), Said::assumed,
                fmt::format("{}'s default without {}", framework.about, row.option));
    }
    shapes_ = shapes_ || (has_model && framework.name == "megatron");
  }

  // Adds the keys that the current launch file gives to the keys from the files read before.
  void merge() {
    for (SpecValue& v : now_.all) {
      const SpecValue* old = out_.values.find(v.key);
      const bool weaker = old != nullptr && old->said == Said::assumed && v.said == Said::stated;
      if (old == nullptr || weaker) {
        out_.values.set(v.key, v.value, v.said, v.from);
      } else if (old->value != v.value && v.said == Said::stated) {
        out_.remarks.push_back(
            fmt::format("{}: {} contradicts {} of {}, which counts", v.from, v.value, old->value, old->from));
      }
    }
  }

  void name_the_rest(const Settings& settings, const Framework& framework, const std::vector<bool>& seen) {
    for (std::size_t i = 0; i < settings.all.size(); ++i) {
      const Setting& s = settings.all[i];
      const bool refers = std::ranges::find(framework.refers, std::string_view(s.name)) != framework.refers.end();
      const std::string name = framework.without_prefix(s.name);
      const bool ignored = begins_with_one(s.name, framework.ignored) || begins_with_one(name, framework.ignored) ||
                           is_launchers(s.name);
      if (!seen[i] && !s.null && s.value != "null" && !refers && !ignored) refuse(s, "no key of a spec says this");
    }
  }

  LaunchImport& out_;
  SpecValues now_;                    // keys from the launch file that is being read
  std::vector<const Setting*> said_;  // settings of the current file that a row of a framework's table has translated
  const Framework* software_ = nullptr;
  bool shapes_ = false;
};

// Adds, marked as missing, the keys that a spec needs and no launch file states.
void add_missing(SpecValues& values) {
  const bool named = values.find("model") != nullptr;
  for (const std::string_view key : kNeededKeys) {
    if (!(named && key.starts_with("model."))) values.fill(key, "", Said::missing, "not stated");
  }
  if (values.find("model.moe.experts") == nullptr) return;
  for (const char* key : {"model.moe.top_k", "model.moe.feed_forward"})
    values.fill(key, "", Said::missing, "not stated");
}

}  // namespace

LaunchImport import_launch(const std::vector<LaunchText>& texts, std::string_view on) {
  LaunchImport out;
  LaunchImporter importer(out);
  for (const LaunchText& text : texts) {
    const Settings settings = read_settings(text.text, text.path);
    const bool model = settings.find("model_type") != nullptr || settings.find("architectures") != nullptr;
    if (model) {
      out.framework += (out.framework.empty() ? "" : ", ") + std::string("Hugging Face");
      for (SpecValue& v : model_values(parse_hugging_face(text.text, text.path), text.path))
        out.values.fill(v.key, v.value, v.said, v.from);
    } else {
      importer.add(settings, text.path);
    }
  }
  if (!on.empty()) {
    const ClusterName cluster = cluster_of(on);
    out.values.set("cluster.node", cluster.node, Said::stated, "--on");
    out.values.set("cluster.nodes", fmt::format("{}", cluster.nodes), Said::stated, "--on");
    const std::int64_t gpus = cluster.nodes * find_cluster(cluster.node, 1).gpus_per_node;
    if (gpus > 0) out.values.set("launch.cluster_gpus", fmt::format("{}", gpus), Said::stated, "--on");
  }
  importer.finish();
  resolve_launch_keys(out.values, importer.shapes(), out.remarks);
  add_missing(out.values);
  if (out.remarks.size() > kMostRemarks) out.remarks.resize(kMostRemarks);
  return out;
}

}  // namespace orrery
