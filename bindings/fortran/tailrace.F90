! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
!
! The Fortran face of Tailrace: one Fortran 2008 source over bind(C) with plain pointers, extents and byte
! strides. It needs no C descriptors and no assumed rank, so any Fortran 2008 compiler can build it:
!     mpifort -c tailrace.F90            (parts/ must lie beside it)
! Compile it with the same -fdefault-* flags as the program that uses it. -DTAILRACE_NO_MPI_F08 leaves
! type(MPI_Comm) out where MPI has no mpi_f08 module for this compiler; integer communicators always work.
!
! Shapes, indices and arrays are as Fortran has them: first index fastest, indices from 1. Each subroutine
! is documented in tailrace.h under the same verb. `ierr` is optional everywhere:
!   collective calls (the same verdict on every rank)   absent: one rank prints the text, all stop
!   begin, put, get and item, inside a bracket          absent: nothing; the error is kept for `end`
!   other local calls                                   absent: this rank prints the text and stops
!
! `put` reads an array before it returns, sections with strides included: it may be an expression, and a variable may
! change at once, with and without servers. `get` fills one before it returns. A variable of `item` is read or filled in `end`.

! Joins two names. gfortran preprocesses in traditional mode, which has no ## operator.
#if defined(__GFORTRAN__)
#define TR_PASTE(a) a
#define TR_NAME(a,b) TR_PASTE(a)b
#else
#define TR_PASTE(a,b) a##b
#define TR_NAME(a,b) TR_PASTE(a,b)
#endif

module tailrace
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int8, int16, int32, int64, real32, real64, &
    error_unit, iostat_end
#ifndef TAILRACE_NO_MPI_F08
  use mpi_f08, only: MPI_Comm
#endif
  implicit none
  private

  ! Codes, documented in tailrace.h.
  integer, parameter, public :: TR_OK = 0, TR_ERR_ARGUMENT = 1, TR_ERR_SETTINGS = 2, TR_ERR_STATE = 3, &
    TR_ERR_ORDER = 4, TR_ERR_LAYOUT = 5, TR_ERR_FORMAT = 6, TR_ERR_DATA = 7, TR_ERR_IO = 8, &
    TR_ERR_SPACE = 9, TR_ERR_MEMORY = 10, TR_ERR_MPI = 11, TR_ERR_TIMEOUT = 12, TR_ERR_UNSUPPORTED = 13, &
    TR_ERR_CORRUPT = 14
  ! Element types. TR_REAL is this compilation's default real. Fortran has no arrays of unsigned numbers.
  ! tr_text(n): of character(n).
  integer, parameter, public :: TR_I8 = 1, TR_I16 = 2, TR_I32 = 3, TR_I64 = 4, TR_F32 = 5, TR_F64 = 6, &
    TR_C64 = 7, TR_C128 = 8, TR_BYTE = 9, TR_U8 = TR_BYTE, TR_U16 = 10, TR_U32 = 11, TR_U64 = 12
  integer, parameter, public :: TR_REAL = merge(TR_F32, TR_F64, kind(1.0) == real32)
  ! From where `seek` of a shared file counts: its begin, the position or its end.
  integer, parameter, public :: TR_SEEK_SET = 0, TR_SEEK_CUR = 1, TR_SEEK_END = 2
  ! Events of wait.
  integer, parameter, public :: TR_CAPTURED = 1, TR_DURABLE = 2
  ! Directions of a checkpoint bracket, then the states of the last save.
  integer, parameter, public :: TR_SAVE = 1, TR_LOAD = 2
  integer, parameter, public :: TR_SAVE_COMMITTED = 0, TR_SAVE_NONE = 1, TR_SAVE_CAPTURED = 2, &
    TR_SAVE_WRITTEN = 3, TR_SAVE_FAILED = 4, TR_SAVE_DROPPED = 5

  ! The kind of MPI's own integers.
#ifndef TAILRACE_NO_MPI_F08
  type(MPI_Comm), parameter :: some_communicator = MPI_Comm(0)
  integer, parameter :: fint = kind(some_communicator%MPI_VAL)
#else
  integer, parameter :: fint = c_int
