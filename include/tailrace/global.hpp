// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Global arrays in C++: tailrace/global.h says what each call does. Included by tailrace.hpp.
#ifndef TAILRACE_GLOBAL_HPP
#define TAILRACE_GLOBAL_HPP

#include <tailrace.hpp>

namespace tr {

enum class Lock : int { none = TR_UNLOCKED, page = TR_LOCKED };

/// An array of T in the memory of all ranks. Destroying the handle does not free the array: free() does, or
/// tr::finalize().
template <typename T>
class Global {
 public:
  /// Elements that lie in the caller's memory and follow one another in the array; none if count is 0.
  struct Page {
    T* values = nullptr;
    Index first = 0;
    Index count = 0;
  };

  Global() = default;
  Global(Global&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Global& operator=(Global&& other) noexcept {
    handle_ = std::exchange(other.handle_, nullptr);
    return *this;
  }

  static Result<Global> create(Index count, const Options& options = {}) {
    return made(
        [&](tr_global** into) { return tr_global_create(type(), count, options.text().c_str(), into); });
  }
  static Result<Global> create(MPI_Comm comm, Index count, const Options& options = {}) {
    return made([&](tr_global** into) {
      return tr_global_create_comm(comm, type(), count, options.text().c_str(), into);
    });
  }

  [[nodiscard]] Result<Index> count() const {
    Index count = 0;
    if (const int code = tr_global_count(handle_, &count)) return Status(code);
    return count;
  }

  [[nodiscard]] Status gather(Index n, const Index* indices, T* values) {
    return Status(tr_global_gather(handle_, n, indices, values));
  }
  /// Returns the elements of these numbers.
  [[nodiscard]] Result<std::vector<T>> gather(const Indices& indices) {
    std::vector<T> values(indices.size());
    const Status status = gather(static_cast<Index>(indices.size()), indices.data(), values.data());
    if (!status.is_ok()) return status;
    return values;
  }
  [[nodiscard]] Status scatter(Index n, const Index* indices, const T* values) {
    return Status(tr_global_scatter(handle_, n, indices, values));
  }
  [[nodiscard]] Status accumulate(Index n, const Index* indices, const T* values, Lock lock) {
    return Status(tr_global_accumulate(handle_, n, indices, values, static_cast<int>(lock)));
  }
  [[nodiscard]] Status read(Index begin, Index n, T* values) {
    return Status(tr_global_read(handle_, begin, n, values));
  }
  [[nodiscard]] Status write(Index begin, Index n, const T* values) {
    return Status(tr_global_write(handle_, begin, n, values));
  }
  [[nodiscard]] Result<Page> local(Index part) {
    Page page;
    void* values = nullptr;
    if (const int code = tr_global_local(handle_, part, &values, &page.first, &page.count))
      return Status(code);
    page.values = static_cast<T*>(values);
    return page;
  }

  [[nodiscard]] Status sync() { return Status(tr_global_sync(handle_)); }
  [[nodiscard]] Status resize(Index count) { return Status(tr_global_resize(handle_, count)); }
  [[nodiscard]] Status free() { return Status(tr_global_free(&handle_)); }
  [[nodiscard]] tr_global* c_handle() const { return handle_; }

 private:
  static int type() { return static_cast<int>(type_of<T>()); }
  template <typename Make>
  static Result<Global> made(const Make& make) {
    Global global;
    if (const int code = make(&global.handle_)) return Status(code);
    return global;
  }

  tr_global* handle_ = nullptr;
};

}  // namespace tr

#endif
