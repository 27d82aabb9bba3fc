! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! A regional forecast that reads its boundaries, writes GRIB2 and can be gone on with: everything that a model in
! Fortran needs to say. Its computing stands in my_model.f90.
program regional
  use mpi_f08
  use tailrace
  use my_model    ! step, dt, last, nx, ny, nlev, ak, bk; t, u, v, tb (x,y,lev); ps, rain (x,y); every(hours)
  implicit none
  character(*), parameter :: base = '2026-03-01T00:00Z', name = '{base:%Y%m%d%H}+{lead:03h}.grib2'
  type(MPI_Comm)      :: model
  type(tr_layout)     :: grid
  type(tr_stream)     :: fc, bd
  type(tr_checkpoint) :: cp

  call MPI_Init()
  call tr_init(MPI_COMM_WORLD, model)                 ! I/O servers, if any, work in here
  if (model /= MPI_COMM_NULL) call forecast()
  call tr_finalize()                                  ! drains; reports errors nobody asked about
  call MPI_Finalize()

contains

  subroutine forecast()
    logical :: warm, stopping
    integer :: ierr

    call grid%block([nx, ny], halo=[2, 2])            ! or %box(...): the model's own decomposition
    call grid%georeference(sample='climate.grib2')    ! rotated lat-lon from any message; or keys='...'
    call allocate_state(grid%lower(), grid%upper())   ! global indices of my memory, halo included

    call cp%create('restart', keep=2)
    call cp%begin(TR_LOAD, found=warm)                ! before the streams: then they continue
    if (warm) call state()
    call cp%end()

    call fc%create('fc_'//name, base=base, packing='ccsds', keys='centre=98, perturbationNumber=7')
    call fc%define('t',  grid, tr_hybrid(nlev, ak, bk), accuracy=0.01)
    call fc%define('u',  grid, tr_hybrid(nlev, ak, bk), accuracy=0.05)
    call fc%define('v',  grid, tr_hybrid(nlev, ak, bk), accuracy=0.05)
    call fc%define('sp', grid, tr_surface(), accuracy=1.0)
    call fc%define('tp', grid, tr_surface(), accuracy=0.01, statistic='accum', since='start')

    call bd%open('bd_'//name, base=base, prefetch=2)
    call bd%define('t', grid, tr_hybrid(nlev))

    stopping = .false.
    do while (step < last .and. .not. stopping)
      if (every(3)) then
        call bd%begin(lead=step*dt)                   ! waits only if the servers are late
        call bd%get('t', tb)
        call bd%end()
        call relax_to(tb)
      end if
      call advance()                                  ! to the next step
      if (every(3)) then
        call fc%begin(lead=step*dt)
        call fc%put('t', t)                           ! all levels, halo and all, any kind
        call fc%put('u', u)
        call fc%put('v', v)
        call fc%put('sp', ps)
        call fc%put('tp', rain)
        call fc%end(ierr)                             ! captured: t may change from here on
        if (ierr /= 0) call tr_log('the forecast goes on without output: '//tr_error())
      end if
      stopping = tr_should_stop()                     ! time limit, SIGTERM: the same answer on every rank
      if (every(6) .or. stopping) then
        call cp%begin(TR_SAVE)
        call state()
        call cp%end()                                 ! captured; committed behind our back
      end if
    end do
    call bd%close()
    call fc%close()                                   ! durable, or stops and says why
    call cp%close()
  end subroutine

  subroutine state()                                  ! one list, for saving and for loading
    call cp%item('step', step)
    call cp%item('t', t, grid)
    call cp%item('u', u, grid)
    call cp%item('v', v, grid)
    call cp%item('tb', tb, grid)                        ! a run may be stopped between two boundaries
    call cp%item('ps', ps, grid)
    call cp%item('rain', rain, grid)
  end subroutine
end program
