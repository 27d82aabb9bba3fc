// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "base/text.hpp"
#include "sinks/sink.hpp"

namespace tailrace::sinks {

namespace {

// These filters are lossless: a container that holds decoded values has nothing to do for them.
constexpr std::array<std::string_view, 4> known_filters{"shuffle", "deflate", "zstd", "fletcher32"};

std::string text_of(const std::vector<Index>& extents) {
  std::string text = "[";
  for (const Index extent : extents) text += cat(text.size() > 1 ? "," : "", extent);
  return text + "]";
}

/// Returns the product, or -1 if it does not fit 63 bits or a factor is negative.
Index product(const std::vector<Index>& extents, Index factor) {
  for (const Index extent : extents) {
    if (extent < 0 || __builtin_mul_overflow(factor, extent, &factor)) return -1;
  }
  return factor;
}

class MemoryContainer final : public ContainerSink {
 public:
  MemoryContainer(std::shared_ptr<MemoryShelf> shelf, std::string name)
      : shelf_(std::move(shelf)), name_(std::move(name)) {}

  Result<int> define(const Variable& variable) override {
    TR_TRY(check_open("define"));
    TR_TRY(check_definition(variable).in(cat("define ", variable.name, " in ", name_)));
    MemoryVariable added{variable, {}, {}};
    if (grows(variable)) added.definition.shape.front() = 0;
    const Index bytes = product(added.definition.shape, size_of(variable.type));
    TR_TRY(guarded([&] {
      added.bytes.resize(static_cast<std::size_t>(bytes));
      variables_.push_back({std::move(added), grows(variable)});
      return Status();
    }));
    return static_cast<int>(variables_.size()) - 1;
  }

  Status apply(int number, const Hyperslab& box, TypedView values, const Filters& filters) override {
    TR_TRY(check_open("apply"));
    if (number < 0 || number >= static_cast<int>(variables_.size())) {
      return {Code::argument, cat("apply to ", name_, ": no variable has the number ", number, ", ",
                                  variables_.size(), " are defined")};
    }
    Held& held = variables_[static_cast<std::size_t>(number)];
    const std::string context = cat("apply to ", held.contents.definition.name, " in ", name_);
    TR_TRY(check_box(held, box, values).in(context));
    TR_TRY(check_filters(held, filters).in(context));
    defining_ = false;
    held.used = true;
    held.contents.filters = filters;
    return guarded([&] {
             if (held.grows && !values.bytes.empty())
               grow(held.contents, box.start.front() + box.count.front());
             copy(held.contents, box, values.bytes);
             return Status();
           })
        .in(context);
  }

  Status commit() override {
    TR_TRY(check_open("commit"));
    open_ = false;
    std::vector<MemoryVariable> contents;
    for (Held& held : variables_) contents.push_back(std::move(held.contents));
    shelf_->publish(name_, std::move(contents));
    return {};
  }

 private:
  struct Held {
    MemoryVariable contents;
    bool grows = false;
    bool used = false;
  };

  static bool grows(const Variable& variable) {
    return !variable.shape.empty() && variable.shape.front() == unlimited;
  }

  Status check_open(const char* operation) const {
    if (open_) return {};
    return {Code::state, cat(operation, " ", name_, ": the container is committed")};
  }

  Status check_definition(const Variable& variable) const {
    if (!defining_) return {Code::state, "every variable must be defined before the first apply"};
    if (variable.name.empty()) return {Code::argument, "a variable needs a name"};
    if (size_of(variable.type) == 0) return {Code::argument, "no such element type"};
    for (const Held& held : variables_) {
      if (held.contents.definition.name == variable.name) return {Code::argument, "the name is taken"};
    }
    std::vector<Index> shape = variable.shape;
    if (grows(variable)) shape.front() = 1;
    if (product(shape, size_of(variable.type)) >= 0) return {};
    return {Code::argument,
            cat("shape ", text_of(variable.shape),
                ": extents are 0 or more, the first may be unlimited, and the bytes must fit 63 bits")};
  }

