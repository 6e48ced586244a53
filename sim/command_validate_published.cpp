#include <atomic>
#include <exception>
#include <thread>

#include <fmt/format.h>

#include "sim/commands.h"
#include "sim/published.h"

namespace orrery {
namespace {

// Workers take the next row each until none is left; every result lies in its row's place.
std::vector<PublishedCase> predict_rows(const std::vector<PublishedRow>& rows, const std::string& profile,
                                        const Common& common) {
  std::vector<PublishedCase> cases(rows.size());
  std::vector<std::exception_ptr> failures(rows.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < rows.size(); i = next++) {
      common.progress(fmt::format("{} of {}: {}", i + 1, rows.size(), rows[i].id));
      try {
        cases[i] = predict_published(rows[i], profile);
      } catch (...) {
        failures[i] = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> workers;
    for (unsigned i = 1; i < common.threads; ++i) workers.emplace_back(work);
    work();
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  return cases;
}

}  // namespace

// Everything is printed at the end, so a user who stops it leaves nothing half done.
Outcome validate_published_command(const ValidateOptions& options, const Common& common) {
  std::vector<PublishedRow> rows;
  for (const std::string& path : options.published) {
    for (PublishedRow& row : read_published(path)) rows.push_back(std::move(row));
  }
  const std::vector<PublishedCase> cases = predict_rows(rows, options.profile, common);
  return {common.json ? published_json(cases) : published_text(cases)};
}

}  // namespace orrery
