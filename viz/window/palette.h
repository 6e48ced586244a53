#pragma once

#include <QColor>
#include <string_view>

#include "viz/timeline/timeline.h"

namespace orrery {

// Returns the colour of a kind of event. People who cannot tell red from green, or blue from yellow, can tell the
// colours apart: the passes of a step have blues of different lightness, communication of each form of parallelism a
// colour of Okabe and Ito's set (Color Universal Design, 2008), waiting grey hatching.
QColor colour_of(Kind kind);
// Returns the colour of a series of a counter: a memory category (models/plan/plan.h) or another series. Colours are
// Paul Tol's bright scheme (personal.sron.nl/~pault).
QColor colour_of_series(std::size_t series);
// Returns the colour of a relative change in duration: orange for longer, blue for shorter, grey for equal; a change by
// half has the strongest colour.
QColor colour_of_change(double relative);
// Returns the colour of a phase (Timeline::phases), of which there are two: dark and light, and greener or redder than
// the bars below them.
QColor colour_of_phase(std::size_t phase);
QColor text_on(const QColor& background);

namespace colours {
inline const QColor kPaper(255, 255, 255), kRow(246, 247, 249), kHeader(232, 235, 240), kInk(32, 36, 44),
    kFaintInk(110, 116, 128), kGrid(222, 226, 232), kSelection(30, 30, 30), kArea(90, 130, 255, 46),
    kMeasure(60, 90, 220), kCritical(196, 0, 84), kLimit(200, 30, 30), kNote(255, 240, 170), kNoted(255, 214, 64, 50),
    kNoteEdge(140, 104, 0), kCache(153, 119, 0), kUnmatched(74, 77, 85);
// kCache: keys and values in use, unlike any category of memory; kUnmatched: events without a match in the trace
// compared with
}  // namespace colours

}  // namespace orrery
