// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "collective_cases.hpp"

#include <algorithm>
#include <optional>

#include "ground/base/text.hpp"

namespace tailrace::comm {

namespace {

using Run = CollectiveFiles::Run;

/// A call that is under way.
using Told = std::shared_ptr<std::optional<Status>>;
Told told() { return std::make_shared<std::optional<Status>>(); }
CollectiveFiles::Done into(const Told& to) {
  return [to](const Status& status) { *to = status; };
}
CollectiveFiles::Opened into(const Told& to, const std::shared_ptr<bool>& is_open) {
  return [to, is_open](const Status& status, bool is) {
    *is_open = is;
    *to = status;
  };
}
Status fine() { return {}; }
Status broken() { return {Code::io, "this process cannot"}; }

Status wait(CollectiveEnd& end, const Told& what) {
  while (!what->has_value()) {
    if (!end.files().poll()) end.idle();
  }
  return **what;
}

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

/// Makes an empty file on the first process, for all.
std::string make_file(CollectiveEnd& end, const std::string& name) {
  const std::string path = end.path(name);
  if (end.rank() == 0) end.check(storage::create_empty(end.target(), path).is_ok(), "the file is made");
  end.meet();
  return path;
}

std::string contents(CollectiveEnd& end, const std::string& path) {
  end.meet();
  Result<std::unique_ptr<storage::File>> file = end.target().open(path, storage::OpenMode::read);
  end.check(file.is_ok(), "the file is there");
  if (!file.is_ok()) return {};
  std::string text(static_cast<std::size_t>(*(*file)->size()), '\0');
  end.check((*file)->read(std::as_writable_bytes(std::span(text)), 0).is_ok(), "the file can be read");
  end.meet();
  return text;
}

void check_ok(CollectiveEnd& end, const Status& status, const std::string& what) {
  end.check(status.is_ok(), cat(what, ": ", status.text()));
}

void open(CollectiveEnd& end, const std::string& path, const Hints& hints = {}) {
  const Told opened = told();
  const auto is_open = std::make_shared<bool>(false);
  end.files().open(path, hints, fine, into(opened, is_open));
  check_ok(end, wait(end, opened), "open");
  end.check(*is_open, "all are told that it is open");
}

Status write(CollectiveEnd& end, const std::string& path, std::vector<Run> runs, int calls,
             CollectiveFiles::Own own = fine) {
  const Told written = told();
  end.files().write(path, std::move(runs), calls, std::move(own), into(written));
  return wait(end, written);
}

void sync_and_close(CollectiveEnd& end, const std::string& path) {
  const Told synced = told(), closed = told();
  int own = 0;
  const auto count = [&own]() -> Status {
    ++own;
    return {};
  };
  end.files().sync(path, count, into(synced));
  check_ok(end, wait(end, synced), "sync");
  end.files().close(path, count, into(closed));
  check_ok(end, wait(end, closed), "close");
  end.check(own == 2, "sync and close make the process's own part");
}

/// Process r writes the letter 'a' + r to every size-th place, in runs of one byte with two parts each.
void bytes_of_all_processes_stand_at_their_offsets(CollectiveEnd& end) {
  const std::string path = make_file(end, "interleaved");
  open(end, path, {{"no_such_hint", "7"}, {"cb_nodes", "1"}});
  constexpr int times = 20;
  const std::string letters(2, static_cast<char>('a' + end.rank()));
  std::vector<Run> runs;
  for (int i = 0; i < times; ++i) {
    const Bytes offset = 2 * (i * end.size() + end.rank());
    runs.push_back({offset, {bytes_of(letters).first(1), bytes_of(letters).subspan(1)}});
  }
  check_ok(end, write(end, path, runs, times), "write");
  sync_and_close(end, path);
  std::string expected;
  for (int i = 0; i < times * end.size(); ++i)
    expected += std::string(2, static_cast<char>('a' + i % end.size()));
  end.check(contents(end, path) == expected, "the bytes");
}

/// The last process has no bytes, and the first has them in memory behind one another in another order.
void processes_with_few_runs_or_none_take_part(CollectiveEnd& end) {
  const std::string path = make_file(end, "few");
  open(end, path);
  const std::string memory = "6789012345";
  const bool has_none = end.size() > 1 && end.rank() == end.size() - 1;
  const int runs_of_all = end.size() + 1;
  std::vector<Run> runs;
  for (int i = 0; i <= end.rank() && !has_none; ++i) {
    const Bytes offset = 10 * (i * end.size() + end.rank());
    runs.push_back({offset, {bytes_of(memory).subspan(4), bytes_of(memory).first(4)}});
  }
  check_ok(end, write(end, path, runs, runs_of_all), "write");
  check_ok(end, write(end, path, {}, 1), "nobody writes");
  check_ok(end, write(end, path, {}, 0), "no call");
  sync_and_close(end, path);
  std::string expected;
  const int writers = std::max(end.size() - 1, 1);
  for (int i = 0; i < writers; ++i) {
    for (int rank = 0; rank < writers; ++rank) {
      if (i > rank) continue;
      const auto at = static_cast<std::size_t>(10 * (i * end.size() + rank));
      if (expected.size() < at + 10) expected.resize(at + 10, '\0');
      expected.replace(at, 10, "0123456789");
    }
  }
  const std::string found = contents(end, path);
  end.check(found.size() == expected.size(), cat("size ", found.size(), ", expected ", expected.size()));
  end.check(found == expected, "the bytes");
}

void a_process_whose_own_part_fails_takes_part_without_bytes(CollectiveEnd& end) {
  const std::string path = make_file(end, "own");
  open(end, path);
  const std::string text = "text";
  const auto runs = [&] { return std::vector<Run>{{4 * end.rank(), {bytes_of(text)}}}; };
  const bool fails = end.rank() == 0;
  const Status status = write(end, path, runs(), 1, fails ? broken : fine);
  end.check(fails ? status.code() == Code::io : status.is_ok(), cat("its own verdict: ", status.text()));
  const std::string first = contents(end, path);
  end.check(end.size() == 1 ? first.empty() : first.substr(0, 4) == std::string(4, '\0'), "no bytes yet");
  check_ok(end, write(end, path, runs(), 1), "once more, by all");
  sync_and_close(end, path);
  std::string expected;
  for (int i = 0; i < end.size(); ++i) expected += text;
  end.check(contents(end, path) == expected, "the bytes of all");
}

void a_file_that_one_process_cannot_open_is_open_on_none(CollectiveEnd& end) {
  const std::string path = make_file(end, "refused");
  const Told opened = told();
  const bool fails = end.rank() == end.size() - 1;
  const auto is_open = std::make_shared<bool>(true);
  end.files().open(path, {}, fails ? broken : fine, into(opened, is_open));
  const Status status = wait(end, opened);
  end.check(!*is_open, "all are told that it is not open");
  if (fails) end.check(status.code() == Code::io, "the error is told where it was");
  const std::string text = "text";
  const Status written = write(end, path, {{0, {bytes_of(text)}}}, 1);
  end.check(written.code() == Code::state, cat("a write to it: ", written.text()));
  const Told closed = told();
  end.files().close(path, fine, into(closed));
  check_ok(end, wait(end, closed), "closing what is not open");
  open(end, path);
  check_ok(end, write(end, path, {{end.rank(), {bytes_of(text).first(1)}}}, 1), "write");
  sync_and_close(end, path);
  end.check(contents(end, path) == std::string(static_cast<std::size_t>(end.size()), 't'), "the bytes");
}

void a_missing_file_is_an_error_on_some_process(CollectiveEnd& end) {
  const std::string path = end.path("missing");
  const Told opened = told();
  end.files().open(
      path, {}, [&]() -> Status { return end.target().open(path, storage::OpenMode::existing).status(); },
      into(opened, std::make_shared<bool>(false)));
  const Status status = wait(end, opened);
  end.check(status.code() == Code::io, "it is missing everywhere");
  end.meet();
}

/// Calls of several files are queued at once, before any is made.
void calls_are_made_in_their_order(CollectiveEnd& end) {
  constexpr int files = 3, rounds = 10;
  std::vector<std::string> paths, texts;
  for (int i = 0; i < files; ++i) paths.push_back(make_file(end, cat("several", i)));
  for (int i = 0; i < rounds; ++i) texts.push_back(std::string(8, static_cast<char>('0' + i)));
  std::vector<Told> all;
  std::vector<std::size_t> order;
  const auto next = [&] {
    all.push_back(told());
    return [to = all.back(), number = all.size(), &order](const Status& status) {
      *to = status;
      order.push_back(number);
    };
  };
  for (const std::string& path : paths)
    end.files().open(path, {}, fine, [told = next()](const Status& status, bool) { told(status); });
  for (const std::string& text : texts) {
    for (const std::string& path : paths)
      end.files().write(path, {{8 * end.rank(), {bytes_of(text)}}}, 1, fine, next());
  }
  for (const std::string& path : paths) end.files().sync(path, fine, next());
  for (const std::string& path : paths) end.files().close(path, fine, next());
  for (const Told& each : all) check_ok(end, wait(end, each), "a queued call");
  end.check(std::ranges::is_sorted(order), "their ends come in order");
  std::string expected;
  for (int i = 0; i < end.size(); ++i) expected += texts.back();
  for (const std::string& path : paths) end.check(contents(end, path) == expected, "the last round");
}

void names_may_have_a_colon(CollectiveEnd& end) {
  const std::string path = make_file(end, "at_12:30");
  open(end, path);
  const std::string text = "x";
  check_ok(end, write(end, path, {{end.rank(), {bytes_of(text)}}}, 1), "write");
  sync_and_close(end, path);
  end.check(contents(end, path) == std::string(static_cast<std::size_t>(end.size()), 'x'), "the bytes");
}

/// Returns false where the MPI cannot append, as OMPIO: its cases have nothing to show then.
bool can_append(CollectiveEnd& end) {
  const Told tried = told();
  end.files().try_appends(end.path("tried"), into(tried));
  const Status status = wait(end, tried);
  end.check(status.is_ok() || status.text().find("OMPI_MCA_io=^ompio") != std::string::npos,
            cat("the trial: ", status.text()));
  end.meet();
  return status.is_ok();
}

Status seek(CollectiveEnd& end, const std::string& path, Bytes offset) {
  const Told sought = told();
  end.files().seek(path, offset, into(sought));
  return wait(end, sought);
}

/// Appends `count` texts, each process in its turn, from `begin` on: the i-th consists of the letter 'A' + i.
/// The processes wait for the ends of all at last. Each text has two parts, apart in memory.
std::string append_in_turns(CollectiveEnd& end, const std::string& path, Bytes begin, int count, Bytes size) {
  std::vector<Told> ends;
  std::vector<std::string> texts;
  texts.reserve(static_cast<std::size_t>(2 * count));
  std::string expected;
  Bytes offset = begin;
  for (int i = 0; i < count; ++i) {
    const char letter = static_cast<char>('A' + i);
    expected += std::string(static_cast<std::size_t>(size), letter);
    if (i % end.size() == end.rank()) {
      const std::string& first = texts.emplace_back(static_cast<std::size_t>(size / 3), letter);
      const std::string& rest = texts.emplace_back(static_cast<std::size_t>(size - size / 3), letter);
      const Told begun = told();
      ends.push_back(told());
      end.files().append(path, offset, {bytes_of(rest), bytes_of(first)}, fine, into(begun),
                         into(ends.back()));
      check_ok(end, wait(end, begun), cat("append ", i));
    }
    offset += size;
    end.meet();
  }
  for (const Told& each : ends) check_ok(end, wait(end, each), "the end of an append");
  return expected;
}

void appends_stand_where_their_turns_say(CollectiveEnd& end) {
  if (!can_append(end)) return;
  const std::string path = make_file(end, "appended");
  open(end, path);
  check_ok(end, seek(end, path, 7), "seek");
  std::string expected = std::string(7, '\0') + append_in_turns(end, path, 7, 20, 1000);
  expected += append_in_turns(end, path, std::ssize(expected), 10, 70'001);
  sync_and_close(end, path);
  end.check(contents(end, path) == expected, "the bytes");
  open(end, path);
  check_ok(end, seek(end, path, 3000), "seek in a file that is opened anew");
  expected.replace(3000, 5 * 2000, append_in_turns(end, path, 3000, 5, 2000));
  sync_and_close(end, path);
  end.check(contents(end, path) == expected, "what is written once more");
}

void a_sync_covers_appends_that_are_under_way(CollectiveEnd& end) {
  if (!can_append(end)) return;
  const std::string path = make_file(end, "covered");
  open(end, path);
  check_ok(end, seek(end, path, 0), "seek");
  const std::string text(100'000, static_cast<char>('a' + end.rank()));
  Bytes offset = 0;
  std::vector<Told> ends;
  for (int turn = 0; turn < 3 * end.size(); ++turn) {
    if (turn % end.size() == end.rank()) {
      const Told begun = told();
      ends.push_back(told());
      end.files().append(path, offset, {bytes_of(text)}, fine, into(begun), into(ends.back()));
      check_ok(end, wait(end, begun), "append");
    }
    offset += std::ssize(text);
    end.meet();
  }
  sync_and_close(end, path);
  for (const Told& each : ends) end.check(each->has_value(), "it was over before the sync");
  std::string expected;
  for (int turn = 0; turn < 3 * end.size(); ++turn)
    expected += std::string(text.size(), static_cast<char>('a' + turn % end.size()));
  end.check(contents(end, path) == expected, "the bytes");
}

/// An MPI may refuse to make a call while writes of another file are under way.
void calls_on_one_file_go_by_appends_to_another(CollectiveEnd& end) {
  if (!can_append(end)) return;
  const std::string first = make_file(end, "first"), second = make_file(end, "second");
  const std::string text(3'000'000, static_cast<char>('a' + end.rank()));
  open(end, first);
  open(end, second);
  std::string expected;
  for (int round = 0; round < 5; ++round) {
    check_ok(end, seek(end, second, 0), "seek");
    Bytes offset = 0;
    const Told ended = told();
    for (int turn = 0; turn < end.size(); ++turn) {
      if (turn == end.rank()) {
        const Told begun = told();
        end.files().append(second, offset, {bytes_of(text)}, fine, into(begun), into(ended));
        check_ok(end, wait(end, begun), "append");
      }
      offset += std::ssize(text);
      end.meet();
    }
    const Told synced = told();
    end.files().sync(first, fine, into(synced));
    check_ok(end, wait(end, synced), "sync of the other file");
    check_ok(end, wait(end, ended), "the end of the append");
  }
  sync_and_close(end, first);
  sync_and_close(end, second);
  for (int turn = 0; turn < end.size(); ++turn)
    expected += std::string(text.size(), static_cast<char>('a' + turn));
  end.check(contents(end, second) == expected, "the bytes");
}

/// An MPI may know shared file pointers by the names of the files alone.
void files_of_the_same_name_have_pointers_of_their_own(CollectiveEnd& end) {
  if (!can_append(end)) return;
  if (end.rank() == 0)
    end.check(end.target().make_directories(end.path("there")).is_ok(), "the directory is made");
  const std::string here = make_file(end, "same"), there = make_file(end, "there/same");
  open(end, here);
  open(end, there);
  check_ok(end, seek(end, here, 0), "seek");
  check_ok(end, seek(end, there, 5), "seek in the other file");
  std::string text = append_in_turns(end, here, 0, 4, 1000);
  std::string other = std::string(5, '\0') + append_in_turns(end, there, 5, 3, 700);
  text += append_in_turns(end, here, std::ssize(text), 2, 100);
  sync_and_close(end, here);
  other += append_in_turns(end, there, std::ssize(other), 3, 300);
  sync_and_close(end, there);
  end.check(contents(end, here) == text, "the bytes");
  end.check(contents(end, there) == other, "the bytes of the other file");
}

void an_append_whose_own_part_fails_moves_nothing(CollectiveEnd& end) {
  if (!can_append(end)) return;
  const std::string path = make_file(end, "own_append");
  const std::string text = "text";
  const Told closed = told();
  end.files().append(path, 0, {bytes_of(text)}, fine, into(closed), [](const Status&) {});
  end.check(wait(end, closed).code() == Code::state, "an append to a file that is not open");
  open(end, path);
  check_ok(end, seek(end, path, 0), "seek");
  if (end.rank() == 0) {
    const Told refused = told();
    end.files().append(path, 0, {bytes_of(text)}, broken, into(refused),
                       [&](const Status&) { end.check(false, "nothing was under way"); });
    end.check(wait(end, refused).code() == Code::io, "its own error");
  }
  end.meet();
  const std::string expected = append_in_turns(end, path, 0, end.size(), 10);
  sync_and_close(end, path);
  end.check(contents(end, path) == expected, "the bytes");
}

void a_trial_of_appends_leaves_nothing(CollectiveEnd& end) {
  const std::string beside = make_file(end, "beside");
  end.meet();
  can_append(end);
  end.meet();
  const std::size_t slash = beside.rfind('/');
  const Result<std::vector<std::string>> names =
      end.target().list(slash == std::string::npos ? "." : beside.substr(0, slash));
  end.check(names.is_ok() && std::ranges::count(*names, "tried") == 0, "the file is removed");
  for (const std::string& name : names.is_ok() ? *names : std::vector<std::string>())
    end.check(name.find("tried") == std::string::npos, cat("what is left: ", name));
  end.meet();
}

void a_run_may_take_several_calls(CollectiveEnd& end) {
  const std::string path = make_file(end, "large");
  open(end, path);
  constexpr Bytes size = CollectiveFiles::most_at_once + 1000;
  const Bytes far = Bytes{5} << 30;
  const bool writes = end.rank() == 0;
  ByteVector bytes(writes ? static_cast<std::size_t>(size) : 0, std::byte{'l'});
  if (writes) bytes.back() = std::byte{'e'};
  const std::span<const std::byte> all = bytes;
  std::vector<Run> runs;
  if (writes) runs.push_back({far, {all.first(10), all.subspan(10)}});
  check_ok(end, write(end, path, runs, CollectiveFiles::calls_for(size)), "write");
  sync_and_close(end, path);
  end.meet();
  const auto file = *end.target().open(path, storage::OpenMode::read);
  ByteVector found(3);
  end.check(*file->size() == far + size, "the size");
  end.check(
      *file->read(found, far + size - 3) == 3 && found[1] == std::byte{'l'} && found[2] == std::byte{'e'},
      "the end");
  end.meet();
  if (end.rank() == 0) end.check(end.target().remove(path).is_ok(), "the file is removed");
}

}  // namespace

const std::vector<CollectiveCase>& collective_cases() {
  static const std::vector<CollectiveCase> cases = {
      {"bytes_of_all_processes_stand_at_their_offsets", bytes_of_all_processes_stand_at_their_offsets},
      {"processes_with_few_runs_or_none_take_part", processes_with_few_runs_or_none_take_part},
      {"a_process_whose_own_part_fails_takes_part_without_bytes",
       a_process_whose_own_part_fails_takes_part_without_bytes},
      {"a_file_that_one_process_cannot_open_is_open_on_none",
       a_file_that_one_process_cannot_open_is_open_on_none},
      {"a_missing_file_is_an_error_on_some_process", a_missing_file_is_an_error_on_some_process},
      {"calls_are_made_in_their_order", calls_are_made_in_their_order},
      {"names_may_have_a_colon", names_may_have_a_colon},
      {"appends_stand_where_their_turns_say", appends_stand_where_their_turns_say},
      {"a_sync_covers_appends_that_are_under_way", a_sync_covers_appends_that_are_under_way},
      {"calls_on_one_file_go_by_appends_to_another", calls_on_one_file_go_by_appends_to_another},
      {"files_of_the_same_name_have_pointers_of_their_own",
       files_of_the_same_name_have_pointers_of_their_own},
      {"an_append_whose_own_part_fails_moves_nothing", an_append_whose_own_part_fails_moves_nothing},
      {"a_trial_of_appends_leaves_nothing", a_trial_of_appends_leaves_nothing},
  };
  return cases;
}

const std::vector<CollectiveCase>& large_collective_cases() {
  static const std::vector<CollectiveCase> cases = {
      {"a_run_may_take_several_calls", a_run_may_take_several_calls},
  };
  return cases;
}

}  // namespace tailrace::comm