#endif
  integer, parameter :: max_dims = 7
  integer, parameter :: message_length = 256
  ! The operations on a list of elements of a global array.
  integer, parameter :: list_gather = 1, list_scatter = 2, list_accumulate = 3

  public :: tr_init, tr_finalize, tr_error, tr_version, tr_log, tr_progress, tr_should_stop
  public :: tr_layout, tr_stream, tr_levels, tr_owner, tr_file, tr_section, tr_shared, tr_global
  public :: tr_checkpoint, tr_checkpoint_interval
  public :: tr_record, tr_encoded, tr_encoder_register, tr_encode, tr_encode_bound, tr_encode_head
  public :: tr_hybrid, tr_pressure, tr_height, tr_surface, tr_text

  !> The owners of the elements of a global array. A plain value; copies mean the same layout; `free` ends
  !> all. `weights` of `weighted` is flat: the grid(1) weights of the first dimension, then the grid(2) of the
  !> second, and so on. `lower(:, b)` and `upper(:, b)` of `boxes` are the bounds of this rank's box b, and with
  !> `unowned` elements may lie in no box. The functions `lower` and `upper` are the bounds of this rank's array, halo included; `own_lower`
  !> and `own_upper` are the bounds of its own elements. `array_dims`: dimensions of a rank's array without
  !> levels, 1 if it is a list of elements, of boxes one more than the layout has.
  type :: tr_layout
    type(c_ptr) :: handle = c_null_ptr
    integer :: ndims = 0
    integer :: array_dims = 0
  contains
    procedure, private :: block_i4, block_i8, box_i4, box_i8, block_cyclic_i4, block_cyclic_i8
    procedure, private :: boxes_i4, boxes_i8
    procedure, private :: indexed_i4, indexed_i8, replicated_i4, replicated_i8, callback_i4, callback_i8
    procedure, private :: weighted_f32_i4, weighted_f64_i4, weighted_f32_i8, weighted_f64_i8
    procedure, private :: bounds_i4, bounds_i8
    generic :: block => block_i4, block_i8
    generic :: box => box_i4, box_i8
    generic :: boxes => boxes_i4, boxes_i8
    generic :: block_cyclic => block_cyclic_i4, block_cyclic_i8
    generic :: weighted => weighted_f32_i4, weighted_f64_i4, weighted_f32_i8, weighted_f64_i8
    generic :: indexed => indexed_i4, indexed_i8
    generic :: replicated => replicated_i4, replicated_i8
    generic :: callback => callback_i4, callback_i8
    generic :: bounds => bounds_i4, bounds_i8
    procedure :: georeference
    procedure :: dimensions => layout_dimensions
    procedure, private :: axis_i4, axis_i8, axis_f32, axis_f64
    generic :: axis => axis_i4, axis_i8, axis_f32, axis_f64
    procedure, private :: coordinates_1, coordinates_2
    generic :: coordinates => coordinates_1, coordinates_2
    procedure :: lower => layout_lower
    procedure :: upper => layout_upper
    procedure :: own_lower => layout_own_lower
    procedure :: own_upper => layout_own_upper
    procedure :: count => layout_count
    procedure :: free => layout_free
  end type

  !> The levels of a field, made by tr_hybrid, tr_pressure, tr_height, tr_surface or tr_levels(type, values).
  type :: tr_levels
    private
    character(:), allocatable :: text
  end type

  !> Time-ordered fields in a standard format. A plain value; `close` ends it.
  type :: tr_stream
    type(c_ptr) :: handle = c_null_ptr
  contains
    procedure :: create => stream_create
    procedure :: configure => stream_configure
    procedure :: wants => stream_wants
    procedure :: open => stream_open
    procedure :: define => stream_define
#include "parts/attribute_bindings.inc"
    procedure, private :: begin_i4, begin_i8
    generic :: begin => begin_i4, begin_i8
    procedure :: begin_at => stream_begin_at
    procedure, private :: stream_seek_i4, stream_seek_i8
    generic :: seek => stream_seek_i4, stream_seek_i8
    procedure :: put_address => stream_put_address
    procedure :: get_address => stream_get_address
    procedure :: end => stream_end
    procedure :: wait => stream_wait
    procedure :: close => stream_close
