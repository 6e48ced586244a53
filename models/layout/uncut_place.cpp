#include "models/layout/uncut_place.h"

#include <algorithm>

namespace orrery {
namespace {

// Returns the weight of which `p` is a piece: for a tile of a weight, the complete weight; for the matrices of experts,
// one expert's matrix; for a weight cut in depth (over ranks of a tensor-parallel grid that differ only in their
// depth), the part that all these ranks hold together.
LocalParameter uncropped(const LocalParameter& p, std::int64_t depth) {
  LocalParameter one = expert_row(p, 0).one;
  if (p.cut_in_depth) one.out *= depth;
  return one;
}

// Crops the range `from` of a weight's rows to the rows with numbers from `first` to `first` + `rows` - 1 in this
// rank's part of the weight, and appends it to `to`, where rows are numbered from `first`. Appends nothing if no rows
// are left.
void add_cropped(std::vector<UncutRows>& to, const UncutRows& from, std::int64_t first, std::int64_t rows) {
  const std::int64_t begin = std::max(from.local, first), end = std::min(from.local + from.rows, first + rows);
  if (begin < end) to.push_back({from.section, begin - first, from.uncut + begin - from.local, end - begin});
}

void place_columns(UncutPlace& place, const LocalParameter& p, const GroupPosition& seat,
                   const std::function<GroupPosition(Dimension)>& position) {
  place.columns = p.in;
  if (p.columns_over) {
    const GroupPosition across = position(*p.columns_over);
    place.whole.in = p.in * across.size;
    place.column = p.in * across.index;
  } else if (p.cut == Cut::columns) {
    place.column = p.in * seat.index;
  }
}

}  // namespace

GroupPosition position_in(const Plan& plan, Dimension d, std::int64_t rank) {
  const GroupTable& table = plan.dimensions[static_cast<std::size_t>(d)];
  const auto& members = table.groups[table.member_of[static_cast<std::size_t>(rank)]];
  const auto place = std::find(members.begin(), members.end(), static_cast<std::int32_t>(rank));
  return {place - members.begin(), static_cast<std::int64_t>(members.size())};
}

UncutPlace uncut_place(const Model& model, const LocalParameter& p,
                       const std::function<GroupPosition(Dimension)>& position) {
  const GroupPosition seat = position(p.experts > 0 ? Dimension::expert_tensor : p.over);
  const GroupPosition depth = p.cut_in_depth ? position(Dimension::tensor_depth) : GroupPosition{};
  const LocalParameter one = uncropped(p, depth.size);
  UncutPlace place;
  place.whole = uncut_shape(model, one, seat.size);
  place.expert_rows = place.whole.out;
  place_columns(place, p, seat, position);
  const std::int64_t first = p.cut_in_depth ? depth.index * p.out : p.tile_of > 0 ? p.tile_first : 0;
  const GroupPosition experts = p.experts > 0 ? position(Dimension::expert) : GroupPosition{};
  const std::int64_t matrices = std::max<std::int64_t>(1, p.experts), rows = p.out / matrices;
  const std::vector<SectionRows> sections = section_rows(model, one, seat.index, seat.size);
  for (std::int64_t e = 0; e < matrices; ++e) {
    std::int64_t before = 0, uncut_before = (experts.index * matrices + e) * place.expert_rows;
    for (std::size_t s = 0; s < sections.size(); ++s) {
      std::vector<UncutRows> cropped;
      add_cropped(cropped,
                  {static_cast<std::int64_t>(s), before, uncut_before + sections[s].uncut_first, sections[s].rows},
                  first, rows);
      for (UncutRows& run : cropped) {
        run.local += e * rows;
        place.rows.push_back(run);
      }
      before += sections[s].rows;
      uncut_before += sections[s].uncut_rows;
    }
  }
  place.first_row = {0};
  for (const SectionRows& s : sections) place.first_row.push_back(place.first_row.back() + s.uncut_rows);
  if (p.experts > 0) place.whole.out *= matrices * experts.size;
  return place;
}

}  // namespace orrery
