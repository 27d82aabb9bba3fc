// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// The terminal that `top` draws on, and the signals that end or interrupt it.
#pragma once

#include <termios.h>

#include <cstddef>
#include <string>
#include <vector>

namespace tailrace::reports {

/// The signals that end a command (SIGINT, SIGTERM, SIGHUP, SIGQUIT), and those that a terminal sends
/// (SIGTSTP, SIGWINCH), as long as the object lives; at most one does. It catches them, and the command
/// looks.
class Signals {
 public:
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  /// Returns the signal that ends the command, or 0.
  [[nodiscard]] static int ending();
  /// Returns true once for each SIGTSTP.
  [[nodiscard]] static bool take_stop();
  /// Blocks for so long, until a signal comes, or until standard input has something, if `reads`.
  static void wait(double seconds, bool reads);
};

/// Takes a terminal over while the process is in its foreground: the alternate screen, no cursor, no echo.
/// The destructor gives it back as it was.
class Screen {
 public:
  Screen() = default;
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  struct Size {
    std::size_t columns = 80;
    std::size_t rows = 24;
  };
  [[nodiscard]] static Size size();
  /// Returns true if the process is in the foreground of the terminal; then it has the terminal from now on.
  /// In the background it must not draw: a shell or another command does.
  [[nodiscard]] bool is_ours();
  /// Draws the lines from the top; what does not fit is left out. Call it while is_ours().
  void draw(const std::vector<std::string>& lines);
  /// Gives the terminal back, and stops this process as the shell expects it. Once the process goes on,
  /// is_ours() takes the terminal over again.
  void stop();
  /// Returns true if the keys that were pressed have a q among them.
  [[nodiscard]] bool wants_to_quit();
  [[nodiscard]] bool has_keys() const { return has_keys_ && is_foreground(); }

 private:
  [[nodiscard]] static bool is_foreground();
  void enter();
  void leave();
  termios before_{};
  bool is_entered_ = false;
  bool has_keys_ = false;
};

}  // namespace tailrace::reports
