#include "sim/topology/xml.h"

#include <algorithm>
#include <sstream>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>

#include "models/base/error.h"

namespace orrery {
namespace {

// The parser calls itself for each level. NCCL's own files have at most ten.
constexpr int kMostLevels = 64;

// Returns the position after the end of a markup that begins at `at`: a comment, a section of text, or a tag, in whose
// quoted values a > ends nothing.
std::size_t end_of_markup(std::string_view text, std::size_t at) {
  for (const auto& [begin, end] :
       {std::pair<std::string_view, std::string_view>{"<!--", "-->"}, {"<![CDATA[", "]]>"}, {"<?", "?>"}}) {
    if (text.substr(at).starts_with(begin)) return std::min(text.size(), text.find(end, at)) + end.size();
  }
  char quote = 0;
  for (; at < text.size(); ++at) {
    if (quote != 0)
      quote = text[at] == quote ? 0 : quote;
    else if (text[at] == '"' || text[at] == '\'')
      quote = text[at];
    else if (text[at] == '>')
      return at + 1;
  }
  return at;
}

bool is_deep(std::string_view text) {
  int level = 0;
  for (std::size_t at = text.find('<'); at < text.size();) {
    const std::size_t end = end_of_markup(text, at);
    const std::string_view tag = text.substr(at, end - at);
    if (tag.starts_with("</"))
      --level;
    else if (!tag.starts_with("<!") && !tag.starts_with("<?") && !tag.ends_with("/>"))
      ++level;
    if (level > kMostLevels) return true;
    at = end < text.size() ? text.find('<', end) : text.size();
  }
  return false;
}

}  // namespace

boost::property_tree::ptree read_nccl_xml(const std::string& text, const std::string& path) {
  if (is_deep(text)) throw Error(fmt::format("{}: is nested more deeply than NCCL nests its files", path));
  boost::property_tree::ptree tree;
  try {
    std::istringstream in(text);
    boost::property_tree::read_xml(in, tree);
  } catch (const boost::property_tree::xml_parser_error& e) {
    throw Error(fmt::format("{}:{}: is no XML: {}", path, e.line(), e.message()));
  }
  return tree;
}

}  // namespace orrery
