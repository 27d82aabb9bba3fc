/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Tailrace moves a simulation's data to and from storage, and the simulation does not wait for it.
 *
 * The description of each function begins with "Collective." or "Local.". Collective: all compute ranks of
 * the session call it, in the same order. Local: each rank calls it when it likes; it does not communicate
 * and does not wait for other ranks, unless the description says so. The description also says whether the
 * function blocks, and on what.
 *
 * Functions return TR_OK or a TR_ERR_* code. tr_error() returns the text of the calling thread's last error.
 * A collective function returns the same code and text on every rank.
 *
 * Options are strings of the form "key=value key=value". Values with blanks are quoted: keys="centre=98,
 * a=b". NULL means no options. An unknown key is TR_ERR_SETTINGS, and the text names a similar known key. */
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
  TR_ERR_STATE = 3,        /* a call that makes no sense at this moment */
  TR_ERR_ORDER = 4,        /* ranks made different calls, or in different order */
  TR_ERR_LAYOUT = 5,       /* gaps, overlaps, indices out of range, an array of the wrong shape */
  TR_ERR_FORMAT = 6,       /* the file format cannot hold what the program asks for */
  TR_ERR_DATA = 7,         /* NaN, Inf, or values that the packing cannot hold */
  TR_ERR_IO = 8,           /* storage failed */
  TR_ERR_SPACE = 9,        /* storage or a quota is full */
  TR_ERR_MEMORY = 10,      /* the budget or the node's memory is too small */
  TR_ERR_MPI = 11,         /* MPI itself failed */
  TR_ERR_TIMEOUT = 12,     /* a wait reached its limit */
  TR_ERR_UNSUPPORTED = 13, /* not in this build or on this system */
  TR_ERR_CORRUPT = 14      /* a damaged file: its bytes contradict themselves */
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
  TR_BYTE = 9, /* bytes of any meaning; to formats and operations the numbers 0 to 255 */
  TR_U8 = TR_BYTE,
  TR_U16 = 10,
  TR_U32 = 11,
  TR_U64 = 12
};
/* The type of texts of `bytes` bytes, 1 to 4096, in fields and checkpoints: char name[n][bytes] is an array
 * of n of them. A text ends at its first zero byte, and before blanks at its end; files have zeros behind it.
 */
#define TR_TEXT(bytes) (4096 + (bytes))

/* Events of tr_stream_wait. */
enum { TR_CAPTURED = 1, TR_DURABLE = 2 };

/* Local. Returns the text of the calling thread's last error, or "" if there was none. The library owns the
 * text. It is valid until the thread's next failing call. */
TR_API const char* tr_error(void);

/* Local. Returns the version of the library, such as "0.1.0". */
TR_API const char* tr_version(void);

/* Session. */

/* Collective over `world`. MPI must be initialized (MPI_THREAD_SINGLE suffices). Begins a session, and splits
 * the ranks into compute ranks and servers as TAILRACE_SERVERS says.
 *
 * On compute ranks it returns at once. *compute becomes their communicator, in which the ranks keep their
 * order; tr_finalize frees it. On servers it works until the compute ranks have called tr_finalize, and then
 * returns with *compute = MPI_COMM_NULL. Afterwards the model must not use `world` in its own calls of MPI,
 * because servers make none of them.
 *
 * `options` are settings ("servers=1 staging=512MiB"). Settings in the environment (TAILRACE_SERVERS=1) have
 * precedence. A report or trace file that cannot be written is an error here. After an error, which is the
 * same on every rank, no session is open and *compute is MPI_COMM_NULL.
 *
 * If a rank does not come, the other ranks print a warning after TAILRACE_WATCHDOG and end the job after
 * TAILRACE_TIMEOUT. Servers do the same if no compute rank makes a call for that long.
 *
 * Only one session may be open at a time. Another one may begin once every rank, servers too, has called
 * tr_finalize.
 *
 * In a session all ranks must make the collective calls of all faces in the same order. If ranks wait in
 * different calls, every rank gets TR_ERR_ORDER and the names of both calls within seconds. Every later
 * collective call until tr_finalize returns the same error. Data that is durable by then stays. */
TR_API int tr_init(MPI_Comm world, MPI_Comm* compute, const char* options);
/* As tr_init, with Fortran integer handles, for bindings. */
TR_API int tr_init_f(MPI_Fint world, MPI_Fint* compute, const char* options);

/* Collective over the compute ranks; on servers local, where it returns the session's last verdict. Ends the
 * session and closes everything that is still open. Blocks until all compute ranks have called it and
 * everything put is durable. Returns an error that no other call has returned yet. A stream that has nothing
 * but fields without time is written by tr_stream_close alone: still open here, it is named in a warning. */
TR_API int tr_finalize(void);

/* Local. Prints `message` to standard error, on compute rank 0 only. Without a session it prints on rank 0 of
 * MPI_COMM_WORLD. Before MPI_Init no rank is known, and every process prints. May be called at any time. */
TR_API void tr_log(const char* message);

/* Local. Does not block. Moves data if no server shares the node (progress=caller). Tells the servers that
 * the model is still running. */
TR_API int tr_progress(void);

