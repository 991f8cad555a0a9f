// SPDX-License-Identifier: Apache-2.0
#include "support/program/cpp_operation.hpp"

#include <sstream>
#include <string_view>

#include "support/program/kernel.hpp"

namespace swapmm::test {
namespace {

class OperationPrinter {
 public:
  OperationPrinter(const Action& action, std::size_t number, const ModelTensors& tensors)
      : action_(action), number_(number), tensors_(tensors), name_('"' + operation_name(action.name) + '"') {}

  std::string print(bool full) {
    const bool by_bundle =
        action_.form.by_bundle || action_.form.replayable || action_.part_count == 0 || action_.part_count > 3;
    const std::string callable = full ? print_callable() : "[](auto&) {}";
    if (!by_bundle) {
      out_ << "  manager.run(" << name_;
      for (std::size_t i = 0; i < action_.part_count; ++i) out_ << ", " << access(i);
      if (action_.bytes != 0) out_ << ", scratch(std::size_t{" << action_.bytes << "})";
      out_ << ", " << callable << ");\n";
      return out_.str();
    }
    out_ << "  {\n  Bundle<Device> bundle;\n";
    if (action_.part_count != 0) {
      out_ << "  bundle";
      for (std::size_t i = 0; i < action_.part_count; ++i) out_ << "." << access(i);
      out_ << ";\n";
    }
    if (action_.bytes != 0) out_ << "  bundle.scratch(Bytes{" << action_.bytes << "});\n";
    if (action_.form.replayable) out_ << "  bundle.replayable();\n";
    out_ << "  manager.run(" << name_ << ", bundle, " << callable << ");\n  }\n";
    return out_.str();
  }

 private:
  [[nodiscard]] const ModelTensor& tensor(std::size_t i) const { return tensors_[action_.parts[i].slot]; }
  [[nodiscard]] SliceRange range(std::size_t i) const { return tensor(i).range(action_.parts[i]); }
  [[nodiscard]] std::string view(std::size_t i) const {
    return text_of_view(tensor(i).layout.path(range(i), action_.parts[i].view),
                        "t" + std::to_string(action_.parts[i].slot));
  }
  [[nodiscard]] std::string access(std::size_t i) const {
    constexpr std::array<std::string_view, 3> names{"reads(", "writes(", "updates("};
    return std::string(names[static_cast<std::size_t>(action_.parts[i].access)]) + view(i) + ")";
  }
  static std::string place(std::size_t i) { return "p" + std::to_string(i); }

  std::string print_callable() const {
    const LaunchForm& form = action_.form;
    std::ostringstream out;
    out << (form.gives_event ? "[&](auto& op, const simulated::WaitList& waits) {\n" : "[&](auto& op) {\n");
    for (std::size_t i = 0; i < action_.part_count; ++i)
      out << "    const auto " << place(i) << " = op[" << view(i) << "];\n";
    if (action_.bytes != 0) out << "    const auto work = op.scratch();\n";
    const std::string launch = "op.queue().launch(" + name_ + ", nanoseconds{" +
                               std::to_string(kernel_duration(operation_name(action_.name)).count()) + "}, {" +
                               touches() + "}, ";
    const std::string waits = form.gives_event ? "waits, " : "";
    const std::string returned = form.gives_event ? "return " : "";
    if (form.two_launches) {
      out << "    " << (form.gives_event ? "(void)" : "") << launch << waits << reading() << ");\n    " << returned
          << launch << (form.gives_event ? "simulated::WaitList(), " : "") << writing(true) << ");\n  }";
    } else if (form.two_phases || form.gives_event) {
      out << "    " << returned << launch << waits << reading() << ", " << writing(true) << ");\n  }";
    } else {
      out << "    " << launch << "[=] {\n" << read_body() << write_body(false) << "    });\n  }";
    }
    return out.str();
  }

  [[nodiscard]] std::string touches() const {
    std::string list;
    for (std::size_t i = 0; i < action_.part_count; ++i) {
      list += list.empty() ? "" : ", ";
      list += action_.parts[i].access == Access::read ? "Touch::read(" : "Touch::write(";
      list += place(i) + ")";
    }
    if (action_.bytes != 0) list += list.empty() ? "Touch::write(work)" : ", Touch::write(work)";
    return list;
  }

  [[nodiscard]] std::string reading() const { return "[=] {\n" + read_body() + "    }"; }
  [[nodiscard]] std::string writing(bool again) const { return "[=] {\n" + write_body(again) + "    }"; }

  [[nodiscard]] std::string expectation(std::size_t i) const {
    return "      expect(" + name_ + ", " + place(i) + ", " + cpp_pieces(tensor(i), range(i)) + ");\n";
  }
  [[nodiscard]] std::string work_pieces() const {
    return "{{" + std::to_string(action_.bytes) + ", " + std::to_string(scratch_id) + "U, " + std::to_string(number_) +
           "}}";
  }
  [[nodiscard]] std::string read_body() const {
    std::string body;
    for (std::size_t i = 0; i < action_.part_count; ++i) {
      if (action_.parts[i].access != Access::write) body += expectation(i);
    }
    if (action_.bytes != 0) body += "      fill(work, " + work_pieces() + ");\n";
    return body;
  }
  /// `again`: what was read at another step must still be the same.
  [[nodiscard]] std::string write_body(bool again) const {
    std::string body;
    for (std::size_t i = 0; i < action_.part_count && again; ++i) {
      if (action_.parts[i].access == Access::read) body += expectation(i);
    }
    if (action_.bytes != 0 && again) body += "      expect(" + name_ + ", work, " + work_pieces() + ");\n";
    for (std::size_t i = 0; i < action_.part_count; ++i) {
      if (action_.parts[i].access == Access::read) continue;
      ModelTensor next = tensor(i);
      next.write(range(i));
      body += "      fill(" + place(i) + ", " + cpp_pieces(next, range(i)) + ");\n";
    }
    return body;
  }

  const Action& action_;
  std::size_t number_;
  const ModelTensors& tensors_;
  std::string name_;
  std::ostringstream out_;
};

}  // namespace

std::string cpp_pieces(const ModelTensor& tensor, const SliceRange& range) {
  std::string list = "{";
  for (std::size_t slice = range.first; slice < range.end; ++slice) {
    list += slice == range.first ? "{" : ", {";
    list += std::to_string(tensor.layout.begin(slice + 1) - tensor.layout.begin(slice)) + ", " +
            std::to_string(tensor.layout.key(slice)) + ", " + std::to_string(tensor.versions[slice]) + "}";
  }
  return list + "}";
}

std::string cpp_of_operation(const Action& action, std::size_t number, const ModelTensors& tensors, bool full) {
  return OperationPrinter(action, number, tensors).print(full);
}

}  // namespace swapmm::test