  static Status check_box(const Held& held, const Hyperslab& box, TypedView values) {
    const Variable& variable = held.contents.definition;
    const auto& shape = variable.shape;
    bool inside = box.start.size() == shape.size() && box.count.size() == shape.size();
    for (std::size_t i = 0; inside && i < shape.size(); ++i) {
      const Index extent = held.grows && i == 0 ? std::numeric_limits<Index>::max() : shape[i];
      inside = box.start[i] >= 0 && box.count[i] >= 0 && box.count[i] <= extent - box.start[i];
    }
    if (!inside) {
      return {Code::argument, cat("box ", text_of(box.start), " + ", text_of(box.count),
                                  " is not inside of shape ", text_of(shape))};
    }
    if (values.type != variable.type) {
      return {Code::argument, cat("expected ", name_of(variable.type), ", got ", name_of(values.type))};
    }
    const Index bytes = product(box.count, size_of(variable.type));
    if (bytes == static_cast<Index>(values.bytes.size())) return {};
    return {Code::argument, cat("expected ", bytes, " bytes for the box ", text_of(box.count), ", got ",
                                values.bytes.size())};
  }

  static Status check_filters(const Held& held, const Filters& filters) {
    if (held.used && filters != held.contents.filters) {
      return {Code::argument,
              "the filters differ from those of the variable's first apply, which fixed them"};
    }
    for (const Filter& filter : filters) {
      if (std::find(known_filters.begin(), known_filters.end(), filter.name) != known_filters.end()) continue;
      return {Code::unsupported, cat("no filter is called \"", filter.name, "\"; did you mean \"",
                                     nearest(filter.name, known_filters), "\"?")};
    }
    return {};
  }

  static void grow(MemoryVariable& variable, Index extent) {
    auto& shape = variable.definition.shape;
    if (extent <= shape.front()) return;
    std::vector<Index> grown = shape;
    grown.front() = extent;
    const Index bytes = product(grown, size_of(variable.definition.type));
    if (bytes < 0) throw std::bad_alloc();  // more than 63 bits can name
    variable.bytes.resize(static_cast<std::size_t>(bytes));
    shape = std::move(grown);
  }

  /// Copies the box row by row. A row is contiguous in the last dimension.
  static void copy(MemoryVariable& variable, const Hyperslab& box, std::span<const std::byte> values) {
    if (values.empty()) return;
    const auto& shape = variable.definition.shape;
    const auto element = static_cast<std::size_t>(size_of(variable.definition.type));
    const std::size_t row = element * static_cast<std::size_t>(box.count.empty() ? 1 : box.count.back());
    std::vector<Index> at(shape.size(), 0);
    for (; !values.empty(); values = values.subspan(row)) {
      Index position = 0;
      for (std::size_t i = 0; i < shape.size(); ++i) position = position * shape[i] + box.start[i] + at[i];
      std::memcpy(variable.bytes.data() + static_cast<std::size_t>(position) * element, values.data(), row);
      for (std::size_t i = shape.size(); i-- > 1;) {
        if (++at[i - 1] < box.count[i - 1]) break;
        at[i - 1] = 0;
      }
    }
  }

  const std::shared_ptr<MemoryShelf> shelf_;
  const std::string name_;
  std::vector<Held> variables_;
  bool defining_ = true;
  bool open_ = true;
};

}  // namespace

void MemoryShelf::publish(const std::string& name, std::vector<MemoryVariable> contents) {
  const std::lock_guard guard(mutex_);
  containers_[name] = std::move(contents);
}

std::optional<std::vector<MemoryVariable>> MemoryShelf::find(const std::string& name) const {
  const std::lock_guard guard(mutex_);
  const auto found = containers_.find(name);
  if (found == containers_.end()) return std::nullopt;
  return found->second;
}

std::unique_ptr<ContainerSink> memory_container(std::shared_ptr<MemoryShelf> shelf, std::string name) {
  return std::make_unique<MemoryContainer>(std::move(shelf), std::move(name));
}

}  // namespace tailrace::sinks
