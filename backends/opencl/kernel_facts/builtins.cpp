// SPDX-License-Identifier: Apache-2.0
#include "builtins.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <set>

namespace swapmm::kernel_facts {
namespace {

// "get_global_id" of "_Z13get_global_idj". Functions of the language are overloaded, so they have such names.
std::string_view plain_name(std::string_view name) {
  if (name.substr(0, 2) != "_Z") return {};
  name.remove_prefix(2);
  std::size_t length = 0;
  const auto read = std::from_chars(name.data(), name.data() + name.size(), length);
  if (read.ec != std::errc()) return {};
  name.remove_prefix(static_cast<std::size_t>(read.ptr - name.data()));
  return length <= name.size() ? name.substr(0, length) : std::string_view();
}

bool begins(std::string_view text, std::string_view with) { return text.substr(0, with.size()) == with; }

// vload4, vload_half, vload_half4, vloada_half4_rte
bool is_vector_access(std::string_view name, std::string_view stem) {
  if (!begins(name, stem)) return false;
  name.remove_prefix(stem.size());
  if (begins(name, "a_half") || begins(name, "_half")) return true;
  return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

const std::set<std::string_view>& calculating() {
  static const std::set<std::string_view> names{
      "abs",        "abs_diff",    "acos",       "acosh",       "acospi",      "add_sat",      "all",
      "any",        "asin",        "asinh",      "asinpi",      "atan",        "atan2",        "atanh",
      "cbrt",       "ceil",        "clamp",      "clz",         "cos",         "cosh",         "cospi",
      "cross",      "distance",    "dot",        "erf",         "erfc",        "exp",          "exp10",
      "exp2",       "expm1",       "fabs",       "fdim",        "floor",       "fma",          "fmax",
      "fmin",       "fmod",        "hadd",       "hypot",       "ilogb",       "isinf",        "isnan",
      "ldexp",      "length",      "log",        "log10",       "log1p",       "log2",         "logb",
      "mad",        "mad24",       "mad_hi",     "mad_sat",     "max",         "maxmag",       "min",
      "minmag",     "mix",         "mul24",      "mul_hi",      "nan",         "nextafter",    "normalize",
      "popcount",   "pow",         "pown",       "powr",        "radians",     "degrees",      "remainder",
      "rhadd",      "rint",        "rootn",      "rotate",      "round",       "rsqrt",        "select",
      "bitselect",  "sign",        "signbit",    "sin",         "sinh",        "sinpi",        "smoothstep",
      "sqrt",       "step",        "sub_sat",    "tan",         "tanh",        "tanpi",        "tgamma",
      "lgamma",     "trunc",       "upsample",   "shuffle",     "shuffle2",    "native_cos",   "native_divide",
      "native_exp", "native_exp2", "native_log", "native_log2", "native_powr", "native_recip", "native_rsqrt",
      "native_sin", "native_sqrt", "native_tan"};
  return names;
}

Builtin by_name(std::string_view name) {
  static constexpr std::array<std::string_view, 5> places{"get_work_dim", "get_global_id", "get_global_size",
                                                          "get_global_offset", "get_global_linear_id"};
  static constexpr std::array<std::string_view, 6> group_places{"get_local_id",        "get_local_size",
                                                                "get_group_id",        "get_num_groups",
                                                                "get_local_linear_id", "get_enqueued_local_size"};
  static constexpr std::array<std::string_view, 8> without_memory{
      "barrier",         "work_group_barrier",     "mem_fence", "read_mem_fence",
      "write_mem_fence", "atomic_work_item_fence", "prefetch",  "wait_group_events"};
  static constexpr std::array<std::string_view, 6> with_outputs{"sincos", "fract",  "modf",
                                                                "frexp",  "remquo", "lgamma_r"};
  const auto is_in = [&](const auto& names) { return std::find(names.begin(), names.end(), name) != names.end(); };
  if (is_in(places)) return Builtin::place;
  if (is_in(group_places)) return Builtin::group_place;
  if (is_in(without_memory)) return Builtin::nothing;
  if (is_in(with_outputs)) return Builtin::outputs;
  if (is_vector_access(name, "vload")) return Builtin::load;
  if (is_vector_access(name, "vstore")) return Builtin::store;
  if (name == "async_work_group_copy" || name == "async_work_group_strided_copy") return Builtin::copy;
  if ((begins(name, "atomic_") || begins(name, "atom_")) && name != "atomic_init") return Builtin::atomic;
  if (begins(name, "read_image") || begins(name, "get_image_")) return Builtin::image_read;
  if (begins(name, "write_image")) return Builtin::image_write;
  if (calculating().contains(name) || begins(name, "convert_") || begins(name, "as_")) return Builtin::calculates;
  return Builtin::unknown;
}

}  // namespace

Builtin builtin(std::string_view name, bool reads_no_memory, bool trusted) {
  const std::string_view plain = plain_name(name);
  if (plain.empty()) return Builtin::unknown;
  const Builtin known = by_name(plain);
  if (known != Builtin::unknown) return known;
  // Their results differ between work items in a way that the driver chooses.
  if (plain.find("sub_group") != std::string_view::npos || begins(plain, "work_group_")) return Builtin::unknown;
  return trusted && reads_no_memory ? Builtin::calculates : Builtin::unknown;
}

}  // namespace swapmm::kernel_facts
