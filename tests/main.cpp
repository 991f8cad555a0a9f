// SPDX-License-Identifier: Apache-2.0
// Every test program: the cases come from the other files linked to it.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
