# cmake --install: the programs, their library of models, clusters and jobs, manual pages and completions, and for other
# programs the planner as CMake targets (find_package(ebb): ebb::models, ebb::sim, ebb::reports, ebb::planner).
# Components: runtime, development; CPack makes a Debian package of each.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS ebb ebb-replay RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)
install(DIRECTORY models/llm models/clusters models/jobs DESTINATION ${CMAKE_INSTALL_DATADIR}/ebb COMPONENT runtime
        FILES_MATCHING PATTERN "*.yaml")
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime RENAME copyright)
install(FILES README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime)
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs COMPONENT runtime FILES_MATCHING PATTERN "*.md")

# The program writes its own manual pages and completions, when it is installed.
install(CODE "set(ebb_program \"$<TARGET_FILE:ebb>\")
set(ebb_man \"${CMAKE_INSTALL_MANDIR}/man1\")
set(ebb_data \"${CMAKE_INSTALL_DATADIR}\")" COMPONENT runtime)
install(SCRIPT cmake/InstallManual.cmake COMPONENT runtime)

# The libraries, under names of their own in lib/, and headers that are included as here: <models/job.hpp>.
set(ebb_libraries ebb_models ebb_sim ebb_reports ebb_planner)
foreach(library ${ebb_libraries})
  string(REPLACE "ebb_" "" name ${library})
  set_target_properties(${library} PROPERTIES EXPORT_NAME ${name})
endforeach()
set_target_properties(ebb_options PROPERTIES EXPORT_NAME options)
install(TARGETS ${ebb_libraries} ebb_options EXPORT ebb
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
foreach(directory models sim reports planner)
  install(DIRECTORY ${directory} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ebb COMPONENT development
          FILES_MATCHING PATTERN "*.hpp" PATTERN "cli*.hpp" EXCLUDE PATTERN "json_fields.hpp" EXCLUDE
          PATTERN "*_json_parts.hpp" EXCLUDE PATTERN "web" EXCLUDE PATTERN "llm" EXCLUDE PATTERN "clusters" EXCLUDE
          PATTERN "jobs" EXCLUDE)
endforeach()

set(ebb_package ${CMAKE_INSTALL_LIBDIR}/cmake/ebb)
install(EXPORT ebb NAMESPACE ebb:: FILE ebb-targets.cmake DESTINATION ${ebb_package} COMPONENT development)
set(EBB_DATA_DIR "${CMAKE_INSTALL_DATADIR}/ebb")
configure_package_config_file(cmake/ebb-config.cmake.in "${PROJECT_BINARY_DIR}/ebb-config.cmake"
                              INSTALL_DESTINATION ${ebb_package} PATH_VARS EBB_DATA_DIR)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/ebb-config-version.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/ebb-config.cmake" "${PROJECT_BINARY_DIR}/ebb-config-version.cmake"
        DESTINATION ${ebb_package} COMPONENT development)

# Debian packages: cpack -G DEB. What they depend on comes from what the programs link (dpkg-shlibdeps).
set(CPACK_PACKAGE_NAME ebb)
set(CPACK_PACKAGE_VENDOR "the Ebb authors")
set(CPACK_PACKAGE_CONTACT "the Ebb authors <ebb@example.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_ALL runtime development)
set(CPACK_STRIP_FILES ON)
set(CPACK_GENERATOR DEB)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME ebb)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION science)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "Which Megatron-LM flags make a training job fit, at what step time, and why:
 plans, predicts and replays chunked optimizer-state offloading. Planning needs no GPU.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libebb-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libfmt-dev, libyaml-cpp-dev, zlib1g-dev")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "The planner of ebb as C++ libraries and a CMake package.")
include(CPack)
