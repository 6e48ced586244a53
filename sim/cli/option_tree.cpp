#include "sim/cli/option_tree.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>

#include "models/base/data.h"

namespace orrery {
namespace {

std::vector<std::string> split_words(const std::string& text, char at) {
  std::vector<std::string> parts;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(at, start), text.size());
    parts.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

bool means_file(const OptionEntry& o) {
  constexpr std::string_view kFiles[] = {"FILE", "FILE...", "FOLDER", "SPEC", "SPEC...", "INPUT"};
  const std::string& name = o.positional() ? o.names.front() : o.value;
  return std::find(std::begin(kFiles), std::end(kFiles), name) != std::end(kFiles);
}

// Sets how a shell completes an option's value, by the value's name in the help: for "cpu|cuda" the shell offers these
// words, for KEY=VALUE the keys of a spec.
void set_kind(OptionEntry& o) {
  if (o.value.find('|') != std::string::npos) {
    o.kind = ValueKind::words;
    o.words = split_words(o.value, '|');
  } else if (o.value == "NODE") {
    o.kind = ValueKind::words;
    for (const std::string_view name : data_names("nodes")) o.words.emplace_back(name);
  } else if (o.value == "KEY=VALUE") {
    o.kind = ValueKind::keys;
  } else if (means_file(o)) {
    o.kind = ValueKind::file;
  } else if (o.positional() || !o.value.empty()) {
    o.kind = ValueKind::other;
  }
}

OptionEntry entry_of(const CLI::Option& option) {
  OptionEntry o;
  for (const std::string& name : option.get_snames()) o.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) o.names.push_back("--" + name);
  if (o.names.empty()) o.names.push_back(option.get_name(true));
  const bool flag = option.get_items_expected_max() == 0;
  // CLI11 appends what its checks accept to the name of a value, after a colon: "N:INT in [1 - 64]".
  if (!flag) o.value = option.get_type_name().substr(0, option.get_type_name().find(':'));
  o.about = option.get_description();
  o.required = option.get_required();
  o.repeats = option.get_items_expected_max() > 1;
  set_kind(o);
  return o;
}

}  // namespace

std::vector<OptionEntry> CommandEntry::positionals() const {
  std::vector<OptionEntry> list;
  std::ranges::copy_if(options, std::back_inserter(list), &OptionEntry::positional);
  return list;
}

std::vector<OptionEntry> CommandEntry::flags() const {
  std::vector<OptionEntry> list;
  std::ranges::copy_if(options, std::back_inserter(list), [](const OptionEntry& o) { return !o.positional(); });
  return list;
}

CommandEntry option_tree(const CLI::App& app) {
  CommandEntry entry{app.get_name(), app.get_description(), app.get_footer(), {}, {}};
  for (const CLI::Option* o : app.get_options([](const CLI::Option* x) { return !x->get_group().empty(); }))
    entry.options.push_back(entry_of(*o));
  for (const CLI::App* c : app.get_subcommands([](const CLI::App* x) { return !x->get_group().empty(); }))
    entry.commands.push_back(option_tree(*c));
  return entry;
}

}  // namespace orrery
