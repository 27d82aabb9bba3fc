// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <algorithm>
#include <cerrno>
#include <fstream>
#include <limits>
#include <sstream>

#include "api/c/arguments.hpp"
#include "api/c/state.hpp"
#include "engine/arrays/coordinates.hpp"
#include "engine/session/indexed_layout.hpp"
#include "faces/streams/definition/parse.hpp"
#include "ground/base/shape_text.hpp"
#include "ground/base/text.hpp"

using namespace tailrace;
using namespace tailrace::capi;
using layout::Layout;

namespace {

/// Returns a text with one entry for each dimension, in the caller's order.
template <typename T>
std::string list_text(const T* values, int count) {
  if (values == nullptr) return "none";
  std::string text;
  if (count > most_dimensions) return text;  // the arguments are checked later
  for (int i = 0; i < count; ++i)
    text += cat(i == 0 ? "" : "x", values[told_order() == Order::fortran ? count - 1 - i : i]);
  return text;
}

/// Returns a text with the weights of each dimension, as many as `grid` says, in the caller's order of
/// dimensions.
std::string weights_text(int ndims, const int* grid, const double* const* weights) {
  std::string text;
  if (grid == nullptr || weights == nullptr || ndims > most_dimensions) return text;
  for (int each = 0; each < ndims; ++each) {
    const int d = told_order() == Order::fortran ? ndims - 1 - each : each;
    for (int i = 0; weights[d] != nullptr && i < grid[d]; ++i) text += cat(" ", weights[d][i]);
  }
  return text;
}

Status check_arguments(int ndims, const tr_index* shape, const tr_index* halo, tr_layout** layout) {
  if (layout == nullptr) return {Code::argument, "`layout` is a null pointer"};
  if (ndims < 1 || ndims > most_dimensions) {
    return {Code::argument, cat("ndims is ", ndims, "; layouts have 1 to ", most_dimensions, " dimensions")};
  }
  if (shape == nullptr) return {Code::argument, "`shape` is a null pointer"};
  for (int d = 0; halo != nullptr && d < ndims; ++d) {
    if (halo[d] < 0) return {Code::argument, cat("halo[", d, "] is ", halo[d], ", below 0")};
  }
  return {};
}

/// Collective. The last part of each call that makes a layout. Makes the layout if every rank made the same
/// one and it is valid; otherwise makes it on no rank. The error code is the same on every rank.
int finish(session::Session& session, const std::string& call, Result<Layout> made, std::vector<Index> halo,
           tr_layout** out) {
  Status mine = made.status();
  if (mine.is_ok()) mine = guarded([&] { return made->validate(); });
  const comm::Verdict verdict = session.agree({mine.in(call), call, {}});
  if (!verdict.status.is_ok()) return fail(verdict.status);
  *out = new tr_layout{{std::move(*made), state().layouts_made++, std::move(halo), {}, {}, false}};
  count_layout((*out)->placed.layout, 1);
  return TR_OK;
}

/// Collective. Makes the layout of scalars: every rank has the one element.
int make_scalar(tr_layout** out) {
  session::Session* const session = session_for("tr_layout_replicated");
  if (session == nullptr) return TR_ERR_STATE;
  Result<Layout> made = Layout::replicated({1}, session->ranks());
  if (out == nullptr) made = Status(Code::argument, "`layout` is a null pointer");
  const int code = finish(*session, "tr_layout_replicated(scalar)", std::move(made), {}, out);
  if (code == TR_OK) (*out)->placed.is_scalar = true;
  return code;
}

template <typename Make>
int make_layout(const char* name, int ndims, const tr_index* shape, const tr_index* halo,
                const std::string& details, tr_layout** out, Make make) {
  session::Session* const session = session_for(name);
  if (session == nullptr) return TR_ERR_STATE;
  const Status status = check_arguments(ndims, shape, halo, out);
  const int shown = status.is_ok() ? ndims : 0;
  const std::string call =
      cat(name, "(", list_text(shape, shown), ", halo ", list_text(halo, shown), details, ")");
  Result<Layout> made = status.is_ok() ? make(*session) : Result<Layout>(status);
  return finish(*session, call, std::move(made), status.is_ok() ? list_of(halo, ndims) : std::vector<Index>(),
                out);
}

/// Collective. Makes a layout from the indices that each rank gives. `give` returns the indices of this rank.
/// The error code is the same on every rank.
template <typename Give>
int make_indexed(const char* name, int ndims, const tr_index* shape, const std::string& details,
                 tr_layout** out, Give give) {
  session::Session* const session = session_for(name);
  if (session == nullptr) return TR_ERR_STATE;
  const Status status = check_arguments(ndims, shape, nullptr, out);
  const int shown = status.is_ok() ? ndims : 0;
  const std::string call = cat(name, "(", list_text(shape, shown), details, ")");
  const Result<std::vector<Index>> given =
      status.is_ok() ? give(*session) : Result<std::vector<Index>>(status);
  Result<Layout> made = session::make_indexed(*session, call, list_of(shape, shown), given);
  if (!made.is_ok()) return fail(made.status());
  *out = new tr_layout{{std::move(*made), state().layouts_made++, {}, {}, *given, true}};
  count_layout((*out)->placed.layout, 1);
  return TR_OK;
}

/// Returns how arrays are allocated: as the layout says, or, with `extents`, as these say.
Result<layout::Allocation> allocation_of(const session::Session& session, const tr_layout& layout,
                                         const std::optional<std::vector<Index>>& extents) {
  layout::Allocation allocation;
  allocation.halo = layout.placed.halo;
  allocation.level_axis = -1;
  if (!extents) return allocation;
  return layout::match_extents(layout.placed.layout, session.rank(), std::move(allocation), *extents);
}

/// Collective. The common part of the two calls that give coordinates.
int set_coordinates(tr_layout* layout, arrays::GivenCoordinates given,
                    const std::optional<std::vector<Index>>& extents) {
  session::Session* const session = session_for("tr_layout_coordinates");
  if (session == nullptr) return TR_ERR_STATE;
  const std::string call = cat("tr_layout_coordinates(layout ", layout == nullptr ? -1 : layout->placed.id,
                               ", ", given.corners, " corners)");
  if (layout == nullptr)
    return fail(
        session->agree({Status(Code::argument, "`layout` is a null pointer").in(call), call, {}}).status);
  given.allocation = allocation_of(*session, *layout, extents);
  Result<arrays::GatheredCoordinates> gathered = arrays::gather_coordinates(
      session->computes(), [&](comm::Vote vote) { return session->agree(std::move(vote)); },
      session->memory().budget(), call, layout->placed.layout, given);
  if (!gathered.is_ok()) return fail(gathered.status());
  layout->placed.georeference.coordinates = std::move(gathered->coordinates);
  session->memory().keep_coordinates(layout->placed.id, std::move(gathered->drawn));
  return TR_OK;
}

Index extent_of(const tr_layout& layout, const std::string& dimension) {
  const auto found = std::ranges::find(layout.placed.dimensions, dimension);
  return layout.placed.layout.shape()[static_cast<std::size_t>(found - layout.placed.dimensions.begin())];
}

/// Returns the axis of a call without its values.
Result<codec::Axis> axis_of(const tr_layout* layout, const std::string& dimension, int type,
                            const std::string& options) {
  if (layout == nullptr) return Status(Code::argument, "`layout` is a null pointer");
  const std::vector<std::string>& names = layout->placed.dimensions;
  if (names.empty())
    return Status(Code::state, "the layout's dimensions have no names: call tr_layout_dimensions first");
  if (std::ranges::count(names, dimension) == 0) {
    const std::string near = nearest(dimension, names);
    return Status(Code::argument, cat("the layout has no dimension \"", dimension, "\"",
                                      near.empty() ? "" : cat("; did you mean \"", near, "\"?")));
  }
  const auto element = static_cast<ElementType>(type);
  if (size_of(element) == 0 || is_complex(element) || is_text(element))
    return Status(Code::argument, "coordinates are integers or real numbers: give TR_F64, TR_I32, ...");
  constexpr Index most = Index{1} << 20;
  if (extent_of(*layout, dimension) > most)
    return Status(Code::argument, cat("a dimension with coordinates has at most ", most,
                                      " elements; for the places of points "
                                      "see tr_layout_coordinates"));
  Result<codec::Keys> attributes = streams::parse_axis(options);
  TR_TRY(attributes.status());
  return codec::Axis{dimension, element, {}, {}, std::move(*attributes)};
}

Status pack_axis_values(const tr_layout& layout, const codec::Axis& axis, tr_index count, const void* values,
                        const void* bounds, ByteVector& out) {
  const Index extent = extent_of(layout, axis.dimension);
  if (count < 0) return {Code::argument, "there are not two bounds for each value"};
  if (count != extent)
    return {Code::argument, cat("dimension \"", axis.dimension, "\" has ", counted(extent, "element"),
                                ", and ", count, " coordinates are given")};
  const auto bytes = static_cast<std::size_t>(extent * size_of(axis.type));
  if (values == nullptr && bytes > 0) return {Code::argument, "`values` is a null pointer"};
  Packer packed;
  packed.put_bytes({static_cast<const std::byte*>(values), bytes});
  packed.put_bytes({static_cast<const std::byte*>(bounds), bounds == nullptr ? 0 : 2 * bytes});
  out = packed.take();
  return {};
}

}  // namespace

