// SPDX-License-Identifier: Apache-2.0
#include <swapmm/formats/machine_json.hpp>

#include <ostream>

#include <swapmm/formats/json/integer_fields.hpp>
#include <swapmm/formats/json/machine_fields.hpp>
#include <swapmm/formats/json/writer.hpp>

namespace swapmm {
namespace json {
namespace {

Object link_fields(Link& link) {
  Object object;
  object.fields = {
      required("bytes_per_second", integer_to(link.bytes_per_second)),
      required("latency_ns", integer_to(link.latency)),
  };
  return object;
}

void append_link(std::string& out, std::string_view name, const Link& link) {
  out += ", \"";
  out += name;
  out += "\": {\"bytes_per_second\": ";
  append_number(out, link.bytes_per_second);
  out += ", \"latency_ns\": ";
  append_number(out, link.latency.count());
  out += '}';
}

}  // namespace

Object machine_fields(Machine& machine, Field::Presence header) {
  Integer max_allocation = integer_to(machine.max_allocation);
  max_allocation.or_null = true;
  const Word duplex{{"full", "half"},
                    [&machine](std::size_t i) { machine.duplex = i == 0 ? Duplex::full : Duplex::half; }};
  Object object;
  object.fields = {
      format("swapmm-machine", header),
      version(header),
      required("name", Text{[&machine](std::string_view text) { machine.name = text; }}),
      required("device_budget_bytes", integer_to(machine.device_budget)),
      required("alignment_bytes", integer_to(machine.alignment)),
      optional("max_allocation_bytes", std::move(max_allocation)),
      required("h2d", link_fields(machine.h2d)),
      required("d2h", link_fields(machine.d2h)),
      required("duplex", duplex),
  };
  object.end = [&machine] { return check_machine(machine); };
  return object;
}

void append_machine(std::string& out, const Machine& machine) {
  out += "{\"format\": \"swapmm-machine\", \"version\": 1, \"name\": ";
  append_text(out, machine.name);
  out += ", \"device_budget_bytes\": ";
  append_number(out, machine.device_budget.value);
  out += ", \"alignment_bytes\": ";
  append_number(out, machine.alignment.value);
  out += ", \"max_allocation_bytes\": ";
  out += machine.max_allocation ? std::to_string(machine.max_allocation->value) : "null";
  append_link(out, "h2d", machine.h2d);
  append_link(out, "d2h", machine.d2h);
  out += machine.duplex == Duplex::full ? ", \"duplex\": \"full\"}" : ", \"duplex\": \"half\"}";
}

}  // namespace json

namespace {

template <class Source>
Result<Machine> read_machine_from(Source&& source) {
  Machine machine;
  const json::Object document = json::machine_fields(machine, json::Field::Presence::required);
  if (const Check check = json::read(source, document); !check) return check.problem();
  return machine;
}

}  // namespace

Result<Machine> read_machine(std::istream& in) { return read_machine_from(in); }
Result<Machine> read_machine(std::string_view text) { return read_machine_from(text); }

void write_machine(std::ostream& out, const Machine& machine) {
  std::string text;
  json::append_machine(text, machine);
  out << text << '\n';
}

}  // namespace swapmm