/* Collective. Blocks until all ranks have called it. Returns 1 once the program should save and stop, and
 * from then on always 1. The answer is the same on every rank. Call it at the end of each step
 * (docs/stopping.md).
 *
 * The reasons, on any rank, are: the time limit (TAILRACE_TIME_LIMIT, or Slurm's) is near; one of
 * TAILRACE_STOP_SIGNALS has come since tr_init; TAILRACE_HALT_FILE exists. Compute rank 0 prints the reason
 * once.
 *
 * If ranks make different calls (TR_ERR_ORDER), it returns the answer of its last call, and tr_error() says
 * why. It returns 1 once no further collective call is possible, and 0 without a session. */
TR_API int tr_should_stop(void);

/* Layouts: who owns which elements of a global array. */
/* Shapes and indices are in C order (slowest first) and start at 0. The library checks each layout: every
 * element must have one owner (tr_layout_boxes can leave elements without). A layout may be freed as soon as
 * the streams that use it are defined. */

/* Collective. Gives each rank one block of the array. Blocks until the ranks agree. `halo`: the number of
 * elements on each side in each dimension, or NULL. The library chooses the processor grid, as square as
 * possible. */
TR_API int tr_layout_block(int ndims, const tr_index* shape, const tr_index* halo, tr_layout** layout);
/* Collective. As tr_layout_block, with a given processor grid. The product of `grid` is the number of compute
 * ranks. The library chooses entries that are 0. Ranks lie on the grid in C order, as on the one of
 * MPI_Cart_create without reordering. */
TR_API int tr_layout_block_grid(int ndims, const tr_index* shape, const tr_index* halo, const int* grid,
                                tr_layout** layout);
/* Collective. Deals out blocks of block[d] elements in turn along each dimension of `grid`. With NULL the
 * library chooses the grid. */
TR_API int tr_layout_block_cyclic(int ndims, const tr_index* shape, const tr_index* block, const int* grid,
                                  tr_layout** layout);
/* Collective. Cuts dimension d over grid[d] coordinates, in proportion to weights[d][0..grid[d]-1]. */
TR_API int tr_layout_weighted(int ndims, const tr_index* shape, const tr_index* halo, const int* grid,
                              const double* const* weights, tr_layout** layout);
/* Collective. Each rank owns the elements lower[d] <= i[d] < upper[d]. All ranks together must own every
 * element once. */
TR_API int tr_layout_box(int ndims, const tr_index* shape, const tr_index* halo, const tr_index* lower,
                         const tr_index* upper, tr_layout** layout);
/* Collective. Each rank owns `count` boxes (tiles, patches), none or several, of any extents: box b has the
 * elements lower[b * ndims + d] <= i[d] < upper[b * ndims + d]. Boxes must not overlap. All ranks keep the
 * boxes of all ranks, 16 bytes for each dimension of a box and 12 more. With `unowned` = 0 the boxes of all
 * ranks must cover the array. With `unowned` = 1 elements may lie in no box, as land in an ocean model:
 * fields of streams need missing=, and files hold that value there (in GRIB a bitmap says so; texts are
 * empty). Collective files hold zeros there, checkpoints nothing. A rank that reads gets what it owns, and
 * its halos.
 *
 * A rank's array has its boxes one after another, each row-major with its halo. Equal boxes are one more
 * dimension of an array, the slowest: (box, y, x). The levels of a field (level_axis) are counted among these
 * dimensions: 0 is (lev, box, y, x), the default, 1 is (box, lev, y, x), ndims + 1 is the fastest; boxes of
 * different extents allow the first and the last. An array may also be given as a list of elements. Empty
 * boxes count as none, and take no memory.
 *
 *   TR_ERR_LAYOUT     a box beyond the array, an element in two boxes, or in none with `unowned` = 0; on all
 *                     ranks, and the text names the ranks and the element
 *   TR_ERR_ARGUMENT   `count` is below 0 or above 2147483647, or bounds are a null pointer */
TR_API int tr_layout_boxes(int ndims, const tr_index* shape, const tr_index* halo, tr_index count,
                           const tr_index* lower, const tr_index* upper, int unowned, tr_layout** layout);
/* Collective. Each rank owns the `count` elements with the given global indices (unstructured grids). `base`,
 * 0 or 1, is the index of the first element of the array. */
TR_API int tr_layout_indexed(int ndims, const tr_index* shape, tr_index count, const tr_index* indices,
                             int base, tr_layout** layout);
/* Collective. Every rank holds the whole array. The copy of the first compute rank is written. With `ndims` 0
 * and `shape` NULL the layout is that of scalars: a field of one number in each step, or with levels a
 * profile. Elsewhere than in streams a scalar is an array of one element. */
TR_API int tr_layout_replicated(int ndims, const tr_index* shape, tr_layout** layout);
/* Collective. The callback `owner(index, context)` returns the compute rank that owns the element with the
 * global index tuple `index`. This function calls it for every element, on every rank. The elements of a rank
 * are numbered in C order. */
TR_API int tr_layout_callback(int ndims, const tr_index* shape,
                              int (*owner)(const tr_index* index, void* context), void* context,
                              tr_layout** layout);

/* Local. Returns the bounds of the caller's own box in each dimension: the first global index, and the one
 * after the last. With with_halo != 0 they include the halo (lower - halo, upper + halo), also where the halo
 * lies outside of the array. TR_ERR_STATE for layouts that are not boxes. */
