// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// The C++17 face of tailrace.h, call by call. tailrace.h says what each call does, and whether it is
// collective. Nothing throws except std::bad_alloc. Handles are values that can be moved. Destroying a handle
// neither communicates nor closes or frees its object: call Stream::close(), Checkpoint::close(),
// Shared::close(), Global::free() and Layout::free(), or leave that to tr::finalize().
#ifndef TAILRACE_HPP
#define TAILRACE_HPP

#include <tailrace.h>

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <locale>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace tr {

using Index = tr_index;
using Indices = std::vector<Index>;

enum class Code : int {
  ok = TR_OK,
  argument = TR_ERR_ARGUMENT,
  settings = TR_ERR_SETTINGS,
  state = TR_ERR_STATE,
  order = TR_ERR_ORDER,
  layout = TR_ERR_LAYOUT,
  format = TR_ERR_FORMAT,
  data = TR_ERR_DATA,
  io = TR_ERR_IO,
  space = TR_ERR_SPACE,
  memory = TR_ERR_MEMORY,
  mpi = TR_ERR_MPI,
  timeout = TR_ERR_TIMEOUT,
  unsupported = TR_ERR_UNSUPPORTED,
  corrupt = TR_ERR_CORRUPT
};
enum class Type : int {
  i8 = TR_I8,
  i16 = TR_I16,
  i32 = TR_I32,
  i64 = TR_I64,
  f32 = TR_F32,
  f64 = TR_F64,
  c64 = TR_C64,
  c128 = TR_C128,
  byte = TR_BYTE,
  u8 = TR_U8,
  u16 = TR_U16,
  u32 = TR_U32,
  u64 = TR_U64
};
enum class Event : int { captured = TR_CAPTURED, durable = TR_DURABLE };

/// Success, or an error: a code and its text.
class [[nodiscard]] Status {
 public:
  Status() = default;
  explicit Status(int code) : code_(static_cast<Code>(code)), text_(code == TR_OK ? "" : tr_error()) {}
  Status(int code, const std::string& remark) : Status(code) {
    if (!is_ok() && !remark.empty()) text_ += " (" + remark + ")";
  }
  [[nodiscard]] bool is_ok() const { return code_ == Code::ok; }
  [[nodiscard]] Code code() const { return code_; }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  Code code_ = Code::ok;
  std::string text_;
};

/// The result of calls between Stream::begin and Stream::end. It may be ignored, because the error is kept
/// for Stream::end.
struct Kept : Status {
  using Status::Status;
};

/// A value, or the status that says why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Status error) : status_(std::move(error)) {}
  [[nodiscard]] bool is_ok() const { return value_.has_value(); }
  [[nodiscard]] const Status& status() const { return status_; }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T&& operator*() && { return *std::move(value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

/// Returns the type of texts of `bytes` bytes, 1 to 4096.
constexpr Type text(int bytes) { return static_cast<Type>(TR_TEXT(bytes)); }

/// The length of a T that is a text, std::array<char, N>; 0 for other types.
template <typename T>
inline constexpr int text_bytes = 0;
template <std::size_t N>
inline constexpr int text_bytes<std::array<char, N>> = static_cast<int>(N);

/// Returns the element type of arrays of T.
template <typename T>
constexpr Type type_of() {
  if (text_bytes<T> != 0) return text(text_bytes<T>);
  if (std::is_same_v<T, float>) return Type::f32;
  if (std::is_same_v<T, double>) return Type::f64;
  if (std::is_same_v<T, std::complex<float>>) return Type::c64;
  if (std::is_same_v<T, std::complex<double>>) return Type::c128;
  if (std::is_same_v<T, std::byte>) return Type::byte;
  constexpr bool known = (std::is_integral_v<T> && !std::is_same_v<T, bool>) || std::is_floating_point_v<T> ||
                         std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>> ||
                         std::is_same_v<T, std::byte> || (text_bytes<T> != 0 && text_bytes<T> <= 4096);
  static_assert(known,
                "elements are integers, float, double, their complex numbers, std::byte, or texts of up to "
                "4096 bytes as std::array<char, N>");
  static_assert(!std::is_same_v<T, long double>, "no format holds long double");
  if (std::is_unsigned_v<T>)
    return sizeof(T) == 1 ? Type::u8 : sizeof(T) == 2 ? Type::u16 : sizeof(T) == 4 ? Type::u32 : Type::u64;
  return sizeof(T) == 1 ? Type::i8 : sizeof(T) == 2 ? Type::i16 : sizeof(T) == 4 ? Type::i32 : Type::i64;
}

/// An options string, given as a whole or key by key: Options().set("levels", "surface").set("accuracy",
/// 0.01).
class Options {
 public:
  Options() = default;
  Options(const char* text) : text_(text ? text : "") {}
  Options(std::string text) : text_(std::move(text)) {}

  /// Sets a key. Quotes the value if needed.
  Options& set(std::string_view key, std::string_view value);
  /// Sets a key to a number, in the shortest decimal form that reads back to the same number.
  template <typename N, typename = std::enable_if_t<std::is_arithmetic_v<N> && !std::is_same_v<N, bool>>>
  Options& set(std::string_view key, N value) {
    return set(key, std::string_view(decimal(value)));
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  template <typename N>
  static std::string decimal(N value);
  std::string text_;
};

[[nodiscard]] inline Status init(MPI_Comm world, MPI_Comm& compute, const Options& options = {}) {
  return Status(tr_init(world, &compute, options.text().c_str()));
}
[[nodiscard]] inline Status finalize() { return Status(tr_finalize()); }
inline void log(const std::string& message) { tr_log(message.c_str()); }
[[nodiscard]] inline Status progress() { return Status(tr_progress()); }
/// Collective; blocks until all ranks have called it. True, the same on every rank, once the program should
/// save and stop.
[[nodiscard]] inline bool should_stop() { return tr_should_stop() != 0; }
[[nodiscard]] inline std::string version() { return tr_version(); }

struct Bounds {
  Indices lower;  // first
  Indices upper;  // one past the last
};

/// A layout says which rank owns which elements of a global array, and where they lie in its memory. Shapes
/// are in C order (slowest first), and indices start at 0.
class Layout {
 public:
  using Owner = std::function<int(const Index*)>;

  Layout() = default;
  Layout(Layout&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)), ndims_(std::exchange(other.ndims_, 0)) {}
  Layout& operator=(Layout&& other) noexcept {
    handle_ = std::exchange(other.handle_, nullptr);
    ndims_ = std::exchange(other.ndims_, 0);
    return *this;
  }

  static Result<Layout> block(const Indices& shape, const Indices& halo = {},
                              const std::vector<int>& grid = {});
  static Result<Layout> block_cyclic(const Indices& shape, const Indices& block,
                                     const std::vector<int>& grid = {});
  /// `weights[d]` has one entry for each processor coordinate of dimension d.
  static Result<Layout> weighted(const Indices& shape, const std::vector<std::vector<double>>& weights,
                                 const Indices& halo = {});
  static Result<Layout> box(const Indices& shape, const Indices& lower, const Indices& upper,
                            const Indices& halo = {});
  /// `lower` and `upper` have the bounds of one box after another. tr_layout_boxes has the contract.
  static Result<Layout> boxes(const Indices& shape, const Indices& lower, const Indices& upper,
                              const Indices& halo = {}, bool unowned = false);
  static Result<Layout> indexed(const Indices& shape, const Indices& indices, int base = 0);
  /// With {} as shape: the layout of scalars.
  static Result<Layout> replicated(const Indices& shape);
  static Result<Layout> callback(const Indices& shape, const Owner& owner);

  [[nodiscard]] Status georeference(const Options& options) {
    return Status(tr_layout_georeference(handle_, options.text().c_str()));
  }
  /// Collective. Names the dimensions, slowest first: "z,x". tr_layout_dimensions has the contract.
  [[nodiscard]] Status dimensions(const std::string& names) {
    return Status(tr_layout_dimensions(handle_, names.c_str()));
  }
  /// Collective. Gives a named dimension its coordinate, and perhaps its bounds, two for each value.
  /// tr_layout_axis has the contract.
  template <typename T>
  [[nodiscard]] Status axis(const std::string& dimension, const std::vector<T>& values,
                            const Options& options = {}, const std::vector<T>& bounds = {}) {
    // With -1 the library tells all ranks that the bounds do not fit.
    const bool fits = bounds.empty() || bounds.size() == 2 * values.size();
    return Status(tr_layout_axis(handle_, dimension.c_str(), static_cast<int>(type_of<T>()),
                                 fits ? static_cast<Index>(values.size()) : -1, values.data(),
                                 bounds.empty() ? nullptr : bounds.data(), options.text().c_str()));
  }
  /// Collective. Gives the coordinates of the points, in arrays allocated as the layout says (halo). With
  /// `corners`, the same on all ranks, it also gives the corners of each cell, side by side and anticlockwise
  /// as seen from above. tr_layout_coordinates has the contract.
  [[nodiscard]] Status coordinates(const double* latitudes, const double* longitudes, int corners = 0,
                                   const double* latitude_bounds = nullptr,
                                   const double* longitude_bounds = nullptr) {
    return Status(
        tr_layout_coordinates(handle_, latitudes, longitudes, corners, latitude_bounds, longitude_bounds));
  }
  [[nodiscard]] Result<Bounds> bounds(bool with_halo = true) const;
  [[nodiscard]] Result<Index> count() const;
  [[nodiscard]] int ndims() const { return ndims_; }
  Status free() { return Status(tr_layout_free(&handle_)); }
  [[nodiscard]] tr_layout* c_handle() const { return handle_; }

 private:
  /// The number of dimensions. It is 0 if an array does not match the shape: the library then refuses the
  /// call on every rank.
  struct Dims {
    explicit Dims(const Indices& shape) : count(static_cast<int>(shape.size())), entries(shape.size()) {}
    Dims& match(const char* what, std::size_t given, bool optional = false);
    int count;
    std::size_t entries;
    std::string remark;
  };
  template <typename T>
  static const T* given(const std::vector<T>& values) {
    return values.empty() ? nullptr : values.data();
  }
  static Result<Layout> made(const Dims& dims, int code, tr_layout* handle);

  tr_layout* handle_ = nullptr;
  int ndims_ = 0;
};

/// Time-ordered fields in a standard format, written or read.
class Stream {
 public:
  Stream() = default;
  Stream(Stream&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Stream& operator=(Stream&& other) noexcept {
    handle_ = std::exchange(other.handle_, nullptr);
    return *this;
  }

  static Result<Stream> create(const std::string& pattern, const Options& options);
  /// Collective. Makes the streams of a description; the result stands for all of them. tr_streams_configure
  /// has the contract.
  static Result<Stream> configure(const std::string& file, const Options& options = {});
  /// Opens files for reading. The calls that follow are define, begin, get, end, seek and close.
  static Result<Stream> open(const std::string& pattern, const Options& options = {});
  [[nodiscard]] Status define(const std::string& field, const Layout& layout, Type type,
                              const Options& options = {}) {
    return Status(tr_stream_define(handle_, field.c_str(), layout.c_handle(), static_cast<int>(type),
                                   options.text().c_str()));
  }
  template <typename T>
  [[nodiscard]] Status define(const std::string& field, const Layout& layout, const Options& options = {}) {
    return define(field, layout, type_of<T>(), options);
  }

  /// Collective. Gives an attribute to a field or to a dimension, in the type of its numbers. With `of` = ""
  /// it is of each file. tr_stream_attribute has the contract.
  template <typename T>
  [[nodiscard]] Status attribute(const std::string& of, const std::string& name,
                                 const std::vector<T>& values) {
    return Status(tr_stream_attribute(handle_, of.c_str(), name.c_str(), static_cast<int>(type_of<T>()),
                                      static_cast<Index>(values.size()), values.data()));
  }
  template <typename T>
  [[nodiscard]] Status attribute(const std::string& of, const std::string& name,
                                 std::initializer_list<T> values) {
    return attribute(of, name, std::vector<T>(values));
  }
  template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T> || std::is_same_v<T, std::byte>>>
  [[nodiscard]] Status attribute(const std::string& of, const std::string& name, T value) {
    return attribute(of, name, std::vector<T>{value});
  }
  [[nodiscard]] Status attribute(const std::string& of, const std::string& name, const std::string& text) {
    return Status(tr_stream_attribute_text(handle_, of.c_str(), name.c_str(), text.c_str()));
  }
  [[nodiscard]] Status attribute(const std::string& of, const std::string& name, const char* text) {
    return Status(tr_stream_attribute_text(handle_, of.c_str(), name.c_str(), text));
  }

  Kept begin(std::int64_t lead) { return Kept(tr_stream_begin(handle_, lead)); }
  /// Begins the step at a time of the model, in a stream with time=model.
  Kept begin_at(double time) { return Kept(tr_stream_begin_at(handle_, time)); }
  /// Puts an array that is allocated as layout and definition say. A field with time=none is put once, before
  /// the first step: collective, see tr_stream_put.
  Kept put(const std::string& field, const void* data) {
    return Kept(tr_stream_put(handle_, field.c_str(), data));
  }
  /// Puts an array of this type and shape (C order, level axis included). `strides` are in bytes; empty if
  /// the array is contiguous.
  template <typename T>
  Kept put(const std::string& field, const T* data, const Indices& extents, const Indices& strides = {});
  /// Local. False if a put of the field would go nowhere: tr_stream_wants.
  [[nodiscard]] bool wants(const std::string& field) const {
    return tr_stream_wants(handle_, field.c_str()) != 0;
  }
  /// Fills an array that is allocated as layout and definition say.
  Kept get(const std::string& field, void* data) { return Kept(tr_stream_get(handle_, field.c_str(), data)); }
  /// Fills an array of this type and shape, described as for put() above.
  template <typename T>
  Kept get(const std::string& field, T* data, const Indices& extents, const Indices& strides = {});
  [[nodiscard]] Status seek(std::int64_t lead_seconds) {
    return Status(tr_stream_seek(handle_, lead_seconds));
  }
  [[nodiscard]] Status end() { return Status(tr_stream_end(handle_)); }
  [[nodiscard]] Status wait(Event event) { return Status(tr_stream_wait(handle_, static_cast<int>(event))); }
  [[nodiscard]] Status close() { return Status(tr_stream_close(&handle_)); }
  [[nodiscard]] tr_stream* c_handle() const { return handle_; }

 private:
  tr_stream* handle_ = nullptr;
};

}  // namespace tr

#include <tailrace/checkpoints.hpp>
#include <tailrace/encoders.hpp>
#include <tailrace/face.hpp>
#include <tailrace/global.hpp>
#include <tailrace/shared.hpp>

#endif
