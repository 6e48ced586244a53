#include "sim/page/spec_parts.h"

#include <fmt/format.h>

#include "sim/page/html.h"
#include "sim/page/words.h"
#include "sim/print/text.h"

namespace orrery {
namespace {

constexpr std::size_t kMostSpecBytes = 60'000;  // bytes of a spec that a page shows

}  // namespace

std::string defaults_part(const Spec& spec, const SpecNotes& notes) {
  std::string content = lines_markup(notes.chosen);
  const Table defaults = deciding_defaults(spec);
  if (!defaults.rows.empty())
    content +=
        paragraph("Nobody gave these values, and the result rests on them:", "class=\"note\"") + table_markup(defaults);
  return content.empty() ? "" : part("What was decided by default", content);
}

std::string spec_part(const Spec& spec, const SpecNotes& notes) {
  const std::string& text = notes.spec_text.text;
  std::string shown = text.substr(0, kMostSpecBytes);
  // Removes the first bytes of a UTF-8 character that the cut has split.
  while (text.size() > shown.size() && !shown.empty() && (static_cast<unsigned char>(shown.back()) & 0x80U) != 0)
    shown.pop_back();
  std::erase(shown, '\r');
  std::string content = folded(notes.spec_text.path, element("pre", escaped(shown)) + '\n', true);
  if (text.size() > kMostSpecBytes)
    content += paragraph(
        fmt::format("The first {} of {} bytes.", grouped(kMostSpecBytes), grouped(static_cast<double>(text.size()))),
        "class=\"note\"");
  if (!notes.overrides.empty()) {
    std::string list;
    for (const std::string& o : notes.overrides) list += "--set " + o + '\n';
    content += paragraph("with these values in the place of its own:") + element("pre", escaped(list)) + '\n';
  }
  const Table given = origins_table(spec, true), rest = origins_table(spec, false);
  content += folded(fmt::format("all values: {} that are given", given.rows.size()), table_markup(given));
  content += folded(fmt::format("and {} that are not", rest.rows.size()), table_markup(rest));
  return part("The spec", content, "class=\"sheet\"");
}

std::string machine_part(const Spec& spec, const std::vector<std::string>& prices) {
  return part("The machine", table_markup(machine_table(spec)) + lines_markup(prices));
}

}  // namespace orrery
