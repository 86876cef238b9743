#include "planner/layout.hpp"
