! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! Makes one mistake without asking for ierr: see stops_together.sh.
program stop_test
  use mpi_f08
  use tailrace
  implicit none
  type(MPI_Comm) :: model
  type(tr_stream) :: stream
  call MPI_Init()
  call tr_init(MPI_COMM_WORLD, model)
  if (model /= MPI_COMM_NULL) then
    call stream%create('never.raw', base='2026-03-01T00:00Z', format='rwa')
    print '(a)', 'the program went on'
    call stream%close()
  end if
  call tr_finalize()
  call MPI_Finalize()
end program stop_test
