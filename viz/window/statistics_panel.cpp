#include "viz/window/statistics_panel.h"

#include <QHeaderView>
#include <QMouseEvent>
#include <QPainter>
#include <QScrollBar>
#include <QTableWidget>
#include <QToolTip>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sim/print/text.h"
#include "viz/timeline/shown_name.h"
#include "viz/window/canvas.h"
#include "viz/window/palette.h"

namespace orrery {
namespace {

constexpr std::size_t kBins = 40;                 // bins of the histogram
constexpr int kMostOps = 500;                     // the most ops in the table
constexpr std::size_t kMostRows = 64;             // the most ranks in the grid; of more, every so manyth is shown
constexpr int kLeastName = 120, kMostName = 150;  // least and greatest width in pixels of the column of names
constexpr double kNames = 90;                     // width in pixels of the ranks' names
constexpr double kTop = 20, kLow = 20;            // height in pixels of the title, and of the words below a plot

QString duration_text(Picoseconds t) { return QString::fromStdString(time_text(seconds(t))); }

// A small square in the colour of a phase.
QPixmap swatch_of(std::int8_t phase) {
  QPixmap swatch(10, 10);
  swatch.fill(colour_of_phase(static_cast<std::size_t>(phase)));
  return swatch;
}

}  // namespace

SpreadPlot::SpreadPlot(QWidget* parent) : QWidget(parent) {
  setMouseTracking(true);
  setMinimumHeight(170);
}

void SpreadPlot::show_spread(const Scene* scene, const QString& title, OpSpread spread) {
  scene_ = scene;
  title_ = title;
  spread_ = std::move(spread);
  std::vector<Picoseconds> sorted = spread_.durations;
  std::sort(sorted.begin(), sorted.end());
  median_ = sorted.empty() ? 0 : sorted[sorted.size() / 2];
  const std::size_t every = (spread_.processes.size() + kMostRows - 1) / kMostRows;
  for (std::size_t i = 0; every > 1 && i * every < spread_.processes.size(); ++i) {
    spread_.processes[i] = spread_.processes[i * every];
    spread_.mean[i] = spread_.mean[i * every];
  }
  if (every > 1) {
    spread_.processes.resize((spread_.processes.size() + every - 1) / every);
    spread_.mean.resize(spread_.processes.size());
  }
  update();
}

QRectF SpreadPlot::grid() const {
  const double top = kTop + height() * 0.45;
  return {kNames, top, width() - kNames - 6, height() - top - kLow};
}

QString SpreadPlot::text_at(const QPoint& at) const {
  const QRectF plot = grid();
  if (scene_ == nullptr || spread_.mean.empty() || !plot.contains(at)) return {};
  const auto row = static_cast<std::size_t>((at.y() - plot.top()) / plot.height() * std::ssize(spread_.mean));
  const auto column = static_cast<std::size_t>((at.x() - plot.left()) / plot.width() * std::ssize(spread_.columns));
  if (row >= spread_.mean.size() || column >= spread_.columns.size()) return {};
  const Picoseconds mean = spread_.mean[row][column];
  QString text = QString::fromStdString(scene_->timeline().processes[spread_.processes[row]].name);
  if (spread_.columns[column] >= 0)
    text +=
        QString(", %1 %2").arg(scene_->timeline().phases.empty() ? "micro-batch" : "pass").arg(spread_.columns[column]);
  return text + ": " + (mean < 0 ? QString("does not occur") : duration_text(mean));
}

void SpreadPlot::mouseMoveEvent(QMouseEvent* event) {
  QToolTip::showText(event->globalPosition().toPoint(), text_at(event->pos()), this);
}

void SpreadPlot::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), colours::kPaper);
  painter.setFont(canvas_font(true));
  painter.setPen(colours::kInk);
  painter.drawText(QRectF(6, 0, width() - 12, kTop), Qt::AlignVCenter,
                   painter.fontMetrics().elidedText(title_, Qt::ElideRight, width() - 12));
  painter.setFont(canvas_font());
  if (spread_.durations.empty()) return;
  paint_histogram(painter, {kNames, kTop, width() - kNames - 6, height() * 0.45 - kLow});
  paint_grid(painter, grid());
}

void SpreadPlot::paint_histogram(QPainter& painter, const QRectF& plot) const {
  const Histogram h = histogram_of(spread_.durations, kBins);
  const auto most = static_cast<double>(*std::max_element(h.counts.begin(), h.counts.end()));
  const double wide = plot.width() / static_cast<double>(kBins);
  for (std::size_t i = 0; i < kBins; ++i) {
    if (h.counts[i] == 0) continue;
    const double high = std::max(1.0, plot.height() * static_cast<double>(h.counts[i]) / most);
    painter.fillRect(QRectF(plot.left() + static_cast<double>(i) * wide, plot.bottom() - high, wide - 1, high),
                     colour_of(Kind::forward));
  }
  painter.setPen(colours::kGrid);
  painter.drawLine(plot.bottomLeft(), plot.bottomRight());
  painter.setPen(colours::kFaintInk);
  painter.drawText(QRectF(0, plot.top(), kNames - 6, 16), Qt::AlignRight, QString::number(most));
  const QRectF below(plot.left(), plot.bottom() + 2, plot.width(), kLow - 4);
  painter.drawText(below, Qt::AlignLeft, duration_text(h.least));
  painter.drawText(below, Qt::AlignHCenter, "median " + duration_text(median_));
  painter.drawText(below, Qt::AlignRight, duration_text(h.least + h.width * static_cast<Picoseconds>(kBins)));
}

