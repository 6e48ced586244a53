#pragma once

#include <string>
#include <string_view>

namespace orrery {

// Removes the first character (UTF-8, RFC 3629) of a text that is not empty, and returns it. In the place of a byte
// that is no UTF-8, and of a character that XML 1.0 or HTML does not allow (control characters other than tab and line
// feed, among others), it returns U+FFFD.
std::string_view next_character(std::string_view& text);

// Returns a text as XML and HTML hold it: &, <, > and quotation marks are entities, and characters are those that
// next_character() returns.
std::string escaped(std::string_view text);

}  // namespace orrery
