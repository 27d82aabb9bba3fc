# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
# Runs during the installation. Installs README.md, CHANGELOG.md and docs/, whose links lead to what is installed: those to headers
# change, those to sources become plain text.
# Given: SOURCE, the source tree; DOC and INCLUDE, the installed folders below the prefix.
file(RELATIVE_PATH headers "/${DOC}" "/${INCLUDE}")
file(GLOB_RECURSE pages RELATIVE ${SOURCE} ${SOURCE}/docs/*.md)
foreach(page IN LISTS pages ITEMS README.md CHANGELOG.md)
  cmake_path(GET page PARENT_PATH folder)
  file(RELATIVE_PATH top "/top/${folder}" "/top")
  if(folder STREQUAL "")
    set(top "")
  endif()
  string(REPLACE "." "\\." up "${top}")
  file(READ ${SOURCE}/${page} text)
  string(REGEX REPLACE "\\]\\(${up}include/" "](${top}${headers}/" text "${text}")
  string(REGEX REPLACE "\\[([^]\n]*)\\]\\(${up}(src|examples|python|tests|bench|tools|bindings|cmake|dev|CONTRIBUTING)[^)\n]*\\)" "\\1" text
    "${text}")
  file(WRITE "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/${DOC}/${page}" "${text}")
  list(APPEND CMAKE_INSTALL_MANIFEST_FILES "${CMAKE_INSTALL_PREFIX}/${DOC}/${page}")
endforeach()
