! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! What translated Fortran programs call: distributed arrays, their halos and sections, reductions, one rank's files.
! A rank's part of an array is the program's own allocatable array with global indices; a dvm_array knows its bounds.
!
! Local: dvm_shape to dvm_distribute and dvm_aligned, bounds and spans, dvm_owns, dvm_first_owner.
! Collective over all ranks, blocking for those that a message comes from: the others.

#if defined(__GFORTRAN__)
#define DVM_PASTE(a) a
#define DVM_NAME(a,b) DVM_PASTE(a)b
#else
#define DVM_PASTE(a,b) a##b
#define DVM_NAME(a,b) DVM_PASTE(a,b)
#endif

module tailrace_dvm
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64, error_unit, output_unit
  use mpi_f08
  use tailrace, only: tr_init, tr_finalize, tr_error, tr_layout, tr_checkpoint, tr_file, tr_section
  implicit none
  private

  integer, parameter :: most = 7, tag_halo = 11, tag_across = 12, tag_section = 13, tag_move = 14
  integer, parameter :: block_kind = 1, whole_kind = 0

  !> One array or template, as this rank knows it. `starts(c, d)`: the first index of root dimension d that coordinate
  !> c, from 0, owns; coordinate `grid(d)` would begin behind the last one.
  type, public :: dvm_array
    private
    character(63) :: name = ''
    integer :: ndims = 0
    integer(int64) :: first(most) = 1, last(most) = 0
    integer :: below(most) = 1, above(most) = 1
    integer :: rank_dims = 0                       ! of the root
    integer(int64) :: root_first(most) = 1, root_last(most) = 0
    integer :: kind(most) = whole_kind, grid(most) = 1
    integer(int64), allocatable :: starts(:, :)
    integer :: to(most) = 0                        ! dimension of the root, 0 if it is collapsed
    integer(int64) :: factor(most) = 1, offset(most) = 0
    logical :: at_given(most) = .false.            ! of the root: the array lies at one index of it
    integer(int64) :: at(most) = 0
    integer(int64) :: address = 0
    integer :: type = 0
    logical :: borrowed = .false., made = .false.
  end type

  type :: box
    integer(int64) :: low(most) = 1, high(most) = 0
    integer :: n = 0
  end type

  type :: entry
    type(dvm_array) :: array
  end type
  type(entry), allocatable, save :: arrays(:)
  ! A file of the program that the ranks read and write together, by its unit.
  type :: open_unit
    integer :: unit = 0
    type(tr_file), pointer :: file => null()
  end type
  type(open_unit), allocatable, save :: units(:)
  type(MPI_Comm), save :: world
  integer, save :: me = 0, ranks = 1
  logical, save :: running = .false.

  public :: dvm_begin, dvm_end, dvm_io, dvm_barrier, dvm_pointer, c_f_pointer
  public :: dvm_shape, dvm_shadow, dvm_block, dvm_whole, dvm_genblock, dvm_wgtblock, dvm_multblock, dvm_distribute
  public :: dvm_align, dvm_align_at, dvm_aligned, dvm_memory, dvm_inherit, dvm_first_is, dvm_free
  public :: dvm_low, dvm_high, dvm_lbound, dvm_ubound, dvm_size, dvm_count, dvm_owns, dvm_first_owner
  public :: dvm_span, dvm_only, dvm_all, dvm_start, dvm_stop, dvm_alike, dvm_undivided
  public :: dvm_renew, dvm_across_begin, dvm_across_end, dvm_section, dvm_collect, dvm_spread
  public :: dvm_like, dvm_move, dvm_replace
  public :: dvm_layout, dvm_unit, dvm_mode, dvm_names, dvm_close
  public :: tr_layout, tr_checkpoint, tr_file, tr_section
  public :: dvm_type_of, dvm_send, dvm_send_all
  public :: dvm_reduce_max, dvm_reduce_min, dvm_reduce_sum, dvm_reduce_product
  public :: dvm_reduce_and, dvm_reduce_or, dvm_reduce_eqv, dvm_reduce_neqv, dvm_reduce_maxloc, dvm_reduce_minloc

  interface dvm_wgtblock
    module procedure wgtblock_r4, wgtblock_r8
  end interface
