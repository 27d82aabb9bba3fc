// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "commands.hpp"
#include "faces/streams/files/manifest.hpp"
#include "formats/index/ending.hpp"
#include "formats/index/index.hpp"
#include "formats/stores/stores.hpp"
#include "ground/base/text.hpp"
#include "ground/storage/target.hpp"

namespace tailrace::cli {
namespace {

using streams::IndexContents;
using streams::ManifestEntry;

/// Returns the last entry of the file in the manifest beside it, if that entry is of the same run as the
/// index, or nothing.
Result<std::optional<ManifestEntry>> listed(storage::Target& target, const std::string& path,
                                            const IndexContents& contents) {
  const std::string manifest = streams::manifest_path(path);
  const Result<bool> exists = target.exists(manifest);
  TR_TRY(exists.status());
  if (!*exists) return std::optional<ManifestEntry>();
  const Result<std::vector<ManifestEntry>> entries = streams::read_manifest(target, manifest);
  TR_TRY(entries.status());
  const std::string name = streams::manifest_entry(path, contents).path;
  const auto last = std::find_if(entries->rbegin(), entries->rend(),
                                 [&](const ManifestEntry& entry) { return entry.path == name; });
  if (last == entries->rend() || last->run != contents.header.run) return std::optional<ManifestEntry>();
  return std::optional<ManifestEntry>(*last);
}

/// Returns an error if there is no such file, or if no stream has written it.
Status check_indexed(storage::Target& target, const std::string& path, const std::string& index) {
  const Result<bool> indexed = target.exists(index);
  if (!indexed.is_ok() || *indexed) return indexed.status();
  const Result<bool> exists = target.exists(path);
  TR_TRY(exists.status());
  if (!*exists) return io_error("open", path, ENOENT);
  return {Code::io,
          cat(path, ": has no index, ", index,
              ": no stream of Tailrace has written the file, or somebody has removed the index"),
          ENOENT};
}

/// Verifies a file. Returns a text that says what is right, or an error that says what is wrong.
Result<std::string> verify(storage::Target& target, const std::string& path) {
  const Result<std::string> index = streams::find_index(target, path);
  TR_TRY(index.status());
  TR_TRY(check_indexed(target, path, *index));
  const Result<IndexContents> contents = streams::load_index(target, *index);
  TR_TRY(contents.status());
  if (contents->tail == streams::IndexTail::damaged)
    return Status(Code::corrupt, cat(*index, ": ", contents->tail_text));
  TR_TRY(storage::check_holds(target, path, contents->data_end(), streams::ranges_of(contents->steps)));
  const std::size_t steps = contents->steps.size();
  const std::string has =
      cat(steps, steps == 1 ? " step" : " steps", ", ", counted(contents->data_end(), "byte"));
  const Result<bool> ended = streams::has_ending(target, path, *contents);
  TR_TRY(ended.status());
  const std::string repair = cat("`tailrace repair ", path, "` writes it");
  if (!contents->closed)
    return cat(
        "long enough: ", has, "; the file is open, so that no digest is known",
        *ended
            ? ""
            : cat(", and has no ending, without which no other reader opens it: once no program writes it, ",
                  repair));
  if (!*ended)
    return Status(
        Code::corrupt,
        cat(path, ": its ending is missing or damaged, without which no other reader opens it: ", repair));
  const Result<std::optional<ManifestEntry>> entry = listed(target, path, *contents);
  TR_TRY(entry.status());
  if (!entry->has_value()) return cat("long enough: ", has, "; no manifest has a digest of it");
  const Result<std::string> digest = streams::digest_file(target, path);
  TR_TRY(digest.status());
  if (*digest == (*entry)->digest) return cat("whole: ", has, ", digest ", *digest);
  return Status(Code::corrupt, cat(path, ": its digest is ", *digest, ", that of the manifest ",
                                   (*entry)->digest, ": its bytes were changed after it was finished"));
}

int run_verify_files(const std::vector<std::string>& files) {
  const std::shared_ptr<storage::Target> target = stores::with_stores(storage::default_target());
  int exit = Exit::done;
  for (const std::string& file : files) {
    const std::string path = data_path_of(file);
    const Result<std::string> right = verify(*target, path);
    if (right.is_ok())
      std::printf("%s: %s\n", path.c_str(), right->c_str());
    else
      exit = std::max(exit, report("verify", right.status()));
  }
  return exit;
}

}  // namespace

void add_verify(CLI::App& app, int& exit) {
  CLI::App* command =
      app.add_subcommand("verify", "Compares files with their indexes and with the manifest's digests");
  const auto files = std::make_shared<std::vector<std::string>>();
  command->add_option("FILE", *files, "data files, or their indexes")->required();
  command->footer(
      "Each file must be as long as its index says, and a finished NetCDF-4 file have its ending. A "
      "finished\n"
      "file is read whole and its digest compared\n"
      "with that of manifest.jsonl beside it, if the manifest has one (manifest=on).\n\n"
      "Exit codes: 0 nothing is wrong, 1 no index or unreadable, 2 usage, 4 a file was cut or changed\n\n"
      "Examples:\n"
      "  tailrace verify out/*.grib2\n"
      "  tailrace verify out/fc+006.grib2 || echo 'do not send this one'");
  command->callback([files, &exit] { exit = run_verify_files(*files); });
}

}  // namespace tailrace::cli
