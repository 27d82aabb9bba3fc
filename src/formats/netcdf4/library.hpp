// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <hdf5.h>

#include <mutex>
#include <string>
#include <utility>

#include "ground/base/status.hpp"
#include "ground/base/text.hpp"

// The mutex, handles and errors for all code that calls the HDF5 library.
namespace tailrace::netcdf4 {

/// Returns the mutex that a thread holds while it calls the HDF5 library. The library has one lock for all
/// its calls, and in some builds none.
inline std::mutex& library_mutex() {
  static std::mutex mutex;
  return mutex;
}

/// An object of the library. The destructor closes it.
class Handle {
 public:
  Handle() = default;
  Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  ~Handle() { close(); }
  herr_t close() { return id_ < 0 ? -1 : close_(std::exchange(id_, -1)); }
  [[nodiscard]] hid_t id() const { return id_; }
  [[nodiscard]] bool is_ok() const { return id_ >= 0; }

 private:
  hid_t id_ = -1;
  herr_t (*close_)(hid_t) = nullptr;
};

/// Keeps the library from printing its errors. The destructor restores the handler of errors that the program
/// had set. Handlers of the older kind need calls of their own, since H5Eget_auto2 does not return them.
class Quiet {
 public:
  Quiet() {
#ifndef H5_NO_DEPRECATED_SYMBOLS
    unsigned is_new = 1;
    H5Eauto_is_v2(H5E_DEFAULT, &is_new);
    is_old_ = is_new == 0;
    if (is_old_)
      H5Eget_auto1(&old_function_, &data_);
    else
#endif
      H5Eget_auto2(H5E_DEFAULT, &function_, &data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  ~Quiet() {
#ifndef H5_NO_DEPRECATED_SYMBOLS
    if (is_old_)
      H5Eset_auto1(old_function_, data_);
    else
#endif
      H5Eset_auto2(H5E_DEFAULT, function_, data_);
  }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

 private:
#ifndef H5_NO_DEPRECATED_SYMBOLS
  H5E_auto1_t old_function_ = nullptr;
  bool is_old_ = false;
#endif
  H5E_auto2_t function_ = nullptr;
  void* data_ = nullptr;
};

inline herr_t take_text(unsigned, const H5E_error2_t* error, void* to) {
  *static_cast<std::string*>(to) = error->desc == nullptr ? "" : error->desc;
  return 1;  // stops after the first error, which is the innermost
}

/// Returns Code::format with the innermost error that the library has recorded. `what` says what the library
/// should do.
[[nodiscard]] inline Status failed(std::string_view what) {
  std::string why;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_text, &why);
  if (why.empty()) why = "it gave no reason";
  return {Code::format, cat("the HDF5 library failed to ", what, ": ", why)};
}

}  // namespace tailrace::netcdf4
