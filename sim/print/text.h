#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace orrery {

// A unit in which the figures of one column or line are printed, and how many decimals they get.
struct Scale {
  std::string_view unit;
  double size = 1;  // number of base units (seconds, bytes, ...) in one unit
  int decimals = 2;
};

// The scale for a column of figures whose largest is given: three to four digits of that figure are printed.
Scale time_scale(double largest_s);  // units of time: s, ms, us
Scale memory_scale(double largest);  // units of memory: GiB, MiB
Scale volume_scale(double largest);  // units for bytes that links transfer: GB, MB, KB
Scale count_scale(double largest);   // units for counts: T, B, M, K, powers of 1,000

std::string number(double value, const Scale& scale);     // the number in the scale's unit: "9.83"
std::string with_unit(double value, const Scale& scale);  // the number and the unit: "9.83 s"

std::string time_text(double seconds);     // a time with its unit: "9.83 s"
std::string memory_text(double bytes);     // bytes of memory with their unit: "61.2 GiB"
std::string volume_text(double bytes);     // bytes of a transfer with their unit: "1.25 GB"
std::string count_text(double count);      // a count with its unit: "70.6 B"
std::string percent_text(double share);    // a share in percent: "38.2 %"
std::string percent_number(double share);  // the same below a heading that names the unit: "38.2"
std::string grouped(double value);         // the number, rounded and with commas between thousands: "106,700"

// The abilities of a terminal. Text for a pipe is plain: no colour, no bars, no limit of width.
struct Style {
  bool bars = false;
  bool colour = false;
  std::size_t columns = 0;  // width of the terminal; 0: no limit
};

std::string heading(std::string_view text, const Style& style);  // the text, bold if the style has colour
std::string warning(std::string_view text, const Style& style);  // the text, red if the style has colour

}  // namespace orrery
