// The program orrery-view parses the command line, and opens a window or paints one into a picture file.
#include <CLI/CLI.hpp>
#include <QApplication>
#include <QLayout>
#include <QStyleFactory>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string_view>

#include <unistd.h>

#include "models/base/error.h"
#include "models/base/installed.h"
#include "sim/cli/commit.h"
#include "sim/cli/completion.h"
#include "sim/cli/manual.h"
#include "sim/print/fold.h"
#include "viz/window/main_window.h"

namespace {

using orrery::Error;

struct Options {
  std::vector<std::string> inputs;
  orrery::SpecOptions spec;
  std::string screenshot, size = "1600x900", view, pin, shell;
  bool quiet = false, manual = false;
  unsigned threads = 2;
};

QSize parse_size(const std::string& text) {
  int width = 0, height = 0;
  char end = 0;
  if (std::sscanf(text.c_str(), "%dx%d%c", &width, &height, &end) != 2 || width < 320 || height < 200 ||
      width > 16384 || height > 16384)
    throw Error("--size: " + text + " is no size; give WIDTHxHEIGHT from 320x200 to 16384x16384");
  return {width, height};
}

// Sets a fixed style, so that pictures are the same on every desktop.
void set_look() {
  QApplication::setStyle(QStyleFactory::create("Fusion"));
  QApplication::setFont(orrery::canvas_font());
  QPalette palette(QColor(240, 241, 244));
  palette.setColor(QPalette::Highlight, QColor(44, 111, 179));
  palette.setColor(QPalette::Base, Qt::white);
  QApplication::setPalette(palette);
}

int take_screenshot(const Options& o) {
  const QSize size = parse_size(o.size);
  orrery::MainWindow window;
  window.set_options(o.spec);
  window.set_threads(o.threads);
  // The layout has no size constraint, since it would enlarge a window that is smaller than its widgets ask for.
  window.layout()->setSizeConstraint(QLayout::SetNoConstraint);
  window.setMinimumSize(1, 1);
  window.resize(size);
  window.pin_what_opens(o.pin);
  if (!o.inputs.empty()) window.open(o.inputs);
  window.show();
  QApplication::processEvents();
  if (!o.inputs.empty() && !o.view.empty()) window.show_view(o.view);
  QApplication::processEvents();
  const QString path = QString::fromStdString(o.screenshot);
  if (!window.grab().toImage().save(path)) throw Error(o.screenshot + ": cannot write; its name must end in .png");
  return 0;
}

// Returns whether there is a display, or another platform of Qt is asked for by name, such as "offscreen". Without
// either, Qt ends the process.
bool has_display() {
  const auto is_set = [](const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr && *value != '\0';
  };
  return is_set("DISPLAY") || is_set("WAYLAND_DISPLAY") || is_set("QT_QPA_PLATFORM");
}

// Passes over Qt's remark that a variable of desktops is missing, which it writes wherever there is no desktop.
void message_of_qt(QtMsgType, const QMessageLogContext&, const QString& text) {
  if (!text.startsWith("QStandardPaths: XDG_RUNTIME_DIR")) std::fprintf(stderr, "%s\n", qPrintable(text));
}

int fail(std::string_view what, int status) {
  std::fprintf(stderr, "orrery-view: %s\n", orrery::one_line(what).c_str());
  return status;
}

int run(int argc, char** argv, const Options& o) {
  if (!o.screenshot.empty()) setenv("QT_QPA_PLATFORM", "offscreen", 0);
  if (o.screenshot.empty() && !has_display())
    throw Error(
        "no display: neither DISPLAY nor WAYLAND_DISPLAY is set; without one: orrery-view --screenshot FILE.png INPUT");
  if (!o.screenshot.empty()) qInstallMessageHandler(message_of_qt);
  if (o.quiet) qInstallMessageHandler([](QtMsgType, const QMessageLogContext&, const QString&) {});
  QApplication application(argc, argv);
  set_look();
  if (!o.screenshot.empty()) return take_screenshot(o);
  orrery::MainWindow window;
  window.set_options(o.spec);
  window.set_threads(o.threads);
  window.pin_what_opens(o.pin);
  window.show();
  if (!o.inputs.empty()) window.open_later(o.inputs);
  return QApplication::exec();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("the timeline of training steps, predicted or measured", "orrery-view");
  Options o;
  app.add_option("INPUT", o.inputs,
                 "specs, traces (Chrome JSON, gzipped or not), reports, folders of traces; a saved view is applied to "
                 "the others, or alone opens its own");
  app.add_option("--screenshot", o.screenshot, "paint into a PNG file and exit; needs no display")->type_name("FILE");
  app.add_option("--size", o.size, "of the screenshot")->type_name("WxH")->capture_default_str();
  app.add_option("--view", o.view, "what the screenshot shows; the timeline, if none is given")
      ->type_name("timeline|lanes|pipeline|critical|area|details|memory|compare|statistics|what-if|links|first-step");
  app.add_option("--pin", o.pin, "pins the lanes that this is found in, as \"stage [01].*compute\"")
      ->type_name("REGEX");
  app.add_option("--set", o.spec.overrides, "a key of the specs set otherwise; may be repeated")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
  app.add_option("--profile", o.spec.profile, "a measured profile in the place of the built-in one")->type_name("FILE");
  app.add_flag("--unfold", o.spec.unfold, "simulate every rank of a spec instead of one of each class");
  app.add_flag("--quiet", o.quiet, "nothing on stderr but errors: none of Qt's warnings");
  app.add_option("--threads", o.threads, "workers that prepare what is opened; what is shown does not depend on it")
      ->check(CLI::Range(1, 1024))
      ->type_name("N");
  app.set_version_flag("--version", orrery::version_line("orrery-view"));
  // Only the build uses --manual and --completion (cmake/pages.cmake); the empty group hides them from --help.
  app.add_flag("--manual", o.manual)->group("");
  app.add_option("--completion", o.shell)->group("");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::fputs(orrery::fold(app.help(), orrery::terminal_columns(::isatty(STDOUT_FILENO) != 0)).c_str(), stdout);
    return 0;
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);  // --version
    return fail(std::string(e.what()) + "; orrery-view --help says more", 2);
  }
  try {
    if (o.manual || !o.shell.empty()) {
      const orrery::CommandEntry tree = orrery::option_tree(app);
      std::fputs((o.manual ? orrery::program_page(tree).text : orrery::completion(o.shell, tree)).c_str(), stdout);
      return 0;
    }
    for (std::string& input : o.inputs) input = orrery::or_installed_example(input);
    return run(argc, argv, o);
  } catch (const Error& e) {
    return fail(e.what(), e.exit_code);
  } catch (const std::exception& e) {
    return fail(e.what(), 1);
  }
}
