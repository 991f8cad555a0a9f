// SPDX-License-Identifier: Apache-2.0
#include <swapmm/formats/v2/machine_json.hpp>

#include <ostream>
#include <string>
#include <utility>

#include <swapmm/formats/json/integer_fields.hpp>
#include <swapmm/formats/json/writer.hpp>
#include <swapmm/formats/machine_json.hpp>
#include <swapmm/formats/v2/machine_fields.hpp>
#include <swapmm/ir/limits.hpp>

namespace swapmm::v2 {
namespace formats {
namespace {

// Reading.

json::Object memory_fields(Machine& machine) {
  const auto memory = [&machine]() -> Memory& { return machine.memories.back(); };
  json::Integer bytes = json::integer_to(memory, &Memory::bytes);
  json::Integer max_allocation = json::integer_to(memory, &Memory::max_allocation);
  bytes.or_null = max_allocation.or_null = true;
  json::Object object;
  object.begin = [&machine] { machine.memories.emplace_back(); };
  object.fields = {
      json::required("name", json::Name{[memory](std::string_view name) { memory().name = name; }}),
      json::required("bytes", std::move(bytes)),
      json::optional("alignment_bytes", json::integer_to(memory, &Memory::alignment)),
      json::optional("max_allocation_bytes", std::move(max_allocation)),
  };
  return object;
}

json::Object engine_fields(MachineTarget& target) {
  const auto engine = [&target]() -> Engine& { return target.machine.engines.back(); };
  json::Name memory{
      [&target, engine](std::string_view name) { engine().memory = id_at<MemoryId>(target.memories.number_of(name)); }};
  memory.or_null = true;
  json::Object object;
  object.begin = [&target] { target.machine.engines.emplace_back(); };
  object.fields = {
      json::required("name", json::Name{[engine](std::string_view name) { engine().name = name; }}),
      json::optional("memory", std::move(memory)),
  };
  return object;
}

json::Object capacity_fields(Machine& machine) {
  const auto capacity = [&machine]() -> Capacity& { return machine.capacities.back(); };
  json::Object object;
  object.begin = [&machine] { machine.capacities.emplace_back(); };
  object.fields = {
      json::required("name", json::Name{[capacity](std::string_view name) { capacity().name = name; }}),
      json::required("bytes_per_second", json::integer_to(capacity, &Capacity::bytes_per_second)),
  };
  return object;
}

json::List shared_capacities(MachineTarget& target) {
  json::Name name{[&target](std::string_view text) {
    target.shared.push_back(id_at<CapacityId>(target.capacities.number_of(text)));
  }};
  json::List list = json::list_of(std::move(name), limits::sharings);
  list.begin = [&target](auto) { target.shared.clear(); };
  list.end = [&target] { target.machine.links.back().capacities.assign(target.shared.begin(), target.shared.end()); };
  return list;
}

json::Object link_fields(MachineTarget& target) {
  const auto link = [&target]() -> Link& { return target.machine.links.back(); };
  const auto memory = [&target, link](MemoryId Link::*member) {
    return json::Name{[&target, link, member](std::string_view name) {
      link().*member = id_at<MemoryId>(target.memories.number_of(name));
    }};
  };
  json::Name engine{
      [&target, link](std::string_view name) { link().engine = id_at<EngineId>(target.engines.number_of(name)); }};
  engine.or_null = true;
  json::Object object;
  object.begin = [&target] { target.machine.links.emplace_back(); };
  object.fields = {
      json::required("name", json::Name{[link](std::string_view name) { link().name = name; }}),
      json::required("from", memory(&Link::from)),
      json::required("to", memory(&Link::to)),
      json::required("bytes_per_second", json::integer_to(link, &Link::bytes_per_second)),
      json::required("latency_ns", json::integer_to(link, &Link::latency)),
      json::optional("engine", std::move(engine)),
      json::optional("capacities", shared_capacities(target)),
  };
  return object;
}

/// Makes numbers of names the ids of what has these names.
class MachineNames {
 public:
  explicit MachineNames(MachineTarget& target)
      : machine_(target.machine),
        memories_(target.memories, machine_.memories, "memory"),
        engines_(target.engines, machine_.engines, "engine"),
        capacities_(target.capacities, machine_.capacities, "capacity") {}

  Check resolve() {
    for (std::size_t i = 0; i < machine_.engines.size(); ++i) {
      auto& memory = machine_.engines[i].memory;
      if (!memory) continue;
      if (auto unknown = memories_.resolve(*memory)) return problem("engines", i, ".memory", *unknown);
    }
    for (std::size_t i = 0; i < machine_.links.size(); ++i) {
      if (Check check = resolve_link(i); !check) return check;
    }
    if (auto unknown = memories_.resolve(machine_.host)) return Problem{"host: " + *unknown};
    return Done{};
  }

 private:
  Check resolve_link(std::size_t i) {
    Link& link = machine_.links[i];
    if (auto unknown = memories_.resolve(link.from)) return problem("links", i, ".from", *unknown);
    if (auto unknown = memories_.resolve(link.to)) return problem("links", i, ".to", *unknown);
    if (link.engine) {
      if (auto unknown = engines_.resolve(*link.engine)) return problem("links", i, ".engine", *unknown);
    }
    for (std::size_t k = 0; k < link.capacities.size(); ++k) {
      if (auto unknown = capacities_.resolve(link.capacities[k])) {
        return problem("links", i, ".capacities[" + std::to_string(k) + ']', *unknown);
      }
    }
    return Done{};
  }

