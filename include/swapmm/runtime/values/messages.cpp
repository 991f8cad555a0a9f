// SPDX-License-Identifier: Apache-2.0
#include <swapmm/runtime/values/messages.hpp>

#include <algorithm>
#include <functional>
#include <utility>

namespace swapmm::runtime {
namespace {

constexpr std::size_t most_named = 8;

std::string bytes_text(Bytes bytes) { return std::to_string(bytes.value) + " bytes"; }

std::string list_text(const std::vector<TensorName>& tensors,
                      const std::function<std::string(const TensorName&)>& text_of) {
  std::string text;
  for (std::size_t i = 0; i < std::min(tensors.size(), most_named); ++i)
    text += (i == 0 ? "" : ", ") + text_of(tensors[i]);
  if (tensors.size() > most_named) text += " and " + std::to_string(tensors.size() - most_named) + " more";
  return text;
}

void largest_first(std::vector<TensorName>& tensors) {
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const TensorName& a, const TensorName& b) { return a.bytes > b.bytes; });
}

std::string bundle_text(const BundleTooLarge::Sizes& sizes, std::vector<TensorName> tensors) {
  if (sizes.scratch.value != 0) tensors.push_back({.name = "scratch", .bytes = sizes.scratch});
  largest_first(tensors);
  return "its largest tensors: " + sizes_text(tensors);
}

std::string losses_text(const std::vector<TensorName>& lost) {
  return lost.empty() ? "; no value is lost" : "; undefined from now on: " + names_text(lost);
}

// Returns the details of an error about one tensor that has no value, or no longer exists.
ErrorDetails missing(const Who& who, TensorName tensor) {
  ErrorDetails details;
  details.operation = who.details().operation;
  details.tensors.push_back(std::move(tensor));
  return details;
}

std::string no_longer_exists(const TensorName& tensor) {
  return "no longer exists" + (tensor.name.empty() ? std::string() : " (it was " + in_quotes(tensor.name) + ")");
}

std::string needs_text(const Who& who, const TensorName& tensor) {
  return who.text() + " needs the value of tensor " + in_quotes(tensor.name) + ", which ";
}

std::string work_text(WorkFailed::Work work, const ErrorDetails& details) {
  switch (work) {
    case WorkFailed::Work::operation: return "operation " + in_quotes(details.operation);
    case WorkFailed::Work::swap_in: return "swap-in of tensor " + sizes_text(details.tensors);
    case WorkFailed::Work::swap_out: return "swap-out of tensor " + sizes_text(details.tensors);
    case WorkFailed::Work::unknown:
    case WorkFailed::Work::earlier: break;
  }
  return "work on the device";
}

}  // namespace

// ---- words

std::string in_quotes(std::string_view name) { return '"' + std::string(name) + '"'; }

std::string sizes_text(const std::vector<TensorName>& tensors) {
  return list_text(tensors,
                   [](const TensorName& each) { return in_quotes(each.name) + " (" + bytes_text(each.bytes) + ")"; });
}

std::string names_text(const std::vector<TensorName>& tensors) {
  return list_text(tensors, [](const TensorName& each) { return in_quotes(each.name); });
}

std::string what_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& known) {
    return known.what();
  } catch (...) {
    return "an exception of an unknown type";
  }
}

// ---- Who

std::string Who::text() const { return std::string(what) + (name.empty() ? std::string() : in_quotes(name)); }

ErrorDetails Who::details() const {
  ErrorDetails details;
  if (what.ends_with("operation ")) details.operation = name;
  if (what.ends_with("tensor ")) details.tensors.push_back({id, std::string(name), bytes});
  return details;
}

ErrorDetails Who::details(ErrorDetails inner) const {
  ErrorDetails own = details();
  if (inner.operation.empty()) inner.operation = std::move(own.operation);
  if (inner.tensors.empty()) inner.tensors = std::move(own.tensors);
  return inner;
}

// ---- values and bundles

