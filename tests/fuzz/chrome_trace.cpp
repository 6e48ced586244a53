#include <cstdint>
#include <optional>
#include <vector>

#include "tests/fuzz/fuzz.h"
#include "viz/draw/area.h"
#include "viz/draw/layout.h"
#include "viz/draw/pyramid.h"
#include "viz/read/chrome_reader.h"
#include "viz/timeline/align.h"

// Reads a trace and draws the result, in memory and in one thread.
void orrery::fuzz::read_chrome_trace(std::string_view text) {
  TimelineBuilder builder;
  std::optional<std::int64_t> origin;
  std::vector<std::size_t> firsts;
  for (std::size_t file = 0; file <= text.size() % 4 / 3;
       ++file) {  // sometimes twice, so that there are clocks to align
    firsts.push_back(builder.events());
    ChromeReader(builder, text, "fuzz", 0, origin).read({});
  }
  align_clocks(builder, firsts);
  const Timeline t = builder.finish();
  if (t.events() == 0) return;
  std::vector<Cell> cells(64);
  for (const Track& track : t.tracks) render_track(t, track, {}, {0, t.end + 1, 64}, cells);
  render_track(t, t.tracks[0], Pyramid(t, t.tracks[0]), {t.end / 3, t.end / 2 + 1000, 64}, cells);
  const AreaIndex index(t);
  area_statistics(t, index, 0, t.end);
  lay_out(t, default_options(t));
  members_of_object(text.substr(0, 512));
}
