// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// The C++ face of tailrace/checkpoints.h, which says what each call does. Included by tailrace.hpp; include
// that one.
#ifndef TAILRACE_CHECKPOINTS_HPP
#define TAILRACE_CHECKPOINTS_HPP

#include <tailrace.hpp>

namespace tr {

enum class Direction : int { save = TR_SAVE, load = TR_LOAD };
/// The state of the last save.
enum class SaveStatus : int {
  committed = TR_SAVE_COMMITTED,
  none = TR_SAVE_NONE,
  captured = TR_SAVE_CAPTURED,
  written = TR_SAVE_WRITTEN,
  failed = TR_SAVE_FAILED,
  dropped = TR_SAVE_DROPPED
};

/// The elements start[d], start[d] + stride[d], ... below stop[d], in global indices of dimension d. An empty
/// stride means every element.
struct Section {
  Indices start;
  Indices stop;
  Indices stride = {};
};

/// A variable of a checkpoint of the older form. Data and layout must live as long as the checkpoint.
struct Variable {
  template <typename T>
  Variable(std::string id, T& value) : Variable(std::move(id), &value, type_of<T>(), nullptr) {}
  template <typename T>
  Variable(std::string id, T* values, const Layout& grid)
      : Variable(std::move(id), values, type_of<T>(), grid.c_handle()) {}
  Variable(std::string id, void* at, Type element, const tr_layout* grid)
      : name(std::move(id)), data(at), type(element), layout(grid) {}

  std::string name;
  void* data;
  Type type;
  const tr_layout* layout;  // nullptr: a scalar
};

/// Named data that survives the run. end() reads or fills the data named by item(), which must stay there
/// until then.
class Checkpoint {
 public:
  Checkpoint() = default;
  Checkpoint(Checkpoint&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)),
        loading_(other.loading_),
        remark_(std::move(other.remark_)) {}
  Checkpoint& operator=(Checkpoint&& other) noexcept {
    handle_ = std::exchange(other.handle_, nullptr);
    loading_ = other.loading_;
    remark_ = std::move(other.remark_);
    return *this;
  }

  static Result<Checkpoint> create(const std::string& name, const Options& options = {});
  /// The older form: registered variables in `files`, or, if `files` is empty, in NAME.0 and NAME.1.
  static Result<Checkpoint> create_registered(const std::string& name, const std::vector<Variable>& variables,
                                              const std::vector<std::string>& files = {},
                                              const std::string& mode = "");

  /// Collective. When loading, returns true if there is something to load; when saving, false.
  Result<bool> begin(Direction direction);
  /// Names a scalar. The first rank's value is saved, and every rank gets it.
  template <typename T>
  void item(const std::string& name, T& value) {
    tr_checkpoint_item(handle_, name.c_str(), address(&value), code<T>(name), nullptr);
  }
  /// Not for temporaries, which would be gone before end().
  template <typename T>
  void item(const std::string& name, const T&& value) = delete;
  /// Names the caller's part of an array, allocated as its layout says. Const data can be saved, but not
  /// loaded.
  template <typename T>
  void item(const std::string& name, T* data, const Layout& layout) {
    tr_checkpoint_item(handle_, name.c_str(), address(data), code<T>(name), layout.c_handle());
  }
  /// Names an array of this shape (C order). `strides` are in bytes; empty if the array is contiguous.
  template <typename T>
  void item(const std::string& name, T* data, const Layout& layout, const Indices& extents,
            const Indices& strides = {});
  /// Names a section of an array that is allocated as its layout says.
  template <typename T>
  void item(const std::string& name, T* data, const Layout& layout, const Section& section);
  [[nodiscard]] Status end() { return told(tr_checkpoint_end(handle_)); }

  /// Collective. Has all later saves cover a file that the program writes without the library.
  [[nodiscard]] Status covers(const std::string& path) {
    return Status(tr_checkpoint_covers(handle_, path.c_str()));
  }
  /// Collective. A commit of all outputs without data. `restart` is the program's own restart file of this
  /// step, or "".
  [[nodiscard]] Status commit(std::int64_t step, const std::string& restart = "") {
    return Status(tr_checkpoint_commit(handle_, step, restart.c_str()));
  }
  /// Collective. Returns true, and sets `step`, if there is a commit from which the outputs go on.
  Result<bool> resume(std::int64_t& step);
  [[nodiscard]] Status wait() { return Status(tr_checkpoint_wait(handle_)); }
  [[nodiscard]] SaveStatus status() const { return static_cast<SaveStatus>(tr_checkpoint_status(handle_)); }
  [[nodiscard]] std::int64_t generation() const { return tr_checkpoint_generation(handle_); }
  [[nodiscard]] Status close() { return Status(tr_checkpoint_close(&handle_)); }
  [[nodiscard]] tr_checkpoint* c_handle() const { return handle_; }

