// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Promise 4: whatever goes wrong, every rank gets the same verdict, within seconds. Committed data stays
// readable, and the program goes on. Each case is tried without servers and with two, some also with one.
#include "fault/forecast.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

using namespace tailrace::mpi_test;
using namespace tailrace::scene;
using tailrace::fault::Forecast;
using tailrace::fault::in_sessions;
using tailrace::fault::session;

namespace {

bool has(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return true;
  if (rank() == 0) std::fprintf(stderr, "  \"%s\" does not say \"%s\"\n", text.c_str(), part.c_str());
  return false;
}

/// A good step, the step that `spoil` makes, another good one: there is exactly one verdict, agreed, of this
/// code and with these words, and the file has the two good steps. `spoil` is called between begin and end.
template <typename Spoil>
void spoiled_step(const std::string& name, int code, const std::vector<std::string>& words, Spoil spoil) {
  in_sessions([&](MPI_Comm compute, const std::string& label) {
    Forecast run(compute, label + "-" + name);
    CHECK(run.defined());
    run.good_step(0);
    tr_stream_begin(run.stream(), 3600);
    spoil(run);
    run.end();
    run.wait(TR_DURABLE);
    run.good_step(7200);
    run.close();
    CHECK_EQ(run.verdicts(), 1);
    CHECK_EQ(run.first_code(), code);
    CHECK(run.agreed());
    for (const std::string& word : words) CHECK(has(run.first_text(), word));
    CHECK(run.holds_steps({0, 7200}));
  });
}

}  // namespace

MPI_TEST(verdict, a_put_order_that_differs_names_both_ranks_and_both_fields) {
  spoiled_step("order", TR_ERR_ORDER, {"lead 3600 s", "rank 2", "'u'", "'t'", "same order"},
               [](Forecast& run) {
                 const bool odd = run.rank() == 2;
                 run.put(odd ? "u" : "t");
                 run.put(odd ? "t" : "u");
               });
}

MPI_TEST(verdict, a_rank_that_skips_a_put_is_named) {
  spoiled_step("skip", TR_ERR_ORDER, {"rank 1 ended the step at lead 3600 s", "'u'"}, [](Forecast& run) {
    run.put("t");
    if (run.rank() != 1) run.put("u");
  });
}

MPI_TEST(verdict, the_reference_rank_that_skips_a_put_is_an_error_too) {
  spoiled_step("skip0", TR_ERR_ORDER, {"rank 1 puts 'u'", "rank 0 has ended"}, [](Forecast& run) {
    run.put("t");
    if (run.rank() != 0) run.put("u");
  });
}

MPI_TEST(verdict, a_field_put_twice_is_named) {
  spoiled_step("twice", TR_ERR_STATE, {"tr_stream_put('t') at lead 3600 s", "put in this step already"},
               [](Forecast& run) {
                 run.put("t");
                 run.put("t");
                 run.put("u");
               });
}

MPI_TEST(verdict, a_field_put_twice_by_one_rank_is_agreed) {
  spoiled_step("twice1", TR_ERR_STATE, {"put in this step already"}, [](Forecast& run) {
    run.put("t");
    if (run.rank() == 1) run.put("t");
    run.put("u");
  });
}

MPI_TEST(verdict, an_unknown_field_names_the_nearest) {
  spoiled_step("unknown", TR_ERR_ARGUMENT, {"tr_stream_put('uu')", "the nearest is 'u'"}, [](Forecast& run) {
    run.put("t");
    run.put(run.rank() == 2 ? "uu" : "u");
  });
}

MPI_TEST(verdict, an_array_of_the_wrong_shape_tells_expected_and_got) {
  spoiled_step("shape", TR_ERR_LAYOUT, {"tr_stream_put('t')", "17"}, [](Forecast& run) {
    const tr_index wrong[] = {levels, 17, 17};
    if (run.rank() == 1)
      tr_stream_put_array(run.stream(), "t", run.data("t"), TR_F64, 3, wrong, nullptr);
    else
      run.put("t");
    run.put("u");
  });
}

