// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Checkpoints through the public face: what was saved comes back, whatever the layouts and modes; what is
// damaged is passed over; bad input and failures are told alike on every rank.
#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <thread>
#include <vector>

#include "checkpoint/saved_field.hpp"
#include "files/fixture.hpp"
#include "support/process_memory.hpp"

using namespace tailrace::files_test;
using tailrace::available_memory;
using tailrace::process_memory;

namespace {

/// Loads with the names that `name_items` gives. The load must be refused with this text, the same on every
/// rank.
template <typename NameItems>
void refused_load(tr_checkpoint* cp, const NameItems& name_items, const std::string& expected) {
  int found = 0;
  CHECK_EQ(tr_checkpoint_begin(cp, TR_LOAD, &found), TR_OK);
  CHECK_EQ(found, 1);
  name_items();
  CHECK_EQ(tr_checkpoint_end(cp), TR_ERR_ARGUMENT);
  if (!CHECK(mentions(tr_error(), expected))) std::fprintf(stderr, "  %s\n", tr_error());
  CHECK(same_on_all_ranks(tr_error()));
}

void name_field(tr_checkpoint* cp, Field& field) {
  tr_checkpoint_item(cp, "t", field.values.data(), TR_F64, field.layout.get());
}

/// Names a field that is missing on the last rank.
void name_lost_field(tr_checkpoint* cp, Field& field) {
  double* const values = rank() == size() - 1 ? nullptr : field.values.data();
  tr_checkpoint_item(cp, "t", values, TR_F64, field.layout.get());
}

}  // namespace

MPI_TEST(checkpoint, what_is_saved_comes_back_in_any_layout) {
  const std::string directory = fresh_directory("checkpoint-layouts");
  const std::vector<std::vector<tr_index>> shapes = {{37}, {13, 11}, {3, 7, 9}};
  for (const char* options :
       {"mode=parallel", "mode=local async=off", "compress=zstd", "compress=lz4 mode=local"}) {
    for (std::size_t s = 0; s < shapes.size(); ++s) {
      const Session session;
      for (int from = 0; from < kinds; ++from) {
        const std::string name =
            directory + "/" + std::to_string(from) + std::to_string(s) + options[5] + options[9];
        Field field(from, shapes[s], 2);
        field.fill(0.25);
        tr_checkpoint* cp = create(name, options);
        CHECK_EQ(save(cp, 5, field), TR_OK);
        field.clear();  // captured: the data may change
        CHECK_EQ(tr_checkpoint_wait(cp), TR_OK);
        CHECK_EQ(tr_checkpoint_status(cp), TR_SAVE_COMMITTED);
        CHECK_EQ(tr_checkpoint_generation(cp), 1);
        for (int to = 0; to < kinds; ++to) {
          Field other(to, shapes[s], 1);
          other.clear();
          CHECK_EQ(load(cp, other), 5);
          CHECK(other.holds(0.25));
        }
        CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
      }
    }
  }
  remove_directory(directory);
}

MPI_TEST(checkpoint, copies_of_an_older_version_are_loaded_and_replaced) {
  const std::string directory = fresh_directory("checkpoint-older");
  if (rank() == 0) std::filesystem::copy(TAILRACE_OLDER_COPIES, directory);
  MPI_Barrier(state().comm);
  {
    const Session session;
    Field field(0, {10}, 0);
    tr_checkpoint* cp = create(directory + "/old", "mode=local async=off");
    CHECK_EQ(load(cp, field), 2);
    CHECK(field.holds(200));
    if (rank() == 0) std::fstream(directory + "/old.1.r00001", std::ios::in | std::ios::out).put('?');
    MPI_Barrier(state().comm);
    CHECK_EQ(load(cp, field), 1);
    CHECK(field.holds(100));
    for (int step = 3; step <= 5; ++step) {
      field.fill(step);
      CHECK_EQ(save(cp, step, field), TR_OK);
      field.clear();
      CHECK_EQ(load(cp, field), step);
      CHECK(field.holds(step));
    }
    CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
  }
  remove_directory(directory);
}

MPI_TEST(checkpoint, the_newest_of_several_is_loaded_and_others_are_kept) {
  const std::string directory = fresh_directory("checkpoint-keep");
  {
    const Session session;
    tr_checkpoint* cp = create(directory + "/run", "keep=3 keep_every=4");
    Field field(0, {40, 5}, 1);
    CHECK_EQ(load(cp, field), 0);
    for (int step = 1; step <= 9; ++step) {
      field.fill(step);
      CHECK_EQ(save(cp, step, field), TR_OK);
    }
    CHECK_EQ(tr_checkpoint_wait(cp), TR_OK);
    CHECK_EQ(tr_checkpoint_generation(cp), 9);
    field.clear();
    CHECK_EQ(load(cp, field), 9);
    CHECK(field.holds(9));
    CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
  }
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    files += entry.is_regular_file() ? 1 : 0;
  CHECK_EQ(files, 5);  // three that alternate, generations 4 and 8
  CHECK(std::filesystem::exists(directory + "/run.g4") && std::filesystem::exists(directory + "/run.g8"));
  remove_directory(directory);
}

