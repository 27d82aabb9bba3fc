! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! Writes the series of buoys, the casts of a ship and the way of a drifter to NetCDF, as CF's discrete sampling
! geometries: NAME.nc, NAME_casts.nc and NAME_drifter.nc.
!   mpirun -n 4 stations [NAME.nc [HOURS]]
program stations
  use mpi_f08
  use tailrace
  use model
  implicit none
  integer, parameter :: hours_of_cast = 6, hours_of_drifter = 2
  type(MPI_Comm) :: compute
  type(tr_layout) :: points, one
  type(tr_stream) :: series, casts, track
  integer :: hour, final_hour, ranks, rank, n
  character(:), allocatable :: hours
  integer, allocatable :: mine(:)                          ! the buoys in the rows of this rank

  call MPI_Init()
  call tr_init(MPI_COMM_WORLD, compute)
  if (compute /= MPI_COMM_NULL) then
    hours = argument(2, '48')
    read (hours, *) final_hour
    call MPI_Comm_size(compute, ranks)
    call MPI_Comm_rank(compute, rank)
    if (ranks > ny) error stop 'stations: more ranks compute than the sea has rows'
    call set_up(rank*ny/ranks + 1, (rank + 1)*ny/ranks)
    mine = pack([(n, n=1,buoys)], buoy_y >= lo .and. buoy_y <= hi)
    call make_layouts()
    call create_outputs(argument(1, 'stations.nc'))
    do hour = 0, final_hour
      call put_series()
      if (mod(hour, hours_of_cast) == 0) call put_cast(hour/hours_of_cast)
      if (mod(hour, hours_of_drifter) == 0) call put_track()
      call exchange()
      call advance()
    end do
    call series%close()
    call casts%close()
    call track%close()
  end if
  call tr_finalize()
  call MPI_Finalize()

contains

  ! A rank has the buoys in its part of the sea, and may have none. Numbers of a step are on `one`.
  subroutine make_layouts()
    integer :: i
    call points%indexed([buoys], mine)
    call points%dimensions('station')
    call points%axis('station', [(i, i=1,buoys)], long_name='number of the buoy')
    call points%coordinates(latitude(buoy_y(mine) - 0.5_wp), longitude(buoy_x(mine) - 0.5_wp))
    call one%replicated([integer ::])
  end subroutine

  ! `coordinates` names the fields that tell where and for whom a value is.
  subroutine create_outputs(file)
    character(*), intent(in) :: file
    character(*), parameter :: temperature = 'standard_name=sea_water_temperature, units=degC, '
    character(:), allocatable :: name, ending              ! .nc, or .nc4 or .zarr: it decides about the format
    name = file(:index(file, '.', back=.true.) - 1)
    ending = file(len(name) + 1:)
    call series%create(file, base='2026-06-01', attributes='title="Buoys in a gyre", featureType=timeSeries')
    call series%define('sensor_depth', points, type=TR_F32, time='none', &
                       attributes='long_name="depth of the sensor", units=m')
    call series%put('sensor_depth', sensor_depth(mine))
    call series%define('station_name', points, type=tr_text(len(buoy_name)), time='none', &
                       attributes='cf_role=timeseries_id, long_name="name of the buoy"')
    call series%put('station_name', buoy_name(mine))
    call series%define('temperature', points, type=TR_F64, &
                       attributes=temperature//'coordinates="station_name"')
    call series%define('speed', points, type=TR_F64, &
                       attributes='standard_name=sea_water_speed, units="m s-1", coordinates="station_name"')

    call casts%create(name//'_casts'//ending, base='2026-06-01', &
                      attributes='title="Casts of a ship", featureType=profile')
    call casts%define('profile', one, type=TR_I32, attributes='cf_role=profile_id, long_name="number of the cast"')
    call define_place(casts)
    call casts%define('temperature', one, tr_levels('depth', depth), type=TR_F64, &
                      attributes=temperature//'coordinates="profile lat lon"')

    call track%create(name//'_drifter'//ending, base='2026-06-01', &
                      attributes='title="The way of a drifter", featureType=trajectory')
    call track%define('trajectory', one, type=TR_I32, time='none', &
                      attributes='cf_role=trajectory_id, long_name="number of the drifter"')
    call track%put('trajectory', 7)
    call define_place(track)
    call track%define('temperature', one, type=TR_F64, attributes=temperature//'coordinates="trajectory lat lon"')
  end subroutine

  ! The place of each step.
  subroutine define_place(out)
    type(tr_stream), intent(inout) :: out
    call out%define('lat', one, type=TR_F64, attributes='standard_name=latitude, units=degrees_north')
    call out%define('lon', one, type=TR_F64, attributes='standard_name=longitude, units=degrees_east')
  end subroutine

  subroutine put_series()
    integer :: i
    real(wp) :: speed(size(mine)), temperature(size(mine)), flow(2)
    do i = 1, size(mine)
      flow = velocity(middle(mine(i)))
      speed(i) = sqrt(flow(1)**2 + flow(2)**2)
      temperature(i) = at(middle(mine(i)))
    end do
    call series%begin(lead=hour*nint(dt))
    call series%put('temperature', temperature)
    call series%put('speed', speed)
    call series%end()
  end subroutine

  subroutine put_cast(n)
    integer, intent(in) :: n
    real(wp) :: place(2)
    place = ship(n)
    call casts%begin(lead=hour*nint(dt))
    call casts%put('profile', n + 1)
    call casts%put('lat', latitude(place(2)))
    call casts%put('lon', longitude(place(1)))
    call casts%put('temperature', below(told(at(place)), depth))
    call casts%end()
  end subroutine

  subroutine put_track()
    call track%begin(lead=hour*nint(dt))
    call track%put('lat', latitude(drifter(2)))
    call track%put('lon', longitude(drifter(1)))
    call track%put('temperature', told(at(drifter)))
    call track%end()
  end subroutine

  ! Tells all ranks the number that one of them has.
  real(wp) function told(value)
    real(wp), intent(in) :: value
    call MPI_Allreduce(value, told, 1, MPI_DOUBLE_PRECISION, MPI_SUM, compute)
  end function

  ! Gets the rows beside those that belong here.
  subroutine exchange()
    integer :: south, north
    south = merge(rank - 1, MPI_PROC_NULL, rank > 0)
    north = merge(rank + 1, MPI_PROC_NULL, rank < ranks - 1)
    call MPI_Sendrecv(warmth(:, hi), nx, MPI_DOUBLE_PRECISION, north, 0, warmth(:, lo-1), nx, MPI_DOUBLE_PRECISION, south, 0, &
                      compute, MPI_STATUS_IGNORE)
    call MPI_Sendrecv(warmth(:, lo), nx, MPI_DOUBLE_PRECISION, south, 0, warmth(:, hi+1), nx, MPI_DOUBLE_PRECISION, north, 0, &
                      compute, MPI_STATUS_IGNORE)
  end subroutine

  function argument(n, otherwise) result(text)
    integer, intent(in) :: n
    character(*), intent(in) :: otherwise
    character(:), allocatable :: text
    integer :: length
    text = otherwise
    if (command_argument_count() < n) return
    call get_command_argument(n, length=length)
    deallocate (text)
    allocate (character(length) :: text)
    call get_command_argument(n, text)
  end function
end program