#define TR_TAG i8
#include "parts/put_bindings.inc"
#include "parts/get_bindings.inc"
#undef TR_TAG
#define TR_TAG i16
#include "parts/put_bindings.inc"
#include "parts/get_bindings.inc"
#undef TR_TAG
#define TR_TAG i32
#include "parts/put_bindings.inc"
#include "parts/get_bindings.inc"
#undef TR_TAG
#define TR_TAG i64
#include "parts/put_bindings.inc"
#include "parts/get_bindings.inc"
#undef TR_TAG
#define TR_TAG f32
#include "parts/put_bindings.inc"
#include "parts/get_bindings.inc"
#undef TR_TAG
#define TR_TAG f64
#include "parts/put_bindings.inc"
#include "parts/get_bindings.inc"
#undef TR_TAG
    procedure, private :: put_0_text, put_1_text, put_2_text, put_3_text
    generic :: put => put_0_text, put_1_text, put_2_text, put_3_text
    procedure, private :: get_0_text, get_1_text, get_2_text, get_3_text
    generic :: get => get_0_text, get_1_text, get_2_text, get_3_text
#define TR_TAG c64
#include "parts/put_bindings.inc"
#undef TR_TAG
#define TR_TAG c128
#include "parts/put_bindings.inc"
#undef TR_TAG
  end type

#include "parts/files_types.inc"
#include "parts/shared_types.inc"
#include "parts/global_types.inc"
#include "parts/checkpoints_types.inc"
#include "parts/encoders_types.inc"

  interface tr_init
#ifndef TAILRACE_NO_MPI_F08
    module procedure init_f08
#endif
    module procedure init_i4, init_i8
  end interface

  interface tr_section
    module procedure section_i4, section_i8
  end interface
  interface tr_checkpoint_interval
    module procedure interval_f32, interval_f64
  end interface
  interface tr_levels
    module procedure levels_plain, levels_one, levels_i4, levels_i8, levels_f32, levels_f64
  end interface
  interface tr_hybrid
    module procedure hybrid_plain, hybrid_f32, hybrid_f64
  end interface
  interface tr_pressure
    module procedure pressure_one, pressure_i4, pressure_i8, pressure_f32, pressure_f64
  end interface
  interface tr_height
    module procedure height_one, height_i4, height_i8, height_f32, height_f64
  end interface
  interface list_text
    module procedure list_text_i4, list_text_i8, list_text_f32, list_text_f64
  end interface
  interface shortest
    module procedure shortest_f32, shortest_f64
  end interface

  abstract interface
    !> For layout%callback: the compute rank (from 0) that owns the element at these global indices (from 1).
    function tr_owner(index) result(rank)
      import :: int64
      integer(int64), intent(in) :: index(:)
      integer :: rank
    end function
  end interface

  type :: owner_context
    procedure(tr_owner), pointer, nopass :: owner => null()
    integer :: ndims = 0
  end type

  ! Texts of errors that this face finds itself: `complaint` belongs to the call in progress, `last_complaint`
  ! to the last failed one; empty where the library's own text says it.
  character(:), allocatable, save :: complaint, last_complaint

#include "parts/c_interface.inc"
#include "parts/files_interface.inc"
#include "parts/shared_interface.inc"
#include "parts/global_interface.inc"
#include "parts/checkpoints_interface.inc"
#include "parts/encoders_interface.inc"