MPI_TEST(checkpoint, a_failed_save_in_a_place_of_its_own_leaves_nothing) {
  const std::string directory = fresh_directory("checkpoint-own-place");
  {
    const Session session("log=error fault=\"rank=0 nth=3 fault=enospc calls=write\"");
    tr_checkpoint* cp = create(directory + "/run", "keep_every=1 async=off mode=local");
    Field field(0, {400, 400}, 0);
    field.fill(1);
    CHECK_EQ(save(cp, 1, field), TR_ERR_SPACE);
    CHECK_EQ(save(cp, 2, field), TR_OK);
    CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
  }
  MPI_Barrier(state().comm);
  CHECK(!std::filesystem::exists(directory + "/run.g1") &&
        !std::filesystem::exists(directory + "/run.g1.r00000"));
  CHECK(std::filesystem::exists(directory + "/run.g2"));
  remove_directory(directory);
}

MPI_TEST(checkpoint, damage_of_the_newest_leads_to_the_one_before) {
  const std::string directory = fresh_directory("checkpoint-damage");
  for (const std::string options : {"", "mode=local"}) {
    const Session session;
    tr_checkpoint* cp = create(directory + "/run" + options, options);
    Field field(0, {64, 64}, 0);
    for (int step = 1; step <= 2; ++step) {
      field.fill(step);
      CHECK_EQ(save(cp, step, field), TR_OK);
    }
    CHECK_EQ(tr_checkpoint_wait(cp), TR_OK);
    if (rank() == 0) {
      // The changed byte is one of the last rank's elements: it is found only when they are read.
      const std::string path = directory + "/run" + options + ".1" + (options.empty() ? "" : ".r00000");
      std::string bytes = contents(path);
      bytes[4096 + 100] ^= 4;
      write_file(path, bytes);
    }
    MPI_Barrier(state().comm);
    field.clear();
    CHECK_EQ(load(cp, field), 1);
    CHECK(field.holds(1));
    // The next save overwrites the broken copy, never the good one.
    field.fill(3);
    CHECK_EQ(save(cp, 3, field), TR_OK);
    CHECK_EQ(tr_checkpoint_wait(cp), TR_OK);
    field.clear();
    CHECK_EQ(load(cp, field), 3);
    CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
  }
  remove_directory(directory);
}

MPI_TEST(checkpoint, a_program_that_loads_nothing_saves_over_the_copy_that_lacks_a_part) {
  const std::string directory = fresh_directory("checkpoint-lacks-a-part");
  const std::string options = "mode=local async=off";
  {
    const Session session;
    Field field(0, {64, 64}, 0);
    tr_checkpoint* cp = create(directory + "/run", options);
    for (int step = 1; step <= 2; ++step) {
      field.fill(step);
      CHECK_EQ(save(cp, step, field), TR_OK);
    }
    CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
  }
  if (rank() == size() - 1) {
    const std::string number = std::to_string(rank());
    std::filesystem::remove(directory + "/run.1.r" + std::string(5 - number.size(), '0') + number);
  }
  const std::string older = contents(directory + "/run.0");
  MPI_Barrier(state().comm);
  const Session session;
  Field field(0, {64, 64}, 0);
  tr_checkpoint* cp = create(directory + "/run", options);
  field.fill(3);
  CHECK_EQ(save(cp, 3, field), TR_OK);
  CHECK(contents(directory + "/run.0") == older);
  field.clear();
  CHECK_EQ(load(cp, field), 3);
  CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
  remove_directory(directory);
}

MPI_TEST(checkpoint, a_first_save_that_never_ended_is_nothing_to_load) {
  const std::string directory = fresh_directory("checkpoint-unfinished");
  for (const std::string left : {std::string(), std::string(128, '\0'), std::string(9000, '\0')}) {
    const Session session;
    if (rank() == 0) write_file(directory + "/run.0", left);
    tr_checkpoint* cp = create(directory + "/run");
    Field field(0, {12, 12}, 0);
    CHECK_EQ(load(cp, field), 0);
    field.fill(1);
    CHECK_EQ(save(cp, 1, field), TR_OK);
    CHECK_EQ(load(cp, field), 1);
    CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
    if (rank() == 0) {
      for (const char* slot : {"/run.0", "/run.1"}) std::filesystem::remove(directory + slot);
    }
    MPI_Barrier(state().comm);
  }
  {
    const Session session;  // a file that is no checkpoint at all is not taken for one that never ended
    if (rank() == 0) write_file(directory + "/run.0", std::string(9000, 'x'));
    tr_checkpoint* cp = create(directory + "/run");
    Field field(0, {12, 12}, 0);
    CHECK_EQ(load(cp, field), -1);
    CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
  }
  remove_directory(directory);
}

