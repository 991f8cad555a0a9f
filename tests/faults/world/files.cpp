// SPDX-License-Identifier: Apache-2.0
// What the program writes to files and reads from them.

#include <istream>
#include <ostream>
#include <sstream>
#include <string>

#include <swapmm/formats/trace_json.hpp>
#include <swapmm/report.hpp>

#include "faults/world/world.hpp"

namespace swapmm::test {

FileGate World::file_gate() {
  return [this](FileCall call) { return script_.file_call(call); };
}

// A file that could not be written is written anew, to another one.
void World::save_plan(std::string_view iteration) {
  concerned_.clear();
  Managed* const managed = current();
  if (managed == nullptr || managed->lost || managed->manager->scheduler().plan(iteration) == nullptr) return;
  std::optional<FaultyOutput> file;
  const bool saved = call("saving a plan", [&] {
    {
      const UncountedAllocations uncounted;
      file.emplace(file_gate());
    }
    std::ostream out(&*file);
    managed->manager->scheduler().save_plan(iteration, out);
  });
  if (saved) saved_plan_ = file->text();
}

void World::load_plan(std::string_view iteration) {
  concerned_.clear();
  Managed* const managed = current();
  if (managed == nullptr || managed->lost || saved_plan_.empty()) return;
  call("loading a plan", [&] {
    std::optional<FaultyInput> file;
    {
      const UncountedAllocations uncounted;
      file.emplace(saved_plan_, file_gate());
    }
    std::istream in(&*file);
    managed->manager->scheduler().load_plan(iteration, in);
  });
}

void World::write_texts(std::string_view iteration) {
  concerned_.clear();
  Managed* const managed = current();
  if (managed == nullptr || managed->lost) return;
  std::optional<Trace> trace;
  if (!call("look", [&] { trace = managed->manager->scheduler().trace(iteration); })) return;
  if (trace) write_trace_of(*trace);
  const Report report = managed->manager->report();
  std::ostringstream expected;
  expected << report;
  write_file(
      "a report", [&](std::ostream& out) { out << report; }, expected.str());
}

// What a stream did not take it tells its writer, and so does memory that there is not.
void World::write_file(const std::string& what, const std::function<void(std::ostream&)>& write,
                       const std::string& expected) {
  std::optional<FaultyOutput> file;
  const bool done = call("writing " + what, [&] {
    {
      const UncountedAllocations uncounted;
      file.emplace(file_gate());
    }
    std::ostream out(&*file);
    write(out);
    out.flush();
    if (!out) throw Error("writing " + what + ": the stream failed");
  });
  if (done && file->text() != expected) problem("a file that was written without an error holds another text");
}

void World::write_trace_of(const Trace& trace) {
  std::ostringstream expected;
  write_trace(expected, trace);
  write_file(
      "a trace", [&](std::ostream& out) { write_trace(out, trace); }, expected.str());
  call("reading a trace", [&] {
    std::optional<FaultyInput> file;
    {
      const UncountedAllocations uncounted;
      file.emplace(expected.str(), file_gate());
    }
    std::istream in(&*file);
    const Result<Trace> read = read_trace(in);
    if (!read.has_value()) throw Error("reading a trace: " + read.problem().message);
    const UncountedAllocations uncounted;
    std::ostringstream again;
    write_trace(again, *read);
    if (again.str() != expected.str()) problem("a trace that was read without an error is another one");
  });
}

}  // namespace swapmm::test