contains

  ! Errors.

  !> Local. Returns the text of the last error, '' if there was none.
  function tr_error() result(text)
    character(:), allocatable :: text
    if (allocated(last_complaint)) then
      text = last_complaint
    else
      text = from_c(c_error())
    end if
  end function

  subroutine complain(text)
    character(*), intent(in) :: text
    if (.not. allocated(complaint)) complaint = text
  end subroutine

  ! Ends every call: keeps the text that belongs to its verdict.
  subroutine keep(code, ierr)
    integer(c_int), intent(in) :: code
    integer, intent(out), optional :: ierr
    if (code /= 0) then
      if (allocated(last_complaint)) deallocate (last_complaint)
      if (allocated(complaint)) last_complaint = complaint
    end if
    if (allocated(complaint)) deallocate (complaint)
    if (present(ierr)) ierr = int(code)
  end subroutine

  ! Ends a call with a verdict that is the same on every rank: all stop, or none.
  subroutine settle(code, ierr)
    integer(c_int), intent(in) :: code
    integer, intent(out), optional :: ierr
    call keep(code, ierr)
    if (code == 0 .or. present(ierr)) return
    call c_print_once(to_c(tr_error()))
    call stop_quietly()
  end subroutine

  ! Ends a call with a verdict of this rank alone, outside of a bracket.
  subroutine settle_alone(code, ierr)
    integer(c_int), intent(in) :: code
    integer, intent(out), optional :: ierr
    call keep(code, ierr)
    if (code == 0 .or. present(ierr)) return
    write (error_unit, '(a)') 'tailrace: '//tr_error()
    flush (error_unit)
    call stop_quietly()
  end subroutine

  ! Stops like error stop 1, without a backtrace from every rank that would bury the printed text.
  subroutine stop_quietly()
    call c_exit(1_c_int)
  end subroutine

  ! Session.

#ifndef TAILRACE_NO_MPI_F08
  subroutine init_f08(world, compute, options, ierr)
    type(MPI_Comm), intent(in) :: world
    type(MPI_Comm), intent(out) :: compute
    character(*), intent(in), optional :: options
    integer, intent(out), optional :: ierr
    compute%MPI_VAL = world%MPI_VAL
    call start(world%MPI_VAL, compute%MPI_VAL, options, ierr)
  end subroutine
#endif

  subroutine start(world, compute, options, ierr)
    integer(fint), intent(in) :: world
    integer(fint), intent(inout) :: compute
    character(*), intent(in), optional :: options
    integer, intent(out), optional :: ierr
    character(:), allocatable :: given
    given = ''
    if (present(options)) given = options
    call settle(c_init(world, compute, to_c(given)), ierr)
  end subroutine

  subroutine tr_finalize(ierr)
    integer, intent(out), optional :: ierr
    call settle(c_finalize(), ierr)
  end subroutine

  subroutine tr_log(message)
    character(*), intent(in) :: message
    call c_log(to_c(message))
  end subroutine

  subroutine tr_progress(ierr)
    integer, intent(out), optional :: ierr
    call settle_alone(c_progress(), ierr)
  end subroutine

  !> Collective. Returns true, on every rank, once the program should save and stop.
  logical function tr_should_stop()
    tr_should_stop = c_should_stop() /= 0_c_int
  end function

  function tr_version() result(text)
    character(:), allocatable :: text
    text = from_c(c_version())
  end function

  ! Layouts.
#include "parts/layouts.inc"
  ! Streams.

  subroutine stream_create(self, pattern, base, packing, keys, format, member, members, calendar, existing, &
                           on_full, deadline, ready, hook, options, ierr, manifest, same_lead, empty_step, &
                           references, interval, attributes, compress, index, conventions, time, lead_unit, &
                           time_units, time_name, method, mpiio_hints, handoff)
    class(tr_stream), intent(inout) :: self
    character(*), intent(in) :: pattern
    character(*), intent(in), optional :: base, packing, keys, format, calendar, existing
    character(*), intent(in), optional :: on_full, deadline, ready, hook, options, manifest, same_lead, empty_step
    character(*), intent(in), optional :: references, interval, attributes, compress, index, conventions, time, lead_unit
    character(*), intent(in), optional :: time_units, time_name, method, mpiio_hints, handoff
    class(*), intent(in), optional :: member, members
    integer, intent(out), optional :: ierr
    character(:), allocatable :: all
    all = ''
    call add(all, 'base', base)
    call add(all, 'time', time)
    call add(all, 'lead_unit', lead_unit)
    call add(all, 'time_units', time_units)
    call add(all, 'time_name', time_name)
    call add(all, 'format', format)
    call add(all, 'packing', packing)
    call add(all, 'calendar', calendar)
    call add_number(all, 'member', member)
    call add_number(all, 'members', members)
    call add(all, 'existing', existing)
    call add(all, 'on_full', on_full)
    call add(all, 'deadline', deadline)
    call add(all, 'ready', ready)
    call add(all, 'hook', hook)
    call add(all, 'manifest', manifest)
    call add(all, 'same_lead', same_lead)
    call add(all, 'references', references)
    call add(all, 'index', index)
    call add(all, 'empty_step', empty_step)
    call add(all, 'method', method)
    call add(all, 'handoff', handoff)
    call add(all, 'mpiio_hints', mpiio_hints)
    call add(all, 'interval', interval)
    call add(all, 'conventions', conventions)
    call add(all, 'attributes', attributes)
    call add(all, 'compress', compress)
    call add(all, 'keys', keys)
    call append(all, options)
    call settle(c_create(to_c(pattern), to_c(all), self%handle), ierr)
  end subroutine

