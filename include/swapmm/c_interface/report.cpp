// SPDX-License-Identifier: Apache-2.0
#include <swapmm/c_interface/report.hpp>

#include <chrono>
#include <cstdint>
#include <sstream>
#include <string_view>

#include <swapmm/base/bytes.hpp>
#include <swapmm/formats/json/writer.hpp>

namespace swapmm::c_interface {
namespace {

void append_field(std::string& object, std::string_view name, Bytes bytes) {
  json::append_field(object, name, bytes.value);
}
void append_field(std::string& object, std::string_view name, std::chrono::nanoseconds time) {
  json::append_field(object, name, time.count());
}
void append_field(std::string& object, std::string_view name, bool value) {
  json::append_key(object, name);
  object += value ? "true" : "false";
}
using json::append_field;

std::string_view name_of(PlanState state) {
  switch (state) {
    case PlanState::on_trial: return "on_trial";
    case PlanState::settled: return "settled";
    case PlanState::left: return "left";
  }
  return "";
}

std::string_view name_of(OnDemandReason reason) {
  switch (reason) {
    case OnDemandReason::nothing_repeats: return "nothing_repeats";
    case OnDemandReason::no_plan: return "no_plan";
    case OnDemandReason::on_demand_is_faster: return "on_demand_is_faster";
    case OnDemandReason::plan_is_awaited: return "plan_is_awaited";
    case OnDemandReason::plan_waits: return "plan_waits";
  }
  return "";
}

void append_plan(std::string& line, const PlanSummary& plan) {
  line += '{';
  append_field(line, "iteration", std::string_view(plan.iteration));
  append_field(line, "planner", std::string_view(plan.planner));
  append_field(line, "state", name_of(plan.state));
  append_field(line, "operations", plan.operations);
  append_field(line, "devices", plan.devices);
  append_field(line, "iterations_per_cycle", plan.iterations_per_cycle);
  append_field(line, "replays", plan.replays);
  append_field(line, "replay_ns", plan.replay_time);
  append_field(line, "predicted_ns", plan.predicted.iteration);
  append_field(line, "predicted_compute_ns", plan.predicted.compute);
  append_field(line, "lower_bound_ns", plan.predicted.lower_bound);
  append_field(line, "predicted_h2d", plan.predicted.h2d);
  append_field(line, "predicted_d2h", plan.predicted.d2h);
  append_field(line, "predicted_peak", plan.predicted.peak);
  append_field(line, "measured_ns", plan.measured);
  append_field(line, "on_demand_ns", plan.on_demand);
  append_field(line, "stalled_operations", plan.stalled_operations);
  json::append_key(line, "stalls");
  line += '[';
  for (const StallSummary& stall : plan.stalls) {
    line += line.ends_with('[') ? "{" : ", {";
    append_field(line, "what", std::string_view(stall.what));
    append_field(line, "ns", stall.time);
    line += '}';
  }
  line += "]}";
}

void append_numbers(std::string& line, const Report& report) {
  append_field(line, "device", std::string_view(report.device));
  append_field(line, "host_shares_memory", report.host_shares_memory);
  append_field(line, "device_budget", report.device_budget);
  append_field(line, "budget_changes", report.budget_changes);
  append_field(line, "device_used", report.device_used);
  append_field(line, "device_peak", report.device_peak);
  append_field(line, "host_used", report.host_used);
  append_field(line, "host_peak", report.host_peak);
  append_field(line, "pinned_used", report.pinned_used);
  append_field(line, "pinned_slabs", report.pinned_slabs);
  append_field(line, "file_used", report.file_used);
  append_field(line, "file_peak", report.file_peak);
  append_field(line, "file_read", report.file_read);
  append_field(line, "file_written", report.file_written);
  append_field(line, "neighbours_budget", report.neighbours_budget);
  append_field(line, "neighbours_used", report.neighbours_used);
  append_field(line, "neighbours_peak", report.neighbours_peak);
  append_field(line, "neighbours_read", report.neighbours_read);
  append_field(line, "neighbours_written", report.neighbours_written);
  append_field(line, "codec_staging", report.codec_staging);
  append_field(line, "encoded_in", report.encoded_in);
  append_field(line, "encoded_out", report.encoded_out);
  append_field(line, "tensors", report.tensors);
  append_field(line, "operations", report.operations);
  append_field(line, "operations_followed", report.operations_followed);
  append_field(line, "iterations_on_demand", report.iterations_on_demand);
  append_field(line, "iterations_followed", report.iterations_followed);
  append_field(line, "plan_starts", report.plan_starts);
  append_field(line, "start_h2d", report.start_h2d);
  append_field(line, "start_d2h", report.start_d2h);
  append_field(line, "divergences", report.divergences);
  append_field(line, "last_divergence", std::string_view(report.last_divergence));
  append_field(line, "values_saved", report.values_saved);
  append_field(line, "saved_bytes", report.saved_bytes);
  append_field(line, "predictions", report.predictions);
  append_field(line, "predictions_right", report.predictions_right);
  append_field(line, "brought_ahead", report.brought_ahead);
  append_field(line, "swap_ins", report.swap_ins);
  append_field(line, "swap_outs", report.swap_outs);
  append_field(line, "h2d", report.h2d);
  append_field(line, "d2h", report.d2h);
  append_field(line, "queue_waits", report.queue_waits);
  append_field(line, "host_waits", report.host_waits);
  append_field(line, "host_wait_time_ns", report.host_wait_time);
  append_field(line, "turns_taken", report.turns_taken);
  append_field(line, "turns_missed", report.turns_missed);
  append_field(line, "sampled_rounds", report.sampled_rounds);
  append_field(line, "plans_remade", report.plans_remade);
  append_field(line, "plans_found", report.plans_found);
}

}  // namespace

swapmm_numbers numbers_of(const Report& report) {
  return {
      .struct_size = sizeof(swapmm_numbers),
      .device_budget = report.device_budget.value,
      .device_used = report.device_used.value,
      .device_peak = report.device_peak.value,
      .host_used = report.host_used.value,
      .host_peak = report.host_peak.value,
      .pinned_used = report.pinned_used.value,
      .tensors = report.tensors,
      .operations = report.operations,
      .operations_followed = report.operations_followed,
      .iterations_on_demand = report.iterations_on_demand,
      .iterations_followed = report.iterations_followed,
      .plan_starts = report.plan_starts,
      .divergences = report.divergences,
      .swap_ins = report.swap_ins,
      .swap_outs = report.swap_outs,
      .h2d = report.h2d.value,
      .d2h = report.d2h.value,
      .host_waits = report.host_waits,
      .host_wait_time_ns = static_cast<std::uint64_t>(report.host_wait_time.count()),
  };
}

std::string report_json(const Report& report) {
  std::ostringstream out;
  std::string line = "{";
  append_field(line, "format", std::string_view("swapmm-manager-report"));
  append_field(line, "version", 1);
  append_numbers(line, report);
  out << line;
  json::write_list(out, "plans", report.plans, append_plan);
  json::write_list(out, "on_demand", report.on_demand, [](std::string& text, const OnDemandSummary& one) {
    text += '{';
    append_field(text, "iteration", std::string_view(one.iteration));
    append_field(text, "reason", name_of(one.reason));
    append_field(text, "why", std::string_view(one.why));
    text += '}';
  });
  json::write_list(out, "notes", report.notes,
                   [](std::string& text, const std::string& note) { json::append_text(text, note); });
  out << "}\n";
  return out.str();
}

}  // namespace swapmm::c_interface