/// A rank that was a server in an earlier session has not made the layouts of that session. Other ranks may
/// still hold them, so all ranks go on from the highest numbers.
Status tailrace::capi::begin_numbers() {
  State& held = state();
  comm::Vote vote{{}, session::init_call, {}};
  if (held.layouts_made > 0 || held.arrays_registered > 0) {
    Packer out;
    out.put(held.layouts_made).put(held.arrays_registered);
    vote.contribution = out.take();
  }
  const comm::Verdict verdict = held.session->computes().agree(std::move(vote));
  TR_TRY(verdict.status);
  for (const ByteVector& each : verdict.contributions) {
    Unpacker in(each);  // gives zeros for a rank that has made none
    held.layouts_made = std::max(held.layouts_made, in.get<std::int64_t>());
    held.arrays_registered = std::max(held.arrays_registered, in.get<std::int64_t>());
  }
  return {};
}

int tr_layout_block(int ndims, const tr_index* shape, const tr_index* halo, tr_layout** layout) {
  return tr_layout_block_grid(ndims, shape, halo, nullptr, layout);
}

int tr_layout_block_grid(int ndims, const tr_index* shape, const tr_index* halo, const int* grid,
                         tr_layout** layout) {
  return make_layout("tr_layout_block", ndims, shape, halo, cat(", grid ", list_text(grid, ndims)), layout,
                     [&](session::Session& session) {
                       return Layout::block(list_of(shape, ndims), session.ranks(), list_of(grid, ndims));
                     });
}

