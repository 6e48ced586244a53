#include "sim/cli/page_file.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "models/base/error.h"

namespace orrery {
namespace {

constexpr int kBadPath = 2;  // exit status for a page that cannot be written

// The word with the quotation that a POSIX shell needs: between apostrophes, unless all its characters are harmless.
std::string shell_word(std::string_view word) {
  constexpr std::string_view kHarmless = "-_./=,:+@%";
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [&](unsigned char c) {
    return std::isalnum(c) != 0 || kHarmless.find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

}  // namespace

PageFile::PageFile(const std::optional<std::string>& path) {
  if (!path) return;
  if (path->empty()) throw Error("--html: needs the name of a file", kBadPath);
  try {
    file_.emplace(*path);
  } catch (const Error& error) {
    throw Error(std::string("--html: ") + error.what(), kBadPath);
  }
}

void PageFile::write(const std::string& page) {
  if (!file_) return;
  if (page.empty()) throw Error("--html: this result has no page; leave it out", kBadPath);
  try {
    file_->write(page);
    file_->commit();
  } catch (const Error& error) {
    throw Error(std::string("--html: ") + error.what(), kBadPath);
  }
}

std::string command_words(int argc, const char* const* argv) {
  constexpr std::array<std::string_view, 3> kFlags = {"--quiet", "--json", "--csv"};
  constexpr std::array<std::string_view, 2> kWithValue = {"--html", "--threads"};
  std::string words = "orrery";
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const std::string_view name = word.substr(0, word.find('='));
    if (std::find(kFlags.begin(), kFlags.end(), word) != kFlags.end()) continue;
    if (std::find(kWithValue.begin(), kWithValue.end(), name) != kWithValue.end()) {
      if (name == word) ++i;
      continue;
    }
    words += ' ' + shell_word(word);
  }
  return words;
}

}  // namespace orrery
