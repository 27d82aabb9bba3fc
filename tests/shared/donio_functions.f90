! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! Calls all of DONIO's names as integer functions. Returns how many results are wrong.
integer function count_wrong_functions(myid, nproc) result(wrong)
  implicit none
  integer, intent(in) :: myid, nproc
  integer, external :: donio, doopen, dolsize, dolseek, doread, dowrite, doflush, doclose, dogsync
  integer :: fd, number, wrote, first
  wrong = 0
  call expect(donio(myid, nproc), -1)        ! it was called already
  fd = doopen('donio_functions.bin'//char(0), 1 + 512, 420)
  wrote = 7*myid
  call expect(dolsize(fd, 4*nproc), 4*nproc)
  call expect(doread(fd, number, 4), -1)     ! opened for writing only
  call expect(dolseek(fd, 4*myid, 0), 4*myid)
  call expect(dowrite(fd, wrote, 4), 4)
  call expect(doflush(fd), 0)
  call expect(doclose(fd), 0)
  call expect(dogsync(), 0)
  call expect(doopen('missing.bin'//char(0), 0, 0), -1)
  fd = doopen('donio_functions.bin'//char(0), 0, 0)
  first = mod(myid + 1, nproc)
  call expect(dolseek(fd, 4*first, 0), 4*first)
  call expect(doread(fd, number, 4), 4)
  call expect(number, 7*first)
  call expect(doclose(fd), 0)

contains

  subroutine expect(result, expected)
    integer, intent(in) :: result, expected
    if (result /= expected) wrong = wrong + 1
  end subroutine
end function
