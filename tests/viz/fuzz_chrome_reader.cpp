// Any bytes are read as a trace without a crash, a hang or an exception, and what comes out can be drawn. In memory and
// in one thread. Built with clang and -DORRERY_FUZZ=ON; scripts/fuzz builds it, makes a first corpus and runs it.
#include <cstdint>
#include <optional>
#include <vector>

#include "viz/align.h"
#include "viz/area.h"
#include "viz/chrome_reader.h"
#include "viz/layout.h"
#include "viz/pyramid.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  TimelineBuilder builder;
  std::optional<std::int64_t> origin;
  std::vector<std::size_t> firsts;
  for (std::size_t file = 0; file <= size % 4 / 3; ++file) {  // sometimes twice, so that there are clocks to align
    firsts.push_back(builder.events());
    ChromeReader(builder, text, "fuzz", 0, origin).read({});
  }
  align_clocks(builder, firsts);
  const Timeline t = builder.finish();
  if (t.events() == 0) return 0;
  std::vector<Cell> cells(64);
  for (const Track& track : t.tracks) render_track(t, track, {}, {0, t.end + 1, 64}, cells);
  render_track(t, t.tracks[0], Pyramid(t, t.tracks[0]), {t.end / 3, t.end / 2 + 1000, 64}, cells);
  const AreaIndex index(t);
  area_statistics(t, index, 0, t.end);
  lay_out(t, default_options(t));
  members_of_object(text.substr(0, 512));
  return 0;
}
