#pragma once

#include <QSize>
#include <QString>

#include "viz/window/canvas.h"

namespace orrery {

// Writes what is shown, by the path's ending: a picture (.png, .svg), the events in view as a table (.csv), or all
// events as Chrome JSON (.json, .json.gz), with saved_view (JSON, "": none) in it, so that one file holds the trace and
// how it was looked at. Throws Error for another ending and for what cannot be written.
void export_scene(const QString& path, const Scene& scene, const View& view, const QSize& size,
                  const std::string& saved_view = "");

void write_csv(const std::string& path, const Timeline& timeline, Picoseconds from, Picoseconds to);
// Read again it is the same timeline: times to the picosecond, kinds, places, counters, arrows, what a file said of its
// events.
void write_chrome_json(const std::string& path, const Document& document, const std::string& saved_view = "");

}  // namespace orrery
