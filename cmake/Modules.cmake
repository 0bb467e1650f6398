# What the program opens only when it is asked for it: libraries that would make every start slower. In the build they
# lie beside the program, installed in a folder beside the library.
set_property(SOURCE src/base/modules.cc APPEND PROPERTY COMPILE_DEFINITIONS REGARD_LIBDIR="${CMAKE_INSTALL_LIBDIR}")

function(regard_module name package without)
  if(NOT ${package}_FOUND)
    message(STATUS "Built for another processor: ${without}")
    return()
  endif()
  add_library(regard_${name} MODULE modules/${name}.cc)
  target_link_libraries(regard_${name} PRIVATE regard_flags PkgConfig::${package})
  set_target_properties(regard_${name} PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
  install(TARGETS regard_${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/regard)
  add_dependencies(regard regard_${name})
endfunction()

regard_module(pieces SentencePiece "pieces of words can be read but not learned")
regard_module(draw Draw "no pictures as PNG and PDF")
