#pragma once

// A reader of SVG files for tests: elements with their attributes, texts and positions on the page.
#include <cctype>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace orrery::test {

// An element of an SVG file. parent: index of the enclosing element; -1 for the root. x, y: how far the element's
// coordinates are moved by the groups around it (transform="translate(x y)").
struct SvgElement {
  std::string tag, text;
  std::map<std::string, std::string> attributes;
  int parent = -1;
  double x = 0, y = 0;

  std::string attribute(const std::string& name) const {
    const auto at = attributes.find(name);
    return at == attributes.end() ? "" : at->second;
  }
  double figure(const std::string& name) const { return attributes.contains(name) ? std::stod(attribute(name)) : 0; }
  bool is(const std::string& name) const { return attribute("class") == name; }
};

// Reads a well-formed XML file that has elements, attributes in double quotes and text alone, as our pictures do.
// Throws std::runtime_error for any other file.
class SvgReader {
 public:
  static std::vector<SvgElement> read(const std::string& text) {
    SvgReader reader(text);
    reader.read_all();
    return std::move(reader.elements_);
  }

 private:
  explicit SvgReader(const std::string& text) : text_(text) {}

  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error(what + " at byte " + std::to_string(at_));
  }
  void expect(const std::string& word) {
    if (text_.compare(at_, word.size(), word) != 0) fail("no " + word);
    at_ += word.size();
  }
  void skip_blanks() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  std::string name() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '-')) ++at_;
    if (at_ == begin) fail("no name");
    return text_.substr(begin, at_ - begin);
  }
  // Reads text up to one of the characters in `ends`, with its entities replaced.
  std::string characters(const std::string& ends) {
    static const std::map<std::string, std::string> entities = {
        {"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&#39;", "'"}};
    std::string result;
    while (at_ < text_.size() && ends.find(text_[at_]) == std::string::npos) {
      const auto byte = static_cast<unsigned char>(text_[at_]);
      if (byte == '<' || (byte < 0x20 && byte != '\n')) fail("a character that is not allowed");
      if (byte != '&') {
        result += text_[at_++];
        continue;
      }
      const std::string entity = text_.substr(at_, text_.find(';', at_) - at_ + 1);
      if (!entities.contains(entity)) fail("an unknown entity");
      result += entities.at(entity);
      at_ += entity.size();
    }
    return result;
  }

  void read_all() {
    expect("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    read_element(-1);
    skip_blanks();
    if (at_ != text_.size()) fail("text after the root");
  }

  // Reads the attributes of an element; returns whether it ends at once, without contents.
  bool read_attributes(SvgElement& element) {
    for (skip_blanks(); at_ < text_.size() && text_[at_] != '>' && text_[at_] != '/'; skip_blanks()) {
      const std::string key = name();
      expect("=\"");
      if (!element.attributes.emplace(key, characters("\"")).second) fail("the attribute " + key + " twice");
      expect("\"");
    }
    const bool ends = at_ < text_.size() && text_[at_] == '/';
    if (ends) ++at_;
    expect(">");
    return ends;
  }

  void read_element(int parent) {
    expect("<");
    SvgElement element;
    element.tag = name();
    element.parent = parent;
    if (parent >= 0) {
      element.x = elements_[static_cast<std::size_t>(parent)].x;
      element.y = elements_[static_cast<std::size_t>(parent)].y;
    }
    const bool ends = read_attributes(element);
    if (const std::string moved = element.attribute("transform"); !moved.empty()) {
      if (!moved.starts_with("translate(")) fail("another transform than translate");
      const std::size_t blank = moved.find(' ');
      element.x += std::stod(moved.substr(10, blank - 10));
      element.y += std::stod(moved.substr(blank));
    }
    const auto own = static_cast<int>(elements_.size());
    elements_.push_back(element);
    if (ends) return;
    while (true) {
      elements_[static_cast<std::size_t>(own)].text += characters("<");
      if (text_.compare(at_, 2, "</") == 0) break;
      read_element(own);
    }
    expect("</" + element.tag + ">");
  }

  const std::string& text_;
  std::size_t at_ = 0;
  std::vector<SvgElement> elements_;
};

}  // namespace orrery::test
