#include "viz/window/what_if_panel.h"

#include <QComboBox>
#include <QGridLayout>
#include <QHeaderView>
#include <QLabel>
#include <QMouseEvent>
#include <QPainter>
#include <QPushButton>
#include <QStandardItemModel>
#include <QTableWidget>
#include <QVBoxLayout>
#include <algorithm>
#include <chrono>
#include <cmath>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/load/load_spec.h"
#include "sim/page/axis.h"
#include "sim/print/text.h"
#include "viz/window/canvas.h"
#include "viz/window/palette.h"

namespace orrery {
namespace {

constexpr double kNear = 12;  // number of pixels around a point within which a click selects it
constexpr double kLeft = 66;  // left margin of the plot in pixels, for the labels of the memory axis
constexpr int kColumns = 8;
constexpr int kFirstFigure = 4;  // index of the first column, in the table of strategies, that has figures

QTableWidgetItem* cell_of(const std::string& text) {
  auto* item = new QTableWidgetItem(QString::fromStdString(text));
  item->setFlags(Qt::ItemIsEnabled | Qt::ItemIsSelectable);
  return item;
}

double most(const std::vector<Tried>& points, double (*value)(const Tried&)) {
  double largest = 0;
  for (const Tried& t : points) largest = std::max(largest, value(t));
  return largest > 0 ? largest * 1.08 : 1;
}
double step_of(const Tried& t) { return t.step_s; }
double memory_value(const Tried& t) {
  return static_cast<double>(std::max(t.memory, t.error.empty() ? t.capacity : 0));
}
double hours_of(const Tried& t) { return t.gpu_hours; }

}  // namespace

Scatter::Scatter(QWidget* parent) : QWidget(parent) {
  setMinimumHeight(150);
  setMouseTracking(true);
}

void Scatter::show_points(const std::vector<Tried>* points) {
  points_ = points;
  update();
}

QRectF Scatter::plot() const { return {kLeft, 10.0, width() - kLeft - 10.0, height() - 56.0}; }

QPointF Scatter::screen_point(const Tried& t) const {
  const QRectF r = plot();
  const double x = t.step_s / most(*points_, step_of), y = static_cast<double>(t.memory) / most(*points_, memory_value);
  return {r.left() + x * r.width(), r.bottom() - y * r.height()};
}

int Scatter::nearest(const QPoint& at) const {
  int best = -1;
  double distance = kNear;
  for (std::size_t i = 0; points_ != nullptr && i < points_->size(); ++i) {
    const QPointF d = screen_point((*points_)[i]) - at;
    if (!(*points_)[i].error.empty() || std::hypot(d.x(), d.y()) > distance) continue;
    distance = std::hypot(d.x(), d.y());
    best = static_cast<int>(i);
  }
  return best;
}

void Scatter::mouseMoveEvent(QMouseEvent* event) {
  const int point = nearest(event->pos());
  const auto text_of = [](const Tried& t) {
    return QString::fromStdString(fmt::format("{}\n{}, {}, {:.3g} GPU hours", name_of(t.candidate), time_text(t.step_s),
                                              memory_text(static_cast<double>(t.memory)), t.gpu_hours));
  };
  setToolTip(point < 0 ? QString() : text_of((*points_)[static_cast<std::size_t>(point)]));
}

void Scatter::mousePressEvent(QMouseEvent* event) {
  const int point = nearest(event->pos());
  if (point >= 0) Q_EMIT clicked(point);
}

void Scatter::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setFont(canvas_font());
  painter.fillRect(rect(), colours::kPaper);
  const auto known = [](const Tried& t) { return t.error.empty(); };
  if (points_ == nullptr || std::none_of(points_->begin(), points_->end(), known)) return;
  paint_axes(painter);
  painter.setRenderHint(QPainter::Antialiasing);
  const double hours = most(*points_, hours_of);
  for (const Tried& t : *points_) {
    if (!t.error.empty()) continue;
    const double radius = 3 + 5 * std::sqrt(t.gpu_hours / hours);
    painter.setPen(QPen(t.fits ? colour_of(Kind::forward) : colours::kLimit, 1.5));
    painter.setBrush(t.fits ? QBrush(colour_of(Kind::backward)) : QBrush(Qt::NoBrush));
    painter.drawEllipse(screen_point(t), radius, radius);
  }
}

