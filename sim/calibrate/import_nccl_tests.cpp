// Reads the output of nccl-tests (all_reduce_perf and others). Columns are found by the names in the header, so that
// further columns in other versions do no harm; prefixes that mpirun or srun put before each line are removed.
#include <charconv>
#include <cmath>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/base/names.h"
#include "models/base/sensible.h"
#include "sim/calibrate/import.h"
#include "sim/calibrate/line_scanner.h"
#include "sim/engine/timing.h"

namespace orrery {
namespace {

// Removes a prefix "[1,0]<stdout>: ", "[0] ", "0: ", "node7: " (mpirun --tag-output, srun --label, pdsh) from a line.
std::string_view without_prefix(std::string_view line) {
  LineScanner scan(line);
  if (scan.skip("[")) {
    if (scan.take_while([](char c) { return is_digit(c) || c == ','; }).empty() || !scan.skip("]")) return line;
    LineScanner stream = scan;
    const bool named = stream.skip("<") && !stream.take_while(is_letter).empty() && stream.skip(">:");
    if (named) scan = stream;
    scan.spaces();
    return scan.rest();
  }
  const bool number = !scan.take_while(is_digit).empty();
  if (!number) {
    if (line.empty() || !is_letter(line[0])) return line;
    scan.take_while([](char c) { return is_letter(c) || is_digit(c) || c == '_' || c == '.' || c == '-'; });
  }
  if (!scan.skip(":") || scan.done() || !is_space(scan.rest()[0])) return line;
  return scan.rest().substr(1);
}

std::vector<std::string> split_words(std::string_view line) {
  LineScanner scan(line);
  std::vector<std::string> words;
  for (scan.spaces(); !scan.done(); scan.spaces()) words.emplace_back(scan.word());
  return words;
}

// The name of the benchmark in a command line: "all_reduce_perf" in "./build/all_reduce_perf -b 8"; "" where no word
// ends in "_perf".
std::string_view program_in(std::string_view line) {
  constexpr std::string_view kEnd = "_perf";
  const auto of_name = [](char c) { return is_letter(c) || c == '_'; };
  for (LineScanner scan(line); !scan.done();) {
    const std::string_view name = scan.take_while(of_name);
    const std::size_t end = name.rfind(kEnd);
    if (end != std::string_view::npos && end > 0) return name.substr(0, end + kEnd.size());
    scan.take_while([&](char c) { return !of_name(c); });
  }
  return "";
}

// A rank of a test, as nccl-tests prints it: "#  Rank  0 Group  0 Pid 123 on node7 device 0 [0x1b] NVIDIA H100". Old
// versions of nccl-tests print no group.
struct TestedRank {
  std::int64_t group = 0;
  std::string_view host, device;
};
std::optional<TestedRank> tested_rank(std::string_view line) {
  LineScanner scan(line);
  TestedRank rank;
  const auto number_after = [&](std::string_view word) {
    return scan.spaces() && scan.skip(word) && scan.spaces() && scan.whole(INT64_MAX);
  };
  if (!scan.skip("#") || !number_after("Rank")) return std::nullopt;
  LineScanner group = scan;
  if (group.spaces() && group.skip("Group") && group.spaces()) {
    const auto number = group.whole(INT64_MAX);
    if (!number) return std::nullopt;
    rank.group = *number;
    scan = group;
  }
  if (!number_after("Pid") || !scan.spaces() || !scan.skip("on") || !scan.spaces()) return std::nullopt;
  rank.host = scan.word();
  if (rank.host.empty() || !number_after("device") || !scan.spaces() || !scan.skip("[") || !scan.skip_past("]"))
    return std::nullopt;
  scan.spaces();
  rank.device = scan.rest();
  return rank;
}

std::optional<double> figure_of(const std::string& word) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

bool is_integer(const std::string& word) {
  return !word.empty() && word.find_first_not_of("0123456789-") == std::string::npos;
}

struct TestColumns {
  std::vector<std::string> names;
  std::size_t redop = 0, size = 0;
  // Indices of the columns of times, and of the columns that count wrong results; in each list the column of the
  // out-of-place run comes first, then that of the in-place run.
  std::vector<std::size_t> time, wrong;
};

// Reads the header "# size count type redop root time algbw busbw #wrong time ...". Old versions of nccl-tests have a
// column "error" (a numerical difference) instead of "#wrong" (a count).
std::optional<TestColumns> test_columns(std::string_view line) {
  if (line.empty() || line[0] != '#') return std::nullopt;
  TestColumns c;
  c.names = split_words(line.substr(1));
  bool bandwidth = false;
  c.size = c.redop = c.names.size();
  for (std::size_t i = 0; i < c.names.size(); ++i) {
    if (c.names[i] == "size") c.size = i;
    if (c.names[i] == "redop") c.redop = i;
    if (c.names[i] == "time" || c.names[i] == "cputime") c.time.push_back(i);
    if (c.names[i] == "#wrong") c.wrong.push_back(i);
    bandwidth |= c.names[i] == "busbw";
  }
  if (!bandwidth || c.size == c.names.size() || c.time.empty()) return std::nullopt;
  return c;
}

class NcclTestsOutput {
 public:
  explicit NcclTestsOutput(const std::string& path) : path_(path) {}