int tr_layout_block_cyclic(int ndims, const tr_index* shape, const tr_index* block, const int* grid,
                           tr_layout** layout) {
  return make_layout("tr_layout_block_cyclic", ndims, shape, nullptr,
                     cat(", block ", list_text(block, ndims), ", grid ", list_text(grid, ndims)), layout,
                     [&](session::Session& session) -> Result<Layout> {
                       if (block == nullptr) return Status(Code::argument, "`block` is a null pointer");
                       return Layout::block_cyclic(list_of(shape, ndims), session.ranks(),
                                                   list_of(block, ndims), list_of(grid, ndims));
                     });
}

int tr_layout_weighted(int ndims, const tr_index* shape, const tr_index* halo, const int* grid,
                       const double* const* weights, tr_layout** layout) {
  const std::string details =
      cat(", grid ", list_text(grid, ndims), ", weights", weights_text(ndims, grid, weights));
  return make_layout("tr_layout_weighted", ndims, shape, halo, details, layout,
                     [&](session::Session& session) -> Result<Layout> {
                       if (grid == nullptr || weights == nullptr) {
                         return Status(Code::argument, "`grid` or `weights` is a null pointer");
                       }
                       std::vector<std::vector<double>> lists;
                       Index coordinates = 1;
                       for (int d = 0; d < ndims; ++d) {
                         if (weights[d] == nullptr)
                           return Status(Code::argument, cat("weights[", d, "] is a null pointer"));
                         lists.push_back(list_of(weights[d], grid[d]));
                         coordinates *= grid[d];
                       }
                       if (coordinates != session.ranks()) {
                         return Status(Code::argument,
                                       cat("the processor grid has ", coordinates, " coordinates for ",
                                           session.ranks(), " compute ranks"));
                       }
                       return Layout::weighted(list_of(shape, ndims), std::move(lists));
                     });
}