TR_API int tr_layout_bounds(const tr_layout* layout, int with_halo, tr_index* lower, tr_index* upper);
/* Local. Returns the number of elements that the caller owns. */
TR_API int tr_layout_count(const tr_layout* layout, tr_index* count);

/* Collective. Says where on the globe the elements lie. "sample=FILE" takes the grid, and nothing else, of
 * the first GRIB message of FILE, which compute rank 0 reads. "keys=..." sets grid keys (gridType=rotated_ll,
 * Ni=..., ...). */
TR_API int tr_layout_georeference(tr_layout* layout, const char* options);

/* Collective. Names the layout's dimensions for files that have dimensions (NetCDF, Zarr, references): "z,x",
 * slowest first, one name for each. Fields of a stream whose dimensions have the same name share it: u on
 * "z,xu" and w on "zw,x" of a staggered grid share what they share with t on "z,x". On a map the coordinates
 * have these names. Without this call layouts have dimensions of their own, called cell, y,x or z,y,x.
 * Another call renames the dimensions for fields defined afterwards, and drops their coordinates. GRIB and
 * raw files have no names of dimensions.
 *   TR_ERR_ARGUMENT   a null pointer, another number of names than dimensions, a name that comes twice. From
 *                     tr_stream_define: a name that NetCDF does not take, or that stands for another length,
 *                     another grid, the time, a field or a coordinate of the stream already */
TR_API int tr_layout_dimensions(tr_layout* layout, const char* names);
/* Collective. Gives a named dimension its coordinate: `values` has `count` numbers, one for each element of
 * the dimension in the order of its indices. `bounds`, if not NULL, has two for each, side by side: where the
 * element's cell begins and ends. Those of compute rank 0 count; other ranks may give NULL. They are copied.
 * Files with dimensions get a variable of this type and name (CF conventions, section 4). Another call for
 * the dimension replaces the coordinate for fields defined afterwards.
 *
 * Options: units=, axis=X|Y|Z|T, standard_name=, long_name=, positive=up|down, attributes="...": the
 * attributes of the variable.
 *
 *   TR_ERR_ARGUMENT   a null pointer, a dimension that the layout does not have or that has more than 2^20
 *                     elements, another count than its elements, complex numbers. From tr_stream_define: a
 *                     field before has other coordinates for a dimension with this name, or the layout has
 *                     a grid on a map
 *   TR_ERR_STATE      the dimensions have no names
 *   TR_ERR_SETTINGS   an unknown option */
TR_API int tr_layout_axis(tr_layout* layout, const char* dimension, int type, tr_index count,
                          const void* values, const void* bounds, const char* options);

/* Collective. Gives the coordinates of points, for grids that no keys describe. Blocks until all compute
 * ranks have called it and compute rank 0 has all values.
 *
 * `latitudes` (-90 to 90) and `longitudes`, in degrees, are arrays of the caller's part, allocated as the
 * layout says (halo). The layout has 1 dimension (cells) or 2 (rows and columns). Ranks that own nothing may
 * pass NULL. The arrays may change after the call.
 *
 * `corners`, the same on all ranks, is the number of corners (3 to 64) of each cell, whose latitudes and
 * longitudes are in the arrays of bounds. The corners of a cell lie side by side (the fastest dimension of
 * these arrays), anticlockwise as seen from above (CF conventions, 7.1). The arrays of bounds have the halo
 * of the layout. A cell with fewer corners repeats its last one. With `corners` = 0 there are no bounds: pass
 * NULL.
 *
 * Fields that are later defined on the layout have these coordinates in the heads of NetCDF files and Zarr
 * stores, and in references, instead of those that follow from keys. If the georeference is a rotated grid,
 * winds stay along its axes. GRIB messages stay as the georeference says. Another call replaces the
 * coordinates for fields defined afterwards.
 *
 * The first tr_stream_define of a stream that uses the coordinates blocks on compute rank 0 while the values
 * pass through its lane. The values take 16 bytes for each point and each corner. The budget of compute rank
 * 0's node holds them once until the layout is freed, and twice for each such stream until it is closed. The
 * call for which the budget has no room returns TR_ERR_MEMORY (docs/design/023-coordinates.md).
 *
 * After an error the layout keeps the coordinates that it had.
 *   TR_ERR_ARGUMENT   a null pointer on a rank that owns points, a layout of more than 2 dimensions, a
 *                     forbidden number of corners, or bounds with 0 corners
 *   TR_ERR_DATA       a value is not finite or no latitude; the text names the rank and the global index
 *   TR_ERR_MEMORY     the node's budget is too small
 *   TR_ERR_ORDER      ranks name different layouts or numbers of corners */
TR_API int tr_layout_coordinates(tr_layout* layout, const double* latitudes, const double* longitudes,
                                 int corners, const double* latitude_bounds, const double* longitude_bounds);
/* Collective. As tr_layout_coordinates, for contiguous arrays whose shape the caller knows. `extents`, in C
 * order, are those of the arrays of latitudes and longitudes: the owned extents or owned + 2*halo
 * (TR_ERR_ARGUMENT otherwise). The arrays of bounds have `corners` as one more, last extent. */
TR_API int tr_layout_coordinates_array(tr_layout* layout, const double* latitudes, const double* longitudes,
                                       int ndims, const tr_index* extents, int corners,
                                       const double* latitude_bounds, const double* longitude_bounds);

