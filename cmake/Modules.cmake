# What the program opens only when it is asked for it: libraries that would make every start slower. In the build they
# lie beside the program, installed in a folder beside the library.
set_property(SOURCE src/base/modules.cc APPEND PROPERTY COMPILE_DEFINITIONS REGARD_LIBDIR="${CMAKE_INSTALL_LIBDIR}")

if(SentencePiece_FOUND)
  add_library(regard_pieces MODULE modules/pieces.cc)
  target_link_libraries(regard_pieces PRIVATE regard_flags PkgConfig::SentencePiece)
  set_target_properties(regard_pieces PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
  install(TARGETS regard_pieces LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/regard)
  add_dependencies(regard regard_pieces)
else()
  message(STATUS "Built for another processor: pieces of words can be read but not learned")
endif()

if(Draw_FOUND)
  add_library(regard_draw MODULE modules/draw.cc)
  target_link_libraries(regard_draw PRIVATE regard_flags PkgConfig::Draw)
  set_target_properties(regard_draw PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
  install(TARGETS regard_draw LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/regard)
  add_dependencies(regard regard_draw)
else()
  message(STATUS "Built for another processor: no pictures as PNG and PDF")
endif()
