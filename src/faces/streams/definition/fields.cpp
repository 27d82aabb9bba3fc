// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/streams/definition/fields.hpp"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <sstream>

#include "engine/arrays/array.hpp"
#include "engine/operations/reduction.hpp"
#include "formats/codec/missing.hpp"
#include "formats/grids/grids.hpp"
#include "formats/listings/listings.hpp"
#include "formats/registry/registry.hpp"
#include "ground/base/shape_text.hpp"
#include "ground/base/text.hpp"

namespace tailrace::streams {

namespace {

/// Goes past storage::Target: the user writes this text beside the program, as its other input.
Result<std::string> read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) return io_error("read", path, errno != 0 ? errno : ENOENT);
  return text.str();
}

/// Returns the part of a layout that a stream keeps. Coordinates may be large: they are left out.
PlacedLayout without_grid(PlacedLayout layout) {
  layout.georeference = {};
  return layout;
}

Status check_references(const codec::StreamDefinition& stream, const codec::Codec& codec) {
  TR_TRY(references::available());
  if (codec.decoding()) return {};
  return {Code::settings, cat("references=on: no other program knows how to decode records of format=",
                              stream.format, "; leave it out")};
}

/// Files have `missing` where no rank owns an element, or an empty text.
Status check_unowned(const layout::Layout& layout, const codec::FieldDefinition& field) {
  if (!layout.has_unowned() || is_text(field.type)) return {};
  if (!field.missing)
    return {Code::settings,
            "the layout has elements that no rank owns: missing= says which value files hold there"};
  if (!codec::missing_element(field.type, *field.missing).empty()) return {};
  return {Code::settings, cat("missing=", *field.missing, " is no ", name_of(field.type),
                              ": files need such a value where no rank owns an element")};
}

}  // namespace

Result<const SharedMap*> Field::map_of(const ArrayShape* shape, int rank) {
  if (shape == nullptr) return &map;
  const layout::Layout& of_array = part ? part->whole->layout : layout->layout;
  Result<const SharedMap*> found =
      shaped.find(layout->is_scalar ? shape->of_scalar() : *shape, definition.type, of_array, rank,
                  allocation, [&](const layout::Allocation& given) -> Result<SharedMap> {
                    Result<layout::MemoryMap> made = map_in(given, rank);
                    TR_TRY(made.status());
                    return std::make_shared<const layout::MemoryMap>(std::move(*made));
                  });
  if (found.is_ok() || !part || found.status().code() != Code::layout) return found;
  return Status(Code::layout,
                cat(found.status().text(),
                    "; section= takes its part of the array of the whole layout: put that one, or "
                    "define the field on a layout of the section's shape"));
}

std::string Field::place_of(Index element, int rank) const {
  if (count == 0 || element < 0) return "";
  const auto level = static_cast<std::size_t>(element / count);
  Index rest = element % count;
  for (const layout::Rows& rows : layout->layout.rows(rank)) {
    if (rest >= rows.rows * rows.count) {
      rest -= rows.rows * rows.count;
      continue;
    }
    const Index global = rows.global + rest / rows.count * rows.stride + rest % rows.count;
    const std::string its_level = joins_levels() ? "" : cat("level ", levels[level], ", ");
    return cat("rank ", rank, ", ", its_level, "index ", global, part ? " of the section" : "");
  }
  return "";
}

Status Fields::begin() {
  Result<std::unique_ptr<codec::Codec>> codec = formats::make_codec(request_.definition);
  TR_TRY(codec.status());
  TR_TRY(session_.servers_encoders().check(request_.definition.format));
  if (request_.options.references) TR_TRY(check_references(request_.definition, **codec));
  codec_ = std::move(*codec);
  return {};
}

void Fields::continue_within_interval(std::shared_ptr<operations::Kept> kept) {
  is_within_interval_ = true;
  kept_ = std::move(kept);
}