void SpreadPlot::paint_grid(QPainter& painter, const QRectF& plot) const {
  const double high = plot.height() / static_cast<double>(spread_.mean.size());
  const double wide = plot.width() / static_cast<double>(spread_.columns.size());
  const int gap = high > 4 && wide > 4 ? 1 : 0;
  for (std::size_t r = 0; r < spread_.mean.size(); ++r) {
    for (std::size_t c = 0; c < spread_.columns.size(); ++c) {
      const Picoseconds mean = spread_.mean[r][c];
      const double change = median_ > 0 ? static_cast<double>(mean) / static_cast<double>(median_) - 1 : 0;
      painter.fillRect(QRectF(plot.left() + static_cast<double>(c) * wide, plot.top() + static_cast<double>(r) * high,
                              wide - gap, high - gap),
                       mean < 0 ? colours::kRow : colour_of_change(change));
    }
    if (high < 12 && r % static_cast<std::size_t>(std::ceil(12 / high)) != 0) continue;
    painter.setPen(colours::kInk);
    const QString name = QString::fromStdString(scene_->timeline().processes[spread_.processes[r]].name);
    painter.drawText(QRectF(4, plot.top() + static_cast<double>(r) * high, kNames - 8, std::max(high, 12.0)),
                     Qt::AlignVCenter | Qt::AlignLeft,
                     painter.fontMetrics().elidedText(name, Qt::ElideRight, static_cast<int>(kNames) - 8));
  }
  painter.setPen(colours::kFaintInk);
  const bool batches = spread_.columns.back() >= 0;
  painter.drawText(QRectF(plot.left(), plot.bottom() + 2, plot.width(), kLow - 4), Qt::AlignLeft,
                   batches ? QString("%1 %2 to %3; blue: below the median, orange: above")
                                 .arg(scene_->timeline().phases.empty() ? "micro-batches" : "passes")
                                 .arg(spread_.columns.front())
                                 .arg(spread_.columns.back())
                           : QString("ranks; blue: below the median, orange: above"));
}

StatisticsPanel::StatisticsPanel(QWidget* parent)
    : QWidget(parent), table_(new QTableWidget(0, 8)), plot_(new SpreadPlot) {
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(table_, 1);
  layout->addWidget(plot_, 1);
  table_->setHorizontalHeaderLabels({"op", "%", "total", "times", "mean", "median", "p95", "longest"});
  table_->verticalHeader()->setVisible(false);
  table_->verticalHeader()->setDefaultSectionSize(20);
  table_->setFont(canvas_font());
  table_->setAlternatingRowColors(true);
  table_->setTextElideMode(Qt::ElideMiddle);  // names' ends tell ops apart: "mlp down gather"
  table_->setSelectionBehavior(QAbstractItemView::SelectRows);
  table_->horizontalHeader()->setMinimumSectionSize(16);
  connect(table_, &QTableWidget::cellClicked, this, [this](int row, int) {
    const std::size_t at = static_cast<std::size_t>(row) - phases_.size();
    if (row >= 0 && row < static_cast<int>(phases_.size())) {
      chosen_.clear();
      chosen_phase_ = static_cast<std::int8_t>(phases_[static_cast<std::size_t>(row)].label);
    } else if (scene_ != nullptr && at < rows_.size()) {
      chosen_ = scene_->timeline().labels[rows_[at].label].name;
      chosen_phase_ = scene_->timeline().labels[rows_[at].label].phase;
    }
    show_row(row);
  });
}

void StatisticsPanel::fill_row(int row, const OpStatistics& s, Picoseconds all, const QString& name,
                               std::int8_t phase) {
  const bool whole = row < static_cast<int>(phases_.size());
  const QString cells[] = {
      name,
      QString::number(100.0 * static_cast<double>(s.total) / static_cast<double>(std::max<Picoseconds>(1, all)), 'f',
                      1),
      duration_text(s.total),
      QString::number(s.count),
      duration_text(s.mean()),
      duration_text(s.median),
      duration_text(s.p95),
      duration_text(s.most)};
  for (int c = 0; c < 8; ++c) {
    auto* item = new QTableWidgetItem(cells[c]);
    item->setFlags(Qt::ItemIsEnabled | Qt::ItemIsSelectable);
    if (c > 0) item->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
    if (c == 0 && phase != kNoPhase) item->setData(Qt::DecorationRole, swatch_of(phase));
    if (whole) item->setFont(canvas_font(true));
    table_->setItem(row, c, item);
  }
}

