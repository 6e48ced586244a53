#pragma once

#include <string>

#include "sim/whatif/whatif.h"

namespace orrery {

// A page of `orrery whatif`: step times of a measured run and without what slowed it down, slowdowns by op, rank and
// stage as bars, compute of ranks and stages as a heat map, and how transfers divide into moving and waiting.
struct WhatifPage {
  const WhatifAnswer& answer;
  const WhatifQuestion& question;
  std::string roofline;  // the table of kernels under their roofs, as text; "" for none
  std::string command, version;
};
std::string whatif_page(const WhatifPage& page);

}  // namespace orrery