MPI_TEST(checkpoint, wrong_items_are_named_on_every_rank) {
  const std::string directory = fresh_directory("checkpoint-items");
  {
    const Session session;
    tr_checkpoint* cp = create(directory + "/run");
    Field field(0, {12, 12}, 0);
    Field other(0, {12, 13}, 0);
    field.fill(1);
    CHECK_EQ(save(cp, 1, field), TR_OK);
    std::int64_t step = 0;
    float value = 0;
    const auto name_step = [&] { tr_checkpoint_item(cp, "step", &step, TR_I64, nullptr); };
    refused_load(
        cp, [&] { name_field(cp, field); }, "item step (int64 scalar)");
    refused_load(
        cp, [&] { name_field(cp, other); }, "the program has float64 (12, 13)");
    const auto step_of_another_type = [&] {
      tr_checkpoint_item(cp, "step", &value, TR_F32, nullptr);
      name_field(cp, field);
    };
    refused_load(cp, step_of_another_type, "item step: the program has float32 scalar");
    const auto one_too_many = [&] {
      name_step();
      tr_checkpoint_item(cp, "q", &step, TR_I64, nullptr);
      name_field(cp, field);
    };
    refused_load(cp, one_too_many, "item q is not in");
    CHECK_EQ(step, 0);
    CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
  }
  remove_directory(directory);
}

MPI_TEST(checkpoint, an_array_that_one_rank_lacks_is_named_on_every_rank) {
  const std::string directory = fresh_directory("checkpoint-lost-item");
  {
    const Session session;
    tr_checkpoint* cp = create(directory + "/run");
    Field field(0, {12, 12}, 0);
    field.fill(1);
    CHECK_EQ(save(cp, 1, field), TR_OK);
    const std::string expected = "item t: the array is a null pointer on rank " + std::to_string(size() - 1);
    std::int64_t step = 0;
    field.clear();
    const auto name_items = [&] {
      tr_checkpoint_item(cp, "step", &step, TR_I64, nullptr);
      name_lost_field(cp, field);
    };
    refused_load(cp, name_items, expected);
    // Nothing is filled on the other ranks either.
    CHECK_EQ(step, 0);
    CHECK(std::count(field.values.begin(), field.values.end(), -99) ==
          static_cast<std::ptrdiff_t>(field.values.size()));
    CHECK_EQ(tr_checkpoint_begin(cp, TR_SAVE, nullptr), TR_OK);
    name_lost_field(cp, field);
    CHECK_EQ(tr_checkpoint_end(cp), TR_ERR_ARGUMENT);
    CHECK(mentions(tr_error(), expected));
    CHECK(same_on_all_ranks(tr_error()));
    CHECK_EQ(tr_checkpoint_status(cp), TR_SAVE_FAILED);
    CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
  }
  remove_directory(directory);
}

/// One rank names an item outside of a bracket. The next begin tells all ranks, once.
MPI_TEST(checkpoint, an_item_outside_of_a_bracket_is_told_by_the_next_begin) {
  const std::string directory = fresh_directory("checkpoint-stray-item");
  {
    const Session session;
    tr_checkpoint* cp = create(directory + "/run");
    Field field(0, {12, 12}, 0);
    std::int64_t stray = 0;
    for (const int direction : {TR_SAVE, TR_LOAD}) {
      for (const int victim : {0, size() - 1}) {
        field.fill(1);
        CHECK_EQ(save(cp, 1, field), TR_OK);
        if (rank() == victim) tr_checkpoint_item(cp, "stray", &stray, TR_I64, nullptr);
        CHECK_EQ(tr_checkpoint_begin(cp, direction, nullptr), TR_ERR_STATE);
        CHECK(same_on_all_ranks(tr_error()));
        if (!CHECK(mentions(tr_error(), "item stray stands outside")))
          std::fprintf(stderr, "  %s\n", tr_error());
        CHECK(mentions(tr_error(), "on rank " + std::to_string(victim)));
        // No bracket has begun, so ending one is an error. It tells of the items in between, which need no
        // begin.
        name_field(cp, field);
        CHECK_EQ(tr_checkpoint_end(cp), TR_ERR_STATE);
        CHECK_EQ(load(cp, field), 1);
      }
    }
    CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
  }
  remove_directory(directory);
}

