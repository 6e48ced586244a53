#include "sim/picture/matrices.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "models/layout/placement.h"
#include "models/layout/uncut_place.h"
#include "models/partition/rank_groups.h"
#include "models/spec/sharding.h"
#include "models/spec/vision.h"
#include "sim/picture/holdings.h"
#include "sim/picture/weights.h"

namespace orrery {
namespace {

constexpr std::size_t kMostShares = 96;  // largest number of shares that a matrix's strip shows one by one

// Returns the dimensions of parallelism over which a weight is cut. All ranks of a replica that hold parts of the
// weight are reached by going through a rank's group of the first dimension, then through these ranks' groups of the
// second.
std::vector<Dimension> dimensions_of(const LocalParameter& p) {
  if (p.experts > 0) return {Dimension::expert, Dimension::expert_tensor};
  return {p.over == Dimension::vocabulary ? Dimension::vocabulary : Dimension::tensor};
}

std::vector<std::int64_t> ranks_of(const Plan& plan, const LocalParameter& p, std::int64_t rank) {
  std::set<std::int64_t> found = {rank};
  for (const Dimension d : dimensions_of(p)) {
    const GroupTable& table = plan.dimensions[static_cast<std::size_t>(d)];
    std::set<std::int64_t> next;
    for (const std::int64_t r : found) {
      for (const std::int32_t member : table.groups[table.member_of[static_cast<std::size_t>(r)]])
        if (member < plan.workers()) next.insert(member);
    }
    found = std::move(next);
  }
  return {found.begin(), found.end()};
}

std::string holder_label(const Plan& plan, const LocalParameter& p, std::int64_t rank) {
  if (p.experts > 0) {
    const GroupPosition cut = position_in(plan, Dimension::expert_tensor, rank);
    const std::int64_t expert = position_in(plan, Dimension::expert, rank).index;
    return cut.size > 1 ? fmt::format("e{}.{}", expert, cut.index) : fmt::format("e{}", expert);
  }
  const GroupPosition tensor = position_in(plan, Dimension::tensor, rank);
  if (p.over != Dimension::vocabulary) return fmt::format("t{}", tensor.index);
  const std::int64_t stage = position_in(plan, Dimension::pipeline, rank).index;
  return tensor.size > 1 ? fmt::format("s{} t{}", stage, tensor.index) : fmt::format("s{}", stage);
}

// Returns the names of the matrices that one weight packs (UncutRows::section), such as q, k and v.
std::vector<std::string> section_names(const Model& m, const LocalParameter& p, std::size_t sections) {
  if (p.cut == Cut::heads && m.attention_gate) return {"gate", "q", "k", "v"};
  if (p.cut == Cut::heads) return {"q", "k", "v"};
  if (p.cut == Cut::halves) return {"gate", "up"};
  // the matrices that a weight of a recurrent layer packs; the gates of the heads follow these four
  std::vector<std::string> names = {"q", "k", "v", "gate"};
  while (names.size() < sections) names.push_back(fmt::format("head gate {}", names.size() - 4));
  return names;
}

// Returns a short name of a matrix within its kind: "q" of "attention.qkv.weight", "shared.gate" of
// "moe.shared.up.weight".
std::string short_name(std::string name, const std::string& section) {
  for (const std::string_view prefix : {"attention.", "mlp.", "moe.", "recurrence."})
    if (name.starts_with(prefix)) name.erase(0, prefix.size());
  constexpr std::string_view kSuffix = ".weight";
  if (name.ends_with(kSuffix)) name.erase(name.size() - kSuffix.size());
  if (section.empty()) return name;
  for (const std::string_view packed : {"qkv", "up"}) {
    const std::size_t at = name.rfind(packed);
    if (at != std::string::npos) return name.replace(at, packed.size(), section);
  }
  return name + ' ' + section;
}

// Joins rectangles that one rank holds where they together form a larger rectangle, first along columns, then along
// rows.
void join_parts(std::vector<HeldPart>& parts) {
  const auto join = [&](auto order, auto joins, auto grow) {
    std::ranges::sort(parts, {}, order);
    std::vector<HeldPart> joined;
    for (const HeldPart& p : parts) {
      if (!joined.empty() && joins(joined.back(), p))
        grow(joined.back(), p);
      else
        joined.push_back(p);
    }
    parts = std::move(joined);
  };
  join([](const HeldPart& p) { return std::tuple(p.row, p.rows, p.column); },
       [](const HeldPart& a, const HeldPart& b) {
         return a.row == b.row && a.rows == b.rows && a.column + a.columns == b.column;
       },
       [](HeldPart& a, const HeldPart& b) { a.columns += b.columns; });
  join([](const HeldPart& p) { return std::tuple(p.column, p.columns, p.row); },
       [](const HeldPart& a, const HeldPart& b) {
         return a.column == b.column && a.columns == b.columns && a.row + a.rows == b.row;
       },
       [](HeldPart& a, const HeldPart& b) { a.rows += b.rows; });
}

// Splits the weights of a model into the matrices that they pack, and each matrix into the parts that ranks hold.
class MatrixCutter {
 public:
  MatrixCutter(const Spec& spec, const Plan& plan)
      : plan_(plan),
        text_(spec.model),
        encoder_(spec.images ? encoder_spec(spec).model : spec.model),
        row_(row_of(spec.strategy.sharding)) {}

