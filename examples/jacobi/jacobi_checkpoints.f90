! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! The part to copy for a run that goes on after it was stopped. Errors end the program and say why.
module jacobi_checkpoints
  use, intrinsic :: iso_fortran_env, only: int64
  use tailrace, only: tr_checkpoint
  use jacobi_options, only: options_type
  use jacobi_grid, only: dp, grid_type
  implicit none
  private
  public :: open_checkpoint, load_checkpoint, save_checkpoint, close_checkpoint

  type(tr_checkpoint) :: checkpoint
  logical :: is_open = .false.                ! or this run neither saves nor loads one
  ! They are copies, since they are saved from here after the program has gone on, and have the kinds of the C
  ! program.
  integer(int64), target :: iteration = 0
  real(dp), target :: change = 0

contains

  ! Collective. Opens the checkpoint of the grid, of the iteration and of the change.
  subroutine open_checkpoint(options, g)
    type(options_type), intent(in) :: options
    type(grid_type), intent(inout), target :: g
    character(len(options%out) + 20) :: files(2)
    if (options%checkpoint_every == 0 .and. .not. options%restart) return
    files(1) = options%out//'/jacobi_first.ckpt'
    files(2) = options%out//'/jacobi_second.ckpt'
    ! Both iterates are saved: the next change is the difference of them. The addresses are used at each save.
    call checkpoint%register('iteration', iteration)
    call checkpoint%register('change', change)
    call checkpoint%register('a', g%a, g%layout)
    call checkpoint%register('b', g%b, g%layout)
    call checkpoint%create_registered(options%out//'/jacobi', files=files, mode=options%checkpoint_mode)
    is_open = .true.
  end subroutine

  ! Collective. With --restart: loads the last save, on however many ranks, if there is any. `done` is the
  ! iteration that the grid holds, 0 if a run begins.
  subroutine load_checkpoint(options, g, done, change_then)
    type(options_type), intent(in) :: options
    type(grid_type), intent(in) :: g
    integer, intent(out) :: done
    real(dp), intent(out) :: change_then
    logical :: found
    found = .false.
    if (options%restart) call checkpoint%load(found)
    done = int(iteration)
    change_then = change
    if (.not. options%restart .or. g%rank /= 0) return
    if (found) print '(a,i0)', 'going on from iteration ', done
    if (.not. found) print '(3a)', 'no checkpoint in ', options%out, ': starting at iteration 0'
  end subroutine

  ! Collective. Saves every few iterations. The grid may change when this returns.
  subroutine save_checkpoint(options, done, change_now)
    type(options_type), intent(in) :: options
    integer, intent(in) :: done
    real(dp), intent(in) :: change_now
    if (options%checkpoint_every == 0) return
    if (mod(done, options%checkpoint_every) /= 0) return
    iteration = done
    change = change_now
    call checkpoint%save(async=.not. options%sync)
  end subroutine

  ! Collective. Returns when the last save is on storage.
  subroutine close_checkpoint()
    if (is_open) call checkpoint%close()
    is_open = .false.
  end subroutine
end module