/* Local. Frees the layout. *layout becomes NULL. */
TR_API int tr_layout_free(tr_layout** layout);

/* Streams: time-ordered fields in files of a standard format. */

/* Collective. Creates a stream that writes. Blocks until the ranks agree about the arguments. docs/streams.md
 * describes streams and all options at length.
 *
 * `pattern` is the name of the files, with places for times and the member: {base:%Y%m%d%H} {valid:%Y%m%d%H}
 * {lead:03h} {lead:05m} {lead:09ms} {time:08.3f} {member:02}.
 *
 * Options. An option that the format does not take is TR_ERR_SETTINGS.
 *   base=TIME           the base time, from which leads count; required but for time=model
 *   time=leads|model    leads (default): a step is at a whole number of units after the base time. model: a
 *                       step is at a time of the model's own, given to tr_stream_begin_at
 *   lead_unit=UNIT      the unit of leads: ns, us, ms, s (default), min, h or d
 *   time_units=TEXT     for cdf5, cdf2, cdf1, netcdf4, zarr and raw: the units of the variable of time. A
 *                       unit of leads (default: lead_unit), or with time=model and without base= any text
 *                       (default: s)
 *   time_name=NAME      for cdf5, cdf2, cdf1, netcdf4 and zarr: the name of the variable of time (default:
 *                       time)
 *   format=NAME         grib2, grib1, cdf5, cdf2, cdf1, netcdf4, zarr, raw, or a name given to
 *                       tr_encoder_register. Without it the end of the pattern decides: .grib1 or .grb1 means
 *                       grib1, .nc, .cdf or .netcdf means cdf5 (classic NetCDF), .nc4, .h5 or .hdf5 means
 *                       netcdf4, .zarr means zarr, any other means grib2. The ending of a format that is
 *                       called otherwise here (.ncdf) is TR_ERR_SETTINGS. zarr needs a pattern that ends in
 *                       .zarr
 *   packing=simple|ccsds|second_order
 *                       for grib2 (simple, ccsds) and grib1 (simple, second_order): how numbers are packed
 *   keys="..."          for grib2 and grib1: keys of all records; GRIB keys may also stand by themselves.
 *                       They give the origin, for example centre=98 generatingProcessIdentifier=1, in grib2
 *                       also typeOfProcessedData=an. Without them there is no centre, no process, and the
 *                       data is a forecast. The names of fields are those of the centre, or without a centre
 *                       those of WMO
 *   index=LIST          for grib2: some of wgrib2,ecmwf,cfgrib, for grib1 of ecmwf,cfgrib: listings of each
 *                       file, for other tools (docs/formats/other-indexes.md). TR_ERR_STATE, here or with the
 *                       first step of a file, if another file has the name of a listing. TR_ERR_FORMAT from
 *                       tr_stream_define if the line of a field is not known
 *   compress=METHOD[:LEVEL]
 *                       for netcdf4 and zarr: how chunks are compressed
 *   attributes="..."    for cdf5, cdf2, cdf1, netcdf4 and zarr: attributes of each file
 *   conventions=none|weather
 *                       weather: the name of a field tells its standard_name and units
 *                       (docs/formats/weather-names.md). none (default): a name tells nothing, except that in
 *                       GRIB it is a short name
 *   calendar=NAME       the calendar of all times
 *   member=N, members=N
 *                       the number of this run in the ensemble, and the size of the ensemble
 *   existing=WORD       what happens to a file that exists. replace (default): it begins anew. continue:
 *                       steps are added behind its steps; a GRIB file without its index is indexed first.
 *                       fail: TR_ERR_STATE here if any file of the pattern exists; if directories change with
 *                       the lead, with the first step of the file. A file that is not known to be Tailrace's
 *                       is TR_ERR_STATE and stays as it is. overwrite: as replace, but such a file is emptied
 *                       too (docs/formats/index.md)
 *   same_lead=fail|keep
 *                       fail (default): a field that an earlier step at the same lead has is TR_ERR_STATE,
 *                       unless that step failed. keep: it is written once more
 *   empty_step=fail|keep
 *                       fail (default): a step without any put is TR_ERR_STATE. keep: such a step is intended
 *   interval=LENGTH     DURATION, Nmo or Ny: the file gets one step for each interval of this length, counted
 *                       from the base time; see below
 *   on_full=WORD        fail or wait:DURATION: a full disk fails a step at once, or after waiting so long for
 *                       room
 *   deadline=DURATION   a warning if a step is not durable this long after its end
 *   method=NAME         how servers write: scan (default), serial, offset_guard,
 *                       offset_sharing, writer, writer_aio, mpiio or mpiio_shared;
 *                       auto: as the file system needs it (docs/methods.md)
 *   handoff=NAME        how the ranks' data comes to the servers: auto (default),
 *                       shared, messages or onesided (docs/methods.md#handoff)
 *   mpiio_hints=LIST    KEY=VALUE,...: hints for the MPI with method=mpiio or
 *                       mpiio_shared
 *   manifest=on|off     a line for each finished file in manifest.jsonl
 *   references=on|off   a file NAME.refs.json beside each file, with which xarray opens it
 *   ready=SUFFIX        an empty file, NAME with SUFFIX behind it, once NAME is finished and durable
 *   hook=COMMAND        a command that the shell runs with each finished file as $1
 *
 * With interval= the option operation= of a field says what is written of its puts in an interval.
 * tr_stream_begin, _put and _end of a step within an interval are local, wait for nothing and tell no server,
 * but for the first tr_stream_begin of a run that goes on (tr_stream_define).
 * The step at the end of an interval is as without interval=. An error within an interval fails the step at
 * its end. Each step must have a greater lead than the one before, and one step must lie at the end of each
 * interval (TR_ERR_ORDER). The puts of a step at lead 0 count for nothing.
 *
 * Before this function returns, compute rank 0 makes the directory and checks that files can be written
 * there. If the stream continues from a checkpoint, it also checks that its files are there. Until the stream
 * is closed it holds the lock NAME.stream.lock, where NAME is the pattern with its leads in braces: another
 * stream or job with this pattern gets TR_ERR_STATE. No other file is created before the first step, and in a
 * stream without any field that has time, before tr_stream_close.
 *
 * With servers, the first call in a session takes the staging memory out of the budget: TR_ERR_MEMORY if a
 * node has not enough left. tr_stream_define allocates the memory that its field needs. */
