#pragma once

#include <QString>
#include <QStringList>
#include <atomic>

#include "viz/draw/scene.h"

namespace orrery {

// Cards are HTML texts that the panel of details shows before an event is clicked.

std::string lanes_text(const Timeline& timeline);  // the number of lanes: "16 lanes"

// Returns a summary. For a simulated step: step time, tokens per second, MFU, whether memory suffices and by how much,
// the shares of the step time, and the limiting resource. For a recorded trace: the share of time in which each rank
// computes, and the ops that take the most time. more: what summary_more() returned; "" while it is not known.
QString summary_card(const Scene& scene, const QString& more = {});

// Returns the rest of the summary of a simulated step, for which further steps are simulated: the changes that would
// help most, if the step is quick to simulate; the times of a generated text. It may be called in any thread. unwanted:
// may be set while it is called; what it returns is of no use then.
QString summary_more(const Scene& scene, const std::atomic<bool>& unwanted);
bool has_more(const Scene& scene);  // whether there is such a rest

// Returns the card shown while nothing is open: the formats that can be opened, with links to files that were opened
// before ("recent:PATH") and to a file dialog ("open:").
QString welcome_card(const QStringList& recent);

// Returns a table of the viewer's keys and mouse gestures.
QString keys_card();

// recent_files() returns the paths of the files that the user opened before, the last one first; add_recent_file() adds
// one. They are kept in the user's settings.
QStringList recent_files();
void add_recent_file(const QString& path);

}  // namespace orrery