MPI_TEST(verdict, an_array_of_the_wrong_type_tells_expected_and_got) {
  spoiled_step("type", TR_ERR_ARGUMENT, {"float32", "float64"}, [](Forecast& run) {
    const tr_index extents[] = {levels, ny, nx};
    tr_stream_put_array(run.stream(), "t", run.data("t"), TR_F32, 3, extents, nullptr);
    run.put("u");
  });
}

MPI_TEST(verdict, a_null_array_is_an_error_of_its_rank) {
  spoiled_step("null", TR_ERR_ARGUMENT, {"null pointer"}, [](Forecast& run) {
    if (run.rank() == 2)
      tr_stream_put(run.stream(), "t", nullptr);
    else
      run.put("t");
    run.put("u");
  });
}

MPI_TEST(verdict, two_ranks_in_different_steps_are_named) {
  in_sessions([&](MPI_Comm compute, const std::string& label) {
    Forecast run(compute, label + "-leads");
    run.good_step(0);
    tr_stream_begin(run.stream(), run.rank() == 1 ? 3601 : 3600);
    run.put("t");
    run.put("u");
    run.end();
    run.wait(TR_DURABLE);
    run.good_step(7200);
    run.close();
    CHECK(run.agreed());
    CHECK_EQ(run.first_code(), TR_ERR_ORDER);
    CHECK(has(run.first_text(), "rank 1 began the step at lead 3601 s where rank 0 began lead 3600 s"));
    CHECK(run.holds_steps({0, 7200}));
  });
}

MPI_TEST(verdict, going_back_in_time_names_both_leads) {
  in_sessions([&](MPI_Comm compute, const std::string& label) {
    Forecast run(compute, label + "-back");
    run.good_step(7200);
    CHECK(run.verdicts() == 0);
    tr_stream_begin(run.stream(), 3600);
    run.put("t");
    run.put("u");
    run.end();
    run.wait(TR_DURABLE);
    run.good_step(10800);
    run.close();
    CHECK(run.agreed());
    CHECK_EQ(run.verdicts(), 1);
    CHECK(has(run.first_text(), "lead 3600 s goes back in time"));
    CHECK(has(run.first_text(), "7200 s"));
    CHECK(run.holds_steps({7200, 10800}));
  });
}

MPI_TEST(verdict, a_put_outside_of_a_step_fails_the_next_one) {
  in_sessions([&](MPI_Comm compute, const std::string& label) {
    Forecast run(compute, label + "-outside");
    run.good_step(0);
    if (run.rank() == 1) run.put("t");
    run.good_step(3600);
    run.wait(TR_DURABLE);
    run.good_step(7200);
    run.close();
    CHECK(run.agreed());
    CHECK_EQ(run.verdicts(), 1);
    CHECK_EQ(run.first_code(), TR_ERR_STATE);
    CHECK(has(run.first_text(), "tr_stream_put('t') outside of a step"));
    CHECK(run.holds_steps({0, 7200}));
  });
}

// A step whose failure was told already does not hide the error.
MPI_TEST(verdict, a_put_outside_of_a_step_fails_the_next_one_behind_a_failed_step) {
  in_sessions([&](MPI_Comm compute, const std::string& label) {
    Forecast run(compute, label + "-outside-again");
    run.good_step(0);
    tr_stream_begin(run.stream(), 3600);
    if (run.rank() == 0) tr_stream_put(run.stream(), "nothing", run.data("t"));
    run.put("t");
    run.put("u");
    run.end();
    run.wait(TR_DURABLE);
    CHECK_EQ(run.verdicts(), 1);
    if (run.rank() == 1) run.put("t");
    run.good_step(7200);
    run.wait(TR_DURABLE);
    run.good_step(10800);
    run.close();
    CHECK(run.agreed());
    CHECK_EQ(run.verdicts(), 2);
    CHECK(run.holds_steps({0, 10800}));
  });
}

