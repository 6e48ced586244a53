#pragma once

#include <QImage>
#include <QWidget>
#include <vector>

#include "viz/draw/scene.h"

namespace orrery {

// A low strip with the compute lanes of a few ranks over the whole trace, in which a box shows what the timeline below
// has in view. A click or a drag moves the box.
class OverviewStrip : public QWidget {
  Q_OBJECT

 public:
  static constexpr int kHeight = 26;

  explicit OverviewStrip(QWidget* parent = nullptr);
  // earliest, latest: the time axis. scene must outlive the strip or be replaced; nullptr: none.
  void show_axis(const Scene* scene, Picoseconds earliest, Picoseconds latest);
  void show_view(Picoseconds begin, Picoseconds end);
  void set_margin(int pixels);  // room left free at the right, as the timeline below leaves some for its scroll bar
  QSize sizeHint() const override { return {600, kHeight}; }

 Q_SIGNALS:
  void moved(Picoseconds begin, Picoseconds end);

 protected:
  void paintEvent(QPaintEvent*) override;
  void mousePressEvent(QMouseEvent*) override;
  void mouseMoveEvent(QMouseEvent*) override;

 private:
  TimeScale axis() const;
  int plot_width() const;
  void paint_lanes();
  void move_to(double x);

  const Scene* scene_ = nullptr;
  Picoseconds earliest_ = 0, latest_ = 1, begin_ = 0, end_ = 1;
  int margin_ = 0;
  QImage lanes_;  // the lanes as they were painted last, at the device's pixels; null if they must be painted anew
};

}  // namespace orrery