BundleTooLarge bundle_too_large(std::string_view operation, const BundleTooLarge::Sizes& sizes,
                                std::vector<TensorName> tensors) {
  largest_first(tensors);
  const std::string text = "operation " + in_quotes(operation) + " needs " + bytes_text(sizes.need) +
                           " on the device at once, the budget is " + bytes_text(sizes.budget) + "; " +
                           bundle_text(sizes, tensors) + ". Raise the device budget or split the operation";
  return {text, {.operation = std::string(operation), .tensors = std::move(tensors)}, sizes};
}

BundleTooLarge bundle_does_not_pack(std::string_view operation, const BundleTooLarge::Sizes& sizes,
                                    std::vector<TensorName> tensors) {
  largest_first(tensors);
  const std::string text = "operation " + in_quotes(operation) + " needs " + bytes_text(sizes.need) +
                           " of the budget of " + bytes_text(sizes.budget) +
                           ", but its tensors do not pack into pieces of " + bytes_text(sizes.largest_allocation) +
                           ", the largest single allocation of the device; " + bundle_text(sizes, tensors) +
                           ". Split the operation or its tensors";
  return {text, {.operation = std::string(operation), .tensors = std::move(tensors)}, sizes};
}

UndefinedValue undefined_value(const Who& who, TensorName tensor) {
  const std::string text = needs_text(who, tensor) +
                           "was never written (a transient tensor: not in this iteration). Upload it, or write all of "
                           "it in an operation first";
  return {text, missing(who, std::move(tensor))};
}

DroppedValue dropped_value(const Who& who, TensorName tensor) {
  const std::string text = needs_text(who, tensor) +
                           "was dropped: in the observed iterations nothing read it at this place. Make the tensor "
                           "with swapmm::kept if its value must outlive what was observed";
  ErrorDetails details = missing(who, std::move(tensor));
  details.lost = details.tensors;
  return {text, std::move(details)};
}

WorkFailed lost_value(const Who& who, TensorName tensor) {
  const std::string text = needs_text(who, tensor) + "an earlier failure left undefined. Write or upload it again";
  ErrorDetails details = missing(who, std::move(tensor));
  details.lost = details.tensors;
  return {text, std::move(details), WorkFailed::Work::earlier};
}

WorkFailed lost_download(std::string_view tensor) {
  return {"asynchronous download: the value of tensor " + in_quotes(tensor) + " was lost before it reached the host",
          {.tensors = {TensorName{.name = std::string(tensor)}}},
          WorkFailed::Work::earlier};
}

// ---- the device

WorkFailed work_failed(WorkFailed::Work work, ErrorDetails details, const std::exception_ptr& reason,
                       const std::exception_ptr& cause) {
  const std::string text =
      work_text(work, details) +
      (reason != nullptr ? " may have failed: " + what_of(reason) : " failed after it was queued") +
      (cause != nullptr ? ": " + what_of(cause) : "") + losses_text(details.lost);
  return {text, std::move(details), work, reason == nullptr};
}

WorkFailed work_failed(WorkFailed::Work work, ErrorDetails details, const std::exception_ptr& reason) {
  return work_failed(work, std::move(details), reason, nullptr);
}

DeviceLost device_lost(std::string_view text, ErrorDetails details, long code) {
  const std::string whole =
      std::string(text) +
      (details.lost.empty() ? "; no value is lost" : "; values lost with the device: " + names_text(details.lost));
  return {whole, std::move(details), code};
}

// ---- wrong use

UsageError operation_misused(std::string_view operation, std::string_view text, std::vector<TensorName> tensors) {
  return {"operation " + in_quotes(operation) + std::string(text),
          {.operation = std::string(operation), .tensors = std::move(tensors)}};
}

UsageError twice_in_bundle(std::string_view operation, TensorName tensor) {
  const std::string text = " has tensor " + in_quotes(tensor.name) +
                           " twice in its bundle: declare it once, with updates() if it is read and written";
  return operation_misused(operation, text, {std::move(tensor)});
}

