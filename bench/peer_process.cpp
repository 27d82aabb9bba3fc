// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "peer_process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <sstream>

#include "give_up.hpp"

extern char** environ;

namespace bench {

namespace {

/// Returns the environment in which libraries are looked for in `library_path` first.
std::vector<std::string> environment_with(const std::string& library_path) {
  const std::string name = "LD_LIBRARY_PATH=";
  std::string paths = library_path;
  std::vector<std::string> all;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string variable = *each;
    if (variable.rfind(name, 0) != 0)
      all.push_back(variable);
    else if (variable.size() > name.size())
      paths += (paths.empty() ? "" : ":") + variable.substr(name.size());
  }
  all.push_back(name + paths);
  return all;
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> all;
  for (std::string& word : words) all.push_back(word.data());
  all.push_back(nullptr);
  return all;
}

}  // namespace

PeerProcess::PeerProcess(const std::string& program, std::vector<std::string> arguments,
                         const std::string& library_path)
    : program_(std::filesystem::read_symlink("/proc/self/exe").replace_filename(program)) {
  ::signal(SIGPIPE, SIG_IGN);  // turn() says that the program ended early
  int to[2], from[2];
  if (::pipe2(to, O_CLOEXEC) != 0 || ::pipe2(from, O_CLOEXEC) != 0)
    give_up(program_.c_str(), std::strerror(errno));
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_adddup2(&files, to[0], STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, from[1], STDOUT_FILENO);
  arguments.insert(arguments.begin(), program_);
  std::vector<std::string> variables = environment_with(library_path);
  const int error = ::posix_spawn(&pid_, program_.c_str(), &files, nullptr, pointers_to(arguments).data(),
                                  pointers_to(variables).data());
  ::posix_spawn_file_actions_destroy(&files);
  if (error != 0) give_up(program_.c_str(), std::strerror(error));
  ::close(to[0]);
  ::close(from[1]);
  to_ = ::fdopen(to[1], "w");
  from_ = ::fdopen(from[0], "r");
  about_ = line();
}

PeerProcess::~PeerProcess() {
  std::fclose(to_);
  std::fclose(from_);
  ::waitpid(pid_, nullptr, 0);
}

std::string PeerProcess::line() {
  char text[256];
  if (std::fgets(text, sizeof text, from_) == nullptr) give_up(program_.c_str(), "ended early");
  text[std::strcspn(text, "\n")] = 0;
  return text;
}

std::vector<double> PeerProcess::turn() {
  if (std::fputs("turn\n", to_) < 0 || std::fflush(to_) != 0) give_up(program_.c_str(), "ended early");
  std::istringstream answer(line());
  std::vector<double> numbers;
  for (double number = 0; answer >> number;) numbers.push_back(number);
  return numbers;
}

}  // namespace bench
