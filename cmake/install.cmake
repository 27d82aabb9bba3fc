# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
# What `cmake --install` leaves beside the tailrace command: the library (shared or static, as built), its headers, the Fortran
# module beside its source, a CMake package and a pkg-config file. The tree may be moved after installation.
include(CMakePackageConfigHelpers)
include(cmake/mpi_flavour.cmake)

set(TAILRACE_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/tailrace)
set(TAILRACE_FORTRAN_DIR ${CMAKE_INSTALL_INCLUDEDIR}/tailrace/fortran)

# Hidden visibility does not hide instantiated templates of the C++ library; the version script does.
if(BUILD_SHARED_LIBS)
  target_link_options(tailrace PRIVATE LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/tailrace.map)
  set_property(TARGET tailrace APPEND PROPERTY LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/tailrace.map)
endif()
set_target_properties(tailrace PROPERTIES INSTALL_RPATH "$ORIGIN" INSTALL_RPATH_USE_LINK_PATH ON)
# A C++ program that includes tailrace.h gets MPI's C face; the C++ bindings would need a library of their own.
target_compile_definitions(tailrace INTERFACE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
install(TARGETS tailrace EXPORT tailraceTargets)
if(NOT BUILD_SHARED_LIBS)
  # Who links the static library links what it needs, by name: our own interface targets stay in the build tree.
  if(TAILRACE_HAVE_GRIB)
    target_link_libraries(tailrace INTERFACE $<INSTALL_INTERFACE:${ECCODES_LIBRARY}>)
  endif()
  if(TAILRACE_HAVE_URING)
    target_link_libraries(tailrace INTERFACE $<INSTALL_INTERFACE:uring>)
  endif()
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ TYPE INCLUDE FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp" PATTERN "*.inc")
install(EXPORT tailraceTargets NAMESPACE tailrace:: DESTINATION ${TAILRACE_PACKAGE_DIR})

# The Fortran targets are exported apart: a project without Fortran never sees MPI::MPI_Fortran.
set(TAILRACE_PC_FORTRAN_CFLAGS "")
set(TAILRACE_PC_FORTRAN_LIBS "")
if(TARGET tailrace_fortran)
  get_target_property(modules tailrace_fortran Fortran_MODULE_DIRECTORY)
  if(NOT modules)
    get_target_property(modules tailrace_fortran BINARY_DIR)
  endif()
  set_target_properties(tailrace_fortran PROPERTIES EXPORT_NAME fortran INSTALL_RPATH "$ORIGIN")
  target_include_directories(tailrace_fortran INTERFACE $<INSTALL_INTERFACE:${TAILRACE_FORTRAN_DIR}>)
  install(TARGETS tailrace_fortran EXPORT tailraceFortranTargets)
  install(FILES ${modules}/tailrace.mod DESTINATION ${TAILRACE_FORTRAN_DIR})
  install(FILES ${PROJECT_SOURCE_DIR}/bindings/fortran/tailrace.inc TYPE INCLUDE)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/bindings/fortran/ DESTINATION ${TAILRACE_FORTRAN_DIR}
    FILES_MATCHING PATTERN "*.F90" PATTERN "parts/*.inc")
  install(EXPORT tailraceFortranTargets NAMESPACE tailrace:: DESTINATION ${TAILRACE_PACKAGE_DIR})
  set(TAILRACE_PC_FORTRAN_CFLAGS "-I\${includedir}/tailrace/fortran")
  set(TAILRACE_PC_FORTRAN_LIBS "-ltailrace_fortran")
  get_target_property(type tailrace_fortran TYPE)
  if(type STREQUAL "SHARED_LIBRARY")
    # C programs must not come to need a Fortran run-time library.
    set(TAILRACE_PC_FORTRAN_LIBS "-Wl,--push-state,--as-needed -ltailrace_fortran -Wl,--pop-state")
  endif()
endif()

# ---- CMake package ----
set(TAILRACE_NEEDS_THREADS OFF)
if(NOT BUILD_SHARED_LIBS)
  set(TAILRACE_NEEDS_THREADS ON)
endif()
configure_package_config_file(cmake/tailraceConfig.cmake.in ${PROJECT_BINARY_DIR}/tailraceConfig.cmake
  INSTALL_DESTINATION ${TAILRACE_PACKAGE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tailraceConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tailraceConfig.cmake ${PROJECT_BINARY_DIR}/tailraceConfigVersion.cmake
  cmake/mpi_flavour.cmake DESTINATION ${TAILRACE_PACKAGE_DIR})

# ---- pkg-config ----
cmake_path(IS_ABSOLUTE CMAKE_INSTALL_LIBDIR absolute)
if(absolute)
  set(TAILRACE_PC_PREFIX ${CMAKE_INSTALL_PREFIX})
  set(TAILRACE_PC_LIBDIR ${CMAKE_INSTALL_LIBDIR})
else()
  file(RELATIVE_PATH up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  string(REGEX REPLACE "/$" "" up "${up}")
  set(TAILRACE_PC_PREFIX "\${pcfiledir}/${up}")
  set(TAILRACE_PC_LIBDIR "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
endif()
set(TAILRACE_PC_STATIC_LIBS "")
if(NOT BUILD_SHARED_LIBS)
  if(TAILRACE_HAVE_GRIB)
    string(APPEND TAILRACE_PC_STATIC_LIBS " ${ECCODES_LIBRARY}")
  endif()
  if(TAILRACE_HAVE_URING)
    string(APPEND TAILRACE_PC_STATIC_LIBS " -luring")
  endif()
  string(APPEND TAILRACE_PC_STATIC_LIBS " -lstdc++ -lpthread -lm")
endif()
configure_file(cmake/tailrace.pc.in ${PROJECT_BINARY_DIR}/tailrace.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/tailrace.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(FILES LICENSE LICENSE-APACHE LICENSE-BSD README.md CHANGELOG.md TYPE DOC)
