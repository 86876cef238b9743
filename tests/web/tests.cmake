# HTML reports in a headless browser, and the bundle that they embed. Both need Node.js, the first a browser as well.
add_test(NAME web_report COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/web/run-tests" "$<TARGET_FILE:ebb>" "${PROJECT_SOURCE_DIR}"
                                 "${CMAKE_CURRENT_BINARY_DIR}/web")
add_test(NAME web_bundle COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/web/check-bundle" "${PROJECT_SOURCE_DIR}"
                                 "${CMAKE_CURRENT_BINARY_DIR}/web-bundle")
set_tests_properties(web_report web_bundle PROPERTIES SKIP_RETURN_CODE 77)
