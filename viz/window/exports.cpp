#include "viz/window/exports.h"

#include <QBuffer>
#include <QImage>
#include <QSvgGenerator>

#include <fmt/format.h>

#include "models/error.h"
#include "models/output_file.h"
#include "sim/chrome_trace.h"
#include "sim/kineto.h"
#include "sim/live_memory.h"

namespace orrery {
namespace {

constexpr std::size_t kPieceBytes = 1 << 18;  // passed on at once

std::string csv_text(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

// The font is not where the picture will be looked at: DejaVu, which it is a part of, or what is like it.
constexpr const char* kFamilies = "Orrery Sans, DejaVu Sans, Verdana, sans-serif";

// Written by our own file: of what Qt cannot write it does not say so.
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
      const Place place = t.place(e);
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

void write_chrome_json(const std::string& path, const Document& d) {
  const Timeline& t = d.timeline;
  if (d.simulated()) {
    const Prediction& p = d.step->prediction;
    write_chrome_trace(path, p.plan, p.trace, live_memory(p.plan, p.trace), {.device = d.step->spec.cluster.gpu.name});
    return;
  }
  OutputFile file(path);
  std::string text = "{\"traceEvents\": [";
  const char* separator = "\n";
  for (std::size_t i = 0; i < t.tracks.size(); ++i) {
    const Track& track = t.tracks[i];
    text += fmt::format(
        "{}{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{},\"args\":{{\"name\":{}}}}},\n"
        "{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{},\"tid\":{},\"args\":{{\"name\":{}}}}}",
        separator, track.process, json_string(t.processes[track.process].name), track.process, i,
        json_string(track.name));
    separator = ",\n";
    for (EventId e = track.first; e < track.first + track.count; ++e) {
      text += fmt::format(
          ",\n{{\"ph\":\"X\",\"cat\":\"{}\",\"name\":{},\"pid\":{},\"tid\":{},\"ts\":{:.6f},\"dur\":{:.6f}}}",
          name_of(t.kind(e)), json_string(t.name(e)), track.process, i, static_cast<double>(t.begins[e]) * 1e-6,
          static_cast<double>(t.ends[e] - t.begins[e]) * 1e-6);
      if (text.size() < kPieceBytes) continue;
      file.write(text);
      text.clear();
    }
  }
  file.write(text + "\n]}\n");
  file.commit();
}

void export_scene(const QString& path, const Scene& scene, const View& view, const QSize& size) {
  const std::string name = path.toStdString();
  if (path.endsWith(".csv")) return write_csv(name, scene.timeline(), view.scale.begin, view.scale.end);
  if (path.endsWith(".json") || path.endsWith(".json.gz")) return write_chrome_json(name, scene.document);
  if (!path.endsWith(".png") && !path.endsWith(".svg"))
    throw Error(name + ": unknown format; the name must end in .png, .svg, .csv, .json or .json.gz");
  if (path.endsWith(".svg")) return export_svg(name, scene, view, size);
  QImage image(size, QImage::Format_RGB32);
  Canvas().paint(image, scene, view);
  if (!image.save(path)) throw Error(name + ": cannot write");
}

}  // namespace orrery