// Paints the plot's grid (at round values of both axes), a line at the GPU's memory capacity, and the legend.
void Scatter::paint_axes(QPainter& painter) const {
  const QRectF r = plot();
  const double time = most(*points_, step_of), memory = most(*points_, memory_value);
  const Scale s = time_scale(time), bytes = memory_scale(memory);
  const auto label = [](double tick, const Scale& unit) {
    return QString::fromStdString(tick == 0 ? "0" : fmt::format("{} {}", tick_text(tick), unit.unit));
  };
  const PageAxis across{0, time / s.size, false, r.left(), r.right()};
  for (const double tick : ticks(across, 4)) {
    const double x = across.at(tick);
    painter.setPen(colours::kGrid);
    painter.drawLine(QPointF(x, r.top()), QPointF(x, r.bottom()));
    painter.setPen(colours::kFaintInk);
    painter.drawText(QRectF(x - 40, r.bottom() + 3, 80, 16), Qt::AlignHCenter, label(tick, s));
  }
  const PageAxis up{0, memory / bytes.size, false, r.bottom(), r.top()};
  for (const double tick : ticks(up, 4)) {
    const double y = up.at(tick);
    painter.setPen(colours::kGrid);
    painter.drawLine(QPointF(r.left(), y), QPointF(r.right(), y));
    painter.setPen(colours::kFaintInk);
    painter.drawText(QRectF(0, y - 8, kLeft - 5, 16), Qt::AlignRight | Qt::AlignVCenter, label(tick, bytes));
  }
  painter.drawText(QRectF(r.left() - 40, r.bottom() + 20, r.width() + 40, 16), Qt::AlignRight,
                   "step time; up: memory; larger: more GPU hours");
  Bytes capacity = 0;
  for (const Tried& t : *points_) capacity = std::max(capacity, t.capacity);
  const double y = r.bottom() - static_cast<double>(capacity) / memory * r.height();
  painter.setPen(QPen(colours::kLimit, 1, Qt::DashLine));
  painter.drawLine(QPointF(r.left(), y), QPointF(r.right(), y));
  painter.drawText(QRectF(r.right() - 120, y, 116, 16), Qt::AlignRight, "capacity");
}

WhatIfPanel::WhatIfPanel(QWidget* parent)
    : QWidget(parent), result_(new QLabel), table_(new QTableWidget(0, kColumns)), scatter_(new Scatter) {
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(6, 4, 6, 4);
  layout->setSpacing(4);
  layout->addWidget(result_);
  auto* button = new QPushButton("Compare strategies");
  layout->addWidget(button);
  layout->addWidget(table_, 1);
  layout->addWidget(scatter_);
  result_->setWordWrap(true);
  result_->setText("Open a spec to change its strategy here.");
  table_->setHorizontalHeaderLabels({"tp", "pp", "sharding", "recompute", "step", "memory", "GPU h", "MFU"});
  table_->verticalHeader()->setVisible(false);
  table_->verticalHeader()->setDefaultSectionSize(20);
  table_->setFont(canvas_font());
  table_->setSelectionBehavior(QAbstractItemView::SelectRows);
  // The table takes what is left, so that the plot below it stays in a small window.
  table_->setMinimumHeight(110);
  table_->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Ignored);
  table_->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  table_->horizontalHeader()->setMinimumSectionSize(16);
  connect(button, &QPushButton::clicked, this, [this] { try_strategies(200); });
  connect(table_, &QTableWidget::cellClicked, this, [this](int row, int) { open_row(row); });
  connect(scatter_, &Scatter::clicked, this, [this](int point) {
    table_->selectRow(point);
    open_row(point);
  });
}

QComboBox* WhatIfPanel::box(const std::string& key) const {
  for (std::size_t i = 0; settings_ && i < boxes_.size(); ++i) {
    if (settings_->now.knobs()[i].key == key) return boxes_[i];
  }
  return nullptr;
}

void WhatIfPanel::prepare(unsigned threads, bool links) { prepared_ = {threads, links}; }

