#include "replay/program.hpp"
