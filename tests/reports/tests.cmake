ebb_test(reports_tests LIBS ebb_reports SOURCES
  reports/answer_test.cpp
  reports/check_test.cpp
  reports/diff_test.cpp
  reports/doctor_test.cpp
  reports/html_test.cpp
  reports/score_test.cpp
  reports/life_test.cpp
  reports/narrow_test.cpp
  reports/trace_test.cpp
)
target_link_libraries(reports_tests PRIVATE ZLIB::ZLIB nlohmann_json::nlohmann_json)
