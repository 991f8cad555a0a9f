// SPDX-License-Identifier: Apache-2.0
#include "support/program/view.hpp"

namespace swapmm::test {
namespace {

std::string call(std::string_view name, std::size_t first, std::size_t second) {
  return std::string(name) + "(" + std::to_string(first) + ", " + std::to_string(second) + ")";
}
std::string reshape(std::size_t rows, std::size_t columns) {
  return "reshape({" + std::to_string(rows) + ", " + std::to_string(columns) + "})";
}

}  // namespace

std::string text_of_view(const ViewPath& path, std::string_view handle) {
  const std::string tensor = std::string(handle) + "->";
  switch (path.form) {
    case ViewForm::direct: break;
    case ViewForm::slice_of_slice:
      return tensor + call("slice", path.first, path.all - path.first) + "." + call("slice", 0, path.size);
    case ViewForm::rows: {
      const std::size_t width = path.width();
      return tensor + reshape(path.all / width, width) + "." + call("slice", path.first / width, path.size / width);
    }
    case ViewForm::reshaped:
      return tensor + call("slice", path.first, path.size) + "." + reshape(path.rows(), path.size / path.rows());
  }
  if (path.size == path.all) return "*" + std::string(handle);
  return tensor + call("slice", path.first, path.size);
}

}  // namespace swapmm::test