  std::vector<MatrixCut> cut(const PlanWeight& weight, bool vision) {
    const Model& model = vision ? encoder_ : text_;
    const LocalParameter& p = weight.tiles.front();
    const std::int64_t rank = plan_.classes[weight.slot].representative;
    std::vector<Holder> holders;
    for (const std::int64_t r : ranks_of(plan_, p, rank)) holders.push_back({r, holder_label(plan_, p, r)});
    const UncutPlace own = place(model, p, rank);
    std::vector<MatrixCut> cuts = empty_cuts(model, weight, own);
    for (std::size_t h = 0; h < holders.size(); ++h) {
      std::vector<std::vector<HeldPart>> parts(cuts.size());
      for (const LocalParameter& tile : weight.tiles) {
        const UncutPlace at = place(model, tile, holders[h].rank);
        for (const UncutRows& run : at.rows) parts[run.section].push_back(drawn(cuts[run.section], at, run));
      }
      for (std::size_t s = 0; s < cuts.size(); ++s) hand_out(cuts[s], std::move(parts[s]), h);
    }
    for (std::size_t s = 0; s < cuts.size(); ++s) {
      cuts[s].holders = holders;
      cuts[s].shares_weights = row_.shards_parameters;
      share_out(cuts[s], weight, model, static_cast<std::int64_t>(s));
    }
    return cuts;
  }

 private:
  UncutPlace place(const Model& model, const LocalParameter& p, std::int64_t rank) const {
    return uncut_place(model, p, [&](Dimension d) { return position_in(plan_, d, rank); });
  }

  static std::vector<MatrixCut> empty_cuts(const Model& model, const PlanWeight& weight, const UncutPlace& own) {
    const LocalParameter& p = weight.tiles.front();
    const std::size_t sections = own.first_row.size() - 1;
    const std::vector<std::string> names = section_names(model, p, sections);
    std::vector<MatrixCut> cuts(sections);
    for (std::size_t s = 0; s < sections; ++s) {
      MatrixCut& c = cuts[s];
      c.name = short_name(weight.name, sections > 1 ? names[s] : "");
      c.out = own.first_row[s + 1] - own.first_row[s];
      c.in = own.whole.in;
      c.experts = p.experts > 0 ? own.whole.out / own.expert_rows : 0;
      c.across = c.experts > 0 && p.cut != Cut::columns;
      const std::int64_t matrices = std::max<std::int64_t>(1, c.experts);
      c.rows = c.out * (c.across ? 1 : matrices);
      c.columns = c.in * (c.across ? matrices : 1);
      c.frozen = p.frozen;
    }
    return cuts;
  }

  // Returns, for a run of rows of a weight that a rank holds, the rectangle in the matrix as it is drawn.
  static HeldPart drawn(const MatrixCut& cut, const UncutPlace& at, const UncutRows& run) {
    const std::int64_t expert = run.uncut / at.expert_rows;
    const std::int64_t row = run.uncut % at.expert_rows - at.first_row[static_cast<std::size_t>(run.section)];
    if (cut.across) return {row, run.rows, expert * cut.in + at.column, at.columns, {}};
    return {expert * cut.out + row, run.rows, at.column, at.columns, {}};
  }

  // Adds to a matrix the parts that one rank holds. A part that several ranks hold is added once, with all of these
  // ranks as holders. holder: index of the rank in MatrixCut::holders.
  static void hand_out(MatrixCut& cut, std::vector<HeldPart> parts, std::size_t holder) {
    join_parts(parts);
    for (HeldPart& part : parts) {
      const auto same = std::ranges::find_if(cut.parts, [&](const HeldPart& p) {
        return std::tuple(p.row, p.rows, p.column, p.columns) ==
               std::tuple(part.row, part.rows, part.column, part.columns);
      });
      HeldPart& to = same == cut.parts.end() ? cut.parts.emplace_back(std::move(part)) : *same;
      to.holders.push_back(holder);
    }
  }