TR_API int tr_stream_create(const char* pattern, const char* options, tr_stream** stream);

/* Collective. Defines a field of the stream, before the first step. Blocks until the ranks agree about the
 * arguments. For a stream that is read see below, at tr_stream_open.
 *
 * Behind the first step, between two steps, the field begins with the next file: the file of the steps so far
 * goes on without it, a put of it there is an error (tr_stream_wants returns 0), and tr_stream_begin of the
 * first step in the next file is collective and blocks until the files before are finished. TR_ERR_STATE if
 * the pattern has no time, so that no file follows; in the middle of an interval; or if the layout of a field
 * that was defined before had coordinates and was freed or got others.
 *
 * A run that goes on (existing=continue, a checkpoint) may define all fields before its first step, in any
 * order. Those that the file in which it goes on lacks begin with the next file, as above. The first
 * tr_stream_begin is then collective, and fails the step (TR_ERR_STATE at its end) if the file has a field
 * that the stream lacks, or if the pattern has no time.
 *
 * Options:
 *   levels=TYPE[:LIST]    hybrid:1-40, pressure:1000,850,500, height:2, depth:5,10,20, or surface (default)
 *   bottom=LIST           the bottoms of layers, whose tops are the levels
 *   vertical=FILE         or coefficients=LIST: the coefficients of hybrid levels
 *   accuracy=, bits=      or relative_accuracy=: how exactly values are packed
 *   accuracy=auto         each record keeps the bits that carry information=0.99 of its information
 *   missing=VALUE         the value that means "no value"
 *   statistic=WORD        instant, accum, average, maximum or minimum
 *   since=WHEN            start, last or DURATION: where the statistic's interval begins
 *   at_zero=write|omit    whether the empty interval at lead 0 gives a record
 *   operation=WORD        with interval=: instant, mean, accum, minimum or maximum
 *   over=OPERATION:NAMES  mean, sum, minimum or maximum over dimensions, which the file does not have then
 *   weights=FIELD         with over=mean or sum: a field with time=none, which has the weights from 0 on
 *   section=LIST          the part of the array that files hold: start:stop:stride for each dimension of the
 *                         layout, slowest first, from 0, stop exclusive, as 10:84:2,::3; the program puts all
 *   level_axis=, nproma=  the array's dimension that counts the levels, or (block, level, nproma)
 *   time=none             cdf5, cdf2, cdf1, netcdf4 and zarr: each file has the field once; see tr_stream_put
 *   units=                or standard_name=, long_name=: attributes of the variable; GRIB and raw omit them
 *   attributes="..."      other attributes of the variable, in NetCDF and Zarr
 *   compress=, chunks=    for netcdf4 and zarr: how chunks of the field are compressed, and their shape
 *   keys="..."            GRIB keys of this field; any GRIB key may also stand by itself
 *
 * The field of weights= is one of this stream, defined before; a missing weight counts as 0. It has the
 * field's dimensions, or some of them by name; over levels it has the same levels, and is put after this
 * definition. Each server keeps the weights (TR_ERR_MEMORY).
 *
 * The definition of a GRIB field encodes one header and reads every requested key back; a difference is
 * TR_ERR_FORMAT. Classic NetCDF (cdf5, cdf2, cdf1) and raw files hold values as they are. Classic NetCDF
 * takes accuracy=, information=, relative_accuracy= and bits=, which change nothing there; netcdf4 and zarr
 * round values by them; raw refuses them.
 *
 * With section= coordinates and grids are those of the section (docs/streams.md). TR_ERR_SETTINGS if the
 * layout has other dimensions or fewer elements; TR_ERR_FORMAT if GRIB has no such grid. Blocks until compute
 * rank 0 has cut the coordinates of the layout, which take the budget of its node until the stream is closed.
 *
 * operation= sets the statistic. It draws the memory for the accumulated values on the node's budget:
 * TR_ERR_MEMORY if they do not fit. If the stream continues from a checkpoint in the middle of an interval,
 * the field must be as it was when the checkpoint was saved (TR_ERR_STATE). For a layout with coordinates see
 * tr_layout_coordinates. */
TR_API int tr_stream_define(tr_stream* stream, const char* field, const tr_layout* layout, int type,
                            const char* options);

