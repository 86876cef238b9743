# What other people get: an installation that can be moved, the CMake package, Debian packages, a program for another
# host. Sanitizer builds leave them out: they link what release builds link, at several times the price.
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  return()
endif()

add_test(NAME package_installed
         COMMAND "${CMAKE_COMMAND}" -D "BUILD=${PROJECT_BINARY_DIR}" -D "SOURCE=${PROJECT_SOURCE_DIR}"
                 -D "WORK=${CMAKE_CURRENT_BINARY_DIR}/package-installed" -D "CXX=${CMAKE_CXX_COMPILER}"
                 -D "FLAGS=${CMAKE_CXX_FLAGS}" -P "${CMAKE_CURRENT_SOURCE_DIR}/packaging/installed.cmake")

find_program(EBB_DPKG_SHLIBDEPS dpkg-shlibdeps)
if(EBB_DPKG_SHLIBDEPS)
  add_test(NAME package_deb
           COMMAND "${CMAKE_COMMAND}" -D "BUILD=${PROJECT_BINARY_DIR}" -D "CPACK=${CMAKE_CPACK_COMMAND}"
                   -D "WORK=${CMAKE_CURRENT_BINARY_DIR}/package-deb"
                   -P "${CMAKE_CURRENT_SOURCE_DIR}/packaging/deb.cmake")
endif()

if(EBB_STATIC)
  foreach(program ebb ebb-replay)
    add_test(NAME static_${program}
             COMMAND "${CMAKE_COMMAND}" -D "PROGRAM=$<TARGET_FILE:${program}>" -D "READELF=${CMAKE_READELF}"
                     -P "${CMAKE_CURRENT_SOURCE_DIR}/packaging/static.cmake")
  endforeach()
endif()