MPI_TEST(checkpoint, ranks_that_name_other_items_hear_of_it) {
  const std::string directory = fresh_directory("checkpoint-order");
  if (size() > 1) {
    const Session session;
    tr_checkpoint* cp = create(directory + "/run");
    std::int64_t a = 1;
    CHECK_EQ(tr_checkpoint_begin(cp, TR_SAVE, nullptr), TR_OK);
    tr_checkpoint_item(cp, rank() == 1 ? "b" : "a", &a, TR_I64, nullptr);
    CHECK_EQ(tr_checkpoint_end(cp), TR_ERR_ORDER);
    CHECK(same_on_all_ranks(tr_error()));
    // One saves, the others load.
    CHECK_EQ(tr_checkpoint_begin(cp, rank() == 1 ? TR_LOAD : TR_SAVE, nullptr), TR_ERR_ORDER);
    CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
  }
  remove_directory(directory);
}

MPI_TEST(checkpoint, bad_options_and_names_are_refused) {
  const std::string directory = fresh_directory("checkpoint-options");
  {
    const Session session;
    const auto refused = [&](const char* options, int code, const char* expected) {
      tr_checkpoint* cp = nullptr;
      CHECK_EQ(tr_checkpoint_create((directory + "/run").c_str(), options, &cp), code);
      if (!CHECK(mentions(tr_error(), expected))) std::fprintf(stderr, "  %s\n", tr_error());
      CHECK(cp == nullptr);
    };
    refused("keep=1", TR_ERR_SETTINGS, "keep=1");
    refused("keeep=3", TR_ERR_SETTINGS, "keep");
    refused("mode=paralel", TR_ERR_SETTINGS, "parallel");
    refused("busy=never", TR_ERR_SETTINGS, "wait");
    refused("compress=gzip", TR_ERR_SETTINGS, "none");
    refused("compress=lz4:3", TR_ERR_SETTINGS, "only zstd takes a level");
    tr_checkpoint* cp = nullptr;
    CHECK_EQ(tr_checkpoint_create("", "", &cp), TR_ERR_ARGUMENT);
    std::int64_t number = 0;
    const char* const file = "one";
    const tr_variable variable = {"a", &number, TR_I64, nullptr};
    CHECK_EQ(tr_checkpoint_create_registered("x", &variable, 1, &file, 1, "p", &cp), TR_ERR_ARGUMENT);
    CHECK(mentions(tr_error(), "two files or more"));
    const char* const twice[] = {"one", "./one"};
    CHECK_EQ(tr_checkpoint_create_registered("x", &variable, 1, twice, 2, "p", &cp), TR_ERR_ARGUMENT);
    if (size() > 1) {
      CHECK_EQ(tr_checkpoint_create((directory + "/run").c_str(), rank() == 1 ? "mode=local" : "", &cp),
               TR_ERR_ORDER);
      CHECK(same_on_all_ranks(tr_error()));
    }
    for (const char* mode : {"pl", "iP", "q"}) {
      CHECK_EQ(tr_checkpoint_create_registered("x", &variable, 1, nullptr, 0, mode, &cp), TR_ERR_ARGUMENT);
      CHECK(mentions(tr_error(), mode));
    }
    cp = create(directory + "/run");
    tr_checkpoint* second = nullptr;
    CHECK_EQ(tr_checkpoint_create((directory + "/run").c_str(), "", &second), TR_ERR_STATE);
    CHECK(mentions(tr_error(), "run.lock"));
    CHECK_EQ(tr_checkpoint_end(cp), TR_ERR_STATE);
    CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
    CHECK_EQ(tr_checkpoint_close(&cp), TR_ERR_STATE);
  }
  remove_directory(directory);
}

MPI_TEST(checkpoint, a_program_with_rotated_levels_saves_while_it_computes) {
  const std::string directory = fresh_directory("checkpoint-rotated");
  for (const char* options : {"busy=wait", "busy=drop", "busy=replace", "busy=replace mode=local"}) {
    const Session session("throttle=200MB/s");
    tr_checkpoint* cp = create(directory + "/run" + options[6], options);
    std::array<Field, 3> levels = {Field(0, {90, 80}, 1), Field(0, {90, 80}, 1), Field(0, {90, 80}, 1)};
    for (int step = 1; step <= 30; ++step) {
      Field& now = levels[static_cast<std::size_t>(step % 3)];
      now.fill(step);
      CHECK_EQ(save(cp, step, now), TR_OK);
      levels[static_cast<std::size_t>((step + 1) % 3)].fill(-step);  // later saves overwrite the oldest copy
    }
    CHECK_EQ(tr_checkpoint_wait(cp), TR_OK);
    Field back(0, {90, 80}, 1);
    back.clear();
    const std::int64_t step = load(cp, back);
    CHECK(step >= 1 && step <= 30);
    if (mentions(options, "wait")) CHECK_EQ(step, 30);
    if (mentions(options, "replace")) CHECK_EQ(step, 30);
    CHECK(back.holds(static_cast<double>(step)));
    CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
  }
  remove_directory(directory);
}

