! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! All files that the model writes, and its checkpoints. Nothing in here knows whether there are I/O servers.
! boundaries.f90 reads.
module output
  use mpi_f08, only: MPI_Wtime
  use tailrace
  use area,   only: dp, grid_keys
  use domain, only: halo
  use dynamics, only: state
  use column
  implicit none
  private
  public :: output_layout, output_open, output_all, output_surface, output_close, output_seconds
  public :: output_open_boundaries, output_boundaries, checkpoint_open, checkpoint_save, base, grid

  character(*), parameter :: base = '2026-03-01T00:00Z'
  type(tr_layout) :: grid
  type(tr_stream) :: full, surface, outer
  type(tr_checkpoint) :: restart
  logical :: writing = .false., bounding = .false., saving = .false., lost = .false.
  real(dp) :: output_seconds = 0.0_dp      ! in calls of this module, since the start

contains

  ! Collective. Cuts the grid over the ranks; the bounds are those of this rank's memory, halo included.
  subroutine output_layout(shape, lower, upper)
    integer, intent(in)  :: shape(2)
    integer, intent(out) :: lower(2), upper(2)
    call grid%block(shape, halo=[halo, halo])
    call grid%georeference(keys=grid_keys())
    lower = grid%lower()
    upper = grid%upper()
  end subroutine

  ! Collective. The ending of a file's name chooses its format: .grib2, or .nc for NetCDF.
  subroutine output_open(directory, ending, levels)
    character(*), intent(in) :: directory, ending
    integer, intent(in) :: levels
    character(:), allocatable :: packing, origin           ! those that a format has not stay unallocated: absent
    real(dp) :: since
    since = MPI_Wtime()
    writing = .true.
    if (ending == '.grib2') then
      packing = 'ccsds'
      ! No centre runs this model, so none is named: these are research products of its first version.
      origin = 'productionStatusOfProcessedData=2, generatingProcessIdentifier=1'
    end if

    call full%create(directory//'/fc_{base:%Y%m%d%H}+{lead:03h}'//ending, base=base, packing=packing, keys=origin, &
                  conventions='weather')
    call full%define('t',  grid, tr_hybrid(levels, half_a, half_b), accuracy=0.01)
    call full%define('u',  grid, tr_hybrid(levels, half_a, half_b), accuracy=0.01)
    call full%define('v',  grid, tr_hybrid(levels, half_a, half_b), accuracy=0.01)
    call full%define('sp', grid, tr_surface(), accuracy=1.0)
    call full%define('tp', grid, tr_surface(), accuracy=0.01, statistic='accum', since='start')

    call surface%create(directory//'/surface_{base:%Y%m%d%H}'//ending, base=base, packing=packing, keys=origin, &
                  conventions='weather')
    call surface%define('sp', grid, tr_surface(), accuracy=1.0)
    call surface%define('tp', grid, tr_surface(), accuracy=0.01, statistic='accum', since='start')
    call surface%define('gh', grid, tr_pressure(500), accuracy=0.1)
    output_seconds = output_seconds + (MPI_Wtime() - since)
  end subroutine

  ! Collective. The 500 hPa surface and its wind, to which a nested forecast holds its rims, in a file for each
  ! lead. `hook`, if there is one, is run with each finished file.
  subroutine output_open_boundaries(directory, hook)
    character(*), intent(in) :: directory, hook
    character(:), allocatable :: command               ! stays unallocated, absent, without a hook
    real(dp) :: since
    since = MPI_Wtime()
    bounding = .true.
    if (hook /= '') command = hook
    call outer%create(directory//'/outer_{base:%Y%m%d%H}+{lead:03h}.grib2', base=base, packing='ccsds', hook=command)
    call outer%define('gh', grid, tr_pressure(500), accuracy=0.001)
    call outer%define('u',  grid, tr_pressure(500), accuracy=0.0001)
    call outer%define('v',  grid, tr_pressure(500), accuracy=0.0001)
    output_seconds = output_seconds + (MPI_Wtime() - since)
  end subroutine

  ! Collective, before output_open: the streams then go on where the checkpoint has them. With `load` the
  ! model's state and `lead` become those of the newest checkpoint, if there is one; lead is 0 otherwise.
  subroutine checkpoint_open(directory, load, lead)
    character(*), intent(in) :: directory
    logical, intent(in) :: load
    integer, target, intent(out) :: lead
    logical :: found
    lead = 0
    saving = .true.
    call restart%create(directory//'/restart')
    if (.not. load) return
    call restart%begin(TR_LOAD, found=found)
    if (found) call name_state(lead)
    call restart%end()
  end subroutine

  ! Collective. The state may change on return; the checkpoint is written behind the model's back.
  subroutine checkpoint_save(lead)
    integer, target, intent(inout) :: lead
    integer  :: ierr
    real(dp) :: since
    if (.not. saving) return
    since = MPI_Wtime()
    call restart%begin(TR_SAVE, ierr=ierr)           ! of the save before
    if (ierr /= 0) call tr_log('the forecast goes on, but its last checkpoint failed: '//tr_error())
    call name_state(lead)
    call restart%end(ierr)
    if (ierr /= 0) call tr_log('the forecast goes on, but has no new checkpoint: '//tr_error())
    output_seconds = output_seconds + (MPI_Wtime() - since)
  end subroutine

  ! One list, for saving and for loading.
  subroutine name_state(lead)
    integer, target, intent(inout) :: lead
    call restart%item('lead', lead)
    call restart%item('h', state%h, grid)
    call restart%item('u', state%u, grid)
    call restart%item('v', state%v, grid)
    call restart%item('rain', rain, grid)
  end subroutine

  ! Collective, like those below. `lead`: seconds of forecast.
  subroutine output_all(lead)
    integer, intent(in) :: lead
    integer  :: ierr
    real(dp) :: since
    if (.not. writing) return
    since = MPI_Wtime()
    call full%begin(lead=lead)
    call full%put('t', t)
    call full%put('u', u)
    call full%put('v', v)
    call full%put('sp', surface_pressure)
    call full%put('tp', precipitation)
    call full%end(ierr)                        ! captured: the fields may change from here on
    call note(ierr)
    output_seconds = output_seconds + (MPI_Wtime() - since)
  end subroutine

  subroutine output_surface(lead)
    integer, intent(in) :: lead
    integer  :: ierr
    real(dp) :: since
    if (.not. writing) return
    since = MPI_Wtime()
    call surface%begin(lead=lead)
    call surface%put('sp', surface_pressure)
    call surface%put('tp', precipitation)
    call surface%put('gh', height_500)
    call surface%end(ierr)
    call note(ierr)
    output_seconds = output_seconds + (MPI_Wtime() - since)
  end subroutine

  subroutine output_boundaries(lead)
    integer, intent(in) :: lead
    integer  :: ierr
    real(dp) :: since
    if (.not. bounding) return
    since = MPI_Wtime()
    call outer%begin(lead=lead)
    call outer%put('gh', height_500)
    call outer%put('u', u_500)
    call outer%put('v', v_500)
    call outer%end(ierr)
    call note(ierr)
    output_seconds = output_seconds + (MPI_Wtime() - since)
  end subroutine

  ! A forecast whose output fails goes on: some of it may still reach the storage. `ierr` is the same on every rank.
  subroutine note(ierr)
    integer, intent(in) :: ierr
    if (ierr == 0) return
    lost = .true.
    call tr_log('the forecast goes on, but its output failed: '//tr_error())
  end subroutine

  ! Returns once everything is on storage. `failed`, the same on every rank, says that something is missing
  ! there.
  subroutine output_close(failed)
    logical, intent(out) :: failed
    integer  :: ierr
    real(dp) :: since
    since = MPI_Wtime()
    if (writing) then
      call full%close(ierr)
      if (ierr /= 0) call tr_log(tr_error())
      lost = lost .or. ierr /= 0
      call surface%close(ierr)
      if (ierr /= 0) call tr_log(tr_error())
      lost = lost .or. ierr /= 0
    end if
    if (bounding) then
      call outer%close(ierr)
      if (ierr /= 0) call tr_log(tr_error())
      lost = lost .or. ierr /= 0
    end if
    if (saving) then
      call restart%close(ierr)
      if (ierr /= 0) call tr_log(tr_error())
    end if
    failed = lost
    call grid%free()
    output_seconds = output_seconds + (MPI_Wtime() - since)
  end subroutine
end module