std::optional<int> Fields::number_of(const std::string& field) const {
  const auto found = numbers_.find(field);
  return found == numbers_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<std::string> Fields::names() const {
  std::vector<std::string> names;
  for (const auto& [each, number] : numbers_) names.push_back(each);
  return names;
}

Status Fields::define(const std::string& field, const PlacedLayout* layout, int type,
                      const std::string& options) {
  const std::string call =
      cat("tr_stream_define(\"", name(), "\", \"", field, "\", type ", type, ", \"", options, "\")");
  Result<FieldRequest> request = [&]() -> Result<FieldRequest> {
    TR_TRY(may_define());
    if (layout == nullptr) return Status(Code::argument, "no layout was given");
    return parse_field(field, type, layout->shape(), options, request_.definition.format,
                       request_.definition.time);
  }();
  ByteVector vertical;
  if (request.is_ok() && !request->vertical_file.empty()) {
    comm::Vote vote{{}, cat(call, " reading vertical=", request->vertical_file), {}};
    if (session_.rank() == 0) {
      Result<std::string> text = read_text(request->vertical_file);
      vote.status = text.status().in(call);
      if (text.is_ok()) {
        const auto bytes = std::as_bytes(std::span(*text));
        vote.contribution.assign(bytes.begin(), bytes.end());
      }
    }
    comm::Verdict read = session_.agree(std::move(vote));
    TR_TRY(read.status);
    vertical = std::move(read.contributions[0]);
  }
  Field fresh;
  Status mine = request.status();
  if (mine.is_ok()) {
    bool was_refused = false;
    Result<std::shared_ptr<const LayoutPart>> part = part_of(*request, *layout, call, was_refused);
    if (was_refused) return part.status();
    mine = part.status();
    if (mine.is_ok()) fresh.part = std::move(*part);
  }
  const bool had_codec = mine.is_ok();
  if (fresh.part) take_part(*fresh.part, *request);
  const PlacedLayout* const placed = fresh.part ? &fresh.part->part : layout;
  if (had_codec) mine = guarded([&] { return prepare_field(*request, *placed, vertical, fresh); });
  const std::string shape = layout == nullptr
                                ? "no layout"
                                : cat(layout->layout.kind(), " layout ", extents(layout->layout.shape()));
  const comm::Verdict verdict = session_.agree({mine.in(call), cat(call, " on a ", shape), {}});
  Status status = verdict.status;
  if (status.is_ok()) status = restore(fresh);
  if (status.is_ok()) {
    keep_weights(fresh);
    add_field(field, std::move(fresh));
    return status;
  }
  // If the codec cannot be renewed now, the next definition tries again and tells all ranks.
  codec_is_ahead_ = codec_is_ahead_ || had_codec;
  references_.reset();  // they may hold the refused field, too
  if (codec_is_ahead_) static_cast<void>(guarded([&] { return renew_codec(); }));
  return status;
}

/// The codec may hold a field that this or another rank refused afterwards. A new codec takes the fields that
/// all agreed on.
Status Fields::renew_codec() {
  Result<std::unique_ptr<codec::Codec>> codec = formats::make_codec(request_.definition);
  TR_TRY(codec.status());
  for (std::size_t i = 0; i < fields_.size(); ++i)
    TR_TRY((*codec)->adopt(fields_[i].definition, codec_->prepared(static_cast<int>(i))));
  for (const codec::GivenAttribute& each : attributes_) TR_TRY((*codec)->add_attribute(each));
  codec_ = std::move(*codec);
  codec_is_ahead_ = false;
  return {};
}

Status Fields::prepare_field(FieldRequest& request, const PlacedLayout& layout, const ByteVector& vertical,
                             Field& out) {
  const std::string& name = request.definition.name;
  if (numbers_.count(name) != 0) return {Code::state, cat("field '", name, "' is defined already")};
  if (!request.vertical_file.empty()) {
    const std::string_view text(reinterpret_cast<const char*>(vertical.data()), vertical.size());
    TR_TRY(set_vertical(request.definition, text, request.vertical_file));
  }
  TR_TRY(check_unowned(layout.layout, request.definition));
  TR_TRY(check_without_time(request));
  const bool has_time = request.definition.has_time;
  if (operations_ && has_time)
    TR_TRY(operations_->define(request));
  else if (request.operation)
    return {Code::settings,
            "operation= is over the steps of an interval: create the stream with interval=, as interval=1h"};
  out.definition = std::move(request.definition);
  out.levels = out.definition.levels.values;
  out.definition.georeference = layout.georeference;
  out.definition.dimensions = out.dimensions = layout.dimensions;
  TR_TRY(prepare_reduction(request, layout, out));
  TR_TRY(prepare_weights(request, layout, out));
  TR_TRY(add_axes(layout.axes, out));
  const codec::Georeference georeference = out.definition.georeference;
  const auto told = georeference.coordinates;
  const bool needs_coordinates = codec_->has_coordinates() || request_.options.references;
  const auto facts =
      told && needs_coordinates ? std::make_shared<const codec::Coordinates>(told->facts()) : nullptr;
  out.definition.georeference.coordinates = facts;
  // The indices of a layout may take more memory than its fields, so they are kept once.
  const auto known = layouts_.find(layout.id);
  out.layout =
      known != layouts_.end() ? known->second : std::make_shared<const PlacedLayout>(without_grid(layout));
  out.allocation = std::move(request.allocation);
  out.allocation.halo = layout.halo;
  out.count = layout.layout.count(session_.rank());
  Result<layout::MemoryMap> map = out.map_in(out.allocation, session_.rank());
  TR_TRY(map.status());
  out.map = std::make_shared<const layout::MemoryMap>(std::move(*map));
  if (operations_ && has_time) TR_TRY(prepare_timed(request, out));
  TR_TRY(prepare_joining(out));

  if (codec_is_ahead_) TR_TRY(renew_codec().in("making the codec anew without the field refused before"));
  TR_TRY(with_default_format(request_, codec_->define(out.definition)));
  if (session_.rank() == 0)
    TR_TRY(listings::check_field(*codec_, static_cast<int>(fields_.size()), request_.options.listings));
  out.definition.georeference = {};  // the codec has taken what it needs
  out.definition.georeference.coordinates = facts;
  if (request_.options.references) TR_TRY(prepare_references(out.definition, georeference));
  if (facts) {
    out.of_layout = out.coordinates = told;
    TR_TRY(draw_coordinates(out));
  }
  return has_time ? prepare_staging(out, static_cast<int>(fields_.size())) : Status();
}

/// Makes what accumulates the field over the steps of an interval.
Status Fields::prepare_timed(const FieldRequest& request, Field& out) {
  const auto levels = static_cast<Index>(out.levels.size());
  Result<std::unique_ptr<TimedField>> timed =
      TimedField::make({request.operation.value_or(operations::Operation::instant), out.definition.type,
                        out.definition.missing, levels, out.count},
                       session_.memory().budget());
  TR_TRY(timed.status());
  out.timed = std::move(*timed);
  out.is_unrecorded = is_unrecorded(out.definition.name);
  return check_recorded(out);
}

/// Adds the coordinates of dimensions that no field before has brought. Code::argument if one has brought
/// others.
Status Fields::add_axes(const std::vector<codec::Axis>& axes, Field& fresh) const {
  if (!codec_->has_coordinates() && !request_.options.references) return {};
  for (const codec::Axis& axis : axes) {
    // over= may have taken the dimension.
    if (std::ranges::count(fresh.definition.dimensions, axis.dimension) == 0) continue;
    fresh.with_axes.push_back(axis.dimension);
    const codec::Axis* before = nullptr;
    for (const Field& field : fields_) {
      for (const codec::Axis& each : field.definition.axes)
        if (each.dimension == axis.dimension) before = &each;
    }
    if (before == nullptr)
      fresh.definition.axes.push_back(axis);
    else if (!(*before == axis))
      return {Code::argument,
              cat("dimension '", axis.dimension,
                  "' has other coordinates in a field before: give one of them another name")};
  }
  return {};
}

Status Fields::prepare_references(codec::FieldDefinition& fresh, const codec::Georeference& georeference) {
  Result<codec::Keys> keys = grids::keys_of(georeference);
  TR_TRY(keys.status());
  fresh.georeference.keys = std::move(*keys);
  if (references_ == nullptr) {
    std::vector<codec::FieldDefinition> agreed;
    for (const Field& each : fields_) agreed.push_back(each.definition);
    Result<std::unique_ptr<references::References>> made =
        references::References::make(with_attributes(), agreed, *codec_->decoding());
    TR_TRY(made.status());
    references_ = std::move(*made);
  }
  return references_->add(fresh);
}

/// The root keeps the values until the stream is closed: as they came, and in the head of the file. Rank 0
/// draws for it, since all ranks must hear at definition if the budget is too small.
Status Fields::draw_coordinates(Field& field) const {
  if (session_.rank() != 0) return {};
  const codec::Coordinates& told = *field.coordinates;
  const bool is_drawn = std::ranges::any_of(fields_, [&](const Field& each) {
    const auto& its = each.definition.georeference.coordinates;
    return its && its->are_those_of(told);
  });
  if (is_drawn) return {};
  constexpr Bytes copies = 2;
  const Bytes bytes = copies * std::ssize(told.values);
  field.drawn = std::make_unique<node::Draw>(session_.memory().budget(), node::Use::coordinates);
  return field.drawn->take(bytes).in(
      cat("while the stream is open the coordinates of the layout take ", size_text(bytes),
          " for the heads of its files: set TAILRACE_MEMORY to more, or close other streams before"));
}

Status Fields::prepare_staging(const Field& field, int number) const {
  struct Part {
    Bytes needed;
    Bytes share;  // of the staging memory; 0: no limit
    std::string text;
  };
  pipeline::LaneWriter& lane_writer = session_.computing().lane_writer(client_.lane_kind());
  const Bytes most = lane_writer.largest_piece();
  const Bytes workspace = session_.memory().smallest_workspace();
  const Bytes piece = field.count * size_of(field.definition.type);
  // The end of a step carries the step's error. If that never fitted, the rank would wait for room for ever.
  constexpr Bytes least = Bytes{16} << 10;
  const Bytes record = codec_->encoded_bound(number) + codec_->working_bytes(number) +
                       field.definition.elements() * size_of(codec_->assembled_type(number)) +
                       operations::Reducer::bytes_of(field.definition);
  const std::string rank = cat("rank ", session_.rank());
  const Part parts[] = {{piece, most,
                         cat("one level takes ", counted(piece, "byte"), " on ", rank,
                             ", whose share of the staging memory is ", most)},
                        {least, most,
                         cat("the share of the staging memory of ", rank, " is ", counted(most, "byte"),
                             ", where ", least, " are needed for messages")},
                        {record, std::max<Bytes>(workspace, 1),
                         cat("gathering and encoding one record takes ", counted(record, "byte"), ", ",
                             session_.topology().roster().self_served ? "each rank" : "a server", " has ",
                             counted(workspace, "byte"), " of the staging memory for it")}};
  // The error tells the part that lacks most: what suffices for it suffices for all.
  const auto lack = [](const Part& part) {
    return part.share > 0 ? static_cast<double>(part.needed) / static_cast<double>(part.share) : 0;
  };
  const Part& worst = *std::ranges::max_element(parts, {}, lack);
  if (lack(worst) <= 1)
    return lane_writer.expect(std::ssize(field.definition.levels.values) * node::room_in_lane(piece));
  return {Code::memory, cat(worst.text, ": set ", session_.memory().staging_for(worst.needed, worst.share))};
}

/// Servers hear of a field as soon as it is agreed: any rank may be the first that begins the stream.
void Fields::add_field(const std::string& name, Field field) {
  const bool is_later = client_.steps() > 0 || has_later();
  numbers_[name] = static_cast<int>(fields_.size());
  if (field.timed)
    session_.statistics().streams[client_.name()].interval_bytes +=
        operations::Accumulator::bytes_of(field.timed->accumulator().what());
  if (is_later) note_file_without();
  if (field.part && std::ranges::count(layout_parts_, field.part) == 0) layout_parts_.push_back(field.part);
  fields_.push_back(std::move(field));
  const std::shared_ptr<const PlacedLayout>& layout = fields_.back().layout;
  layouts_.emplace(layout->id, layout);
  if (!is_later) tell_field(held_fields_++);
}

/// True if the checkpoint is in the middle of an interval, and was saved before the field was added.
bool Fields::is_unrecorded(const std::string& field) const {
  return is_within_interval_ && request_.pattern.depends_on_lead() && !operations_->recorded(field) &&
         std::ranges::count(last_file_.fields, field) == 0;
}

/// Checks a field that goes on in the middle of an interval against what the checkpoint has of it.
Status Fields::check_recorded(const Field& field) const {
  if (!is_within_interval_ || field.is_unrecorded) return {};
  TR_TRY(operations_->check_recorded(field.timed->recorded(field.definition)));
  const operations::Accumulator& accumulator = field.timed->accumulator();
  const Index elements = accumulator.what().levels * field.definition.elements_put();
  const auto check = [&](const std::string& item, ElementType type) -> Status {
    const auto found = kept_ ? kept_->find(item) : operations::Kept::iterator();
    if (kept_ && found != kept_->end() && found->second.type == type &&
        found->second.blocks->elements() == elements)
      return {};
    return {Code::state, cat("the checkpoint has no item ", item, " of ", elements, " elements of ",
                             name_of(type), ", though it is in the middle of an interval")};
  };
  const std::string& field_name = field.definition.name;
  TR_TRY(check(operations::name_of_values(name(), field_name), accumulator.state_type()));
  if (!accumulator.what().missing) return {};
  return check(operations::name_of_counts(name(), field_name), ElementType::i32);
}

/// Collective. Takes the values that a checkpoint has kept of a field, if the stream goes on in the middle of
/// an interval. If that fails, nothing is lost: the program may define the field again.
Status Fields::restore(const Field& field) {
  if (!field.timed || !is_within_interval_ || field.is_unrecorded) return {};
  const std::string& field_name = field.definition.name;
  const std::string call = cat("tr_stream_define(\"", name(), "\", \"", field_name, "\")");
  const operations::Accumulator& accumulator = field.timed->accumulator();
  operations::Accumulator::Memory& memory = *accumulator.memory();
  arrays::Array array;
  array.layout = &field.layout->layout;
  array.levels = accumulator.what().levels;
  array.data = memory.values.data();
  const Result<arrays::Owned> owned =
      guarded([&]() -> Result<arrays::Owned> { return arrays::find_owned(array, session_.rank()); });
  const std::span<const layout::Rows> rows =
      owned.is_ok() ? std::span<const layout::Rows>(owned->rows) : std::span<const layout::Rows>();
  const auto take = [&](const std::string& item, std::byte* to) {
    return take_kept(session_.computes(), kept_->at(item), rows, to, owned.status(), call);
  };
  const std::string values = operations::name_of_values(name(), field_name);
  const std::string counts = operations::name_of_counts(name(), field_name);
  TR_TRY(take(values, memory.values.data()));
  if (accumulator.what().missing) TR_TRY(take(counts, reinterpret_cast<std::byte*>(memory.counts.data())));
  kept_->erase(values);
  kept_->erase(counts);
  field.timed->restore(*operations_->recorded(field_name));
  operations_->take_recorded(field_name);
  return {};
}

/// Puts the entries into the lane, in pieces if they are too large for it.
void Fields::tell(const std::vector<pipeline::Told>& all) {
  constexpr Bytes usual = Bytes{64} << 10;
  const Bytes most = session_.computing().lane_writer().largest_piece();
  const auto piece = static_cast<std::size_t>(most == 0 ? usual : std::clamp<Bytes>(most / 2, 64, usual));
  for (const pipeline::Told& told : all) {
    std::span<const std::byte> rest = told.bytes, behind;
    if (told.behind) behind = *told.behind;
    node::Descriptor descriptor = told.descriptor;
    do {
      const auto bytes = rest.first(std::min(piece, rest.size()));
      rest = rest.subspan(bytes.size());
      if (rest.empty()) rest = std::exchange(behind, {});
      descriptor.level = rest.empty() ? 0 : 1;
      session_.computing().publish(
          [&] { return session_.computing().lane_writer().tell(descriptor, bytes); });
    } while (!rest.empty());
  }
}

}  // namespace tailrace::streams
