# Hands the version to src/base/version.cc and the commit to src/cli/version.cc. A tree without git, or unpacked inside somebody else's repository, has
# no commit. The log of HEAD is watched, so that a new commit configures anew and the name does not go stale.
set(REGARD_COMMIT "")
find_package(Git QUIET)
if(Git_FOUND)
  execute_process(COMMAND ${GIT_EXECUTABLE} -C ${CMAKE_SOURCE_DIR} rev-parse --show-toplevel
    OUTPUT_VARIABLE top OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(top STREQUAL CMAKE_SOURCE_DIR)
    execute_process(COMMAND ${GIT_EXECUTABLE} -C ${CMAKE_SOURCE_DIR} rev-parse --short=9 HEAD
      OUTPUT_VARIABLE REGARD_COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    execute_process(COMMAND ${GIT_EXECUTABLE} -C ${CMAKE_SOURCE_DIR} rev-parse --git-path logs/HEAD
      OUTPUT_VARIABLE log OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    cmake_path(ABSOLUTE_PATH log BASE_DIRECTORY ${CMAKE_SOURCE_DIR})
    if(EXISTS ${log})
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${log})
    endif()
  endif()
endif()
set_source_files_properties(${CMAKE_SOURCE_DIR}/src/cli/version.cc PROPERTIES
  COMPILE_DEFINITIONS "REGARD_COMMIT=\"${REGARD_COMMIT}\"")
set_source_files_properties(${CMAKE_SOURCE_DIR}/src/base/version.cc PROPERTIES
  COMPILE_DEFINITIONS "REGARD_VERSION=\"${PROJECT_VERSION}\"")
