#include <algorithm>
#include <atomic>
#include <exception>
#include <filesystem>
#include <thread>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/base/output_file.h"
#include "sim/cli/commands.h"
#include "sim/generate/served.h"
#include "sim/page/validate.h"
#include "sim/published/few_steps.h"
#include "sim/published/fit.h"
#include "sim/published/interval_fit.h"
#include "sim/published/predict.h"

namespace orrery {
namespace {

// Returns a function that calls `body` for 0 to n - 1 on several threads; each thread takes the next number until none
// is left.
ForEach on_threads(unsigned threads) {
  return [threads](std::size_t n, const std::function<void(std::size_t)>& body) {
    std::vector<std::exception_ptr> failures(n);
    std::atomic<std::size_t> next = 0;
    const auto work = [&] {
      for (std::size_t i = next++; i < n; i = next++) {
        try {
          body(i);
        } catch (...) {
          failures[i] = std::current_exception();
        }
      }
    };
    {
      std::vector<std::jthread> workers;
      for (unsigned i = 1; i < threads; ++i) workers.emplace_back(work);
      work();
    }
    for (const std::exception_ptr& failure : failures) {
      if (failure) std::rethrow_exception(failure);
    }
  };
}

// Predicts published steps on several threads. Element i of the result is for rows[i].
std::vector<PublishedCase> predict_rows(const std::vector<PublishedRow>& rows, const std::string& profile,
                                        const Common& common) {
  std::vector<PublishedCase> cases(rows.size());
  on_threads(common.threads)(rows.size(), [&](std::size_t i) {
    common.progress(fmt::format("{} of {}: {}", i + 1, rows.size(), rows[i].id));
    cases[i] = predict_published(rows[i], profile);
  });
  return cases;
}

Refit refit_rows(const std::vector<PublishedRow>& rows, LeftOutBy by, const Common& common) {
  std::atomic<std::size_t> done = 0;
  const ForEach run = on_threads(common.threads);
  return refit(
      rows,
      [&](std::size_t n, const std::function<void(std::size_t)>& body) {
        done = 0;
        run(n, [&](std::size_t i) {
          common.progress(fmt::format("leaving sources out: {} of {}", ++done, n));
          body(i);
        });
      },
      by);
}

// Throws Error if options of published steps contradict each other.
void check(const ValidateOptions& options) {
  const bool fits = options.leave_one_out;
  if (!options.priors.empty())
    throw Error("--priors: needs --from-steps; priors are those of steps of unknown stacks", 2);
  if (fits && !options.profile.empty())
    throw Error("--leave-one-out: fits numbers of the built-in profiles; leave --profile out", 2);
  if (!fits && !options.intervals.empty())
    throw Error("--intervals: needs --leave-one-out; intervals are those of steps that constants were fitted without",
                2);
  if (!fits && options.by != "source") throw Error("--by: says what --leave-one-out leaves out; add that", 2);
  if (options.by != "source" && !(options.intervals.empty() && options.page.empty()))
    throw Error("--by: --intervals and --page are of sources left out; leave them out, or --by", 2);
}

void save(const std::string& path, const std::string& text) {
  if (path.empty()) return;
  OutputFile file(path);
  file.write(text);
  file.commit();
}

// Judges how well a few steps of each source tell the time of the others, with a stack that is not known.
Outcome judge_from_steps(const std::vector<PublishedRow>& rows, const ValidateOptions& options, const Common& common) {
  if (options.leave_one_out || !options.profile.empty() || options.by != "source")
    throw Error("--from-steps: makes its own profiles; leave --leave-one-out, --by and --profile out", 2);
  const auto drawn = static_cast<std::size_t>(options.from_steps);
  std::atomic<std::size_t> done = 0;
  const ForEach run = on_threads(common.threads);
  const JudgedSteps all =
      judge_few_steps(rows, drawn, [&](std::size_t n, const std::function<void(std::size_t)>& body) {
        run(n, [&](std::size_t i) {
          common.progress(fmt::format("steps of unknown stacks: {} of {}", ++done, n));
          body(i);
        });
      });
  const std::vector<FewSteps>& judged = all.groups;
  save(options.priors, step_priors_json(all.priors, all.sources));
  save(options.page, few_steps_page(judged, drawn));
  const Table table = few_steps_table(judged, drawn);
  Outcome outcome{common.json ? few_steps_json(judged, drawn) : print(table, "", common.style.columns)};
  if (common.page)
    outcome.page = validate_page({.title = "Steps of unknown stacks, predicted from a few of them",
                                  .sections = {{"Errors of the step time by source", {}, table, {}}},
                                  .command = common.command,
                                  .version = common.version});
  return outcome;
}

// Reorders the sections for the HTML page: it begins with summaries of the errors, and ends with the three tables of
// single steps (predicted, doubtful, not supported), with which the printed report begins.
std::vector<Section> summaries_first(std::vector<Section> sections) {
  constexpr std::ptrdiff_t kOfRows = 3;
  std::rotate(sections.begin(), sections.begin() + kOfRows, sections.end());
  return sections;
}

std::string rows_line(const std::vector<PublishedCase>& cases) {
  const auto predicted = std::ranges::count_if(cases, [](const PublishedCase& c) { return c.reason.empty(); });
  return fmt::format("{} published measurements, of which {} are predicted", cases.size(), predicted);
}

}  // namespace

// Compares predictions with published measurements of training steps. All output is printed at the end, so that no
// half-written files remain if the user stops the command.
Outcome validate_published_command(const ValidateOptions& options, const Common& common) {
  std::vector<PublishedRow> rows;
  const PublishedFacts facts = options.without_inferred ? PublishedFacts::read : PublishedFacts::all;
  for (const std::string& path : options.published) {
    for (PublishedRow& row : read_published(path, facts)) rows.push_back(std::move(row));
  }
  if (options.from_steps > 0) return judge_from_steps(rows, options, common);
  check(options);
  const std::vector<PublishedCase> cases = predict_rows(rows, options.profile, common);
  Refit fit;
  LeftOutErrors errors;
  if (options.leave_one_out) {
    const LeftOutBy by = find_left_out(options.by);
    if (by == LeftOutBy::model) name_models(rows);
    fit = refit_rows(rows, by, common);
    errors = left_out_errors(cases, fit);
  }
  save(options.scatter, scatter_svg(cases));
  if (options.leave_one_out) save(options.intervals, intervals_json(interval_classes(residuals(cases, fit))));
  save(options.rows, validated_rows_json(validated_rows(cases)));
  const std::string picture = std::filesystem::path(options.scatter).filename().string();
  save(options.page, published_page(cases, options.leave_one_out ? &fit : nullptr, picture));
  Outcome outcome;
  if (common.json)
    outcome.text = options.leave_one_out ? refit_json(fit, errors) : published_json(cases);
  else
    outcome.text = published_text(cases, common.style) + (options.leave_one_out ? '\n' + refit_text(fit, errors) : "");
  if (options.leave_one_out && fit.by == LeftOutBy::source && !common.json)
    outcome.text += '\n' + coverage_text(interval_coverage(residuals(cases, fit)));
  if (common.page)
    outcome.page = validate_page({.title = "Published steps, predicted against measured",
                                  .under = {rows_line(cases)},
                                  .plots = published_plots(cases),
                                  .sections = summaries_first(published_sections(cases)),
                                  .command = common.command,
                                  .version = common.version});
  return outcome;
}

// Compares predictions with published measurements of inference, read from files.
Outcome validate_served_command(const ValidateOptions& options, const Common& common) {
  std::vector<ServedRow> rows;
  for (const std::string& path : options.served) {
    for (ServedRow& row : read_served(path)) rows.push_back(std::move(row));
  }
  std::vector<ServedCase> cases(rows.size());
  on_threads(common.threads)(rows.size(), [&](std::size_t i) {
    common.progress(fmt::format("{} of {}: {}", i + 1, rows.size(), rows[i].id));
    cases[i] = predict_served(rows[i]);
  });
  Outcome outcome{common.json ? served_json(cases) : served_text(cases, common.style)};
  if (common.page)
    outcome.page = validate_page({.title = "Measured inference, predicted against measured",
                                  .plots = served_plots(cases),
                                  .sections = served_sections(cases),
                                  .command = common.command,
                                  .version = common.version});
  return outcome;
}

}  // namespace orrery
