#include "sim/print/fold.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "models/base/names.h"
#include "sim/print/table.h"

namespace orrery {
namespace {

constexpr std::size_t kNarrowest = 40;  // for narrower terminals, text is folded to this width
constexpr std::string_view kBreaks = "-/,._=:|";
constexpr std::string_view kCommand = ": orrery ";

// The number of bytes of a long word to print on the current line: those of the longest beginning of the word, at most
// `columns` wide, that ends after a mark such as - or /; or of the longest beginning of all, if there is no such mark
// in its second half.
std::size_t piece_of(std::string_view word, std::size_t columns) {
  std::size_t whole = 0, marked = 0;
  for (std::size_t i = 0; i < word.size(); ++i) {
    if (width_of(word.substr(0, i + 1)) > columns) break;
    const bool inside = i + 1 < word.size() && (static_cast<unsigned char>(word[i + 1]) & 0xC0U) == 0x80U;
    if (inside) continue;
    whole = i + 1;
    if (kBreaks.find(word[i]) != std::string_view::npos) marked = i + 1;
  }
  return marked * 2 > whole ? marked : std::max<std::size_t>(whole, 1);
}

// The column at which the second and further lines of a folded line begin.
std::size_t hanging(std::string_view line, std::size_t columns) {
  const std::size_t first = std::min(line.find_first_not_of(' '), line.size());
  const std::size_t gap = line.find("  ", first);
  const std::size_t word = gap == std::string_view::npos ? gap : line.find_first_not_of(' ', gap);
  const bool two = word != std::string_view::npos && word * 2 <= columns;
  return two ? width_of(line.substr(0, word)) : std::min(first + 2, columns / 2);
}

std::string folded(std::string_view line, std::size_t columns) {
  const std::size_t blanks = std::min(line.find_first_not_of(' '), line.size());
  const bool command = line.find(kCommand) != std::string_view::npos;
  const std::size_t room = columns - (command ? 2 : 0), later = hanging(line, columns);
  std::size_t indent = std::min(blanks, columns / 2);
  std::string text;
  for (std::string_view rest = line.substr(blanks); !rest.empty(); indent = later) {
    const std::string first = wrapped(rest, room - indent).front();
    text += std::string(indent, ' ') + first;
    rest.remove_prefix(first.size());
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    text += rest.empty() || !command ? "\n" : " \\\n";
  }
  return text;
}

}  // namespace

std::vector<std::string> wrapped(std::string_view text, std::size_t columns) {
  std::vector<std::string> lines(1);
  std::size_t width = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t word = std::min(text.find_first_not_of(' ', at), text.size());
    const std::size_t end = std::min(text.find(' ', word), text.size());
    const std::size_t blanks = word - at, letters = width_of(text.substr(word, end - word));
    if (width > 0 && width + blanks + letters > columns) {
      lines.emplace_back();
      width = 0;
    } else {
      lines.back().append(blanks, ' ');
      width += blanks;
    }
    std::string_view rest = text.substr(word, end - word);
    while (width_of(rest) > columns) {
      const std::size_t piece = piece_of(rest, columns);
      lines.back() += rest.substr(0, piece);
      lines.emplace_back();
      rest.remove_prefix(piece);
      width = 0;
    }
    lines.back() += rest;
    width += width_of(rest);
    at = end;
  }
  return lines;
}

std::string fold(std::string_view text, std::size_t columns) {
  std::string out;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    const std::string_view line = text.substr(start, end - start);
    const bool wide = columns > 0 && width_of(line) > columns;
    out += wide ? folded(line, columns) : std::string(line) + (end < text.size() ? "\n" : "");
    start = end + 1;
  }
  return out;
}

std::string one_line(std::string_view message) {
  constexpr std::size_t kMost = 200, kBegin = 60, kEnd = 20;  // bytes of a word; more than folders are deep
  std::string line;
  while (!message.empty()) {
    const std::size_t size = std::min(message.find(' '), message.size());
    const std::string_view word = message.substr(0, size);
    if (size <= kMost) {
      line += word;
    } else {
      std::size_t end = size - kEnd;
      while (end < size && (static_cast<unsigned char>(word[end]) & 0xC0U) == 0x80) ++end;
      line += fmt::format("{}...{}", first_characters(word, kBegin), word.substr(end));
    }
    if (size < message.size()) line += ' ';
    message.remove_prefix(std::min(size + 1, message.size()));
  }
  return printable(std::move(line));
}

std::size_t terminal_columns(bool terminal) {
  const char* given = std::getenv("COLUMNS");
  std::size_t columns = given == nullptr ? 0 : std::strtoul(given, nullptr, 10);
  winsize size{};
  if (columns == 0 && terminal && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) columns = size.ws_col;
  return columns == 0 ? 0 : std::max(columns, kNarrowest);
}

}  // namespace orrery