// The put that is too early is told, and not the difference between the ranks that follows from it.
MPI_TEST(verdict, a_put_before_the_begin_comes_before_the_records_of_the_step) {
  in_sessions([&](MPI_Comm compute, const std::string& label) {
    Forecast run(compute, label + "-early");
    run.good_step(0);
    run.fill(3600);
    if (run.rank() == 0) run.put("t");
    tr_stream_begin(run.stream(), 3600);
    if (run.rank() != 0) run.put("t");
    run.put("u");
    run.end();
    run.wait(TR_DURABLE);
    run.good_step(7200);
    run.close();
    CHECK(run.agreed());
    CHECK(has(run.first_text(), "tr_stream_put('t') outside of a step"));
    CHECK(run.holds_steps({0, 7200}));
  });
}

MPI_TEST(verdict, a_put_after_the_last_step_is_told_by_close) {
  in_sessions([&](MPI_Comm compute, const std::string& label) {
    Forecast run(compute, label + "-last");
    run.good_step(0);
    if (run.rank() == 1) run.put("t");
    run.close();
    CHECK(run.agreed());
    CHECK_EQ(run.first_code(), TR_ERR_STATE);
    CHECK(has(run.first_text(), "tr_stream_put('t') outside of a step"));
    CHECK(run.holds_steps({0}));
  });
}

MPI_TEST(verdict, an_end_without_a_begin_is_an_error) {
  in_sessions([&](MPI_Comm compute, const std::string& label) {
    Forecast run(compute, label + "-end");
    run.good_step(0);
    run.end();
    run.wait(TR_DURABLE);
    run.good_step(3600);
    run.close();
    CHECK(run.agreed());
    CHECK_EQ(run.verdicts(), 1);
    CHECK(has(run.first_text(), "tr_stream_end without tr_stream_begin"));
    CHECK(run.holds_steps({0, 3600}));
  });
}

MPI_TEST(verdict, a_begin_inside_of_a_step_is_an_error) {
  spoiled_step("begin", TR_ERR_STATE, {"tr_stream_begin(lead 5400 s) inside the step at lead 3600 s"},
               [](Forecast& run) {
                 run.put("t");
                 tr_stream_begin(run.stream(), 5400);
                 run.put("u");
               });
}

MPI_TEST(verdict, a_close_inside_of_a_step_drops_the_step) {
  in_sessions([&](MPI_Comm compute, const std::string& label) {
    Forecast run(compute, label + "-close");
    run.good_step(0);
    tr_stream_begin(run.stream(), 3600);
    run.put("t");
    run.close();
    CHECK(run.agreed());
    CHECK(has(run.first_text(), "tr_stream_close inside of a step"));
    CHECK(run.holds_steps({0}));
  });
}

namespace {

constexpr std::int64_t hour = 3600;

/// Four steps, of which the `odd` ranks leave out those that `skipped` names. Afterwards all wait and close:
/// the last verdict is the same order error everywhere, the file has the steps before the first difference,
/// and a further stream is right. With no server, one and two.
void steps_that_differ(const std::string& name, const std::vector<int>& odd,
                       const std::vector<int>& skipped) {
  const auto contains = [](const std::vector<int>& list, int value) {
    return std::find(list.begin(), list.end(), value) != list.end();
  };
  for (const int servers : {0, 1, 2}) {
    session(servers, "", [&](MPI_Comm compute, const std::string& label) {
      Forecast run(compute, label + "-" + name);
      for (int step = 0; step < 4; ++step) {
        if (contains(odd, run.rank()) && contains(skipped, step)) continue;
        run.good_step(step * hour);
      }
      run.wait(TR_DURABLE);
      run.close();
      CHECK(run.verdicts() > 0);
      CHECK(same_text(compute, run.texts().back()));
      CHECK_EQ(run.last_code(), TR_ERR_ORDER);
      CHECK(has(run.texts().back(), "steps of "));
      std::vector<std::int64_t> before;
      for (int step = 0; step < skipped.front(); ++step) before.push_back(step * hour);
      CHECK(run.holds_steps(before));
      Forecast further(compute, label + "-" + name + "-further");
      further.good_step(0);
      further.good_step(hour);
      further.close();
      CHECK_EQ(further.verdicts(), 0);
      CHECK(further.holds_steps({0, hour}));
    });
  }
}

}  // namespace

