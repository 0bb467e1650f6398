# The shared library, and what `cmake --install` puts where: headers, library, program, and how CMake and pkg-config find
# them. Below version 1 every minor version may change the interface, so it is part of the library's name.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(library_parts base tensor kernels autograd attention nn verify io train c)
add_library(regard_library SHARED)
foreach(part ${library_parts})
  target_sources(regard_library PRIVATE $<TARGET_OBJECTS:regard_${part}>)
endforeach()
target_link_libraries(regard_library PRIVATE regard_flags ${fmt_target} Threads::Threads PkgConfig::Highway simdjson_optional)
target_link_options(regard_library PRIVATE -Wl,--no-undefined -Wl,--version-script=${CMAKE_SOURCE_DIR}/cmake/exports.map)
target_compile_features(regard_library INTERFACE cxx_std_20)
target_include_directories(regard_library INTERFACE
  $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
set_target_properties(regard_library PROPERTIES OUTPUT_NAME regard EXPORT_NAME regard VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} LINK_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/exports.map)

install(TARGETS regard)
install(TARGETS regard_library EXPORT RegardTargets)
install(DIRECTORY include/regard DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/Regard)
install(EXPORT RegardTargets NAMESPACE Regard:: DESTINATION ${package})
configure_package_config_file(cmake/RegardConfig.cmake.in ${CMAKE_BINARY_DIR}/RegardConfig.cmake
  INSTALL_DESTINATION ${package})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/RegardConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/RegardConfig.cmake ${CMAKE_BINARY_DIR}/RegardConfigVersion.cmake
  DESTINATION ${package})
file(RELATIVE_PATH to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)  # so that the tree may be moved
configure_file(cmake/regard.pc.in ${CMAKE_BINARY_DIR}/regard.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/regard.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# The models in the box, with whom they are owed to.
install(FILES models/zh-en.model models/en-zh.model models/README.md DESTINATION ${CMAKE_INSTALL_DATADIR}/regard/models)
