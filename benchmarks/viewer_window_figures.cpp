// Measures the promised speed of the viewer's window:
//   viewer_window_figures SOURCE_DIR [TRACE...]
// It measures the time to draw the timeline widget, at 1920x1080 and at the height of all its rows, for each TRACE
// (viewer_figures writes one of ten million events) at several zooms; and the time from a key press on a control of the
// what-if panel to the new picture. Needs no display. Times are processor times, which other users of the machine do
// not affect; if the elapsed time differs, it is printed after them.
#include <QApplication>
#include <QComboBox>
#include <QStyleFactory>
#include <QTest>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <vector>

#include <fmt/format.h>

#include "viz/window/main_window.h"

namespace {

using namespace orrery;

double wall_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double processor_ms() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return 1e3 * static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_nsec);
}

struct Times {
  std::vector<double> processor, wall;
  template <class Function>
  void time(Function function) {
    const double w = wall_ms(), p = processor_ms();
    function();
    processor.push_back(processor_ms() - p);
    wall.push_back(wall_ms() - w);
  }
  std::string text() {
    const auto at = [](std::vector<double>& v, double share) {
      std::sort(v.begin(), v.end());
      return v[std::min(v.size() - 1, static_cast<std::size_t>(static_cast<double>(v.size()) * share))];
    };
    return fmt::format("median {:7.2f} ms, p95 {:7.2f} ms (clock {:.2f}, {:.2f})", at(processor, 0.5),
                       at(processor, 0.95), at(wall, 0.5), at(wall, 0.95));
  }
};

void measure_frames(const std::string& path) {
  TimelineWidget widget;
  widget.show_scene(open_scenes({path}, {}, {}, 2)[0]);
  LayoutOptions options = widget.options();
  options.closed.clear();  // opens all processes, so that every lane has a row
  widget.set_options(options);
  const Picoseconds end = widget.scene()->timeline().end;
  fmt::print("{}: {} events, {} lanes\n", path, widget.scene()->timeline().events(),
             widget.scene()->timeline().tracks.size());
  const int all_rows = CanvasFrame::kRuler + CanvasFrame::kLegend + widget.view().layout.height;
  for (const int height : {1080, std::min(all_rows, 4000)}) {
    widget.resize(1920, height);
    QPixmap picture(widget.size());
    for (const double share : {1.0, 0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4, 1e-5, 1e-6}) {
      Times times;
      for (int i = 0; i < 40; ++i) {
        const auto length = static_cast<Picoseconds>(static_cast<double>(end) * share);
        widget.set_scale(end / 41 * i, end / 41 * i + length);
        times.time([&] { widget.render(&picture); });
      }
      fmt::print("frame 1920x{:<4} at {:<6g} of the trace  {}\n", height, share, times.text());
    }
  }
}

// Measures how long the window takes to show another strategy: keys are pressed on controls of the what-if panel, and
// the timeline is drawn anew after each before the next key is handled.
void measure_what_if(const std::string& spec, const std::vector<std::string>& overrides, const char* name) {
  MainWindow window;
  window.set_options({.overrides = overrides});
  window.resize(1500, 850);
  window.open({spec});
  window.show();
  QApplication::processEvents();
  Times times, after;
  for (const char* key : {"network", "nvlink", "strategy.micro_batch", "strategy.recompute", "strategy.sharding"}) {
    for (int i = 0; i < 4; ++i) {
      QComboBox* const box = window.what_if()->box(key);
      times.time([&] {
        QTest::keyClick(box, i < 2 ? Qt::Key_Up : Qt::Key_Down);
        window.what_if()->finish_work();
        window.first()->repaint();
      });
      // The background then finds the values that are not allowed, and the biggest levers.
      after.time([&] {
        window.finish_work();
        QApplication::processEvents();
      });
    }
  }
  fmt::print("what-if, {:<22} key to picture  {}\n{:>33} the rest after it  {}\n", name, times.text(), "",
             after.text());
}

}  // namespace

int main(int count, char** arguments) {
  qputenv("QT_QPA_PLATFORM", "offscreen");
  QApplication application(count, arguments);
  QApplication::setStyle(QStyleFactory::create("Fusion"));
  QApplication::setFont(canvas_font());
  if (count < 2) {
    std::fprintf(stderr, "usage: viewer_window_figures SOURCE_DIR [TRACE...]\n");
    return 2;
  }
  const std::string examples = std::string(arguments[1]) + "/examples/";
  measure_what_if(examples + "gpt-64-gpus.yaml", {"gpus=16", "strategy.data=null"}, "16 GPUs");
  measure_what_if(examples + "gpt3-175b-512.yaml", {}, "GPT-3 on 512, folded");
  for (int i = 2; i < count; ++i) measure_frames(arguments[i]);
}
