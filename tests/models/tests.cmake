ebb_test(models_tests LIBS ebb_models SOURCES
  models/timeline_test.cpp
  models/units_test.cpp
)