MPI_TEST(verdict, a_rank_that_skips_the_last_step_hangs_nobody) { steps_that_differ("last", {1}, {3}); }

MPI_TEST(verdict, a_rank_that_skips_a_step_in_the_middle_hangs_nobody) {
  steps_that_differ("middle", {2}, {1});
}

MPI_TEST(verdict, ranks_that_skip_all_steps_from_one_on_hang_nobody) {
  steps_that_differ("stop", {1, 2}, {1, 2, 3});
}

MPI_TEST(verdict, the_reference_rank_that_skips_steps_hangs_nobody) {
  steps_that_differ("reference-last", {0}, {3});
  steps_that_differ("reference-middle", {0}, {1});
  steps_that_differ("reference-stop", {0}, {2, 3});
}

MPI_TEST(verdict, ranks_that_skip_every_step_hang_nobody) {
  steps_that_differ("all", {1}, {0, 1, 2, 3});
  steps_that_differ("reference-all", {0}, {0, 1, 2, 3});
}

MPI_TEST(verdict, an_open_stream_out_of_step_says_so_in_every_call_and_others_go_on) {
  for (const int servers : {0, 1, 2}) {
    session(servers, "", [&](MPI_Comm compute, const std::string& label) {
      Forecast run(compute, label + "-out");
      Forecast other(compute, label + "-other");
      run.good_step(0);
      other.good_step(0);
      if (run.rank() != 1) run.good_step(hour);
      // Any vote finds the difference; here it is that of a layout.
      const tr_index shape[] = {6, 4};
      tr_layout* layout = nullptr;
      CHECK_EQ(tr_layout_block(2, shape, nullptr, &layout), TR_ERR_ORDER);
      CHECK(layout == nullptr);
      CHECK(same_text(compute, tr_error()));
      CHECK(has(tr_error(), "1 step of ") && has(tr_error(), "2 steps of "));
      CHECK_EQ(tr_layout_block(2, shape, nullptr, &layout), TR_OK);
      CHECK_EQ(tr_layout_free(&layout), TR_OK);
      tr_stream_begin(run.stream(), 2 * hour);
      run.put("t");
      CHECK_EQ(tr_stream_end(run.stream()), TR_ERR_ORDER);
      CHECK(same_text(compute, tr_error()));
      CHECK(has(tr_error(), "rank 0 has begun 2 steps, rank 1 1"));
      CHECK_EQ(tr_stream_wait(run.stream(), TR_DURABLE), TR_ERR_ORDER);
      CHECK(same_text(compute, tr_error()));
      other.good_step(hour);
      run.close();
      CHECK_EQ(run.last_code(), TR_ERR_ORDER);
      CHECK(same_text(compute, run.texts().back()));
      other.good_step(2 * hour);
      other.close();
      CHECK_EQ(other.verdicts(), 0);
      CHECK(run.holds_steps({0}));
      CHECK(other.holds_steps({0, hour, 2 * hour}));
    });
  }
}

MPI_TEST(verdict, a_stream_left_to_finalize_with_different_steps_hangs_nobody) {
  for (const int servers : {0, 1, 2}) {
    MPI_Comm compute = MPI_COMM_NULL;
    const std::string options = "staging=16MiB servers=" + std::to_string(servers);
    CHECK_EQ(tr_init(state().comm, &compute, options.c_str()), TR_OK);
    const bool computes = compute != MPI_COMM_NULL;
    if (computes) {
      Array array("block", compute, TR_F64);
      const std::string path = tailrace::fault::directory() + "/left" + std::to_string(servers) + ".raw";
      tr_stream* stream = nullptr;
      CHECK_EQ(tr_stream_create(path.c_str(), "base=2026-03-01T00:00Z format=raw", &stream), TR_OK);
      CHECK_EQ(tr_stream_define(stream, "t", array.layout(), TR_F64, "levels=pressure:1000,850,500"), TR_OK);
      for (int step = 0; step < (rank_of(compute) == 1 ? 1 : 3); ++step) {
        array.fill(0, step * hour);
        tr_stream_begin(stream, step * hour);
        tr_stream_put(stream, "t", array.data());
        tr_stream_end(stream);
      }
    }
    CHECK_EQ(tr_finalize(), computes ? TR_ERR_ORDER : TR_OK);
    if (computes) CHECK(has(tr_error(), "3 steps of "));
  }
}

