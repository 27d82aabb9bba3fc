! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! Writes what examples/stations writes, by one process and the NetCDF library: stations_twin NAME.nc HOURS
program stations_twin
  use netcdf_c
  use model
  implicit none
  character(500) :: path, hours
  integer(c_int) :: series, casts, track, series_vars(8), cast_vars(6), track_vars(5), t
  integer :: hour, final_hour, n, i
  real(wp) :: flow(2), speed(buoys), temperature(buoys)

  if (command_argument_count() /= 2) error stop 2
  call get_command_argument(1, path)
  call get_command_argument(2, hours)
  read (hours, *) final_hour
  call set_up(1, ny)
  call define_series()
  call define_casts()
  call define_track()
  call put(series, series_vars(2), 0, [buoys], real([(i, i=1,buoys)], wp))
  call put(series, series_vars(3), 0, [buoys], latitude(buoy_y - 0.5_wp))
  call put(series, series_vars(4), 0, [buoys], longitude(buoy_x - 0.5_wp))
  call put(series, series_vars(5), 0, [buoys], real(sensor_depth, wp))
  do n = 1, buoys
    call must(nc_put_vara_text(series, series_vars(8), [n - 1_c_size_t, 0_c_size_t], &
                               [1_c_size_t, len_trim(buoy_name(n), c_size_t)], buoy_name(n)))
  end do
  call put(casts, cast_vars(5), 0, [depths], real(depth, wp))
  call put(track, track_vars(2), 0, [integer ::], [7.0_wp])
  do hour = 0, final_hour
    call put_series(hour + 1)
    if (mod(hour, 6) == 0) call put_cast(hour/6 + 1, ship(hour/6))
    if (mod(hour, 2) == 0) call put_track(hour/2 + 1)
    call advance()
  end do
  call must(nc_close(series))
  call must(nc_close(casts))
  call must(nc_close(track))

