// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// The bodies of the functions of tailrace.hpp. Include that one.
#ifndef TAILRACE_FACE_HPP
#define TAILRACE_FACE_HPP

#include <tailrace.hpp>

namespace tr {

inline Options& Options::set(std::string_view key, std::string_view value) {
  if (!text_.empty()) text_ += ' ';
  text_.append(key);
  text_ += '=';
  if (!value.empty() && value.find_first_of(" \t\n\"'") == std::string_view::npos) {
    text_.append(value);
    return *this;
  }
  text_ += '"';
  for (const char c : value) {
    if (c == '"') text_ += '"';
    text_ += c;
  }
  text_ += '"';
  return *this;
}

template <typename N>
std::string Options::decimal(N value) {
  if constexpr (std::is_integral_v<N>) {
    return std::to_string(value);
  } else {
    // The classic locale is used because others may put a decimal comma into the options string.
    std::string text;
    for (int digits = 1; digits <= std::numeric_limits<N>::max_digits10; ++digits) {
      std::ostringstream out;
      out.imbue(std::locale::classic());
      out.precision(digits);
      out << value;
      text = out.str();
      std::istringstream in(text);
      in.imbue(std::locale::classic());
      N again{};
      in >> again;
      if (again == value) break;
    }
    return text;
  }
}

inline Layout::Dims& Layout::Dims::match(const char* what, std::size_t given, bool optional) {
  if (given == entries || (optional && given == 0)) return *this;
  count = 0;
  remark = std::string(what) + " has " + std::to_string(given) + " entries, but shape has " +
           std::to_string(entries);
  return *this;
}

inline Result<Layout> Layout::made(const Dims& dims, int code, tr_layout* handle) {
  if (code != TR_OK) return Status(code, dims.remark);
  Layout layout;
  layout.handle_ = handle;
  layout.ndims_ = dims.count;
  return layout;
}

inline Result<Layout> Layout::block(const Indices& shape, const Indices& halo, const std::vector<int>& grid) {
  const Dims dims = Dims(shape).match("halo", halo.size(), true).match("grid", grid.size(), true);
  tr_layout* handle = nullptr;
  const int code = grid.empty()
                       ? tr_layout_block(dims.count, shape.data(), given(halo), &handle)
                       : tr_layout_block_grid(dims.count, shape.data(), given(halo), grid.data(), &handle);
  return made(dims, code, handle);
}

inline Result<Layout> Layout::block_cyclic(const Indices& shape, const Indices& block,
                                           const std::vector<int>& grid) {
  const Dims dims = Dims(shape).match("block", block.size()).match("grid", grid.size(), true);
  tr_layout* handle = nullptr;
  const int code = tr_layout_block_cyclic(dims.count, shape.data(), block.data(), given(grid), &handle);
  return made(dims, code, handle);
}

inline Result<Layout> Layout::weighted(const Indices& shape, const std::vector<std::vector<double>>& weights,
                                       const Indices& halo) {
  const Dims dims = Dims(shape).match("weights", weights.size()).match("halo", halo.size(), true);
  std::vector<int> grid;
  std::vector<const double*> rows;
  for (const std::vector<double>& row : weights) {
    grid.push_back(static_cast<int>(row.size()));
    rows.push_back(row.data());
  }
  tr_layout* handle = nullptr;
  const int code =
      tr_layout_weighted(dims.count, shape.data(), given(halo), grid.data(), rows.data(), &handle);
  return made(dims, code, handle);
}

inline Result<Layout> Layout::box(const Indices& shape, const Indices& lower, const Indices& upper,
                                  const Indices& halo) {
  const Dims dims =
      Dims(shape).match("lower", lower.size()).match("upper", upper.size()).match("halo", halo.size(), true);
  tr_layout* handle = nullptr;
  const int code = tr_layout_box(dims.count, shape.data(), given(halo), lower.data(), upper.data(), &handle);
  return made(dims, code, handle);
}

inline Result<Layout> Layout::boxes(const Indices& shape, const Indices& lower, const Indices& upper,
                                    const Indices& halo, bool unowned) {
  Dims dims = Dims(shape).match("halo", halo.size(), true);
  // With a negative number of boxes the library tells all ranks that the bounds do not fit.
  const bool fits = lower.size() == upper.size() && (shape.empty() || lower.size() % shape.size() == 0);
  if (!fits)
    dims.remark = "lower has " + std::to_string(lower.size()) + " entries and upper " +
                  std::to_string(upper.size()) + ", but both must have " + std::to_string(shape.size()) +
                  " for each box";
  const auto count = fits && !shape.empty() ? static_cast<Index>(lower.size() / shape.size()) : -1;
  tr_layout* handle = nullptr;
  const int code = tr_layout_boxes(dims.count, shape.data(), given(halo), count, lower.data(), upper.data(),
                                   unowned ? 1 : 0, &handle);
  return made(dims, code, handle);
}

inline Result<Layout> Layout::indexed(const Indices& shape, const Indices& indices, int base) {
  const Dims dims(shape);
  tr_layout* handle = nullptr;
  const int code = tr_layout_indexed(dims.count, shape.data(), static_cast<Index>(indices.size()),
                                     indices.data(), base, &handle);
  return made(dims, code, handle);
}

inline Result<Layout> Layout::replicated(const Indices& shape) {
  const Dims dims(shape);
  tr_layout* handle = nullptr;
  const int code = tr_layout_replicated(dims.count, shape.data(), &handle);
  return made(dims, code, handle);
}

inline Result<Layout> Layout::callback(const Indices& shape, const Owner& owner) {
  const Dims dims(shape);
  tr_layout* handle = nullptr;
  const auto call = [](const Index* index, void* context) {
    return (*static_cast<const Owner*>(context))(index);
  };
  const int code = tr_layout_callback(dims.count, shape.data(), call, const_cast<Owner*>(&owner), &handle);
  return made(dims, code, handle);
}

inline Result<Bounds> Layout::bounds(bool with_halo) const {
  const auto ndims = static_cast<std::size_t>(ndims_);
  Bounds bounds{Indices(ndims), Indices(ndims)};
  const int code = tr_layout_bounds(handle_, with_halo ? 1 : 0, bounds.lower.data(), bounds.upper.data());
  if (code != TR_OK) return Status(code);
  return bounds;
}

inline Result<Index> Layout::count() const {
  Index count = 0;
  const int code = tr_layout_count(handle_, &count);
  if (code != TR_OK) return Status(code);
  return count;
}

inline Result<Stream> Stream::create(const std::string& pattern, const Options& options) {
  Stream stream;
  const int code = tr_stream_create(pattern.c_str(), options.text().c_str(), &stream.handle_);
  if (code != TR_OK) return Status(code);
  return stream;
}

inline Result<Stream> Stream::configure(const std::string& file, const Options& options) {
  Stream stream;
  const int code = tr_streams_configure(file.c_str(), options.text().c_str(), &stream.handle_);
  if (code != TR_OK) return Status(code);
  return stream;
}

inline Result<Stream> Stream::open(const std::string& pattern, const Options& options) {
  Stream stream;
  const int code = tr_stream_open(pattern.c_str(), options.text().c_str(), &stream.handle_);
  if (code != TR_OK) return Status(code);
  return stream;
}

template <typename T>
Kept Stream::put(const std::string& field, const T* data, const Indices& extents, const Indices& strides) {
  // If there are more or fewer strides than extents, neither can be read: -1 dimensions make the library
  // refuse the call.
  const bool matched = strides.empty() || strides.size() == extents.size();
  const int code = tr_stream_put_array(handle_, field.c_str(), data, static_cast<int>(type_of<T>()),
                                       matched ? static_cast<int>(extents.size()) : -1, extents.data(),
                                       strides.empty() ? nullptr : strides.data());
  return Kept(code, matched ? "" : "strides and extents have different numbers of entries");
}

template <typename T>
Kept Stream::get(const std::string& field, T* data, const Indices& extents, const Indices& strides) {
  static_assert(type_of<T>() != Type::c64 && type_of<T>() != Type::c128, "no stream gives complex numbers");
  const bool matched = strides.empty() || strides.size() == extents.size();
  const int code = tr_stream_get_array(handle_, field.c_str(), data, static_cast<int>(type_of<T>()),
                                       matched ? static_cast<int>(extents.size()) : -1, extents.data(),
                                       strides.empty() ? nullptr : strides.data());
  return Kept(code, matched ? "" : "strides and extents have different numbers of entries");
}

}  // namespace tr

#endif
