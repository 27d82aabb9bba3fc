! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! Shallow water over a seamount in a closed basin that rotates. The grid is Arakawa's C grid: h in the middle of the
! cells, u on their western and v on their southern sides. Arrays have one more row and column on each side.
module model
  use, intrinsic :: iso_fortran_env, only: wp => real64
  implicit none
  integer, parameter :: nx = 60, ny = 40
  real(wp), parameter :: dx = 2000, gravity = 9.81_wp, coriolis = 1e-4_wp, courant = 0.4_wp  ! m, m/s2, 1/s, 1
  integer :: lo(2), hi(2)                                  ! the cells that belong here
  real(wp), target :: time, seconds                        ! s: now, and since the sum of h was begun
  real(wp), allocatable, target :: h(:,:), u(:,:), v(:,:)  ! thickness of the water, m; velocity, m/s
  real(wp), allocatable :: bottom(:,:)                     ! height above the water at rest, m
  real(wp), allocatable, target :: sum_h(:,:)              ! h times seconds, on the cells that belong here
contains

  subroutine set_up(lower, upper)
    integer, intent(in) :: lower(2), upper(2)
    integer :: i, j
    lo = lower; hi = upper; time = 0; seconds = 0
    allocate (h(lo(1)-1:hi(1)+1, lo(2)-1:hi(2)+1), sum_h(lo(1):hi(1), lo(2):hi(2)))
    allocate (u, v, bottom, mold=h)
    do j = lo(2) - 1, hi(2) + 1
      do i = lo(1) - 1, hi(1) + 1
        bottom(i, j) = -200 + 120*hill(i, j, 35, 22, 5)
        h(i, j) = hill(i, j, 15, 15, 4) - bottom(i, j)
      end do
    end do
    u = 0; v = 0; sum_h = 0                                ! u and v on the walls remain 0
  end subroutine

  ! Not exp: gfortran computes it in vectors, too, which differ from scalars in the last bit, and so would ranks.
  real(wp) function hill(i, j, i_top, j_top, radius)
    integer, intent(in) :: i, j, i_top, j_top, radius
    hill = 1/(1 + real((i - i_top)**2 + (j - j_top)**2, wp)/(2*radius**2))**2
  end function

  ! The longest step, s, that keeps waves from crossing more than a part of a cell.
  real(wp) function longest_step()
    associate (a => h(lo(1):hi(1), lo(2):hi(2)), b => u(lo(1):hi(1), lo(2):hi(2)), c => v(lo(1):hi(1), lo(2):hi(2)))
      longest_step = courant*dx/maxval(sqrt(gravity*a) + sqrt(b*b + c*c))
    end associate
  end function

  ! A step of dt has three parts. Before each, what the one before has changed is got from the neighbours.
  subroutine step_h(dt)
    real(wp), intent(in) :: dt
    real(wp) :: change(lo(1):hi(1), lo(2):hi(2))
    integer :: i, j
    do j = lo(2), hi(2)
      do i = lo(1), hi(1)
        change(i, j) = u(i+1, j)*(h(i, j) + h(i+1, j)) - u(i, j)*(h(i-1, j) + h(i, j)) + &
                       (v(i, j+1)*(h(i, j) + h(i, j+1)) - v(i, j)*(h(i, j-1) + h(i, j)))
      end do
    end do
    h(lo(1):hi(1), lo(2):hi(2)) = h(lo(1):hi(1), lo(2):hi(2)) - 0.5_wp*dt/dx*change
    sum_h = sum_h + dt*h(lo(1):hi(1), lo(2):hi(2))
    time = time + dt; seconds = seconds + dt
  end subroutine

  subroutine step_u(dt)
    real(wp), intent(in) :: dt
    integer :: i, j
    do j = lo(2), hi(2)
      do i = max(lo(1), 2), hi(1)
        u(i, j) = u(i, j) + dt*(coriolis/4*(v(i-1, j) + v(i, j) + v(i-1, j+1) + v(i, j+1)) - &
                                gravity/dx*(h(i, j) + bottom(i, j) - h(i-1, j) - bottom(i-1, j)))
      end do
    end do
  end subroutine

  subroutine step_v(dt)
    real(wp), intent(in) :: dt
    integer :: i, j
    do j = max(lo(2), 2), hi(2)
      do i = lo(1), hi(1)
        v(i, j) = v(i, j) - dt*(coriolis/4*(u(i, j-1) + u(i+1, j-1) + u(i, j) + u(i+1, j)) + &
                                gravity/dx*(h(i, j) + bottom(i, j) - h(i, j-1) - bottom(i, j-1)))
      end do
    end do
  end subroutine

  ! The mean of h since the last call.
  function mean_h() result(mean)
    real(wp) :: mean(lo(1):hi(1), lo(2):hi(2))
    if (seconds > 0) then
      mean = sum_h/seconds
    else
      mean = h(lo(1):hi(1), lo(2):hi(2))
    end if
    sum_h = 0; seconds = 0
  end function
end module