int tr_layout_box(int ndims, const tr_index* shape, const tr_index* halo, const tr_index* lower,
                  const tr_index* upper, tr_layout** layout) {
  session::Session* const session = session_for("tr_layout_box");
  if (session == nullptr) return TR_ERR_STATE;
  Status status = check_arguments(ndims, shape, halo, layout);
  const int shown = status.is_ok() ? ndims : 0;
  if (status.is_ok() && (lower == nullptr || upper == nullptr)) {
    status = Status(Code::argument, "`lower` or `upper` is a null pointer");
  }
  const std::string call =
      cat("tr_layout_box(", list_text(shape, shown), ", halo ", list_text(halo, shown), ")");
  // A rank with bad arguments votes, too, because the other ranks wait for its vote.
  comm::Vote vote{status.in(call), call, {}};
  if (status.is_ok()) {
    std::vector<Index> mine = list_of(lower, ndims);
    mine.insert(mine.end(), upper, upper + ndims);
    vote.contribution = Packer().put_list(std::span<const Index>(mine)).take();
  }
  const comm::Verdict verdict = session->agree(std::move(vote));
  if (!verdict.status.is_ok()) return fail(verdict.status);
  std::vector<layout::Box> boxes;
  for (const ByteVector& bytes : verdict.contributions) {
    const std::vector<Index> both = Unpacker(bytes).get_list<Index>();
    boxes.push_back({{both.begin(), both.begin() + ndims}, {both.begin() + ndims, both.end()}});
  }
  return finish(*session, call, Layout::boxes(list_of(shape, ndims), std::move(boxes)), list_of(halo, ndims),
                layout);
}

int tr_layout_boxes(int ndims, const tr_index* shape, const tr_index* halo, tr_index count,
                    const tr_index* lower, const tr_index* upper, int unowned, tr_layout** layout) {
  session::Session* const session = session_for("tr_layout_boxes");
  if (session == nullptr) return TR_ERR_STATE;
  Status status = check_arguments(ndims, shape, halo, layout);
  const int shown = status.is_ok() ? ndims : 0;
  constexpr tr_index most = std::numeric_limits<int>::max();
  if (status.is_ok() && (count < 0 || count > most))
    status = Status(Code::argument, cat("the number of boxes is ", count, "; a rank may have 0 to ", most));
  if (status.is_ok() && count > 0 && (lower == nullptr || upper == nullptr))
    status = Status(Code::argument, "`lower` or `upper` is a null pointer");
  const std::string call = cat("tr_layout_boxes(", list_text(shape, shown), ", halo ", list_text(halo, shown),
                               unowned != 0 ? ", unowned)" : ")");
  comm::Vote vote{status.in(call), call, {}};
  if (status.is_ok()) {
    const auto corners = static_cast<std::size_t>(count) * static_cast<std::size_t>(ndims);
    vote.status = guarded([&] {
      Packer out;
      out.put_list(std::span(lower, corners)).put_list(std::span(upper, corners));
      vote.contribution = out.take();
      return Status();
    });
  }
  const comm::Verdict verdict = session->agree(std::move(vote));
  if (!verdict.status.is_ok()) return fail(verdict.status);
  Result<Layout> made = guarded([&] {
    std::vector<std::vector<layout::Box>> tiles;
    for (const ByteVector& bytes : verdict.contributions) {
      Unpacker in(bytes);
      const std::vector<Index> first = in.get_list<Index>(), last = in.get_list<Index>();
      std::vector<layout::Box>& own = tiles.emplace_back();
      for (auto a = first.begin(), b = last.begin(); a != first.end(); a += ndims, b += ndims)
        own.push_back({{a, a + ndims}, {b, b + ndims}});
    }
    return Layout::tiles(list_of(shape, ndims), std::move(tiles), unowned != 0);
  });
  return finish(*session, call, std::move(made), list_of(halo, ndims), layout);
}

