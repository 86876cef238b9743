ebb_test(models_tests LIBS ebb_models SOURCES
  models/units_test.cpp
)