#include "parts/described.inc"

  !> Begins the step at a time of the model, in a stream with time='model': tr_stream_begin_at.
  subroutine stream_begin_at(self, time, ierr)
    class(tr_stream), intent(in) :: self
    real(real64), intent(in) :: time
    integer, intent(out), optional :: ierr
    call keep(c_begin_at(self%handle, real(time, c_double)), ierr)
  end subroutine

  !> Files that are read: tr_stream_open. `define` takes the same arguments as for output; accuracy, coefficients
  !> and others that only writing needs have no effect.
  subroutine stream_open(self, pattern, base, calendar, member, prefetch, between, follow, timeout, options, ierr, &
                         time, lead_unit)
    class(tr_stream), intent(inout) :: self
    character(*), intent(in) :: pattern
    character(*), intent(in), optional :: base, calendar, between, follow, timeout, options, time, lead_unit
    class(*), intent(in), optional :: member, prefetch
    integer, intent(out), optional :: ierr
    character(:), allocatable :: all
    all = ''
    call add(all, 'time', time)
    call add(all, 'lead_unit', lead_unit)
    call add(all, 'base', base)
    call add(all, 'calendar', calendar)
    call add_number(all, 'member', member)
    call add_number(all, 'prefetch', prefetch)
    call add(all, 'between', between)
    call add(all, 'follow', follow)
    call add(all, 'timeout', timeout)
    call append(all, options)
    call settle(c_open(to_c(pattern), to_c(all), self%handle), ierr)
  end subroutine

  !> `level_dim` is the dimension of the array that counts the levels, from 1 (absent: the last). `type`:
  !> absent means TR_REAL. Numbers may be of any kind; default reals keep their decimal value (0.01 means
  !> 0.01); accuracy may be 'auto'. `interval`, `percentile` and `name_in_file` (name=) are for streams that are read.
  !> `section` is the part of the global array that files hold, in the order of its dimensions: tr_section.
  subroutine stream_define(self, name, grid, levels, type, accuracy, relative_accuracy, bits, missing, &
                           statistic, since, at_zero, level_dim, nproma, keys, options, ierr, operation, &
                           attributes, compress, chunks, vertical, bottom, interval, percentile, name_in_file, &
                           time, over, units, standard_name, long_name, weights, information, section)
    class(tr_stream), intent(in) :: self
    character(*), intent(in) :: name
    class(tr_layout), intent(in) :: grid
    class(tr_levels), intent(in), optional :: levels
    integer, intent(in), optional :: type, level_dim
    type(tr_section), intent(in), optional :: section
    class(*), intent(in), optional :: accuracy, information, relative_accuracy, bits, missing, nproma, percentile
    character(*), intent(in), optional :: statistic, since, at_zero, keys, options, operation
    character(*), intent(in), optional :: attributes, compress, chunks, vertical, bottom, interval, name_in_file
    character(*), intent(in), optional :: time, over, units, standard_name, long_name, weights
    integer, intent(out), optional :: ierr
    character(:), allocatable :: all
    integer(c_int) :: element
    element = int(TR_REAL, c_int)
    if (present(type)) element = int(type, c_int)
    all = ''
    if (present(levels)) all = levels%text
    call add_number(all, 'accuracy', accuracy); call add_number(all, 'information', information)
    call add_number(all, 'relative_accuracy', relative_accuracy); call add_number(all, 'bits', bits)
    call add_number(all, 'missing', missing)
    call add(all, 'statistic', statistic)
    call add(all, 'since', since); call add(all, 'at_zero', at_zero)
    call add(all, 'operation', operation)
    call add(all, 'over', over); call add(all, 'weights', weights)
    if (present(level_dim)) call add_number(all, 'level_axis', level_axis(grid, level_dim))
    call add_number(all, 'nproma', nproma)
    if (present(section)) call add(all, 'section', section_text(section))
    call add(all, 'units', units)
    call add(all, 'standard_name', standard_name); call add(all, 'long_name', long_name)
    call add(all, 'attributes', attributes); call add(all, 'compress', compress)
    call add(all, 'chunks', chunks)
    call add(all, 'vertical', vertical)
    call add(all, 'bottom', bottom)
    call add(all, 'interval', interval)
    call add_number(all, 'percentile', percentile)
    call add(all, 'name', name_in_file)
    call add(all, 'time', time)
    call add(all, 'keys', keys)
    call append(all, options)
    call settle(c_define(self%handle, to_c(name), grid%handle, element, to_c(all)), ierr)
  end subroutine

