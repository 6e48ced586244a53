# What `cmake --install` and the packages hold. Programs look for each other, and for examples, relative to the folder
# that they lie in (models/base/installed.h), so that any prefix does:
#   bin/                 orrery, orrery-view
#   lib/orrery/          what they start and load: orrery-rank, orrery-rank-cuda, orrery-peers.so
#   share/orrery/        examples, and the data files that are embedded in the programs, to read
#   share/man, completions of bash, zsh and fish, the viewer's desktop entry, icon and metainfo
#   lib/python3/dist-packages/orrery   the Python package
# The date of the release stands in CHANGELOG.md.
string(REPLACE "." "[.]" version "${PROJECT_VERSION}")
file(STRINGS CHANGELOG.md released REGEX "^## .${version}. - [0-9]")
string(REGEX MATCH "[0-9]+-[0-9]+-[0-9]+" ORRERY_RELEASE_DATE "${released}")
execute_process(COMMAND date --utc --rfc-email --date "${ORRERY_RELEASE_DATE} 12:00" OUTPUT_VARIABLE ORRERY_RELEASE_DATE_RFC
                OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
set(ORRERY_MAINTAINER "" CACHE STRING "Who answers for the packages, as \"Name <address>\"; else DEBFULLNAME and DEBEMAIL")
set(ORRERY_ZSH_FOLDER share/zsh/site-functions CACHE STRING "Folder of zsh's completions; Debian's is share/zsh/vendor-completions")
set(CMAKE_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ
                                                WORLD_EXECUTE)
find_program(GZIP_PROGRAM gzip REQUIRED)
set(pages ${PROJECT_BINARY_DIR}/pages)

# Pages of the manual and completions, printed by the program that they are about.
function(add_pages program)
  add_custom_command(
    OUTPUT ${pages}/${program}.stamp
    COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:${program}> -DNAME=${program} -DOUT=${pages} -DGZIP=${GZIP_PROGRAM}
            -P ${PROJECT_SOURCE_DIR}/cmake/pages.cmake
    COMMAND ${CMAKE_COMMAND} -E touch ${pages}/${program}.stamp
    DEPENDS ${program} ${PROJECT_SOURCE_DIR}/cmake/pages.cmake
    COMMENT "Pages of ${program}" VERBATIM)
  add_custom_target(pages_of_${program} ALL DEPENDS ${pages}/${program}.stamp)
endfunction()

function(install_pages program component)
  install(DIRECTORY ${pages}/${program}/man DESTINATION share COMPONENT ${component} OPTIONAL)
  install(FILES ${pages}/${program}/bash DESTINATION share/bash-completion/completions RENAME ${program}
          COMPONENT ${component} OPTIONAL)
  install(FILES ${pages}/${program}/zsh DESTINATION ${ORRERY_ZSH_FOLDER} RENAME _${program} COMPONENT ${component} OPTIONAL)
  install(FILES ${pages}/${program}/fish DESTINATION share/fish/vendor_completions.d RENAME ${program}.fish
          COMPONENT ${component} OPTIONAL)
endfunction()

if(TARGET orrery)
  install(TARGETS orrery RUNTIME DESTINATION bin COMPONENT orrery)
  add_pages(orrery)
  install_pages(orrery orrery)
endif()
if(TARGET orrery-rank)
  install(TARGETS orrery-rank RUNTIME DESTINATION lib/orrery COMPONENT orrery)
  install(TARGETS orrery-peers LIBRARY DESTINATION lib/orrery COMPONENT orrery)
endif()
# Not part of `all`, or of no use to those who build the simulator alone: installed where built.
if(TARGET orrery-rank-cuda)
  install(TARGETS orrery-rank-cuda RUNTIME DESTINATION lib/orrery COMPONENT orrery-cuda OPTIONAL)
endif()
if(TARGET orrery-view)
  install(TARGETS orrery-view RUNTIME DESTINATION bin COMPONENT orrery-viewer OPTIONAL)
  add_pages(orrery-view)
  install_pages(orrery-view orrery-viewer)
  configure_file(cmake/package/org.orrery.view.metainfo.xml.in package/org.orrery.view.metainfo.xml @ONLY)
  install(FILES cmake/package/orrery-view.desktop DESTINATION share/applications COMPONENT orrery-viewer)
  install(FILES cmake/package/orrery-view.svg DESTINATION share/icons/hicolor/scalable/apps COMPONENT orrery-viewer)
  install(FILES ${PROJECT_BINARY_DIR}/package/org.orrery.view.metainfo.xml DESTINATION share/metainfo
          COMPONENT orrery-viewer)
endif()
# The example in Python needs the Python package; the batch scripts are to be started.
install(DIRECTORY examples DESTINATION share/orrery COMPONENT orrery FILES_MATCHING PATTERN "*.yaml")
install(PROGRAMS examples/slurm/calibrate.sbatch examples/slurm/run.sbatch examples/slurm/search.sbatch
        DESTINATION share/orrery/examples/slurm COMPONENT orrery)
install(PROGRAMS examples/sweep.py DESTINATION share/orrery/examples COMPONENT python3-orrery)
install(DIRECTORY models/data DESTINATION share/orrery COMPONENT orrery)
# What pip and importlib.metadata read of an installed package. An older version's would be found beside it.
install(CODE "file(GLOB found \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/lib/python3/dist-packages/orrery-*.dist-info\")
  if(found)
    file(REMOVE_RECURSE \${found})
  endif()" COMPONENT python3-orrery)
configure_file(cmake/package/METADATA.in package/METADATA @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/package/METADATA COMPONENT python3-orrery
        DESTINATION lib/python3/dist-packages/orrery-${PROJECT_VERSION}.dist-info)
install(DIRECTORY python/orrery DESTINATION lib/python3/dist-packages COMPONENT python3-orrery
        FILES_MATCHING PATTERN "*.py" PATTERN "py.typed")
include(cmake/package.cmake)
