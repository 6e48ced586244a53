#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "sim/kernels/kernel_errors.h"
#include "sim/kernels/law_errors.h"
#include "tests/fuzz/fuzz.h"

// Reads a table of measured kernels, whose GPU is told by the file's name, predicts and judges its rows and prints
// them.
void orrery::fuzz::read_kernel_rows(std::string_view bytes) {
  static const std::string path =
      std::filesystem::temp_directory_path() / fmt::format("h100-sxm_fuzz_{}.csv", ::getpid());
  std::ofstream(path) << bytes;
  KernelRows rows;
  try {
    orrery::read_kernel_rows(path, rows);
  } catch (...) {
    std::filesystem::remove(path);
    throw;
  }
  std::filesystem::remove(path);
  constexpr std::size_t kMostRows = 200;  // so that a fuzzer tries many tables
  if (rows.rows.size() > kMostRows) rows.rows.resize(kMostRows);
  const KernelLaws& laws = built_in_kernel_laws();
  static const LawsWithout without = laws_without_each({}, laws, false, {});
  std::vector<LawErrors> judged = judge_laws(rows, laws, without);
  KernelReport report = predict_kernels(std::move(rows), {});
  report.laws = std::move(judged);
  kernels_text(report, {});
  kernels_json(report);
}
