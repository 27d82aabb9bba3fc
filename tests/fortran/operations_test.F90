! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! Streams with an interval, from Fortran: the file has the bytes that a program writes which accumulates by
! itself. So it has if the run ends within an interval, and goes on from a checkpoint over another layout.
module operation_cases
  use mpi_f08
  use, intrinsic :: iso_fortran_env, only: int8, int64, real32, real64
  use checks
  use tailrace
  implicit none
  integer, parameter :: nx = 13, ny = 9, nlev = 2, steps = 12, saved_at = 7
  character(*), parameter :: base = '2026-03-01T00:00Z'
  type(MPI_Comm) :: model
  character(40) :: run = ''

contains

  ! Thirds are not exact: sums in another order would differ.
  elemental real function value(i, j, k, step)
    integer, intent(in) :: i, j, k, step
    value = real(mod(37*i + 11*j + 5*k + 101*step, 113))/3
  end function

  elemental real function mean_of(i, j, k, last)
    integer, intent(in) :: i, j, k, last
    real(real64) :: total
    integer :: step
    total = value(i, j, k, last - 3)
    do step = last - 2, last
      total = total + real(value(i, j, k, step), real64)
    end do
    mean_of = real(total/4)
  end function

  elemental real function most_of(i, j, last)
    integer, intent(in) :: i, j, last
    integer :: step
    most_of = value(i, j, 1, last - 3)
    do step = last - 2, last
      most_of = max(most_of, value(i, j, 1, step))
    end do
  end function

  function file_of(case) result(name)
    character(*), intent(in) :: case
    character(:), allocatable :: name
    name = trim(run)//'_'//case
  end function

  ! Puts the steps from `first` to `last`, of an hour each.
  subroutine put_steps(out, grid, first, last, accumulates)
    type(tr_stream), intent(in) :: out
    type(tr_layout), intent(in) :: grid
    integer, intent(in) :: first, last
    logical, intent(in) :: accumulates
    real, allocatable :: t(:,:,:), gust(:,:)
    integer :: lo(2), hi(2), from(2), to(2), i, j, k, step
    lo = grid%lower(); hi = grid%upper()
    from = grid%own_lower(); to = grid%own_upper()
    allocate (t(lo(1):hi(1), lo(2):hi(2), nlev), gust(from(1):to(1), from(2):to(2)))
    do step = first, last
      if (accumulates .and. mod(step, 4) /= 0) cycle
      t = -7  ! the halo
      do j = from(2), to(2)
        do i = from(1), to(1)
          do k = 1, nlev
            if (accumulates) then
              t(i, j, k) = mean_of(i, j, k, step)
            else
              t(i, j, k) = value(i, j, k, step)
            end if
          end do
          if (accumulates) then
            gust(i, j) = most_of(i, j, step)
          else
            gust(i, j) = value(i, j, 1, step)
          end if
        end do
      end do
      call out%begin(lead=step*3600)
      call out%put('t', t)
      call out%put('gust', gust)
      call out%end()
    end do
  end subroutine

  subroutine open_stream(out, case, grid)
    type(tr_stream), intent(out) :: out
    character(*), intent(in) :: case
    type(tr_layout), intent(in) :: grid
    call out%create(file_of(case), base=base, format='raw', interval='4h')
    call out%define('t', grid, tr_pressure([850, 500]), operation='mean')
    call out%define('gust', grid, tr_surface(), operation='maximum')
  end subroutine

  subroutine write_plain(grid)
    type(tr_layout), intent(in) :: grid
    type(tr_stream) :: out
    call out%create(file_of('plain'), base=base, format='raw')
    call out%define('t', grid, tr_pressure([850, 500]), statistic='average', since='4h')
    call out%define('gust', grid, tr_surface(), statistic='maximum', since='4h')
    call put_steps(out, grid, 1, steps, .true.)
    call out%close()
  end subroutine

  subroutine write_timed(grid)
    type(tr_layout), intent(in) :: grid
    type(tr_stream) :: out
    call open_stream(out, 'timed', grid)
    call put_steps(out, grid, 0, steps, .false.)
    call out%close()
    call same_as_plain('timed')
  end subroutine

  ! Returns the step behind which the run goes on.
  integer function loaded(cp) result(step)
    type(tr_checkpoint), intent(out) :: cp
    logical :: found
    step = -1
    call cp%create(file_of('cp'))
    call cp%begin(TR_LOAD, found=found)
    if (found) call cp%item('step', step)
    call cp%end()
  end function

  subroutine write_in_two_runs(before, after)
    type(tr_layout), intent(in) :: before, after
    type(tr_checkpoint) :: cp
    type(tr_stream) :: out
    integer :: step
    call check(loaded(cp) == -1, 'there is no checkpoint')
    call open_stream(out, 'again', before)
    call put_steps(out, before, 0, saved_at, .false.)
    step = saved_at
    call cp%begin(TR_SAVE)
    call cp%item('step', step)
    call cp%end()
    call put_steps(out, before, saved_at + 1, saved_at + 3, .false.)  ! these are lost
    call out%close()
    call cp%close()
    call check(loaded(cp) == saved_at, 'the checkpoint is there')
    call open_stream(out, 'again', after)
    call put_steps(out, after, saved_at + 1, steps, .false.)
    call out%close()
    call cp%close()
    call same_as_plain('again')
  end subroutine

  subroutine same_as_plain(case)
    character(*), intent(in) :: case
    integer(int8), allocatable :: plain(:), other(:)
    if (rank == 0) then
      call slurp(file_of('plain'), plain)
      call slurp(file_of(case), other)
      call check(size(plain) == steps/4*(nlev + 1)*nx*ny*4, 'plain: all of its bytes')
      call check(size(plain) == size(other), case//': as long as the file of the program that accumulates')
      if (size(plain) == size(other)) call check(all(plain == other), case//': its bytes')
    end if
    call MPI_Barrier(model)
  end subroutine

  subroutine slurp(name, bytes)
    character(*), intent(in) :: name
    integer(int8), allocatable, intent(out) :: bytes(:)
    integer :: unit, status
    integer(int64) :: length
    open (newunit=unit, file=name, access='stream', form='unformatted', status='old', iostat=status)
    length = 0
    if (status == 0) inquire (unit, size=length)
    allocate (bytes(length))
    if (status /= 0) return
    read (unit) bytes
    close (unit)
  end subroutine

end module operation_cases

program operations_test
  use operation_cases
  implicit none
  type(tr_layout) :: boxes, rows
  character(8) :: servers
  integer :: all_failures
  call MPI_Init()
  call tr_init(MPI_COMM_WORLD, model)
  if (model /= MPI_COMM_NULL) then
    call MPI_Comm_rank(model, rank)
    call MPI_Comm_size(model, ranks)
    call get_environment_variable('TAILRACE_SERVERS', servers)
    write (run, '("timed_",i0,"_",a)') ranks, trim(servers)
    call boxes%block([nx, ny], halo=[1, 2])
    call rows%block([nx, ny], grid=[1, ranks])
    if (rank == 0) call execute_command_line('rm -f '//trim(run)//'_*')
    call MPI_Barrier(model)
    call write_plain(rows)
    call write_timed(boxes)
    call write_in_two_runs(boxes, rows)
    if (rank == 0) call execute_command_line('rm -f '//trim(run)//'_*')
  end if
  call tr_finalize()
  call MPI_Allreduce(failures, all_failures, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  call MPI_Finalize()
  if (all_failures > 0) error stop 1
end program operations_test
