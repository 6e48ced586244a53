#pragma once

#include <QString>
#include <QStringList>

#include "viz/draw/scene.h"

namespace orrery {

// Cards are HTML texts that the panel of details shows before an event is clicked.

// Returns a summary. For a simulated step: step time, tokens per second, MFU, whether memory suffices and by how much,
// the shares of the step time, the limiting resource and, if the step is quick to simulate, the changes that would help
// most. For a recorded trace: the share of time in which each rank computes, and the ops that take the most time.
QString summary_card(const Scene& scene);

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