void check_constant(std::string_view name, const ConstantPlace& place, bool has_file) {
  const auto refuse = [&](const std::string& why) {
    throw UsageError("constant " + in_quotes(name) + ": " + why, {.tensors = {TensorName{.name = std::string(name)}}});
  };
  if (place.source == nullptr) refuse("there is no file");
  if (!has_file)
    refuse("its manager has no Options::file, by whose memory it could be read; the constant's own file will do");
  const Bytes size = place.source->size();
  if (place.offset > size || place.bytes > size - place.offset) {
    refuse("it is to have " + bytes_text(place.bytes) + " from byte " + std::to_string(place.offset.value) +
           " on, and " + place.source->name() + " has " + bytes_text(size));
  }
  const Bytes alignment = place.source->alignment();
  if (place.offset.value % alignment.value != 0 || round_up(place.bytes, alignment) > size - place.offset) {
    refuse("in " + place.source->name() + " values begin at multiples of " + bytes_text(alignment) +
           " and have whole ones");
  }
}

UsageError constant_written(std::string_view what, TensorName tensor) {
  const std::string text = std::string(what) + " writes tensor " + in_quotes(tensor.name) +
                           ", which is a constant: its value is in a file that is only read";
  return {text, {.tensors = {std::move(tensor)}}};
}

UsageError misaligned_view(std::string_view operation, TensorName tensor, Bytes offset, Bytes alignment) {
  const std::string text =
      " uses a view of tensor " + in_quotes(tensor.name) + " that begins at byte " + std::to_string(offset.value) +
      " of it. On this device an operation can only address multiples of " + bytes_text(alignment) +
      ": use the whole tensor in the operation, and tell the kernel where to begin";
  return operation_misused(operation, text, {std::move(tensor)});
}

UsageError view_of_no_tensor(const Who& who, TensorName tensor) {
  const std::string text = who.text() + ": view of a tensor that " + no_longer_exists(tensor);
  return {text, missing(who, std::move(tensor))};
}

UsageError no_tensor_in_bundle(std::string_view operation, std::size_t position, TensorName tensor) {
  const std::string text = ": tensor " + std::to_string(position) + " of its bundle " + no_longer_exists(tensor);
  return operation_misused(operation, text, {std::move(tensor)});
}

// ---- faults of the library

InternalError internal_error(std::string_view fault, ErrorDetails details) {
  const std::string text =
      "internal error of swapmm: " + std::string(fault) + losses_text(details.lost) + ". Please report it";
  return {text, std::move(details)};
}

InternalError internal_error(const Who& who, const InternalError& error) {
  return {who.text() + ": " + error.what(), who.details(error.details())};
}

// ---- memory

OutOfMemory host_budget_exceeded(const OutOfMemory::Sizes& sizes, const std::string& file) {
  const std::string full = file.empty() ? "" : ", and " + file + " has no room for them";
  return {"host budget exceeded: " + bytes_text(sizes.need) + " needed, " + std::to_string(sizes.in_use.value) +
              " of " + std::to_string(sizes.budget.value) + " in use" + full + ". Raise Options::host_budget",
          "host", sizes};
}

OutOfMemory host_budget_exceeded(const OutOfMemory::Sizes& sizes) { return host_budget_exceeded(sizes, {}); }

OutOfMemory host_refused(const OutOfMemory::Sizes& sizes) {
  return {"the host refused " + bytes_text(sizes.need) + " for a swapped tensor; " +
              std::to_string(sizes.in_use.value) + " are in use",
          "host", sizes};
}

OutOfMemory memory_refused(const std::string& text, const BackendError& error, ErrorDetails details) {
  const bool device = error.kind == BackendError::Kind::out_of_device_memory;
  return {text,
          device ? "device" : "host",
          {.need = error.need, .in_use = {}, .budget = {}},
          error.code,
          std::move(details)};
}

OutOfMemory out_of_memory(const Who& who, const OutOfMemory& error) {
  return {who.text() + ": " + error.what(), error.memory, error.sizes, error.code, who.details(error.details())};
}

}  // namespace swapmm::runtime
