// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "formats/cf/grid.hpp"
#include "formats/cf/model.hpp"
#include "formats/codec/definition.hpp"

namespace tailrace::cf {

/// Returns the type in files of values of this type, or Code::format if files hold no such values.
Result<Type> type_of(ElementType type);

/// Returns the shape of one level as the program puts it: the shape that the grid has.
[[nodiscard]] inline const std::vector<Index>& shape_put(const codec::FieldDefinition& field) {
  return field.reduction.operation == codec::Reduction::Operation::none ? field.shape : field.reduction.shape;
}

/// The variables of a stream's files, with the metadata that the CF conventions (version 1.8) ask for. A step
/// is one record of the file. The variables with records are the time, bounds of intervals, and the fields.
/// Files of a stream all of whose fields have no time have no variable of time (Contents::has_records).
class Conventions {
 public:
  /// Returns an error if the format cannot hold the last of the variables. Called once for each new variable.
  using Accept = std::function<Status(const Contents&)>;
  Conventions(const codec::StreamDefinition& stream, Accept accept);

  /// Returns Code::argument if users must not set one of the attributes, or if NetCDF does not take its name.
  /// A field may name further `coordinates`.
  static Status check_attributes(const codec::Keys& attributes, bool of_field = false);
  /// Returns Code::argument if check_attributes() does, or if NetCDF does not take the name of the variable
  /// of time.
  static Status check_stream(const codec::StreamDefinition& stream);

  struct Field {
    std::string name;
    codec::Levels levels_of;
    std::size_t variable = 0;
    Index elements = 0;  // of one level
    Type type = Type::float64;
    ByteVector fill{};        // one element, big-endian
    bool has_levels = false;  // the variable has a dimension for levels
    bool has_time = true;     // false: the variable is in the file once
    Index width = 1;          // the bytes of a text: so many values of the variable are one element

    /// Returns the number of values of the variable in one level.
    [[nodiscard]] Index values() const { return elements * width; }
    /// Returns the number of the field's records in a step.
    [[nodiscard]] Index levels() const { return has_time ? static_cast<Index>(levels_of.values.size()) : 0; }
  };

  /// Adds a field's variable, and the dimensions and coordinates that no earlier field has added.
  Status add(const codec::FieldDefinition& field, const Grid& grid);

  /// Adds an attribute that the conventions do not ask for.
  void add_attribute(std::size_t variable, Attribute attribute) {
    contents_.variables[variable].attributes.push_back(std::move(attribute));
  }

  void add_attribute(Attribute attribute) { contents_.attributes.push_back(std::move(attribute)); }
  /// Returns the number of the variable of a field, or of the coordinate of a dimension, or nothing.
  [[nodiscard]] std::optional<std::size_t> variable_of(const std::string& name) const;

  [[nodiscard]] const Contents& contents() const { return contents_; }
  [[nodiscard]] const std::vector<Field>& fields() const { return fields_; }
  [[nodiscard]] std::size_t time() const { return time_; }
  /// Returns the value of the variable of time for a lead.
  [[nodiscard]] double time_at(std::int64_t lead) const { return axis_.number(lead); }

  /// The intervals over which fields are means, sums or extremes. Fields whose intervals begin at the same
  /// leads share one entry.
  struct Interval {
    codec::Statistic statistic;
    std::size_t time = 0;    // number of the variable of time to which the bounds belong
    std::size_t bounds = 0;  // number of the variable with the bounds
  };
  [[nodiscard]] const std::vector<Interval>& intervals() const { return intervals_; }
  /// Returns true if the intervals of two statistics begin at the same leads, and so have the same bounds.
  static bool begin_alike(const codec::Statistic& one, const codec::Statistic& other);

 private:
  struct Horizontal {
    Grid grid;
    std::vector<Index> shape;
    std::vector<std::string> names;  // of its dimensions, as the program gives them, or none
    std::vector<int> dimensions;
    std::string mapping;      // name of the variable that describes a projection
    std::string coordinates;  // names of the variables with the latitudes and longitudes of points
    std::vector<std::string> standard_names{};  // of the coordinates of its dimensions, on a map
  };
  struct Vertical {
    codec::Levels levels;
    std::optional<int> dimension;  // none for a single level
    std::string coordinate;        // name of the coordinate's variable; empty if there is none
    /// Variables that still lack formula_terms, each with the ending of the names of its terms.
    std::vector<std::pair<std::size_t, std::string>> formula_of{};
  };

  [[nodiscard]] std::string methods_of(const codec::FieldDefinition& field, const Horizontal& points) const;
  [[nodiscard]] Status check_new(const codec::FieldDefinition& field) const;
  [[nodiscard]] std::vector<int> known_dimensions(const codec::FieldDefinition& field,
                                                  const Grid& grid) const;
  [[nodiscard]] Result<std::vector<std::string>> named_coordinates(const codec::FieldDefinition& field,
                                                                   const Grid& grid) const;
  void add_quantity(const codec::FieldDefinition& field, const Grid& grid, Variable& variable) const;
  void add_time(const codec::StreamDefinition& stream);
  void add_member(const codec::StreamDefinition& stream);
  [[nodiscard]] Status check_dimensions(const codec::FieldDefinition& field, const Grid& grid) const;
  Horizontal& horizontal(const Grid& grid, const codec::FieldDefinition& field);
  Status add_axes(const codec::FieldDefinition& field, const Grid& grid);
  int named_dimension(const std::string& name, Index length);
  void add_grid_reference(const Grid& grid, Variable& variable);
  void add_grid_coordinates(Horizontal& added);
  void add_mapping(Horizontal& added);
  void add_told_coordinates(Horizontal& added);
  Vertical& vertical(const codec::Levels& levels);
  void add_level_coordinate(Vertical& added);
  void add_hybrid(Vertical& added, std::size_t coordinate);
  void complete_formulas(const std::string& pressure);
  const Interval& interval(const codec::Statistic& statistic);
  int add_dimension(const std::string& name, Index length);
  void rename_unnamed(const std::string& name);
  int bounds_dimension();
  int text_dimension(Index bytes);
  std::size_t add_variable(Variable variable);
  std::size_t add_coordinate(const std::string& name, std::vector<int> dimensions,
                             const std::vector<double>& values, std::vector<Attribute> attributes);
  void add_place_on_globe(Horizontal& added, bool latitude);
  [[nodiscard]] std::string free_name(const std::string& name) const;
  [[nodiscard]] bool is_taken(const std::string& name) const;

  Accept accept_;
  TimeAxis axis_;
  Contents contents_;
  std::vector<Field> fields_;
  std::unordered_multimap<std::string, std::size_t> by_name_;  // numbers of fields
  std::set<std::string> reduced_;                              // names of variables with over=
  std::vector<Horizontal> horizontals_;
  std::vector<std::pair<std::string, int>> named_;  // the dimensions that the program has named
  std::vector<Vertical> verticals_;
  std::vector<Interval> intervals_;
  std::string scalars_;        // names of scalar coordinates of all fields, each behind a blank
  std::size_t time_ = 0;       // number of the variable of time
  bool names_tell_ = false;    // conventions=weather: a field's name tells what quantity it is
  std::optional<int> bounds_;  // the dimension of length 2
  std::optional<std::pair<std::int64_t, std::string>> referred_;  // number and UUID of the file's grid
  std::vector<std::pair<Index, int>> of_texts_;  // the last dimensions of texts, by their length
  Status beyond_;  // the first error of accept_ or of adding a variable; after it nothing is added
};

}  // namespace tailrace::cf
