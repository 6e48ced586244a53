#pragma once

#include <QWidget>
#include <memory>
#include <optional>

#include "viz/draw/scene.h"
#include "viz/predicted/what_if.h"
#include "viz/window/background.h"

class QComboBox;
class QLabel;
class QPainter;
class QTableWidget;

namespace orrery {

// A scatter plot of step time and memory, one point per strategy; points of strategies that do not fit in memory are
// hollow. The area of a point grows with the GPU hours of a step.
class Scatter : public QWidget {
  Q_OBJECT

 public:
  explicit Scatter(QWidget* parent = nullptr);
  void show_points(const std::vector<Tried>* points);
  int nearest(const QPoint& at) const;  // index of the point near a pixel of the plot; -1 if there is none
  QSize sizeHint() const override { return {360, 240}; }

 Q_SIGNALS:
  void clicked(int point);

 protected:
  void paintEvent(QPaintEvent*) override;
  void mousePressEvent(QMouseEvent*) override;
  void mouseMoveEvent(QMouseEvent*) override;

 private:
  QRectF plot() const;
  void paint_axes(QPainter& painter) const;
  QPointF screen_point(const Tried& t) const;
  const std::vector<Tried>* points_ = nullptr;
};

// A panel to change a spec's parallelism strategy and link speeds, simulating each change at once, and to compare
// strategies. Everything is simulated in the background. It draws no timeline: it emits a signal when there is a new
// one.
class WhatIfPanel : public QWidget {
  Q_OBJECT

 public:
  explicit WhatIfPanel(QWidget* parent = nullptr);
  // path: the spec's file; "" if there is none, so that nothing can be changed. step: the step that was simulated from
  // it, with which the panel compares what it simulates; nullptr: with none.
  void show_spec(const std::string& path, const SpecOptions& options = {}, const Step* step = nullptr);
  // Sets the number of threads that prepare a timeline for drawing, and whether the load of links is prepared too.
  void prepare(unsigned threads, bool links);
  QComboBox* box(const std::string& key) const;
  void try_strategies(std::size_t most);  // simulates up to `most` strategies, one after another
  void try_all_now(std::size_t most);
  void finish_work() { changed_.finish(); }  // waits for the change that is being simulated, and shows it
  QTableWidget* table() const { return table_; }
  const std::vector<Tried>& tried() const { return tried_; }

 Q_SIGNALS:
  void simulated(std::shared_ptr<const Scene> scene);

 private:
  void change(std::size_t knob, int choice);
  void simulate(const Spec& spec);
  void restore();
  void show_result(const Step& step);
  void grey_out();
  void try_next();
  void add_row(int row);
  void open_row(int row);

  // The settings, and those of the step that is shown.
  struct Settings {
    WhatIf now, shown;
  };
  std::optional<Settings> settings_;
  std::string path_;
  SpecOptions options_;
  std::vector<QComboBox*> boxes_;
  QWidget* form_ = nullptr;
  QLabel* result_;
  QTableWidget* table_;
  Scatter* scatter_;
  struct Preparation {
    unsigned threads = 1;
    bool links = false;
  };
  Preparation prepared_;
  double step_s_ = 0;  // of the spec as it was opened; 0: not known
  Background changed_, greying_, trying_;
  std::vector<Candidate> waiting_;
  std::vector<Tried> tried_;  // simulated strategies, the best first, in the order of the table
};

}  // namespace orrery
