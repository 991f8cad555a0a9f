// SPDX-License-Identifier: Apache-2.0
#include <everything.hpp>

int version_seen_by_the_second_file();
int version_seen_by_the_second_file() { return swapmm::version_minor; }
