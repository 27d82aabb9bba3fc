# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
# Tests that need an MPI launcher, and tests that are scripts. Both run the same way under plain `ctest` and `./dev test`.
include(${PROJECT_SOURCE_DIR}/cmake/mpi_flavour.cmake)

option(TAILRACE_MPI_TESTS "Build the tests that run under an MPI launcher" ON)

# The launcher with its flags, without -n. Both libraries must give way when ranks outnumber cores: Open MPI by its own flag,
# MPICH by a preloaded yield (see tests/support/mpich_yield.c).
if(TAILRACE_MPI STREQUAL "mpich")
  set(TAILRACE_LAUNCHER ${MPIEXEC_EXECUTABLE} -genv LD_PRELOAD $<TARGET_FILE:tailrace_mpich_yield>)
  set(TAILRACE_LAUNCHER_ENVIRONMENT "")
elseif(TAILRACE_MPI STREQUAL "openmpi")
  # Without "--bind-to none" each job of a parallel ctest binds its first rank to the same core.
  set(TAILRACE_LAUNCHER ${MPIEXEC_EXECUTABLE} --oversubscribe --bind-to none)
  set(TAILRACE_LAUNCHER_ENVIRONMENT
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_rmaps_base_oversubscribe=1)
else()
  set(TAILRACE_LAUNCHER ${MPIEXEC_EXECUTABLE})
  set(TAILRACE_LAUNCHER_ENVIRONMENT "")
endif()

# Stands before the command of a test, followed by a directory: Open MPI leaves shared memory in /dev/shm when it is killed.
set(TAILRACE_OWN_SHARED_MEMORY bash ${PROJECT_SOURCE_DIR}/tests/support/own_shared_memory.sh)

# tailrace_mpi_run(name TARGET program RANKS 1 2 3 [MORE_RANKS 5 8] [ARGS ...] [ENV K=V ...] [TIMEOUT seconds] [LABELS ...])
# One test for each number of ranks, called name.n1, name.n2, ..., in a directory of its own; always labelled mpi, always
# with a timeout (120 s).
# MORE_RANKS are run by ./dev test --all only; so are, with the second MPI, all RANKS but the last one.
# On a machine that has not run the tests before, ctest begins with those of the highest COST. A test's timeout is its cost:
# otherwise a long test could be the last one, and run alone.
function(tailrace_mpi_run name)
  if(NOT TAILRACE_MPI_TESTS)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 TEST "" "TARGET;TIMEOUT" "RANKS;MORE_RANKS;ARGS;ENV;LABELS")
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 120)
  endif()
  if(NOT TEST_RANKS AND NOT TEST_MORE_RANKS)
    message(FATAL_ERROR "tailrace_mpi_run(${name}): RANKS is missing")
  endif()
  list(POP_BACK TEST_RANKS last)
  foreach(ranks IN LISTS TEST_RANKS TEST_MORE_RANKS last)
    set(often "")
    if(ranks IN_LIST TEST_MORE_RANKS)
      set(often all)
    elseif(ranks IN_LIST TEST_RANKS)
      set(often once)
    endif()
    # Ranks wait for each other much of the time: half a processor each, as if they shared what they have.
    math(EXPR processors "(${ranks} + 1) / 2")
    set(directory ${PROJECT_BINARY_DIR}/tests/scratch/${name}.n${ranks})
    file(MAKE_DIRECTORY ${directory})
    add_test(NAME ${name}.n${ranks}
      COMMAND ${TAILRACE_OWN_SHARED_MEMORY} ${directory}.shm
      ${TAILRACE_LAUNCHER} ${MPIEXEC_NUMPROC_FLAG} ${ranks} $<TARGET_FILE:${TEST_TARGET}> ${TEST_ARGS}
      WORKING_DIRECTORY ${directory})
    set_tests_properties(${name}.n${ranks} PROPERTIES
      LABELS "mpi;${often};${TEST_LABELS}" PROCESSORS ${processors} TIMEOUT ${TEST_TIMEOUT} COST ${TEST_TIMEOUT} SKIP_RETURN_CODE 77
      ENVIRONMENT "${TAILRACE_LAUNCHER_ENVIRONMENT};${TEST_ENV}")
  endforeach()
endfunction()