void WhatIfPanel::show_spec(const std::string& path, const SpecOptions& options, const Step* step) {
  path_ = path;
  options_ = options;
  step_s_ = step == nullptr ? 0 : step->prediction.report.step_time_s;
  table_->horizontalHeaderItem(kFirstFigure)
      ->setText(step != nullptr && step->spec.generation ? "all of a batch" : "step");
  for (Background* work : {&changed_, &greying_, &trying_}) work->drop();
  settings_.reset();
  boxes_.clear();
  waiting_.clear();
  tried_.clear();
  table_->setRowCount(0);
  scatter_->show_points(nullptr);
  delete std::exchange(form_, nullptr);
  if (path.empty()) return result_->setText("Open a spec to change its strategy here.");
  const WhatIf opened(path, options.overrides);
  settings_ = Settings{opened, opened};
  form_ = new QWidget;
  auto* form = new QGridLayout(form_);
  form->setContentsMargins(0, 0, 0, 0);
  form->setVerticalSpacing(2);
  form->setHorizontalSpacing(4);
  for (std::size_t i = 0; i < settings_->now.knobs().size(); ++i) {
    const Knob& knob = settings_->now.knobs()[i];
    auto* box = new QComboBox;
    box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    box->setMinimumContentsLength(6);
    for (const std::string& value : knob.values) box->addItem(QString::fromStdString(value));
    box->setCurrentText(QString::fromStdString(knob.value));
    // Two settings stand side by side, so that all of them and the strategies below fit into a small window.
    const int row = static_cast<int>(i / 2), column = static_cast<int>(i % 2) * 2;
    form->addWidget(new QLabel(QString::fromStdString(knob.title)), row, column);
    form->addWidget(box, row, column + 1);
    boxes_.push_back(box);
    connect(box, &QComboBox::currentIndexChanged, this, [this, i](int choice) { change(i, choice); });
  }
  static_cast<QVBoxLayout*>(layout())->insertWidget(1, form_);
  result_->setText("Change anything: the step is simulated again at once.");
  grey_out();
}

void WhatIfPanel::change(std::size_t knob, int choice) {
  try {
    settings_->now.set(knob, boxes_[knob]->itemText(choice).toStdString());
    simulate(settings_->now.spec());
    grey_out();
  } catch (const Error& e) {
    result_->setText(QString::fromStdString(e.what()));
    restore();
  }
}

// Sets all settings as they are of the step that is shown.
void WhatIfPanel::restore() {
  changed_.drop();
  settings_->now = settings_->shown;
  for (std::size_t i = 0; i < boxes_.size(); ++i) {
    const QSignalBlocker blocker(boxes_[i]);
    boxes_[i]->setCurrentText(QString::fromStdString(settings_->now.knobs()[i].value));
  }
  grey_out();
}

// Simulates a spec and emits its scene, or restores the settings if it cannot be simulated.
void WhatIfPanel::simulate(const Spec& spec) {
  result_->setText("The step is being simulated.");
  const auto make = [spec, options = options_, prepared = prepared_](const std::atomic<bool>& unwanted) {
    auto scene = std::make_shared<const Scene>(document_of(timeline_of(predict_step(spec, options, &unwanted))),
                                               prepared.threads);
    if (prepared.links) scene->fabric();
    return scene;
  };
  const auto show = [this, asked = settings_->now,
                     start = std::chrono::steady_clock::now()](const std::shared_ptr<const Scene>& scene) {
    settings_->shown = asked;
    Q_EMIT simulated(scene);
    show_result(*scene->document.step);
    const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    result_->setToolTip(QString::fromStdString(fmt::format("simulated and laid out in {:.0f} ms", ms)));
  };
  changed_.run(make, show, [this](const std::string& why) {
    result_->setText(QString::fromStdString(why));
    restore();
  });
}

void WhatIfPanel::show_result(const Step& step) {
  const Report& r = step.prediction.report;
  const bool text = step.spec.generation.has_value();
  std::string line = fmt::format("{} {}", text ? "the passes shown take" : "step", time_text(r.step_time_s));
  if (step_s_ > 0 && std::abs(r.step_time_s / step_s_ - 1) >= 0.0005)
    line += fmt::format(" ({:+.1f} % on {})", 100 * (r.step_time_s / step_s_ - 1), time_text(step_s_));
  line += fmt::format(", memory {}{}", memory_text(static_cast<double>(r.memory.peak_device)),
                      r.memory.fits ? "" : " (does not fit)");
  if (r.mfu > 0) line += fmt::format(", MFU {}", percent_text(r.mfu));
  result_->setText(QString::fromStdString(line));
}

