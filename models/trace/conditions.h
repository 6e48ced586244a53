#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "models/base/json_value.h"

namespace orrery {

// The clocks, power and temperature of a GPU while something ran on it, from its own sensors. Kernels get slower if the
// device lowers its clocks to stay below its power or temperature limit, so a measured time holds for the clocks under
// which it was measured.
struct Conditions {
  std::string during;        // name of what ran during the readings: "bench", or a calibration spec
  std::int64_t samples = 0;  // number of readings; 0: the sensors could not be read
  // clock of the multiprocessors in MHz: lowest, median and highest reading; and the median clock of the memory
  double sm_low_MHz = 0, sm_MHz = 0, sm_high_MHz = 0, memory_MHz = 0;
  double power_W = 0;                   // mean power over the whole time, in watts
  double temperature_C = 0;             // highest reading, in degrees Celsius
  std::vector<std::string> limited_by;  // reasons why the clocks were below their highest: "power", "heat", ...

  bool known() const { return samples > 0; }
};

// Returns the readings as a JSON object: {"during", "samples", "sm_MHz": [low, median, high], "memory_MHz", "power_W",
// "temperature_C", "limited_by": [...]}.
nlohmann::ordered_json json_of(const Conditions& conditions);
// Reads the object that json_of() writes. Throws Error with file and key for a value that is missing or invalid.
template <class Json>
Conditions conditions_of(const BasicJsonValue<Json>& from);

// Returns the readings as text: "1755 MHz (1740 to 1980), 690 W, 61 C, limited by power"; "not read" if the sensors
// could not be read.
std::string text_of(const Conditions& conditions);

// Returns the factor by which the multiprocessors' median clock changed between two runs of the same work; 1 if it is
// not known.
double clock_change(const Conditions& before, const Conditions& after);

}  // namespace orrery
