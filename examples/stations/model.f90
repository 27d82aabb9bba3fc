! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! Warm water is carried around a sea by a gyre, and spreads. Buoys measure at their places, a ship lowers a probe at
! another place every six hours, and a drifter swims with the water.
module model
  use, intrinsic :: iso_fortran_env, only: wp => real64
  implicit none
  integer, parameter :: nx = 40, ny = 30, buoys = 5, depths = 4
  real(wp), parameter :: dx = 2e4_wp, dt = 3600, gyre = 2.4e6_wp, diffusivity = 500          ! m, s, m2/s, m2/s
  integer, parameter :: buoy_x(buoys) = [8, 31, 20, 35, 5], buoy_y(buoys) = [6, 25, 15, 4, 22]  ! cells
  real, parameter :: sensor_depth(buoys) = [1.0, 1.0, 0.5, 2.0, 1.0], depth(depths) = [0.0, 10.0, 50.0, 200.0]
  character(9), parameter :: buoy_name(buoys) = [character(9) :: 'southwest', 'northeast', 'middle', 'southeast', 'northwest']
  integer :: lo, hi                                        ! the rows that belong here
  real(wp), allocatable :: warmth(:,:)                     ! degC, with one more row on each side
  real(wp) :: drifter(2)                                   ! its place, in cells from the corner of the sea
contains

  subroutine set_up(lower, upper)
    integer, intent(in) :: lower, upper
    integer :: i, j
    lo = lower; hi = upper; drifter = [10.5_wp, 8.25_wp]
    allocate (warmth(nx, lo-1:hi+1))
    do j = lo - 1, hi + 1
      do i = 1, nx
        warmth(i, j) = 14 + 8/(1 + real((i - 12)**2 + (j - 9)**2, wp)/32)
      end do
    end do
  end subroutine

  ! Places on the globe of cells and parts of them, in degrees.
  real(wp) elemental function latitude(y)
    real(wp), intent(in) :: y
    latitude = 40 + 0.18_wp*y
  end function

  real(wp) elemental function longitude(x)
    real(wp), intent(in) :: x
    longitude = 3 + 0.25_wp*x
  end function

  ! The stream function at a place in cells: what flows between two places is the difference.
  real(wp) function stream(x, y)
    real(wp), intent(in) :: x, y
    stream = gyre*(x/nx)*(1 - x/nx)*(y/ny)*(1 - y/ny)
  end function

  function velocity(place)
    real(wp), intent(in) :: place(2)
    real(wp) :: velocity(2), x, y                          ! m/s
    x = place(1)/nx; y = place(2)/ny
    velocity = [-gyre*x*(1 - x)*(1 - 2*y)/(ny*dx), gyre*(1 - 2*x)*y*(1 - y)/(nx*dx)]
  end function

  ! What a second brings through the side of cell (i, j) on which a neighbour lies, in degC m2/s.
  real(wp) function brought(i, j, to_x, to_y)
    integer, intent(in) :: i, j, to_x, to_y
    real(wp) :: inflow, there
    integer :: x, y
    brought = 0; inflow = 0
    if (i + to_x < 1 .or. i + to_x > nx .or. j + to_y < 1 .or. j + to_y > ny) return
    x = i - merge(1, 0, to_x + to_y < 0); y = j - merge(1, 0, to_x + to_y < 0)
    if (to_x /= 0) inflow = to_x*(stream(real(x, wp), real(j, wp)) - stream(real(x, wp), j - 1.0_wp))
    if (to_y /= 0) inflow = to_y*(stream(i - 1.0_wp, real(y, wp)) - stream(real(i, wp), real(y, wp)))
    there = warmth(i + to_x, j + to_y)
    brought = inflow*merge(there, warmth(i, j), inflow > 0) + diffusivity*(there - warmth(i, j))
  end function

  subroutine advance()
    real(wp) :: next(nx, lo:hi)
    integer :: i, j
    do j = lo, hi
      do i = 1, nx
        next(i, j) = warmth(i, j) + dt/dx**2* &
                     (brought(i, j, -1, 0) + brought(i, j, 1, 0) + brought(i, j, 0, -1) + brought(i, j, 0, 1))
      end do
    end do
    warmth(:, lo:hi) = next
    drifter = drifter + dt/dx*velocity(drifter + dt/(2*dx)*velocity(drifter))
  end subroutine

  ! The warmth of the surface around a place if its cell belongs here, and 0 otherwise.
  real(wp) function at(place)
    real(wp), intent(in) :: place(2)
    integer :: i, j
    i = int(place(1)) + 1; j = int(place(2)) + 1
    at = 0
    if (j >= lo .and. j <= hi) at = warmth(i, j)
  end function

  real(wp) elemental function below(surface, metres)
    real(wp), intent(in) :: surface
    real, intent(in) :: metres
    below = 6 + (surface - 6)/(1 + metres/80)
  end function

  function middle(buoy)
    integer, intent(in) :: buoy
    real(wp) :: middle(2)
    middle = [buoy_x(buoy) - 0.5_wp, buoy_y(buoy) - 0.5_wp]
  end function

  ! Where the ship is at its nth cast, in cells.
  function ship(n)
    integer, intent(in) :: n
    real(wp) :: ship(2)
    ship = [2.5_wp + mod(3*n, nx - 4), 4.5_wp + mod(n, ny - 8)]
  end function
end module
