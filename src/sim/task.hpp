// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <coroutine>
#include <optional>
#include <utility>

namespace tailrace::sim {

template <typename T>
class Task;

namespace detail {

/// Both kinds of promise share this: a task begins when it is awaited and then goes back to its awaiter.
struct PromiseBase {
  std::coroutine_handle<> continuation = std::noop_coroutine();
  std::suspend_always initial_suspend() noexcept { return {}; }
  struct Final {
    bool await_ready() noexcept { return false; }
    template <typename Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> task) noexcept {
      return task.promise().continuation;
    }
    void await_resume() noexcept {}
  };
  Final final_suspend() noexcept { return {}; }
  // Leaves through the scheduler, so that a test sees an exception of the code under test.
  void unhandled_exception() { throw; }
};

template <typename T>
struct Promise : PromiseBase {
  std::optional<T> value;
  Task<T> get_return_object();
  void return_value(T result) { value.emplace(std::move(result)); }
  T take() { return std::move(*value); }
};

template <>
struct Promise<void> : PromiseBase {
  Task<void> get_return_object();
  void return_void() {}
  void take() {}
};

}  // namespace detail

/// A piece of a simulated rank's program: a function that may stop at any `co_await` while others run.
template <typename T = void>
class [[nodiscard]] Task {
 public:
  using promise_type = detail::Promise<T>;
  using Handle = std::coroutine_handle<promise_type>;

  Task() = default;
  explicit Task(Handle handle) : handle_(handle) {}
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Task() {
    if (handle_) handle_.destroy();
  }

  [[nodiscard]] bool is_done() const { return !handle_ || handle_.done(); }
  [[nodiscard]] std::coroutine_handle<> handle() const { return handle_; }

  bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiting) noexcept {
    handle_.promise().continuation = awaiting;
    return handle_;
  }
  T await_resume() { return handle_.promise().take(); }

 private:
  Handle handle_ = nullptr;
};

namespace detail {

template <typename T>
Task<T> Promise<T>::get_return_object() {
  return Task<T>(std::coroutine_handle<Promise<T>>::from_promise(*this));
}
inline Task<void> Promise<void>::get_return_object() {
  return Task<void>(std::coroutine_handle<Promise<void>>::from_promise(*this));
}

}  // namespace detail

}  // namespace tailrace::sim
