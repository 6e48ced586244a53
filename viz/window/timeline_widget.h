#pragma once

#include <QWidget>
#include <memory>
#include <optional>

#include "viz/draw/saved_view.h"
#include "viz/timeline/find.h"
#include "viz/window/canvas.h"

class QScrollBar;

namespace orrery {

// Shows one scene (an opened trace), in which the user navigates: W/A/S/D and arrow keys, wheel to scroll, Ctrl+wheel
// to zoom about the cursor, Shift+drag or Shift+wheel to pan, drag to select a range of time or move its edges, F to
// zoom to the selected range or event, 0 to show all, N for a note. It changes the view, never the scene.
class TimelineWidget : public QWidget {
  Q_OBJECT

 public:
  explicit TimelineWidget(QWidget* parent = nullptr);

  void show_scene(std::shared_ptr<const Scene> scene,
                  Picoseconds total = 0);  // total: length of the time axis; 0: length of the trace
  const Scene* scene() const { return scene_.get(); }
  const std::shared_ptr<const Scene>& shared_scene() const { return scene_; }
  const View& view() const { return view_; }
  const LayoutOptions& options() const { return options_; }
  Picoseconds earliest() const { return earliest_; }
  Picoseconds total() const { return total_; }  // end of the time axis
  int clicked_process() const { return clicked_process_; }

  void set_options(const LayoutOptions& options);
  void set_scale(Picoseconds begin, Picoseconds end);
  void set_scroll(int y) { scroll_to(y); }
  void set_area(Picoseconds from, Picoseconds to);
  void set_found(std::vector<bool> labels);
  void set_path(std::vector<EventId> path);
  void set_arrows(bool shown);
  void set_notes(const std::vector<Note>& notes);
  void pin(const std::vector<std::uint32_t>& tracks);  // keeps these tracks (rows of events), and no others, at the top
  void set_slowest_first(bool on);
  void compare_with(std::shared_ptr<const Scene> other, const Matching* matching);
  // Sets what a timeline beside another one shows alike: the earliest and the latest time of the axis, the bytes at the
  // upper end of memory curves, and whether room for a scroll bar is kept.
  void show_alike(Picoseconds earliest, Picoseconds latest, double memory_top);
  void light(std::vector<EventId> events);  // outlines events, as those of a collective are
  void select(EventId e);                   // selects an event and brings it into view
  void mark(Picoseconds time);
  void fit();
  void focus_on_selection();
  void paint_to(QImage& image);  // paints the widget into an image, at the image's size and device pixel ratio

  QSize sizeHint() const override { return {1200, 600}; }
  // Returns what the tooltip at a pixel says: the name, kind and length of an event or a phase, memory or the load of a
  // link at that time, the whole name of a row; "" where nothing is.
  QString tip_at(const QPoint& at) const;

 Q_SIGNALS:
  void selected(EventId e);
  void time_clicked(Picoseconds time, int process);
  void link_clicked(Picoseconds time);  // a row that shows how full a link of the cluster is was clicked
  void area_changed(Picoseconds from, Picoseconds to);
  void scale_changed(Picoseconds begin, Picoseconds end);
  void options_changed(const LayoutOptions& options);  // emitted after a click has changed which rows are shown
  void scrolled(int y);
  void bar_changed(int width);  // room at the right for the scroll bar, in pixels; 0: there is none
  // Emitted when the user wants to write a note. `note` has no text yet; it gives the selected range of time, or the
  // clicked time and rank.
  void note_wanted(const Note& note);
  void scene_changed();                // another scene or another time axis is shown
  void menu_wanted(const QPoint& at);  // the right button was pressed; what lay there is selected

 protected:
  void paintEvent(QPaintEvent*) override;
  void resizeEvent(QResizeEvent*) override;
  void keyPressEvent(QKeyEvent*) override;
  void wheelEvent(QWheelEvent*) override;
  void mousePressEvent(QMouseEvent*) override;
  void mouseMoveEvent(QMouseEvent*) override;
  void mouseReleaseEvent(QMouseEvent*) override;
  void contextMenuEvent(QContextMenuEvent*) override;
  void leaveEvent(QEvent*) override;

 private:
  enum class Drag : std::uint8_t { none, pan, area };

  CanvasFrame frame() const { return {width() - bar_width(), height()}; }
  int bar_width() const;
  void relayout();
  void scroll_to(int y);
  void apply(TimeScale scale);
  template <class F>
  TimeScale on_axis(const F& function) const;
  void zoom(double x, double factor);
  void pan(double pixels);
  void hover(EventId e);
  void select_neighbour(bool next);
  void ask_for_note();
  void click(const QPoint& at);
  bool at_edge(int x, Picoseconds& other) const;
  bool toggle_row(int index);

  std::shared_ptr<const Scene> scene_, other_;
  View view_;
  LayoutOptions options_;
  Canvas canvas_;
  QImage image_;
  QScrollBar* bar_;
  Picoseconds earliest_ = 0, total_ = 1;  // the time axis: its earliest time, and its latest
  bool keeps_bar_ = false;                // whether room for the scroll bar is kept though all rows are in view
  Drag drag_ = Drag::none;
  QPoint pressed_, last_;
  Picoseconds anchor_ = 0;    // time of the edge of the selected range that is not dragged
  int clicked_process_ = -1;  // index of the process whose row was clicked last; -1: none
};

}  // namespace orrery
