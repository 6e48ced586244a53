#pragma once

// Checks that must hold of every picture of a plan (sim/picture/picture.h), whatever the spec.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "models/plan/plan.h"
#include "sim/explain/formulas.h"
#include "sim/picture/shown_ranks.h"
#include "sim/print/svg.h"
#include "sim/report/report.h"
#include "tests/svg_reader.h"

namespace orrery::test {

// Holds a picture to its plan, and lists what is wrong with it.
class PictureChecks {
 public:
  PictureChecks(const std::string& svg, const Plan& plan, const Report& report) : plan_(plan), report_(report) {
    try {
      elements_ = SvgReader::read(svg);
      check_alone(svg);
      check_ranks();
      check_matrices();
      check_groups();
      check_texts();
    } catch (const std::exception& e) {
      wrong_.push_back(fmt::format("not well formed: {}", e.what()));
    }
  }

  const std::vector<std::string>& wrong() const { return wrong_; }

 private:
  void require(bool holds, const std::string& what) {
    if (!holds && wrong_.size() < 20) wrong_.push_back(what);
  }

  std::vector<const SvgElement*> of_class(const std::string& name) const {
    std::vector<const SvgElement*> found;
    for (const SvgElement& e : elements_) {
      if (e.is(name)) found.push_back(&e);
    }
    return found;
  }

  const SvgElement* around(const SvgElement& e, const std::string& name) const {
    for (int p = e.parent; p >= 0; p = elements_[static_cast<std::size_t>(p)].parent) {
      if (elements_[static_cast<std::size_t>(p)].is(name)) return &elements_[static_cast<std::size_t>(p)];
    }
    return nullptr;
  }

  static Box box_of(const SvgElement& e) {
    return {e.x + e.figure("x"), e.y + e.figure("y"), e.figure("width"), e.figure("height")};
  }

  static bool contains(const Box& outer, const Box& inner, double slack) {
    return inner.x >= outer.x - slack && inner.y >= outer.y - slack &&
           inner.x + inner.width <= outer.x + outer.width + slack &&
           inner.y + inner.height <= outer.y + outer.height + slack;
  }

  // The file needs nothing else: no script, no other file.
  void check_alone(const std::string& svg) {
    for (const char* word : {"<script", "href", "url(", "@import", "<image", "<foreignObject"})
      require(svg.find(word) == std::string::npos, fmt::format("has {}", word));
    require(elements_.front().tag == "svg" && elements_.front().figure("width") > 0, "no root with a size");
    for (const SvgElement& e : elements_) {
      for (const auto& [name, value] : e.attributes) {
        const bool number = value.find("nan") == std::string::npos && value.find("inf") == std::string::npos;
        require(number || name == "class" || name.starts_with("data-"), fmt::format("{} = {}", name, value));
      }
    }
  }

  // Every rank is there once, or as many as are shown; the bytes of all ranks are those of the plan. A second model on
  // ranks of its own is not shown.
  void check_ranks() {
    std::set<std::int64_t> seen;
    Bytes bytes = 0, planned = 0;
    const std::vector<std::uint32_t> slots = slots_of_ranks(plan_);
    for (const SvgElement* e : of_class("rank")) {
      const std::int64_t rank = std::stoll(e->attribute("data-rank"));
      require(rank >= 0 && rank < plan_.ranks && seen.insert(rank).second, fmt::format("rank {} twice", rank));
      for (const char* what : {"data-parameters", "data-gradients", "data-optimizer"})
        bytes += std::stoll(e->attribute(what));
      planned += states_in_plan(plan_, slots[static_cast<std::size_t>(rank)]);
    }
    const auto shown = static_cast<std::int64_t>(seen.size());
    require(shown > 0 && shown <= kMostShown, fmt::format("{} ranks shown", shown));
    std::int64_t all = 0;
    for (const RankClass& c : plan_.classes) all += c.second ? 0 : c.multiplicity;
    require(all > kMostShown || shown == all, fmt::format("{} of {} ranks", shown, all));
    require(bytes == planned, fmt::format("{} bytes shown, {} planned", bytes, planned));
  }

