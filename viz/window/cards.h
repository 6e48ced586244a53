#pragma once

#include <QString>
#include <QStringList>

#include "viz/draw/scene.h"

namespace orrery {

// Cards are HTML for a QTextBrowser, which the panel of details shows before anything is clicked.

// Returns what is most asked of a step: how long it is, how fast, whether it fits and by how much, where the time goes,
// what limits it and, of a simulated one that is quick to simulate, which changes would help most. Of a recorded trace
// it returns how its ranks spend their time, and the ops that take the most.
QString summary_card(const Scene& scene);

// Returns what can be opened, with links to files that were opened before ("recent:PATH") and to a dialog ("open:").
QString welcome_card(const QStringList& recent);

// Returns keys and gestures, and what they do.
QString keys_card();

// Files that were opened before, the last first, which the settings of the user keep; and adds one.
QStringList recent_files();
void add_recent_file(const QString& path);

}  // namespace orrery
