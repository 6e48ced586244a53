#pragma once

#include <QFont>
#include <QImage>
#include <QPainter>
#include <vector>

#include "viz/draw/layout.h"
#include "viz/draw/scene.h"
#include "viz/timeline/compare.h"
#include "viz/window/elided_texts.h"

namespace orrery {

// A note to be drawn over the rows of process number `process`, or of all processes (-1).
struct ShownNote {
  Picoseconds from = 0, to = 0;
  int process = -1;
  QString text;
};

// The part of a scene (an opened trace) that is shown, and the settings that affect the picture.
struct View {
  TimeScale scale;
  int scroll = 0;  // number of pixels by which the rows are scrolled
  TimelineLayout layout;
  EventId hovered = kNoEvent, selected = kNoEvent;
  std::vector<EventId> lit;  // highlighted events: those of the same collective as the selected or hovered event
  Picoseconds area_from = 0, area_to = 0;
  Picoseconds marked = -1;    // time at which the user clicked last; -1: none
  std::vector<bool> found;    // for each label (name and kind of events), whether it matches the search
  std::vector<EventId> path;  // events of the critical path, in order; empty if the path is not shown
  const std::vector<Picoseconds>* slack = nullptr;
  std::vector<ShownNote> notes;
  bool arrows = true;
  const Scene* other = nullptr;        // the trace compared with, if colours show differences; else nullptr
  const Matching* matching = nullptr;  // pairs of matching events of this scene and of `other`
  // Bytes at the upper end of all memory curves, if two traces are shown in one scale; 0: each curve has its own scale.
  double memory_top = 0;
};

// The size of a picture in pixels, and the positions in it of row names, ruler, legend and rows. On devices that have
// several pixels in place of one, pixels are those of the widgets' coordinates.
inline constexpr double kRoomAbove = 1.12;  // upper end of a counter's scale, over the highest value that it shows
struct CanvasFrame {
  static constexpr int kGutter = 190, kRuler = 26, kLegend = 40;
  int width = 0, height = 0;
  int plot_width() const { return std::max(1, width - kGutter); }
  int rows_height() const { return std::max(1, height - kRuler - kLegend); }
};
// Returns the frame of the picture on which a painter paints.
CanvasFrame frame_of(const QPainter& painter);
// Returns the vertical pixel of the top of a row in the picture; pinned rows do not scroll.
int top_of(const View& view, const Row& row);
// Returns the index of the row at a pixel of the picture, or -1.
int row_at_pixel(const View& view, const CanvasFrame& frame, int y);
// Returns the event at a pixel of the picture, or kNoEvent.
EventId event_at_pixel(const Scene& scene, const View& view, const CanvasFrame& frame, int x, int y);

QFont canvas_font(bool bold = false);  // font of the canvas, the same on all machines, so that pictures are equal

// Paints a timeline's rows, ruler, legend and everything over them. Painting takes milliseconds for any number of
// events, and needs no widget.
class Canvas {
 public:
  // The image's devicePixelRatio() says how many of its pixels stand for one of the frame: lanes are drawn in pixels of
  // the image, texts and lines at its resolution.
  void paint(QImage& image, const Scene& scene, const View& view);
  // Paints the picture with rectangles, lines and text, for vector formats.
  void paint(QPainter& painter, const Scene& scene, const View& view);

 private:
  void paint_rows(QPainter& painter, const Scene& scene, const View& view);
  void paint_row(QPainter& painter, const Scene& scene, const View& view, const Row& row, int y);
  void paint_lane(QPainter& painter, const Scene& scene, const View& view, const Row& row, int y);
  void copy_lane(int left, int first, int last);
  void draw_lane(QPainter& painter, int first, int last);
  void paint_names(QPainter& painter, const Scene& scene, const View& view, const Row& row, int y);
  void paint_runs(QPainter& painter, const Scene& scene, const View& view, const Row& row, int y);
  void paint_bands(QPainter& painter, const Scene& scene, const View& view, const Row& row, int y);
  void paint_changes(QPainter& painter, const Scene& scene, const View& view, const Row& row, int y);
  void paint_background(QPainter& painter, const Row& row, int y);
  const QString& name_of_label(const Scene& scene, std::uint32_t label);

  QImage* image_ = nullptr;  // image to paint on; nullptr for vector formats
  std::vector<Cell> cells_;
  std::vector<QRgb> line_;
  ElidedTexts texts_{canvas_font()}, bold_texts_{canvas_font(true)};
  // for each label of the scene that was painted last, its name, and the name converted to a QString
  std::vector<std::pair<std::string, QString>> names_;
};

// The paint_ functions paint the parts of a picture that lie over the rows: counters, ruler, legend, arrows, marks,
// notes.
void paint_counter(QPainter& painter, const Scene& scene, const View& view, const Row& row, int y);
void paint_link(QPainter& painter, const Scene& scene, const View& view, const Row& row, int y);
void paint_ruler(QPainter& painter, const CanvasFrame& frame, const Scene& scene, const View& view);
void paint_legend(QPainter& painter, const CanvasFrame& frame, const Scene& scene, const View& view);
void paint_arrows(QPainter& painter, const CanvasFrame& frame, const Scene& scene, const View& view);
void paint_marks(QPainter& painter, const CanvasFrame& frame, const Scene& scene, const View& view);
void paint_notes(QPainter& painter, const CanvasFrame& frame, const View& view);

// Returns a time as "12.5 ms", with as many decimals as marks at a distance of `step` need.
QString time_label(Picoseconds t, Picoseconds step);

}  // namespace orrery
