#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace orrery {

inline bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

inline int count(std::string_view text, std::string_view part) {
  int n = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

// Whether every element of some markup is closed, in the order in which it was opened. tests/program/html_test reads
// whole pages by a strict parser of XML; this shows at once which piece is broken.
inline ::testing::AssertionResult is_closed(std::string_view markup) {
  std::vector<std::string> open;
  for (std::size_t at = markup.find('<'); at != std::string_view::npos; at = markup.find('<', at + 1)) {
    const std::size_t end = markup.find('>', at);
    if (end == std::string_view::npos) return ::testing::AssertionFailure() << "no >";
    const std::string_view tag = markup.substr(at + 1, end - at - 1);
    if (tag.starts_with('!') || tag.ends_with('/')) continue;
    const std::string name(
        tag.substr(tag.starts_with('/') ? 1 : 0, tag.find_first_of(" \n/", 1) - (tag.starts_with('/') ? 1 : 0)));
    if (!tag.starts_with('/')) {
      open.push_back(name);
    } else {
      if (open.empty() || open.back() != name)
        return ::testing::AssertionFailure() << "</" << name << "> closes nothing";
      open.pop_back();
    }
  }
  if (!open.empty()) return ::testing::AssertionFailure() << "<" << open.back() << "> is not closed";
  return ::testing::AssertionSuccess();
}

}  // namespace orrery
