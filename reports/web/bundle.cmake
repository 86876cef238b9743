# Builds the report's script and style sheet: cmake -D SOURCE=reports/web -D WORK=DIR -D OUT=DIR [-D FRESH=ON] -P bundle.cmake
#
# A build needs no Node.js: dist/ holds the bundle as esbuild made it from these sources, and dist/sources names their
# hash. Where the sources are others (someone is changing them), or with FRESH, npm installs exactly what
# package-lock.json says into WORK, without running scripts of packages, and esbuild bundles anew. The test web_bundle
# does so and fails where dist/ would differ; `cmake --build BUILD -t web_dist` updates dist/.
set(parts package.json package-lock.json bundle.cmake report.css report.js charts.js data.js format.js pareto.js
          theme.js timeline.js)

set(all "")
foreach(part IN LISTS parts)
  file(SHA256 "${SOURCE}/${part}" hash)
  string(APPEND all "${hash}  ${part}\n")
endforeach()

file(MAKE_DIRECTORY "${OUT}")
set(known "")
if(EXISTS "${SOURCE}/dist/sources")
  file(READ "${SOURCE}/dist/sources" known)
endif()
if(NOT FRESH AND known STREQUAL all)
  foreach(file report.js report.css)
    configure_file("${SOURCE}/dist/${file}" "${OUT}/${file}" COPYONLY)
    file(TOUCH_NOCREATE "${OUT}/${file}")
  endforeach()
  return()
endif()

find_program(NPM npm)
find_program(NODE NAMES node nodejs)
if(NOT NPM OR NOT NODE)
  message(FATAL_ERROR "reports/web has changed since dist/ was made, and npm is not here to bundle it anew: install Node.js "
                      "18 or newer with npm, or give a bundle with -D EBB_WEB_BUNDLE=DIR (report.js and report.css)")
endif()

function(run)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY "${WORK}" RESULT_VARIABLE result OUTPUT_VARIABLE output
                  ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "failed (${result}): ${ARGN}\n${output}")
  endif()
endfunction()

file(MAKE_DIRECTORY "${WORK}")
foreach(part IN LISTS parts)
  configure_file("${SOURCE}/${part}" "${WORK}/${part}" COPYONLY)
endforeach()
if(NOT EXISTS "${WORK}/node_modules/.package-lock.json" OR
   "${WORK}/package-lock.json" IS_NEWER_THAN "${WORK}/node_modules/.package-lock.json")
  run("${NPM}" ci --ignore-scripts --no-audit --no-fund)
endif()
# What comes from uPlot keeps its licence.
file(READ "${WORK}/node_modules/uplot/LICENSE" licence)
string(PREPEND licence "Contains uPlot 1.6.32.\n\n")
string(STRIP "${licence}" licence)
set(esbuild "${WORK}/node_modules/esbuild/bin/esbuild")
set(options --bundle --minify --target=es2020,chrome111,firefox113,safari16.4 --legal-comments=none --log-level=warning)
run("${NODE}" "${esbuild}" report.js ${options} --format=iife "--banner:js=/*\n${licence}\n*/" "--outfile=${OUT}/report.js")
run("${NODE}" "${esbuild}" report.css ${options} "--banner:css=/*\n${licence}\n*/" "--outfile=${OUT}/report.css")
file(WRITE "${OUT}/sources" "${all}")
