// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "program.hpp"
#include "random_numbers.hpp"

namespace random_opencl {

/// Draws the actions of a program one after the other.
class Drawing {
 public:
  Drawing(std::uint64_t seed, const DrawOptions& options);
  Program draw();

 private:
  enum class Use { reads, writes, host_reads, host_writes, copy_source, copy_target };

  void draw_section(int section);
  void draw_queues(std::size_t count);
  int add_section();

  /// A body that is repeated.
  struct Loop {
    enum class Reads { every_round, at_times, never };
    int first_object = 0;  // of the body, as it was drawn
    int first_action = 0;
    Reads reads = Reads::at_times;  // of the host
    bool user_events = false;
    bool native_kernels = false;
    std::size_t release_at = 0;     // where in a round the objects of the round before are released
    std::map<int, int> successors;  // what takes the place of an object in the next round
    std::vector<Action> late;       // releases in the next round
  };
  void draw_loop_section(int section);
  void draw_loop();
  void draw_some(std::size_t count, const Loop& loop);
  bool draw_body_action(const Loop& loop);
  void draw_twin();
  void draw_successor(Loop& loop);
  void draw_fates(Loop& loop);
  void repeat(const Loop& loop, std::vector<Action> body, const Loop& evaluation, const std::vector<Action>& evaluated);
  void diverge(std::vector<Action>& actions);
  void insert_actions(std::size_t at, std::vector<Action> actions);
  bool may_swap(int a, int b, const Loop& loop) const;
  int add_object(const Object& made);

  bool draw_action();
  bool draw_create();
  bool draw_sub_buffer();
  bool draw_release();
  bool draw_transfer(Kind kind);
  bool draw_copy();
  bool draw_fill();
  bool draw_map();
  bool draw_unmap();
  bool draw_launch();
  bool draw_native();
  bool are_made_in_order(int a, int b) const;
  bool draw_user_event();
  bool draw_set_user_event();
  bool draw_simple(Kind kind);
  /// The arguments that the kernel needs; none if there is no object for one of them.
  std::optional<std::vector<int>> draw_arguments(Kernel kernel);

  Action action(Kind kind);
  bool add(Action action);
  /// An object of the context of the thread's queue that this thread may use so; -1: none.
  int pick(const std::vector<Use>& uses, bool image = false, std::size_t least = 1);
  bool may(int id, Use use) const;
  int root_of(int id) const;
  std::size_t draw_size();
  Rect draw_range(int id);
  Rect draw_image_rect(int id);
  bool draw_boxes(const std::vector<std::size_t>& sizes, std::vector<Rect*> rects);
  const Object& object(int id) const { return program_.objects[static_cast<std::size_t>(id)]; }
  Object& object(int id) { return program_.objects[static_cast<std::size_t>(id)]; }
  std::size_t elements(int id) const { return object(id).size / 4; }

  DrawOptions options_;
  Random random_;
  Program program_;
  int section_ = 0;
  int thread_ = 0;
  int context_ = 0;
  std::vector<int> queues_;  // of this thread
  std::vector<bool> alive_;
  std::vector<int> owner_;  // of a root: the thread that may write it in this section; -1: none
  std::vector<int> maps_;   // actions
  std::vector<int> users_;
  std::vector<std::pair<int, int>> twins_;  // objects that may take each other's place
};

}  // namespace random_opencl
