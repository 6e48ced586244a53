#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace orrery {

// A file that appears under its name only when it is whole. Text is written to a file beside the target, without a name
// where the file system can do that (Linux O_TMPFILE), so that not even a kill leaves a trace; commit() gives that file
// the target's name. Without commit() the destructor removes it, and a file that was there before stays. Names that end
// in .gz are compressed (the same input gives the same bytes). A target that is no regular file (a pipe, /dev/stdout)
// is written to as it is. Not for use by several threads at once. Throws Error "path: cannot write: reason".
class OutputFile {
 public:
  explicit OutputFile(std::string path);
  OutputFile(OutputFile&&) noexcept;
  OutputFile& operator=(OutputFile&&) noexcept;
  ~OutputFile();

  // Writes a piece of text; best of 16 KiB or more, as each piece is passed on at once.
  void write(std::string_view text);
  void commit();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace orrery
