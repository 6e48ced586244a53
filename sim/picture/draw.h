#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/plan/plan.h"
#include "models/spec/spec.h"
#include "sim/picture/holdings.h"
#include "sim/picture/matrices.h"
#include "sim/picture/rank_grid.h"
#include "sim/picture/talks.h"
#include "sim/print/svg.h"

namespace orrery {

// Width in pixels of the contents of a picture, without the margins.
inline constexpr double kPictureWidth = 1240;

// Returns a drawing with a border, a title, and lines of text below the title.
Drawing framed(const std::string& title, const std::vector<std::string>& lines, const Drawing& content,
               double least_width = 0);

// Returns a drawing of the matrices of one type of layers. Every matrix is an SVG group of class "matrix" with the
// attributes data-name, data-rows and data-columns, whose first rectangle is the matrix; its parts are rectangles of
// class "part".
Drawing draw_matrices(const MatrixPanel& panel, double hidden);

// Returns a drawing of the grid of ranks with the layers and states that each rank holds. Every rank is an SVG group of
// class "rank" with the attributes data-rank, data-node, data-parameters, data-gradients and data-optimizer (bytes).
Drawing draw_ranks(const Spec& spec, const RankGrid& grid, const std::vector<Holding>& holdings);

// Returns a small grid of ranks with the groups of one dimension of parallelism, and what these groups transfer. Every
// group of which members are shown is an SVG group of class "group" with the attributes data-dimension, data-group and
// data-ranks (the shown ranks).
Drawing draw_talk(const Plan& plan, const RankGrid& grid, const DimensionTalk& talk, double width);

}  // namespace orrery
