// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/streams/described/yaml_reader.hpp"

#include "faces/streams/definition/parse.hpp"
#include "ground/base/text.hpp"

#if TAILRACE_HAVE_YAML
#include <yaml-cpp/yaml.h>
#if __has_include(<yaml-cpp/depthguard.h>)
#include <yaml-cpp/depthguard.h>  // of yaml-cpp 0.7 and later
#define TAILRACE_YAML_HAS_DEPTH 1
#endif
#endif

namespace tailrace::streams {

std::string text_of(const std::string& path, Place place) {
  return place.line > 0 ? cat(path, ":", place.line, ":", place.column) : path;
}

Status error_at(const std::string& path, Place place, std::string_view text) {
  return settings_error(cat(text_of(path, place), ": ", text));
}

#if TAILRACE_HAVE_YAML

namespace {

using Names = std::vector<std::string_view>;

/// Options of a field that the program alone can give: they tell where its values lie in its arrays.
constexpr std::string_view kProgramsOptions[] = {"levels",     "bottom", "coefficients", "vertical",
                                                 "level_axis", "nproma", "missing",      "time",
                                                 "statistic",  "since"};
constexpr std::size_t kMostStreams = 1000;
constexpr std::size_t kMostFields = 10'000;
constexpr std::size_t kMostOfOption = std::size_t{16} << 10;

bool has_control_character(std::string_view text, std::string_view allowed) {
  return std::ranges::any_of(text, [&](char each) {
    return static_cast<unsigned char>(each) < ' ' && allowed.find(each) == std::string_view::npos;
  });
}

bool is_one_of(std::string_view word, std::span<const std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

Place place_of(const YAML::Mark& mark) {
  return mark.is_null() ? Place{} : Place{mark.line + 1, mark.column + 1};
}

Names names_of(const std::vector<OptionInfo>& infos, std::initializer_list<std::string_view> first) {
  Names names(first);
  for (const OptionInfo& info : infos) names.push_back(info.key);
  return names;
}

struct Entry {
  std::string key;
  YAML::Node value;
  Place place;
};

class YamlReader {
 public:
  explicit YamlReader(const std::string& path) : path_(path) {
    for (const OptionInfo& info : field_option_infos())
      if (!is_one_of(info.key, kProgramsOptions)) field_keys_.push_back(info.key);
  }

  Result<Written> read(std::string_view text) {
    const std::vector<YAML::Node> documents = YAML::LoadAll(std::string(text));
    if (documents.size() != 1 || documents[0].IsNull())
      return settings_error(
          cat(path_, ": ", documents.size() > 1 ? "there are two documents (---)" : "the file says nothing",
              "; a description has one, with streams:"));
    Result<std::vector<Entry>> top = entries(documents[0], "a description", {"streams", "fields"});
    TR_TRY(top.status());
    Written written;
    const Entry* streams = nullptr;
    for (const Entry& entry : *top) {
      if (entry.key == "fields") TR_TRY(read_shared(entry, written));
      if (entry.key == "streams") streams = &entry;
    }
    if (streams == nullptr)
      return error_at(
          path_, {},
          "streams: is missing; it has a part for each stream: a name, and under it file: and fields:");
    TR_TRY(read_streams(*streams, written));
    return written;
  }

 private:
  [[nodiscard]] Status error(Place place, std::string_view text) const {
    return error_at(path_, place, text);
  }
  [[nodiscard]] Status at(const Status& status, Place place) const {
    return status.is_ok() ? status : error(place, status.text());
  }

  /// Counts what is taken from the text.
  Status count(std::size_t bytes, Place place) {
    constexpr std::size_t for_each = 16;
    bytes_ += bytes + for_each;
    if (bytes_ <= most_taken_bytes) return {};
    return error(place,
                 "with its aliases (*NAME) the description has more than 8 MiB: write what many fields share "
                 "once, under fields:");
  }

  /// Returns the entries of a map, each key once. With `known` it has no other keys.
  Result<std::vector<Entry>> entries(const YAML::Node& node, std::string_view what, const Names& known = {}) {
    if (!node.IsMap()) return error(place_of(node.Mark()), cat(what, " is a map: lines of KEY: VALUE"));
    std::vector<Entry> all;
    std::map<std::string, int> lines;
    for (const auto& each : node) {
      const Place place = place_of(each.first.Mark());
      if (!each.first.IsScalar()) return error(place, cat("a key of ", what, " is a word"));
      Entry entry{each.first.Scalar(), each.second, place};
      TR_TRY(count(entry.key.size(), place));
      if (has_control_character(entry.key, ""))
        return error(place, cat("a key of ", what, " has a control character or a line end: take it out"));
      if (!known.empty() && !is_one_of(entry.key, known))
        return error(place, unknown_key(entry.key, what, known));
      const auto [before, is_first] = lines.emplace(entry.key, place.line);
      if (!is_first)
        return error(place, cat("\"", entry.key, "\" is given twice, first in line ", before->second,
                                "; keep one of them"));
      all.push_back(std::move(entry));
    }
    return all;
  }

  static std::string unknown_key(const std::string& key, std::string_view what, const Names& known) {
    const std::string near = nearest(key, known);
    std::string list;
    for (const std::string_view each : known) list += cat(list.empty() ? "" : ", ", each);
    return cat("unknown key \"", key, "\"", near.empty() ? "" : cat(" (did you mean \"", near, "\"?)"),
               "; the keys of ", what, " are ", list);
  }

  Result<std::string> scalar(const YAML::Node& node, Place place, std::string_view key) {
    if (node.IsNull()) return error(place, cat(key, ": has no value"));
    if (!node.IsScalar()) return error(place, cat(key, ": has one value, no list and no map"));
    TR_TRY(count(node.Scalar().size(), place));
    std::string text = node.Scalar();
    // A block (|) ends its last line, which is no part of what the user says.
    if (node.Tag() == "!") text.erase(text.find_last_not_of('\n') + 1);
    if (has_control_character(text, "\t\n"))
      return error(place, cat(key, ": has a control character: take it out"));
    return text;
  }

  /// Returns a value that is a name, of one line.
  Result<std::string> line(const YAML::Node& node, Place place, std::string_view key) {
    Result<std::string> text = scalar(node, place, key);
    if (text.is_ok() && has_control_character(*text, ""))
      return error(place, cat(key, ": has a line end or a tab: it is one line"));
    return text;
  }

  /// Returns the value as it stands in an options string: of a list its members with commas, and of a map,
  /// which attributes and keys may be, NAME='VALUE', ...
  Result<std::string> value_of(const Entry& entry) {
    const bool is_map = entry.value.IsMap() && (entry.key == "attributes" || entry.key == "keys");
    if (!is_map && !entry.value.IsSequence()) {
      Result<std::string> value = scalar(entry.value, entry.place, entry.key);
      TR_TRY(value.status());
      TR_TRY(check_size(*value, entry));
      return value;
    }
    std::string text;
    for (const auto& member : entry.value) {
      const std::string name = is_map && member.first.IsScalar() ? member.first.Scalar() : "";
      if (has_control_character(name, ""))
        return error(place_of(member.first.Mark()),
                     cat("a name in ", entry.key, ": has a control character or a line end: take it out"));
      const Result<std::string> value = is_map ? scalar(member.second, place_of(member.first.Mark()), name)
                                               : scalar(member, entry.place, entry.key);
      TR_TRY(value.status());
      text += text.empty() ? "" : is_map ? ", " : ",";
      text += is_map ? tailrace::text_of(Option{name, *value}) : *value;
      TR_TRY(check_size(text, entry));
    }
    return text;
  }

  /// Lists of options are searched from end to end.
  [[nodiscard]] Status check_size(const std::string& value, const Entry& entry) const {
    if (value.size() <= kMostOfOption) return {};
    return error(entry.place, cat(entry.key, ": has more than 16 KiB"));
  }

  Status add_option(const Entry& entry, WrittenOptions& options) {
    Result<std::string> value = value_of(entry);
    TR_TRY(value.status());
    if (value->empty()) return error(entry.place, cat(entry.key, ": is empty; leave it out"));
    if (entry.key == "attributes" || entry.key == "keys")
      TR_TRY(at(Options::parse_list(*value).status(), entry.place));
    options.push_back({{entry.key, std::move(*value)}, entry.place});
    return {};
  }

  /// Takes an option of a field. Attributes that stand by themselves come to the others.
  Status add_field_option(const Entry& entry, WrittenOptions& options) {
    if (!is_one_of(entry.key, usual_attributes)) return add_option(entry, options);
    const Result<std::string> value = scalar(entry.value, entry.place, entry.key);
    TR_TRY(value.status());
    options.push_back({{"attributes", tailrace::text_of(Option{entry.key, *value})}, entry.place});
    return {};
  }

  Status check_field_key(const Entry& entry) const {
    if (entry.key == "every" || entry.key == "interval")
      return error(entry.place, cat(entry.key, ": is of a stream: give the field to a stream of its own"));
    if (is_one_of(entry.key, kProgramsOptions))
      return error(
          entry.place,
          cat(entry.key,
              ": says what the program's array is: the program alone can say it, in tr_stream_define"));
    return {};
  }

  /// Takes what a map says of a field. `own` are the keys beside the options.
  Status read_field(const YAML::Node& node, std::initializer_list<std::string_view> own,
                    WrittenField& field) {
    Names known(own);
    known.insert(known.end(), field_keys_.begin(), field_keys_.end());
    Result<std::vector<Entry>> all = entries(node, "a field");
    TR_TRY(all.status());
    for (const Entry& entry : *all) {
      TR_TRY(check_field_key(entry));
      if (!is_one_of(entry.key, known)) return error(entry.place, unknown_key(entry.key, "a field", known));
      if (!is_one_of(entry.key, Names(own))) {
        TR_TRY(add_field_option(entry, field.options));
        continue;
      }
      Result<std::string> value = line(entry.value, entry.place, entry.key);
      TR_TRY(value.status());
      if (entry.key != "later") {
        (entry.key == "name" ? field.name : field.in_file) = std::move(*value);
        continue;
      }
      if (*value != "true" && *value != "false")
        return error(entry.place,
                     cat("later: is true, for a field that the program may define behind its first step, or "
                         "false, and not \"",
                         *value, "\""));
      field.is_later = *value == "true";
    }
    return {};
  }

  Status read_shared(const Entry& fields, Written& written) {
    Result<std::vector<Entry>> all = entries(fields.value, "fields");
    TR_TRY(all.status());
    for (const Entry& entry : *all) {
      WrittenField field{entry.key, "", {}, entry.place};
      if (!entry.value.IsMap())
        return error(entry.place,
                     cat(entry.key, ": is a map of what all streams share of the field, as {units: K}"));
      TR_TRY(read_field(entry.value, {}, field));
      written.shared.emplace(entry.key, std::move(field));
    }
    return {};
  }

  Status read_streams(const Entry& streams, Written& written) {
    Result<std::vector<Entry>> all = entries(streams.value, "streams");
    TR_TRY(all.status());
    if (all->size() > kMostStreams)
      return error(streams.place,
                   cat("there are ", all->size(), " streams, and at most ", kMostStreams, " are taken"));
    for (const Entry& entry : *all) TR_TRY(read_stream(entry, written));
    return {};
  }

  Status read_stream(const Entry& from, Written& written) {
    static const Names& known = *new Names(names_of(stream_option_infos(), {"file", "fields", "every"}));
    Result<std::vector<Entry>> all = entries(from.value, "a stream", known);
    TR_TRY(all.status());
    WrittenStream stream;
    stream.name = from.key;
    stream.place = from.place;
    for (const Entry& entry : *all) {
      if (entry.key == "fields") {
        TR_TRY(read_fields(entry, stream));
      } else if (entry.key == "file" || entry.key == "every") {
        Result<std::string> value = line(entry.value, entry.place, entry.key);
        TR_TRY(value.status());
        if (entry.key == "every")
          stream.every = WrittenOption{{entry.key, *value}, entry.place};
        else
          stream.pattern = *value, stream.pattern_place = entry.place;
      } else {
        TR_TRY(add_option(entry, stream.options));
      }
    }
    if (stream.pattern.empty())
      return error(from.place, cat("stream ", from.key,
                                   ": file: is missing; it names the files, as file: out/{valid:%Y%m%d}.nc"));
    if (stream.fields.empty())
      return error(from.place,
                   cat("stream ", from.key,
                       ": fields: is missing; it lists what is written, as fields: [temperature, wind_u]"));
    written.streams.push_back(std::move(stream));
    return {};
  }

  Status read_fields(const Entry& from, WrittenStream& stream) {
    if (!from.value.IsSequence())
      return error(from.place, "fields: is a list: [temperature, {name: wind_u, as: u}]");
    std::map<std::string, int> lines;
    for (const auto& each : from.value) {
      WrittenField field;
      field.place = place_of(each.Mark());
      if (each.IsMap()) {
        TR_TRY(read_field(each, {"name", "as", "later"}, field));
        if (field.name.empty())
          return error(field.place, "name: is missing: which field of the program is it?");
      } else {
        Result<std::string> name = line(each, field.place, "a field");
        TR_TRY(name.status());
        field.name = std::move(*name);
      }
      if (field.name.empty()) return error(field.place, "the name of a field is empty");
      if (field.in_file.empty()) field.in_file = field.name;
      const auto [before, is_first] = lines.emplace(field.in_file, field.place.line);
      if (!is_first)
        return error(field.place, cat("the stream has a field \"", field.in_file, "\" already, from line ",
                                      before->second, "; as: gives one of them another name in the file"));
      if (++fields_ > kMostFields)
        return error(field.place, cat("there are more than ", kMostFields, " fields"));
      stream.fields.push_back(std::move(field));
    }
    return {};
  }

  const std::string& path_;
  Names field_keys_;
  std::size_t bytes_ = 0;
  std::size_t fields_ = 0;
};

}  // namespace

Result<Written> read_yaml(std::string_view text, const std::string& path) {
  if (text.size() > most_description_bytes)
    return settings_error(cat(path, ": the file has more than 1 MiB, and is no description"));
  int number = 0;
  for (std::size_t at = 0; at < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    if (!is_utf8(text.substr(at, end - at)))
      return error_at(path, {number + 1, 1}, "the line is not UTF-8: convert the file");
    at = end + 1;
  }
  try {
    return YamlReader(path).read(text);
#if TAILRACE_YAML_HAS_DEPTH
  } catch (const YAML::DeepRecursion& error) {
    return error_at(path, place_of(error.mark),
                    cat("lists and maps lie ", error.depth(),
                        " deep in one another, and a description needs 6: is a bracket left open?"));
#endif
  } catch (const YAML::Exception& error) {
    return error_at(
        path, place_of(error.mark),
        cat(error.msg,
            ": the text is no YAML (blanks indent lines, no tabs; each KEY: has a blank behind it)"));
  } catch (const std::exception& error) {
    return error_at(path, {}, cat("the text cannot be read: ", error.what()));
  }
}

#else

Result<Written> read_yaml(std::string_view, const std::string& path) {
  return Status(Code::unsupported,
                cat(path,
                    ": this library was built without yaml-cpp, which reads descriptions: install "
                    "libyaml-cpp-dev and build it again"));
}

#endif

}  // namespace tailrace::streams
