/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Tailrace moves a simulation's data to and from storage, and the simulation does not wait for it.
 *
 * Every function says first whether it is Collective (all compute ranks of the session call it, in the same
 * order) or Local (each rank calls it when it likes; no communication, and no waiting for other ranks, unless
 * it says so), and then whether it blocks.
 * Functions return TR_OK or a TR_ERR_* code; the text of the calling thread's last error is tr_error(). A
 * collective function returns the same code and text on every rank.
 * Options are "key=value key=value" strings; values with blanks are quoted: keys="centre=98, a=b". NULL means
 * none. An unknown key is TR_ERR_SETTINGS and names a similar known one. */
#ifndef TAILRACE_H
#define TAILRACE_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

#if defined(TAILRACE_BUILDING) || defined(__GNUC__)
#define TR_API __attribute__((visibility("default")))
#else
#define TR_API
#endif

#define TR_VERSION_MAJOR 0
#define TR_VERSION_MINOR 1
#define TR_VERSION_PATCH 0

#ifdef __cplusplus
extern "C" {
#endif

typedef int64_t tr_index;
typedef struct tr_layout tr_layout;
typedef struct tr_stream tr_stream;

enum {
  TR_OK = 0,
  TR_ERR_ARGUMENT = 1,     /* a value that the call does not take */
  TR_ERR_SETTINGS = 2,     /* a bad key or value in TAILRACE_* or an options string */
  TR_ERR_STATE = 3,        /* a call that makes no sense now */
  TR_ERR_ORDER = 4,        /* ranks that called different things, or in different order */
  TR_ERR_LAYOUT = 5,       /* gaps, overlaps, indices out of range, an array of the wrong shape */
  TR_ERR_FORMAT = 6,       /* the file format cannot hold what was asked for */
  TR_ERR_DATA = 7,         /* NaN, Inf, or values outside of what the packing holds */
  TR_ERR_IO = 8,           /* storage failed */
  TR_ERR_SPACE = 9,        /* storage or a quota is full */
  TR_ERR_MEMORY = 10,      /* the budget or the node's memory is too small */
  TR_ERR_MPI = 11,         /* MPI itself failed */
  TR_ERR_TIMEOUT = 12,     /* a wait reached its limit */
  TR_ERR_UNSUPPORTED = 13, /* not in this build, or not on this system */
  TR_ERR_CORRUPT = 14      /* a file whose bytes contradict themselves */
};

/* Element types. */
enum {
  TR_I8 = 1,
  TR_I16 = 2,
  TR_I32 = 3,
  TR_I64 = 4,
  TR_F32 = 5,
  TR_F64 = 6,
  TR_C64 = 7,
  TR_C128 = 8,
  TR_BYTE = 9
};

/* Events of tr_stream_wait. */
enum { TR_CAPTURED = 1, TR_DURABLE = 2 };

/* Local. Returns the text of the calling thread's last error; "" if there was none. The library owns it; it
 * is valid until the thread's next failing call. */
TR_API const char* tr_error(void);

/* Local. Returns "0.1.0". */
TR_API const char* tr_version(void);

/* Session. */

/* Collective over `world`; MPI must be initialized (MPI_THREAD_SINGLE suffices). Splits the ranks as
 * TAILRACE_SERVERS says. On compute ranks: returns at once with their communicator in *compute (order kept;
 * freed by tr_finalize). On servers: works until the compute ranks have called tr_finalize, then returns with
 * *compute = MPI_COMM_NULL. The model's own calls of MPI must not use `world` after that: servers come to
 * none of them. `options` are settings ("servers=1 staging=512MiB"); the environment
 * (TAILRACE_SERVERS=1) wins. A report or trace file that cannot be written is an error here. After an error,
 * which is the same on every rank, no session is open and *compute is MPI_COMM_NULL. If a rank does not come,
 * the others say so after TAILRACE_WATCHDOG and end the job after TAILRACE_TIMEOUT, and so do servers if no
 * compute rank makes a call for so long. One session at a time:
 * another one may begin once every rank, servers too, has called tr_finalize. In a session all ranks make the
 * collective calls of all faces in the same order. Ranks that wait in different calls get TR_ERR_ORDER and
 * the names of both calls within seconds, on every rank. Each later collective call gets the same, until
 * tr_finalize. Durable data stays. */
TR_API int tr_init(MPI_Comm world, MPI_Comm* compute, const char* options);
/* The same with Fortran integer handles, for bindings. */
TR_API int tr_init_f(MPI_Fint world, MPI_Fint* compute, const char* options);

/* Collective over compute ranks (servers: local, returns the session's last verdict). Blocks until all of
 * them have called it and everything put is durable. Closes whatever is still open. Reports errors not yet
 * returned by another call. */
TR_API int tr_finalize(void);

/* Local. Prints `message` to standard error on compute rank 0 only; without a session on rank 0 of
 * MPI_COMM_WORLD. May be called at any time; before MPI_Init no rank is known, and every process prints. */
TR_API void tr_log(const char* message);

/* Local, does not block. Lets the library move data if no server shares the node (progress=caller). Tells the
 * servers that the model goes on. */
TR_API int tr_progress(void);

/* Collective. Blocks until all ranks have called it. Returns 1 once the program should save and stop: the
 * same answer on every rank, and 1 for ever after. The reason is, on any rank: the time limit
 * (TAILRACE_TIME_LIMIT, or Slurm's) is near, one of TAILRACE_STOP_SIGNALS has come since tr_init, or
 * TAILRACE_HALT_FILE exists. Compute rank 0 prints it, once. Call it at the end of each step:
 * docs/stopping.md. If ranks call different things (TR_ERR_ORDER) it returns the last call's answer, and
 * tr_error() says why. It returns 1 once no further collective call is possible, and 0 without a session. */
TR_API int tr_should_stop(void);

/* Layouts: who owns which elements of a global array. */
/* Shapes and indices are in C order (slowest first) and start at 0. Layouts are validated: every element has
 * one owner. A layout may be freed as soon as the streams that use it are defined. */

/* Collective. Blocks as long as agreement takes. `halo`: elements on each side per dimension, or NULL. The
 * library chooses the processor grid (as square as possible). */
TR_API int tr_layout_block(int ndims, const tr_index* shape, const tr_index* halo, tr_layout** layout);
/* Collective. The same with a given processor grid (product = number of compute ranks; the library chooses
 * entries that are 0). */
TR_API int tr_layout_block_grid(int ndims, const tr_index* shape, const tr_index* halo, const int* grid,
                                tr_layout** layout);
/* Collective. Blocks of block[d] elements are dealt out round-robin along each dimension of `grid` (NULL:
 * chosen). */
TR_API int tr_layout_block_cyclic(int ndims, const tr_index* shape, const tr_index* block, const int* grid,
                                  tr_layout** layout);
/* Collective. Dimension d is cut over grid[d] coordinates proportionally to weights[d][0..grid[d]-1]. */
TR_API int tr_layout_weighted(int ndims, const tr_index* shape, const tr_index* halo, const int* grid,
                              const double* const* weights, tr_layout** layout);
/* Collective. Each rank owns lower[d] <= i[d] < upper[d]. All ranks together own every element once. */
TR_API int tr_layout_box(int ndims, const tr_index* shape, const tr_index* halo, const tr_index* lower,
                         const tr_index* upper, tr_layout** layout);
/* Collective. Each rank owns `count` elements with the given global indices (unstructured grids); `base` is 0
 * or 1. */
TR_API int tr_layout_indexed(int ndims, const tr_index* shape, tr_index count, const tr_index* indices,
                             int base, tr_layout** layout);
/* Collective. Every rank holds the whole array. The first compute rank's copy is written. */
TR_API int tr_layout_replicated(int ndims, const tr_index* shape, tr_layout** layout);
/* Collective. `owner(index, context)` returns the owning compute rank of the element with global index tuple
 * `index`. During definition it is called for every element, on every rank. A rank's elements are numbered in
 * C order. */
TR_API int tr_layout_callback(int ndims, const tr_index* shape,
                              int (*owner)(const tr_index* index, void* context), void* context,
                              tr_layout** layout);

/* Local. Returns the first and one-past-last global index of the caller's own box per dimension, without and
 * with halo (with_halo != 0: lower - halo, upper + halo, not clipped). TR_ERR_STATE for layouts that are no
 * boxes. */
TR_API int tr_layout_bounds(const tr_layout* layout, int with_halo, tr_index* lower, tr_index* upper);
/* Local. Returns the number of elements that the caller owns. */
TR_API int tr_layout_count(const tr_layout* layout, tr_index* count);

/* Collective. Says where on the globe the elements lie: "sample=FILE" takes the grid of the first GRIB
 * message of FILE and nothing else of it; "keys=..." sets grid keys (gridType=rotated_ll, Ni=..., ...).
 * Compute rank 0 reads the file. */
TR_API int tr_layout_georeference(tr_layout* layout, const char* options);

/* Collective. Blocks until all compute ranks have called it and compute rank 0 has all values. Says where the
 * points of a grid lie that no keys describe: latitudes (-90 to 90) and longitudes in degrees, in arrays of
 * the caller's part allocated as the layout says (halo). Layouts have 1 dimension (cells) or 2 (rows and
 * columns). `corners` > 0, the same on all ranks, also says where the cells around the points end: latitudes
 * and longitudes of so many corners (3 to 64) of each cell, side by side (the fastest dimension of the
 * arrays), with the halo of the layout, anticlockwise as seen from above (CF conventions, 7.1). A cell with
 * fewer corners repeats its last one. 0: no bounds, and NULL. Ranks that own nothing may pass NULL. The
 * arrays may change afterwards.
 *
 * Fields that are defined on the layout later have the coordinates in the heads of NetCDF files and Zarr
 * stores, and in references, in the place of those that follow from keys. Winds on a georeference that is a
 * turned grid stay along its axes. GRIB messages stay as the georeference says. Another call replaces the
 * coordinates for fields to come. The first tr_stream_define of a stream that uses them blocks on
 * compute rank 0 while the values pass through its lane. The budget of its node holds the values (16 bytes
 * for each point and each corner) once until the layout is freed, and twice for each such stream until it is
 * closed: TR_ERR_MEMORY from the call that they do not fit (docs/design/023-coordinates.md).
 *
 * TR_ERR_ARGUMENT: a null pointer where the rank owns points, a layout of more dimensions, another number of
 * corners than those above, or bounds with 0 corners. TR_ERR_DATA names the rank and the global index of a
 * value that is not finite or no latitude. TR_ERR_MEMORY: the node's budget is too small. TR_ERR_ORDER: ranks
 * name different layouts or numbers of corners. The layout then keeps what it had. */
TR_API int tr_layout_coordinates(tr_layout* layout, const double* latitudes, const double* longitudes,
                                 int corners, const double* latitude_bounds, const double* longitude_bounds);
/* Collective. The same for contiguous arrays whose shape the caller knows. `extents` in C order, of the
 * arrays of latitudes and longitudes, are the owned extents or owned + 2*halo (TR_ERR_ARGUMENT otherwise);
 * those of bounds have `corners` behind them. */
TR_API int tr_layout_coordinates_array(tr_layout* layout, const double* latitudes, const double* longitudes,
                                       int ndims, const tr_index* extents, int corners,
                                       const double* latitude_bounds, const double* longitude_bounds);

/* Local. *layout becomes NULL. */
TR_API int tr_layout_free(tr_layout** layout);

/* Streams: time-ordered fields in a standard format. */

/* Collective. `pattern`: file name with {base:%Y%m%d%H} {valid:%Y%m%d%H} {lead:03h} {lead:05m} {member:02}.
 * Options: base=TIME (required), format=grib2|cdf5|cdf2|cdf1|netcdf4|zarr|raw, or a name given to
 * tr_encoder_register, packing=simple|ccsds, compress=METHOD[:LEVEL], calendar=, member=, members=,
 * keys="...", attributes="...", conventions=none|weather, existing=replace|continue|fail|overwrite,
 * on_full=fail|wait:DURATION, deadline=DURATION, manifest=on|off, references=on|off, ready=SUFFIX,
 * hook=COMMAND (run by the shell with the finished file as $1), same_lead=fail|keep, empty_step=fail|keep,
 * interval=DURATION|Nmo|Ny, and any GRIB key, and for GRIB2 index=wgrib2,ecmwf,cfgrib: listings of each file,
 * for other tools; TR_ERR_STATE, here or with the first step of a file, if another file has the name of one,
 * and TR_ERR_FORMAT from tr_stream_define if the line of a field is not known
 * (docs/formats/other-indexes.md). format: without it a pattern that ends in .nc, .cdf or .netcdf means cdf5
 * (classic NetCDF), in .nc4, .h5 or .hdf5 netcdf4, in .zarr zarr (which needs such a name), one that promises
 * a format that this version lacks (.grib1) is TR_ERR_SETTINGS, and any other means grib2. An option that the
 * format does not take is TR_ERR_SETTINGS: packing=, index= and keys belong to grib2, attributes= (of each
 * file) to cdf5, cdf2, cdf1, netcdf4 and zarr, compress= to netcdf4 and zarr. conventions: with weather the
 * name of a field tells its standard_name and units (docs/formats/weather-names.md); with none (default) a
 * name tells nothing, but for GRIB's short names. existing: what happens to files that are there already.
 * replace (default): they are begun anew. continue: steps are added behind theirs; a GRIB file without its
 * index is indexed again first. fail: TR_ERR_STATE here if any file of the pattern exists (if directories
 * change with the lead: with the first step of the file). A file that is not known to be Tailrace's is
 * TR_ERR_STATE and left as it is; only overwrite empties it (docs/formats/index.md). Keys give the origin in
 * GRIB messages, as centre=98 generatingProcessIdentifier=1 typeOfProcessedData=an; without: no centre, no
 * process, a forecast. Names of fields are the centre's, without one those of WMO. same_lead: with fail a
 * field that an earlier step at the same lead has is TR_ERR_STATE, unless the step failed. empty_step: with
 * fail a step without any put is TR_ERR_STATE. keep says that it is intended. interval: the file gets one
 * step for each interval of this length, counted from the base time; the fields' operation= says of what.
 * tr_stream_begin, _put and _end of a step within an interval are local, wait for nothing and tell no server;
 * the step at an interval's end is as without interval=. Errors within an interval fail that step. Each step
 * has a greater lead than the one before, and one lies at the end of each interval (TR_ERR_ORDER). The puts
 * of a step at lead 0 count for nothing. Before it returns, compute rank 0 makes the directory and checks
 * that files can be written there, and that the files of a stream that continues from a checkpoint are there.
 * Until the stream is closed it holds the lock NAME.stream.lock, NAME being the pattern with its leads in
 * braces: another stream or job with this pattern gets TR_ERR_STATE. No other file is created before the
 * first step. With servers the first call takes the staging memory out of the budget: TR_ERR_MEMORY if a node
 * lacks it by now. tr_stream_define allocates what its field needs. */
TR_API int tr_stream_create(const char* pattern, const char* options, tr_stream** stream);

/* Collective. Before the first step. Options: levels=TYPE[:LIST] (hybrid:1-40, pressure:1000,850,500,
 * height:2, depth:5,10,20, surface), bottom=LIST (of layers, whose tops are the levels), vertical=FILE or
 * coefficients=LIST, accuracy=, relative_accuracy=, bits=, missing=,
 * statistic=instant|accum|average|maximum|minimum, since=start|last|DURATION, at_zero=write|omit,
 * operation=instant|mean|accum|minimum|maximum (with interval=), level_axis=N, nproma=N, keys="...",
 * attributes="..." (of the variable, in NetCDF), and any GRIB key. The definition of a GRIB field encodes one
 * header and reads every requested key back; a difference is TR_ERR_FORMAT. NetCDF and raw files hold values
 * as they are: NetCDF takes accuracy=, relative_accuracy= and bits=, which change nothing there; raw does
 * not. operation= sets the statistic, and draws the memory for what is accumulated on the node's budget:
 * TR_ERR_MEMORY if it does not fit. In the middle of an interval of a checkpoint the field must be as it was
 * when the checkpoint was saved (TR_ERR_STATE). On a layout with coordinates see tr_layout_coordinates. */
TR_API int tr_stream_define(tr_stream* stream, const char* field, const tr_layout* layout, int type,
                            const char* options);

/* Local. Opens the step valid `lead` seconds after the base time. Errors are kept for tr_stream_end. */
TR_API int tr_stream_begin(tr_stream* stream, int64_t lead);

/* Local; waits only while the staging memory is full (counted and reported). Captures the caller's part of
 * `field`, all levels, from the array at `data`, allocated as the layout (halo) and the definition
 * (level_axis, nproma) say. Without a server in the session `data` must stay unchanged until tr_stream_end. A
 * rank that owns nothing of the field may omit the call. Errors are kept for tr_stream_end. With interval=
 * the array is accumulated at once and may change afterwards. */
TR_API int tr_stream_put(tr_stream* stream, const char* field, const void* data);

/* Local, as tr_stream_put, for an array whose shape the caller knows. `extents` in C order, level axis
 * included, are the owned extents or owned + 2*halo. `strides` are in bytes, or NULL for a contiguous array.
 * `type` must be the defined one. The array may change as soon as the call returns, even without a server: it
 * is then copied, which takes memory of its size until the step ends. */
TR_API int tr_stream_put_array(tr_stream* stream, const char* field, const void* data, int type, int ndims,
                               const tr_index* extents, const tr_index* strides);

/* Collective, but local within an interval (interval=), where it returns TR_OK at once unless the ranks'
 * calls differ. Closes the step, in which something must have been put. The step is captured on return.
 * Without servers the result is this step's. With servers it is the first failure, not told yet, that they
 * knew of when every rank had ended the step before: wrong calls of that step are among these. Servers encode
 * and write later: what fails there is told by a later end, or by tr_stream_wait(TR_DURABLE), tr_stream_close
 * or tr_finalize. A failed step is dropped as a whole; the program may go on. */
TR_API int tr_stream_end(tr_stream* stream);

/* Collective. TR_CAPTURED: blocks until all ranks' last step is captured and its verdict agreed. TR_DURABLE:
 * blocks until all ended steps are on storage. Inside of a step it does not wait: it returns an error, which
 * fails the step on every rank. */
TR_API int tr_stream_wait(tr_stream* stream, int event);

/* Collective. Blocks until all steps are durable or have failed. Returns the first failure not yet returned.
 * An interval (interval=) that is not complete is not written, and a warning names it.
 * Ranks that have begun different numbers of steps get TR_ERR_ORDER here, or from another collective call of
 * the session. Then nothing more is written to that stream, and its tr_stream_end, _wait and _close return
 * TR_ERR_ORDER on every rank. *stream becomes NULL, whatever is returned: tr_finalize closes a stream that
 * could not be closed because the ranks were in different calls. */
TR_API int tr_stream_close(tr_stream** stream);

/* Streams that are read. The calls are those of streams that are written, with tr_stream_open in place of
 * tr_stream_create and tr_stream_get in place of tr_stream_put. tr_stream_put and tr_stream_wait on such a
 * stream, and tr_stream_get and tr_stream_seek on one that is written, are TR_ERR_STATE, at once and again at
 * tr_stream_end.
 *
 * Collective; waits for compute rank 0, which looks for the files. `pattern` as in tr_stream_create; without
 * a lead in it all steps lie in one file. Files may be of any writer and of any format that this build reads.
 * Options: base=TIME (without it the files' reference time; required if the pattern has times), calendar=,
 * member=N, prefetch=N (steps that are read ahead: 2), between=fail|linear|bridge (linear: a lead between two
 * steps of the files is interpolated between them, unless one between these is missing, which is
 * TR_ERR_ARGUMENT; bridge: also then), follow=on and timeout=DURATION (a step that is not there yet is
 * waited for in tr_stream_get, at most so long from tr_stream_begin on; without timeout= for ever; base= is
 * required). follow: a step of a file that has Tailrace's index beside it is there once it is committed. A
 * file without one is another program's: its steps are there once it can be read and its size has not changed
 * for 2 seconds, or at once if FILE.ready lies beside it, which a directory needs. Steps come in the order of
 * their leads. A step that its writer takes back is waited for again; if it does so while ranks get from it,
 * tr_stream_end is TR_ERR_STATE, and the same step may be tried again. TAILRACE_TIMEOUT does not count the
 * wait for a step, nor that in tr_stream_end with follow=on. A file in another calendar is TR_ERR_SETTINGS.
 * TR_ERR_SETTINGS for other options. TR_ERR_IO if no file has such a name. */
TR_API int tr_stream_open(const char* pattern, const char* options, tr_stream** stream);

/* tr_stream_define on a stream that is read: collective. `type` is TR_F32 or TR_F64, whatever the file has.
 * Options: levels=TYPE[:LIST] (any of the file's, in any order: that of the array's level dimension),
 * level_axis=N, nproma=N, missing=VALUE (is stored where the file has no value; without it such a place that
 * a rank needs is TR_ERR_DATA), name=NAME (of the field in the file, if it is not `field`). A GRIB file may
 * have several records of one name, level and time: statistic=, interval=DURATION|Nmo|Ny,
 * since=start|DURATION (where the interval begins), bottom=LIST (of layers), percentile=N, keys="..." and any
 * GRIB key choose; a record that differs from what they say is not found. Other keys that a stream has that
 * is written are accepted and mean nothing, so that one text serves both. The first steps are read from then
 * on. The memory for prefetch + 1 steps (linear: + 2) of what the ranks of the node need is drawn on the
 * node's budget: TR_ERR_MEMORY if it does not fit. Fields are defined before the first step: TR_ERR_STATE
 * after it, and for a field that is defined already. TR_ERR_LAYOUT if the allocation does not fit the layout.
 * TR_ERR_ORDER if ranks define different fields.
 *
 * tr_stream_begin: local. Leads may come in any order; those that grow, or fall, are read ahead. With
 * follow=on it blocks on storage for a look at the indexes beside the files of the step, if there are any.
 *
 * tr_stream_get: local; waits only if the field has not been read yet. Copies the caller's part of `field`,
 * all levels, to the array at `data`, allocated as the layout (halo) and the definition say: what the rank
 * owns, and its halo where that lies inside of the global array. The rest of the array is left alone. A rank
 * that owns nothing may omit the call. A replicated array is filled on every rank. Errors are kept for
 * tr_stream_end, which returns the first one on every rank: what the failed gets have stored is undefined. A
 * field may be got several times, or not at all. */
TR_API int tr_stream_get(tr_stream* stream, const char* field, void* data);

/* Local, as tr_stream_get, for an array whose shape the caller knows, described as in tr_stream_put_array. */
TR_API int tr_stream_get_array(tr_stream* stream, const char* field, void* data, int type, int ndims,
                               const tr_index* extents, const tr_index* strides);

/* Collective, between two steps. Says that the next step will be at `lead`, before or behind the last one:
 * steps are read ahead from there on. TR_ERR_ARGUMENT if the files have no such step. tr_stream_begin alone
 * may go to any lead, too: the step is then late. TR_ERR_STATE inside of a step. Errors that were kept for
 * tr_stream_end are returned, and forgotten.
 *
 * tr_stream_end on a stream that is read: collective; blocks until all ranks have got. Returns the first
 * error of any rank's begin and gets on all of them: TR_ERR_ARGUMENT for a field, level or step that the
 * files do not have, or that they have several times and the definition does not choose, TR_ERR_LAYOUT for
 * another grid, TR_ERR_DATA for missing values, TR_ERR_CORRUPT for a damaged file, TR_ERR_IO, TR_ERR_TIMEOUT,
 * TR_ERR_MEMORY if the budget has no room to decode, TR_ERR_ORDER if the ranks have begun different leads,
 * TR_ERR_SETTINGS for a file in another calendar, TR_ERR_STATE outside of a step, or if the writer has taken
 * the step back while ranks got from it. The program may go on with another step, or with the same one again.
 *
 * tr_stream_close on a stream that is read: collective. Waits for records that are being read. Sets *stream
 * to NULL, also if it returns an error that was kept. */
TR_API int tr_stream_seek(tr_stream* stream, int64_t lead);

#ifdef __cplusplus
}
#endif

#include "tailrace/files.h"

#include "tailrace/arrays.h"

#include "tailrace/windows.h"

#include "tailrace/shared.h"

#include "tailrace/global.h"

#include "tailrace/checkpoints.h"

#include "tailrace/encoders.h"

#endif
