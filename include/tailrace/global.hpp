// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Global arrays in C++: tailrace/global.h says what each call does. Included by tailrace.hpp.
#ifndef TAILRACE_GLOBAL_HPP
#define TAILRACE_GLOBAL_HPP

#include <tailrace.hpp>

namespace tr {

/// How Global::accumulate adds.
enum class Lock : int { none = TR_UNLOCKED, page = TR_LOCKED };

/// An array of T in the memory of all ranks. Destroying the handle does not free the array: free() or
/// tr::finalize() does. Each member says whether it is collective. It waits and fails as the call of
/// tailrace/global.h that it names. Collective members return the same Status on every rank.
template <typename T>
class Global {
 public:
  /// A page: elements in the caller's memory that follow one another in the array. If count is 0, there are
  /// none.
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

  /// Collective over the compute ranks; blocks as tr_global_create. The elements are zeros.
  static Result<Global> create(Index count, const Options& options = {}) {
    return made(
        [&](tr_global** into) { return tr_global_create(type(), count, options.text().c_str(), into); });
  }
  /// Collective over `comm`; blocks as tr_global_create_comm.
  static Result<Global> create(MPI_Comm comm, Index count, const Options& options = {}) {
    return made([&](tr_global** into) {
      return tr_global_create_comm(comm, type(), count, options.text().c_str(), into);
    });
  }

  /// Local; waits for nobody: tr_global_count.
  [[nodiscard]] Result<Index> count() const {
    Index count = 0;
    if (const int code = tr_global_count(handle_, &count)) return Status(code);
    return count;
  }

  /// Local: tr_global_gather. Waits for the owners of elements on other nodes.
  [[nodiscard]] Status gather(Index n, const Index* indices, T* values) {
    return Status(tr_global_gather(handle_, n, indices, values));
  }
  /// Local; waits as the other gather(). Returns the elements with these numbers.
  [[nodiscard]] Result<std::vector<T>> gather(const Indices& indices) {
    std::vector<T> values(indices.size());
    const Status status = gather(static_cast<Index>(indices.size()), indices.data(), values.data());
    if (!status.is_ok()) return status;
    return values;
  }
  /// Local: tr_global_scatter. Waits only while too much is on its way to other nodes.
  [[nodiscard]] Status scatter(Index n, const Index* indices, const T* values) {
    return Status(tr_global_scatter(handle_, n, indices, values));
  }
  /// Local: tr_global_accumulate. Waits as scatter(). With Lock::page it also waits for ranks of the node
  /// that add to the same page.
  [[nodiscard]] Status accumulate(Index n, const Index* indices, const T* values, Lock lock) {
    return Status(tr_global_accumulate(handle_, n, indices, values, static_cast<int>(lock)));
  }
  /// Local: tr_global_read. Waits as gather().
  [[nodiscard]] Status read(Index begin, Index n, T* values) {
    return Status(tr_global_read(handle_, begin, n, values));
  }
  /// Local: tr_global_write. Waits as scatter().
  [[nodiscard]] Status write(Index begin, Index n, const T* values) {
    return Status(tr_global_write(handle_, begin, n, values));
  }
  /// Local; waits for nobody: tr_global_local. After the caller's last page the count is 0.
  [[nodiscard]] Result<Page> local(Index part) {
    Page page;
    void* values = nullptr;
    if (const int code = tr_global_local(handle_, part, &values, &page.first, &page.count))
      return Status(code);
    page.values = static_cast<T*>(values);
    return page;
  }

  /// Collective; blocks until all ranks have called it: tr_global_sync.
  [[nodiscard]] Status sync() { return Status(tr_global_sync(handle_)); }
  /// Collective; blocks until all ranks have called it: tr_global_resize. `count` is a number of elements.
  [[nodiscard]] Status resize(Index count) { return Status(tr_global_resize(handle_, count)); }
  /// Collective; blocks until all ranks have called it: tr_global_free. The handle is gone, whatever is
  /// returned.
  [[nodiscard]] Status free() { return Status(tr_global_free(&handle_)); }
  /// Local. Returns the handle for the C face. This object keeps it.
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