/* Collective. Gives an attribute: `count` numbers of `type` (TR_I8 to TR_I64, TR_U8 to TR_U64, TR_F32, _F64).
 * Blocks until the ranks agree about the arguments. Called before the first step, with `of` defined already.
 * Behind it, the attribute holds from the next file on, as a field does (tr_stream_define); it may then take
 * the place of one that an earlier call gave.
 * `of` is the name of a field, or of a dimension, whose coordinate gets the attribute; NULL: each file gets
 * it. The values of compute rank 0 count; other ranks may give NULL. They are copied.
 *
 * cdf5, cdf2, cdf1, netcdf4 and zarr, and references of these, hold attributes with their types.
 * valid_range, valid_min, valid_max, flag_values and flag_masks of a field have the field's type. A run that
 * goes on (existing=continue, a checkpoint) gives the same numbers to fields and dimensions, and the same
 * flag_meanings: another file is refused with the first step, and stays as it is. Of other texts, and of
 * attributes of the file, the file keeps its own, and a warning says so; references tell the last run's.
 *
 *   TR_ERR_ARGUMENT   no such field, no coordinate of such a dimension; no value, complex numbers, more than
 *                     60000 bytes; a name that NetCDF does not take; an attribute that is there already, or
 *                     that the library sets (_FillValue, scale_factor, coordinates, ...): the text names the
 *                     option that decides it; another type than CF wants
 *   TR_ERR_FORMAT     the format holds no attributes (GRIB, raw, encoders), or none of this type (TR_I64
 *                     and unsigned numbers in cdf1 and cdf2)
 *   TR_ERR_STATE      the stream has begun its steps, and no file follows; or it is read */
TR_API int tr_stream_attribute(tr_stream* stream, const char* of, const char* name, int type, tr_index count,
                               const void* values);
/* Collective. As tr_stream_attribute, for a text in UTF-8 (TR_ERR_ARGUMENT if it is none). It is what
 * attributes= of tr_stream_create, tr_stream_define and tr_layout_axis gives, for texts of any letters. */
TR_API int tr_stream_attribute_text(tr_stream* stream, const char* of, const char* name, const char* text);

/* Local. Begins the step that is valid `lead` seconds after the base time, or other units if the stream has
 * lead_unit=. Errors are kept for tr_stream_end. Collective if the step is the first of a file and something
 * was defined since the file before was begun. The first step of a run that goes on may be collective, too,
 * also within an interval: see tr_stream_define. Blocks then until the ranks agree, and until files before it
 * are finished. */
TR_API int tr_stream_begin(tr_stream* stream, int64_t lead);

/* Local. Begins the step at a time of the model, in a stream with time=model. Two times are equal if the two
 * doubles are: 0.1 + 0.2 is not 0.3, and -0 is 0. Files and checkpoints hold the double as it is, so that a
 * run that goes on compares exactly. Errors are kept for tr_stream_end: TR_ERR_ARGUMENT for a time that is
 * not finite, TR_ERR_STATE in a stream without time=model. In a stream that is read, the files may have said
 * that their times are those of a model. */
TR_API int tr_stream_begin_at(tr_stream* stream, double time);

/* Local. Captures the caller's part of `field`, all levels, from the array at `data`, which is allocated as
 * the layout (halo) and the definition (level_axis, nproma) say. Waits only while the staging memory is full;
 * these waits are counted and reported.
 *
 * With servers `data` may change when the call returns. Without a server in the session it must stay
 * unchanged until tr_stream_end. With interval= the array is accumulated at once, and may change in any case.
 * A rank that owns nothing of the field may omit the call. Errors are kept for tr_stream_end.
 *
 * A field with time=none is put once, between its definition and the first tr_stream_begin. That call is
 * collective, also for ranks that own nothing of the field. It blocks until compute rank 0 has all values,
 * which take four times their memory on its node until the stream is closed (TR_ERR_MEMORY if the budget has
 * less left). The array may change when the call returns. It returns errors at once, the same on every rank,
 * and the next tr_stream_end returns them again. Without the put each step fails with TR_ERR_STATE.
 *
 * A stream all of whose fields have time=none needs no step, if its name has no time: tr_stream_close writes
 * the file, which then has no variable of time, and returns TR_ERR_STATE if a field was not put. A run that
 * goes on leaves a file with the same fields and values as it is, and refuses another (TR_ERR_STATE). */
TR_API int tr_stream_put(tr_stream* stream, const char* field, const void* data);

/* Local, or collective, as tr_stream_put. Does the same for an array whose shape the caller knows. `extents`,
 * in C order with the level axis, are the owned extents or owned + 2*halo. `strides` are in bytes; NULL for a
 * contiguous array. `type` must be the defined one. The array may change as soon as the call returns, even
 * without a server: then the library copies it, which takes memory of its size until the step ends. */
TR_API int tr_stream_put_array(tr_stream* stream, const char* field, const void* data, int type, int ndims,
                               const tr_index* extents, const tr_index* strides);

/* Collective. Ends the step, in which something must have been put. Blocks until the step is captured on all
 * ranks. Within an interval (interval=) it is local, and returns TR_OK at once unless the ranks' calls
 * differ.
 *
 * Without servers the result is the verdict of this step. With servers it is the first failure not returned
 * yet that the servers knew of when every rank had ended the step before; this includes wrong calls of that
 * step. Servers encode and write later: failures there are returned by a later tr_stream_end, or by
 * tr_stream_wait(TR_DURABLE), tr_stream_close or tr_finalize.
 *
 * A failed step is dropped as a whole. The program may go on. */
