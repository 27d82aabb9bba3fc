! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! A regional forecast that writes GRIB2: everything that a model in Fortran needs to say. Its computing stands
! in my_model.f90.
program regional
  use mpi_f08
  use tailrace
  use my_model    ! step, dt, last, nx, ny, nlev, ak, bk; t, u, v (x,y,lev); ps, rain (x,y); every(hours)
  implicit none
  character(*), parameter :: base = '2026-03-01T00:00Z', name = '{base:%Y%m%d%H}+{lead:03h}.grib2'
  type(MPI_Comm)  :: model
  type(tr_layout) :: grid
  type(tr_stream) :: fc

  call MPI_Init()
  call tr_init(MPI_COMM_WORLD, model)                 ! I/O servers, if any, work in here
  if (model /= MPI_COMM_NULL) call forecast()
  call tr_finalize()                                  ! drains; reports errors nobody asked about
  call MPI_Finalize()

contains

  subroutine forecast()
    integer :: ierr

    call grid%block([nx, ny], halo=[2, 2])            ! or %box(...): the model's own decomposition
    call grid%georeference(sample='climate.grib2')    ! rotated lat-lon from any message; or keys='...'
    call allocate_state(grid%lower(), grid%upper())   ! global indices of my memory, halo included

    call fc%create('fc_'//name, base=base, packing='ccsds', keys='centre=98, perturbationNumber=7')
    call fc%define('t',  grid, tr_hybrid(nlev, ak, bk), accuracy=0.01)
    call fc%define('u',  grid, tr_hybrid(nlev, ak, bk), accuracy=0.05)
    call fc%define('v',  grid, tr_hybrid(nlev, ak, bk), accuracy=0.05)
    call fc%define('sp', grid, tr_surface(), accuracy=1.0)
    call fc%define('tp', grid, tr_surface(), accuracy=0.01, statistic='accum', since='start')

    do while (step < last)
      call advance()
      if (every(3)) then
        call fc%begin(lead=step*dt)
        call fc%put('t', t)                           ! all levels, halo and all
        call fc%put('u', u)
        call fc%put('v', v)
        call fc%put('sp', ps)
        call fc%put('tp', rain)
        call fc%end(ierr)                             ! captured: t may change from here on
        if (ierr /= 0) call tr_log('the forecast goes on without output: '//tr_error())
      end if
    end do
    call fc%close()                                   ! durable, or stops and says why
  end subroutine
end program