  Imported read(std::string_view text) {
    for (std::string_view line; next_line(text, line);) {
      ++line_;
      take(without_prefix(line));
    }
    if (!columns_) fail("there is no header with the columns 'size' and 'time'; give the whole output");
    if (result_.transfers.empty() && result_.refused.empty()) fail("there is no row below the header");
    return std::move(result_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(printable(fmt::format("{}:{}: {}", path_, line_, what)));
  }

  void take(std::string_view line) {
    if (auto columns = test_columns(line)) {
      columns_ = std::move(columns);
    } else if (line.find("_perf") != std::string_view::npos) {
      name_program(line);
    } else if (!line.empty() && line[0] == '#') {
      comment(line);
    } else if (const auto words = split_words(line);
               words.size() >= 5 && is_integer(words[0]) && is_integer(words[1])) {
      if (!columns_) fail("a row of figures before the header that names its columns; give the whole output");
      row(words);
    }
  }

  // Starts a new test. New versions of nccl-tests name the program in the header; with old ones the name is in the
  // command line, if the script that ran the test has printed that.
  void name_program(std::string_view line) {
    const std::string_view program = program_in(line);
    if (program.empty()) return;
    const std::string kind = nccl_tests_kind(program);
    if (line.find("concluded") == std::string_view::npos && started_) ranks_ = 0, hosts_.clear(), started_ = false;
    program_ = kind;
    unknown_ = kind.empty() ? program.substr(0, sensible::kLongestWord) : "";
  }

  void comment(std::string_view line) {
    constexpr std::string_view kVersion = "nccl-tests version ", kLibrary = "nccl-library=";
    LineScanner scan(line);
    if (const auto rank = tested_rank(line)) {
      // A line about a rank after lines of figures begins the next test in the file, so the ranks and hosts of the
      // previous test are discarded.
      if (started_) ranks_ = 0, hosts_.clear(), started_ = false;
      // Only the ranks of group 0 are counted, because all groups run at the same time, each with a collective of its
      // own.
      if (rank->group != 0) return;
      ++ranks_;
      hosts_.emplace(rank->host);
      result_.fingerprint.emplace("device", rank->device);
    } else if (scan.skip_past(kVersion)) {
      const std::string_view version = scan.word();
      const std::string_view library = scan.skip_past(kLibrary) ? scan.take_while(is_digit) : "";
      if (version.empty() || library.empty()) return;
      result_.fingerprint.emplace("nccl-tests", version);
      result_.fingerprint.emplace("nccl", library);
    }
  }

  void refuse(const std::string& reason) { ++result_.refused[reason]; }

  // The number in a column; nullopt for "N/A". Throws Error for any other text, which only a broken file has.
  std::optional<double> at(const std::vector<std::string>& words, std::size_t column) const {
    if (words[column] == "N/A") return std::nullopt;
    const auto value = figure_of(words[column]);
    if (!value || !(std::abs(*value) <= sensible::kMostSize))
      fail(fmt::format("'{}' is '{}', no figure; run the test again",
                       columns_->names[column].substr(0, sensible::kLongestWord),
                       words[column].substr(0, sensible::kLongestWord)));
    return value;
  }

  void row(std::vector<std::string> words) {
    started_ = true;
    const TestColumns& c = *columns_;
    // Old versions of nccl-tests print nothing in the column redop for collectives without a reduction operator; new
    // versions print "none".
    if (words.size() + 1 == c.names.size() && c.redop < words.size() && figure_of(words[c.redop]))
      words.insert(words.begin() + static_cast<std::ptrdiff_t>(c.redop), "none");
    if (words.size() < c.names.size())
      fail(fmt::format("a row of {} figures under a header of {} columns; the line is cut short", words.size(),
                       c.names.size()));
    if (!unknown_.empty()) return refuse(unknown_ + " measures nothing that a plan has");
    const std::string kind = program_.empty() ? nccl_tests_kind(path_) : program_;
    if (kind.empty()) fail("which collective this is is not said; name the file after it, as in all_reduce_perf.txt");
    if (ranks_ == 0)
      fail("how many ranks took part is not said: the lines '#  Rank 0 ...' are missing; give the whole output");
    if (ranks_ == 1) return refuse("one rank alone moves nothing");
    take_row(words, kind);
  }

  void take_row(const std::vector<std::string>& words, const std::string& kind) {
    const TestColumns& c = *columns_;
    for (const std::size_t w : c.wrong) {
      if (at(words, w).value_or(0) > 0) return refuse("the result was wrong");
    }
    // The time of a message size in microseconds: that of the out-of-place run if there was one, else of the in-place
    // run.
    std::optional<double> us;
    for (const std::size_t t : c.time) {
      if (!us) us = at(words, t);
    }
    const double bytes = at(words, c.size).value_or(0);
    if (bytes <= 0) return refuse("no bytes were moved");
    if (!us || *us <= 0) return refuse("no time was measured");
    TransferRow row = nccl_tests_row(kind, ranks_, std::ssize(hosts_));
    row.bytes = static_cast<Bytes>(bytes);
    row.seconds = *us * kMicrosecond;
    result_.transfers.push_back(std::move(row));
  }

  std::string path_;
  std::size_t line_ = 0;
  Imported result_;
  std::optional<TestColumns> columns_;
  // program_: the kind of collective that the test measures; unknown_: the test's program if it measures no known kind.
  std::string program_, unknown_;
  std::int64_t ranks_ = 0;
  std::set<std::string> hosts_;
  bool started_ = false;  // whether a row of figures of the current test has been read
};

}  // namespace

Imported import_nccl_tests(const std::string& path, std::string_view text) { return NcclTestsOutput(path).read(text); }

}  // namespace orrery
