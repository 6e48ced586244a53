// Prints the result of `validate --published` as a Markdown page.
#include <map>

#include <fmt/format.h>

#include "sim/published/fit.h"
#include "sim/published/interval_fit.h"

namespace orrery {
namespace {

std::string share_text(double share) { return fmt::format("{:.1f}", 100 * share); }

struct SourceLine {
  const ErrorSummary *step = nullptr, *memory = nullptr;
  const LeftOut* left_out = nullptr;
};

std::string table_line(const std::string& source, const SourceLine& l, bool fits) {
  std::string text = fmt::format("| {} |", source);
  if (l.step != nullptr) {
    const ErrorSummary& s = *l.step;
    text += fmt::format(" {} | {} | {} | {:+.1f} | {} | {} | {} |", s.rows, share_text(s.mean), share_text(s.median),
                        100 * s.bias, share_text(s.p90), share_text(s.worst), share_text(s.null_mean));
  } else {
    text += " | | | | | | |";
  }
  if (fits && l.left_out != nullptr)
    text += fmt::format(" {} | {} |", share_text(l.left_out->left_out), share_text(l.left_out->halves));
  else if (fits)
    text += " | |";
  if (l.memory != nullptr)
    text += fmt::format(" {} | {:+.1f} | {} |\n", share_text(l.memory->mean), 100 * l.memory->bias,
                        share_text(l.memory->worst));
  else
    text += " | | |\n";
  return text;
}

std::string source_table(const std::vector<PublishedCase>& cases, const Refit* fit) {
  const std::vector<ErrorSummary> steps = summarize(misses(cases, Judged::step, false));
  const std::vector<ErrorSummary> memory = summarize(misses(cases, Judged::memory, false));
  std::map<std::string, SourceLine> lines;
  for (const ErrorSummary& s : steps) lines[s.source].step = &s;
  for (const ErrorSummary& s : memory) lines[s.source].memory = &s;
  if (fit != nullptr) {
    for (const LeftOut& s : fit->sources) lines[s.source].left_out = &s;
  }
  const std::string more = fit != nullptr ? " source out | half out |" : "";
  std::string text = "| source | rows | mean | median | bias | p90 | worst | null model |" + more +
                     " memory, mean | bias | worst |\n| --- | --- | --- | --- | --- | --- | --- | --- |" +
                     (fit != nullptr ? " --- | --- |" : "") + " --- | --- | --- |\n";
  for (const auto& [source, line] : lines) {
    if (source != "all") text += table_line(source, line, fit != nullptr);
  }
  if (lines.contains("all")) text += table_line("all", lines.at("all"), fit != nullptr);
  return text;
}

std::string technique_table(const std::vector<PublishedCase>& cases) {
  std::map<std::string, double> memory;
  for (const ErrorSummary& s : summarize_by_technique(misses(cases, Judged::memory, false))) memory[s.source] = s.mean;
  std::string text =
      "| steps with | rows | sources | mean | median | bias | memory, mean |\n| --- | --- | --- | --- | --- | --- | "
      "--- |\n";
  for (const ErrorSummary& s : summarize_by_technique(misses(cases, Judged::step, false))) {
    const auto m = memory.find(s.source);
    text += fmt::format("| {} | {} | {} | {} | {} | {:+.1f} | {} |\n", s.source, s.rows, s.sources, share_text(s.mean),
                        share_text(s.median), 100 * s.bias, m == memory.end() ? "" : share_text(m->second));
  }
  return text;
}

std::string unsupported(const std::vector<PublishedCase>& cases) {
  std::map<std::string, int> reasons;
  for (const PublishedCase& c : cases) {
    if (!c.reason.empty()) ++reasons[c.reason];
  }
  std::string text;
  for (const auto& [reason, rows] : reasons) text += fmt::format("- {} rows: {}\n", rows, reason);
  return text.empty() ? "" : "\nNot predicted:\n\n" + text;
}

}  // namespace

std::string published_page(const std::vector<PublishedCase>& cases, const Refit* fit, const std::string& picture) {
  std::string text = fmt::format(
      "# Published steps\n\nWritten by `orrery validate --published FILE... --page THIS_FILE`: other people's measured "
      "steps, predicted. Errors of step time and of peak memory in %; bias has its sign; the null model is one FLOP/s "
      "per source and kind of GPU. Rows that their sources' neighbours contradict (`doubtful`) are left out.\n\nThe "
      "built-in constants were chosen with these rows in sight, and {} of them are fitted to steps (\"numbers\" of "
      "`models/data/fitted.json`): mean to worst are in sample. ",
      fitted_numbers().size());
  if (fit != nullptr) {
    text +=
        "\"Source out\": the listed numbers fitted again without the source, its stack's features from documentation; "
        "\"half out\": without every second row of it, both ways; both on a sample of its rows.";
  }
  text += "\n\n" + source_table(cases, fit);
  if (!picture.empty()) text += fmt::format("\n![predicted over measured]({})\n", picture);
  text += "\nThe same rows by what they use; one counts for all of it.\n\n" + technique_table(cases);
  const Coverage c = coverage(cases);
  text += fmt::format(
      "\n{} of {} measured steps ({:.1f} %) lie in the predicted 80 % interval, doubtful ones included.\n", c.inside,
      c.rows, c.rows == 0 ? 0 : 100.0 * static_cast<double>(c.inside) / static_cast<double>(c.rows));
  if (fit != nullptr) text += '\n' + coverage_text(interval_coverage(residuals(cases, *fit)));
  return text + unsupported(cases);
}

}  // namespace orrery
