// What all_reduce_perf and its kin print. TestColumns are found by the names of their header, so that old and new
// versions, and further columns, do not matter; what mpirun or srun put before each line is taken off.
#include <charconv>
#include <cmath>
#include <optional>
#include <regex>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "models/error.h"
#include "sim/import.h"
#include "sim/timing.h"

namespace orrery {
namespace {

// "[1,0]<stdout>: ", "[0] ", "0: ", "node7: " (mpirun --tag-output, srun --label, pdsh).
std::string without_prefix(const std::string& line) {
  static const std::regex prefix(R"(^(\[[0-9,]+\](<[a-z]+>:)?\s*|[0-9]+:\s|[A-Za-z][\w.-]*:\s))");
  std::smatch found;
  return std::regex_search(line, found, prefix) ? line.substr(found.length()) : line;
}

std::vector<std::string> split_words(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string w; in >> w;) words.push_back(w);
  return words;
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
  std::vector<std::size_t> time, wrong;  // out of place, in place
};

// "# size count type redop root time algbw busbw #wrong time ..."; "error" in old versions, whose figure is a
// difference, not a count.
std::optional<TestColumns> test_columns(const std::string& line) {
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
    std::istringstream in{std::string(text)};
    for (std::string line; std::getline(in, line);) {
      ++line_;
      if (!line.empty() && line.back() == '\r') line.pop_back();
      take(without_prefix(line));
    }
    if (!columns_) fail("there is no header with the columns 'size' and 'time'; give the whole output");
    if (result_.transfers.empty() && result_.refused.empty()) fail("there is no row below the header");
    return std::move(result_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw Error(fmt::format("{}:{}: {}", path_, line_, what)); }

  void take(const std::string& line) {
    if (auto columns = test_columns(line)) {
      columns_ = std::move(columns);
    } else if (line.find("_perf") != std::string::npos) {
      name_program(line);
    } else if (!line.empty() && line[0] == '#') {
      comment(line);
    } else if (const auto words = split_words(line);
               words.size() >= 5 && is_integer(words[0]) && is_integer(words[1])) {
      if (!columns_) fail("a row of figures before the header that names its columns; give the whole output");
      row(words);
    }
  }

  // A new test: in the header of new versions, or in the command line that a script has echoed.
  void name_program(const std::string& line) {
    static const std::regex program(R"(([A-Za-z_]+)_perf)");
    std::smatch found;
    if (!std::regex_search(line, found, program)) return;
    const std::string kind = nccl_tests_kind(found[1].str());
    if (line.find("concluded") == std::string::npos && started_) ranks_ = 0, hosts_.clear(), started_ = false;
    program_ = kind;
    unknown_ = kind.empty() ? found[0].str() : "";
  }

  void comment(const std::string& line) {
    static const std::regex rank(
        R"(^#\s+Rank\s+\d+\s+(?:Group\s+(\d+)\s+)?Pid\s+\d+\s+on\s+(\S+)\s+device\s+\d+\s+\[[^\]]*\]\s*(.*)$)");
    static const std::regex version(R"(nccl-tests version (\S+).*nccl-library=(\d+))");
    std::smatch found;
    if (std::regex_search(line, found, rank)) {
      if (started_) ranks_ = 0, hosts_.clear(), started_ = false;  // the next test of the same file
      if (found[1].matched && found[1].str() != "0") return;       // groups run at once, each by itself
      ++ranks_;
      hosts_.insert(found[2]);
      result_.fingerprint.emplace("device", found[3]);
    } else if (std::regex_search(line, found, version)) {
      result_.fingerprint.emplace("nccl-tests", found[1]);
      result_.fingerprint.emplace("nccl", found[2]);
    }
  }

  void refuse(const std::string& reason) { ++result_.refused[reason]; }

  // The figure of a column; nullopt for N/A. Anything else is a broken file.
  std::optional<double> at(const std::vector<std::string>& words, std::size_t column) const {
    if (words[column] == "N/A") return std::nullopt;
    const auto value = figure_of(words[column]);
    if (!value || !std::isfinite(*value))
      fail(fmt::format("'{}' is '{}', no figure; run the test again", columns_->names[column], words[column]));
    return value;
  }

  void row(std::vector<std::string> words) {
    started_ = true;
    const TestColumns& c = *columns_;
    // Old versions print nothing for the operator of collectives that have none.
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
    std::optional<double> us;  // out of place, where it was measured
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
  std::string program_, unknown_;  // the kind that is measured; a program whose kind no plan has
  std::int64_t ranks_ = 0;
  std::set<std::string> hosts_;
  bool started_ = false;  // a row of the test has been read
};

}  // namespace

Imported import_nccl_tests(const std::string& path, std::string_view text) { return NcclTestsOutput(path).read(text); }

}  // namespace orrery