contains

  ! Creates a file, and defines its time.
  subroutine create(file, suffix, title, feature, time)
    integer(c_int), intent(out) :: file, time
    character(*), intent(in) :: suffix, title, feature
    call must(nc_create(path(:len_trim(path) - 3)//suffix//'.nc'//c_null_char, nc_64bit_data, file))
    call must(nc_def_dim(file, 'time'//c_null_char, 0_c_size_t, t))
    call text(file, nc_global, 'Conventions', 'CF-1.8')
    call text(file, nc_global, 'title', title)
    call text(file, nc_global, 'featureType', feature)
    time = variable(file, 'time', nc_double, [t], 'standard_name', 'time', 'seconds since 2026-06-01 00:00:00')
    call text(file, time, 'long_name', 'time')
    call text(file, time, 'calendar', 'proleptic_gregorian')
    call text(file, time, 'axis', 'T')
  end subroutine

  subroutine define_series()
    integer(c_int) :: station, length
    call create(series, '', 'Buoys in a gyre', 'timeSeries', series_vars(1))
    call must(nc_def_dim(series, 'station'//c_null_char, int(buoys, c_size_t), station))
    call must(nc_def_dim(series, 'string9'//c_null_char, len(buoy_name, c_size_t), length))
    series_vars(2) = variable(series, 'station', nc_int, [station], 'long_name', 'number of the buoy')
    call define_places(series, [station], series_vars(3:4))
    call text(series, series_vars(3), 'long_name', 'latitude')
    call text(series, series_vars(4), 'long_name', 'longitude')
    series_vars(5) = variable(series, 'sensor_depth', nc_float, [station], 'long_name', 'depth of the sensor', 'm')
    call text(series, series_vars(5), 'coordinates', 'lat lon')
    series_vars(8) = variable(series, 'station_name', nc_char, [station, length], 'cf_role', 'timeseries_id')
    call text(series, series_vars(8), '_Encoding', 'utf-8')
    call text(series, series_vars(8), 'long_name', 'name of the buoy')
    call text(series, series_vars(8), 'coordinates', 'lat lon')
    series_vars(6) = variable(series, 'temperature', nc_double, [t, station], 'standard_name', 'sea_water_temperature', 'degC')
    series_vars(7) = variable(series, 'speed', nc_double, [t, station], 'standard_name', 'sea_water_speed', 'm s-1')
    call text(series, series_vars(6), 'coordinates', 'lat lon station_name')
    call text(series, series_vars(7), 'coordinates', 'lat lon station_name')
    call must(nc_enddef(series))
  end subroutine

  subroutine define_casts()
    integer(c_int) :: levels
    call create(casts, '_casts', 'Casts of a ship', 'profile', cast_vars(1))
    call must(nc_def_dim(casts, 'depth'//c_null_char, int(depths, c_size_t), levels))
    cast_vars(2) = variable(casts, 'profile', nc_int, [t], 'cf_role', 'profile_id')
    call text(casts, cast_vars(2), 'long_name', 'number of the cast')
    call define_places(casts, [t], cast_vars(3:4))
    cast_vars(5) = variable(casts, 'depth', nc_double, [levels], 'standard_name', 'depth', 'm')
    call text(casts, cast_vars(5), 'long_name', 'depthBelowSea')
    call text(casts, cast_vars(5), 'positive', 'down')
    call text(casts, cast_vars(5), 'axis', 'Z')
    cast_vars(6) = variable(casts, 'temperature', nc_double, [t, levels], 'standard_name', 'sea_water_temperature', 'degC')
    call text(casts, cast_vars(6), 'coordinates', 'profile lat lon')
    call must(nc_enddef(casts))
  end subroutine

  subroutine define_track()
    call create(track, '_drifter', 'The way of a drifter', 'trajectory', track_vars(1))
    track_vars(2) = variable(track, 'trajectory', nc_int, [integer(c_int) ::], 'cf_role', 'trajectory_id')
    call text(track, track_vars(2), 'long_name', 'number of the drifter')
    call define_places(track, [t], track_vars(3:4))
    track_vars(5) = variable(track, 'temperature', nc_double, [t], 'standard_name', 'sea_water_temperature', 'degC')
    call text(track, track_vars(5), 'coordinates', 'trajectory lat lon')
    call must(nc_enddef(track))
  end subroutine

  subroutine define_places(file, dimensions, made)
    integer(c_int), intent(in) :: file, dimensions(:)
    integer(c_int), intent(out) :: made(2)
    made(1) = variable(file, 'lat', nc_double, dimensions, 'standard_name', 'latitude', 'degrees_north')
    made(2) = variable(file, 'lon', nc_double, dimensions, 'standard_name', 'longitude', 'degrees_east')
  end subroutine

  integer(c_int) function variable(file, name, type, dimensions, attribute, value, units) result(made)
    integer(c_int), intent(in) :: file, type, dimensions(:)
    character(*), intent(in) :: name, attribute, value
    character(*), intent(in), optional :: units
    call must(nc_def_var(file, name//c_null_char, type, size(dimensions, kind=c_int), dimensions, made))
    call text(file, made, attribute, value)
    if (present(units)) call text(file, made, 'units', units)
  end function

  subroutine text(file, variable, name, value)
    integer(c_int), intent(in) :: file, variable
    character(*), intent(in) :: name, value
    call must(nc_put_att_text(file, variable, name//c_null_char, len(value, c_size_t), value))
  end subroutine

  subroutine put_series(record)
    integer, intent(in) :: record
    do n = 1, buoys
      flow = velocity(middle(n))
      speed(n) = sqrt(flow(1)**2 + flow(2)**2)
      temperature(n) = at(middle(n))
    end do
    call put(series, series_vars(1), record, [integer ::], [hour*dt])
    call put(series, series_vars(6), record, [buoys], temperature)
    call put(series, series_vars(7), record, [buoys], speed)
  end subroutine

  subroutine put_cast(record, place)
    integer, intent(in) :: record
    real(wp), intent(in) :: place(2)
    call put(casts, cast_vars(1), record, [integer ::], [hour*dt])
    call put(casts, cast_vars(2), record, [integer ::], [real(record, wp)])
    call put(casts, cast_vars(3), record, [integer ::], [latitude(place(2))])
    call put(casts, cast_vars(4), record, [integer ::], [longitude(place(1))])
    call put(casts, cast_vars(6), record, [depths], below(at(place), depth))
  end subroutine

  subroutine put_track(record)
    integer, intent(in) :: record
    call put(track, track_vars(1), record, [integer ::], [hour*dt])
    call put(track, track_vars(3), record, [integer ::], [latitude(drifter(2))])
    call put(track, track_vars(4), record, [integer ::], [longitude(drifter(1))])
    call put(track, track_vars(5), record, [integer ::], [at(drifter)])
  end subroutine

  ! `record` is 0 for variables without time.
  subroutine put(file, variable, record, shape, values)
    integer(c_int), intent(in) :: file, variable
    integer, intent(in) :: record, shape(:)
    real(wp), intent(in) :: values(:)
    integer(c_size_t) :: start(size(shape) + 1), count(size(shape) + 1)
    start = 0
    if (record > 0) start(1) = record - 1
    count(:) = [1, shape]
    if (record == 0) count(:size(shape)) = shape
    call must(nc_put_vara_double(file, variable, start, count, values))
  end subroutine
end program