void StatisticsPanel::show_range(const Scene* scene, Picoseconds from, Picoseconds to) {
  scene_ = scene;
  from_ = from;
  to_ = to;
  rows_ = scene == nullptr ? std::vector<OpStatistics>{} : op_statistics(scene->timeline(), from, to);
  phases_ =
      scene == nullptr ? std::vector<OpStatistics>{} : phase_statistics(scene->timeline(), scene->bands, from, to);
  const auto sum = [](const std::vector<OpStatistics>& rows) {
    Picoseconds all = 0;
    for (const OpStatistics& s : rows) all += s.total;
    return all;
  };
  const Picoseconds of_phases = sum(phases_), of_ops = sum(rows_);
  const int above = static_cast<int>(phases_.size());
  const int count = std::min<int>(kMostOps, static_cast<int>(rows_.size()));
  table_->setRowCount(above + count);
  for (int i = 0; i < above; ++i) {
    const OpStatistics& s = phases_[static_cast<std::size_t>(i)];
    const std::string& name = scene->timeline().phases[s.label];
    fill_row(i, s, of_phases, QString::fromStdString(name), static_cast<std::int8_t>(s.label));
    table_->item(i, 0)->setToolTip("how long ranks compute in this phase at a time");
  }
  for (int i = 0; i < count; ++i) {
    const OpStatistics& s = rows_[static_cast<std::size_t>(i)];
    const Label& label = scene->timeline().labels[s.label];
    fill_row(above + i, s, of_ops, QString::fromStdString(shown_name(label)), label.phase);
    const std::string phase =
        label.phase == kNoPhase ? "" : ", " + scene->timeline().phases[static_cast<std::size_t>(label.phase)];
    table_->item(above + i, 0)
        ->setToolTip(QString::fromStdString(fmt::format("{} ({}{})", label.name, name_of(label.kind), phase)));
  }
  fit_columns();
  choose(chosen_, chosen_phase_);
}

// Gives the names what the other columns leave of the panel's width. Where that is too little, the median is left out,
// which stands below the histogram too.
void StatisticsPanel::fit_columns() {
  constexpr int kMedian = 5;  // column of the median
  table_->setColumnHidden(kMedian, false);
  table_->resizeColumnsToContents();
  const int high = table_->horizontalHeader()->height() + table_->rowCount() * table_->verticalHeader()->sectionSize(0);
  const int bar = high > table_->height() ? table_->verticalScrollBar()->sizeHint().width() : 0;
  const int room = table_->width() - 2 * table_->frameWidth() - bar;
  int others = 0;  // width in pixels of the columns of figures
  for (int c = 1; c < table_->columnCount(); ++c) others += table_->columnWidth(c);
  const bool narrow = room - others < kLeastName;
  if (narrow) others -= table_->columnWidth(kMedian);
  table_->setColumnHidden(kMedian, narrow);
  table_->setColumnWidth(0, std::clamp(room - others, kLeastName, kMostName));
}

void StatisticsPanel::choose(const std::string& name, std::int8_t phase) {
  chosen_ = name;
  chosen_phase_ = phase;
  std::size_t row = 0;
  bool found = false;
  const auto whole = std::find_if(phases_.begin(), phases_.end(),
                                  [&](const OpStatistics& s) { return static_cast<std::int8_t>(s.label) == phase; });
  if (name.empty() && phase != kNoPhase && whole != phases_.end()) {
    const int of_phase = static_cast<int>(whole - phases_.begin());
    table_->selectRow(of_phase);
    return show_row(of_phase);
  }
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const Label& label = scene_->timeline().labels[rows_[i].label];
    if (label.name != name || (found && label.phase != phase)) continue;
    row = i;
    found = true;
    if (label.phase == phase) break;
  }
  table_->selectRow(static_cast<int>(row + phases_.size()));
  show_row(static_cast<int>(row + phases_.size()));
}

void StatisticsPanel::show_row(int row) {
  const std::size_t at = static_cast<std::size_t>(row) - phases_.size();
  const bool phase = row >= 0 && row < static_cast<int>(phases_.size());
  if (scene_ == nullptr || row < 0 || (!phase && at >= rows_.size()))
    return plot_->show_spread(nullptr, "", OpSpread{});
  const Timeline& t = scene_->timeline();
  if (phase) {
    const std::uint32_t index = phases_[static_cast<std::size_t>(row)].label;
    return plot_->show_spread(scene_, QString::fromStdString(t.phases[index]),
                              spread_of_phase(scene_->bands, static_cast<std::int8_t>(index), from_, to_));
  }
  const Label& label = t.labels[rows_[at].label];
  const std::string of = label.phase == kNoPhase ? "" : ", " + t.phases[static_cast<std::size_t>(label.phase)];
  plot_->show_spread(scene_, QString::fromStdString(shown_name(label) + of), spread_of(t, rows_[at].label, from_, to_));
}

}  // namespace orrery
