// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "launch.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "ground/node/available_memory.hpp"
#include "keeper.hpp"
#include "self_test.hpp"

namespace tailrace::run {

namespace {

constexpr int failed_exit = 1;
constexpr int usage_exit = 2;
constexpr int not_found_exit = 127;

int complain(int code, const std::string& text) {
  std::fprintf(stderr, "tailrace run: %s\n", text.c_str());
  return code;
}

std::string directory_of_command() {
  char path[PATH_MAX] = {};
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
  const std::string text(path, static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
  return text.substr(0, text.rfind('/'));
}

std::string preload_path() {
  for (const char* place : {"/../lib/", "/../" TAILRACE_LIBRARY_DIRECTORY "/"}) {
    const std::string path = directory_of_command() + place + "libtailrace_preload.so";
    char real[PATH_MAX];
    if (realpath(path.c_str(), real) != nullptr) return real;
  }
  return {};
}

/// Returns the patterns as absolute names, and a second time with all symbolic links of their directories
/// resolved. The library compares them with the names that programs open, and these names may go through such
/// links or not.
std::vector<std::string> full_patterns(const std::vector<std::string>& given) {
  std::vector<std::string> full;
  for (const std::string& pattern : given) {
    char here[PATH_MAX];
    std::string absolute = pattern;
    if (pattern[0] != '/' && getcwd(here, sizeof(here)) != nullptr)
      absolute = std::string(here) + "/" + pattern;
    full.push_back(absolute);
    const std::size_t directory = absolute.rfind('/', absolute.find_first_of("*?["));
    char real[PATH_MAX];
    if (directory == 0 || realpath(absolute.substr(0, directory).c_str(), real) == nullptr) continue;
    const std::string resolved = real + absolute.substr(directory);
    if (resolved != absolute) full.push_back(resolved);
  }
  return full;
}

std::string path_of_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return access(name.c_str(), X_OK) == 0 ? name : "";
  const char* const found = std::getenv("PATH");
  std::string rest = found != nullptr ? found : "/bin:/usr/bin";
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    const std::string path = (end == 0 ? "." : rest.substr(0, end)) + "/" + name;
    struct stat status = {};
    if (access(path.c_str(), X_OK) == 0 && stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode))
      return path;
    rest.erase(0, end + 1);
  }
  return {};
}

sockaddr_un address_of(const std::string& name, socklen_t& length) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

[[noreturn]] void become_keeper(int listener, const Launch& plan) {
  // The keeper ignores the signals that stop programs: it must still store what the programs have written.
  setsid();
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGXFSZ, SIGUSR1, SIGUSR2})
    std::signal(signal, SIG_IGN);
  prctl(PR_SET_NAME, "tailrace-keeper");
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(null, 0);
  dup2(null, 1);
  // A file that is opened next must not get the number of standard error.
  if (fcntl(2, F_GETFD) < 0) dup2(null, 2);
  dup2(listener, 3);
  close_range(4, ~0U, 0);
  if (chdir("/") != 0) std::perror("tailrace run: chdir /");
  const auto memory = static_cast<std::uint64_t>(std::max<Bytes>(node::available_memory() / 4, 0));
  Keeper::Plan keeping;
  keeping.group = plan.group;
  keeping.page = plan.page;
  keeping.memory = plan.memory != 0 ? plan.memory : std::max<std::uint64_t>(memory, 16 * plan.page);
  keeping.is_verbose = plan.is_verbose;
  int code = 1;
  {
    Keeper keeper(3, keeping);
    code = keeper.serve();
  }
  std::fflush(nullptr);
  _exit(code);
}

bool tell_self_test(bool is_verbose) {
  const std::vector<Escape> escapes = try_escapes();
  bool is_harmless = true;
  for (const Escape& each : escapes) is_harmless = is_harmless && each.is_harmless;
  if (!is_verbose && is_harmless) {
    std::fputs(
        "tailrace run: tested: what bypasses libc (system calls, io_uring, mmap) fails on shared files; "
        "--verbose lists it\n",
        stderr);
    return true;
  }
  std::fputs("tailrace run: cannot be taken over:\n", stderr);
  for (const Escape& each : escapes)
    std::fprintf(stderr, "  %s: %s\n", each.way.c_str(), each.outcome.c_str());
  std::fputs(other_escapes(), stderr);
  return is_harmless;
}

/// Returns a socket whose number is above those of the standard descriptors, also if these are closed: with
/// such a number it would get all that is printed.
int make_socket() {
  const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (socket < 0 || socket > 3) return socket;
  const int moved = fcntl(socket, F_DUPFD_CLOEXEC, 4);
  close(socket);
  return moved;
}

