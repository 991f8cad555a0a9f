// SPDX-License-Identifier: Apache-2.0
// swapmm run: what it refuses before it starts anything, what it passes on, and a program within a budget.
#include <doctest/doctest.h>
#include <elf.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>

#include "program.hpp"

using namespace swapmm::test;
namespace fs = std::filesystem;

namespace {

std::vector<std::string> in_shell(const std::string& text, std::vector<std::string> options = {}) {
  options.insert(options.begin(), "run");
  options.insert(options.end(), {"--", "/bin/sh", "-c", text});
  return options;
}

std::string program_file(const std::string& name, std::string_view text) {
  const std::string file = scratch_file(name);
  write_contents(file, text);
  fs::permissions(file, fs::perms::owner_all);
  return file;
}

/// The beginning of this program's own file, with one byte changed.
std::string own_header(std::size_t at, char value) {
  std::string text = contents("/proc/self/exe").substr(0, sizeof(Elf64_Ehdr));
  text[at] = value;
  return text;
}

std::size_t scratch_of_run() {
  std::size_t count = 0;
  for (const auto& entry : fs::directory_iterator(fs::temp_directory_path())) {
    count += entry.path().filename().string().starts_with("swapmm-run-") ? 1 : 0;
  }
  return count;
}

}  // namespace

TEST_CASE("run without a program is wrong use") {
  check_refused({"run"}, 2, {"which program?"});
  check_refused({"run", "--budget", "1MB", "--"}, 2, {"which program?"});
  check_refused({"run", "--no-such-option", "--", "true"}, 2, {"--no-such-option"});
}

TEST_CASE("run refuses budgets that cannot be read or had, from options and variables") {
  const std::string never = "touch " + scratch_file("started");
  check_refused(in_shell(never, {"--budget", "8 parsecs"}), 2, {"--budget", "parsecs"});
  check_refused(in_shell(never, {"--budget", "0"}), 2, {"--budget", "0"});
  check_refused(in_shell(never, {"--budget", "101%"}), 2, {"--budget 101%"});
  check_refused(in_shell(never, {"--host-budget", "much"}), 2, {"--host-budget", "much"});
  check_refused(in_shell(never, {"--reported-memory", "none"}), 2, {"--reported-memory"});
  REQUIRE(setenv("SWAPMM_BUDGET", "a lot", 1) == 0);
  check_refused(in_shell(never), 2, {"SWAPMM_BUDGET", "a lot"});
  REQUIRE(unsetenv("SWAPMM_BUDGET") == 0);
  REQUIRE(setenv("SWAPMM_DISABLE", "1", 1) == 0);
  check_refused(in_shell(never), 2, {"SWAPMM_DISABLE"});
  REQUIRE(unsetenv("SWAPMM_DISABLE") == 0);
  CHECK(!fs::exists(scratch_file("started")));
}

TEST_CASE("run refuses programs that are not there or cannot be run") {
  check_refused({"run", "--", "no-such-program-at-all"}, 2, {"no-such-program-at-all", "PATH"});
  check_refused({"run", "--", "/no/such/program"}, 2, {"/no/such/program"});
  check_refused({"run", "--", "/etc/passwd"}, 2, {"/etc/passwd", "not executable"});
  check_refused({"run", "--", "/"}, 2, {"no such program"});
  check_refused({"run", "--", program_file("text", "echo without an interpreter\n")}, 2, {"interpreter"});
  check_refused({"run", "--", program_file("empty", "")}, 2, {"empty"});
  check_refused({"run", "--", program_file("lost", "#!/no/such/interpreter\n")}, 2, {"/no/such/interpreter"});
}