TR_API int tr_stream_end(tr_stream* stream);

/* Collective. With TR_CAPTURED it blocks until the last step of all ranks is captured and its verdict agreed.
 * With TR_DURABLE it blocks until all ended steps are on storage. Inside a step it does not wait, but returns
 * an error, and the step fails on every rank. */
TR_API int tr_stream_wait(tr_stream* stream, int event);

/* Collective. Closes the stream. Blocks until all steps are durable or have failed. Returns the first failure
 * not returned yet. An interval (interval=) that is not complete is not written, and a warning names it.
 *
 * If ranks have begun different numbers of steps, they get TR_ERR_ORDER here, or from another collective call
 * of the session. Then nothing more is written to the stream, and its tr_stream_end, _wait and _close return
 * TR_ERR_ORDER on every rank.
 *
 * *stream becomes NULL, whatever is returned. If the stream cannot be closed because the ranks are in
 * different calls, tr_finalize closes it. */
TR_API int tr_stream_close(tr_stream** stream);

/* Collective. Makes the streams that a description says, a file in YAML: which streams there are, which
 * fields each of them writes, how often and in which format (docs/descriptions.md). Blocks until the ranks
 * agree. Compute rank 0 reads the file and tells it to all. *stream stands for all of these streams:
 *
 *   tr_stream_define     names a field of the program. It is defined in each stream that the description
 *                        gives the field to, under its options and those of `options` that its format takes;
 *                        the description's win. If a stream refuses the options, no stream has the field. If
 *                        it refuses the field later (an encoder, memory), no later definition of it helps
 *   tr_stream_begin      begins a step in each stream that has one then (every=)
 *   tr_stream_put        puts the field into each of them that has it. A put of a field that no stream has,
 *                        or none in this step, returns at once
 *   tr_stream_end, _wait, _close
 *                        do it in each of them, and return the first error. Without streams (`streams: {}`)
 *                        tr_stream_close alone tells all ranks of wrong calls
 *   tr_stream_attribute  gives it to each of them that takes attributes (GRIB and raw do not), and where the
 *                        description does not give it
 *
 * `options` are options of tr_stream_create for all streams, and must fit each of them. What the description
 * gives wins, but base=, calendar=, time= and lead_unit= are the program's if it gives them. The description
 * cannot say what the program's arrays are: levels=, bottom=, coefficients=, vertical=, level_axis=, nproma=,
 * missing=, time=, statistic= and since= of a field are the program's.
 *
 *   TR_ERR_IO, TR_ERR_SETTINGS   the file cannot be read, or is wrong: the text has line and column
 *   TR_ERR_UNSUPPORTED           the library was built without yaml-cpp
 *   errors of tr_stream_create   the streams that were made before are closed. Their files stay as they are,
 *                                and so do a loaded checkpoint's positions
 *
 * If the description names a field that the program has not defined before the first step, that step and all
 * others are TR_ERR_SETTINGS at tr_stream_end, and nothing is written. */
TR_API int tr_streams_configure(const char* file, const char* options, tr_stream** stream);

/* Local. Returns 1 if a put of the field would go anywhere, otherwise 0: the program need not compute it.
 * Within a step it tells of this step, outside of one of the stream: of a description's streams whether one
 * has the field, also before its definition, and of another stream whether the field was defined. The file of
 * a step may lack a field that was defined behind the stream's first step. `stream` is
 * one that is written. 0 with a text for tr_error() if it is none. */
TR_API int tr_stream_wants(tr_stream* stream, const char* field);

/* Streams that are read. They use the calls of streams that are written, with tr_stream_open instead of
 * tr_stream_create and tr_stream_get instead of tr_stream_put. tr_stream_put and tr_stream_wait on a stream
 * that is read, and tr_stream_get and tr_stream_seek on one that is written, are TR_ERR_STATE, at once and
 * again at tr_stream_end.
 *
 * Collective. Opens a stream for reading. Blocks until compute rank 0 has looked for the files. `pattern` is
 * as in tr_stream_create. Without a lead in the pattern, one file has all steps. The files may come from any
 * writer and have any format that this build reads.
 *
 * Options. Others are TR_ERR_SETTINGS.
 *   base=TIME     the base time; required if the pattern has times, and with follow=on. Without it: the
 *                 reference time of the files
 *   lead_unit=UNIT
 *                 the unit of leads: ns, us, ms, s, min, h or d. Without it that of the index beside the
 *                 first file, or else s, to which times of files of other writers are rounded
 *   time=model    steps are at times of a model, given to tr_stream_begin_at. Needed for files of other
 *                 writers whose times count from no date; an index tells it by itself
 *   calendar=NAME
 *                 the calendar. A file in another calendar is TR_ERR_SETTINGS
 *   member=N      the member of the ensemble
 *   prefetch=N    how many steps are read ahead (default 2)
 *   between=WORD  fail, linear or bridge: what happens at a lead between two steps of the files. linear: the
 *                 step is interpolated between them; if a step between these two is missing, it is
 *                 TR_ERR_ARGUMENT. bridge: it is interpolated also then
 *   follow=on     a step that is not there yet is waited for, in tr_stream_get
 *   timeout=DURATION
 *                 with follow=on: how long a step is waited for, counted from tr_stream_begin. Without it
 *                 forever
 *
 * With follow=on, a step of a file that has Tailrace's index beside it is there once it is committed. The
 * steps of a file without an index, which another program writes, are there once the file can be read and its
 * size has not changed for 2 seconds, or at once if FILE.ready lies beside it. A directory (a Zarr store)
 * needs FILE.ready. Steps come in the order of their leads. If the writer takes a step back, the reader waits
 * for it again. If that happens while ranks get from the step, tr_stream_end returns TR_ERR_STATE, and the
 * program may begin the same step again. TAILRACE_TIMEOUT does not count the wait for a step, nor the wait in
 * tr_stream_end with follow=on.
 *
 * TR_ERR_IO if no file has such a name. */
