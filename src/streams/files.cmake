# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
# The part of streams that knows files and names but no MPI: the command line tool and the tests link it alone.
set(TAILRACE_STREAM_FILES ending.cpp head.cpp index.cpp index_format.cpp look.cpp manifest.cpp pattern.cpp reindex.cpp resume.cpp)
list(TRANSFORM TAILRACE_STREAM_FILES PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
tailrace_module(stream_files
  SOURCES ${TAILRACE_STREAM_FILES}
  LIBRARIES tailrace_base tailrace_storage tailrace_listings)
if(TAILRACE_HAVE_JSON)
  target_compile_definitions(tailrace_stream_files PRIVATE TAILRACE_HAVE_JSON=1)
  target_link_libraries(tailrace_stream_files PRIVATE nlohmann_json::nlohmann_json)
endif()
