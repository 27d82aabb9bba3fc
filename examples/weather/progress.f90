! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! Shows how far the forecast is: a bar that is redrawn on a terminal, a line for each tenth otherwise.
module progress
  use, intrinsic :: iso_c_binding, only: c_int
  use, intrinsic :: iso_fortran_env, only: output_unit
  use mpi_f08, only: MPI_Wtime
  use area, only: dp
  implicit none
  private
  public :: progress_start, progress_show, progress_stop

  integer, parameter :: cells = 30
  character(8) :: style = 'none'
  real(dp) :: start = 0.0_dp, shown = 0.0_dp
  integer :: tenths = 0

  interface
    function c_isatty(descriptor) bind(c, name='isatty') result(yes)
      import :: c_int
      integer(c_int), value :: descriptor
      integer(c_int) :: yes
    end function
  end interface

contains

  subroutine progress_start(how)
    character(*), intent(in) :: how
    style = how
    if (how == 'auto') style = merge('bar     ', 'lines   ', c_isatty(1_c_int) /= 0)
    start = MPI_Wtime()
    shown = start
  end subroutine

  subroutine progress_show(step, steps, lead)
    integer, intent(in) :: step, steps, lead
    real(dp) :: now, rate
    now = MPI_Wtime()
    rate = step / max(now - start, 1.0e-6_dp)
    if (style == 'bar') then
      if (now - shown < 0.2_dp .and. step < steps) return
      shown = now
      write(output_unit, '(5a)', advance='no') char(13), '  '//hours(lead)//' ', bar(step, steps), &
        ' '//figures(step, steps, rate, now), char(27)//'[K'
      if (step == steps) write(output_unit, '(a)') ''
    else if (style == 'lines') then
      if (10 * step / steps == tenths) return
      tenths = 10 * step / steps
      write(output_unit, '(a)') '  '//hours(lead)//' '//figures(step, steps, rate, now)
    end if
    flush(output_unit)
  end subroutine

  ! The library has printed the reason.
  subroutine progress_stop(lead)
    integer, intent(in) :: lead
    if (style == 'none') return
    if (style == 'bar') write(output_unit, '(a)') ''
    write(output_unit, '(a)') '  stopped at '//hours(lead)//', as tr_should_stop says; the files up to here are whole'
    flush(output_unit)
  end subroutine

  function hours(lead) result(text)
    integer, intent(in) :: lead
    character(:), allocatable :: text
    character(12) :: buffer
    write(buffer, '(a,i3.3,a)') '+', lead / 3600, ' h'
    text = trim(buffer)
  end function

  function bar(step, steps) result(text)
    integer, intent(in) :: step, steps
    character(:), allocatable :: text
    character(3), parameter :: full = char(226)//char(150)//char(136), light = char(226)//char(150)//char(145)
    integer :: filled
    filled = int(real(step, dp) / steps * cells)
    text = repeat(full, filled)//repeat(light, cells - filled)
  end function

  function figures(step, steps, rate, now) result(text)
    integer, intent(in)  :: step, steps
    real(dp), intent(in) :: rate, now
    character(:), allocatable :: text
    character(60) :: buffer
    if (step < steps) then
      write(buffer, '(i3,a,i6,a,a)') 100 * step / steps, ' %', nint(rate), ' steps/s   still ', &
        clock((steps - step) / rate)
    else
      write(buffer, '(i3,a,i6,a,a)') 100, ' %', nint(rate), ' steps/s   took ', clock(now - start)
    end if
    text = trim(buffer)
  end function

  function clock(seconds) result(text)
    real(dp), intent(in) :: seconds
    character(8) :: text
    integer :: whole
    whole = nint(min(seconds, 359999.0_dp))
    if (whole < 3600) then
      write(text, '(i2.2,a,i2.2)') whole / 60, ':', mod(whole, 60)
    else
      write(text, '(i2,a,i2.2,a,i2.2)') whole / 3600, ':', mod(whole, 3600) / 60, ':', mod(whole, 60)
    end if
  end function
end module
