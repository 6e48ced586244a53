#pragma once

#include <QWidget>
#include <memory>

#include "viz/predicted/step.h"
#include "viz/predicted/what_if.h"

class QComboBox;
class QLabel;
class QPainter;
class QTableWidget;
class QTimer;

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
// strategies. It draws no timeline: it emits a signal when there is a new one.
class WhatIfPanel : public QWidget {
  Q_OBJECT

 public:
  explicit WhatIfPanel(QWidget* parent = nullptr);
  // path: the spec's file; "" if there is none, so that nothing can be changed.
  void show_spec(const std::string& path, const SpecOptions& options = {});
  QComboBox* box(const std::string& key) const;
  void try_strategies(std::size_t most);  // simulates up to `most` strategies in the event loop
  void try_all_now(std::size_t most);
  QTableWidget* table() const { return table_; }
  const std::vector<Tried>& tried() const { return tried_; }

 Q_SIGNALS:
  void simulated(std::shared_ptr<const Step> step);

 private:
  void change(std::size_t knob, int choice);
  void simulate();
  void grey_out();
  void try_next();
  void add_row(int row);
  void open_row(int row);

  std::unique_ptr<WhatIf> what_if_;
  std::string path_;
  SpecOptions options_;
  std::vector<QComboBox*> boxes_;
  QWidget* form_ = nullptr;
  QLabel* result_;
  QTableWidget* table_;
  Scatter* scatter_;
  QTimer* timer_;
  std::vector<Candidate> waiting_;
  std::vector<Tried> tried_;  // simulated strategies, the best first, in the order of the table
};

}  // namespace orrery
