// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/ilp/solver/solver.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <exception>
#include <new>
#include <string>
#include <utility>

// The headers of Cbc and Clp cause warnings.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wdeprecated-copy-dtor"
#include <CbcEventHandler.hpp>
#include <CbcModel.hpp>
#include <CbcSolver.hpp>
#include <ClpEventHandler.hpp>
#include <ClpSimplex.hpp>
#include <CoinError.hpp>
#include <CoinPackedMatrix.hpp>
#include <OsiClpSolverInterface.hpp>
#pragma GCC diagnostic pop

namespace swapmm::planning::ilp {
namespace {

double bounded(double value) { return std::clamp(value, -COIN_DBL_MAX, COIN_DBL_MAX); }

/// A program in Clp's form.
struct Arrays {
  explicit Arrays(const Program& program) {
    std::vector<int> row_of;
    std::vector<int> column_of;
    std::vector<double> factors;
    for (std::size_t r = 0; r < program.rows.size(); ++r) {
      for (const Term& term : program.rows[r].terms) {
        row_of.push_back(static_cast<int>(r));
        column_of.push_back(term.column);
        factors.push_back(term.factor);
      }
      row_lower.push_back(bounded(program.rows[r].lower));
      row_upper.push_back(bounded(program.rows[r].upper));
    }
    for (const Program::Column& column : program.columns) {
      lower.push_back(bounded(column.lower));
      upper.push_back(bounded(column.upper));
      cost.push_back(column.cost);
    }
    matrix = CoinPackedMatrix(true, row_of.data(), column_of.data(), factors.data(),
                              static_cast<CoinBigIndex>(factors.size()));
    matrix.setDimensions(static_cast<int>(program.rows.size()), static_cast<int>(program.columns.size()));
  }

  CoinPackedMatrix matrix;
  std::vector<double> lower, upper, cost, row_lower, row_upper;
};

/// Asks go_on. An exception must not pass through the solver's frames: it stops the search, and is thrown after it.
class Watch {
 public:
  explicit Watch(const Limits& limits) : limits_(limits) {}

  bool has_go_on() const { return static_cast<bool>(limits_.go_on); }
  bool go_on(double objective, double bound) {
    if (thrown_) return false;
    try {
      return limits_.go_on(objective, bound);
    } catch (...) {
      thrown_ = std::current_exception();
      return false;
    }
  }
  void rethrow() const {
    if (thrown_) std::rethrow_exception(thrown_);
  }

 private:
  const Limits& limits_;
  std::exception_ptr thrown_;
};

/// Calls go_on while Clp works.
class StopClp final : public ClpEventHandler {
 public:
  explicit StopClp(Watch& watch) : watch_(&watch) {}
  int event(Event which) override {
    if (which != endOfFactorization || !watch_->has_go_on()) return -1;
    return watch_->go_on(infinity, -infinity) ? -1 : 5;
  }
  [[nodiscard]] ClpEventHandler* clone() const override { return new StopClp(*this); }

 private:
  Watch* watch_;
};

/// Calls go_on between the nodes of the tree, and between heuristics.
class StopCbc final : public CbcEventHandler {
 public:
  explicit StopCbc(Watch& watch) : watch_(&watch) {}
  CbcAction event(CbcEvent which) override {
    if (!watch_->has_go_on() ||
        (which != node && which != treeStatus && which != afterHeuristic && which != heuristicPass &&
         which != generatedCuts && which != solution && which != heuristicSolution)) {
      return noAction;
    }
    const double objective = model_->getSolutionCount() > 0 ? model_->getObjValue() : infinity;
    return watch_->go_on(objective, model_->getBestPossibleObjValue()) ? noAction : stop;
  }
  CbcAction event(CbcEvent which, void*) override { return event(which); }
  [[nodiscard]] CbcEventHandler* clone() const override { return new StopCbc(*this); }

