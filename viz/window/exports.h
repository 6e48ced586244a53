#pragma once

#include <QSize>
#include <QString>

#include "viz/window/canvas.h"

namespace orrery {

// Writes the shown scene (an opened trace) in the format of the path's ending: a picture (.png, .svg), the events in
// view as a table (.csv), or all events as Chrome JSON (.json, .json.gz) together with a saved view (saved_view, as
// JSON; "": none), so that one file contains the trace and the view. Throws Error for another ending and for a file
// that cannot be written.
void export_scene(const QString& path, const Scene& scene, const View& view, const QSize& size,
                  const std::string& saved_view = "");

void write_csv(const std::string& path, const Timeline& timeline, Picoseconds from, Picoseconds to);
// Writes a timeline as Chrome JSON. Reading the file gives the same timeline: times to the picosecond, kinds,
// micro-batches and layers, counters, arrows, and the details of events.
void write_chrome_json(const std::string& path, const Document& document, const std::string& saved_view = "");

}  // namespace orrery
