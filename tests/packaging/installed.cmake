# Proves that an installation works, wherever it is: cmake -D BUILD=... -D WORK=... -D SOURCE=... -P installed.cmake
# Installs, moves the installation away, and from there: `ebb plan` of a job by name answers as the built program does,
# ebb-replay runs that plan, manual pages and completions are there if the program writes them, and a program of
# somebody else's finds the package, is built and linked against it, and gets the same answer.

function(run result)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE err)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${ARGN}: exit ${code}\n${out}\n${err}")
  endif()
  set(${result} "${out}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}")
run(_ "${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${WORK}/first")
file(RENAME "${WORK}/first" "${WORK}/moved")
set(prefix "${WORK}/moved")

# The installed program with its own library, from another directory, and no way back to the sources' one: a job that
# only the moved library has.
file(RENAME "${prefix}/share/ebb/jobs/measured-1.8b-1xh200.yaml" "${prefix}/share/ebb/jobs/only-here.yaml")
run(installed "${CMAKE_COMMAND}" -E chdir / "${prefix}/bin/ebb" plan only-here --json)
run(built "${BUILD}/bin/ebb" plan measured-1.8b-1xh200 --json)
string(REPLACE "\"only-here\"" "\"measured-1.8b-1xh200\"" installed "${installed}")
string(REPLACE " only-here " " measured-1.8b-1xh200 " installed "${installed}")
if(NOT installed STREQUAL built)
  message(FATAL_ERROR "the installed ebb answers otherwise:\n${installed}\n${built}")
endif()
run(_ "${prefix}/bin/ebb" simulate "${SOURCE}/tests/gpu/replay-small.yaml" --policy chunked --chunk-numel 5e5
    -o "${WORK}/plan.json")
run(_ "${prefix}/bin/ebb" replay run "${WORK}/plan.json" --device cpu)

# What the program can write is installed: every page that it knows, and completions for three shells.
execute_process(COMMAND "${prefix}/bin/ebb" man RESULT_VARIABLE has_man OUTPUT_QUIET ERROR_QUIET)
if(has_man EQUAL 0)
  foreach(page ebb ebb-plan ebb-simulate ebb-doctor ebb-learn)
    if(NOT EXISTS "${prefix}/share/man/man1/${page}.1")
      message(FATAL_ERROR "no manual page ${page}.1")
    endif()
  endforeach()
endif()
execute_process(COMMAND "${prefix}/bin/ebb" completion bash RESULT_VARIABLE has_completion OUTPUT_QUIET ERROR_QUIET)
if(has_completion EQUAL 0 AND NOT EXISTS "${prefix}/share/bash-completion/completions/ebb")
  message(FATAL_ERROR "no completion for bash")
endif()

# The package, from where it was moved to.
run(_ "${CMAKE_COMMAND}" -S "${SOURCE}/tests/packaging/consumer" -B "${WORK}/consumer" -G Ninja
    -D "CMAKE_PREFIX_PATH=${prefix}" -D CMAKE_BUILD_TYPE=Release -D "CMAKE_CXX_COMPILER=${CXX}"
    -D "CMAKE_CXX_FLAGS=${FLAGS}")
run(_ "${CMAKE_COMMAND}" --build "${WORK}/consumer")
run(theirs "${CMAKE_COMMAND}" -E env "EBB_LIBRARY=${prefix}/share/ebb" "${WORK}/consumer/consumer")
run(ours "${BUILD}/bin/ebb" plan llama3-8b-hgx-h200 --json)
string(JSON policy GET "${ours}" recommendation policy)
string(JSON peak GET "${ours}" recommendation device_peak_bytes)
if(NOT theirs STREQUAL "${prefix}/share/ebb\n${policy}  ${peak}\n")
  message(FATAL_ERROR "the consumer answers\n${theirs}, ebb plan ${policy} and ${peak}")
endif()
file(REMOVE_RECURSE "${WORK}")
