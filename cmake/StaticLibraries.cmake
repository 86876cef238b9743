# EBB_STATIC: executables that need nothing but libc (and, for GPUs, a driver), so that one file runs on another host:
# the compiler's libraries, yaml-cpp and {fmt} become part of them. Without MPI, whose library is always the cluster's
# own. The CUDA runtime is static in every build, and NCCL is loaded when it is needed (replay/CMakeLists.txt).

if(NOT EBB_STATIC)
  return()
endif()

find_library(EBB_YAML_CPP_ARCHIVE libyaml-cpp.a REQUIRED)
get_target_property(ebb_configurations yaml-cpp IMPORTED_CONFIGURATIONS)
if(ebb_configurations) # not where yaml-cpp is built beside Ebb
  foreach(configuration ${ebb_configurations})
    set_target_properties(yaml-cpp PROPERTIES IMPORTED_LOCATION_${configuration} "${EBB_YAML_CPP_ARCHIVE}"
                                              IMPORTED_SONAME_${configuration} "")
  endforeach()
endif()

# Debian has no archive of {fmt}. Its headers hold everything; the shared library is then named and not needed.
set_target_properties(fmt::fmt PROPERTIES INTERFACE_COMPILE_DEFINITIONS FMT_HEADER_ONLY=1)
add_link_options(-static-libstdc++ -static-libgcc -Wl,--as-needed)