// Greys out the values of settings that the spec's rules forbid with the other settings as they are, and shows the
// reason.
void WhatIfPanel::grey_out() {
  using Choices = std::vector<std::vector<Choice>>;
  const auto find = [what_if = settings_->now](const std::atomic<bool>& unwanted) {
    Choices all;
    for (std::size_t i = 0; i < what_if.knobs().size() && !unwanted; ++i) all.push_back(what_if.choices(i));
    return all;
  };
  const auto show = [this](const Choices& all) {
    for (std::size_t i = 0; i < boxes_.size() && i < all.size(); ++i) {
      auto* items = qobject_cast<QStandardItemModel*>(boxes_[i]->model());
      for (std::size_t c = 0; items != nullptr && c < all[i].size(); ++c) {
        QStandardItem* item = items->item(static_cast<int>(c));
        item->setEnabled(all[i][c].reason.empty());
        item->setToolTip(QString::fromStdString(all[i][c].reason));
      }
    }
  };
  greying_.run(find, show, [this](const std::string& why) { result_->setText(QString::fromStdString(why)); });
}

void WhatIfPanel::try_strategies(std::size_t most_of_them) {
  if (path_.empty()) return;
  waiting_.clear();
  tried_.clear();
  table_->setRowCount(0);
  const auto try_them = [this](const std::vector<Candidate>& found) {
    waiting_ = found;
    std::reverse(waiting_.begin(), waiting_.end());
    try_next();
  };
  trying_.run([path = path_, most_of_them, options = options_] { return candidates(path, most_of_them, options); },
              try_them, [this](const std::string& why) { result_->setText(QString::fromStdString(why)); });
}

void WhatIfPanel::try_all_now(std::size_t most_of_them) {
  try_strategies(most_of_them);
  trying_.finish();
}

void WhatIfPanel::try_next() {
  if (waiting_.empty()) return;
  const auto show = [this](const Tried& tried) {
    waiting_.pop_back();
    const auto at = std::upper_bound(tried_.begin(), tried_.end(), tried, better);
    const int row = static_cast<int>(at - tried_.begin());
    tried_.insert(at, tried);
    add_row(row);
    scatter_->show_points(&tried_);
    try_next();
  };
  const auto try_it = [path = path_, next = waiting_.back(), options = options_](const std::atomic<bool>& unwanted) {
    return try_candidate(path, next, options, &unwanted);
  };
  trying_.run(try_it, show, [this](const std::string& why) { result_->setText(QString::fromStdString(why)); });
}

void WhatIfPanel::add_row(int row) {
  const Tried& t = tried_[static_cast<std::size_t>(row)];
  const Candidate& c = t.candidate;
  table_->insertRow(row);
  const std::string cells[kColumns] = {std::to_string(c.tensor),
                                       std::to_string(c.pipeline),
                                       c.sharding,
                                       c.recompute,
                                       time_text(t.step_s),
                                       memory_text(static_cast<double>(t.memory)),
                                       fmt::format("{:.3g}", t.gpu_hours),
                                       t.mfu > 0 ? percent_text(t.mfu) : "-"};
  for (int i = 0; i < kColumns; ++i) {
    QTableWidgetItem* const item = cell_of(t.error.empty() || i < kFirstFigure ? cells[i] : "-");
    if (!t.fits) item->setForeground(colours::kLimit);
    item->setToolTip(QString::fromStdString(!t.error.empty() ? t.error : t.fits ? "" : "does not fit"));
    table_->setItem(row, i, item);
  }
}

void WhatIfPanel::open_row(int row) {
  if (row < 0 || row >= static_cast<int>(tried_.size())) return;
  const Tried& t = tried_[static_cast<std::size_t>(row)];
  try {
    simulate(load_spec(path_, t.candidate.overrides));
  } catch (const Error& e) {
    result_->setText(QString::fromStdString(e.what()));
  }
}

}  // namespace orrery