int tr_layout_indexed(int ndims, const tr_index* shape, tr_index count, const tr_index* indices, int base,
                      tr_layout** layout) {
  const auto give = [&](const session::Session&) -> Result<std::vector<Index>> {
    if (count < 0 || (count > 0 && indices == nullptr))
      return Status(Code::argument, cat(count, " indices at a null pointer or of negative number"));
    std::vector<Index> own(indices, indices + count);
    for (Index& index : own) index -= base;
    return own;
  };
  return make_indexed("tr_layout_indexed", ndims, shape, cat(", base ", base), layout, give);
}

int tr_layout_replicated(int ndims, const tr_index* shape, tr_layout** layout) {
  if (ndims == 0) return make_scalar(layout);
  return make_layout(
      "tr_layout_replicated", ndims, shape, nullptr, "", layout,
      [&](session::Session& session) { return Layout::replicated(list_of(shape, ndims), session.ranks()); });
}

int tr_layout_callback(int ndims, const tr_index* shape, int (*owner)(const tr_index* index, void* context),
                       void* context, tr_layout** layout) {
  const auto give = [&](const session::Session& session) -> Result<std::vector<Index>> {
    if (owner == nullptr) return Status(Code::argument, "`owner` is a null pointer");
    return layout::indices_by_callback(
        list_of(shape, ndims), session.ranks(), session.rank(),
        [&](std::span<const Index> index) { return owner(index.data(), context); });
  };
  return make_indexed("tr_layout_callback", ndims, shape, "", layout, give);
}

int tr_layout_bounds(const tr_layout* layout, int with_halo, tr_index* lower, tr_index* upper) {
  session::Session* const session = session_for("tr_layout_bounds");
  if (session == nullptr) return TR_ERR_STATE;
  const bool has_dimensions = layout != nullptr && !layout->placed.is_scalar;
  if (layout == nullptr || (has_dimensions && (lower == nullptr || upper == nullptr))) {
    return fail(Status(Code::argument, "tr_layout_bounds: a null pointer"));
  }
  if (!layout->placed.layout.is_box()) {
    return fail(
        Status(Code::state, cat("tr_layout_bounds: what a rank owns of a ", layout->placed.layout.kind(),
                                " layout is no box; tr_layout_count tells how much it is")));
  }
  if (!has_dimensions) return TR_OK;
  const layout::Box box = layout->placed.layout.box(session->rank());
  for (std::size_t d = 0; d < box.lower.size(); ++d) {
    const Index halo = with_halo != 0 && !layout->placed.halo.empty() ? layout->placed.halo[d] : 0;
    lower[d] = box.lower[d] - halo;
    upper[d] = box.upper[d] + halo;
  }
  return TR_OK;
}

int tr_layout_count(const tr_layout* layout, tr_index* count) {
  session::Session* const session = session_for("tr_layout_count");
  if (session == nullptr) return TR_ERR_STATE;
  if (layout == nullptr || count == nullptr)
    return fail(Status(Code::argument, "tr_layout_count: a null pointer"));
  *count = layout->placed.layout.count(session->rank());
  return TR_OK;
}

