! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! Stands in for a model: every value inside is a function of its place and the time alone. The outermost points
! of the grid have the temperature of the last boundary.
module my_model
  use, intrinsic :: iso_fortran_env, only: real64
  implicit none
  integer, parameter :: dt = 600, last = 54, nx = 117, ny = 94, nlev = 40
  integer :: step = 0
  real(real64) :: ak(nlev + 1) = 0, bk(nlev + 1) = 0
  real, allocatable, dimension(:, :, :) :: t, u, v, tb
  real, allocatable, dimension(:, :) :: ps, rain
contains
  subroutine allocate_state(lo, hi)
    integer, intent(in) :: lo(:), hi(:)
    integer :: k
    allocate (t(lo(1):hi(1), lo(2):hi(2), nlev), u(lo(1):hi(1), lo(2):hi(2), nlev), v(lo(1):hi(1), lo(2):hi(2), nlev))
    allocate (ps(lo(1):hi(1), lo(2):hi(2)), rain(lo(1):hi(1), lo(2):hi(2)))
    allocate (tb(lo(1):hi(1), lo(2):hi(2), nlev))
    rain = 0
    do k = 1, nlev + 1
      bk(k) = (real(k - 1, real64) / nlev)**2
      ak(k) = 20000 * (real(k - 1, real64) / nlev - bk(k))
    end do
  end subroutine
  ! tb is kept as it is.
  subroutine relax_to(temperature)
    real, intent(in) :: temperature(:, :, :)
    if (size(temperature, 3) /= nlev) error stop 'the boundary has other levels'
  end subroutine
  subroutine advance()
    integer :: i, j, k
    real :: phase
    step = step + 1
    do k = 1, nlev
      do j = lbound(t, 2), ubound(t, 2)
        do i = lbound(t, 1), ubound(t, 1)
          phase = 0.1 * real(i) + 0.07 * real(j) - 0.02 * real(step)
          t(i, j, k) = 220 + 2 * real(k) + 5 * sin(phase)
          if (i == 1 .or. i == nx .or. j == 1 .or. j == ny) t(i, j, k) = tb(i, j, k)
          u(i, j, k) = 20 * cos(phase)
          v(i, j, k) = 10 * sin(phase)
          if (k > 1) cycle
          ps(i, j) = 101325 - 500 * sin(phase)
          rain(i, j) = rain(i, j) + 0.1 + 0.1 * sin(phase)
        end do
      end do
    end do
  end subroutine
  logical function every(hours)
    integer, intent(in) :: hours
    every = mod(step * dt, hours * 3600) == 0
  end function
end module