TEST_CASE("run refuses programs that no layer gets into") {
  const char other_class = sizeof(void*) == 8 ? ELFCLASS32 : ELFCLASS64;
  check_refused({"run", "--", program_file("small", own_header(EI_CLASS, other_class))}, 2, {"-bit program"});
  check_refused({"run", "--", program_file("foreign", own_header(offsetof(Elf64_Ehdr, e_machine), 0x55))}, 2,
                {"another processor"});
  check_refused({"run", "--", program_file("short", contents("/proc/self/exe").substr(0, 20))}, 2, {"not a whole"});
  // No segments, so no loader of the system.
  std::string no_loader = own_header(offsetof(Elf64_Ehdr, e_phnum), 0);
  no_loader[offsetof(Elf64_Ehdr, e_phnum) + 1] = 0;
  const std::string file = program_file("static", no_loader);
  check_refused({"run", "--", file}, 2, {"statically linked"});
  check_refused({"run", "--", program_file("script", "#!" + file + " -x\n")}, 2, {"statically linked"});
  check_refused({"run", "--", program_file("by-env", "#!/usr/bin/env -S A=1 " + file + "\n")}, 2,
                {"statically linked"});
}

TEST_CASE("run refuses programs that ignore their environment") {
  std::string file = "/usr/bin/su";
  if (geteuid() == 0) {
    file = scratch_file("rights");
    fs::copy_file("/bin/sh", file, fs::copy_options::overwrite_existing);
    REQUIRE(chown(file.c_str(), 65534, 65534) == 0);
    fs::permissions(file, fs::perms::set_uid | fs::perms::owner_all | fs::perms::others_exec);
  }
  if (!fs::exists(file)) {
    MESSAGE("skipped: there is no set-uid program");
    return;
  }
  check_refused({"run", "--", file}, 2, {file, "set-uid"});
}

TEST_CASE("run refuses files that are no layer") {
  check_refused(in_shell("true", {"--layer", "/no/such/layer.so"}), 2, {"/no/such/layer.so"});
  check_refused(in_shell("true", {"--layer", "/etc/passwd"}), 2, {"/etc/passwd"});
  check_refused(in_shell("true", {"--layer", program_file("a:b", "")}), 2, {"colon"});
}

#ifdef SWAPMM_TEST_LAYER

TEST_CASE("run passes words, variables and the exit code on, and says if the layer was not loaded") {
  const std::size_t before = scratch_of_run();
  const Outcome outcome = run_program(
      {"run", "--budget", "25%", "--host-budget", "3MB", "--evict-always", "--reported-memory", "budget", "--",
       "/bin/sh", "-c",
       "echo \"$OPENCL_LAYERS|$SWAPMM_BUDGET|$SWAPMM_HOST_BUDGET|$SWAPMM_EVICT|$SWAPMM_REPORTED_MEMORY|$@\"; cat; exit "
       "7",
       "name", "--budget", "a b", "--"},
      "to stdin");
  CHECK(outcome.code == 7);
  CHECK(outcome.out == std::string(SWAPMM_TEST_LAYER) + "|25%|3MB|always|budget|--budget a b --\nto stdin");
  CHECK(outcome.err.find("did not load the layer") != std::string::npos);
  CHECK(scratch_of_run() == before);
}

TEST_CASE("run keeps the layers that are there, and calls its own first") {
  REQUIRE(setenv("OPENCL_LAYERS", "/a.so:/b.so", 1) == 0);
  CHECK(run_program(in_shell("echo $OPENCL_LAYERS")).out == "/a.so:/b.so:" SWAPMM_TEST_LAYER "\n");
  REQUIRE(unsetenv("OPENCL_LAYERS") == 0);
}

TEST_CASE("run leaves the program's own -- to it") {
  CHECK(run_program({"run", "/bin/echo", "a", "--", "b"}).out == "a -- b\n");
  CHECK(run_program({"run", "--", "/bin/echo", "a", "--", "b"}).out == "a -- b\n");
}

TEST_CASE("run finds scripts' interpreters, and programs in PATH") {
  CHECK(run_program({"run", "--", program_file("hello", "#! /bin/sh -e\necho hello $1\n"), "you"}).out ==
        "hello you\n");
  CHECK(run_program({"run", "--", program_file("hallo", "#!/usr/bin/env sh\necho hallo\n")}).out == "hallo\n");
  CHECK(run_program({"run", "sh", "-c", "echo $0", "-q"}).out == "-q\n");
}

