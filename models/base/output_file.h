#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace orrery {

// An output file that appears under its name only when it is complete. Text is written to a temporary file in the
// folder of the target; the temporary file has no name where the file system allows that (Linux O_TMPFILE), so that not
// even a kill leaves anything behind. commit() gives the temporary file the target's name. Without commit() the
// destructor removes it, and a target that existed before stays. Files whose names end in .gz are compressed (the same
// input gives the same bytes). A target that is no regular file (a pipe, /dev/stdout) is written directly. An
// OutputFile must not be used by several threads at once. Throws Error "path: cannot write: reason".
class OutputFile {
 public:
  explicit OutputFile(std::string path);
  OutputFile(OutputFile&&) noexcept;
  OutputFile& operator=(OutputFile&&) noexcept;
  ~OutputFile();

  // Writes the next part of the file's contents; parts of 16 KiB or more are the most efficient.
  void write(std::string_view text);
  void commit();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace orrery
