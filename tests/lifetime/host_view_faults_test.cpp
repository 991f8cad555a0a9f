// SPDX-License-Identifier: Apache-2.0
// What the system does with touches of host views: other handlers of SIGSEGV, system calls, fork(), a sandbox, and
// touches that cannot be served.
#include <doctest/doctest.h>

#if defined(__linux__)

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/swapmm.hpp>

#include "lifetime/host_view_desk.hpp"
#include "support/small_program.hpp"

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SWAPMM_TEST_UNDER_TSAN
#endif
#elif defined(__SANITIZE_THREAD__)
#define SWAPMM_TEST_UNDER_TSAN
#endif

namespace {

using IntView = HostView<int, Simulated>;

// The program's own handler: leaves the access by a jump, or ends a child.
sigjmp_buf leave;                   // NOLINT: of a handler
volatile sig_atomic_t handled = 0;  // how often it ran
volatile sig_atomic_t ends_child = 0;
void on_segv(int /*signal*/, siginfo_t* /*info*/, void* /*context*/) {
  handled = handled + 1;
  if (ends_child != 0) ::_exit(7);
  ::siglongjmp(leave, 1);
}

/// The program's own handler of SIGSEGV, until this is destroyed.
class OwnHandler {
 public:
  explicit OwnHandler(int flags = SA_SIGINFO | SA_NODEFER) {
    struct sigaction own {};
    own.sa_sigaction = &on_segv;
    own.sa_flags = flags;
    sigemptyset(&own.sa_mask);
    REQUIRE(::sigaction(SIGSEGV, &own, &before_) == 0);
    handled = 0;
  }
  OwnHandler(const OwnHandler&) = delete;
  OwnHandler& operator=(const OwnHandler&) = delete;
  ~OwnHandler() { ::sigaction(SIGSEGV, &before_, nullptr); }

