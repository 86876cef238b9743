# Run by cmake --install: manual pages (ebb.1, ebb-plan.1, ...) and completions, written by the program that is being
# installed. ebb_program, ebb_man and ebb_data are set before. A program for another machine cannot write them: then
# they are left out.

set(prefix "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}")

# write(FILE ARGUMENTS...): what the program says, where it succeeds.
function(write file)
  execute_process(COMMAND "${ebb_program}" ${ARGN} OUTPUT_VARIABLE text ERROR_VARIABLE error RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(STATUS "Left out: ${prefix}/${file} (${error})")
    return()
  endif()
  file(WRITE "${prefix}/${file}" "${text}")
  message(STATUS "Installing: ${prefix}/${file}")
endfunction()

write("${ebb_man}/ebb.1" man)
# Commands are the indented words behind "Commands:".
execute_process(COMMAND "${ebb_program}" --help OUTPUT_VARIABLE help ERROR_QUIET)
string(REGEX REPLACE ".*\nCommands:\n" "" help "${help}")
string(REGEX REPLACE "\n\n.*" "" help "${help}")
string(REGEX MATCHALL "\n  [a-z]+ |^  [a-z]+ " commands "${help}")
foreach(command ${commands})
  string(STRIP "${command}" command)
  write("${ebb_man}/ebb-${command}.1" man ${command})
endforeach()

write("${ebb_data}/bash-completion/completions/ebb" completion bash)
write("${ebb_data}/zsh/site-functions/_ebb" completion zsh)
write("${ebb_data}/fish/vendor_completions.d/ebb.fish" completion fish)
