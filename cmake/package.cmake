# Debian packages, by CPack: orrery, orrery-viewer, python3-orrery, and orrery-cuda where it was built. scripts/package
# builds them.
set(packages orrery python3-orrery)
if(TARGET orrery-view)
  list(APPEND packages orrery-viewer)
endif()
if(TARGET orrery-rank-cuda)
  list(APPEND packages orrery-cuda)
endif()
# A package names whoever built it and can be written to, as Debian's own tools do; .invalid says that nobody is named.
set(maintainer "${ORRERY_MAINTAINER}")
if(NOT maintainer AND DEFINED ENV{DEBEMAIL})
  set(name "$ENV{DEBFULLNAME}")
  if(NOT name)
    set(name "$ENV{DEBEMAIL}")
  endif()
  set(maintainer "${name} <$ENV{DEBEMAIL}>")
endif()
if(NOT maintainer)
  set(maintainer "Nobody named <nobody@orrery.invalid>")
endif()
# The papers that each package has in its folder of share/doc.
set(made ${PROJECT_BINARY_DIR}/package)
configure_file(cmake/package/changelog.in ${made}/changelog @ONLY)
execute_process(COMMAND ${GZIP_PROGRAM} -9nkf ${made}/changelog COMMAND_ERROR_IS_FATAL ANY)
file(COPY CHANGELOG.md DESTINATION ${made})
execute_process(COMMAND ${GZIP_PROGRAM} -9nf ${made}/CHANGELOG.md COMMAND_ERROR_IS_FATAL ANY)
foreach(package IN LISTS packages)
  install(FILES cmake/package/copyright ${made}/changelog.gz DESTINATION share/doc/${package} COMPONENT ${package})
endforeach()
install(FILES README.md ${made}/CHANGELOG.md.gz DESTINATION share/doc/orrery COMPONENT orrery)
install(DIRECTORY docs DESTINATION share/doc/orrery COMPONENT orrery FILES_MATCHING PATTERN "*.md" PATTERN "*.svg")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME orrery)
set(CPACK_PACKAGE_VENDOR "The Orrery authors")
set(CPACK_PACKAGE_CONTACT "${maintainer}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL ${packages})
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS ${CMAKE_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS})
foreach(package IN LISTS packages)
  string(TOUPPER ${package} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${package})
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION science)
endforeach()
set(same "(= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_ORRERY_PACKAGE_DEPENDS openmpi-bin)  # run, and search over processes, start mpirun
set(CPACK_DEBIAN_ORRERY_PACKAGE_SUGGESTS "orrery-viewer, python3-orrery")
set(CPACK_COMPONENT_ORRERY_DESCRIPTION
    "predict, search and execute training steps of large models
Orrery takes one file that says what model to train, on what cluster, and how,
makes a plan of every operation and transfer of a training step, and plays it
event by event: step time and where it goes, memory, traffic. It searches for
the best strategy that fits, and executes the same plan on CPU ranks over MPI.")
set(CPACK_DEBIAN_ORRERY-VIEWER_PACKAGE_RECOMMENDS orrery)
set(CPACK_COMPONENT_ORRERY-VIEWER_DESCRIPTION
    "timeline of training steps of large models
A viewer for what Orrery predicts or measures, and for traces of PyTorch: every
operation and transfer of a step, memory over time, the critical path, and
what the step would be with another strategy.")
set(CPACK_DEBIAN_PYTHON3-ORRERY_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_PYTHON3-ORRERY_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_PYTHON3-ORRERY_PACKAGE_SECTION python)
set(CPACK_DEBIAN_PYTHON3-ORRERY_PACKAGE_DEPENDS "orrery ${same}, python3:any")
set(CPACK_DEBIAN_PYTHON3-ORRERY_PACKAGE_SUGGESTS "python3-pandas, python3-matplotlib")
set(CPACK_DEBIAN_PYTHON3-ORRERY_PACKAGE_CONTROL_EXTRA
    "${PROJECT_SOURCE_DIR}/cmake/package/postinst;${PROJECT_SOURCE_DIR}/cmake/package/prerm")
set(CPACK_COMPONENT_PYTHON3-ORRERY_DESCRIPTION
    "predict, compare and search training steps from Python
A typed Python package over the orrery program: simulate, compare and search
as functions, reports as objects and, where pandas is, as data frames.")
# CUDA's and NCCL's libraries come from NVIDIA's packages, which dpkg-shlibdeps does not know everywhere: libcublasLt of
# the toolkit's version (libcublas-13-0; Debian's own name is libcublaslt13), and an NCCL not older than the headers.
# All other libraries are those of orrery-rank, which the package orrery depends on.
if(TARGET orrery-rank-cuda)
  find_package(CUDAToolkit REQUIRED)
  find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS} REQUIRED)
  set(cublas "libcublas-${CUDAToolkit_VERSION_MAJOR}-${CUDAToolkit_VERSION_MINOR} | libcublaslt${CUDAToolkit_VERSION_MAJOR}")
  file(STRINGS ${NCCL_INCLUDE_DIR}/nccl.h nccl REGEX "^#define NCCL_(MAJOR|MINOR) ")
  string(REGEX REPLACE ".*MAJOR ([0-9]+).*MINOR ([0-9]+).*" "\\1.\\2" nccl "${nccl}")
endif()
set(CPACK_DEBIAN_ORRERY-CUDA_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_ORRERY-CUDA_PACKAGE_DEPENDS "orrery ${same}, libc6, libgcc-s1, libstdc++6, ${cublas}, libnccl2 (>= ${nccl})")
set(CPACK_COMPONENT_ORRERY-CUDA_DESCRIPTION
    "execute Orrery's plans on NVIDIA GPUs
The program that runs ranks of a training step on NVIDIA GPUs, with NCCL between
them; orrery starts it for run, validate and calibrate with --device cuda.")
include(CPack)
