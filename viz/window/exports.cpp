#include "viz/window/exports.h"

#include <QBuffer>
#include <QImage>
#include <QSvgGenerator>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/base/output_file.h"

namespace orrery {
namespace {

constexpr std::size_t kPieceBytes = 1 << 18;  // number of bytes of CSV text that are written at once

std::string csv_text(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

// Font families in exported pictures. The machine on which a picture is viewed does not have the built-in font; viewers
// there use DejaVu, whose letters the built-in font has, or similar fonts.
constexpr const char* kFamilies = "Orrery Sans, DejaVu Sans, Verdana, sans-serif";

// Writes an SVG file by our own file class, because Qt does not report write errors.
void export_svg(const std::string& path, const Scene& scene, const View& view, const QSize& size) {
  QBuffer buffer;
  QSvgGenerator generator;
  generator.setOutputDevice(&buffer);
  generator.setSize(size);
  generator.setViewBox(QRect(QPoint(0, 0), size));
  generator.setTitle(QString::fromStdString(scene.timeline().title));
  QPainter painter(&generator);
  Canvas().paint(painter, scene, view);
  painter.end();
  QByteArray text = buffer.data();
  text.replace("font-family=\"" + canvas_font().family().toUtf8() + "\"",
               QByteArray("font-family=\"") + kFamilies + "\"");
  OutputFile file(path);
  file.write({text.constData(), static_cast<std::size_t>(text.size())});
  file.commit();
}

}  // namespace

void write_csv(const std::string& path, const Timeline& t, Picoseconds from, Picoseconds to) {
  OutputFile file(path);
  std::string text = "rank,lane,name,kind,micro_batch,layer,begin_us,duration_us\n";
  for (const Track& track : t.tracks) {
    for (EventId e = first_after(t, track, from); e < track.first + track.count && t.begins[e] < to; ++e) {
      const OpInstance place = t.place(e);
      text += fmt::format("{},{},{},{},{},{},{:.6f},{:.6f}\n", csv_text(t.processes[track.process].name),
                          csv_text(track.name), csv_text(t.name(e)), name_of(t.kind(e)), place.micro_batch, place.layer,
                          static_cast<double>(t.begins[e]) * 1e-6, static_cast<double>(t.ends[e] - t.begins[e]) * 1e-6);
      if (text.size() < kPieceBytes) continue;
      file.write(text);
      text.clear();
    }
  }
  file.write(text);
  file.commit();
}

void export_scene(const QString& path, const Scene& scene, const View& view, const QSize& size,
                  const std::string& saved_view) {
  const std::string name = path.toStdString();
  if (path.endsWith(".csv")) return write_csv(name, scene.timeline(), view.scale.begin, view.scale.end);
  if (path.endsWith(".json") || path.endsWith(".json.gz")) return write_chrome_json(name, scene.document, saved_view);
  if (!path.endsWith(".png") && !path.endsWith(".svg"))
    throw Error(name + ": unknown format; the name must end in .png, .svg, .csv, .json or .json.gz");
  if (path.endsWith(".svg")) return export_svg(name, scene, view, size);
  QImage image(size, QImage::Format_RGB32);
  Canvas().paint(image, scene, view);
  if (!image.save(path)) throw Error(name + ": cannot write");
}

}  // namespace orrery
