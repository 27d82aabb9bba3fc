! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! A forecast for the North Atlantic and Europe with a shallow-water model over real orography. It stands for the
! regional models that Tailrace is made for: a decomposed grid, halos, many levels, and files every few hours.
! Output through Tailrace is in output.f90, and boundary files are read in boundaries.f90; the rest of the model
! knows nothing of it.
program weather
  use, intrinsic :: iso_c_binding, only: c_int
  use, intrinsic :: iso_fortran_env, only: error_unit, output_unit
  use mpi_f08
  use tailrace
  use area
  use domain
  use terrain
  use dynamics
  use column
  use output
  use options
  use boundaries
  use progress
  use timings
  implicit none

  interface
    subroutine c_exit(status) bind(c, name='exit')
      import :: c_int
      integer(c_int), value :: status
    end subroutine
  end interface

  type(options_type) :: chosen
  type(MPI_Comm) :: model
  character(:), allocatable :: problem
  integer :: status, world_rank

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, world_rank)
  call read_options(chosen, problem)
  if (problem /= '' .or. chosen%help .or. chosen%print_grid) then
    status = 0
    if (world_rank == 0) call answer()
    if (problem /= '') status = 2
  else
    status = 0
    call tr_init(MPI_COMM_WORLD, model)              ! I/O servers, if any, work in here
    if (model /= MPI_COMM_NULL) call forecast()
    call tr_finalize()
  end if
  call MPI_Finalize()
  call c_exit(int(status, c_int))

contains

  subroutine answer()
    if (problem /= '') then
      write(error_unit, '(2a)') 'weather: ', problem
    else if (chosen%help) then
      call print_help()
    else
      call print_grid(chosen%nx, chosen%ny, chosen%nested)
    end if
  end subroutine

  subroutine forecast()
    integer  :: steps, step
    integer, target :: lead
    real(dp) :: begun, since, blocked, closing
    logical  :: failed, stopping
    call prepare(lead)
    if (status /= 0) return
    steps = chosen%hours * 3600 / time_step
    call timings_start(steps)
    call MPI_Barrier(model)
    begun = MPI_Wtime()
    if (rank == 0) call progress_start(chosen%progress)
    stopping = .false.
    if (lead == 0) call write_boundaries(lead)
    do step = lead / time_step + 1, steps
      since = MPI_Wtime()
      blocked = output_seconds
      if (chosen%nested .and. mod(lead, 600) == 0) call boundaries_at(lead)
      call advance()
      lead = step * time_step
      if (mod(lead, 600) == 0) call physics_and_output(lead)
      call timings_step(step, MPI_Wtime() - since, output_seconds - blocked)
      if (rank == 0) call progress_show(step, steps, lead)
      if (mod(lead, 600) == 0) stopping = tr_should_stop()  ! the same answer on every rank
      if (stopping .or. due(lead, chosen%checkpoint_every)) call checkpoint_save(lead)
      if (stopping) exit
    end do
    if (stopping .and. rank == 0) call progress_stop(lead)
    since = MPI_Wtime()
    call boundaries_close()
    call output_close(failed)
    closing = MPI_Wtime() - since
    if (failed) status = 1
    if (chosen%timings /= '') call timings_write(chosen%timings, time_step, chosen%levels, chosen%output, &
                                                 boundary_seconds, since - begun, closing, since - begun + closing)
  end subroutine

  ! Collective.
  subroutine prepare(lead)
    integer, intent(out) :: lead                      ! from which the forecast goes on
    integer :: lower(2), upper(2)
    logical :: ok
    call area_setup(chosen%nx, chosen%ny, chosen%nested)
    call output_layout([chosen%nx, chosen%ny], lower, upper)
    call domain_setup(model, [chosen%nx, chosen%ny], lower, upper, ok)
    if (.not. ok) then
      call give_up('too many ranks for this grid: each needs at least 2x2 points')
      return
    end if
    allocate(ground(lower(1):upper(1), lower(2):upper(2)))
    call terrain_read(chosen%terrain, ground, problem)
    if (problem /= '') then
      call give_up(problem)
      return
    end if
    call dynamics_setup()
    call column_setup(chosen%levels)
    lead = 0
    if (chosen%restart .or. chosen%checkpoint_every > 0) call checkpoint_open(chosen%out, chosen%restart, lead)
    if (lead > 0 .and. rank == 0) print '(a,f0.2,a)', 'weather: goes on from hour ', lead / 3600.0_dp, ' of the forecast'
    if (chosen%nested) then
      call boundaries_open(chosen)
    else if (chosen%boundaries_every > 0) then
      call output_open_boundaries(chosen%out, chosen%hook)
    end if
    if (chosen%output) call output_open(chosen%out, trim(chosen%ending), chosen%levels)
    if (rank == 0 .and. chosen%progress /= 'none') print '(a,i0,a,i0,a,i0,a,i0,a,i0,a,i0,a)', &
      '  ', nx, ' x ', ny, ' x ', chosen%levels, ' points on ', ranks, ' ranks, ', chosen%hours, &
      ' hours in steps of ', time_step, ' s'
  end subroutine

  subroutine give_up(why)
    character(*), intent(in) :: why
    if (rank == 0) write(error_unit, '(2a)') 'weather: ', why
    status = 1
  end subroutine

  subroutine physics_and_output(lead)
    integer, intent(in) :: lead
    logical :: all_fields, surface_fields
    all_fields = due(lead, chosen%output_every)
    surface_fields = due(lead, chosen%surface_every)
    call exchange(state)
    call gather_rain(600.0_dp)
    if (all_fields .or. surface_fields) call diagnose_surface()
    if (all_fields) call diagnose_levels()
    if (surface_fields) call output_surface(lead)
    if (all_fields) call output_all(lead)
    call write_boundaries(lead)
  end subroutine

  ! The halo of the state must be up to date.
  subroutine write_boundaries(lead)
    integer, intent(in) :: lead
    if (chosen%nested .or. .not. due(lead, chosen%boundaries_every)) return
    call diagnose_surface()
    call diagnose_winds()
    call output_boundaries(lead)
  end subroutine

  logical function due(lead, every)
    integer, intent(in) :: lead, every
    due = .false.
    if (every > 0) due = mod(lead, every * 3600) == 0
  end function
end program