#define DVM_TAG i4
#include "bindings.inc"
#undef DVM_TAG
#define DVM_TAG i8
#include "bindings.inc"
#undef DVM_TAG
#define DVM_TAG r4
#include "bindings.inc"
#undef DVM_TAG
#define DVM_TAG r8
#include "bindings.inc"
#undef DVM_TAG
  interface dvm_type_of
    module procedure type_c4, type_c8, type_l4
  end interface
  interface dvm_send
    module procedure send_c4, send_c8, send_l4
  end interface
  interface dvm_send_all
    module procedure send_all_l4, send_all_text, send_all_c4, send_all_c8
  end interface
  interface dvm_reduce_sum
    module procedure sum_c4, sum_c8
  end interface
  interface dvm_reduce_and
    module procedure reduce_and
  end interface
  interface dvm_reduce_or
    module procedure reduce_or
  end interface
  interface dvm_reduce_eqv
    module procedure reduce_eqv
  end interface
  interface dvm_reduce_neqv
    module procedure reduce_neqv
  end interface

contains

  ! Begin and end.

  subroutine dvm_begin()
    logical :: initialised
    if (running) return
    call MPI_Initialized(initialised)
    if (.not. initialised) call MPI_Init()
    call tr_init(MPI_COMM_WORLD, world)
    if (world == MPI_COMM_NULL) then  ! an I/O server, whose work is over
      call tr_finalize()
      call MPI_Finalize()
      stop
    end if
    call MPI_Comm_rank(world, me)
    call MPI_Comm_size(world, ranks)
    allocate (arrays(0), units(0))
    running = .true.
  end subroutine

  subroutine dvm_end()
    if (.not. running) return
    running = .false.
    flush (output_unit)
    call tr_finalize()
    call MPI_Finalize()
  end subroutine

  ! Every rank is in this call, or it ends all of them.
  subroutine fail(text)
    character(*), intent(in) :: text
    if (me == 0) then
      write (error_unit, '(a)') 'tailrace dvm: '//text
      flush (error_unit)
    end if
    call MPI_Barrier(world)
    call MPI_Abort(world, 1)
  end subroutine

  ! One rank alone sees the error.
  subroutine fail_alone(text)
    character(*), intent(in) :: text
    write (error_unit, '(a)') 'tailrace dvm: '//text
    flush (error_unit)
    call MPI_Abort(world, 1)
  end subroutine

  logical function dvm_io()
    dvm_io = me == 0
  end function

  subroutine dvm_barrier()
    call MPI_Barrier(world)
  end subroutine

  type(c_ptr) function dvm_pointer(address)
    integer(c_intptr_t), intent(in) :: address
    dvm_pointer = transfer(address, c_null_ptr)
  end function

  ! How an array lies.

  subroutine dvm_shape(a, name, first, last)
    type(dvm_array), intent(out) :: a
    character(*), intent(in) :: name
    integer(int64), intent(in) :: first(:), last(:)
    if (.not. running) call dvm_begin()
    a%name = name
    a%ndims = size(first)
    a%first(:a%ndims) = first
    a%last(:a%ndims) = last
  end subroutine

  subroutine dvm_shadow(a, below, above)
    type(dvm_array), intent(inout) :: a
    integer, intent(in) :: below(:), above(:)
    if (any(below < 0) .or. any(above < 0)) call fail('the widths of the shadow of '//trim(a%name)//' are negative')
    a%below(:a%ndims) = below
    a%above(:a%ndims) = above
  end subroutine

  subroutine dvm_whole(a, d)
    type(dvm_array), intent(inout) :: a
    integer, intent(in) :: d
    a%kind(d) = whole_kind
  end subroutine

  subroutine dvm_block(a, d)
    type(dvm_array), intent(inout) :: a
    integer, intent(in) :: d
    call divided(a, d)
    a%at(d) = 1                                    ! multiples of 1
  end subroutine

  subroutine dvm_multblock(a, d, multiple)
    type(dvm_array), intent(inout) :: a
    integer, intent(in) :: d, multiple
    call divided(a, d)
    if (multiple < 1) call fail('MULT_BLOCK of '//trim(a%name)//' is less than 1')
    a%at(d) = multiple
  end subroutine

  subroutine dvm_genblock(a, d, sizes)
    type(dvm_array), intent(inout) :: a
    integer, intent(in) :: d, sizes(:)
    call divided(a, d)
    call pieces(a, d, int(sizes, int64), 2)
  end subroutine

  subroutine wgtblock_r8(a, d, weights, count)
    type(dvm_array), intent(inout) :: a
    integer, intent(in) :: d, count
    real(real64), intent(in) :: weights(:)
    call divided(a, d)
    if (count < 1 .or. count > size(weights) .or. any(weights(:min(count, size(weights))) < 0)) &
      call fail('WGT_BLOCK of '//trim(a%name)//': weights are missing or negative')
    ! Kept as parts per million; where the cuts lie is found once the number of coordinates is known.
    call pieces(a, d, int(weights(:count) / max(sum(weights(:count)), tiny(1d0)) * 1d6, int64), 3)
  end subroutine

  subroutine wgtblock_r4(a, d, weights, count)
    type(dvm_array), intent(inout) :: a
    integer, intent(in) :: d, count
    real(real32), intent(in) :: weights(:)
    call wgtblock_r8(a, d, real(weights, real64), count)
  end subroutine

  subroutine divided(a, d)
    type(dvm_array), intent(inout) :: a
    integer, intent(in) :: d
    a%kind(d) = block_kind
  end subroutine

  ! Keeps the sizes or the weights of dimension d until dvm_distribute.
  subroutine pieces(a, d, values, kind)
    type(dvm_array), intent(inout) :: a
    integer, intent(in) :: d, kind
    integer(int64), intent(in) :: values(:)
    integer(int64), allocatable :: all(:, :)
    integer :: room
    room = size(values)
    if (allocated(a%starts)) room = max(room, ubound(a%starts, 1) + 1)
    allocate (all(0:room - 1, most), source=0_int64)
    if (allocated(a%starts)) all(:ubound(a%starts, 1), :) = a%starts
    all(:size(values) - 1, d) = values
    call move_alloc(all, a%starts)
    a%kind(d) = kind
    a%at(d) = size(values)
  end subroutine

  !> Local. Cuts the array over all ranks, or over a grid of them, one extent for each dimension that is cut.
  subroutine dvm_distribute(a, grid)
    type(dvm_array), intent(inout) :: a
    integer, intent(in), optional :: grid(:)
    integer :: cut(most), n, d, next
    logical :: given_sizes
    integer(int64), allocatable :: given(:, :)
    n = count(a%kind(:a%ndims) /= whole_kind)
    a%rank_dims = a%ndims
    a%root_first = a%first
    a%root_last = a%last
    a%to(:a%ndims) = [(d, d = 1, a%ndims)]
    cut = 0
    if (n > 0) then
      if (present(grid)) then
        if (size(grid) /= n) call fail('ONTO: the arrangement has another rank than '//trim(a%name)//' has cut dimensions')
        cut(:n) = grid
        if (any(grid < 1) .or. product(grid) > ranks) call fail('ONTO: the arrangement has more processors than ranks')
      else
        next = 0
        do d = 1, a%ndims
          if (a%kind(d) == whole_kind) cycle
          next = next + 1
          if (a%kind(d) == 2) cut(next) = int(a%at(d))
        end do
        if (mod(ranks, product(cut(:n), cut(:n) > 0)) /= 0 .or. (all(cut(:n) > 0) .and. product(cut(:n)) /= ranks)) &
          call fail('the GEN_BLOCK of '//trim(a%name)//' has as many sizes as it was written for ranks; start it on that number')
        ! The last dimension is cut most: columns are contiguous, and so are the messages of their halos.
        given_sizes = any(cut(:n) > 0)
        call MPI_Dims_create(ranks, n, cut(:n))
        if (.not. given_sizes) cut(:n) = cut(n:1:-1)
      end if
    end if
    next = 0
    if (allocated(a%starts)) then
      call move_alloc(a%starts, given)
    else
      allocate (given(0:0, most), source=0_int64)
    end if
    a%grid = 1
    do d = 1, a%ndims
      if (a%kind(d) == whole_kind) cycle
      next = next + 1
      a%grid(d) = cut(next)
    end do
    allocate (a%starts(0:maxval(a%grid), most), source=1_int64)
    do d = 1, a%ndims
      call cut_dimension(a, d, given(:, d))
    end do
    a%at = 0
    a%made = .true.
  end subroutine

  subroutine cut_dimension(a, d, given)
    type(dvm_array), intent(inout) :: a
    integer, intent(in) :: d
    integer(int64), intent(in) :: given(0:)
    integer(int64) :: extent, size_of, sum_of, total
    integer :: c, p, k
    p = a%grid(d)
    extent = max(a%last(d) - a%first(d) + 1, 0_int64)
    a%starts(0, d) = a%first(d)
    select case (a%kind(d))
    case (2)
      if (int(a%at(d)) < p) call fail('GEN_BLOCK of '//trim(a%name)//' has fewer sizes than the grid has ranks')
      do c = 1, p
        a%starts(c, d) = a%starts(c - 1, d) + given(c - 1)
      end do
      if (a%starts(p, d) /= a%last(d) + 1 .or. any(given(:p - 1) < 0)) &
        call fail('GEN_BLOCK of '//trim(a%name)//': the sizes do not add up to the dimension')
    case (3)
      total = sum(given(:a%at(d) - 1))
      k = 0
      sum_of = 0
      do c = 1, p
        do while (k < a%at(d) .and. sum_of * p < total * c)
          sum_of = sum_of + given(k)
          k = k + 1
        end do
        a%starts(c, d) = a%first(d) + extent * k / a%at(d)
      end do
      a%starts(p, d) = a%last(d) + 1
    case default
      size_of = 1
      if (a%kind(d) == block_kind) size_of = max(a%at(d), 1_int64)
      if (mod(extent, size_of) /= 0) call fail('MULT_BLOCK of '//trim(a%name)//' does not divide the dimension')
      total = extent / size_of
      do c = 1, p
        a%starts(c, d) = a%first(d) + (total * c / p) * size_of
      end do
    end select
  end subroutine

  subroutine dvm_align(a, d, target_dim, factor, offset)
    type(dvm_array), intent(inout) :: a
    integer, intent(in) :: d, target_dim, factor
    integer(int64), intent(in) :: offset
    a%to(d) = target_dim
    a%factor(d) = factor
    a%offset(d) = offset
  end subroutine

  subroutine dvm_align_at(a, target_dim, index)
    type(dvm_array), intent(inout) :: a
    integer, intent(in) :: target_dim
    integer(int64), intent(in) :: index
    a%at_given(target_dim) = .true.
    a%at(target_dim) = index
  end subroutine

  !> Local. Ends an alignment: what was said of dimensions of the target becomes what is true of its root.
  subroutine dvm_aligned(a, target)
    type(dvm_array), intent(inout) :: a
    type(dvm_array), intent(in) :: target
    logical :: given(most)
    integer(int64) :: at(most), low, high
    integer :: d, t, r
    if (.not. target%made) call fail(trim(a%name)//' is aligned with '//trim(target%name)//', which is not distributed yet')
    given = a%at_given
    at = a%at
    a%rank_dims = target%rank_dims
    a%root_first = target%root_first
    a%root_last = target%root_last
    a%kind = target%kind
    a%grid = target%grid
    a%starts = target%starts
    a%at_given = target%at_given
    a%at = target%at
    do d = 1, a%ndims
      t = a%to(d)
      if (t == 0) cycle
      low = min(a%factor(d) * a%first(d), a%factor(d) * a%last(d)) + a%offset(d)
      high = max(a%factor(d) * a%first(d), a%factor(d) * a%last(d)) + a%offset(d)
      if (a%last(d) >= a%first(d) .and. (low < target%first(t) .or. high > target%last(t))) &
        call fail(trim(a%name)//' reaches beyond '//trim(target%name)//', with which it is aligned')
      a%to(d) = target%to(t)
      a%offset(d) = target%factor(t) * a%offset(d) + target%offset(t)
      a%factor(d) = target%factor(t) * a%factor(d)
    end do
    do t = 1, target%ndims
      r = target%to(t)
      if (.not. given(t) .or. r == 0) cycle
      if (at(t) < target%first(t) .or. at(t) > target%last(t)) &
        call fail(trim(a%name)//' lies outside of '//trim(target%name)//', with which it is aligned')
      a%at_given(r) = .true.
      a%at(r) = target%factor(t) * at(t) + target%offset(t)
    end do
    a%made = .true.
  end subroutine

  !> Local. Tells where this rank's part lies.
  subroutine dvm_memory(a, address, type)
    type(dvm_array), intent(inout) :: a
    integer(c_intptr_t), intent(in) :: address
    integer, intent(in) :: type
    a%address = address
    a%type = type
    call forget(address)
    arrays = [arrays, entry(a)]
  end subroutine

  subroutine forget(address)
    integer(int64), intent(in) :: address
    integer :: n
    if (.not. allocated(arrays)) return
    arrays = pack(arrays, [(arrays(n)%array%address /= address, n = 1, size(arrays))])
  end subroutine

  !> Local. Finds the array that the caller of a procedure has handed on.
  subroutine dvm_inherit(a, address, ndims, name)
    type(dvm_array), intent(out) :: a
    integer(c_intptr_t), intent(in) :: address
    integer, intent(in) :: ndims
    character(*), intent(in) :: name
    integer :: n
    do n = 1, size(arrays)
      if (arrays(n)%array%address /= address) cycle
      a = arrays(n)%array
      a%borrowed = .true.
      if (a%ndims /= ndims) call fail_alone('the argument '//name//' has another rank than the distributed array '//trim(a%name))
      return
    end do
    call fail_alone('the argument '//name//' is not a whole distributed array')
  end subroutine

  !> Local. The argument's first dimension begins elsewhere than that of the caller's array.
  subroutine dvm_first_is(a, d, first)
    type(dvm_array), intent(inout) :: a
    integer, intent(in) :: d
    integer(int64), intent(in) :: first
    integer(int64) :: shift
    shift = first - a%first(d)
    a%offset(d) = a%offset(d) - a%factor(d) * shift
    a%first(d) = a%first(d) + shift
    a%last(d) = a%last(d) + shift
  end subroutine

  subroutine dvm_free(a)
    type(dvm_array), intent(inout) :: a
    if (.not. a%borrowed .and. a%address /= 0) call forget(a%address)
    a%address = 0
  end subroutine

#include "ownership.inc"

  ! Loops.

  !> Local. Returns the values v of a loop's variable for which this rank owns factor * v + offset in dimension d; with
  !> `widen` also those within the shadow.
  subroutine dvm_span(a, d, factor, offset, low, high, widen)
    type(dvm_array), intent(in) :: a
    integer, intent(in) :: d, factor, offset
    integer, intent(out) :: low, high
    logical, intent(in), optional :: widen
    type(box) :: mine
    integer(int64) :: first, last
    mine = own(a, me)
    if (is_empty(mine)) then
      low = 1
      high = 0
      if (factor < 0) low = 1
      return
    end if
    first = mine%low(d)
    last = mine%high(d)
    if (present(widen)) then
      if (is_divided(a, d)) then
        first = max(first - a%below(d), a%first(d))
        last = min(last + a%above(d), a%last(d))
      end if
    end if
    if (factor > 0) then
      low = int(ceiling_of(first - offset, int(factor, int64)))
      high = int(floor_of(last - offset, int(factor, int64)))
    else if (factor < 0) then
      low = int(ceiling_of(offset - last, int(-factor, int64)))
      high = int(floor_of(offset - first, int(-factor, int64)))
    else
      low = 1
      high = 0
    end if
  end subroutine

  subroutine dvm_all(low, high)
    integer, intent(out) :: low, high
    low = -huge(low)
    high = huge(high)
  end subroutine

  !> Local. Empties a span if this rank does not own `index` in dimension d.
  subroutine dvm_only(a, d, index, low, high)
    type(dvm_array), intent(in) :: a
    integer, intent(in) :: d, index
    integer, intent(inout) :: low, high
    type(box) :: mine
    mine = own(a, me)
    if (.not. is_empty(mine) .and. index >= mine%low(d) .and. index <= mine%high(d)) return
    low = 1
    high = 0
  end subroutine

  !> Local. The first value of first, first + step, ... within low:high.
  pure integer function dvm_start(first, step, low, high)
    integer, intent(in) :: first, step, low, high
    integer(int64) :: gap
    if (step > 0) then
      gap = max(int(low, int64) - first, 0_int64)
      dvm_start = int(first + (gap + step - 1) / step * step)
    else
      gap = max(int(first, int64) - high, 0_int64)
      dvm_start = int(first - (gap - step - 1) / (-step) * (-step))
    end if
  end function

  pure integer function dvm_stop(last, step, low, high)
    integer, intent(in) :: last, step, low, high
    dvm_stop = merge(min(last, high), max(last, low), step > 0)
  end function

  !> Local. Fails unless the parts that the caller owns of both arrays are the same in each dimension that is cut.
  subroutine dvm_alike(a, b)
    type(dvm_array), intent(in) :: a, b
    type(box) :: mine, yours
    integer :: d
    mine = own(a, me)
    yours = own(b, me)
    do d = 1, min(a%ndims, b%ndims)
      if (.not. is_divided(b, d)) cycle
      if (is_empty(mine)) cycle
      if (yours%low(d) > mine%low(d) .or. yours%high(d) < mine%high(d)) call fail_alone('a loop on '//trim(a%name)// &
        ' uses '//trim(b%name)//', which is distributed in another way: align it, or name it in REMOTE_ACCESS')
    end do
  end subroutine

  !> Local. Fails if a dimension is cut.
  subroutine dvm_undivided(a, d)
    type(dvm_array), intent(in) :: a
    integer, intent(in) :: d
    if (.not. is_divided(a, d)) return
    if (a%grid(a%to(d)) > 1) call fail_alone('a loop uses elements of '//trim(a%name)// &
      ' that may lie on another rank: name them in REMOTE_ACCESS')
  end subroutine

#include "exchange.inc"
#include "units.inc"

  ! Values that all ranks get.

#define DVM_TAG i4
#define DVM_TYPE integer(int32)
#define DVM_MPI MPI_INTEGER4
#include "kind.inc"
#undef DVM_TAG
#undef DVM_TYPE
#undef DVM_MPI
#define DVM_TAG i8
#define DVM_TYPE integer(int64)
#define DVM_MPI MPI_INTEGER8
#include "kind.inc"
#undef DVM_TAG
#undef DVM_TYPE
#undef DVM_MPI
#define DVM_TAG r4
#define DVM_TYPE real(real32)
#define DVM_MPI MPI_REAL4
#include "kind.inc"
#undef DVM_TAG
#undef DVM_TYPE
#undef DVM_MPI
#define DVM_TAG r8
#define DVM_TYPE real(real64)
#define DVM_MPI MPI_REAL8
#include "kind.inc"
#undef DVM_TAG
#undef DVM_TYPE
#undef DVM_MPI
#include "other_kinds.inc"

end module

! DVM's clock, in seconds, by its own name.
double precision function dvtime()
  use mpi_f08, only: MPI_Wtime
  dvtime = MPI_Wtime()
end function