std::string in_another_namespace(const std::string& name) {
  return "the keeper of the group " + name +
         " is in another PID namespace (container): nothing is run; start the programs of a group in one "
         "container, or give each container another --group and other files";
}

/// True if the keeper at the other end of the socket belongs to this user and this PID namespace; otherwise
/// says why not. Any user of the node can take the name of the socket, and would then see what programs
/// write.
bool is_of_us(int socket, const std::string& name) {
  ucred who = {};
  socklen_t length = sizeof(who);
  const bool is_known = getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &length) == 0;
  if (is_known && who.uid == geteuid() && who.pid != 0) return true;
  if (is_known && who.uid == geteuid()) {
    complain(failed_exit, in_another_namespace(name));
    return false;
  }
  std::fprintf(
      stderr,
      "tailrace run: the keeper of the group %s is of user %u (process %d) and not of %u: nothing is "
      "run; --group takes another name\n",
      name.c_str(), who.uid, who.pid, geteuid());
  return false;
}

/// True if the keeper that this process has made has failed; the keeper has printed why. `how` is WNOHANG, or
/// 0 to wait for the keeper's end.
bool has_failed(pid_t& keeper, int how) {
  int status = 0;
  if (keeper <= 0 || waitpid(keeper, &status, how) != keeper) return false;
  keeper = 0;
  return status != 0;
}

/// Makes a keeper that serves `listener`. Returns a socket that is connected to it, or -1. Connects before it
/// forks: if this process were killed in between, the keeper would wait for its first process for ever.
int make_keeper(int listener, const sockaddr_un& address, socklen_t length, const Launch& plan,
                pid_t& keeper) {
  if (listen(listener, 1024) != 0) return -1;
  const int socket = make_socket();
  if (socket < 0) return -1;
  if (connect(socket, reinterpret_cast<const sockaddr*>(&address), length) == 0) {
    keeper = fork();
    if (keeper == 0) become_keeper(listener, plan);
    if (keeper > 0) return socket;
  }
  const int error = errno;
  close(socket);
  errno = error;
  return -1;
}

