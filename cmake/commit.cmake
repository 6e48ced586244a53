# Writes OUT, a source with the commit of the repository at ROOT, when it differs from what OUT holds.
# A build from a tarball names its commit by the variable ORRERY_COMMIT of the environment.
set(commit "$ENV{ORRERY_COMMIT}")
if(commit STREQUAL "" AND EXISTS ${ROOT}/.git)
  execute_process(COMMAND git -C ${ROOT} describe --always --abbrev=12 --exclude=* --dirty=+
                  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(commit STREQUAL "")
  set(commit unknown)
endif()
set(text "#include \"sim/cli/commit.h\"\n\nnamespace orrery {\n\nconst char* const kCommit = \"${commit}\";\n\n}  // namespace orrery\n")
if(EXISTS ${OUT})
  file(READ ${OUT} before)
endif()
if(NOT text STREQUAL "${before}")
  file(WRITE ${OUT} "${text}")
endif()
