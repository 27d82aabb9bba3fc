! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! The weather at the start: a westerly jet in balance with its height field (after Galewsky, Scott and
! Polvani, Tellus 56A, 2004), and lows and highs in geostrophic balance laid into it. Everything is a function
! of the position alone, so that any rank may evaluate it anywhere. The lateral boundary is held to the jet.
module jet
  use area, only: dp, pi, gravity, earth_radius, earth_rotation, rotated_longitude, rotated_latitude, &
                  true_position, east_in_grid
  implicit none
  private
  public :: jet_setup, jet_height, jet_wind, disturbance_height, disturbance_wind

  real(dp), parameter :: radian = pi / 180.0_dp
  real(dp), parameter :: south_edge = 24.0_dp * radian, north_edge = 68.0_dp * radian
  real(dp), parameter :: strongest = 42.0_dp             ! m/s
  real(dp), parameter :: southern_height = 5880.0_dp     ! m, equatorward of the jet
  integer, parameter  :: entries = 9000                  ! of the table, 0 to 90 degrees
  real(dp), save :: table(0:entries) = southern_height

  type centre_type
    real(dp) :: longitude, latitude, height, radius      ! degrees, degrees, m, m
  end type
  type(centre_type), parameter :: centres(8) = [ &
    centre_type(-84.0_dp, 43.0_dp, -280.0_dp, 0.80e6_dp), &
    centre_type(-66.0_dp, 49.0_dp,  260.0_dp, 0.95e6_dp), &
    centre_type(-50.0_dp, 42.0_dp, -330.0_dp, 0.85e6_dp), &
    centre_type(-29.0_dp, 51.0_dp,  280.0_dp, 1.00e6_dp), &
    centre_type(-13.0_dp, 45.0_dp, -260.0_dp, 0.75e6_dp), &
    centre_type(  6.0_dp, 53.0_dp,  240.0_dp, 0.85e6_dp), &
    centre_type( 24.0_dp, 48.0_dp, -240.0_dp, 0.75e6_dp), &
    centre_type(-20.0_dp, 70.0_dp, -160.0_dp, 1.00e6_dp)]

contains

  elemental real(dp) function zonal_wind(lat)
    real(dp), intent(in) :: lat
    zonal_wind = 0.0_dp
    if (lat > south_edge .and. lat < north_edge) zonal_wind = strongest * &
      exp(1.0_dp / ((lat - south_edge) * (lat - north_edge)) + 4.0_dp / (north_edge - south_edge)**2)
  end function

  ! d(height)/d(latitude) of a zonal wind in gradient balance on the sphere.
  elemental real(dp) function slope(lat)
    real(dp), intent(in) :: lat
    real(dp) :: u
    u = zonal_wind(lat)
    slope = -earth_radius * u * (2.0_dp * earth_rotation * sin(lat) + tan(lat) * u / earth_radius) / gravity
  end function

  subroutine jet_setup()
    integer :: n
    real(dp) :: width, a
    width = 90.0_dp * radian / entries
    table(0) = southern_height
    do n = 1, entries
      a = (n - 1) * width
      table(n) = table(n-1)
      if (a < north_edge) &        ! Simpson's rule; beyond the jet the height is constant
        table(n) = table(n-1) + width / 6.0_dp * (slope(a) + 4.0_dp * slope(a + 0.5_dp * width) + slope(a + width))
    end do
  end subroutine

  real(dp) function jet_height(x, y)
    real(dp), intent(in) :: x, y
    real(dp) :: lon, lat, place
    integer :: n
    call true_position(rotated_longitude(x), rotated_latitude(y), lon, lat)
    place = max(0.0_dp, lat) / (90.0_dp * radian) * entries
    n = min(int(place), entries - 1)
    jet_height = table(n) + (place - n) * (table(n+1) - table(n))
  end function

  ! The wind of the jet along the axes of the grid.
  subroutine jet_wind(x, y, u, v)
    real(dp), intent(in)  :: x, y
    real(dp), intent(out) :: u, v
    real(dp) :: lon, lat, along_x, along_y, wind
    call true_position(rotated_longitude(x), rotated_latitude(y), lon, lat)
    call east_in_grid(rotated_longitude(x), rotated_latitude(y), along_x, along_y)
    wind = zonal_wind(lat)
    u = wind * along_x
    v = wind * along_y
  end subroutine

  real(dp) function disturbance_height(x, y)
    real(dp), intent(in) :: x, y
    real(dp) :: lon, lat, cosine, distance2
    type(centre_type) :: c
    integer :: n
    call true_position(rotated_longitude(x), rotated_latitude(y), lon, lat)
    disturbance_height = 0.0_dp
    do n = 1, size(centres)
      c = centres(n)
      cosine = sin(lat) * sin(c%latitude * radian) &
             + cos(lat) * cos(c%latitude * radian) * cos(lon - c%longitude * radian)
      distance2 = 2.0_dp * earth_radius**2 * (1.0_dp - cosine)
      disturbance_height = disturbance_height + c%height * exp(-distance2 / c%radius**2)
    end do
  end function

  ! The geostrophic wind along the axes of the grid, from differences over one cell.
  subroutine disturbance_wind(x, y, u, v)
    real(dp), intent(in)  :: x, y
    real(dp), intent(out) :: u, v
    real(dp) :: lon, lat, f, dx, dy
    call true_position(rotated_longitude(x), rotated_latitude(y), lon, lat)
    f = 2.0_dp * earth_rotation * max(sin(lat), 0.3_dp)      ! balance weakens towards the equator
    dx = earth_radius * cos(rotated_latitude(y)) * (rotated_longitude(x + 0.5_dp) - rotated_longitude(x - 0.5_dp))
    dy = earth_radius * (rotated_latitude(y + 0.5_dp) - rotated_latitude(y - 0.5_dp))
    u = -gravity / f * (disturbance_height(x, y + 0.5_dp) - disturbance_height(x, y - 0.5_dp)) / dy
    v =  gravity / f * (disturbance_height(x + 0.5_dp, y) - disturbance_height(x - 0.5_dp, y)) / dx
  end subroutine
end module
