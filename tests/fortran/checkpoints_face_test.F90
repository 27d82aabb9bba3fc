! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! Tests the Fortran face of checkpoints over recorder_checkpoints.c: a checkpoint in memory that reads and
! fills the items in `end`. face_test.F90 runs the cases.
module checkpoint_cases
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int8, int16, int32, int64, real32, real64
  use checks
  use recorder_checks
  use tailrace
  implicit none
  type(tr_checkpoint) :: cp
  type(tr_layout) :: grid

contains

  subroutine same(what, got, expected)
    character(*), intent(in) :: what
    integer(int8), intent(in) :: got(:), expected(:)
    call check(size(got) == size(expected), what//': as many elements')
    if (size(got) == size(expected)) call check(all(got == expected), what//': the elements')
  end subroutine

#define TR_ITEMS items_i8
#define TR_TYPE integer(int8)
#define TR_VALUE(i) int(i - 20, int8)
#include "checkpoint_kind.inc"
#define TR_ITEMS items_i16
#define TR_TYPE integer(int16)
#define TR_VALUE(i) int(i * 301 - 20, int16)
#include "checkpoint_kind.inc"
#define TR_ITEMS items_i32
#define TR_TYPE integer(int32)
#define TR_VALUE(i) int(i * 70001, int32)
#include "checkpoint_kind.inc"
#define TR_ITEMS items_i64
#define TR_TYPE integer(int64)
#define TR_VALUE(i) i * 5000000001_int64
#include "checkpoint_kind.inc"
#define TR_ITEMS items_f32
#define TR_TYPE real(real32)
#define TR_VALUE(i) real(i, real32) / 8
#include "checkpoint_kind.inc"
#define TR_ITEMS items_f64
#define TR_TYPE real(real64)
#define TR_VALUE(i) real(i, real64) / 3
#include "checkpoint_kind.inc"
#define TR_ITEMS items_c64
#define TR_TYPE complex(real32)
#define TR_VALUE(i) cmplx(i, -i, real32) / 3
#include "checkpoint_kind.inc"
#define TR_ITEMS items_c128
#define TR_TYPE complex(real64)
#define TR_VALUE(i) cmplx(i, -i, real64) / 3
#include "checkpoint_kind.inc"
#define TR_ITEMS items_l8
#define TR_TYPE logical(int8)
#define TR_VALUE(i) logical(mod(i, 3) == 2, int8)
#include "checkpoint_kind.inc"
#define TR_ITEMS items_l16
#define TR_TYPE logical(int16)
#define TR_VALUE(i) logical(mod(i, 3) == 2, int16)
#include "checkpoint_kind.inc"
#define TR_ITEMS items_l32
#define TR_TYPE logical(int32)
#define TR_VALUE(i) logical(mod(i, 3) == 2, int32)
#include "checkpoint_kind.inc"
#define TR_ITEMS items_l64
#define TR_TYPE logical(int64)
#define TR_VALUE(i) logical(mod(i, 3) == 2, int64)
#include "checkpoint_kind.inc"

  ! Scalars and arrays of every kind and rank are read and filled where they lie, sections with strides included.
  subroutine items_round_trip()
    call cp%create('x')
    call grid%block([12])
    call items_i8()
    call items_i16()
    call items_i32()
    call items_i64()
    call items_f32()
    call items_f64()
    call items_c64()
    call items_c128()
    call items_l8()
    call items_l16()
    call items_l32()
    call items_l64()
    call cp%close()
    call check(.not. c_associated(cp%handle), 'close empties the handle')
  end subroutine

  ! Shape and strides arrive in C order. The library tells interior, halo and levels apart.
  subroutine items_are_not_copied()
    real(real64), target :: field(0:9, 0:7, 3)
    integer(int32), target :: numbers(0, 3)
    integer(int32), target :: step
    integer :: ierr
    field = 0
    step = 3
    call cp%create('x')
    call grid%block([4, 4], halo=[1, 1])
    call cp%begin(TR_SAVE)
    call expect('tr_checkpoint_begin direction=1')
    call cp%item('step', step)
    call expect('tr_checkpoint_item [step] type=3 scalar')
    call cp%item('t', field, grid)
    call expect('tr_checkpoint_item_shaped [t] type=6 layout extents=3,8,10 strides=640,80,8')
    call cp%item('t ', field(2:7:2, 1:6, :), grid)
    call expect('tr_checkpoint_item_shaped [t] type=6 layout extents=3,6,3 strides=640,80,16')
    call cp%item('t', field(:, :, 2), grid, ierr=ierr)
    call expect('tr_checkpoint_item_shaped [t] type=6 layout extents=8,10 strides=80,8')
    call check(ierr == TR_OK, 'ierr of an item')
    call cp%item('n', numbers, grid)
    call expect('tr_checkpoint_item_shaped [n] type=3 layout extents=3,0 strides=4,4')
    call cp%item_address('t', c_loc(field), TR_F64, grid)
    call expect('tr_checkpoint_item [t] type=6 layout')
    call cp%close()
  end subroutine

  subroutine checkpoints_are_written()
    logical :: found
    integer(int64), target :: step
    integer(int64) :: long
    call cp%create('restart ', keep=3, keep_every=100_int64, mode='local', async=.false., busy='drop', &
                   options='x="a b"')
    call expect('tr_checkpoint_create [restart] [keep=3 keep_every=100 mode=local async=off busy=drop x="a b"]')
    call check(cp%status() == TR_SAVE_NONE, 'nothing is saved yet')
    call cp%begin(TR_LOAD, found)
    call expect('tr_checkpoint_begin direction=2')
    call check(.not. found, 'nothing is found')
    call cp%end()
    call cp%begin(TR_SAVE)
    step = 41
    call cp%item('step', step)
    step = 42
    call cp%end()
    call expect('tr_checkpoint_end')
    call check(cp%status() == TR_SAVE_CAPTURED, 'the save is captured')
    call cp%wait()
    call expect('tr_checkpoint_wait')
    call cp%covers('model.log')
    call expect('tr_checkpoint_covers [model.log]')
    long = 5
    call cp%resume(long, found)
    call expect('tr_checkpoint_resume')
    call check(long == 5 .and. .not. found, 'nothing is committed, and the step stays')
    call cp%commit(7)
    call expect('tr_checkpoint_commit step=7 []')
    call cp%commit(2_int64**40, 'own.nc  ')
    call expect('tr_checkpoint_commit step=1099511627776 [own.nc]')
    call cp%resume(long, found)
    call check(long == 2_int64**40 .and. found, 'the step of the commit')
    call expect('tr_checkpoint_resume')
    call cp%begin(TR_LOAD, found=found)
    call check(found, 'the save is found')
    step = 0
    call cp%item('step', step)
    call cp%end()
    call check(step == 42, 'an item is read in end')
    call check(cp%generation() == 5000000000_int64, 'the generation')
    call cp%close()
    call expect('tr_checkpoint_close')
    call cp%create('y', async=.true.)
    call expect('tr_checkpoint_create [y] [async=on]')
    call check(nint(tr_checkpoint_interval(30.0_real64, 5.0_real64)) == 305, 'interval, real64')
    call check(nint(tr_checkpoint_interval(30.0, 5.0)) == 305, 'interval, default real')
  end subroutine

  subroutine sections_are_items()
    real(real32), target :: field(6, 8)
    call cp%create('x')
    call grid%block([4, 4], halo=[1, 2])
    call cp%begin(TR_SAVE)
    call cp%item('t', field, grid, tr_section([2, 1], [3, 4]))
    call expect('tr_checkpoint_item_section [t] type=5 start=0,1 stop=4,3 stride=1,1')
    call cp%item('t', field, grid, section=tr_section([1_int64, 2_int64], [4_int64, 4_int64], [3_int64, 2_int64]))
    call expect('tr_checkpoint_item_section [t] type=5 start=1,0 stop=4,4 stride=2,3')
    call cp%close()
  end subroutine

  ! The library refuses what the face cannot hand over, so all ranks do. The text says what was wrong here.
  subroutine wrong_items_end_in_errors()
    real(real32), target :: field(6, 8), interior(4, 4)
    integer :: ierr
    field = 0
    interior = 0
    call cp%create('x')
    call grid%block([4, 4], halo=[1, 2])
    call cp%begin(TR_SAVE)
    call cp%item('t', interior, grid, tr_section([1, 1], [2, 2]))
    call cp%item('u', field, grid)
    call cp%end(ierr)
    call refused(ierr, TR_ERR_ARGUMENT, 't: the array has the shape [4,4], but its layout says [6,8]')
    call cp%begin(TR_SAVE)
    call cp%item('t', field(6:1:-1, :), grid, tr_section([1, 1], [2, 2]), ierr)
    call refused(ierr, TR_ERR_ARGUMENT, 'contiguous')
    call cp%item('u', field, grid, tr_section([1], [2]), ierr)
    call refused(ierr, TR_ERR_ARGUMENT, 'the section has 1 dimensions, but the array has 2')
    call cp%end(ierr)
    call refused(ierr, TR_ERR_ARGUMENT, 't: sections of arrays and registered variables must be contiguous')
    call cp%begin(TR_SAVE)
    call cp%item('u', field, grid)
    call cp%end(ierr)
    call check(ierr == TR_OK, 'the next save is free of it')
    call cp%close()
  end subroutine

  ! RECORDER_REFUSE=tr_checkpoint_end.
  subroutine items_keep_errors()
    real, target :: field(2)
    integer :: ierr
    field = 1
    call cp%create('x')
    call grid%block([2])
    call cp%begin(TR_SAVE)
    call cp%item('f', field, grid)
    call cp%end(ierr)
    call refused(ierr, TR_ERR_IO, 'tr_checkpoint_end: refused by the recorder')
  end subroutine

  subroutine registered_variables_pass()
    real(real64), target :: field(4, 3), wide(8, 3)
    integer(int32), target :: step
    type(tr_checkpoint) :: other
    logical :: found
    integer :: ierr
    call grid%block([4, 3])
    call cp%register('step', step)
    call cp%register('field', field, grid)
    call cp%create_registered('restart', files=['one  ', 'other'], mode='l')
    call expect('tr_checkpoint_create_registered [restart] [step] type=3 scalar [field] type=6 layout'// &
                ' files [one] [other] mode [l]')
    call cp%load(found)
    call expect('tr_checkpoint_load')
    call check(.not. found, 'nothing is found')
    step = 7
    field = 7.5_real64
    call cp%save()
    call expect('tr_checkpoint_save async=0')
    call cp%save(async=.true.)
    call expect('tr_checkpoint_save async=1')
    step = 0
    field = 0
    call cp%load(found, ierr)
    call check(found .and. ierr == TR_OK, 'the save is found')
    call check(step == 7 .and. all(nint(2 * field) == 15), 'the variables are filled')
    call cp%close()
    call cp%create_registered('none')
    call expect('tr_checkpoint_create_registered [none] files mode []')
    call other%register('wide', wide(::2, :), grid)
    call other%create_registered('x', ierr=ierr)
    call refused(ierr, TR_ERR_ARGUMENT, 'wide: sections of arrays and registered variables must be contiguous')
    call other%close()
    call other%register('step', step)
    call other%create('x', ierr=ierr)
    call refused(ierr, TR_ERR_STATE, 'create_registered takes them')
  end subroutine

  ! The calls of tailrace.inc: handles are numbers, arrays are addresses.
  subroutine fortran77_checkpoints()
    integer(int64) :: checkpoint, layout, generation, scalar
    integer, target :: numbers(2, 3)
    integer :: ierr, found, status
    integer, parameter :: type = merge(TR_I32, TR_I64, kind(1) == int32)
    real(real64) :: seconds
    external :: trf_checkpoint_create, trf_checkpoint_begin, trf_checkpoint_item, trf_checkpoint_end
    external :: trf_checkpoint_wait, trf_checkpoint_status, trf_checkpoint_generation, trf_checkpoint_interval
    external :: trf_checkpoint_close
    call grid%block([2, 3])
    layout = transfer(grid%handle, layout)
    scalar = 0
    numbers = reshape([1, 2, 3, 4, 5, 6], [2, 3])
    call trf_checkpoint_create('f77', 'keep=3', checkpoint, ierr)
    call expect('tr_checkpoint_create [f77] [keep=3]')
    call trf_checkpoint_begin(checkpoint, TR_SAVE, found, ierr)
    call trf_checkpoint_item(checkpoint, 'n', numbers, type, layout, ierr)
    call trf_checkpoint_item(checkpoint, 'one', numbers, type, scalar, ierr)
    call trf_checkpoint_end(checkpoint, ierr)
    call check(ierr == TR_OK, 'saved')
    call trf_checkpoint_wait(checkpoint, ierr)
    call expect('tr_checkpoint_wait')
    numbers = 0
    call trf_checkpoint_begin(checkpoint, TR_LOAD, found, ierr)
    call check(found == 1, 'found')
    call trf_checkpoint_item(checkpoint, 'n', numbers, type, layout, ierr)
    call trf_checkpoint_end(checkpoint, ierr)
    call check(all(numbers == reshape([1, 2, 3, 4, 5, 6], [2, 3])), 'loaded')
    call trf_checkpoint_status(checkpoint, status)
    call check(status == TR_SAVE_CAPTURED, 'status')
    call trf_checkpoint_generation(checkpoint, generation)
    call check(generation == 5000000000_int64, 'generation')
    call trf_checkpoint_interval(30.0_real64, 5.0_real64, seconds)
    call check(nint(seconds) == 305, 'interval')
    call trf_checkpoint_close(checkpoint, ierr)
    call check(checkpoint == 0, 'closed')
  end subroutine

end module checkpoint_cases
