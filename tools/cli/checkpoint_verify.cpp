// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <iterator>

#include "checkpoint.hpp"
#include "ground/base/text.hpp"
#include "ground/journal/undo_file.hpp"

#if TAILRACE_HAVE_JSON
#include <nlohmann/json.hpp>
#endif

namespace tailrace::cli {
namespace {

/// What was found in one copy, or in one undo file.
struct Verdict {
  std::string path;
  bool undo = false;
  std::int64_t generation = 0;
  Bytes bytes = 0;                    // how many bytes were read
  std::vector<std::string> problems;  // empty if the copy or undo file is whole
  bool unreadable = false;
};

/// Prints on one line how far a long read has come, if standard error is a terminal. The destructor clears
/// the line.
class Progress {
 public:
  Progress(std::string path, Bytes total) : path_(std::move(path)), total_(total) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() {
    if (shown_) std::fputs("\r\033[K", stderr);
  }
  void show(Bytes done) {
    const auto now = Clock::now();
    if (!terminal_ || now - last_ < std::chrono::milliseconds(500)) return;
    last_ = now;
    shown_ = true;
    const double share = total_ > 0 ? 100.0 * static_cast<double>(done) / static_cast<double>(total_) : 100.0;
    std::fprintf(stderr, "\r\033[K%s: %.0f%% of %lld MiB", path_.c_str(), share,
                 static_cast<long long>(total_ >> 20));
  }