 private:
  Watch* watch_;
};

/// Objectives and bounds from here on stand for none: Cbc was stopped before it had one.
constexpr double unknown = 1e49;

/// Calls go_on between the parts of Cbc's work.
int stop_cbc(CbcModel* model, int) {
  auto* const watch = static_cast<Watch*>(model->getApplicationData());
  return watch != nullptr && watch->has_go_on() && !watch->go_on(infinity, -infinity) ? 1 : 0;
}

Solution relax_with_clp(const Program& program, Watch& watch) {
  const Arrays arrays(program);
  ClpSimplex clp;
  clp.setLogLevel(0);
  clp.loadProblem(arrays.matrix, arrays.lower.data(), arrays.upper.data(), arrays.cost.data(), arrays.row_lower.data(),
                  arrays.row_upper.data());
  StopClp handler(watch);
  clp.passInEventHandler(&handler);
  clp.initialSolve();
  Solution solution;
  if (clp.isProvenPrimalInfeasible()) {
    solution.outcome = Outcome::none_below;
    solution.bound = infinity;
  } else if (clp.isProvenOptimal()) {
    solution.outcome = Outcome::optimal;
    solution.objective = clp.objectiveValue();
    solution.bound = solution.objective;
    solution.values.assign(clp.primalColumnSolution(), clp.primalColumnSolution() + clp.numberColumns());
  } else if (clp.isProvenDualInfeasible()) {
    return failed("Clp found no end of the objective");
  } else if (clp.isAbandoned()) {
    return failed("Clp ended with status " + std::to_string(clp.status()));
  }
  return solution;
}

Solution solve_with_cbc(const Program& program, const Limits& limits, Watch& watch) {
  const Arrays arrays(program);
  OsiClpSolverInterface clp;
  clp.loadProblem(arrays.matrix, arrays.lower.data(), arrays.upper.data(), arrays.cost.data(), arrays.row_lower.data(),
                  arrays.row_upper.data());
  for (std::size_t c = 0; c < program.columns.size(); ++c) {
    if (program.columns[c].is_integer) clp.setInteger(static_cast<int>(c));
  }
  clp.messageHandler()->setLogLevel(0);
  clp.getModelPtr()->setLogLevel(0);

  CbcModel model(clp);
  model.setLogLevel(0);
  CbcSolverUsefulData data;
  CbcMain0(model, data);
  StopCbc handler(watch);
  model.passInEventHandler(&handler);
  model.setApplicationData(&watch);
  model.setMaximumNodes(static_cast<int>(limits.nodes));
  model.setAllowableFractionGap(limits.relative_gap);
  if (limits.cutoff < infinity) model.setCutoff(limits.cutoff);
  const char* arguments[] = {"swapmm", "-log", "0", "-solve", "-quit"};
  CbcMain1(static_cast<int>(std::size(arguments)), arguments, model, stop_cbc, data);

  if (model.isAbandoned()) return failed("Cbc ended with status " + std::to_string(model.status()));
  Solution solution;
  const double* best = model.bestSolution();
  if (best != nullptr) {
    solution.values.assign(best, best + program.columns.size());
    solution.objective = 0;
    for (std::size_t c = 0; c < program.columns.size(); ++c) {
      solution.objective += program.columns[c].cost * solution.values[c];
    }
  }
  solution.bound = std::min(model.getBestPossibleObjValue(), solution.objective);
  if (model.isProvenOptimal() && best != nullptr) {
    solution.outcome = Outcome::optimal;
  } else if (model.isProvenInfeasible()) {
    solution.outcome = Outcome::none_below;
    solution.bound = limits.cutoff;
  } else if (solution.bound >= unknown) {
    solution.bound = -infinity;
  }
  return solution;
}

/// Runs the solver. Its errors are an outcome.
template <class Run>
Solution guarded(const Limits& limits, Run&& run) {
  Watch watch(limits);
  Solution solution;
  try {
    solution = run(watch);
  } catch (const CoinError& error) {
    solution = failed(error.className() + "::" + error.methodName() + ": " + error.message());
  } catch (const std::bad_alloc&) {
    solution = failed("it ran out of memory");
  } catch (const std::exception& error) {
    solution = failed(error.what());
  } catch (...) {
    solution = failed("it threw something that is no exception");
  }
  watch.rethrow();
  return solution;
}

}  // namespace

int Program::add_column(const Column& column) {
  columns.push_back(column);
  return static_cast<int>(columns.size()) - 1;
}

int Program::add_row(Row row) {
  // Clp accepts each column only once per row.
  std::sort(row.terms.begin(), row.terms.end(), [](const Term& a, const Term& b) { return a.column < b.column; });
  std::size_t kept = 0;
  for (const Term& term : row.terms) {
    if (kept > 0 && row.terms[kept - 1].column == term.column) {
      row.terms[kept - 1].factor += term.factor;
    } else {
      row.terms[kept++] = term;
    }
  }
  row.terms.resize(kept);
  rows.push_back(std::move(row));
  return static_cast<int>(rows.size()) - 1;
}

Solution failed(std::string problem) {
  Solution solution;
  solution.outcome = Outcome::failed;
  solution.problem = std::move(problem);
  return solution;
}

Solution solve_relaxation(const Program& program, const Limits& limits) {
  return guarded(limits, [&](Watch& watch) { return relax_with_clp(program, watch); });
}

Solution solve(const Program& program, const Limits& limits) {
  return guarded(limits, [&](Watch& watch) { return solve_with_cbc(program, limits, watch); });
}

const Solver& cbc() {
  static const Solver solver{solve_relaxation, solve};
  return solver;
}

}  // namespace swapmm::planning::ilp
