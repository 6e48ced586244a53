#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace orrery {

// A file that appears under its name only when it is whole. What is written goes to a file beside the target, without a
// name where the file system can do that (Linux O_TMPFILE), so that not even a kill leaves a trace of it; commit()
// gives it the target's name. Without commit() the destructor removes it, and what was there before stays. Names that
// end in .gz are compressed (the same input gives the same bytes). A target that is no regular file (a pipe,
// /dev/stdout) is written to as it is. Not for use by several threads at once. Throws Error "path: cannot write:
// reason".
class OutputFile {
 public:
  explicit OutputFile(std::string path);
  OutputFile(OutputFile&&) noexcept;
  OutputFile& operator=(OutputFile&&) noexcept;
  ~OutputFile();

  // Best with pieces of 16 KiB or more: each one is passed on at once.
  void write(std::string_view text);
  void commit();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace orrery