# tailrace_mpi_test(name SOURCES ... RANKS 1 2 3 [MORE_RANKS 5 8] [MODULES ...] [LIBRARIES ...] [ARGS ...] [ENV K=V ...]
#                   [TIMEOUT seconds] [LABELS ...])
# Builds one program (with MODULES: from those modules' objects; without: against the library as a user would) and runs it.
function(tailrace_mpi_test name)
  if(NOT TAILRACE_MPI_TESTS)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 TEST "" "TIMEOUT" "SOURCES;RANKS;MORE_RANKS;MODULES;LIBRARIES;ARGS;ENV;LABELS")
  add_executable(${name} ${TEST_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  if(TEST_MODULES)
    tailrace_modules_of(modules ${TEST_MODULES})
    target_link_libraries(${name} PRIVATE ${modules})
  else()
    target_link_libraries(${name} PRIVATE tailrace)
  endif()
  target_link_libraries(${name} PRIVATE ${TEST_LIBRARIES} MPI::MPI_C Threads::Threads)
  tailrace_mpi_run(${name} TARGET ${name} RANKS ${TEST_RANKS} MORE_RANKS ${TEST_MORE_RANKS} ARGS ${TEST_ARGS} ENV ${TEST_ENV}
    TIMEOUT ${TEST_TIMEOUT} LABELS ${TEST_LABELS})
endfunction()

# tailrace_sh_test(name SCRIPT file [ARGS ...] [ENV K=V ...] [TIMEOUT seconds] [PROCESSORS n] [LABELS ...])
# Runs a bash or Python script (by its ending) in a directory of its own. The script finds in its environment (under names
# that the library does not take for misspelt settings):
#   TEST_SOURCE TEST_BUILD  the two trees            TEST_MPI      openmpi or mpich
#   TEST_MPIRUN  launcher and flags, to be followed by "-n RANKS program"
#   TEST_FORMATS  a program that prints the formats of this build
#   TEST_COMMAND  the tailrace command ("" if off)   TEST_MPICC TEST_MPICXX TEST_MPIFORT  this build's MPI wrappers
# Exit 77 means skipped; the script prints why.
function(tailrace_sh_test name)
  cmake_parse_arguments(PARSE_ARGV 1 TEST "" "SCRIPT;TIMEOUT;PROCESSORS" "ARGS;ENV;LABELS")
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 120)
  endif()
  if(NOT TEST_PROCESSORS)
    set(TEST_PROCESSORS 1)
  endif()
  cmake_path(ABSOLUTE_PATH TEST_SCRIPT BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE)
  set(interpreter bash)
  if(TEST_SCRIPT MATCHES "\\.py$")
    set(interpreter python3)
  endif()
  set(directory ${PROJECT_BINARY_DIR}/tests/scratch/${name})
  file(MAKE_DIRECTORY ${directory})
  string(REPLACE ";" " " launcher "${TAILRACE_LAUNCHER}")
  set(command "")
  if(TAILRACE_HAVE_CLI)
    set(command "$<$<TARGET_EXISTS:tailrace_cli>:$<TARGET_FILE:tailrace_cli>>")
  endif()
  string(REGEX REPLACE "mpicc([^/]*)$" "mpicxx\\1" mpicxx "${MPI_C_COMPILER}")
  string(REGEX REPLACE "mpicc([^/]*)$" "mpifort\\1" mpifort "${MPI_C_COMPILER}")
  if(MPI_Fortran_COMPILER)
    set(mpifort ${MPI_Fortran_COMPILER})
  endif()
  add_test(NAME ${name} COMMAND ${TAILRACE_OWN_SHARED_MEMORY} ${directory}.shm ${interpreter} ${TEST_SCRIPT} ${TEST_ARGS}
    WORKING_DIRECTORY ${directory})
  set_tests_properties(${name} PROPERTIES
    LABELS "${TEST_LABELS}" PROCESSORS ${TEST_PROCESSORS} TIMEOUT ${TEST_TIMEOUT} COST ${TEST_TIMEOUT} SKIP_RETURN_CODE 77
    ENVIRONMENT "${TAILRACE_LAUNCHER_ENVIRONMENT};BASH_ENV=${PROJECT_SOURCE_DIR}/tests/support/tell_failed.sh;TEST_SOURCE=${PROJECT_SOURCE_DIR};TEST_BUILD=${PROJECT_BINARY_DIR};TEST_MPI=${TAILRACE_MPI};TEST_MPIRUN=${launcher};TEST_COMMAND=${command};TEST_FORMATS=$<$<TARGET_EXISTS:formats_of_build>:$<TARGET_FILE:formats_of_build>>;TEST_MPICC=${MPI_C_COMPILER};TEST_MPICXX=${mpicxx};TEST_MPIFORT=${mpifort};${TEST_ENV}")
endfunction()
