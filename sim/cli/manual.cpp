#include "sim/cli/manual.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/base/names.h"
#include "models/base/output_file.h"
#include "models/base/version.h"
#include "models/load/reference.h"

namespace orrery {
namespace {

constexpr const char* kProgramAbout = "predict, search, explain and execute training steps of large models";

// Escapes a text for man(7), so that no character is read as a formatting request, and a dash stays the dash of an
// option.
std::string troff(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool first = i == 0 || text[i - 1] == '\n';
    if (first && (text[i] == '.' || text[i] == '\'')) out += "\\&";
    if (text[i] == '\\')
      out += "\\e";
    else if (text[i] == '-')
      out += "\\-";
    else
      out += text[i];
  }
  return out;
}

std::string bold(const std::string& text) { return "\\fB" + troff(text) + "\\fR"; }
std::string italic(const std::string& text) { return "\\fI" + troff(text) + "\\fR"; }

std::string page_title(const std::string& name, int section, std::string_view book) {
  std::string upper = name;
  std::ranges::transform(upper, upper.begin(),
                         [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  return fmt::format(".TH {} {} \"\" \"orrery {}\" \"{}\"\n", troff(upper), section, kVersion, book);
}

std::string name_section(const std::string& name, const std::string& about) {
  return fmt::format(".SH NAME\n{} \\- {}\n", troff(name), troff(about));
}

std::string synopsis(const std::string& words, const CommandEntry& command) {
  std::string text = ".SH SYNOPSIS\n" + bold(words);
  if (!command.commands.empty()) text += " " + italic("COMMAND");
  for (const OptionEntry& o : command.positionals()) {
    const std::string name = italic(o.names.front()) + (o.repeats ? " ..." : "");
    text += o.required ? " " + name : " [" + name + "]";
  }
  return text + " [" + italic("OPTION") + "]...\n";
}

std::string option_entry(const OptionEntry& o) {
  std::string head;
  for (const std::string& name : o.names) {
    if (!head.empty()) head += ", ";
    head += o.positional() ? italic(name) : bold(name);
  }
  if (!o.positional() && !o.value.empty()) head += " " + italic(o.value);
  return fmt::format(".TP\n{}\n{}\n", head, troff(o.about.empty() ? o.names.front() : o.about));
}

std::string options_section(const CommandEntry& command) {
  std::string text;
  const auto add = [&](const char* heading, const std::vector<OptionEntry>& list) {
    if (!list.empty()) text += fmt::format(".SH {}\n", heading);
    for (const OptionEntry& o : list) text += option_entry(o);
  };
  add("ARGUMENTS", command.positionals());
  add("OPTIONS", command.flags());
  return text;
}

// The footer of a command's help as sections of a manual page. A footer has "example: ..." or "examples:" with a line
// each, then "exit status: ...".
std::string footer_section(std::string footer) {
  std::string text;
  if (const std::size_t status = footer.find("exit status: "); status != std::string::npos) {
    text = ".SH EXIT STATUS\n" + troff(footer.substr(status + 13)) + "\n";
    footer.resize(status);
  }
  for (const std::string_view label : {"examples:", "example:"}) {
    if (footer.starts_with(label)) footer.erase(0, label.size());
  }
  std::string lines;
  for (std::size_t start = 0; start < footer.size();) {
    const std::size_t end = std::min(footer.find('\n', start), footer.size());
    const std::size_t word = std::min(footer.find_first_not_of(' ', start), end);
    if (word < end) lines += troff(footer.substr(word, end - word)) + "\n";
    start = end + 1;
  }
  return lines.empty() ? text : ".SH EXAMPLES\n.nf\n" + lines + ".fi\n" + text;
}

std::string files_section() {
  return ".SH FILES\n.TP\n" + italic("PREFIX/share/orrery/examples") +
         "\nspecs to begin with; where no file has the name, examples/... is looked for there\n";
}

std::string see_also(const std::vector<std::string>& pages) {
  std::string text = ".SH SEE ALSO\n";
  for (const std::string& page : pages) text += (text.ends_with('\n') ? "" : ", ") + page;
  return text + '\n';
}

std::string page_reference(const std::string& name, int section) { return bold(name) + fmt::format("({})", section); }

ManualPage command_page(const CommandEntry& program, const CommandEntry& command) {
  const std::string name = program.name + "-" + command.name;
  std::string text = page_title(name, 1, "User Commands") + name_section(name, command.about) +
                     synopsis(program.name + " " + command.name, command) + options_section(command);
  text += ".PP\nOptions of every command, such as " + bold("--quiet") + " and " + bold("--threads") +
          ", are described in " + page_reference(program.name, 1) + ".\n";
  text +=
      footer_section(command.footer) + see_also({page_reference(program.name, 1), page_reference("orrery-spec", 5)});
  return {name, 1, text};
}

ManualPage main_page(const CommandEntry& program) {
  std::string text = page_title(program.name, 1, "User Commands") + name_section(program.name, kProgramAbout) +
                     synopsis(program.name, program) + ".SH DESCRIPTION\n" + troff(program.about) + "\n.SH COMMANDS\n";
  std::vector<std::string> pages;
  for (const CommandEntry& c : program.commands) {
    text += fmt::format(".TP\n{}\n{}\n", bold(c.name), troff(c.about));
    pages.push_back(page_reference(program.name + "-" + c.name, 1));
  }
  pages.push_back(page_reference("orrery-view", 1));
  pages.push_back(page_reference("orrery-spec", 5));
  text += options_section(program) + footer_section(program.footer) + files_section();
  return {program.name, 1, text + see_also(pages)};
}

ManualPage spec_page() {
  std::string text = page_title("orrery-spec", 5, "File Formats") +
                     name_section("orrery-spec", "what to train, on what, and how") +
                     ".SH DESCRIPTION\nA spec is a YAML or JSON file with the keys below. A key that is absent takes "
                     "the habit of the software profile, else the default. Figures take units and suffixes: 80 GiB, "
                     "400 Gb/s, 128Mi. An editor reads the same keys from " +
                     bold("orrery schema") + ".\n.SH KEYS\n";
  for (const KeyReference& k : spec_reference()) {
    const std::string unit = k.unit.empty() ? "" : ", in " + k.unit;
    text += fmt::format(".TP\n{}\n{}\n.br\n{}{}; default: {}; example: {}\n", bold(k.key), troff(k.meaning),
                        troff(k.type), troff(unit), troff(k.otherwise), troff(k.example));
  }
  return {"orrery-spec", 5, text + see_also({page_reference("orrery", 1), page_reference("orrery-schema", 1)})};
}

}  // namespace

ManualPage program_page(const CommandEntry& program) {
  return {program.name, 1,
          page_title(program.name, 1, "User Commands") + name_section(program.name, program.about) +
              synopsis(program.name, program) + options_section(program) + footer_section(program.footer) +
              see_also({page_reference("orrery", 1), page_reference("orrery-spec", 5)})};
}

std::vector<ManualPage> manual_pages(const CommandEntry& program) {
  std::vector<ManualPage> pages = {main_page(program)};
  for (const CommandEntry& c : program.commands) pages.push_back(command_page(program, c));
  pages.push_back(spec_page());
  return pages;
}

Outcome manual_command(const CommandEntry& program, const std::string& page, const std::string& folder) {
  std::vector<std::string> names;
  for (const ManualPage& p : manual_pages(program)) {
    if (folder.empty() && p.name == page) return {.text = p.text, .verbatim = true};
    names.push_back(p.name);
    if (folder.empty()) continue;
    const std::string section = fmt::format("{}/man{}", folder, p.section);
    std::filesystem::create_directories(section);
    OutputFile file(section + "/" + p.file());
    file.write(p.text);
    file.commit();
  }
  if (!folder.empty()) return {fmt::format("{} pages in {}\n", names.size(), folder)};
  const std::vector<std::string_view> known(names.begin(), names.end());
  throw Error(unknown_name("page", page, known));
}

}  // namespace orrery
