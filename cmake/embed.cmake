# Writes OUT: every *.json under ROOT as a string, so that a program needs no data folder beside it, and a version of
# them all: the first digits of a hash of names and contents.
file(GLOB_RECURSE files RELATIVE ${ROOT} ${ROOT}/*.json)
list(SORT files)
# Compilers take longer strings than the standard asks of them.
set(text "#include \"models/base/data.h\"\n\n#pragma GCC diagnostic ignored \"-Woverlength-strings\"\n\nnamespace orrery {\n\nconst std::vector<DataFile>& data_files() {\n  static const std::vector<DataFile> files = {\n")
foreach(name IN LISTS files)
  file(READ ${ROOT}/${name} content)
  string(APPEND text "      {\"${name}\", R\"ORRERY(${content})ORRERY\"},\n")
endforeach()
string(SHA256 version "${text}")
string(SUBSTRING ${version} 0 12 version)
string(APPEND text "  };\n  return files;\n}\n\nstd::string_view data_version() { return \"${version}\"; }\n\n}  // namespace orrery\n")
file(WRITE ${OUT} "${text}")
