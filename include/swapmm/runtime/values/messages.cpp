// SPDX-License-Identifier: Apache-2.0
#include <swapmm/runtime/values/messages.hpp>

#include <algorithm>

namespace swapmm::runtime {
namespace {

constexpr std::size_t most_named = 8;

std::string bytes_text(Bytes bytes) { return std::to_string(bytes.value) + " bytes"; }

}  // namespace

std::string Who::text() const { return std::string(what) + (name.empty() ? std::string() : in_quotes(name)); }

std::string in_quotes(std::string_view name) { return '"' + std::string(name) + '"'; }

std::string largest_tensors(std::vector<NamedSize> tensors) {
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const NamedSize& a, const NamedSize& b) { return a.bytes > b.bytes; });
  std::string text;
  for (std::size_t i = 0; i < std::min(tensors.size(), most_named); ++i) {
    text += (i == 0 ? "" : ", ") + in_quotes(tensors[i].name) + " (" + bytes_text(tensors[i].bytes) + ")";
  }
  if (tensors.size() > most_named) text += " and " + std::to_string(tensors.size() - most_named) + " more";
  return text;
}

std::string bundle_too_large(std::string_view operation, Bytes need, Bytes budget, std::vector<NamedSize> tensors) {
  return "operation " + in_quotes(operation) + " needs " + bytes_text(need) + " on the device at once, the budget is " +
         bytes_text(budget) + "; its largest tensors: " + largest_tensors(std::move(tensors)) +
         ". Raise Options::device_budget or split the operation";
}

std::string bundle_does_not_pack(std::string_view operation, Bytes need, Bytes budget, Bytes arena,
                                 std::vector<NamedSize> tensors) {
  return "operation " + in_quotes(operation) + " needs " + bytes_text(need) + " of the budget of " +
         bytes_text(budget) + ", but its tensors do not pack into pieces of " + bytes_text(arena) +
         ", the largest single allocation of the device: " + largest_tensors(std::move(tensors));
}

std::string undefined_value(const Who& who, std::string_view tensor) {
  return who.text() + " needs the value of tensor " + in_quotes(tensor) +
         ", which nobody has written (a transient one: not in this iteration): upload it, or write it whole in an "
         "operation first";
}

std::string misaligned_view(std::string_view tensor, Bytes offset, Bytes alignment) {
  return "a view of tensor " + in_quotes(tensor) + " begins at its byte " + std::to_string(offset.value) +
         ", and on this device an operation can only address multiples of " + std::to_string(alignment.value) +
         ": use the whole tensor in the operation, and tell the kernel where to begin";
}

namespace {

std::string no_longer_exists(const std::string* tensor) {
  return "no longer exists" + (tensor == nullptr ? std::string() : " (it was " + in_quotes(*tensor) + ")");
}

}  // namespace

std::string view_of_no_tensor(std::string_view what, const std::string* tensor) {
  return std::string(what) + ": view of a tensor that " + no_longer_exists(tensor);
}

std::string no_tensor_in_bundle(std::string_view operation, std::size_t position, const std::string* tensor) {
  return "operation " + in_quotes(operation) + ": tensor " + std::to_string(position) + " of its bundle " +
         no_longer_exists(tensor);
}

std::string dropped_value(const Who& who, std::string_view tensor) {
  return who.text() + " needs the value of tensor " + in_quotes(tensor) +
         ", which was dropped: in the observed iterations nothing read it at this place. Make the tensor with "
         "swapmm::kept if its value must outlive what was observed";
}

std::string lost_value(const Who& who, std::string_view tensor) {
  return who.text() + " needs the value of tensor " + in_quotes(tensor) +
         ", which an earlier failure left undefined: write or upload it again";
}

std::string name_list(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), most_named); ++i)
    text += (i == 0 ? "" : ", ") + in_quotes(names[i]);
  if (names.size() > most_named) text += " and " + std::to_string(names.size() - most_named) + " more";
  return text;
}

}  // namespace swapmm::runtime
