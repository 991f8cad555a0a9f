// SPDX-License-Identifier: Apache-2.0
// swapmm run: what it refuses before it starts anything, what it passes on, and a program within a budget.
#include <doctest/doctest.h>
#include <elf.h>
#include <unistd.h>

#include <csignal>
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

/// A folder for temporary files of the programs that are run meanwhile; other tests have theirs.
class OwnScratch {
 public:
  OwnScratch() {
    fs::create_directories(folder_);
    REQUIRE(setenv("TMPDIR", folder_.c_str(), 1) == 0);
  }
  ~OwnScratch() {
    unsetenv("TMPDIR");
    fs::remove_all(folder_);
  }
  OwnScratch(const OwnScratch&) = delete;
  OwnScratch& operator=(const OwnScratch&) = delete;
  [[nodiscard]] std::size_t files_of_run() const {
    std::size_t count = 0;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      count += entry.path().filename().string().starts_with("swapmm-run-") ? 1 : 0;
    }
    return count;
  }

 private:
  fs::path folder_ = scratch_file("temporary");
};

}  // namespace

TEST_CASE("run without a program is wrong use") {
  check_refused({"run"}, 2, {"which program?"});
  check_refused({"run", "--budget", "1MB", "--"}, 2, {"which program?"});
  check_refused({"run", "--no-such-option", "--", "true"}, 2, {"--no-such-option"});
  check_refused({"run", "--budget", "1MB", "--file-size", "1GB", "--", "true"}, 2, {"--file-size needs --file"});
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
  const OwnScratch scratch;
  const Outcome outcome = run_program({"run", "--budget", "25%", "--host-budget", "3MB", "--evict-always",
                                       "--reported-memory", "budget", "--wait", "values", "--", "/bin/sh", "-c",
                                       "echo "
                                       "\"$OPENCL_LAYERS|$SWAPMM_BUDGET|$SWAPMM_HOST_BUDGET|$SWAPMM_EVICT|$SWAPMM_"
                                       "REPORTED_MEMORY|$SWAPMM_WAIT|$@\"; cat; "
                                       "exit 7",
                                       "name", "--budget", "a b", "--"},
                                      "to stdin");
  CHECK(outcome.code == 7);
  CHECK(outcome.out == std::string(SWAPMM_TEST_LAYER) + "|25%|3MB|always|budget|values|--budget a b --\nto stdin");
  CHECK(outcome.err.find("did not load the layer") != std::string::npos);
  CHECK(scratch.files_of_run() == 0);
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
  const OwnScratch scratch;
  const Outcome outcome = run_program(in_shell("kill -TERM $$"));
  CHECK(outcome.code == -1);
  CHECK(outcome.signal == 15);
  CHECK(scratch.files_of_run() == 0);
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

// What happens to a report however the program ends. The commands and their order are the same each time.

namespace {

boost::json::object report_in(const std::string& text) { return boost::json::parse(text).as_object(); }

std::size_t times(const std::string& text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// 11 buffers of 65,536 bytes. If all fit, each command is one of the device: forty steps of a write, 7 + 7 launches and
// a read; ten of the initial values, for the other is overwritten first; and 11 reads in the end.
constexpr const char* enough = "1000000";
constexpr const char* half = "360448";
constexpr double commands_if_all_fits = 40 * 16 + 10 + 11;

Outcome run_loop(const std::string& budget, std::vector<std::string> options, const char* signal = nullptr) {
  options.insert(options.begin(), {"run", "--budget", budget});
  options.insert(options.end(), {"--", SWAPMM_TEST_OPENCL_PROGRAM, "iterations.kept_buffers"});
  if (signal != nullptr) REQUIRE(setenv("CASES_SIGNAL", signal, 1) == 0);
  Outcome outcome = run_program(options);
  REQUIRE(unsetenv("CASES_SIGNAL") == 0);
  return outcome;
}

}  // namespace

TEST_CASE("run reports what was needed, moved, planned and waited for") {
  const std::string file = scratch_file("whole.json");
  const Outcome outcome = run_loop(half, {"--report", file});
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(outcome.err.find("commands") == std::string::npos);
  const auto report = report_in(contents(file));
  CHECK(text_at(report, "format") == "swapmm-report");
  CHECK(report.at("ended_by_exit").as_bool());
  const auto& device = report.at("devices").as_array().at(0).as_object();
  CHECK(number(device, "wanted_peak_bytes") == 11 * 65536);
  CHECK(number(device, "budget_bytes") == 360448);
  CHECK(number(device, "largest_command_bytes") == 3 * 65536);
  // Some of the last reads find their bytes on the host.
  CHECK(number(report, "commands") <= commands_if_all_fits);
  CHECK(number(report, "commands") >= commands_if_all_fits - 11);
  CHECK(number(report, "commands_refused") == 0);
  CHECK((number(report, "host_waits") == 0) == (number(report, "host_wait_ns") == 0));
  CHECK(number(report, "queue_waits") > 0);
  CHECK(number(report, "bytes_to_device") >= 65536);
  // Each step is an iteration once the sequence is known.
  CHECK(number(report, "iterations") > 30);
  CHECK(number(report, "iterations_by_plan") > 0);
  CHECK(number(report, "first_plan.iterations") >= 1);
  CHECK(number(report, "first_plan.iterations") < 20);
  CHECK(number(report, "first_plan.ns") > 0);
  const double since = number(report, "commands") - number(report, "first_plan.commands");
  CHECK(number(report, "share_by_plan") ==
        doctest::Approx(number(report, "commands_by_plan") / number(report, "commands")).epsilon(1e-5));
  CHECK(number(report, "share_by_plan_after_warm_up") ==
        doctest::Approx(number(report, "commands_by_plan") / since).epsilon(1e-5));
  CHECK(number(device, "last_plan.operations") == 16);
  CHECK(number(device, "last_plan.predicted_ns") >= number(device, "last_plan.predicted_stall_ns"));
  CHECK(device.at("last_plan").as_object().contains("bound_ns"));
}

TEST_CASE("run counts what is passed through to the driver, and what is refused") {
  const auto report_of = [](const std::string& budget, const std::string& name) {
    const Outcome outcome = run_program({"run", "--budget", budget, "--json", "--", SWAPMM_TEST_OPENCL_PROGRAM, name});
    INFO(outcome.err);
    return report_in(outcome.err.substr(outcome.err.find('{')));
  };
  const auto images = report_of("64MiB", "images.mapped");
  const auto& device = images.at("devices").as_array().at(0).as_object();
  CHECK(number(device, "passed_through.images.objects") == 1);
  CHECK(number(device, "passed_through.images.bytes") == number(device, "not_swapped_peak_bytes"));
  CHECK(number(device, "passed_through.images.bytes") > 0);
  CHECK(number(device, "passed_through.shared_virtual_memory.objects") == 0);
  CHECK(number(images, "objects_refused") == 0);
  const auto tight = report_of("100", "images.mapped");
  CHECK(number(tight, "objects_refused") == 1);
  const auto few = report_of("150000", "iterations.kept_buffers");
  CHECK(number(few, "commands_refused") > 0);
}

TEST_CASE("run keeps the buffers of named kernels on the device while there is room") {
  const auto words = [](const std::string& budget, const std::string& keep) {
    std::vector<std::string> all{"run", "--budget", budget, "--json"};
    if (!keep.empty()) all.insert(all.end(), {"--keep", keep});
    all.insert(all.end(), {"--", SWAPMM_TEST_OPENCL_PROGRAM, "iterations.kept_buffers"});
    return all;
  };
  const auto report_of = [](const Outcome& outcome) { return report_in(outcome.err.substr(outcome.err.find('{'))); };
  const auto kept = [&](const Outcome& outcome) {
    return number(report_of(outcome).at("devices").as_array().at(0).as_object(), "passed_through.buffers.objects");
  };
  const Outcome swapped = run_program(words("524288", ""));
  REQUIRE(swapped.code == 0);
  CHECK(kept(swapped) == 0);
  // Room for eight buffers: five stay beside the largest command, which needs three.
  const Outcome some = run_program(words("524288", "no_such_kernel,blend"));
  INFO(some.err);
  CHECK(some.code == 0);
  CHECK(some.out == swapped.out);
  CHECK(kept(some) == 5);
  CHECK(times(some.err, "no room to keep all") == 1);
  CHECK(number(report_of(some), "commands_refused") == 0);
  // They are no tensors, so nothing can move them.
  CHECK(number(report_of(some).at("devices").as_array().at(0).as_object(), "not_swapped_peak_bytes") == 5 * 65536);
  // All fit.
  const Outcome all = run_program(words("1000000", "blend"));
  CHECK(all.out == swapped.out);
  CHECK(kept(all) == 11);
  CHECK(times(all.err, "no room") == 0);
  const Outcome none = run_program(words("524288", "no_such_kernel"));
  CHECK(kept(none) == 0);
}

TEST_CASE("a report is not lost when the program ends by a signal, and comes once") {
  for (const char* const signal : {"15", "9", "2"}) {
    CAPTURE(signal);
    const OwnScratch scratch;
    const Outcome outcome = run_loop(enough, {}, signal);
    CHECK(outcome.code == -1);
    CHECK(outcome.signal == std::stoi(signal));
    CHECK(times(outcome.err, "did not end by exit()") == 1);
    CHECK(times(outcome.err, "661 commands; moved") == 1);
    CHECK(scratch.files_of_run() == 0);
  }
  const std::string file = scratch_file("killed.json");
  const Outcome outcome = run_loop(half, {"--report", file}, "9");
  const auto killed = report_in(contents(file));
  CHECK(!killed.at("ended_by_exit").as_bool());
  CHECK(number(killed, "commands") >= commands_if_all_fits - 11);
  CHECK(number(killed, "commands_by_plan") > 0);
  CHECK(number(killed, "first_plan.iterations") >= 1);
  CHECK(number(killed.at("devices").as_array().at(0).as_object(), "wanted_peak_bytes") == 11 * 65536);
}

TEST_CASE("a signal at any time leaves one report") {
  const std::string program = SWAPMM_TEST_OPENCL_PROGRAM;
  for (int i = 0; i < 12; ++i) {
    const std::string text =
        program + " recorded.loop >/dev/null & sleep 0." + std::to_string(10 + 4 * i) + "; kill -TERM $!; wait $!";
    const Outcome outcome = run_program(in_shell(text, {"--budget", "1MiB"}));
    INFO(outcome.err);
    const bool loaded = outcome.err.find("did not load the layer") == std::string::npos;
    CHECK(times(outcome.err, "commands; moved") == (loaded ? 1 : 0));
  }
}

TEST_CASE("each process of the program reports once") {
  const std::string program = SWAPMM_TEST_OPENCL_PROGRAM;
  const std::string loop = program + " recorded.loop >/dev/null";
  const Outcome outcome = run_program(in_shell(loop + "; CASES_SIGNAL=9 " + loop + "; :", {"--budget", "1MiB"}));
  CHECK(outcome.code == 0);
  CHECK(times(outcome.err, "commands; moved") == 2);
  CHECK(times(outcome.err, "did not end by exit()") == 1);
}

TEST_CASE("a process that outlives the program reports by itself") {
  const std::string report = scratch_file("late.json");
  const std::string number_file = scratch_file("late.pid");
  const std::string stops = std::string("CASES_SIGNAL=") + std::to_string(SIGSTOP) + " " + SWAPMM_TEST_OPENCL_PROGRAM +
                            " iterations.kept_buffers >/dev/null 2>&1 & echo $! >" + number_file +
                            "; until grep -q '^State:.T' /proc/$!/status; do sleep 0.02; done; exit 4";
  const Outcome outcome = run_program(in_shell(stops, {"--budget", enough, "--report", report}));
  CHECK(outcome.code == 4);
  CHECK(outcome.err.find("did not load") == std::string::npos);
  CHECK(!fs::exists(report));
  REQUIRE(kill(std::stoi(contents(number_file)), SIGCONT) == 0);
  for (int i = 0; i < 600 && !(fs::exists(report) && contents(report).ends_with("]\n}\n")); ++i) usleep(50000);
  const auto told = report_in(contents(report));
  CHECK(number(told, "commands") == commands_if_all_fits);
  CHECK(told.at("ended_by_exit").as_bool());
}

#else

TEST_CASE("run without a layer says where it looked") {
  check_refused(in_shell("true"), 2, {"libswapmm_opencl_layer.so"});
}

#endif