namespace {

/// Saves the field once, asynchronously. Returns the status right afterwards.
int status_of_saving(tr_checkpoint* cp, Field& field) {
  CHECK_EQ(tr_checkpoint_begin(cp, TR_SAVE, nullptr), TR_OK);
  tr_checkpoint_item(cp, "t", field.values.data(), TR_F64, field.layout.get());
  CHECK_EQ(tr_checkpoint_end(cp), TR_OK);
  const int status = tr_checkpoint_status(cp);
  CHECK(same_on_all_ranks(std::to_string(status == TR_SAVE_DROPPED)));
  return status;
}

}  // namespace

MPI_TEST(checkpoint, a_save_that_is_left_out_is_told_and_is_no_generation) {
  const std::string directory = fresh_directory("checkpoint-dropped");
  {
    const Session session("throttle=50MB/s,50ms");
    tr_checkpoint* cp = create(directory + "/run", "busy=drop");
    Field field(0, {500, 40}, 0);
    field.fill(1);
    int dropped = 0, saved = 0;
    // The first save is usually still on its way when the next ones begin.
    for (; dropped < 2 && saved < 100; ++saved)
      dropped += status_of_saving(cp, field) == TR_SAVE_DROPPED ? 1 : 0;
    CHECK_EQ(dropped, 2);
    CHECK_EQ(tr_checkpoint_wait(cp), TR_OK);
    CHECK_EQ(tr_checkpoint_status(cp), TR_SAVE_DROPPED);
    CHECK_EQ(tr_checkpoint_generation(cp), saved - dropped);
    CHECK(status_of_saving(cp, field) != TR_SAVE_DROPPED);
    CHECK_EQ(tr_checkpoint_wait(cp), TR_OK);
    CHECK_EQ(tr_checkpoint_status(cp), TR_SAVE_COMMITTED);
    CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
  }
  remove_directory(directory);
}

MPI_TEST(checkpoint, a_failure_counts_more_than_a_save_that_is_left_out_or_given_up) {
  const std::string directory = fresh_directory("checkpoint-failed-or-dropped");
  for (const char* busy : {"busy=drop", "busy=replace"}) {
    const Session session("log=error throttle=50MB/s fault=\"rank=" + std::to_string(size() - 1) +
                          " nth=1 fault=enospc calls=write\"");
    tr_checkpoint* cp = create(directory + "/run", busy);
    Field field(0, {2000, 500}, 0);
    field.fill(1);
    CHECK(status_of_saving(cp, field) != TR_SAVE_DROPPED);
    // The others are still writing when the last one has failed.
    while (rank() == size() - 1 && tr_checkpoint_status(cp) == TR_SAVE_CAPTURED) std::this_thread::yield();
    int begun = tr_checkpoint_begin(cp, TR_SAVE, nullptr);
    tr_checkpoint_item(cp, "t", field.values.data(), TR_F64, field.layout.get());
    CHECK_EQ(tr_checkpoint_end(cp), TR_OK);
    if (begun == TR_OK) begun = tr_checkpoint_wait(cp);
    CHECK_EQ(begun, TR_ERR_SPACE);
    CHECK(same_on_all_ranks(tr_error()));
    CHECK_EQ(tr_checkpoint_wait(cp), TR_OK);
    CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
  }
  remove_directory(directory);
}

MPI_TEST(checkpoint, a_failed_save_that_is_replaced_is_told_alike_on_every_rank) {
  const std::string directory = fresh_directory("checkpoint-replaced");
  {
    const Session session("log=error fault=\"rank=" + std::to_string(size() - 1) +
                          " nth=1 fault=enospc calls=write for=good\"");
    tr_checkpoint* cp = create(directory + "/run", "busy=replace");
    Field field(0, {500, 40}, 0);
    field.fill(1);
    int other_codes = 0;
    for (int step = 1; step <= 400; ++step) {
      const int begun = tr_checkpoint_begin(cp, TR_SAVE, nullptr);
      tr_checkpoint_item(cp, "t", field.values.data(), TR_F64, field.layout.get());
      CHECK_EQ(tr_checkpoint_end(cp), TR_OK);
      int least = 0, most = 0;
      MPI_Allreduce(&begun, &least, 1, MPI_INT, MPI_MIN, state().comm);
      MPI_Allreduce(&begun, &most, 1, MPI_INT, MPI_MAX, state().comm);
      other_codes += least != most ? 1 : 0;
      // Ranks come to the next save while they see the last one in different stages.
      for (int look = 0; look < step * (rank() + 3) % 17; ++look) tr_checkpoint_status(cp);
    }
    CHECK_EQ(other_codes, 0);
    CHECK_EQ(tr_checkpoint_close(&cp), TR_ERR_SPACE);
  }
  remove_directory(directory);
}

