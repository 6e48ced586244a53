#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace orrery {

// A unit in which the figures of one column or line are printed, and how many decimals they get.
struct Scale {
  std::string_view unit;
  double size = 1;  // one unit, in the base unit (seconds, bytes, ...)
  int decimals = 2;
};

// Scales that fit the largest figure of a column: three to four digits of it are printed.
Scale time_scale(double largest_s);  // s, ms, us
Scale memory_scale(double largest);  // bytes as GiB, MiB: the units of memory
Scale volume_scale(double largest);  // bytes as GB, MB, KB: the units of links
Scale count_scale(double largest);   // B, M, K

std::string number(double value, const Scale& scale);     // "9.83"
std::string with_unit(double value, const Scale& scale);  // "9.83 s"

std::string time_text(double seconds);   // "9.83 s"
std::string memory_text(double bytes);   // "61.2 GiB"
std::string volume_text(double bytes);   // "1.25 GB"
std::string count_text(double count);    // "70.6 B"
std::string percent_text(double share);  // "38.2 %"
std::string grouped(double value);       // "106,700", rounded

// The style of a terminal. In a pipe the text is plain: no colour, no bars, no limit of width.
struct Style {
  bool bars = false;
  bool colour = false;
  std::size_t columns = 0;  // width of the terminal; 0: no limit
};

std::string heading(std::string_view text, const Style& style);  // bold
std::string warning(std::string_view text, const Style& style);  // red

}  // namespace orrery
