#pragma once

#include <QSize>
#include <QString>

#include "viz/window/canvas.h"

namespace orrery {

// Writes what is shown, by the path's ending: a picture (.png, .svg), the events in view as a table (.csv), or all
// events as Chrome JSON (.json, .json.gz). Throws Error for another ending and for what cannot be written.
void export_scene(const QString& path, const Scene& scene, const View& view, const QSize& size);

void write_csv(const std::string& path, const Timeline& timeline, Picoseconds from, Picoseconds to);
void write_chrome_json(const std::string& path, const Document& document);

}  // namespace orrery