MPI_TEST(verdict, a_step_without_a_put_is_refused) {
  spoiled_step("empty", TR_ERR_STATE, {"step at lead 3600 s has no field", "empty_step=keep"},
               [](Forecast&) {});
}

MPI_TEST(verdict, a_field_that_comes_again_at_its_lead_is_refused) {
  in_sessions([&](MPI_Comm compute, const std::string& label) {
    Forecast run(compute, label + "-again");
    for (int time = 0; time < 3; ++time) run.good_step(0);
    run.wait(TR_DURABLE);
    run.good_step(7200);
    run.close();
    CHECK_EQ(run.verdicts(), 2);
    CHECK_EQ(run.first_code(), TR_ERR_STATE);
    CHECK(run.agreed());
    CHECK(has(run.first_text(), "has the field at this lead already"));
    CHECK(has(run.first_text(), "same_lead=keep"));
    CHECK(run.holds_steps({0, 7200}));
  });
}

MPI_TEST(verdict, another_field_or_a_step_that_failed_may_come_at_the_same_lead) {
  in_sessions([&](MPI_Comm compute, const std::string& label) {
    Forecast apart(compute, label + "-apart");
    for (const char* field : {"t", "u"}) {
      tr_stream_begin(apart.stream(), 0);
      apart.put(field);
      apart.end();
    }
    apart.close();
    CHECK_EQ(apart.verdicts(), 0);
    Forecast retried(compute, label + "-retried");
    retried.good_step(0);
    tr_stream_begin(retried.stream(), 3600);
    retried.put("t");
    retried.put(retried.rank() == 1 ? "no such field" : "u");
    retried.end();
    retried.wait(TR_DURABLE);
    retried.good_step(3600);
    retried.close();
    CHECK_EQ(retried.verdicts(), 1);
    CHECK(retried.holds_steps({0, 3600}));
  });
}

MPI_TEST(verdict, a_wait_inside_of_a_step_fails_the_step) {
  spoiled_step("wait", TR_ERR_STATE, {"tr_stream_wait(", "inside of a step"}, [](Forecast& run) {
    run.put("t");
    if (run.rank() == 1) {
      CHECK_EQ(tr_stream_wait(run.stream(), TR_DURABLE), TR_ERR_STATE);
      CHECK(has(tr_error(), "inside of a step"));
    }
    run.put("u");
  });
}

MPI_TEST(verdict, a_vote_inside_of_a_step_and_one_behind_it_hang_nobody) {
  for (const int early : {0, 1}) {
    for (const int servers : {0, 1, 2}) {
      session(servers, "", [&](MPI_Comm compute, const std::string& label) {
        Forecast run(compute, label + "-vote-" + std::to_string(early));
        run.good_step(0);
        const tr_index shape[] = {6, 4};
        tr_layout* layout = nullptr;
        const auto vote = [&] { CHECK_EQ(tr_layout_block(2, shape, nullptr, &layout), TR_OK); };
        tr_stream_begin(run.stream(), hour);
        if (run.rank() == early) vote();
        run.put("t");
        run.put("u");
        run.end();
        if (run.rank() != early) vote();
        tr_layout_free(&layout);
        run.wait(TR_DURABLE);
        run.good_step(2 * hour);
        run.close();
        CHECK_EQ(run.verdicts(), 1);
        CHECK_EQ(run.first_code(), TR_ERR_ORDER);
        CHECK(has(run.first_text(), "collective call inside of the step at lead 3600 s"));
        CHECK(run.holds_steps({0, 2 * hour}));
      });
    }
  }
}

