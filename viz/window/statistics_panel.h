#pragma once

#include <QWidget>

#include "viz/draw/scene.h"
#include "viz/timeline/statistics.h"

class QTableWidget;

namespace orrery {

// Draws how long one op takes: a histogram of its durations, and below it a grid of ranks by micro-batches in colours
// of the change against the median (colour_of_change()).
class SpreadPlot : public QWidget {
  Q_OBJECT

 public:
  explicit SpreadPlot(QWidget* parent = nullptr);
  // scene: the trace, which must outlive the plot or be replaced; nullptr: none.
  void show_spread(const Scene* scene, const QString& title, OpSpread spread);
  QSize sizeHint() const override { return {360, 260}; }
  // Returns what stands at a pixel of the grid: "stage 1, micro-batch 3: 2.00 us"; "" outside the grid.
  QString text_at(const QPoint& at) const;

 protected:
  void paintEvent(QPaintEvent*) override;
  void mouseMoveEvent(QMouseEvent*) override;

 private:
  QRectF grid() const;
  void paint_histogram(QPainter& painter, const QRectF& plot) const;
  void paint_grid(QPainter& painter, const QRectF& plot) const;

  const Scene* scene_ = nullptr;
  QString title_;
  OpSpread spread_;
  Picoseconds median_ = 0;
};

// A table of all ops with number, sum and distribution of their durations in a range of time, the longest first, and
// the plot of the op that is chosen. Where a step has phases, they stand above the ops, in bold, and ops of different
// phases are apart, each with the phase's colour.
class StatisticsPanel : public QWidget {
  Q_OBJECT

 public:
  explicit StatisticsPanel(QWidget* parent = nullptr);
  void show_range(const Scene* scene, Picoseconds from, Picoseconds to);
  // Chooses the op with this name in a phase, or with this name in any; a phase as a whole where the name is empty; the
  // first op if there is none.
  void choose(const std::string& name, std::int8_t phase = kNoPhase);
  QTableWidget* table() const { return table_; }
  SpreadPlot* plot() const { return plot_; }

 private:
  void show_row(int row);
  void fit_columns();
  void fill_row(int row, const OpStatistics& s, Picoseconds all, const QString& name, std::int8_t phase);

  const Scene* scene_ = nullptr;
  Picoseconds from_ = 0, to_ = 0;
  std::string chosen_;
  std::int8_t chosen_phase_ = kNoPhase;
  std::vector<OpStatistics> phases_;  // the rows above those of the ops
  std::vector<OpStatistics> rows_;
  QTableWidget* table_;
  SpreadPlot* plot_;
};

}  // namespace orrery