MPI_TEST(checkpoint, what_no_checkpoint_has_written_is_refused_by_name_and_stays) {
  const std::string directory = fresh_directory("checkpoint-foreign");
  for (const std::string slot : {"/run.0", "/run.1"}) {
    for (const std::string foreign : {std::string("notes"), std::string(9000, 'x')}) {
      const Session session;
      if (rank() == 0) write_file(directory + slot, foreign);
      tr_checkpoint* cp = create(directory + "/run", "keep=2");
      Field field(0, {12, 12}, 0);
      field.fill(1);
      CHECK_EQ(save(cp, 1, field), TR_ERR_STATE);
      CHECK(mentions(tr_error(), slot + ": is a file that no checkpoint has written"));
      CHECK(contents(directory + slot) == foreign);
      MPI_Barrier(state().comm);
      if (rank() == 0) std::filesystem::remove(directory + slot);
      MPI_Barrier(state().comm);
      CHECK_EQ(save(cp, 2, field), TR_OK);
      CHECK_EQ(load(cp, field), 2);
      CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
      if (rank() == 0) {
        for (const char* each : {"/run.0", "/run.1"}) std::filesystem::remove(directory + each);
      }
      MPI_Barrier(state().comm);
    }
  }
  remove_directory(directory);
}

MPI_TEST(checkpoint, what_comes_to_a_place_after_create_is_refused_too_also_in_that_of_a_part) {
  const std::string directory = fresh_directory("checkpoint-foreign-later");
  const std::string foreign(9000, 'x');
  for (const std::string mode : {"parallel", "local"}) {
    for (const std::string slot : {".0", ".0.r00000"}) {
      if (mode == "parallel" && slot != ".0") continue;
      const Session session;
      const std::string name = directory + "/" + mode + slot + ".run", path = name + slot;
      tr_checkpoint* cp = create(name, "keep=2 async=off mode=" + mode);
      Field field(0, {12, 12}, 0);
      field.fill(1);
      const auto put = [&](bool there) {
        MPI_Barrier(state().comm);
        if (rank() == 0 && there) write_file(path, foreign);
        if (rank() == 0 && !there) std::filesystem::remove(path);
        MPI_Barrier(state().comm);
      };
      put(true);
      CHECK_EQ(save(cp, 1, field), TR_ERR_STATE);
      CHECK(mentions(tr_error(), path + ": is a file that no checkpoint has written"));
      CHECK(contents(path) == foreign);
      put(false);
      CHECK_EQ(save(cp, 1, field), TR_OK);
      CHECK_EQ(save(cp, 2, field), TR_OK);
      put(true);  // in the place of a copy's file: the next save would take it
      CHECK_EQ(save(cp, 3, field), TR_ERR_STATE);
      CHECK(contents(path) == foreign);
      CHECK_EQ(load(cp, field), 2);
      CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
    }
  }
  remove_directory(directory);
}

MPI_TEST(checkpoint, a_save_that_the_ranks_do_not_begin_changes_no_file) {
  const std::string directory = std::filesystem::absolute(fresh_directory("checkpoint-refused"));
  const Session session;
  Field field(0, {12, 12}, 0);
  field.fill(1);
  tr_checkpoint* cp = create(directory + "/before", "async=off");
  CHECK_EQ(save(cp, 1, field), TR_OK);
  CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
  const std::string name = directory + "/run";
  if (rank() == 0) std::filesystem::create_symlink(directory + "/before.0", name + ".0");
  MPI_Barrier(state().comm);
  cp = create(name, "async=off");
  const std::string kept = contents(directory + "/before.0");
  CHECK_EQ(save(cp, 2, field), TR_OK);
  const std::string other = contents(name + ".1");
  CHECK_EQ(tr_checkpoint_begin(cp, TR_SAVE, nullptr), TR_OK);
  name_lost_field(cp, field);
  CHECK_EQ(tr_checkpoint_end(cp), TR_ERR_ARGUMENT);
  CHECK(std::filesystem::is_symlink(name + ".0"));
  CHECK(contents(directory + "/before.0") == kept && contents(name + ".1") == other);
  CHECK_EQ(save(cp, 3, field), TR_OK);
  CHECK_EQ(load(cp, field), 3);
  CHECK(!std::filesystem::is_symlink(name + ".0") && contents(directory + "/before.0") == kept);
  CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
  remove_directory(directory);
}

