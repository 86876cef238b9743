// Facts that a measured file states about its run: which driver, which day.
#pragma once

#include <string>

namespace ebb::replay {

/// "580.159.04" where the kernel module says so, else "".
std::string driver_name();

/// "13.0" for 13000, as CUDA counts versions.
std::string cuda_version_text(int version);

/// Today in UTC as "2026-11-30", or the day of SOURCE_DATE_EPOCH. InputError where that is no number.
std::string run_date();

}  // namespace ebb::replay
