// SPDX-License-Identifier: Apache-2.0
#include "plans.hpp"

#include <memory>
#include <optional>
#include <utility>

#include "../facts/digest.hpp"
#include "../process/settings.hpp"
#include "folder.hpp"

namespace swapmm::opencl::layer {
namespace {

class Names {
 public:
  explicit Names(std::function<std::string()> device) : device_(std::move(device)) {}

  /// The file for that key; empty: none.
  [[nodiscard]] std::string of(const std::string& key) {
    if (!known_) known_ = device_();
    if (known_->empty()) return {};
    const std::string digest = facts::digest_of(*known_ + "\n" + key);
    return digest.size() == 64 ? "plan-" + digest : std::string();  // else the process ends
  }

 private:
  std::function<std::string()> device_;
  std::optional<std::string> known_;
};

}  // namespace

PlanStore plans_in_cache(std::function<std::string()> device) {
  if (!settings().cache) return {};
  const auto names = std::make_shared<Names>(std::move(device));
  PlanStore store;
  store.find = [names](const std::string& key) -> std::optional<std::string> {
    const std::string name = names->of(key);
    return name.empty() ? std::nullopt : plan_cache().text(name);
  };
  store.keep = [names](const std::string& key, const std::string& text) {
    if (const std::string name = names->of(key); !name.empty()) plan_cache().keep(name, text);
  };
  store.refused = [](const std::string& /*key*/, const std::string& reason) {
    remark("a plan of the cache is ignored: " + reason);
  };
  return store;
}

}  // namespace swapmm::opencl::layer
