// SPDX-License-Identifier: Apache-2.0
// What is said where a program's own kernel is wrong, or is used wrongly.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <swapmm/opencl/backend.hpp>
#include <swapmm/opencl/program.hpp>
#include <swapmm/swapmm.hpp>

#include "opencl/device.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::literals;
using opencl::argument;

constexpr const char* source = R"(
#include <swapmm/kernel.h>
SWAPMM_KERNEL void scale(SWAPMM_VIEW(float, image), const int factor) { SWAPMM_AT1(image, SWAPMM_ID(0)) *= factor; }
)";

template <class Call>
std::string text_thrown(Call&& call) {
  try {
    call();
  } catch (const BackendError& error) {
    return error.what();
  }
  FAIL("nothing was thrown");
  return {};
}
bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a kernel that does not compile is refused with the compiler's log") {
  const opencl::Backend backend = test::backend();
  const auto refused = [&](const std::string& body, const std::string& options = {}) {
    try {
      const opencl::Program program(backend, "#include <swapmm/kernel.h>\nSWAPMM_KERNEL void k(" + body, options);
    } catch (const BackendError& error) {
      CHECK(error.kind == BackendError::Kind::failed);
      CHECK((error.code == -11 || error.code == -15));  // CL_BUILD_PROGRAM_FAILURE, CL_COMPILE_PROGRAM_FAILURE
      return std::string(error.what());
    }
    FAIL("it compiled");
    return std::string();
  };
  CHECK(has(refused("SWAPMM_VIEW(int, a)) { SWAPMM_AT1(a, 0) = never_declared; }"), "never_declared"));
  // What is read only stays so. The log is more than the call and its status; its words are the compiler's.
  const std::string log = refused("SWAPMM_CONST_VIEW(int, image)) { SWAPMM_AT1(image, 0) = 1; }");
  CHECK(has(log, "_PROGRAM_FAILURE ("));
  CHECK(has(log, "\n"));
  // Options reach the compiler.
  CHECK(
      has(refused("SWAPMM_VIEW(int, a)) { SWAPMM_AT1(a, 0) = WORD; }", "-DWORD=from_the_options"), "from_the_options"));
}

TEST_CASE("a wrong use of a kernel is refused with names and numbers") {
  const opencl::Backend backend = test::backend();
  const opencl::Program program(backend, source);
  MemoryManager manager(backend, {.device_budget = 64_KiB});
  CHECK(has(text_thrown([&] { (void)program.kernel("scalee"); }), "\"scalee\""));

  opencl::Kernel scale = program.kernel("scale");
  auto image = manager.tensor<float>({16}, "image");
  image.upload(std::vector<float>(16, 3));
  manager.run("scale", updates(image), [&](auto& op) {
    const auto view = argument(op[image], image);
    const auto refused = [&](cl_int code, const std::string& argument_text, const auto&... arguments) {
      try {
        scale.set(arguments...);
      } catch (const BackendError& error) {
        INFO(error.what());
        CHECK(error.code == code);
        CHECK(has(error.what(), "\"scale\""));
        CHECK(has(error.what(), argument_text));
        return;
      }
      FAIL("it was taken: " << argument_text);
    };
    refused(CL_INVALID_ARG_SIZE, "argument 2", view, std::int64_t{2});  // the kernel wants an int
    refused(CL_INVALID_ARG_INDEX, "argument 3", view, 2, 3);            // one too many
    const auto incomplete = [&](const auto&... arguments) {
      opencl::Kernel fresh = program.kernel("scale");
      const std::string text = text_thrown([&] { fresh.set(arguments...).enqueue(op.queue(), {16}); });
      CHECK(has(text, "\"scale\""));
      // Drivers that do not know the size of a layout say so when the kernel is queued.
      CHECK((has(text, "CL_INVALID_ARG_SIZE") || has(text, "CL_INVALID_KERNEL_ARGS")));
    };
    incomplete(view);                              // the factor is missing
    incomplete(op[image], 2);                      // the layout is missing
    scale.set(view, 2).enqueue(op.queue(), {16});  // and the kernel is as good as before
  });
  CHECK(image.download() == std::vector<float>(16, 6));
}

TEST_CASE("a range of work items has one to three dimensions") {
  CHECK(opencl::Range{}.dimensions() == 0);
  CHECK(opencl::Range{4}.dimensions() == 1);
  CHECK(opencl::Range{4, 5, 6}.dimensions() == 3);
  CHECK(opencl::Range{4, 5, 6}.data()[2] == 6);
  CHECK_THROWS_AS((opencl::Range{4, 5, 6, 7}), UsageError);
}
