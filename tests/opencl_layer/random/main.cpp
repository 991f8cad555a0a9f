// SPDX-License-Identifier: Apache-2.0
// Random OpenCL programs: each seed is one. What the host sees is compared with a model of its own. Prints a digest for
// each seed; ends with 1 if something is wrong, with 3 if a program hangs.

#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iomanip>
#include <iostream>
#include <string>
#include <vector>

#include "program.hpp"
#include "schedule.hpp"
#include "session.hpp"
#include "shrink.hpp"

namespace random_opencl {
namespace {

constexpr const char* usage =
    "random --seed S [--seeds N] [OPTION...]\n"
    "  --size small|large  of the buffers (small)\n"
    "  --print             print the commands of each program, run nothing\n"
    "  --loops             programs that repeat a body of commands\n"
    "  --need              print the bytes of each program's largest command, and of all its buffers; run nothing\n"
    "  --keep 0-3,7        only these actions\n"
    "  --without WHAT      images, image-maps, image-copies (to and from buffers), copy-rects (of buffers),\n"
    "                      native-kernels, shared-memory or failures (of user events)\n"
    "  --spoil             the model is wrong on purpose: must fail\n"
    "  --shrink            remove actions as long as the program fails\n"
    "  --repeat R          --shrink: a program fails if one of R runs does (1)\n"
    "  --limit SECONDS     a program that takes longer hangs (60)\n";

struct Options {
  std::uint64_t seed = 1;
  std::uint64_t seeds = 1;
  DrawOptions draw;
  bool print = false;
  bool need = false;
  bool spoil = false;
  bool shrink = false;
  unsigned limit = 60;
  unsigned repeat = 1;
  std::string keep;
};

void leave_out(const std::string& what, DrawOptions& draw) {
  if (what == "images") {
    draw.images = false;
  } else if (what == "image-maps") {
    draw.image_maps = false;
  } else if (what == "image-copies") {
    draw.image_copies = false;
  } else if (what == "copy-rects") {
    draw.copy_rects = false;
  } else if (what == "native-kernels") {
    draw.native_kernels = false;
  } else if (what == "shared-memory") {
    draw.shared_memory = false;
  } else if (what == "failures") {
    draw.failures = false;
  } else {
    throw std::invalid_argument("--without " + what + " is unknown");
  }
}

Options options_of(const std::vector<std::string>& words) {
  Options options;
  for (std::size_t i = 0; i != words.size(); ++i) {
    const auto value = [&]() -> const std::string& {
      if (i + 1 == words.size()) throw std::invalid_argument(words[i] + " needs a value");
      return words[++i];
    };
    const std::string& word = words[i];
    if (word == "--seed") {
      options.seed = std::stoull(value());
    } else if (word == "--seeds") {
      options.seeds = std::stoull(value());
    } else if (word == "--size") {
      options.draw.large = value() == "large";
    } else if (word == "--print") {
      options.print = true;
    } else if (word == "--loops") {
      options.draw.loops = true;
    } else if (word == "--need") {
      options.need = true;
    } else if (word == "--keep") {
      options.keep = value();
    } else if (word == "--without") {
      leave_out(value(), options.draw);
    } else if (word == "--spoil") {
      options.spoil = true;
    } else if (word == "--shrink") {
      options.shrink = true;
    } else if (word == "--repeat") {
      options.repeat = static_cast<unsigned>(std::stoul(value()));
    } else if (word == "--limit") {
      options.limit = static_cast<unsigned>(std::stoul(value()));
    } else {
      throw std::invalid_argument("unknown option " + word);
    }
  }
  return options;
}

void write_text(const char* text) {
  if (write(1, text, std::char_traits<char>::length(text)) < 0) _exit(4);
}

void write_number(int number) {
  char text[12] = {};
  char* at = text + sizeof(text) - 1;
  do {
    *--at = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number != 0);
  write_text(at);
}

void on_alarm(int) {
  write_text("it hangs; the last steps of the threads:");
  for (const auto& step : running_steps) {
    write_text(" ");
    write_number(step);
  }
  write_text("\n");
  _exit(3);
}

int shrink_program(const Options& options, const Program& program, const std::vector<std::string>& words) {
  std::vector<std::string> command{"random"};
  for (const std::string& word : words) {
    if (word != "--shrink") command.push_back(word);
  }
  const std::vector<bool> keep = shrink(command, program.actions.size(), options.limit + 5, options.repeat);
  ScheduleOptions how;
  how.keep = keep;
  print(std::cout, program, schedule(program, how));
  std::cout << "random --seed " << program.seed << (options.draw.large ? " --size large" : "")
            << (options.draw.loops ? " --loops" : "") << " --keep " << text_of_mask(keep) << '\n';
  return 0;
}

int run(const Options& options, const std::vector<std::string>& words) {
  cl_device_id device = nullptr;
  if (!options.print && !options.need && !options.shrink) {
    device = first_device();
    const std::string missing = device == nullptr ? "no OpenCL device" : missing_in(device);
    if (!missing.empty()) {
      std::cout << "skipped: " << missing << '\n';
      return 0;
    }
    if (options.draw.images && !has_images(device)) {
      std::cout << "skipped: no images; --without images leaves them out\n";
      return 0;
    }
    signal(SIGALRM, on_alarm);
  }
  for (std::uint64_t seed = options.seed; seed != options.seed + options.seeds; ++seed) {
    const Program program = draw_program(seed, options.draw);
    if (options.shrink) return shrink_program(options, program, words);
    ScheduleOptions how;
    how.spoil = options.spoil;
    if (!options.keep.empty()) how.keep = mask_of_text(options.keep, program.actions.size());
    const Schedule steps = schedule(program, how);
    if (options.print) {
      print(std::cout, program, steps);
    } else if (options.need) {
      std::cout << seed << ' ' << steps.need << ' ' << steps.peak << '\n';
    } else {
      alarm(options.limit);
      const std::uint64_t digest = Session(device, program, steps).run();
      alarm(0);
      std::cout << seed << ' ' << std::hex << std::setw(16) << std::setfill('0') << digest << std::dec << std::endl;
    }
  }
  return 0;
}

}  // namespace
}  // namespace random_opencl

int main(int count, char** words) {
  const std::vector<std::string> all(words + 1, words + count);
  try {
    if (all.empty()) {
      std::cout << random_opencl::usage;
      return 2;
    }
    return random_opencl::run(random_opencl::options_of(all), all);
  } catch (const std::exception& failure) {
    std::cout << "random: " << failure.what() << '\n';
    return 2;
  }
}
