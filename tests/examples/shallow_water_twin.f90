! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! Writes what examples/shallow_water writes, by one process and the NetCDF library: shallow_water_twin FILE STEPS
program shallow_water_twin
  use netcdf_c
  use model
  implicit none
  integer, parameter :: output_every = 5
  character(500) :: path, steps
  integer(c_int) :: file, t, x, y, x_u, y_v, bnds
  integer(c_int) :: vars(11)  ! time, time_bnds, x, y, x_u, y_v, bottom, h, h_mean, u, v
  integer :: i, step, final_step, record
  real(wp) :: dt, before

  if (command_argument_count() /= 2) error stop 2
  call get_command_argument(1, path)
  call get_command_argument(2, steps)
  read (steps, *) final_step
  call define()
  call set_up([1, 1], [nx, ny])
  call put(vars(3), [nx], [((i - 0.5_wp)*dx, i=1,nx)])
  call put(vars(4), [ny], [((i - 0.5_wp)*dx, i=1,ny)])
  call put(vars(5), [nx + 1], [((i - 1)*dx, i=1,nx+1)])
  call put(vars(6), [ny + 1], [((i - 1)*dx, i=1,ny+1)])
  call put(vars(7), [ny, nx], [bottom(1:nx, 1:ny)])
  before = 0
  record = 0
  do step = 0, final_step
    if (mod(step, output_every) == 0) call write_step()
    if (step == final_step) exit
    dt = longest_step()
    call step_h(dt)
    call step_u(dt)
    call step_v(dt)
  end do
  call must(nc_close(file))

contains

  subroutine define()
    call must(nc_create(trim(path)//c_null_char, nc_64bit_data, file))
    t = dimension('time', 0)
    y = dimension('y', ny)
    x = dimension('x', nx)
    bnds = dimension('bnds', 2)
    x_u = dimension('x_u', nx + 1)
    y_v = dimension('y_v', ny + 1)
    call text(nc_global, 'Conventions', 'CF-1.8')
    call text(nc_global, 'title', 'Waves over a seamount')
    vars(1) = variable('time', [t], 'long_name', 'time', 's')
    call text(vars(1), 'axis', 'T')
    call text(vars(1), 'bounds', 'time_bnds')
    vars(2) = variable('time_bnds', [t, bnds])
    vars(3) = variable('x', [x], 'axis', 'X', 'm')
    vars(4) = variable('y', [y], 'axis', 'Y', 'm')
    vars(5) = variable('x_u', [x_u], 'axis', 'X', 'm')
    vars(6) = variable('y_v', [y_v], 'axis', 'Y', 'm')
    vars(7) = variable('bottom', [y, x], 'long_name', 'height of the bottom above the water at rest', 'm')
    vars(8) = variable('h', [t, y, x], 'long_name', 'thickness of the water', 'm')
    vars(9) = variable('h_mean', [t, y, x], 'long_name', 'thickness of the water, mean since the last step of the file', 'm')
    call text(vars(9), 'cell_methods', 'time: mean')
    vars(10) = variable('u', [t, y, x_u], 'standard_name', 'sea_water_x_velocity', 'm s-1')
    vars(11) = variable('v', [t, y_v, x], 'standard_name', 'sea_water_y_velocity', 'm s-1')
    call must(nc_enddef(file))
  end subroutine

  integer(c_int) function dimension(name, length) result(made)
    character(*), intent(in) :: name
    integer, intent(in) :: length
    call must(nc_def_dim(file, name//c_null_char, int(length, c_size_t), made))
  end function

  integer(c_int) function variable(name, dimensions, attribute, value, units) result(made)
    character(*), intent(in) :: name
    integer(c_int), intent(in) :: dimensions(:)
    character(*), intent(in), optional :: attribute, value, units
    call must(nc_def_var(file, name//c_null_char, nc_double, size(dimensions, kind=c_int), dimensions, made))
    if (.not. present(units)) return
    call text(made, attribute, value)
    call text(made, 'units', units)
  end function

  subroutine text(variable, name, value)
    integer(c_int), intent(in) :: variable
    character(*), intent(in) :: name, value
    call must(nc_put_att_text(file, variable, name//c_null_char, len(value, c_size_t), value))
  end subroutine

  subroutine write_step()
    record = record + 1
    call put(vars(1), [1], [time])
    call put(vars(2), [1, 2], [before, time])
    before = time
    call put(vars(8), [1, ny, nx], [h(1:nx, 1:ny)])
    call put(vars(9), [1, ny, nx], [mean_h()])
    call put(vars(10), [1, ny, nx + 1], [u(1:nx+1, 1:ny)])
    call put(vars(11), [1, ny + 1, nx], [v(1:nx, 1:ny+1)])
  end subroutine

  ! `shape` begins with 1 for variables with time, of which this is the record.
  subroutine put(variable, shape, values)
    integer(c_int), intent(in) :: variable
    integer, intent(in) :: shape(:)
    real(wp), intent(in) :: values(:)
    integer(c_size_t) :: start(size(shape))
    start = 0
    if (shape(1) == 1) start(1) = record - 1
    call must(nc_put_vara_double(file, variable, start, int(shape, c_size_t), values))
  end subroutine
end program
