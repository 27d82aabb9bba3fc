# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
# The translator behind `tailrace dvm`, what its programs are linked with, and tools.json, which tells it compiler, launcher and
# libraries, by paths from its own place. The build tree has the same below bin/.
if(NOT TARGET tailrace_dvm_fortran)
  return()
endif()
set(options "")
if(CMAKE_Fortran_COMPILER_ID STREQUAL "GNU")
  set(options -ffree-line-length-none -ffixed-line-length-none)
endif()
set(launcher ${MPIEXEC_EXECUTABLE})
if(TAILRACE_MPI STREQUAL "openmpi")
  list(APPEND launcher --oversubscribe)
endif()
separate_arguments(further UNIX_COMMAND "${TAILRACE_PC_STATIC_LIBS}")

function(as_json result)
  list(TRANSFORM ARGN REPLACE "(.+)" "\"\\1\"")
  list(JOIN ARGN ", " joined)
  set(${result} "[${joined}]" PARENT_SCOPE)
endfunction()
function(write_tools file modules libraries)
  foreach(name modules libraries launcher options further)
    as_json(${name}_json ${${name}})
  endforeach()
  file(GENERATE OUTPUT ${file} CONTENT "{\"fc\": \"${MPI_Fortran_COMPILER}\", \"launcher\": ${launcher_json}, \"options\": ${options_json},
 \"modules\": ${modules_json},
 \"libraries\": ${libraries_json},
 \"further\": ${further_json}}\n")
endfunction()

set(share ${CMAKE_INSTALL_FULL_DATADIR}/tailrace/dvm)
file(RELATIVE_PATH built ${CMAKE_INSTALL_FULL_BINDIR} ${share})
cmake_path(ABSOLUTE_PATH built BASE_DIRECTORY ${PROJECT_BINARY_DIR}/bin NORMALIZE)
file(MAKE_DIRECTORY ${built})
file(CREATE_LINK ${PROJECT_SOURCE_DIR}/tools/dvm/tailrace_dvm ${built}/tailrace_dvm SYMBOLIC)
get_target_property(modules tailrace_fortran Fortran_MODULE_DIRECTORY)
get_target_property(own_modules tailrace_dvm_fortran Fortran_MODULE_DIRECTORY)
set(targets tailrace_dvm_fortran tailrace_fortran tailrace)
list(TRANSFORM targets REPLACE "(.+)" "$<TARGET_LINKER_FILE:\\1>" OUTPUT_VARIABLE libraries)
write_tools(${built}/tools.json "${own_modules};${modules}" "${libraries}")

file(RELATIVE_PATH modules ${share} ${CMAKE_INSTALL_FULL_INCLUDEDIR}/tailrace/fortran)
file(RELATIVE_PATH folder ${share} ${CMAKE_INSTALL_FULL_LIBDIR})
list(TRANSFORM targets REPLACE "(.+)" "${folder}/$<TARGET_LINKER_FILE_NAME:\\1>" OUTPUT_VARIABLE libraries)
write_tools(${PROJECT_BINARY_DIR}/installed_dvm/tools.json "${modules}" "${libraries}")
install(TARGETS tailrace_dvm_fortran DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES ${own_modules}/tailrace_dvm.mod DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tailrace/fortran)
install(FILES ${PROJECT_BINARY_DIR}/installed_dvm/tools.json DESTINATION ${CMAKE_INSTALL_DATADIR}/tailrace/dvm)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/tools/dvm/tailrace_dvm DESTINATION ${CMAKE_INSTALL_DATADIR}/tailrace/dvm
  FILES_MATCHING PATTERN "*.py")
