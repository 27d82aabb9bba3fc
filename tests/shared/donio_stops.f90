! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! Calls DONIO's names as subroutines, which see no failure: see donio_stops.sh. Arguments: the call that fails, and the
! rank on which it does, if it is not all of them. With "barrier" none fails: ranks wait for each other in MPI_Barrier.
program donio_stops
  use mpi_f08
  implicit none
  integer, external :: doopen, dolseek
  character(20) :: failing, word
  integer :: myid, nproc, fd, ignored, culprit = -1, number
  call get_command_argument(1, failing)
  call get_command_argument(2, word)
  if (word /= '') read (word, *) culprit
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, myid)
  call MPI_Comm_size(MPI_COMM_WORLD, nproc)
  if (failing == 'donio') nproc = nproc + 1
  call donio(myid, nproc)
  if (failing /= 'barrier') call dogsync   ! it waits there: on several nodes files may be opened
  fd = doopen('donio_stops.bin'//char(0), 2 + 512, 420)
  ignored = doopen('missing.bin'//char(0), 0, 0)
  call dolsize(fd, 4*nproc)
  ignored = dolseek(fd, 4*myid, 0)
  call dowrite(fd, myid, 4)
  if (failing == 'doflush') call doflush(fd)
  if (failing == 'barrier') call read_all()
  call gsync()
  if (failing == 'doread' .and. myid == culprit) then
    ignored = dolseek(fd, 4*nproc - 2, 0)
    call doread(fd, number, 4)
  else if (failing == 'dowrite' .and. myid == culprit) then
    call dowrite(fd, myid, -4)
  end if
  call gsync()
  if (failing /= 'MPI_Finalize') call doclose(fd)
  if (failing == 'dolsize') call dolsize(fd, 4)
  if (failing /= 'MPI_Finalize' .and. myid == 0) print '(a)', 'the program went on'
  call MPI_Finalize()
  if (failing == 'MPI_Finalize' .and. myid == 0) print '(a)', 'the program went on'
contains

  subroutine gsync()
    if (failing == 'barrier') call MPI_Barrier(MPI_COMM_WORLD)
    if (failing /= 'barrier') call dogsync
  end subroutine

  ! One rank after the other reads what all have written, which other nodes have.
  subroutine read_all()
    integer :: reader, writer
    call doflush(fd)
    do reader = 0, nproc - 1
      if (reader == myid) then
        do writer = 0, nproc - 1
          ignored = dolseek(fd, 4*writer, 0)
          call doread(fd, number, 4)
          if (number /= writer) stop 1
        end do
      end if
      call MPI_Barrier(MPI_COMM_WORLD)
    end do
  end subroutine
end program
