#include "sim/generate/compare_text.h"

#include <algorithm>

#include <fmt/format.h>

#include "sim/print/text.h"

namespace orrery {
namespace {

// The tokens per second of the fastest row that fits in memory, or of the fastest row of all if none fits.
double best_rate_of(const std::vector<ComparedGeneration>& rows) {
  double best = 0, fitting = 0;
  for (const ComparedGeneration& row : rows) {
    if (row.report == nullptr) continue;
    best = std::max(best, row.report->tokens_per_s);
    if (row.report->memory.fits()) fitting = std::max(fitting, row.report->tokens_per_s);
  }
  return fitting > 0 ? fitting : best;
}

std::string quoted_cell(const std::string& text) {
  std::string doubled;
  for (const char c : text) doubled += c == '"' ? "\"\"" : std::string(1, c);
  return '"' + doubled + '"';
}

// The text of the largest limit of one token: "weights 61 %".
std::string first_limit(const GenerationReport& r) {
  const GeneratedPass& pass = r.decode.empty() ? r.prefill.front() : r.decode[r.decode.size() / 2];
  const std::string text = text_of(pass.limits);
  return text.substr(0, text.find(','));
}

}  // namespace

Table compared_table(const std::vector<ComparedGeneration>& rows, const std::vector<std::string>& labels) {
  Table t;
  for (const std::string& label : labels) t.columns.push_back({label, "", Align::left});
  for (const Column& column :
       {Column{"batch", ""}, Column{"first token", "s"}, Column{"each token", "ms"}, Column{"all", "s"},
        Column{"time", "/ best"}, Column{"tokens/s", "per GPU"}, Column{"tokens/s", "a sequence"},
        Column{"bandwidth", "%"}, Column{"memory", "GiB"}, Column{"largest", "batch"},
        Column{"a token waits for", "", Align::left}, Column{"fits", "", Align::left}})
    t.columns.push_back(column);
  const double best = best_rate_of(rows);
  for (const ComparedGeneration& row : rows) {
    std::vector<std::string> cells = row.labels;
    cells.resize(labels.size());
    if (row.report == nullptr) {
      cells.resize(t.columns.size() - 1, "-");
      cells.push_back(row.reason);
    } else {
      const GenerationReport& r = *row.report;
      const auto rate = [](double tokens) { return grouped(tokens); };
      cells.insert(cells.end(),
                   {fmt::format("{}", row.batch), fmt::format("{:.3f}", r.first_token_s),
                    fmt::format("{:.2f}", r.token_s * 1e3), fmt::format("{:.2f}", r.total_s),
                    fmt::format("{:.2f}", best / r.tokens_per_s), rate(r.tokens_per_s / static_cast<double>(row.gpus)),
                    r.token_s > 0 ? rate(1 / r.token_s) : "-", fmt::format("{:.1f}", 100 * r.bandwidth_share),
                    fmt::format("{:.2f}", static_cast<double>(r.memory.sum()) / kGiB),
                    fmt::format("{}", r.largest_batch), first_limit(r), r.memory.fits() ? "yes" : "NO"});
    }
    t.rows.push_back(std::move(cells));
  }
  return t;
}

std::string compared_csv(const std::vector<ComparedGeneration>& rows, const std::vector<std::string>& labels) {
  std::string text;
  for (const std::string& label : labels) text += quoted_cell(label) + ',';
  text += "batch,ttft_s,tpot_s,total_s,tokens_per_s,tokens_per_s_per_gpu,mbu,memory_bytes,largest_batch,fits,reason\n";
  for (const ComparedGeneration& row : rows) {
    for (std::size_t i = 0; i < labels.size(); ++i)
      text += quoted_cell(i < row.labels.size() ? row.labels[i] : "") + ',';
    if (row.report == nullptr) {
      text += ",,,,,,,,,," + quoted_cell(row.reason) + "\n";
      continue;
    }
    const GenerationReport& r = *row.report;
    text += fmt::format("{},{},{},{},{},{},{},{},{},{},\n", row.batch, r.first_token_s, r.token_s, r.total_s,
                        r.tokens_per_s, r.tokens_per_s / static_cast<double>(row.gpus), r.bandwidth_share,
                        r.memory.sum(), r.largest_batch, r.memory.fits());
  }
  return text;
}

}  // namespace orrery
