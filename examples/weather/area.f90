! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! The model's piece of the globe: the North Atlantic and Europe on a rotated latitude-longitude grid. The
! rotated equator runs through the middle of the area, so that the cells are nearly square. The nested area is
! Europe: a part of the same rotated grid, half as wide and half as high.
module area
  use, intrinsic :: iso_fortran_env, only: real64
  implicit none
  private
  public :: dp, pi, gravity, earth_radius, earth_rotation
  public :: area_setup, print_grid, grid_keys, rotated_longitude, rotated_latitude, true_position, east_in_grid
  public :: middle_latitude, middle_longitude, dx_degrees, dy_degrees

  integer, parameter :: dp = real64
  real(dp), parameter :: pi = 3.141592653589793_dp
  real(dp), parameter :: gravity = 9.80665_dp, earth_radius = 6371229.0_dp, earth_rotation = 7.292e-5_dp
  real(dp), parameter :: full_width = 93.6_dp, full_height = 75.6_dp                 ! degrees
  real(dp), parameter :: nested_width = 0.5_dp * full_width, nested_height = 0.5_dp * full_height
  real(dp), parameter :: nested_west = -8.0_dp, nested_south = -22.0_dp              ! rotated degrees
  real(dp), parameter :: middle_latitude = 50.0_dp, middle_longitude = -18.0_dp
  real(dp), parameter :: radian = pi / 180.0_dp
  real(dp) :: dx_degrees = 1.0_dp, dy_degrees = 1.0_dp
  integer :: columns = 0, rows = 0
  real(dp) :: west_edge = 0.0_dp, south_edge = 0.0_dp                                ! rotated degrees

contains

  subroutine area_setup(nx, ny, nested)
    integer, intent(in) :: nx, ny
    logical, intent(in) :: nested
    dx_degrees = merge(nested_width, full_width, nested) / nx
    dy_degrees = merge(nested_height, full_height, nested) / ny
    west_edge = merge(nested_west, -0.5_dp * full_width, nested)
    south_edge = merge(nested_south, -0.5_dp * full_height, nested)
    columns = nx
    rows = ny
  end subroutine

  ! Radians at global column x and row y; x = i is the centre of column i, x = i + 0.5 its eastern face.
  elemental real(dp) function rotated_longitude(x)
    real(dp), intent(in) :: x
    rotated_longitude = radian * (west_edge + (x - 0.5_dp) * dx_degrees)
  end function

  elemental real(dp) function rotated_latitude(y)
    real(dp), intent(in) :: y
    rotated_latitude = radian * (south_edge + (y - 0.5_dp) * dy_degrees)
  end function

  ! Geographic longitude and latitude, in radians, of the point with rotated coordinates rlon, rlat.
  pure subroutine true_position(rlon, rlat, lon, lat)
    real(dp), intent(in)  :: rlon, rlat
    real(dp), intent(out) :: lon, lat
    real(dp) :: x, y, z, tilt
    tilt = middle_latitude * radian
    x = cos(rlat) * cos(rlon)
    y = cos(rlat) * sin(rlon)
    z = sin(rlat)
    lat = asin(max(-1.0_dp, min(1.0_dp, x * sin(tilt) + z * cos(tilt))))
    lon = middle_longitude * radian + atan2(y, x * cos(tilt) - z * sin(tilt))
  end subroutine

  ! The geographic east at a point as a unit vector in the directions of the grid's own axes.
  pure subroutine east_in_grid(rlon, rlat, along_x, along_y)
    real(dp), intent(in)  :: rlon, rlat
    real(dp), intent(out) :: along_x, along_y
    real(dp) :: tilt, length
    tilt = middle_latitude * radian
    ! The true pole points along (sin(tilt), 0, cos(tilt)); east is the pole's direction times the local vertical.
    along_x = cos(tilt) * cos(rlat) - sin(tilt) * sin(rlat) * cos(rlon)
    along_y = sin(tilt) * sin(rlon)
    length = sqrt(along_x**2 + along_y**2)
    if (length > 1.0e-12_dp) then
      along_x = along_x / length
      along_y = along_y / length
    else
      along_x = 1.0_dp
      along_y = 0.0_dp
    end if
  end subroutine

  ! The grid in GRIB's keys, whose numbers count millionths of degrees.
  function grid_keys() result(keys)
    character(:), allocatable :: keys
    keys = 'gridType=rotated_ll, jScansPositively=1, uvRelativeToGrid=1, ' // &
      'latitudeOfFirstGridPointInDegrees=' // degrees(rotated_latitude(1.0_dp) / radian) // &
      ', latitudeOfLastGridPointInDegrees=' // degrees(rotated_latitude(real(rows, dp)) / radian) // &
      ', longitudeOfFirstGridPointInDegrees=' // degrees(rotated_longitude(1.0_dp) / radian) // &
      ', longitudeOfLastGridPointInDegrees=' // degrees(rotated_longitude(real(columns, dp)) / radian) // &
      ', latitudeOfSouthernPoleInDegrees=' // degrees(middle_latitude - 90.0_dp) // &
      ', longitudeOfSouthernPoleInDegrees=' // degrees(middle_longitude)
  end function

  function degrees(angle) result(text)
    real(dp), intent(in) :: angle
    character(:), allocatable :: text
    character(16) :: buffer
    write(buffer, '(f16.6)') angle
    text = trim(adjustl(buffer))
  end function

  ! The grid as a description for cdo, to standard output.
  subroutine print_grid(nx, ny, nested)
    integer, intent(in) :: nx, ny
    logical, intent(in) :: nested
    call area_setup(nx, ny, nested)
    print '(a)', 'gridtype = projection'
    print '(a,i0)', 'xsize = ', nx
    print '(a,i0)', 'ysize = ', ny
    print '(a,f14.9)', 'xfirst = ', rotated_longitude(1.0_dp) / radian
    print '(a,f14.9)', 'xinc = ', dx_degrees
    print '(a,f14.9)', 'yfirst = ', rotated_latitude(1.0_dp) / radian
    print '(a,f14.9)', 'yinc = ', dy_degrees
    print '(a)', 'grid_mapping = rotated_pole'
    print '(a)', 'grid_mapping_name = rotated_latitude_longitude'
    print '(a,f9.3)', 'grid_north_pole_longitude = ', middle_longitude + 180.0_dp
    print '(a,f9.3)', 'grid_north_pole_latitude = ', 90.0_dp - middle_latitude
  end subroutine
end module