MPI_TEST(verdict, a_nan_names_field_level_index_and_rank) {
#if TAILRACE_HAVE_GRIB
  in_sessions([&](MPI_Comm compute, const std::string& label) {
    Forecast run(compute, label + "-nan", "packing=simple", "accuracy=0.01");
    run.good_step(0);
    tr_stream_begin(run.stream(), 3600);
    run.fill(3600);
    if (run.rank() == 1) run.array("u").set(0, 2, std::numeric_limits<double>::quiet_NaN());
    run.put("t");
    run.put("u");
    run.end();
    run.wait(TR_DURABLE);
    run.good_step(7200);
    run.close();
    CHECK(run.agreed());
    CHECK_EQ(run.verdicts(), 1);
    CHECK_EQ(run.first_code(), TR_ERR_DATA);
    for (const char* word : {"'u'", "rank 1", "500", "NaN", "missing="}) CHECK(has(run.first_text(), word));
    CHECK_EQ(run.steps_in_index(), (std::vector<std::int64_t>{0, 7200}));
  });
#endif
}

MPI_TEST(verdict, a_wrong_key_is_refused_at_definition_on_all_ranks) {
  in_sessions([&](MPI_Comm compute, const std::string& label) {
    const std::string path = tailrace::fault::directory() + "/" + label + "-key.raw";
    tr_stream* stream = nullptr;
    const int code =
        tr_stream_create(path.c_str(), "format=raw base=2026-03-01T00:00Z existin=replace", &stream);
    CHECK_EQ(code, TR_ERR_SETTINGS);
    CHECK(stream == nullptr);
    CHECK(same_text(compute, tr_error()));
    CHECK(has(tr_error(), "did you mean \"existing\""));
    // The session is as good as before.
    Forecast run(compute, label + "-after-key");
    run.good_step(0);
    run.close();
    CHECK_EQ(run.verdicts(), 0);
    CHECK(run.holds_steps({0}));
  });
}

MPI_TEST(verdict, two_ranks_that_disagree_about_a_field_are_named) {
  in_sessions([&](MPI_Comm compute, const std::string& label) {
    Forecast run(compute, label + "-disagree");
    Array another("block", compute, TR_F64);
    const std::string options = run.rank() == 1 ? "levels=pressure:1000" : "levels=pressure:850";
    CHECK_EQ(tr_stream_define(run.stream(), "v", another.layout(), TR_F64, options.c_str()), TR_ERR_ORDER);
    CHECK(same_text(compute, tr_error()));
    for (const char* word : {"ranks disagree", "rank 0", "rank 1", "pressure:1000", "pressure:850"}) {
      CHECK(has(tr_error(), word));
    }
    // A field that only one rank cannot have is an error on all ranks, and leaves the stream as it was.
    const int type = run.rank() == 2 ? 99 : TR_F64;
    CHECK(tr_stream_define(run.stream(), "w", another.layout(), type, "") != TR_OK);
    CHECK(same_text(compute, tr_error()));
    run.good_step(0);
    run.close();
    CHECK_EQ(run.verdicts(), 0);
    CHECK(run.holds_steps({0}));
  });
}

