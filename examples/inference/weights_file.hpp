// SPDX-License-Identifier: Apache-2.0
#pragma once

// The weights of the stack in a file of the format safetensors.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/file/weights.hpp>
#include <swapmm/swapmm.hpp>

#include "inference/stack.hpp"

namespace inference {

/// Writes the file. Throws std::runtime_error.
inline void write_weights(const std::string& path, const Settings& settings) {
  std::string head = "{";
  std::uint64_t at = 0;
  const auto add = [&](std::size_t layer, const char* what, const std::string& shape, std::uint64_t count) {
    const std::uint64_t end = at + count * sizeof(float);
    head += (head.size() > 1 ? "," : "") + ("\"layer" + std::to_string(layer)) + "." + what +
            "\":{\"dtype\":\"F32\",\"shape\":[" + shape + "],\"data_offsets\":[" + std::to_string(at) + "," +
            std::to_string(end) + "]}";
    at = end;
  };
  const std::string width = std::to_string(settings.width);
  for (std::size_t i = 0; i < settings.layers; ++i) {
    add(i, "weights", width + "," + width, settings.width * settings.width);
    add(i, "bias", width, settings.width);
  }
  head += "}";
  head.resize((head.size() + 7) / 8 * 8, ' ');

  std::ofstream out(path, std::ios::binary);
  for (std::size_t i = 0; i < 8; ++i) out.put(static_cast<char>(head.size() >> (8 * i) & 0xFFU));
  out << head;
  const auto write = [&](const std::vector<float>& numbers) {
    out.write(reinterpret_cast<const char*>(numbers.data()),
              static_cast<std::streamsize>(numbers.size() * sizeof(float)));
  };
  for (std::size_t i = 0; i < settings.layers; ++i) {
    write(layer_weights(settings, i));
    write(layer_bias(settings, i));
  }
  if (!out.flush()) throw std::runtime_error(path + " cannot be written");
}

/// A stack whose weights stay in that file. Throws std::runtime_error if the file has no such weights.
template <class Math, class Manager>
[[nodiscard]] Stack<Math> stack_from(Math& math, Manager& manager, const Settings& settings,
                                     const std::shared_ptr<swapmm::FileMemory>& file) {
  const swapmm::Result<std::vector<swapmm::file::Weight>> weights = swapmm::file::read_safetensors(*file);
  if (!weights.has_value()) throw std::runtime_error(weights.problem().message);
  return Stack<Math>(math, manager, settings, [&](std::size_t, const std::string& name, bool is_bias) {
    const swapmm::Shape shape = Stack<Math>::shape_of(settings, is_bias);
    const auto found =
        std::find_if(weights->begin(), weights->end(), [&](const auto& weight) { return weight.name == name; });
    if (found == weights->end() || found->type != "F32" || found->bytes.value != *shape.count() * sizeof(float)) {
      throw std::runtime_error(file->name() + " has no weights \"" + name + "\" of " + shape.text() + " numbers");
    }
    return manager.template constant<float>(shape, file, found->offset, name);
  });
}

}  // namespace inference