  const std::vector<Piece>& pieces(const PlanWeight& weight) {
    const bool frozen = weight.tiles.front().frozen;
    const auto [at, fresh] = pieces_.try_emplace({weight.state, frozen});
    const std::int64_t rank = plan_.classes[weight.slot].representative;
    if (fresh) at->second = frozen ? frozen_pieces_of(plan_, weight.state, rank) : pieces_of(plan_, weight.state, rank);
    return at->second;
  }

  // Fills in how data ranks share a rank's part of one matrix: those rows of the weight that belong to this matrix
  // (section), since a weight may pack several.
  void share_out(MatrixCut& cut, const PlanWeight& weight, const Model& model, std::int64_t section) {
    const std::int64_t rank = plan_.classes[weight.slot].representative;
    std::vector<std::pair<std::int64_t, std::int64_t>> ranges;  // a matrix's ranges: first element, number of elements
    std::int64_t all = 0;
    for (std::size_t t = 0; t < weight.tiles.size(); ++t) {
      for (const UncutRows& run : place(model, weight.tiles[t], rank).rows) {
        if (run.section != section) continue;
        const LocalParameter& p = weight.tiles[t];
        // A frozen weight takes `stored` units in its buffer, which its rows share evenly.
        const std::int64_t units = p.frozen ? p.stored : p.out * p.in;
        const std::int64_t begin = units * run.local / p.out, end = units * (run.local + run.rows) / p.out;
        ranges.emplace_back(weight.first[t] + begin, end - begin);
        all += end - begin;
      }
    }
    std::int64_t before = 0;
    for (const auto& [first, elements] : ranges) {
      for (const Piece& piece : pieces(weight)) add_shares(cut, piece, {first, elements}, before, all);
      before += elements;
    }
    if (cut.shares.size() > kMostShares || cut.sharers == 1) cut.shares.clear();
  }

  // Adds the shares that data ranks have (ZeRO sharding) in one range of a matrix's elements, as fractions of all
  // ranges. piece: a run of elements that is divided evenly among data ranks, and which may reach beyond the range;
  // range: (first element, number of elements); before: number of elements of earlier ranges; all: that of all ranges.
  static void add_shares(MatrixCut& cut, const Piece& piece, std::pair<std::int64_t, std::int64_t> range,
                         std::int64_t before, std::int64_t all) {
    const std::int64_t begin = std::max(range.first, piece.first);
    const std::int64_t end = std::min(range.first + range.second, piece.first + piece.elements);
    if (begin >= end) return;
    cut.sharers = std::max(cut.sharers, piece.ranks);
    const std::int64_t each = ceil_div(piece.elements, piece.ranks);
    const auto fraction = [&](std::int64_t at) {
      return static_cast<double>(before + at - range.first) / static_cast<double>(all);
    };
    for (std::int64_t at = begin; at < end && cut.shares.size() <= kMostShares;) {
      const std::int64_t member = (at - piece.first) / each;
      const std::int64_t until = std::min(end, piece.first + (member + 1) * each);
      const bool grows =
          !cut.shares.empty() && cut.shares.back().member == member && cut.shares.back().end == fraction(at);
      if (grows)
        cut.shares.back().end = fraction(until);
      else
        cut.shares.push_back({member, fraction(at), fraction(until)});
      at = until;
    }
  }

  const Plan& plan_;
  const Model text_, encoder_;
  const ShardingRow& row_;
  std::map<std::pair<std::uint32_t, bool>, std::vector<Piece>> pieces_;
};

std::string about_text(const WeightKind& kind) {
  const std::string count = fmt::format("{}", kind.count);
  if (kind.vision) return kind.count > 1 ? count + " layers" : "";
  if (kind.layers.empty()) return "";
  const std::string_view what = kind.title == "Multi-token prediction" ? "module" : "layer";
  return fmt::format("{}{} {} ({})", what, kind.count > 1 ? "s" : "", ranges_text(kind.layers), count);
}

}  // namespace

std::vector<MatrixPanel> matrix_panels(const Spec& spec, const Plan& plan) {
  MatrixCutter cutter(spec, plan);
  std::vector<MatrixPanel> panels;
  for (const WeightKind& kind : weight_kinds(spec, plan)) {
    MatrixPanel panel = {.title = kind.title, .about = about_text(kind)};
    for (const PlanWeight& weight : kind.weights) {
      if (weight.is_vector()) {
        ++panel.vectors;
        panel.vector_elements += weight.tiles.front().out;
        continue;
      }
      for (MatrixCut& cut : cutter.cut(weight, kind.vision)) {
        if (kind.layers.empty() && cut.name == "output") cut.name = "head";
        panel.matrices.push_back(std::move(cut));
      }
    }
    panels.push_back(std::move(panel));
  }
  return panels;
}

}  // namespace orrery