  static Problem problem(const std::string& list, std::size_t i, const std::string& field, const std::string& what) {
    return {list + '[' + std::to_string(i) + ']' + field + ": " + what};
  }

  Machine& machine_;
  json::NameResolver memories_;
  json::NameResolver engines_;
  json::NameResolver capacities_;
};

Check end_machine(MachineTarget& target) {
  if (Check check = MachineNames(target).resolve(); !check) return check;
  return check_machine(target.machine);
}

json::Object machine_fields(MachineTarget& target, json::Field::Presence header, std::int64_t oldest_version) {
  Machine& machine = target.machine;
  json::Object object;
  object.fields = {
      json::format("swapmm-machine", header),
      json::version(oldest_version, 2, header),
      json::required("name", json::Text{[&machine](std::string_view text) { machine.name = text; }}),
      json::required("memories", json::list_of(memory_fields(machine), limits::memories)),
      json::required("engines", json::list_of(engine_fields(target), limits::engines)),
      json::optional("capacities", json::list_of(capacity_fields(machine), limits::links)),
      json::required("links", json::list_of(link_fields(target), limits::links)),
      json::required("host", json::Name{[&target](std::string_view name) {
                       target.machine.host = id_at<MemoryId>(target.memories.number_of(name));
                     }}),
  };
  object.end = [&target] { return end_machine(target); };
  return object;
}

// Writing.

void append_memory(std::string& line, const Memory& memory) {
  line += '{';
  json::append_field(line, "name", memory.name);
  if (memory.bytes) {
    json::append_field(line, "bytes", memory.bytes->value);
  } else {
    line += ", \"bytes\": null";
  }
  if (memory.alignment != Bytes{1}) json::append_field(line, "alignment_bytes", memory.alignment.value);
  if (memory.max_allocation) json::append_field(line, "max_allocation_bytes", memory.max_allocation->value);
  line += '}';
}

void append_engine(std::string& line, const Engine& engine, const Machine& machine) {
  line += '{';
  json::append_field(line, "name", engine.name);
  if (engine.memory) json::append_field(line, "memory", machine.memories[index(*engine.memory)].name);
  line += '}';
}

void append_capacity(std::string& line, const Capacity& capacity) {
  line += '{';
  json::append_field(line, "name", capacity.name);
  json::append_field(line, "bytes_per_second", capacity.bytes_per_second);
  line += '}';
}

void append_link(std::string& line, const Link& link, const Machine& machine) {
  line += '{';
  json::append_field(line, "name", link.name);
  json::append_field(line, "from", machine.memories[index(link.from)].name);
  json::append_field(line, "to", machine.memories[index(link.to)].name);
  json::append_field(line, "bytes_per_second", link.bytes_per_second);
  json::append_field(line, "latency_ns", link.latency.count());
  if (link.engine) json::append_field(line, "engine", machine.engines[index(*link.engine)].name);
  if (!link.capacities.empty()) {
    line += ", \"capacities\": [";
    for (std::size_t i = 0; i < link.capacities.size(); ++i) {
      if (i > 0) line += ", ";
      json::append_text(line, machine.capacities[index(link.capacities[i])].name);
    }
    line += ']';
  }
  line += '}';
}

}  // namespace

json::Object machine_document(MachineTarget& target) {
  return machine_fields(target, json::Field::Presence::required, 1);
}

json::Object machine_in_plan(MachineTarget& target) {
  return machine_fields(target, json::Field::Presence::optional, 2);
}

void write_machine_object(std::ostream& out, const Machine& machine) {
  std::string text = "{\"format\": \"swapmm-machine\", \"version\": 2, \"name\": ";
  json::append_text(text, machine.name);
  out << text;
  json::write_list(out, "memories", machine.memories, append_memory);
  json::write_list(out, "engines", machine.engines,
                   [&machine](std::string& line, const Engine& engine) { append_engine(line, engine, machine); });
  if (!machine.capacities.empty()) json::write_list(out, "capacities", machine.capacities, append_capacity);
  json::write_list(out, "links", machine.links,
                   [&machine](std::string& line, const Link& link) { append_link(line, link, machine); });
  text = ",\n \"host\": ";
  json::append_text(text, machine.memories[index(machine.host)].name);
  out << text << '}';
}

}  // namespace formats

namespace {

template <class Source>
Result<Machine> read_machine_from(Source&& source) {
  return json::read_by_version(source, [](auto&& text, std::optional<std::int64_t> version) -> Result<Machine> {
    if (version == 1) {
      const Result<swapmm::Machine> machine = swapmm::read_machine(text);
      if (!machine) return machine.problem();
      return from_version_1(*machine);
    }
    formats::MachineTarget target;
    if (const Check check = json::read(text, formats::machine_document(target)); !check) return check.problem();
    return std::move(target.machine);
  });
}

}  // namespace

Result<Machine> read_machine(std::istream& in) { return read_machine_from(in); }
Result<Machine> read_machine(std::string_view text) { return read_machine_from(text); }

void write_machine(std::ostream& out, const Machine& machine) {
  formats::write_machine_object(out, machine);
  out << '\n';
}

}  // namespace swapmm::v2
