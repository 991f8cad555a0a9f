// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes down which mutants each test case comes by, to the file SWAPMM_MUTANTS_REACHED: one line per case with the
// seconds of the processor, its name, and the numbers of the mutants. ./dev mutate adds it to main.cpp of its copy.

#include <doctest/doctest.h>

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>

#include "mutation/mutation.hpp"

namespace swapmm_mutation {

class ReachedCases : public doctest::IReporter {
 public:
  explicit ReachedCases(const doctest::ContextOptions& /*options*/) {
    if (const char* const path = std::getenv("SWAPMM_MUTANTS_REACHED")) out_.open(path, std::ios::app);
  }
  void test_case_start(const doctest::TestCaseData& test) override {
    if (!out_.is_open()) return;
    std::fill(std::begin(reached), std::end(reached), false);
    name_ = test.m_name;
    start_ = std::clock();
  }
  void test_case_end(const doctest::CurrentTestCaseStats& /*stats*/) override {
    if (!out_.is_open()) return;
    out_ << static_cast<double>(std::clock() - start_) / CLOCKS_PER_SEC << '\t' << name_ << '\t';
    for (unsigned number = 1; number < most; ++number) {
      if (reached[number]) out_ << number << ' ';
    }
    out_ << std::endl;
  }
  void report_query(const doctest::QueryData& /*in*/) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats& /*in*/) override {}
  void test_case_reenter(const doctest::TestCaseData& /*in*/) override {}
  void test_case_exception(const doctest::TestCaseException& /*in*/) override {}
  void subcase_start(const doctest::SubcaseSignature& /*in*/) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData& /*in*/) override {}
  void log_message(const doctest::MessageData& /*in*/) override {}
  void test_case_skipped(const doctest::TestCaseData& /*in*/) override {}

 private:
  std::ofstream out_;
  std::string name_;
  std::clock_t start_ = 0;
};
REGISTER_LISTENER("reached", 1, ReachedCases);

}  // namespace swapmm_mutation