MPI_TEST(checkpoint, a_copy_behind_a_link_is_loaded_and_never_written_over) {
  const std::string directory = std::filesystem::absolute(fresh_directory("checkpoint-links"));
  for (const std::string mode : {"parallel", "local"}) {
    const Session session;
    const std::string before = directory + "/before-" + mode, name = directory + "/run-" + mode;
    const std::string options = "keep=2 async=off mode=" + mode;
    Field field(0, {12, 12}, 0);
    field.fill(3);
    tr_checkpoint* cp = create(before, options);
    CHECK_EQ(save(cp, 3, field), TR_OK);
    CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
    const std::string number = std::to_string(rank());
    const std::string part = mode == "local" ? ".0.r" + std::string(5 - number.size(), '0') + number : ".0";
    if (rank() == 0) std::filesystem::create_symlink(before + ".0", name + ".0");
    if (mode == "local") std::filesystem::create_symlink(before + part, name + part);
    const std::string kept = contents(before + ".0"), kept_part = contents(before + part);
    MPI_Barrier(state().comm);
    cp = create(name, options);
    CHECK_EQ(load(cp, field), 3);
    for (const int step : {4, 5}) {
      field.fill(step);
      CHECK_EQ(save(cp, step, field), TR_OK);
    }
    field.clear();
    CHECK_EQ(load(cp, field), 5);
    CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
    CHECK(contents(before + ".0") == kept && contents(before + part) == kept_part);
    CHECK(!std::filesystem::is_symlink(name + ".0") && !std::filesystem::is_symlink(name + part));
    MPI_Barrier(state().comm);
  }
  remove_directory(directory);
}

MPI_TEST(checkpoint, the_older_form_saves_registered_variables_in_named_files) {
  const std::string directory = fresh_directory("checkpoint-registered");
  for (const char* mode : {"p", "l", "i", "Ls"}) {
    const Session session;
    Field field(0, {31, 17}, 1);
    std::int64_t step = 0;
    const tr_variable variables[] = {{"step", &step, TR_I64, nullptr},
                                     {"b", field.values.data(), TR_F64, field.layout.get()}};
    const std::string a = directory + "/a" + mode, b = directory + "/b" + mode,
                      name = directory + "/cp" + mode;
    const char* const files[] = {a.c_str(), b.c_str()};
    tr_checkpoint* cp = nullptr;
    CHECK_EQ(tr_checkpoint_create_registered(name.c_str(), variables, 2, files, 2, mode, &cp), TR_OK);
    int found = 1;
    CHECK_EQ(tr_checkpoint_load(cp, &found), TR_OK);
    CHECK_EQ(found, 0);
    for (step = 1; step <= 4; ++step) {
      field.fill(static_cast<double>(step));
      CHECK_EQ(tr_checkpoint_save(cp, step % 2 == 0 ? 1 : 0), TR_OK);
      if (step % 2 == 1) CHECK_EQ(tr_checkpoint_status(cp), TR_SAVE_COMMITTED);
    }
    step = 0;
    field.clear();
    CHECK_EQ(tr_checkpoint_begin(cp, TR_LOAD, &found), TR_OK);
    CHECK_EQ(tr_checkpoint_save(cp, 0), TR_ERR_STATE);  // the bracket loads: nothing is touched
    CHECK_EQ(step, 0);
    CHECK_EQ(tr_checkpoint_end(cp), TR_ERR_ARGUMENT);
    CHECK_EQ(tr_checkpoint_load(cp, &found), TR_OK);
    CHECK_EQ(found, 1);
    CHECK_EQ(step, 4);
    CHECK(field.holds(4));
    CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
    CHECK(std::filesystem::exists(a) && std::filesystem::exists(b));
    CHECK_EQ(std::filesystem::exists(a + ".r00000"), mode[0] != 'p');
  }
  remove_directory(directory);
}

constexpr std::int64_t expected_part = std::int64_t{32} << 20;

/// Makes a layout of 32 MiB for each rank. Nobody touches the memory.
Layout large_layout() {
  tr_layout* made = nullptr;
  const tr_index shape = expected_part / 8 * size();
  CHECK_EQ(tr_layout_block(1, &shape, nullptr, &made), TR_OK);
  return Layout(made);
}

/// Returns the memory of this process that belongs to no file, wherever the kernel keeps it.
std::int64_t anonymous_memory() { return process_memory("RssAnon") + process_memory("VmSwap"); }

/// Collective. Returns true if every rank can get twice the memory that these cases make. If memory is short
/// the kernel takes some of it back, and the rest tells nothing.
bool has_memory() {
  const std::int64_t needed = 2 * 4 * expected_part * size();
  return !any_rank(available_memory() < needed);
}