#include "parts/attribute_text.inc"

  ! Returns the dimension of the array that counts the levels, in C order. An array without such a dimension gives
  ! -1, which the library refuses on all ranks alike.
  integer function level_axis(grid, level_dim)
    class(tr_layout), intent(in) :: grid
    integer, intent(in) :: level_dim
    level_axis = grid%array_dims + 1 - level_dim
    if (level_dim >= 1 .and. level_axis >= 0) return
    level_axis = -1
    call complain('stream%define: level_dim is '//number_text(level_dim)//', expected 1 (fastest) to '// &
                  number_text(grid%array_dims + 1)//' (slowest): without levels a rank''s array has '// &
                  number_text(grid%array_dims)//' dimension'//trim(merge(' ', 's', grid%array_dims == 1)))
  end function

  subroutine stream_end(self, ierr)
    class(tr_stream), intent(in) :: self
    integer, intent(out), optional :: ierr
    call settle(c_end(self%handle), ierr)
  end subroutine

  subroutine stream_wait(self, event, ierr)
    class(tr_stream), intent(in) :: self
    integer, intent(in) :: event
    integer, intent(out), optional :: ierr
    call settle(c_wait(self%handle, int(event, c_int)), ierr)
  end subroutine

  subroutine stream_close(self, ierr)
    class(tr_stream), intent(inout) :: self
    integer, intent(out), optional :: ierr
    call settle(c_close(self%handle), ierr)
  end subroutine

  !> Local. As put, for an array known only by its address, allocated as layout and definition say.
  subroutine stream_put_address(self, name, base, ierr)
    class(tr_stream), intent(in) :: self
    character(*), intent(in) :: name
    type(c_ptr), intent(in) :: base
    integer, intent(out), optional :: ierr
    call keep(c_put(self%handle, to_c(name), base), ierr)
  end subroutine

  !> Local. As get, for an array known only by its address, allocated as layout and definition say.
  subroutine stream_get_address(self, name, base, ierr)
    class(tr_stream), intent(in) :: self
    character(*), intent(in) :: name
    type(c_ptr), intent(in) :: base
    integer, intent(out), optional :: ierr
    call keep(c_get(self%handle, to_c(name), base), ierr)
  end subroutine

  ! Turns extents and strides into C order. A stride that no element uses (extent 0 or 1) gets the value of a
  ! contiguous array, so that the library still sees a regular one.
  subroutine turn(element_bytes, extents, strides)
    integer(int64), intent(in) :: element_bytes
    integer(int64), intent(inout) :: extents(:), strides(:)
    integer :: d
    integer(int64) :: natural
    natural = element_bytes
    do d = 1, size(extents)
      if (extents(d) <= 1 .or. any(extents == 0)) strides(d) = natural
      natural = strides(d) * max(extents(d), 1_int64)
    end do
    extents = extents(size(extents):1:-1)
    strides = strides(size(strides):1:-1)
  end subroutine

  ! Hands an array to the library.
  subroutine put_described(stream, name, type, element_bytes, base, extents, strides, ierr)
    type(c_ptr), intent(in) :: stream, base
    character(*), intent(in) :: name
    integer, intent(in) :: type
    integer(int64), intent(in) :: element_bytes
    integer(int64), intent(inout) :: extents(:), strides(:)
    integer, intent(out), optional :: ierr
    call turn(element_bytes, extents, strides)
    call keep(c_put_array(stream, to_c(name), base, int(type, c_int), int(size(extents), c_int), &
                          extents, strides), ierr)
  end subroutine

  ! Has the library fill an array.
  subroutine get_described(stream, name, type, element_bytes, base, extents, strides, ierr)
    type(c_ptr), intent(in) :: stream, base
    character(*), intent(in) :: name
    integer, intent(in) :: type
    integer(int64), intent(in) :: element_bytes
    integer(int64), intent(inout) :: extents(:), strides(:)
    integer, intent(out), optional :: ierr
    call turn(element_bytes, extents, strides)
    call keep(c_get_array(stream, to_c(name), base, int(type, c_int), int(size(extents), c_int), &
                          extents, strides), ierr)
  end subroutine

  integer(int64) function address(pointer)
    type(c_ptr), intent(in) :: pointer
    address = int(transfer(pointer, 0_c_intptr_t), int64)
  end function

#define TR_TAG i8
#define TR_TYPE integer(int8)
#define TR_CODE TR_I8
#define TR_BYTES 1_int64
#include "parts/attribute_kind.inc"
#include "parts/get_kind.inc"
#include "parts/put_kind.inc"
#define TR_TAG i16
#define TR_TYPE integer(int16)
#define TR_CODE TR_I16
#define TR_BYTES 2_int64
#include "parts/attribute_kind.inc"
#include "parts/get_kind.inc"
#include "parts/put_kind.inc"
#define TR_TAG i32
#define TR_TYPE integer(int32)
#define TR_CODE TR_I32
#define TR_BYTES 4_int64
#include "parts/attribute_kind.inc"
#include "parts/get_kind.inc"
#include "parts/put_kind.inc"
#define TR_TAG i64
#define TR_TYPE integer(int64)
#define TR_CODE TR_I64
#define TR_BYTES 8_int64
#include "parts/attribute_kind.inc"
#include "parts/get_kind.inc"
#include "parts/put_kind.inc"
#define TR_TAG f32
#define TR_TYPE real(real32)
#define TR_CODE TR_F32
#define TR_BYTES 4_int64
#include "parts/attribute_kind.inc"
#include "parts/get_kind.inc"
#include "parts/put_kind.inc"
#define TR_TAG f64
#define TR_TYPE real(real64)
#define TR_CODE TR_F64
#define TR_BYTES 8_int64
#include "parts/attribute_kind.inc"
#include "parts/get_kind.inc"
#include "parts/put_kind.inc"
#define TR_TAG c64
#define TR_TYPE complex(real32)
#define TR_CODE TR_C64
#define TR_BYTES 8_int64
#include "parts/put_kind.inc"
#define TR_TAG c128
#define TR_TYPE complex(real64)
#define TR_CODE TR_C128
#define TR_BYTES 16_int64
#include "parts/put_kind.inc"

#include "parts/texts.inc"

  ! Files.

#include "parts/files.inc"
#include "parts/text_files.inc"

  ! Shared files.

#include "parts/shared.inc"

  ! Global arrays.

#include "parts/global.inc"

  ! Checkpoints.

#include "parts/checkpoints.inc"

  ! Encoders of the program's own.

#include "parts/encoders.inc"

  ! Levels.

  function levels_plain(type) result(levels)
    character(*), intent(in) :: type
    type(tr_levels) :: levels
    levels%text = 'levels='//trim(type)
  end function

  function levels_one(type, value) result(levels)
    character(*), intent(in) :: type
    class(*), intent(in) :: value
    type(tr_levels) :: levels
    levels%text = 'levels='//trim(type)//':'//number_text(value)
  end function

  function tr_surface() result(levels)
    type(tr_levels) :: levels
    levels = levels_plain('surface')
  end function

  function pressure_one(value) result(levels)
    class(*), intent(in) :: value
    type(tr_levels) :: levels
    levels = levels_one('pressure', value)
  end function

  function height_one(value) result(levels)
    class(*), intent(in) :: value
    type(tr_levels) :: levels
    levels = levels_one('height', value)
  end function

  ! Model levels 1 to nlev. `levels` names the ones that the array holds, if not all.
  function hybrid_plain(nlev, levels) result(made)
    class(*), intent(in) :: nlev
    integer, intent(in), optional :: levels(:)
    type(tr_levels) :: made
    if (present(levels)) then
      made%text = 'levels=hybrid:'//list_text(levels)
    else
      made%text = 'levels=hybrid:1-'//number_text(nlev)
    end if
  end function

  ! The same text for each kind.

#define TR_I i4
#define TR_IK int32
#include "parts/integer_kind.inc"
#define TR_I i8
#define TR_IK int64
#include "parts/integer_kind.inc"

#define TR_R f32
#define TR_RK real32
#define TR_DIGITS 8
#include "parts/real_kind.inc"
#define TR_R f64
#define TR_RK real64
#define TR_DIGITS 16
#include "parts/real_kind.inc"

  ! Texts.

  recursive function to_c(text) result(terminated)
    character(*), intent(in) :: text
    character(len_trim(text) + 1, kind=c_char) :: terminated
    terminated = trim(text)//c_null_char
  end function

  recursive function from_c(address) result(text)
    type(c_ptr), intent(in) :: address
    character(:), allocatable :: text
    character(kind=c_char), pointer :: letters(:)
    integer :: i, length
    text = ''
    if (.not. c_associated(address)) return
    length = int(c_strlen(address))
    call c_f_pointer(address, letters, [length])
    deallocate (text)
    allocate (character(length) :: text)
    do i = 1, length
      text(i:i) = letters(i)
    end do
  end function

  ! Appends key=value to an options string, or nothing if the value is absent.
  subroutine add(all, key, value)
    character(:), allocatable, intent(inout) :: all
    character(*), intent(in) :: key
    character(*), intent(in), optional :: value
    if (present(value)) call append(all, key//'='//quoted(trim(value)))
  end subroutine

  ! Quotes as the library's options strings do: within quotes the quote itself is doubled.
  function quoted(value) result(text)
    character(*), intent(in) :: value
    character(:), allocatable :: text
    integer :: i
    if (len(value) > 0 .and. scan(value, ' "''') == 0 .and. scan(value, achar(9)//achar(10)) == 0) then
      text = value
      return
    end if
    text = '"'
    do i = 1, len(value)
      if (value(i:i) == '"') text = text//'"'
      text = text//value(i:i)
    end do
    text = text//'"'
  end function

  subroutine add_number(all, key, value)
    character(:), allocatable, intent(inout) :: all
    character(*), intent(in) :: key
    class(*), intent(in), optional :: value
    if (present(value)) call add(all, key, number_text(value))
  end subroutine

  subroutine append(all, options)
    character(:), allocatable, intent(inout) :: all
    character(*), intent(in), optional :: options
    if (.not. present(options)) return
    if (len(all) > 0) all = all//' '
    all = all//trim(options)
  end subroutine

  ! A value that is neither number nor text becomes a text that the library refuses on all ranks, naming the key.
  function number_text(value) result(text)
    class(*), intent(in) :: value
    character(:), allocatable :: text
    character(24) :: digits
    digits = '<not-a-number>'
    select type (value)
    type is (integer(int8));  write (digits, '(i0)') value
    type is (integer(int16)); write (digits, '(i0)') value
    type is (integer(int32)); write (digits, '(i0)') value
    type is (integer(int64)); write (digits, '(i0)') value
    type is (real(real32));   text = shortest(value)
    type is (real(real64));   text = shortest(value)
    type is (character(*));   text = trim(value)
    end select
    if (.not. allocated(text)) text = trim(digits)
  end function

end module tailrace

#include "parts/fortran77.inc"
