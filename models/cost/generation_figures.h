#pragma once

namespace orrery {

// Numbers of kernels that only the generation of text has, fitted to measured kernels (models/data/fitted.json).
struct GenerationFigures {
  // part of the memory bandwidth that products of few rows and attention to a cache reach, and microseconds that they
  // take without any bytes
  double memory_part = 1, product_start_us = 0, attention_start_us = 0;
  // all-reduces by direct reads (direct_all_reduce.h): part of NVLink's rate, and microseconds of an empty one
  double direct_part = 1, direct_start_us = 0;
};
const GenerationFigures& generation_figures();

}  // namespace orrery