/// Connects to the keeper of the group on this node, or makes the keeper. Returns a socket, or -1 after an
/// error, which it has printed.
int find_keeper(const std::string& name, const Launch& plan, pid_t& keeper) {
  socklen_t length = 0;
  const sockaddr_un address = address_of(name, length);
  for (int attempt = 0; attempt < 500; ++attempt) {
    if (has_failed(keeper, WNOHANG)) return -1;
    const int socket = make_socket();
    if (socket < 0) break;
    if (connect(socket, reinterpret_cast<const sockaddr*>(&address), length) == 0)
      return is_of_us(socket, name) ? socket : -1;
    if (bind(socket, reinterpret_cast<const sockaddr*>(&address), length) == 0) {
      // The name is free, so a keeper that this process has made before is ending. If that has failed, a
      // second one would only print the same error.
      if (has_failed(keeper, 0)) return -1;
      if (!tell_self_test(plan.is_verbose)) {
        std::fputs("tailrace run: nothing is run: a program could lose what it writes in these ways\n",
                   stderr);
        return -1;
      }
      const int own = make_keeper(socket, address, length, plan, keeper);
      if (own < 0) break;
      close(socket);
      return own;
    }
    close(socket);
    // Another process is just making the keeper, or the keeper is ending.
    usleep(10'000);
  }
  std::fprintf(stderr, "tailrace run: no keeper for the group %s: %s\n", name.c_str(), std::strerror(errno));
  return -1;
}

int ask_keeper(int socket, Op op, Answer& answer, const std::string& text = "") {
  Request request;
  request.op = op;
  const std::size_t length = text.copy(request.text, sizeof(request.text) - 1);
  if (send(socket, &request, offsetof(Request, text) + length + 1, MSG_NOSIGNAL) < 0) return errno;
  ssize_t got = 0;
  do {
    got = recv(socket, &answer, sizeof(answer), 0);
  } while (got < 0 && errno == EINTR);
  return got == static_cast<ssize_t>(sizeof(answer)) ? answer.error : EPIPE;
}

/// Joins the keeper of the group. Returns a socket, or -1 after an error, which it has printed.
int join_keeper(const std::string& name, const Launch& plan) {
  pid_t made = 0;
  int error = 0;
  for (int attempt = 0; attempt < 100; ++attempt) {
    const int keeper = find_keeper(name, plan, made);
    if (keeper < 0) return -1;
    Answer answer;
    error = ask_keeper(keeper, Op::join, answer, plan.group);
    if (error == 0) return keeper;
    close(keeper);
    // A keeper that was already ending does not answer: another attempt finds or makes the next one.
    if (error != EPIPE && error != ECONNRESET) break;
    usleep(10'000);
  }
  if (error == EEXIST)
    complain(failed_exit, "the keeper " + name + " is of another group than " + plan.group +
                              ": nothing is run; --group takes another name");
  else if (error == EXDEV)
    complain(failed_exit, in_another_namespace(name));
  else
    complain(failed_exit, std::string("the keeper does not answer: ") + std::strerror(error));
  return -1;
}

[[noreturn]] void become_program(const Launch& plan, const std::string& path, const std::string& name,
                                 const std::string& library, pid_t launcher) {
  // If the `tailrace run` is killed, the kernel kills the program, too. If it was killed before this call,
  // getppid() tells. The keeper still stores what the program has written.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != launcher) _exit(128 + SIGKILL);
  std::string patterns;
  for (const std::string& pattern : full_patterns(plan.patterns))
    patterns += (patterns.empty() ? "" : "\n") + pattern;
  const char* const before = std::getenv("LD_PRELOAD");
  setenv("LD_PRELOAD",
         before != nullptr && *before != '\0' ? (library + ":" + before).c_str() : library.c_str(), 1);
  setenv(socket_variable, name.c_str(), 1);
  setenv(patterns_variable, patterns.c_str(), 1);
  setenv(hello_variable, std::to_string(getpid()).c_str(), 1);
  std::vector<char*> arguments;
  for (const std::string& each : plan.command) arguments.push_back(const_cast<char*>(each.c_str()));
  arguments.push_back(nullptr);
  execv(path.c_str(), arguments.data());
  std::fprintf(stderr, "tailrace run: %s cannot be run: %s\n", path.c_str(), std::strerror(errno));
  _exit(126);
}

pid_t program = 0;
void pass_on(int signal) {
  if (program > 0) kill(program, signal);
}

/// Waits for the program. A terminal sends SIGINT and SIGQUIT to this process and to the program, so this
/// process ignores them. Other signals come to this process alone, which passes them on.
int wait_for_program() {
  for (const int signal : {SIGINT, SIGQUIT}) std::signal(signal, SIG_IGN);
  for (const int signal : {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCONT}) std::signal(signal, pass_on);
  int status = 0;
  while (waitpid(program, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

int launch(const Launch& given) {
  Launch plan = given;
  const std::string library = preload_path();
  if (library.empty())
    return complain(failed_exit,
                    "libtailrace_preload.so is not beside this command in ../lib: install it whole");
  if (const std::string why = several_nodes(); !why.empty())
    return complain(usage_exit, why +
                                    ": pages of several nodes would not be the same; on several nodes call "
                                    "tr_shared_open (docs/shared-files.md)");
  const std::string path = path_of_program(plan.command.front());
  if (path.empty()) return complain(not_found_exit, plan.command.front() + " is no program that can be run");
  if (const std::string why = obstacle_of(path); !why.empty()) return complain(usage_exit, why);
  if (!std::has_single_bit(plan.page) || plan.page < 4096 || plan.page > (std::uint64_t{64} << 20))
    return complain(usage_exit, "--page is a power of 2 from 4KiB to 64MiB");
  if (plan.memory != 0 && plan.memory < 8 * plan.page)
    return complain(usage_exit, "--memory holds 8 pages at least; give --page a smaller one");
  const std::string group = plan.group.empty() ? group_name() : "group-" + plan.group;
  if (group.empty())
    return complain(usage_exit,
                    "which ranks belong together is not known: they have PMI_RANK, and no "
                    "hydra_pmi_proxy among their parents; give all ranks of the job one --group");
  plan.group = "tailrace-run-" + std::to_string(geteuid()) + "-" + group;
  const std::string name = socket_name_of(plan.group);
  const int keeper = join_keeper(name, plan);
  if (keeper < 0) return failed_exit;
  const pid_t launcher = getpid();
  program = fork();
  if (program < 0) return complain(failed_exit, std::string("fork: ") + std::strerror(errno));
  if (program == 0) become_program(plan, path, name, library, launcher);
  const int code = wait_for_program();
  Answer answer;
  const int error = ask_keeper(keeper, Op::leave, answer);
  close(keeper);
  if (error == EPIPE)
    complain(failed_exit, "the keeper has ended early: what was not stored by then is lost");
  if (error == 0 && answer.file == 0)
    complain(failed_exit, path + " did not load " + library + ": nothing was taken over");
  return code == 0 && error != 0 ? failed_exit : code;
}

}  // namespace tailrace::run