/// Returns true if memory for a save appears behind the program, which only waits. Three quarters of it
/// suffice, because the program's own memory may shrink meanwhile.
bool grows_from(std::int64_t before, std::int64_t bytes = expected_part) {
  for (int tenths = 0; tenths < 300; ++tenths) {
    if (anonymous_memory() - before >= bytes / 4 * 3) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return false;
}

MPI_TEST(checkpoint, memory_for_the_first_save_is_made_before_it) {
  if (!has_memory()) return skip("too little memory is available");
  const std::string directory = fresh_directory("checkpoint-expected");
  for (const char* capture : {"", "capture=copy_on_write"}) {
    const Session session;
    const std::int64_t before = anonymous_memory();
    const Layout layout = large_layout();
    tr_checkpoint* cp = create(directory + "/layout_first", capture);
    CHECK(grows_from(before));
    CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
  }
  {
    const Session session;
    const std::int64_t before = anonymous_memory();
    tr_checkpoint* cp = create(directory + "/layout_last");
    const Layout layout = large_layout();
    CHECK(grows_from(before));
    CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
  }
  {
    const Session session;
    const std::int64_t before = anonymous_memory();
    const Layout layout = large_layout();
    tr_checkpoint* cp = create(directory + "/synchronous", "async=off");
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    CHECK(anonymous_memory() - before < expected_part / 2);
    CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
  }
  remove_directory(directory);
}

/// More than one array of the layout.
MPI_TEST(checkpoint, memory_is_made_for_what_is_registered_or_loaded) {
  if (!has_memory()) return skip("too little memory is available");
  const std::string directory = fresh_directory("checkpoint-known");
  const std::string name = directory + "/run";
  std::vector<double> a(static_cast<std::size_t>(expected_part) / 8), b(a.size(), 1);
  {
    const Session session;
    const Layout layout = large_layout();
    const tr_variable variables[] = {{"a", a.data(), TR_F64, layout.get()},
                                     {"b", b.data(), TR_F64, layout.get()}};
    const std::int64_t before = anonymous_memory();
    tr_checkpoint* cp = nullptr;
    CHECK_EQ(tr_checkpoint_create_registered(name.c_str(), variables, 2, nullptr, 0, "", &cp), TR_OK);
    CHECK(grows_from(before, 2 * expected_part));
    CHECK_EQ(tr_checkpoint_save(cp, 0), TR_OK);
    CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
  }
  {
    const Session session;
    const Layout layout = large_layout();
    const std::int64_t before = anonymous_memory();
    tr_checkpoint* cp = create(name);
    int found = 0;
    CHECK_EQ(tr_checkpoint_begin(cp, TR_LOAD, &found), TR_OK);
    CHECK_EQ(found, 1);
    tr_checkpoint_item(cp, "a", a.data(), TR_F64, layout.get());
    tr_checkpoint_item(cp, "b", b.data(), TR_F64, layout.get());
    CHECK_EQ(tr_checkpoint_end(cp), TR_OK);
    CHECK(grows_from(before, 2 * expected_part));
    CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
  }
  remove_directory(directory);
}

MPI_TEST(checkpoint, sections_are_items) {
  const std::string directory = fresh_directory("checkpoint-sections");
  {
    const Session session;
    tr_checkpoint* cp = create(directory + "/run");
    Field field(0, {20, 30}, 1);
    field.fill(0.5);
    const tr_index start[] = {2, 1}, stop[] = {18, 29}, stride[] = {3, 2};
    const tr_array part = {field.values.data(), TR_F64, field.layout.get(), start, stop, stride};
    CHECK_EQ(tr_checkpoint_begin(cp, TR_SAVE, nullptr), TR_OK);
    tr_checkpoint_item_section(cp, "s", &part);
    CHECK_EQ(tr_checkpoint_end(cp), TR_OK);
    CHECK_EQ(tr_checkpoint_wait(cp), TR_OK);
    field.clear();
    int found = 0;
    CHECK_EQ(tr_checkpoint_begin(cp, TR_LOAD, &found), TR_OK);
    tr_checkpoint_item_section(cp, "s", &part);
    CHECK_EQ(tr_checkpoint_end(cp), TR_OK);
    for (std::size_t i = 0; i < field.values.size(); ++i) {
      const tr_index y = field.global[i] / 30, x = field.global[i] % 30;
      const bool inside = field.global[i] >= 0 && y >= 2 && y < 18 && (y - 2) % 3 == 0 && x >= 1 && x < 29 &&
                          (x - 1) % 2 == 0;
      CHECK_EQ(field.values[i], inside ? 0.5 + static_cast<double>(field.global[i]) : -99);
    }
    CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
  }
  remove_directory(directory);
}

MPI_TEST(checkpoint, interval_is_dalys) {
  // The values were worked out by hand from eq. 37.
  CHECK(std::abs(tr_checkpoint_interval(60, 86400) - 3180.0621) < 1e-3);
  CHECK(std::abs(tr_checkpoint_interval(5, 3600) - 186.41797) < 1e-4);
  CHECK_EQ(tr_checkpoint_interval(100, 50), 50.0);
  CHECK_EQ(tr_checkpoint_interval(0, 50), 0.0);
}

MPI_TEST_MAIN