 private:
  using Clock = std::chrono::steady_clock;
  const std::string path_;
  const Bytes total_;
  const bool terminal_ = ::isatty(STDERR_FILENO) != 0;
  Clock::time_point last_ = Clock::now();
  bool shown_ = false;
};

Bytes total_bytes(const checkpoint::Copy& copy) {
  Bytes bytes = 0;
  for (const checkpoint::PartPlace& part : copy.directory.parts) bytes += part.bytes;
  return bytes;
}

void check_elements(storage::Target& target, const checkpoint::Copy& copy, Verdict& verdict) {
  checkpoint::CopyReader reader(target, copy);
  Progress progress(copy.path, total_bytes(copy));
  for (std::size_t part = 0; part < copy.tables.size(); ++part) {
    progress.show(verdict.bytes);
    const Status status = reader.check(static_cast<int>(part));
    if (!status.is_ok()) verdict.problems.push_back(status.text());
    // A copy that this build cannot decompress may be whole: it is not called damaged.
    if (status.code() == Code::unsupported) verdict.unreadable = true;
    verdict.bytes += copy.directory.parts[part].bytes;
  }
}

Verdict verify(storage::Target& target, const checkpoint::Found& found) {
  Verdict verdict;
  verdict.path = found.path;
  verdict.generation = found.generation;
  Result<checkpoint::Copy> copy = guarded([&] { return checkpoint::read_copy(target, found.path); });
  if (copy.is_ok()) {
    check_elements(target, *copy, verdict);
  } else {
    verdict.problems.push_back(copy.status().text());
    verdict.unreadable = !is_damage(target, found);
  }
  return verdict;
}

/// Reads all sealed records of an undo file, and counts their bytes. Records that were never sealed are not
/// missed.
Status read_records(storage::Target& target, const journal::UndoName& name, Bytes& bytes) {
  Result<journal::UndoReader> reader = journal::UndoReader::open(target, name);
  TR_TRY(reader.status());
  while (true) {
    const Result<std::optional<journal::UndoRecord>> record = reader->next();
    TR_TRY(record.status());
    if (!*record) return {};
    bytes += static_cast<Bytes>((*record)->bytes.size());
  }
}

/// Verifies the undo files of all copies of the checkpoint.
Result<std::vector<Verdict>> verify_undo_files(storage::Target& target, const std::string& name) {
  const Result<std::vector<journal::UndoName>> all = journal::find_undo_files(target, name);
  TR_TRY(all.status());
  std::vector<Verdict> verdicts;
  for (const journal::UndoName& undo : *all) {
    Verdict verdict{undo.path, true, undo.generation, 0, {}, false};
    const Status status = guarded([&] { return read_records(target, undo, verdict.bytes); });
    if (status.error_number() == ENOENT) continue;  // a program that saves has removed the file
    if (!status.is_ok()) verdict.problems.push_back(status.text());
    verdict.unreadable = !status.is_ok() && status.code() != Code::corrupt;
    verdicts.push_back(std::move(verdict));
  }
  return verdicts;
}

void print_text(const std::vector<Verdict>& verdicts, bool quiet) {
  for (const Verdict& verdict : verdicts) {
    if (verdict.problems.empty() && !quiet) {
      std::puts(cat(verdict.path, ": ", verdict.undo ? "undo file of " : "", "generation ",
                    verdict.generation, " is whole, ", verdict.bytes,
                    verdict.undo ? " bytes kept" : " bytes of parts read")
                    .c_str());
    }
    for (const std::string& problem : verdict.problems)
      std::puts(cat(verdict.unreadable ? "UNREADABLE: " : "DAMAGED: ", problem).c_str());
  }
}

Status print_json([[maybe_unused]] const std::vector<Verdict>& verdicts) {
#if TAILRACE_HAVE_JSON
  using Json = nlohmann::ordered_json;
  Json json = Json::array();
  for (const Verdict& verdict : verdicts) {
    json.push_back({{"path", verdict.path},
                    {"generation", verdict.generation},
                    {"whole", verdict.problems.empty()},
                    {"bytes", verdict.bytes},
                    {"problems", verdict.problems}});
  }
  std::puts(json.dump(1, ' ', false, Json::error_handler_t::replace).c_str());
  return {};
#else
  return {Code::unsupported, "--json needs JSON, and this tailrace was built without nlohmann-json"};
#endif
}

int run_verify_copies(const std::string& name, bool json, bool quiet) {
  const std::shared_ptr<storage::Target> target = storage::default_target();
  const Result<std::vector<std::string>> paths = copies_named(*target, name);
  if (!paths.is_ok()) return report_checkpoint("verify", paths.status());
  std::vector<Verdict> verdicts;
  int answer = Answer::fine;
  for (const checkpoint::Found& found : checkpoint::look_at(*target, *paths))
    verdicts.push_back(verify(*target, found));
  if (paths->front() != name) {
    Result<std::vector<Verdict>> undo = verify_undo_files(*target, name);
    if (!undo.is_ok()) return report_checkpoint("verify", undo.status());
    std::move(undo->begin(), undo->end(), std::back_inserter(verdicts));
  }
  for (const Verdict& verdict : verdicts) {
    if (verdict.unreadable)
      answer = Answer::trouble;
    else if (!verdict.problems.empty() && answer == Answer::fine)
      answer = Answer::differs;
  }
  if (!json) {
    print_text(verdicts, quiet);
    return answer;
  }
  const Status status = print_json(verdicts);
  return status.is_ok() ? answer : report_checkpoint("verify", status);
}

}  // namespace

void add_checkpoint_verify(CLI::App& app, int& exit) {
  CLI::App* command =
      app.add_subcommand("verify", "Reads copies and undo files whole and checks every block");
  const auto name = std::make_shared<std::string>();
  const auto json = std::make_shared<bool>(false);
  const auto quiet = std::make_shared<bool>(false);
  command->add_option("NAME-or-PATH", *name, "a checkpoint, with all its copies and undo files, or one copy")
      ->required();
  command->add_flag("--json", *json, "as JSON");
  command->add_flag("--quiet", *quiet, "print only what is damaged");
  command->footer(
      "Of each part the first damaged block is told. A copy that a program is writing is broken until it is\n"
      "done. Undo files (NAME.uN...) hold what brings files back that were written over: one that is damaged "
      "fails\n"
      "the run that goes on and opens the file.\n\n"
      "Exit codes: 0 everything is whole, 1 something is not, 2 usage, or unreadable\n\n"
      "Examples:\n"
      "  tailrace checkpoint verify run/state\n"
      "  tailrace checkpoint verify --quiet run/state.1 || echo 'not this one'");
  command->callback([name, json, quiet, &exit] {
    exit = answer_of("verify", [&] { return run_verify_copies(*name, *json, *quiet); });
  });
}

}  // namespace tailrace::cli