  /// Collective. Save and load the registered variables, in the older form. load() returns true if there was
  /// something to load.
  [[nodiscard]] Status save(bool async) { return Status(tr_checkpoint_save(handle_, async ? 1 : 0)); }
  Result<bool> load();

 private:
  template <typename T>
  static void* address(T* data) {
    return const_cast<std::remove_const_t<T>*>(data);
  }
  /// Returns the type, or 0 if T cannot be filled; the library refuses 0 in end().
  template <typename T>
  int code(const std::string& name) {
    constexpr Type type = type_of<std::remove_const_t<T>>();
    return std::is_const_v<T> && loading_ ? refused(name, "is const, and cannot be loaded")
                                          : static_cast<int>(type);
  }
  int refused(const std::string& name, const char* why) {
    if (remark_.empty()) remark_ = name + " " + why;
    return 0;
  }
  Status told(int code) { return Status(code, std::exchange(remark_, {})); }

  tr_checkpoint* handle_ = nullptr;
  bool loading_ = false;
  std::string remark_;
};

/// Returns the seconds between saves with which the program loses least time. Both arguments are in seconds.
[[nodiscard]] inline double checkpoint_interval(double save, double failures) {
  return tr_checkpoint_interval(save, failures);
}

inline Result<Checkpoint> Checkpoint::create(const std::string& name, const Options& options) {
  Checkpoint made;
  const int code = tr_checkpoint_create(name.c_str(), options.text().c_str(), &made.handle_);
  if (code != TR_OK) return Status(code);
  return made;
}

inline Result<Checkpoint> Checkpoint::create_registered(const std::string& name,
                                                        const std::vector<Variable>& variables,
                                                        const std::vector<std::string>& files,
                                                        const std::string& mode) {
  std::vector<tr_variable> table;
  for (const Variable& v : variables) {
    table.push_back({v.name.c_str(), v.data, static_cast<int>(v.type), v.layout});
  }
  std::vector<const char*> paths;
  for (const std::string& file : files) paths.push_back(file.c_str());
  Checkpoint made;
  const int code = tr_checkpoint_create_registered(name.c_str(), table.data(), static_cast<int>(table.size()),
                                                   paths.data(), static_cast<int>(paths.size()), mode.c_str(),
                                                   &made.handle_);
  if (code != TR_OK) return Status(code);
  return made;
}

inline Result<bool> Checkpoint::begin(Direction direction) {
  int found = 0;
  loading_ = direction == Direction::load;
  remark_.clear();
  const int code = tr_checkpoint_begin(handle_, static_cast<int>(direction), &found);
  if (code != TR_OK) return Status(code);
  return found != 0;
}

inline Result<bool> Checkpoint::resume(std::int64_t& step) {
  int found = 0;
  const int code = tr_checkpoint_resume(handle_, &step, &found);
  if (code != TR_OK) return Status(code);
  return found != 0;
}

template <typename T>
void Checkpoint::item(const std::string& name, T* data, const Layout& layout, const Indices& extents,
                      const Indices& strides) {
  const bool matched = strides.empty() || strides.size() == extents.size();
  const int type = matched ? code<T>(name) : refused(name, "has strides and extents of different numbers");
  tr_checkpoint_item_shaped(handle_, name.c_str(), address(data), type, layout.c_handle(),
                            static_cast<int>(matched ? extents.size() : 0), extents.data(),
                            strides.empty() ? nullptr : strides.data());
}

template <typename T>
void Checkpoint::item(const std::string& name, T* data, const Layout& layout, const Section& section) {
  const auto ndims = static_cast<std::size_t>(layout.ndims());
  const bool matched = section.start.size() == ndims && section.stop.size() == ndims &&
                       (section.stride.empty() || section.stride.size() == ndims);
  // An array that does not match must not be read. It is passed as a whole array of a type that the library
  // refuses.
  tr_array array = {address(data), 0, layout.c_handle(), nullptr, nullptr, nullptr};
  if (matched) {
    array.type = code<T>(name);
    array.start = section.start.data();
    array.stop = section.stop.data();
    array.stride = section.stride.empty() ? nullptr : section.stride.data();
  } else {
    refused(name, "has a section of another number of dimensions than its layout");
  }
  tr_checkpoint_item_section(handle_, name.c_str(), &array);
}

inline Result<bool> Checkpoint::load() {
  int found = 0;
  const int code = tr_checkpoint_load(handle_, &found);
  if (code != TR_OK) return Status(code);
  return found != 0;
}

}  // namespace tr

#endif
