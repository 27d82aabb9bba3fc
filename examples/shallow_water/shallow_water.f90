! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! Writes shallow water on a staggered grid, in seconds of simulated time, to NetCDF; with a checkpoint it goes on.
!   mpirun -n 4 shallow_water [FILE [STEPS [CHECKPOINT]]]
program shallow_water
  use mpi_f08
  use tailrace
  use model
  implicit none
  integer, parameter :: output_every = 5, save_every = 8   ! steps
  type(MPI_Comm) :: compute, cart
  integer :: west, east, south, north, last(2)             ! neighbours; the last faces that belong here
  type(tr_layout) :: cells, u_faces, v_faces
  type(tr_stream) :: out
  type(tr_checkpoint) :: cp
  integer, target :: step = 0

  call MPI_Init()
  call tr_init(MPI_COMM_WORLD, compute)                    ! I/O servers, if any, work in here
  if (compute /= MPI_COMM_NULL) call run(argument(1, 'shallow_water.nc'), argument(2, '100'), argument(3, ''))
  call tr_finalize()
  call MPI_Finalize()

contains

  subroutine run(file, steps, checkpoint)
    character(*), intent(in) :: file, steps, checkpoint
    logical :: goes_on
    integer :: final_step
    read (steps, *) final_step
    goes_on = .false.
    call divide_basin()
    call make_layouts()
    if (checkpoint /= '') then
      call cp%create(checkpoint)
      call cp%begin(TR_LOAD, found=goes_on)                ! before the stream: then it goes on, too
      if (goes_on) call state()
      call cp%end()
      if (goes_on) call tr_log('going on with the state of an earlier run')
    end if
    call exchange(h); call exchange(u); call exchange(v)
    call create_output(file)
    if (.not. goes_on) call output()
    do while (step < final_step)
      call advance()
      if (mod(step, output_every) == 0) call output()
      if (checkpoint == '' .or. mod(step, save_every) /= 0) cycle
      call cp%begin(TR_SAVE)
      call state()
      call cp%end()                                        ! captured; committed behind our back
    end do
    call out%close()
    if (checkpoint /= '') call cp%close()
  end subroutine

  ! The model's own decomposition: the cells lo to hi.
  subroutine divide_basin()
    integer :: ranks, rank, parts(2), place(2)
    parts = 0
    call MPI_Comm_size(compute, ranks)
    call MPI_Dims_create(ranks, 2, parts)
    call MPI_Cart_create(compute, 2, parts, [.false., .false.], .false., cart)
    call MPI_Comm_rank(cart, rank)
    call MPI_Cart_coords(cart, rank, 2, place)
    call MPI_Cart_shift(cart, 0, 1, west, east)
    call MPI_Cart_shift(cart, 1, 1, south, north)
    call set_up(place*[nx, ny]/parts + 1, (place + 1)*[nx, ny]/parts)
    last = hi + merge(1, 0, hi == [nx, ny])                ! the walls in the east and north, too
  end subroutine

  ! Dimensions with the same name are shared: y by h and u, x by h and v.
  subroutine make_layouts()
    integer :: i
    real(wp), parameter :: x(*) = [((i - 0.5_wp)*dx, i=1,nx)], y(*) = [((i - 0.5_wp)*dx, i=1,ny)], &
      x_u(*) = [((i - 1)*dx, i=1,nx+1)], y_v(*) = [((i - 1)*dx, i=1,ny+1)]
    call cells%box(lo, hi, [nx, ny], halo=[1, 1])
    call cells%dimensions('x,y')
    call cells%axis('x', x, units='m', axis='X')
    call cells%axis('y', y, units='m', axis='Y')
    call u_faces%box(lo, [last(1), hi(2)], [nx + 1, ny])
    call u_faces%dimensions('x_u,y')
    call u_faces%axis('x_u', x_u, units='m', axis='X')
    call v_faces%box(lo, [hi(1), last(2)], [nx, ny + 1])
    call v_faces%dimensions('x,y_v')
    call v_faces%axis('y_v', y_v, units='m', axis='Y')
  end subroutine

  subroutine create_output(file)
    character(*), intent(in) :: file
    call out%create(file, format='cdf5', time='model', attributes='title="Waves over a seamount"')
    call out%define('bottom', cells, type=TR_F64, time='none', &
                    long_name='height of the bottom above the water at rest', units='m')
    call out%define('h', cells, type=TR_F64, long_name='thickness of the water', units='m')
    call out%define('h_mean', cells, type=TR_F64, statistic='average', since='last', &
                    long_name='thickness of the water, mean since the last step of the file', units='m')
    call out%define('u', u_faces, type=TR_F64, standard_name='sea_water_x_velocity', units='m s-1')
    call out%define('v', v_faces, type=TR_F64, standard_name='sea_water_y_velocity', units='m s-1')
    call out%put('bottom', bottom)                         ! once, before the first step
  end subroutine

  subroutine output()
    call out%begin_at(time)
    call out%put('h', h)                                   ! with its halo, which is not written
    call out%put('h_mean', mean_h())                       ! without a halo
    call out%put('u', u(lo(1):last(1), lo(2):hi(2)))
    call out%put('v', v(lo(1):hi(1), lo(2):last(2)))
    call out%end()                                         ! captured: all arrays may change from here on
  end subroutine

  subroutine state()                                       ! one list, for saving and for loading
    call cp%item('step', step)
    call cp%item('time', time)
    call cp%item('seconds', seconds)
    call cp%item('h', h, cells)
    call cp%item('sum_h', sum_h, cells)
    call cp%item('u', u(lo(1):last(1), lo(2):hi(2)), u_faces)
    call cp%item('v', v(lo(1):hi(1), lo(2):last(2)), v_faces)
  end subroutine

  subroutine advance()
    real(wp) :: dt
    dt = longest_step()
    call MPI_Allreduce(MPI_IN_PLACE, dt, 1, MPI_DOUBLE_PRECISION, MPI_MIN, cart)
    call step_h(dt); call exchange(h)
    call step_u(dt); call exchange(u)
    call step_v(dt); call exchange(v)
    step = step + 1
  end subroutine

  ! Gets the rows and columns beside those that belong here, corners included. Beyond walls nothing changes.
  subroutine exchange(a)
    real(wp), intent(inout) :: a(lo(1)-1:, lo(2)-1:)
    call copy(a(hi(1), :), east, a(lo(1)-1, :), west)
    call copy(a(lo(1), :), west, a(hi(1)+1, :), east)
    call copy(a(:, hi(2)), north, a(:, lo(2)-1), south)
    call copy(a(:, lo(2)), south, a(:, hi(2)+1), north)
  end subroutine

  subroutine copy(mine, to, theirs, from)
    real(wp), intent(in), contiguous :: mine(:)
    real(wp), intent(inout), contiguous :: theirs(:)
    integer, intent(in) :: to, from
    call MPI_Sendrecv(mine, size(mine), MPI_DOUBLE_PRECISION, to, 0, theirs, size(theirs), MPI_DOUBLE_PRECISION, from, 0, &
                      cart, MPI_STATUS_IGNORE)
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
