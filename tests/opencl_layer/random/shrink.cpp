// SPDX-License-Identifier: Apache-2.0
#include "shrink.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <iostream>
#include <stdexcept>
#include <thread>

namespace random_opencl {
namespace {

/// Whether the process ends with anything but success within that time.
bool fails_once(std::vector<std::string> command, unsigned seconds) {
  std::vector<char*> words;
  words.reserve(command.size() + 1);
  for (std::string& word : command) words.push_back(word.data());
  words.push_back(nullptr);
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("cannot start a process");
  if (child == 0) {
    const int nothing = open("/dev/null", O_WRONLY);
    dup2(nothing, 1);
    dup2(nothing, 2);
    execv("/proc/self/exe", words.data());
    _exit(127);
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > end) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

}  // namespace

std::string text_of_mask(const std::vector<bool>& keep) {
  std::string text;
  for (std::size_t i = 0; i != keep.size(); ++i) {
    if (!keep[i]) continue;
    const std::size_t begin = i;
    while (i + 1 != keep.size() && keep[i + 1]) ++i;
    if (!text.empty()) text += ',';
    text += std::to_string(begin);
    if (i != begin) text += '-' + std::to_string(i);
  }
  return text.empty() ? "none" : text;
}

std::vector<bool> mask_of_text(const std::string& text, std::size_t count) {
  std::vector<bool> keep(count);
  if (text == "none") return keep;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t used = 0;
    const std::size_t first = std::stoul(text.substr(at), &used);
    at += used;
    std::size_t last = first;
    if (at < text.size() && text[at] == '-') {
      last = std::stoul(text.substr(at + 1), &used);
      at += used + 1;
    }
    if (last < first || last >= count) throw std::invalid_argument("no such action: " + text);
    std::fill(keep.begin() + static_cast<std::ptrdiff_t>(first), keep.begin() + static_cast<std::ptrdiff_t>(last) + 1,
              true);
    if (at < text.size() && text[at] != ',') throw std::invalid_argument("not a list of actions: " + text);
    ++at;
  }
  return keep;
}

std::vector<bool> shrink(const std::vector<std::string>& command, std::size_t actions, unsigned seconds,
                         unsigned repeats) {
  const auto fails = [&](const std::vector<bool>& keep) {
    std::vector<std::string> words = command;
    words.emplace_back("--keep");
    words.push_back(text_of_mask(keep));
    for (unsigned i = 0; i != repeats; ++i) {
      if (fails_once(words, seconds)) return true;
    }
    return false;
  };
  std::vector<bool> keep(actions, true);
  if (!fails(keep)) return keep;
  for (bool again = true; again;) {
    again = false;
    for (std::size_t size = std::max<std::size_t>(actions / 2, 1); size != 0; size /= 2) {
      // The last ones first: nothing depends on them.
      for (std::size_t end = actions; end > 0; end = end > size ? end - size : 0) {
        std::vector<bool> less = keep;
        const std::size_t begin = end > size ? end - size : 0;
        std::fill(less.begin() + static_cast<std::ptrdiff_t>(begin), less.begin() + static_cast<std::ptrdiff_t>(end),
                  false);
        if (less == keep || !fails(less)) continue;
        keep = less;
        again = true;
        std::cout << std::count(keep.begin(), keep.end(), true) << " actions: " << text_of_mask(keep) << std::endl;
      }
    }
  }
  return keep;
}

}  // namespace random_opencl
