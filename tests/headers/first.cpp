// SPDX-License-Identifier: Apache-2.0
#include <everything.hpp>

int version_seen_by_the_second_file();

int main() { return version_seen_by_the_second_file() == swapmm::version_minor ? 0 : 1; }