TEST_CASE("run passes signals on to the program") {
  const Outcome outcome =
      run_program(in_shell("trap 'echo got it; exit 9' USR1; kill -USR1 $PPID; sleep 20 & wait; exit 1", {"-q"}));
  CHECK(outcome.code == 9);
  CHECK(outcome.out == "got it\n");
}

TEST_CASE("run ends by the signal that ended the program, and leaves nothing behind") {
  const std::size_t before = scratch_of_run();
  const Outcome outcome = run_program(in_shell("kill -TERM $$"));
  CHECK(outcome.code == -1);
  CHECK(outcome.signal == 15);
  CHECK(scratch_of_run() == before);
}

TEST_CASE("run refuses a budget above the memory of every device") {
  check_refused(in_shell("true", {"--budget", "1000000TB"}), 2, {"--budget is 1000000000000000000 bytes", "largest"});
}

TEST_CASE("run keeps an OpenCL program within the budget, with the same output") {
  // The program itself says what it prints without a budget.
  const Outcome free = run_program({"run", "-q", "--", SWAPMM_TEST_OPENCL_PROGRAM, "threads.queues_of_their_own"});
  INFO(free.err);
  REQUIRE(free.code == 0);
  CHECK(free.err.empty());
  const std::string report = scratch_file("report-%p.json");
  const Outcome small = run_program({"run", "--budget", "300000", "--report", report, "--", SWAPMM_TEST_OPENCL_PROGRAM,
                                     "threads.queues_of_their_own"});
  INFO(small.err);
  CHECK(small.code == 0);
  CHECK(small.out == free.out);
  CHECK(small.err.find("swapmm: OpenCL layer") == 0);
  CHECK(small.err.find("did not load") == std::string::npos);
  std::string written;
  for (const auto& entry : fs::directory_iterator(fs::path(report).parent_path())) {
    if (entry.path().filename().string().starts_with("report-")) written = entry.path().string();
  }
  REQUIRE(!written.empty());
  const auto told = boost::json::parse(contents(written)).as_object();
  CHECK(number(told.at("devices").as_array().at(0).as_object(), "budget_bytes") == 300000);
  CHECK(number(told, "commands") > 0);
}

TEST_CASE("run keeps all contexts of a program together within the host budget") {
  const std::string program = SWAPMM_TEST_OPENCL_PROGRAM;
  const Outcome free = run_program({"run", "-q", "--", program, "threads.contexts_of_their_own"});
  REQUIRE(free.code == 0);
  const std::string report = scratch_file("host.json");
  const std::vector<std::string> options{"run", "--budget", "210000", "--report", report, "--host-budget"};
  const auto with = [&](const std::string& host) {
    std::vector<std::string> words = options;
    words.insert(words.end(), {host, "--", program, "threads.contexts_of_their_own"});
    return run_program(words);
  };
  // Three contexts with 262,144 bytes each. What one has on the device must leave before another's comes.
  const Outcome enough = with("790000");
  INFO(enough.err);
  CHECK(enough.code == 0);
  CHECK(enough.out == free.out);
  const double peak = number(boost::json::parse(contents(report)).as_object(), "host_peak_bytes");
  CHECK(peak <= 790000);
  CHECK(peak >= 589824);
  const Outcome short_of_it = with("200000");
  CHECK(short_of_it.code == 1);
  CHECK((short_of_it.out + short_of_it.err).find("CL_OUT_OF_HOST_MEMORY") != std::string::npos);
}

TEST_CASE("run prints a report if nothing else is asked for") {
  const Outcome outcome =
      run_program({"run", "--budget", "300000", "--", SWAPMM_TEST_OPENCL_PROGRAM, "threads.queues_of_their_own"});
  CHECK(outcome.code == 0);
  CHECK(outcome.err.find("commands; moved") != std::string::npos);
}

#else

TEST_CASE("run without a layer says where it looked") {
  check_refused(in_shell("true"), 2, {"libswapmm_opencl_layer.so"});
}

#endif
