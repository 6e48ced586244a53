#include "models/load/tree.h"

#include <algorithm>
#include <map>
#include <sstream>

#include <fmt/format.h>
#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>
#include <nlohmann/json.hpp>

#include "models/base/error.h"
#include "models/base/names.h"

namespace orrery {
namespace {

constexpr std::size_t kMostBytes = 4 << 20;
constexpr std::size_t kMostValues = 100'000;
constexpr std::size_t kDeepest = 32;

std::size_t count_values(const SpecNode& node) {
  std::size_t total = 1;
  for (const SpecNode& item : node.items) total += count_values(item);
  return total;
}

// Builds the tree from the parser's events. Events arrive while the text is being read, so that each limit stops the
// parser early.
class Builder : public YAML::EventHandler {
 public:
  explicit Builder(std::string path, std::vector<TwiceGiven>* twice = nullptr)
      : path_(std::move(path)), twice_(twice) {}

  SpecNode take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { add(leaf(mark, ""), anchor); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    SpecNode node = leaf(mark, value);
    const bool plain_null = tag != "!" && (value == "null" || value == "~" || value == "Null" || value == "NULL");
    if (!plain_null) node.kind = SpecNode::Kind::scalar;
    add(std::move(node), anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) fail(mark, "an alias of something unfinished");
    values_ += count_values(found->second) - 1;
    add(found->second, 0, mark);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, SpecNode::Kind::list, anchor);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, SpecNode::Kind::map, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    SpecNode node;
    YAML::anchor_t anchor = 0;
    bool key_next = true;  // in a map: whether the next scalar in the text is a key
  };

  [[noreturn]] void fail(const YAML::Mark& mark, std::string_view what) const {
    throw Error(printable(fmt::format("{}:{}: {}", path_, mark.line + 1, what)));
  }
  static SpecNode leaf(const YAML::Mark& mark, std::string text) {
    SpecNode node;
    node.line = mark.line + 1;
    node.text = std::move(text);
    return node;
  }
  void open(const YAML::Mark& mark, SpecNode::Kind kind, YAML::anchor_t anchor) {
    if (stack_.size() >= kDeepest) fail(mark, fmt::format("nested deeper than {} levels", kDeepest));
    Open top{leaf(mark, ""), anchor};
    top.node.kind = kind;
    stack_.push_back(std::move(top));
  }
  void close() {
    Open done = std::move(stack_.back());
    stack_.pop_back();
    YAML::Mark mark;
    mark.line = done.node.line - 1;
    add(std::move(done.node), done.anchor, mark);
  }
  void add(SpecNode node, YAML::anchor_t anchor) {
    YAML::Mark mark;
    mark.line = node.line - 1;
    add(std::move(node), anchor, mark);
  }
  void add(SpecNode node, YAML::anchor_t anchor, const YAML::Mark& mark) {
    if (++values_ > kMostValues) fail(mark, fmt::format("more than {} values", kMostValues));
    if (anchor != 0) anchors_[anchor] = node;
    if (stack_.empty()) {
      root_ = std::move(node);
    } else if (Open& top = stack_.back(); top.node.kind == SpecNode::Kind::list) {
      top.node.items.push_back(std::move(node));
    } else if (top.key_next) {
      add_key(top, std::move(node), mark);
    } else {
      top.node.items.push_back(std::move(node));
      top.key_next = true;
    }
  }
  void add_key(Open& top, SpecNode key, const YAML::Mark& mark) {
    if (key.kind != SpecNode::Kind::scalar) fail(mark, "a key must be a plain word");
    const auto same = std::find(top.node.keys.begin(), top.node.keys.end(), key.text);
    if (same != top.node.keys.end()) {
      if (twice_ == nullptr) fail(mark, fmt::format("{}: the key is given twice", key.text.substr(0, 64)));
      twice_->push_back({key.text, mark.line + 1});
      top.node.items.erase(top.node.items.begin() + (same - top.node.keys.begin()));
      top.node.keys.erase(same);
    }
    top.node.keys.push_back(std::move(key.text));
    top.key_next = false;
  }

  std::string path_;
  std::vector<TwiceGiven>* twice_;
  SpecNode root_;
  std::vector<Open> stack_;
  std::map<YAML::anchor_t, SpecNode> anchors_;
  std::size_t values_ = 0;
};

}  // namespace

SpecNode* SpecNode::find(std::string_view key) {
  const auto found = std::find(keys.begin(), keys.end(), key);
  const auto index = static_cast<std::size_t>(found - keys.begin());
  return index < items.size() ? &items[index] : nullptr;
}

const SpecNode* SpecNode::find(std::string_view key) const { return const_cast<SpecNode*>(this)->find(key); }

SpecNode& SpecNode::insert(std::string_view key) {
  if (SpecNode* found = find(key)) return *found;
  kind = Kind::map;
  keys.emplace_back(key);
  return items.emplace_back();
}

SpecNode parse_tree(std::string_view text, const std::string& path, std::vector<TwiceGiven>* twice) {
  if (text.size() > kMostBytes) throw Error(fmt::format("{}: larger than {} MiB", path, kMostBytes >> 20));
  if (text.find('\0') != std::string_view::npos) throw Error(fmt::format("{}: not a text file", path));
  std::istringstream stream{std::string(text)};
  Builder builder(path, twice);
  try {
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) return {};
    SpecNode root = builder.take();
    Builder second(path, twice);
    if (parser.HandleNextDocument(second)) throw Error(fmt::format("{}: more than one document (---)", path));
    return root;
  } catch (const YAML::DeepRecursion& e) {
    throw Error(fmt::format("{}:{}: nested deeper than {} levels", path, e.mark.line + 1, kDeepest));
  } catch (const YAML::Exception& e) {
    throw Error(printable(fmt::format("{}:{}: not YAML: {}", path, e.mark.line + 1, e.msg)));
  }
}

namespace {

// Returns a scalar as YAML: in quotes if without them it could be read as something else than a string.
std::string scalar_text(const std::string& text) {
  const bool plain = !text.empty() && text.find_first_of(":#{}[],&*!|>'\"%@`\\\n") == std::string::npos &&
                     text.front() != ' ' && text.back() != ' ' && text.front() != '-' && text.front() != '?';
  return plain ? text : nlohmann::json(text).dump();
}

void print_node(const SpecNode& node, const std::string& indent, std::string& out) {
  if (node.kind == SpecNode::Kind::null) out += " null\n";
  if (node.kind == SpecNode::Kind::scalar) out += " " + scalar_text(node.text) + "\n";
  const bool list = node.kind == SpecNode::Kind::list, map = node.kind == SpecNode::Kind::map;
  if (!list && !map) return;
  if (node.items.empty()) {
    out += list ? " []\n" : " {}\n";
    return;
  }
  if (!indent.empty()) out += "\n";
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    out += indent + (list ? "-" : scalar_text(node.keys[i]) + ":");
    print_node(node.items[i], indent + "  ", out);
  }
}

}  // namespace

std::string print_tree(const SpecNode& root) {
  std::string out;
  print_node(root, "", out);
  return out;
}

}  // namespace orrery
