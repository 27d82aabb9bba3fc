! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! The time of each step, as JSON: the slowest rank of each step.
module timings
  use mpi_f08
  use area,   only: dp
  use domain, only: comm, rank, ranks, nx, ny
  implicit none
  private
  public :: timings_start, timings_step, timings_write

  real(dp), allocatable :: step_seconds(:), blocked_seconds(:)
  integer :: last = 0                      ! step: fewer than planned if the forecast was stopped

contains

  subroutine timings_start(steps)
    integer, intent(in) :: steps
    allocate(step_seconds(steps), blocked_seconds(steps), source=0.0_dp)
  end subroutine

  ! `seconds` is the time of the whole step, `blocked` the part of it in output calls.
  subroutine timings_step(step, seconds, blocked)
    integer, intent(in)  :: step
    real(dp), intent(in) :: seconds, blocked
    step_seconds(step) = seconds
    blocked_seconds(step) = blocked
    last = step
  end subroutine

  ! Collective. `total` is the time from the first step until the files are closed, `closing` the part of it
  ! to close them, `forecast` the time up to the last step, `boundary` the time in calls that read boundaries, from
  ! before the first step on. `written`: output was not switched off.
  subroutine timings_write(file, time_step, levels, written, boundary, forecast, closing, total)
    character(*), intent(in) :: file
    integer, intent(in)  :: time_step, levels
    logical, intent(in)  :: written
    real(dp), intent(in) :: boundary, forecast, closing, total
    real(dp) :: mine(5), worst(5)
    integer  :: unit, status, n
    n = last
    mine = [forecast, closing, total, sum(blocked_seconds), boundary]
    call MPI_Reduce(mine, worst, 5, MPI_DOUBLE_PRECISION, MPI_MAX, 0, comm)
    if (rank == 0) then
      call MPI_Reduce(MPI_IN_PLACE, step_seconds, n, MPI_DOUBLE_PRECISION, MPI_MAX, 0, comm)
      call MPI_Reduce(MPI_IN_PLACE, blocked_seconds, n, MPI_DOUBLE_PRECISION, MPI_MAX, 0, comm)
    else
      call MPI_Reduce(step_seconds, step_seconds, n, MPI_DOUBLE_PRECISION, MPI_MAX, 0, comm)
      call MPI_Reduce(blocked_seconds, blocked_seconds, n, MPI_DOUBLE_PRECISION, MPI_MAX, 0, comm)
      return
    end if
    open(newunit=unit, file=file, action='write', status='replace', iostat=status)
    if (status /= 0) then
      print '(3a)', 'cannot write the timings "', file, '"'
      return
    end if
    write(unit, '(a)') '{'
    write(unit, '(4(a,i0),a)') '"ranks": ', ranks, ', "nx": ', nx, ', "ny": ', ny, ', "levels": ', levels, ','
    write(unit, '(3a,i0,a)') '"output": ', trim(merge('true ', 'false', written)), ', "time_step": ', time_step, ','
    write(unit, '(5(a,es13.6),a)') '"forecast_seconds": ', worst(1), ', "closing_seconds": ', worst(2), &
      ', "total_seconds": ', worst(3), ', "blocked_seconds": ', worst(4), ', "boundary_seconds": ', worst(5), ','
    call write_list(unit, 'step_seconds', step_seconds(:n), ',')
    call write_list(unit, 'step_blocked_seconds', blocked_seconds(:n), '')
    write(unit, '(a)') '}'
    close(unit)
  end subroutine

  subroutine write_list(unit, name, values, behind)
    integer, intent(in) :: unit
    character(*), intent(in) :: name, behind
    real(dp), intent(in) :: values(:)
    integer :: n
    write(unit, '(3a)') '"', name, '": ['
    do n = 1, size(values)
      write(unit, '(es10.3,a)') values(n), trim(merge(', ', '  ', n < size(values)))
    end do
    write(unit, '(2a)') ']', behind
  end subroutine
end module
