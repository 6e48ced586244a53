// Any bytes are read as a trace without a crash, a hang or an exception, and what comes out can be drawn. Built with
// clang and -DORRERY_FUZZ=ON:  build/.../fuzz_chrome_reader -max_len=4096 CORPUS
#include <cstdint>
#include <optional>
#include <vector>

#include "viz/area.h"
#include "viz/chrome_reader.h"
#include "viz/layout.h"
#include "viz/pyramid.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  TimelineBuilder builder;
  std::optional<std::int64_t> origin;
  ChromeReader(builder, text, "fuzz", 0, origin).read({});
  const Timeline t = builder.finish();
  if (t.events() == 0) return 0;
  std::vector<Cell> cells(64);
  for (const Track& track : t.tracks) render_track(t, track, {}, {0, t.end + 1, 64}, cells);
  const AreaIndex index(t);
  area_statistics(t, index, 0, t.end);
  lay_out(t, default_options(t));
  members_of_object(text.substr(0, 512));
  return 0;
}