int tr_layout_georeference(tr_layout* layout, const char* options) {
  session::Session* const session = session_for("tr_layout_georeference");
  if (session == nullptr) return TR_ERR_STATE;
  const std::string text = text_of(options);
  const std::string call = cat("tr_layout_georeference(\"", text, "\")");
  Result<streams::GeoreferenceRequest> request = streams::parse_georeference(text);
  comm::Vote vote{request.status(), call, {}};
  if (layout == nullptr) vote.status = Status(Code::argument, "`layout` is a null pointer");
  if (vote.status.is_ok() && layout->placed.is_scalar)
    vote.status =
        Status(Code::argument, "a scalar has no grid; tr_layout_coordinates gives the place of a station");
  if (vote.status.is_ok() && session->rank() == 0 && !request->sample_file.empty()) {
    // Past storage::Target: a sample lies beside the program, as its other input.
    std::ifstream file(request->sample_file, std::ios::binary);
    std::ostringstream sample;
    if (file) sample << file.rdbuf();
    const std::string bytes = sample.str();
    if (!file || bytes.empty()) vote.status = io_error("read", request->sample_file, ENOENT);
    const auto data = std::as_bytes(std::span(bytes));
    vote.contribution.assign(data.begin(), data.end());
  }
  vote.status = vote.status.in(call);
  comm::Verdict verdict = session->agree(std::move(vote));
  if (!verdict.status.is_ok()) return fail(verdict.status);
  layout->placed.georeference.keys = std::move(request->keys);
  layout->placed.georeference.sample = std::move(verdict.contributions[0]);
  return TR_OK;
}

int tr_layout_dimensions(tr_layout* layout, const char* names) {
  session::Session* const session = session_for("tr_layout_dimensions");
  if (session == nullptr) return TR_ERR_STATE;
  const std::string text = text_of(names);
  const std::string call = cat("tr_layout_dimensions(\"", text, "\")");
  Result<std::vector<std::string>> parsed = layout == nullptr
                                                ? Status(Code::argument, "`layout` is a null pointer")
                                                : streams::parse_dimensions(text, layout->placed.shape());
  const comm::Verdict verdict = session->agree({parsed.status().in(call), call, {}});
  if (!verdict.status.is_ok()) return fail(verdict.status);
  layout->placed.dimensions = std::move(*parsed);
  layout->placed.axes.clear();
  return TR_OK;
}

int tr_layout_axis(tr_layout* layout, const char* dimension, int type, tr_index count, const void* values,
                   const void* bounds, const char* options) {
  session::Session* const session = session_for("tr_layout_axis");
  if (session == nullptr) return TR_ERR_STATE;
  const std::string call =
      cat("tr_layout_axis(\"", text_of(dimension), "\", type ", type, ", \"", text_of(options), "\")");
  comm::Vote vote{{}, call, {}};
  Result<codec::Axis> axis = axis_of(layout, text_of(dimension), type, text_of(options));
  vote.status = axis.status();
  // The values of compute rank 0 count: it sends them to the others.
  if (vote.status.is_ok() && session->rank() == 0)
    vote.status =
        guarded([&] { return pack_axis_values(*layout, *axis, count, values, bounds, vote.contribution); });
  vote.status = vote.status.in(call);
  const comm::Verdict verdict = session->agree(std::move(vote));
  if (!verdict.status.is_ok()) return fail(verdict.status);
  Unpacker in(verdict.contributions[0]);
  axis->values = in.get_list<std::byte>();
  axis->bounds = in.get_list<std::byte>();
  std::erase_if(layout->placed.axes,
                [&](const codec::Axis& each) { return each.dimension == axis->dimension; });
  layout->placed.axes.push_back(std::move(*axis));
  return TR_OK;
}

int tr_layout_coordinates(tr_layout* layout, const double* latitudes, const double* longitudes, int corners,
                          const double* latitude_bounds, const double* longitude_bounds) {
  return set_coordinates(layout, {latitudes, longitudes, corners, latitude_bounds, longitude_bounds}, {});
}

int tr_layout_coordinates_array(tr_layout* layout, const double* latitudes, const double* longitudes,
                                int ndims, const tr_index* extents, int corners,
                                const double* latitude_bounds, const double* longitude_bounds) {
  return set_coordinates(layout, {latitudes, longitudes, corners, latitude_bounds, longitude_bounds},
                         extents == nullptr || ndims < 0 ? std::vector<Index>() : list_of(extents, ndims));
}

int tr_layout_free(tr_layout** layout) {
  if (layout == nullptr) return fail(Status(Code::argument, "tr_layout_free: a null pointer"));
  if (*layout != nullptr && state().session != nullptr) {
    count_layout((*layout)->placed.layout, -1);
    state().session->memory().forget_coordinates((*layout)->placed.id);
  }
  delete *layout;
  *layout = nullptr;
  return TR_OK;
}