  // The parts of a matrix together are as large as the matrix, and lie inside it.
  void check_matrices() {
    std::map<const SvgElement*, double> area;
    std::map<const SvgElement*, const SvgElement*> whole;
    for (const SvgElement* e : of_class("whole")) whole[around(*e, "matrix")] = e;
    for (const SvgElement* e : of_class("part")) {
      const SvgElement* matrix = around(*e, "matrix");
      area[matrix] += e->figure("width") * e->figure("height");
      require(contains(box_of(*whole.at(matrix)), box_of(*e), 0.02),
              "a part outside " + matrix->attribute("data-name"));
    }
    require(!whole.empty(), "no matrix");
    for (const auto& [matrix, rect] : whole) {
      const double own = rect->figure("width") * rect->figure("height");
      // Sides are written with two decimals, so that many thin parts differ a little.
      require(std::abs(area[matrix] - own) <= 0.03 * own,
              fmt::format("{}: parts of {} in {}", matrix->attribute("data-name"), area[matrix], own));
    }
  }

  // The groups of a dimension in which bytes move are those of the plan that have a shown rank.
  void check_groups() {
    std::set<std::int64_t> shown;
    for (const SvgElement* e : of_class("rank")) shown.insert(std::stoll(e->attribute("data-rank")));
    std::map<std::pair<std::string, std::int64_t>, std::set<std::int64_t>> drawn, planned;
    for (const SvgElement* e : of_class("group")) {
      std::istringstream ranks(e->attribute("data-ranks"));
      std::set<std::int64_t>& list = drawn[{e->attribute("data-dimension"), std::stoll(e->attribute("data-group"))}];
      require(list.empty(), "a group twice");
      for (std::int64_t rank = 0; ranks >> rank;) list.insert(rank);
    }
    std::set<std::string> moved;
    for (const CommunicationRow& row : report_.communication) moved.insert(row.group);
    for (std::size_t d = 0; d < plan_.dimensions.size(); ++d) {
      const std::string name(name_of(static_cast<Dimension>(d)));
      if (!moved.contains(name)) continue;
      std::int64_t number = 0;
      for (const auto group : plan_.dimensions[d].groups) {
        std::set<std::int64_t> members;
        for (const std::int32_t rank : group) {
          if (shown.contains(rank)) members.insert(rank);
        }
        if (group.size() > 1 && !members.empty()) planned[{name, number}] = members;
        ++number;
      }
    }
    require(drawn == planned, fmt::format("{} groups drawn, {} planned", drawn.size(), planned.size()));
  }

  // Returns the box that a text may fill: from above to below its baseline, and as wide as in the widest usual font.
  static Box box_of_text(const SvgElement& e) {
    const bool bold = e.attribute("font-weight") == "bold";
    const double size = e.figure("font-size"), width = text_width(e.text, {.size = size, .bold = bold});
    const std::string anchor = e.attribute("text-anchor");
    const double left = anchor == "end" ? width : anchor == "middle" ? width / 2 : 0;
    return {e.x + e.figure("x") - left, e.y + e.figure("y") - 0.74 * size, width, 0.9 * size};
  }

  // No text overlaps another one, leaves the page, or leaves the rank, the part or the panel that it belongs to.
  void check_texts() {
    const Box page = {0, 0, elements_.front().figure("width"), elements_.front().figure("height")};
    std::map<const SvgElement*, Box> box_of_group;
    for (const char* name : {"box", "part"}) {
      for (const SvgElement* e : of_class(name))
        box_of_group[&elements_[static_cast<std::size_t>(e->parent)]] = box_of(*e);
    }
    std::vector<std::pair<Box, const SvgElement*>> texts;
    for (const SvgElement& e : elements_) {
      if (e.tag != "text") continue;
      const Box box = box_of_text(e);
      require(contains(page, box, 0.01), fmt::format("\"{}\" leaves the page", e.text));
      const auto group = box_of_group.find(&elements_[static_cast<std::size_t>(e.parent)]);
      require(group == box_of_group.end() || contains(group->second, box, 1),
              fmt::format("\"{}\" leaves its box", e.text));
      texts.emplace_back(box, &e);
    }
    std::ranges::sort(texts, {}, [](const auto& t) { return t.first.y; });
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const Box& a = texts[i].first;
      for (std::size_t k = i + 1; k < texts.size() && texts[k].first.y < a.y + a.height - 0.01; ++k) {
        const Box& b = texts[k].first;
        require(b.x >= a.x + a.width - 0.01 || a.x >= b.x + b.width - 0.01,
                fmt::format("\"{}\" overlaps \"{}\"", texts[i].second->text, texts[k].second->text));
      }
    }
  }

  const Plan& plan_;
  const Report& report_;
  std::vector<SvgElement> elements_;
  std::vector<std::string> wrong_;
};

}  // namespace orrery::test
