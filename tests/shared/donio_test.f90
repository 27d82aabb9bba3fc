! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! A Fortran program for DONIO. It calls doread and its like as subroutines here, and as functions in donio_functions.f90:
! a compiler does not take both in one file.
program donio_test
  use, intrinsic :: iso_fortran_env, only: error_unit, int32, int64, real64
  use mpi_f08
  implicit none
  integer, external :: doopen, dolseek, count_wrong_functions
  integer, parameter :: o_rdonly = 0, o_wronly = 1, o_creat = 512, numbers = 100
  integer :: myid, nproc, fd, i, wrong = 0
  integer(int32) :: counts(numbers), counts_read(numbers)
  real(real64) :: values(2, numbers), values_read(2, numbers)
  character(8) :: word, word_read
  integer, parameter :: share = 4*numbers + 16*numbers + 8

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, myid)
  call MPI_Comm_size(MPI_COMM_WORLD, nproc)
  call donio(myid, nproc)
  call dogsync
  counts = [(1000*myid + i, i=1,numbers)]
  values = reshape([(0.5_real64*i + myid, i=1,2*numbers)], [2, numbers])
  write (word, '(a,i4)') 'rank', myid

  fd = doopen('donio_fortran.bin'//char(0), o_wronly + o_creat, 420)
  if (fd < 0) wrong = wrong + 1
  call dolsize(fd, share*nproc)
  if (dolseek(fd, share*myid, 0) /= share*myid) wrong = wrong + 1
  call dowrite(fd, counts, 4*numbers)
  call dowrite(fd, values, 16*numbers)
  call dowrite(fd, word, 8)
  if (dolseek(fd, 0, 1) /= share*(myid + 1)) wrong = wrong + 1
  call doflush(fd)
  if (dolseek(fd, 0, 2) /= share*nproc) wrong = wrong + 1
  call doclose(fd)

  call dogsync
  fd = doopen('donio_fortran.bin'//char(0), o_rdonly, 0)
  if (fd < 0) wrong = wrong + 1
  if (dolseek(fd, share*myid, 0) /= share*myid) wrong = wrong + 1
  call doread(fd, counts_read, 4*numbers)
  call doread(fd, values_read, 16*numbers)
  call doread(fd, word_read, 8)
  wrong = wrong + count(counts_read /= counts) + count(values_read /= values) + merge(0, 1, word_read == word)
  call doclose(fd)

  wrong = wrong + count_wrong_functions(myid, nproc)
  if (wrong > 0) write (error_unit, '(a,i0,a,i0,a)') 'FAILED on rank ', myid, ': ', wrong, ' wrong results'
  call MPI_Allreduce(MPI_IN_PLACE, wrong, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  call MPI_Finalize()
  if (wrong > 0) stop 1
end program
