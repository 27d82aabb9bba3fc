// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "screen.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <string_view>

#include "words.hpp"

namespace tailrace::reports {

namespace {

// Handlers may only set these, and write a byte into the pipe: a signal between a look and the poll behind it
// ends that poll at once.
volatile std::sig_atomic_t ending_signal = 0, stop_asked = 0;
int pipe_ends[2] = {-1, -1};
constexpr std::array kCaught{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH, SIGCONT};
std::array<struct sigaction, kCaught.size()> handlers_before;

extern "C" void note_signal(int number) {
  const int error = errno;
  if (number == SIGTSTP) stop_asked = 1;
  const bool ends = number != SIGTSTP && number != SIGWINCH && number != SIGCONT;
  if (ends && ending_signal == 0) ending_signal = number;
  const char byte = 0;
  [[maybe_unused]] const auto written = ::write(pipe_ends[1], &byte, 1);
  errno = error;
}

void print(std::string_view text) {
  while (!text.empty()) {
    const auto written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR && ending_signal == 0) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

Signals::Signals() {
  ending_signal = 0;
  stop_asked = 0;
  if (::pipe2(pipe_ends, O_CLOEXEC | O_NONBLOCK) != 0) pipe_ends[0] = pipe_ends[1] = -1;
  struct sigaction action {};
  action.sa_handler = note_signal;
  for (std::size_t i = 0; i < kCaught.size(); ++i) {
    ::sigaction(kCaught[i], nullptr, &handlers_before[i]);
    // What was ignored stays so: nohup, and shells that start commands in the background.
    if (handlers_before[i].sa_handler != SIG_IGN) ::sigaction(kCaught[i], &action, nullptr);
  }
}

Signals::~Signals() {
  for (std::size_t i = 0; i < kCaught.size(); ++i) ::sigaction(kCaught[i], &handlers_before[i], nullptr);
  for (int& end : pipe_ends) {
    if (end >= 0) ::close(end);
    end = -1;
  }
}

int Signals::ending() { return ending_signal; }

bool Signals::take_stop() {
  const bool asked = stop_asked != 0;
  stop_asked = 0;
  return asked;
}

void Signals::wait(double seconds, bool reads) {
  std::array<pollfd, 2> waits{{{pipe_ends[0], POLLIN, 0}, {reads ? STDIN_FILENO : -1, POLLIN, 0}}};
  ::poll(waits.data(), waits.size(), static_cast<int>(seconds * 1000));
  std::array<char, 64> bytes{};
  while (::read(pipe_ends[0], bytes.data(), bytes.size()) > 0) {
  }
}

Screen::~Screen() { leave(); }

bool Screen::is_foreground() {
  // A terminal that is not the controlling one has no foreground for this process, and nobody takes it away.
  const pid_t group = ::tcgetpgrp(STDOUT_FILENO);
  return group < 0 || group == ::getpgrp();
}

bool Screen::is_ours() {
  if (!is_foreground()) {
    // The shell has taken the terminal, and has set it as it needs it.
    is_entered_ = has_keys_ = false;
    return false;
  }
  if (!is_entered_) enter();
  return true;
}

Screen::Size Screen::size() {
  winsize told{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &told) != 0 || told.ws_col == 0 || told.ws_row == 0) return {};
  return {std::max<std::size_t>(told.ws_col, 20), std::max<std::size_t>(told.ws_row, 4)};
}

void Screen::enter() {
  is_entered_ = true;
  // A command in the background may not change the terminal: it would be stopped.
  has_keys_ = ::isatty(STDIN_FILENO) != 0 && ::tcgetpgrp(STDIN_FILENO) == ::getpgrp() &&
              ::tcgetattr(STDIN_FILENO, &before_) == 0;
  if (has_keys_) {
    termios quiet = before_;
    quiet.c_lflag &= ~static_cast<tcflag_t>(ECHO | ICANON);
    quiet.c_cc[VMIN] = 0;
    quiet.c_cc[VTIME] = 0;
    has_keys_ = ::tcsetattr(STDIN_FILENO, TCSANOW, &quiet) == 0;
  }
  print("\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[H\x1b[J");  // alternate screen, no cursor, lines are not broken
}

void Screen::leave() {
  if (is_entered_ && is_foreground()) {
    print("\x1b[?7h\x1b[?25h\x1b[?1049l");
    if (has_keys_) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  is_entered_ = has_keys_ = false;
}

void Screen::draw(const std::vector<std::string>& lines) {
  const Size all = size();
  std::string text = "\x1b[H";
  for (std::size_t i = 0; i < std::min(lines.size(), all.rows); ++i) {
    if (i > 0) text += "\r\n";
    text += cut(lines[i], all.columns) + "\x1b[K";
  }
  print(text + "\x1b[J");
}

void Screen::stop() {
  leave();
  struct sigaction ours {};
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  ::sigaction(SIGTSTP, &usual, &ours);
  ::raise(SIGTSTP);  // returns once the shell lets the process go on
  ::sigaction(SIGTSTP, &ours, nullptr);
}

bool Screen::wants_to_quit() {
  std::array<char, 64> keys{};
  if (!has_keys()) return false;
  const auto count = ::read(STDIN_FILENO, keys.data(), keys.size());
  return count > 0 && std::find(keys.begin(), keys.begin() + count, 'q') != keys.begin() + count;
}

}  // namespace tailrace::reports