 private:
  struct sigaction before_ {};
};

// Returns false if the program's own handler was called for the access.
[[gnu::noinline]] bool readable(const volatile int* at) {
  if (::sigsetjmp(leave, 1) != 0) return false;
  (void)*at;
  return true;
}

/// What `call` writes to the standard error stream.
std::string said(const std::function<void()>& call) {
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  const int before = ::dup(STDERR_FILENO);
  REQUIRE(::dup2(ends[1], STDERR_FILENO) >= 0);
  call();
  ::dup2(before, STDERR_FILENO);
  ::close(before);
  ::close(ends[1]);
  std::string text(4096, '\0');
  const ssize_t got = ::read(ends[0], text.data(), text.size());
  ::close(ends[0]);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

/// Runs `child` in a child. Returns its exit status, or -1 if a signal ended it.
int exit_of_child(const std::function<int()>& child) {
  const pid_t process = ::fork();
  REQUIRE(process >= 0);
  if (process == 0) {
    ::alarm(60);
    ends_child = 1;
    ::_exit(child());
  }
  int status = 0;
  REQUIRE(::waitpid(process, &status, 0) == process);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

struct Pages {
  Pages() : begin(::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    REQUIRE(begin != MAP_FAILED);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() { ::munmap(begin, 4096); }
  void* begin;
};

}  // namespace

TEST_CASE("faults elsewhere go to the program's own handler, and touches of views do not") {
  const OwnHandler own;
  HostViewDesk desk;
  auto t = desk.manager.tensor<int>({view_length}, "t");
  set(desk.manager, t, 3);
  const IntView view = t.host_view(small_blocks);
  REQUIRE_MESSAGE(view.lazy(), view.why_eager());
  const Pages pages;
  for (int i = 0; i < 3; ++i) {
    CHECK(!readable(static_cast<int*>(pages.begin)));
    CHECK(readable(&view[static_cast<std::size_t>(i) * block_length]));
    CHECK(view[static_cast<std::size_t>(i) * block_length] == 3);
  }
  CHECK(!readable(nullptr));
  CHECK(handled == 4);
  CHECK(view.traffic().faults == 3);
}

namespace {

struct sigaction below {};  // what passing_on() passes to
volatile sig_atomic_t passed = 0;
void passing_on(int signal, siginfo_t* info, void* context) {
  passed = passed + 1;
  below.sa_sigaction(signal, info, context);
}

}  // namespace

TEST_CASE("a handler that was installed over the library's and passes faults on gets each once") {
  const OwnHandler own;
  HostViewDesk desk;
  auto t = desk.manager.tensor<int>({view_length}, "t");
  set(desk.manager, t, 3);
  const IntView view = t.host_view(small_blocks);
  struct sigaction over {};
  over.sa_sigaction = &passing_on;
  over.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigemptyset(&over.sa_mask);
  REQUIRE(::sigaction(SIGSEGV, &over, &below) == 0);
  CHECK(view[0] == 3);
  CHECK(passed == 1);
  const Pages pages;
  CHECK(!readable(static_cast<int*>(pages.begin)));
  CHECK(handled == 1);
  // A view that is opened now puts the library first again: the two do not pass the fault to each other for ever.
  auto u = desk.manager.tensor<int>({view_length}, "u");
  set(desk.manager, u, 4);
  const IntView second = u.host_view(small_blocks);
  passed = 0;
  CHECK(second[0] == 4);
  CHECK(view[block_length] == 3);
  CHECK(passed == 0);
  for (int i = 0; i < 3; ++i) CHECK(!readable(static_cast<int*>(pages.begin)));
  CHECK(handled == 4);
  CHECK(passed == 3);
}

TEST_CASE("a thread with a small alternate stack touches a view") {
  const OwnHandler own;
  HostViewDesk desk;
  auto t = desk.manager.tensor<int>({view_length}, "t");
  set(desk.manager, t, 3);
  const IntView view = t.host_view(small_blocks);
  int seen = 0;
  std::thread([&] {
    std::vector<std::byte> memory(static_cast<std::size_t>(MINSIGSTKSZ) + 4096);
    stack_t stack{};
    stack.ss_sp = memory.data();
    stack.ss_size = memory.size();
    if (::sigaltstack(&stack, nullptr) != 0) return;
    seen = view[0];
    stack.ss_flags = SS_DISABLE;
    ::sigaltstack(&stack, nullptr);
  }).join();
  CHECK(seen == 3);
}

TEST_CASE("errno survives a touch") {
  HostViewDesk desk;
  auto t = desk.manager.tensor<int>({view_length}, "t");
  set(desk.manager, t, 3);
  const IntView view = t.host_view(small_blocks);
  errno = 77;
  const int value = view[0];
  CHECK(errno == 77);
  CHECK(value == 3);
}

TEST_CASE("a view that outlives its tensor keeps what it has, and says so where it has nothing") {
  const OwnHandler own;
  HostViewDesk desk;
  auto t = std::make_optional(desk.manager.tensor<int>({view_length}, "gone"));
  set(desk.manager, *t, 3);
  std::optional<IntView> view = t->host_view(small_blocks);
  CHECK((*view)[0] == 3);
  t.reset();
  auto reuses_its_record = desk.manager.tensor<int>({view_length}, "new");
  set(desk.manager, reuses_its_record, 9);
  CHECK((*view)[1] == 3);
  (*view)[2] = 4;
  CHECK((*view)[2] == 4);
  const std::string text = said([&] { CHECK(!readable(&(*view)[block_length])); });
  CHECK(says(text, {"swapmm: host view of tensor \"gone\": ", "no longer exists"}));
  CHECK(handled == 1);
  CHECK_THROWS_AS(view->prepare_read(), UsageError);
  CHECK_THROWS_AS(reuses_its_record.upload(view->span()), UsageError);
  view.reset();
  CHECK(holds(reuses_its_record, 9));
}

TEST_CASE("a view that outlives its manager does, too") {
  const OwnHandler own;
  std::optional<IntView> view;
  {
    HostViewDesk desk;
    auto t = desk.manager.tensor<int>({view_length}, "t");
    set(desk.manager, t, 3);
    view = t.host_view(small_blocks);
    CHECK((*view)[0] == 3);
  }
  CHECK((*view)[1] == 3);
  (*view)[1] = 4;
  const std::string text = said([&] { CHECK(!readable(&(*view)[block_length])); });
  CHECK(says(text, {"swapmm: host view of tensor \"t\": the manager of this tensor no longer exists"}));
  CHECK(handled == 1);
}

TEST_CASE("a touch of a value that was lost says so") {
  const OwnHandler own;
  HostViewDesk desk;
  auto t = desk.manager.tensor<int>({view_length}, "t");
  set(desk.manager, t, 3);
  const IntView view = t.host_view(small_blocks);
  CHECK_THROWS_AS(desk.manager.run("throws", updates(t), [](auto&) { throw 5; }), int);
  const std::string text = said([&] { CHECK(!readable(&view[0])); });
  CHECK(says(text, {"swapmm: host view of tensor \"t\": ", "an earlier failure left undefined"}));
  set(desk.manager, t, 4);
  CHECK(view[0] == 4);
}

TEST_CASE("system calls fail with EFAULT on blocks that are not there, until they were prepared") {
  HostViewDesk desk;
  auto t = desk.manager.tensor<int>({view_length}, "t");
  set(desk.manager, t, 3);
  const IntView view = t.host_view(small_blocks);
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  const std::array<int, 2> numbers{10, 11};
  REQUIRE(::write(ends[1], numbers.data(), sizeof(numbers)) == sizeof(numbers));
  CHECK(::read(ends[0], view.data(), sizeof(numbers)) == -1);
  CHECK(errno == EFAULT);
  view.prepare_read(0, 2);
  CHECK(::read(ends[0], view.data(), sizeof(numbers)) == -1);
  CHECK(errno == EFAULT);
  view.prepare_write(0, 2);
  CHECK(::read(ends[0], view.data(), sizeof(numbers)) == sizeof(numbers));
  increase(desk.manager, t, 1);
  CHECK(view[0] == 11);
  CHECK(view[1] == 12);
  CHECK(view[2] == 4);
  CHECK(::write(ends[1], &view[block_length], sizeof(int)) == -1);
  CHECK(errno == EFAULT);
  view.prepare_read(block_length, 1);
  CHECK(::write(ends[1], &view[block_length], sizeof(int)) == sizeof(int));
  int number = 0;
  CHECK(::read(ends[0], &number, sizeof(number)) == sizeof(number));
  CHECK(number == 4);
  CHECK(view.traffic().faults == 1);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_CASE("a child of fork() has the blocks that are there, and is told about the others") {
  const OwnHandler own;
  HostViewDesk desk;
  auto t = desk.manager.tensor<int>({view_length}, "t");
  set(desk.manager, t, 3);
  const auto view = std::make_unique<IntView>(t.host_view(small_blocks));
  CHECK((*view)[0] == 3);
  (*view)[block_length] = 4;
  CHECK(exit_of_child([&] {
          (*view)[1] = 100;                 // clean
          (*view)[block_length + 1] = 100;  // modified
          return (*view)[0] == 3 && (*view)[1] == 100 && (*view)[block_length] == 4 ? 5 : 6;
        }) == 5);
  const std::string text = said([&] {
    CHECK(exit_of_child([&] { return (*view)[2 * block_length] == 3 ? 5 : 6; }) == 7);  // by the program's own handler
  });
  CHECK(says(text, {"swapmm: host view of tensor \"t\": touched in a child of fork()"}));
  CHECK(exit_of_child([&] {
          const_cast<std::unique_ptr<IntView>&>(view).reset();  // ends without the device
          return 5;
        }) == 5);
  CHECK((*view)[1] == 3);
  CHECK((*view)[block_length + 1] == 3);
  CHECK((*view)[2 * block_length] == 3);
  increase(desk.manager, t, 1);
  CHECK((*view)[block_length] == 5);
}

// ThreadSanitizer lets no child make threads.
#if !defined(SWAPMM_TEST_UNDER_TSAN)

TEST_CASE("a touch in an operation's callable ends with a message, and does not wait for itself") {
  const OwnHandler own;
  const std::string text = said([&] {
    CHECK(exit_of_child([&] {
            HostViewDesk desk;
            auto t = desk.manager.tensor<int>({view_length}, "t");
            auto u = desk.manager.tensor<int>({view_length}, "u");
            set(desk.manager, t, 3);
            const IntView view = t.host_view(small_blocks);
            desk.manager.run("touches", writes(u), [&](auto&) { (void)readable(&view[0]); });
            return 5;
          }) == 7);
  });
  CHECK(says(text, {"swapmm: host view of tensor \"t\": touched by a thread inside a manager", "prepare_read()"}));
}

TEST_CASE("without mprotect a view is eager, and says why") {
  const OwnHandler own;
  const int status = exit_of_child([] {
    // mprotect() fails with EPERM from here on.
    std::array<sock_filter, 4> filter{{
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    }};
    const sock_fprog program{filter.size(), filter.data()};
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return 3;
    if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) return 3;
    HostViewDesk desk;
    auto t = desk.manager.tensor<int>({view_length}, "t");
    set(desk.manager, t, 3);
    const IntView view = t.host_view(small_blocks);
    if (view.lazy() || view.why_eager().find("mprotect") == std::string::npos) return 4;
    view[5] = 7;
    increase(desk.manager, t, 1);
    std::vector<int> expected(view_length, 4);
    expected[5] = 8;
    if (std::vector<int>(view.begin(), view.end()) != expected) return 6;
    return t.download() == expected ? 5 : 8;
  });
  if (status == 3) {
    MESSAGE("skipped: this system does not let a process filter its system calls");
    return;
  }
  CHECK(status == 5);
}

#endif

#endif