MPI_TEST(verdict, an_overlapping_layout_names_the_element_and_both_ranks) {
  in_sessions([&](MPI_Comm compute, const std::string& label) {
    const tr_index shape[] = {6, 4};
    const int me = rank_of(compute);
    tr_layout* layout = nullptr;
    tr_index lower[] = {2 * me, 0};
    tr_index upper[] = {2 * me + 2, 4};
    if (me == 1) ++upper[0];
    CHECK_EQ(tr_layout_box(2, shape, nullptr, lower, upper, &layout), TR_ERR_LAYOUT);
    CHECK(layout == nullptr);
    CHECK(same_text(compute, tr_error()));
    CHECK(has(tr_error(), "1") && has(tr_error(), "2"));
    if (me == 1) upper[0] -= 2;  // now nobody owns row 3
    CHECK_EQ(tr_layout_box(2, shape, nullptr, lower, upper, &layout), TR_ERR_LAYOUT);
    CHECK(same_text(compute, tr_error()));
    std::vector<tr_index> indices;
    for (tr_index i = me; i < 24; i += size_of(compute)) indices.push_back(i);
    if (me == 2) indices[3] = 0;
    CHECK_EQ(tr_layout_indexed(2, shape, static_cast<tr_index>(indices.size()), indices.data(), 0, &layout),
             TR_ERR_LAYOUT);
    CHECK(same_text(compute, tr_error()));
    if (me == 2) indices[3] = 24;
    CHECK_EQ(tr_layout_indexed(2, shape, static_cast<tr_index>(indices.size()), indices.data(), 0, &layout),
             TR_ERR_LAYOUT);
    CHECK(same_text(compute, tr_error()));
    CHECK(has(tr_error(), "24"));
    Forecast run(compute, label + "-after-layout");
    run.good_step(0);
    run.close();
    CHECK(run.holds_steps({0}));
  });
}

MPI_TEST(verdict, one_rank_with_bad_arguments_of_a_layout_hangs_nobody) {
  in_sessions([&](MPI_Comm compute, const std::string& label) {
    const tr_index shape[] = {6, 4};
    const tr_index halo[] = {rank_of(compute) == 1 ? -1 : 1, 1};
    const int me = rank_of(compute);
    const tr_index lower[] = {2 * me, 0};
    const tr_index upper[] = {2 * me + 2, 4};
    tr_layout* layout = nullptr;
    CHECK(tr_layout_block(2, shape, halo, &layout) != TR_OK);
    CHECK(same_text(compute, tr_error()));
    CHECK(tr_layout_box(2, shape, halo, lower, upper, &layout) != TR_OK);
    CHECK(same_text(compute, tr_error()));
    CHECK(has(tr_error(), "halo[0] is -1"));
    CHECK(tr_layout_box(2, shape, nullptr, me == 0 ? nullptr : lower, upper, &layout) != TR_OK);
    CHECK(same_text(compute, tr_error()));
    CHECK(tr_layout_indexed(2, shape, me == 2 ? -1 : 0, nullptr, 0, &layout) != TR_OK);
    CHECK(same_text(compute, tr_error()));
    const tr_index negative[] = {-5}, too_large[] = {tr_index{1} << 40, tr_index{1} << 40};
    CHECK_EQ(tr_layout_indexed(1, negative, 0, nullptr, 0, &layout), TR_ERR_LAYOUT);
    CHECK(same_text(compute, tr_error()));
    CHECK_EQ(tr_layout_indexed(2, too_large, 0, nullptr, 0, &layout), TR_ERR_LAYOUT);
    CHECK(same_text(compute, tr_error()));
    CHECK(layout == nullptr);
    Forecast run(compute, label + "-after-arguments");
    run.good_step(0);
    run.close();
    CHECK(run.holds_steps({0}));
  });
}

MPI_TEST(verdict, a_directory_that_cannot_be_written_is_named) {
  in_sessions([&](MPI_Comm compute, const std::string& label) {
    const std::string plain_file = tailrace::fault::directory() + "/" + label + "-plain";
    if (rank_of(compute) == 0) std::fclose(std::fopen(plain_file.c_str(), "w"));
    MPI_Barrier(compute);
    // Nothing can be made below a plain file, not even by root. The error comes before the first step.
    const std::string below = plain_file + "/below.raw";
    tr_stream* stream = nullptr;
    CHECK_EQ(tr_stream_create(below.c_str(), "format=raw base=2026-03-01T00:00Z", &stream), TR_ERR_IO);
    CHECK(stream == nullptr);
    CHECK(same_text(compute, tr_error()));
    CHECK(has(tr_error(), plain_file));
    CHECK(has(tr_error(), "Not a directory"));
    Forecast again(compute, label + "-after-directory");
    again.good_step(0);
    again.close();
    CHECK_EQ(again.verdicts(), 0);
    CHECK(again.holds_steps({0}));
  });
}