TR_API int tr_stream_open(const char* pattern, const char* options, tr_stream** stream);

/* tr_stream_define on a stream that is read. Collective. `type` is TR_F32 or TR_F64, whatever the type in the
 * file; or a type of integers that has every value of the type in the file, where integers lie unscaled
 * (TR_ERR_ARGUMENT in tr_stream_get otherwise, and here with between=linear); or TR_TEXT of at least the
 * length of the texts in the file. Options:
 *   levels=TYPE[:LIST]    any of the file's levels, in any order: the order of the array's level dimension
 *   level_axis=N, nproma=N
 *                         as for a stream that is written
 *   missing=VALUE         stored where the file has no value. Without it, such a place that a rank needs is
 *                         TR_ERR_DATA
 *   name=NAME             the name of the field in the file, if it is not `field`
 *
 * A GRIB file may have several records of one name, level and time. Then statistic=,
 * interval=DURATION|Nmo|Ny, since=start|DURATION (where the interval begins), bottom=LIST (of layers),
 * percentile=N, keys="..." and any GRIB key choose one: a record that differs from them does not count. Other
 * options of a stream that is written are accepted and ignored, so that one text serves both.
 *
 * The library begins to read the first steps now. It draws memory for prefetch + 1 steps (linear: + 2) of the
 * data that the ranks of the node need on the node's budget: TR_ERR_MEMORY if it does not fit. TR_ERR_STATE
 * after the first step, and for a field that is defined already. TR_ERR_LAYOUT if the allocation does not fit
 * the layout. TR_ERR_ORDER if ranks define different fields.
 *
 * tr_stream_begin on a stream that is read, and tr_stream_begin_at where the times are those of a model: the
 * call of the other kind is TR_ERR_STATE at tr_stream_end. Local. Leads may come in any order. If they keep
 * growing, or falling, the library reads ahead. With follow=on the call blocks on storage while it looks at
 * the indexes beside the files of the step, if there are any.
 *
 * tr_stream_get. Local. Copies the caller's part of `field`, all levels, to the array at `data`, which is
 * allocated as the layout (halo) and the definition say. Waits only if the field has not been read yet. Fills
 * the elements that the rank owns, and its halo where that lies inside of the global array; the rest of the
 * array does not change. A replicated array is filled on every rank. A rank that owns nothing may omit the
 * call. A field may be got several times, or not at all. A field without time is there in each step, with the
 * values of the step's own file. Errors are kept for tr_stream_end, which returns the first one on every
 * rank; the contents of arrays after failed gets are undefined. */
TR_API int tr_stream_get(tr_stream* stream, const char* field, void* data);

/* Local. As tr_stream_get, for an array whose shape the caller knows, described as in tr_stream_put_array. */
TR_API int tr_stream_get_array(tr_stream* stream, const char* field, void* data, int type, int ndims,
                               const tr_index* extents, const tr_index* strides);

/* Collective. Announces, between two steps, that the next step will be at `lead`, before or after the last
 * one: the library reads ahead from there. Without this call tr_stream_begin may go to any lead too, but then
 * waits for the step. TR_ERR_ARGUMENT if the files have no such step. TR_ERR_STATE inside a step, and where
 * times are those of a model. Errors that
 * were kept for tr_stream_end are returned, and forgotten.
 *
 * tr_stream_end on a stream that is read. Collective. Blocks until all ranks have got their fields. Returns,
 * on all ranks, the first error of any rank's begin and gets. The program may go on with another step, or
 * begin the same one again.
 *   TR_ERR_ARGUMENT   the files lack the field, level or step, or have it several times and the definition
 *                     does not choose one
 *   TR_ERR_LAYOUT     the file has another grid
 *   TR_ERR_DATA       missing values
 *   TR_ERR_CORRUPT    a damaged file
 *   TR_ERR_IO         storage failed
 *   TR_ERR_TIMEOUT    the step did not come in time
 *   TR_ERR_MEMORY     the budget has no room to decode
 *   TR_ERR_ORDER      the ranks have begun different leads
 *   TR_ERR_SETTINGS   a file in another calendar, or whose times are no whole number of the stream's units
 *   TR_ERR_STATE      outside of a step, or the writer has taken the step back while ranks got from it
 *
 * tr_stream_close on a stream that is read. Collective. Waits for records that are being read. *stream
 * becomes NULL, also if it returns an error that was kept. */
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