MPI_TEST(verdict, calls_before_init_and_on_closed_streams_are_errors) {
  CHECK_EQ(tr_progress(), TR_ERR_STATE);
  tr_stream* none = nullptr;
  CHECK_EQ(tr_stream_create("x", "format=raw base=2026-03-01T00:00Z", &none), TR_ERR_STATE);
  CHECK(has(tr_error(), "tr_init comes first"));
  CHECK_EQ(tr_finalize(), TR_ERR_STATE);
  in_sessions([&](MPI_Comm compute, const std::string& label) {
    Forecast run(compute, label + "-closed");
    tr_stream* kept = run.stream();
    run.close();
    CHECK_EQ(tr_stream_begin(kept, 0), TR_ERR_STATE);
    CHECK_EQ(tr_stream_put(kept, "t", nullptr), TR_ERR_STATE);
    CHECK_EQ(tr_stream_end(kept), TR_ERR_STATE);
    CHECK_EQ(tr_stream_end(nullptr), TR_ERR_STATE);
    MPI_Comm again = MPI_COMM_NULL;
    CHECK_EQ(tr_init(compute, &again, ""), TR_ERR_STATE);
  });
}

MPI_TEST(verdict, bad_settings_are_the_same_error_on_every_rank) {
  for (const std::string options : {"server=1", "servers=none", "staging=0", "fault=\"rank=x nth=1\"",
                                    "fault=\"nth=0\"", "throttle=fast"}) {
    MPI_Comm compute = MPI_COMM_NULL;
    CHECK_EQ(tr_init(state().comm, &compute, options.c_str()), TR_ERR_SETTINGS);
    CHECK(compute == MPI_COMM_NULL);
    CHECK(same_text(state().comm, tr_error()));
    CHECK(has(tr_error(), options.substr(0, 4)));
  }
  // What would fail at the end fails at once.
  for (const std::string what : {"report", "trace"}) {
    MPI_Comm compute = MPI_COMM_NULL;
    const std::string options = what + "=no/such/directory/file.json";
    CHECK(tr_init(state().comm, &compute, options.c_str()) != TR_OK);
    CHECK(compute == MPI_COMM_NULL);
    CHECK(same_text(state().comm, tr_error()));
    CHECK(has(tr_error(), what == "report" ? "TAILRACE_REPORT" : "TAILRACE_TRACE"));
  }
  // One rank has other options than the rest.
  MPI_Comm compute = MPI_COMM_NULL;
  CHECK_EQ(tr_init(state().comm, &compute, rank() == 2 ? "logg=info" : ""), TR_ERR_SETTINGS);
  CHECK(same_text(state().comm, tr_error()));
}

MPI_TEST(verdict, staging_too_small_names_the_bytes) {
  for (const char* options : {"servers=0 staging=1kB", "servers=2 staging=1kB"}) {
    MPI_Comm compute = MPI_COMM_NULL;
    const int code = tr_init(state().comm, &compute, options);
    CHECK_EQ(code, TR_OK);
    if (compute != MPI_COMM_NULL) {
      Array array("block", compute, TR_F64);
      tr_stream* stream = nullptr;
      CHECK_EQ(tr_stream_create("never-made", "format=raw base=2026-03-01T00:00Z", &stream), TR_OK);
      CHECK_EQ(tr_stream_define(stream, "t", array.layout(), TR_F64, "levels=pressure:1000,850,500"),
               TR_ERR_MEMORY);
      CHECK(same_text(compute, tr_error()));
      CHECK(has(tr_error(), "bytes"));
      CHECK(has(tr_error(), "TAILRACE_STAGING"));
      CHECK_EQ(tr_stream_close(&stream), TR_OK);
    }
    CHECK_EQ(tr_finalize(), TR_OK);
  }
  MPI_Comm compute = MPI_COMM_NULL;
  CHECK_EQ(tr_init(state().comm, &compute, "staging=1000TiB"), TR_ERR_MEMORY);
  CHECK(same_text(state().comm, tr_error()));
  CHECK(has(tr_error(), "1099511627776000 bytes"));
}

MPI_TEST_MAIN
