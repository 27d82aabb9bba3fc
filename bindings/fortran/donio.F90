! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
!
! The Fortran names of DONIO (Oak Ridge, 1994) over tailrace/donio.h, which documents the calls. They are external
! procedures, as they were, so that programs need no other line than before, and the compiler gives them its own
! names for linking. Compile it with the same -fdefault-* flags as the program.
!
! Programs call most of them as subroutines and some as integer functions. All are functions here. A call as a
! subroutine works on the same procedure, because x86-64 and AArch64 (System V, AAPCS64) return integers in a register
! that the caller may ignore. Nothing tells the two apart: compilers make the same call of them. As a subroutine it
! could not see a failure, and the program would end well with a short file or none. So a failure ends all ranks,
! unless TAILRACE_DONIO_ERRORS=return says that the program takes the results. doopen and dolseek are of use only as
! functions, and return -1. Each failure is printed: a collective one by rank 0, others by the rank itself.
!
! A path ends in char(0); the length that compilers pass behind the arguments is not used. `buf` is the address of
! any variable.

module tailrace_donio
  use, intrinsic :: iso_c_binding, only: c_char, c_f_pointer, c_int, c_int8_t, c_ptr, c_size_t
  use, intrinsic :: iso_fortran_env, only: error_unit
  implicit none
  private
  public :: tr_do_nio, tr_do_open, tr_do_lsize, tr_do_lseek, tr_do_read, tr_do_write, tr_do_flush, tr_do_close, tr_do_gsync
  public :: c_char, c_int, c_int8_t, narrow, told_together, told_alone, settled_together, settled_alone

  interface
    function tr_do_nio(myid, nproc) bind(c) result(code)
      import :: c_int
      integer(c_int), value :: myid, nproc
      integer(c_int) :: code
    end function
    function tr_do_open(path, flags, mode) bind(c) result(fd)
      import :: c_char, c_int
      character(kind=c_char), intent(in) :: path(*)
      integer(c_int), value :: flags, mode
      integer(c_int) :: fd
    end function
    function tr_do_lsize(fd, nbytes) bind(c) result(size)
      import :: c_int
      integer(c_int), value :: fd, nbytes
      integer(c_int) :: size
    end function
    function tr_do_lseek(fd, offset, whence) bind(c) result(position)
      import :: c_int
      integer(c_int), value :: fd, offset, whence
      integer(c_int) :: position
    end function
    function tr_do_read(fd, buf, nbytes) bind(c) result(count)
      import :: c_int, c_int8_t
      integer(c_int), value :: fd, nbytes
      integer(c_int8_t), intent(inout) :: buf(*)
      integer(c_int) :: count
    end function
    function tr_do_write(fd, buf, nbytes) bind(c) result(count)
      import :: c_int, c_int8_t
      integer(c_int), value :: fd, nbytes
      integer(c_int8_t), intent(in) :: buf(*)
      integer(c_int) :: count
    end function
    function tr_do_flush(fd) bind(c) result(code)
      import :: c_int
      integer(c_int), value :: fd
      integer(c_int) :: code
    end function
    function tr_do_close(fd) bind(c) result(code)
      import :: c_int
      integer(c_int), value :: fd
      integer(c_int) :: code
    end function
    function tr_do_gsync() bind(c) result(code)
      import :: c_int
      integer(c_int) :: code
    end function
    function c_error() bind(c, name='tr_error') result(text)
      import :: c_ptr
      type(c_ptr) :: text
    end function
    subroutine c_failed(together) bind(c, name='tr_donio_failed_f')
      import :: c_int
      integer(c_int), value :: together
    end subroutine
    subroutine c_log(message) bind(c, name='tr_log')
      import :: c_ptr
      type(c_ptr), value :: message
    end subroutine
    function c_strlen(text) bind(c, name='strlen') result(length)
      import :: c_ptr, c_size_t
      type(c_ptr), value :: text
      integer(c_size_t) :: length
    end function
  end interface

contains

  ! Integers of a program with another default kind may be larger than those of C, which refuses -1.
  integer(c_int) function narrow(value)
    integer, intent(in) :: value
    narrow = -1_c_int
    if (abs(value) <= huge(narrow)) narrow = int(value, c_int)
  end function

  ! Ends a collective call that may be one of a subroutine.
  integer function settled_together(code)
    integer(c_int), intent(in) :: code
    settled_together = int(code)
    if (code < 0) call c_failed(1_c_int)
  end function

  ! Ends such a call of this rank alone.
  integer function settled_alone(code)
    integer(c_int), intent(in) :: code
    settled_alone = int(code)
    if (code < 0) call c_failed(0_c_int)
  end function

  ! Ends a collective call of a function.
  integer function told_together(code)
    integer(c_int), intent(in) :: code
    told_together = int(code)
    if (code < 0) call c_log(c_error())
  end function

  ! Ends a call of a function, of this rank alone.
  integer function told_alone(code)
    integer(c_int), intent(in) :: code
    character(kind=c_char), pointer :: letters(:)
    type(c_ptr) :: text
    told_alone = int(code)
    if (code >= 0) return
    text = c_error()
    call c_f_pointer(text, letters, [c_strlen(text)])
    write (error_unit, '(*(a))') letters
    flush (error_unit)
  end function

end module tailrace_donio

integer function donio(myid, nproc)
  use tailrace_donio, only: tr_do_nio, narrow, settled_together
  implicit none
  integer, intent(in) :: myid, nproc
  donio = settled_together(tr_do_nio(narrow(myid), narrow(nproc)))
end function

integer function doopen(path, flags, mode)
  use tailrace_donio, only: c_char, tr_do_open, narrow, told_together
  implicit none
  character(kind=c_char), intent(in) :: path(*)
  integer, intent(in) :: flags, mode
  doopen = told_together(tr_do_open(path, narrow(flags), narrow(mode)))
end function

integer function dolsize(fd, nbytes)
  use tailrace_donio, only: tr_do_lsize, narrow, settled_together
  implicit none
  integer, intent(in) :: fd, nbytes
  dolsize = settled_together(tr_do_lsize(narrow(fd), narrow(nbytes)))
end function

integer function dolseek(fd, offset, whence)
  use tailrace_donio, only: tr_do_lseek, narrow, told_alone
  implicit none
  integer, intent(in) :: fd, offset, whence
  dolseek = told_alone(tr_do_lseek(narrow(fd), narrow(offset), narrow(whence)))
end function

integer function doread(fd, buf, nbytes)
  use tailrace_donio, only: c_int8_t, tr_do_read, narrow, settled_alone
  implicit none
  integer, intent(in) :: fd, nbytes
  integer(c_int8_t), intent(inout) :: buf(*)
  doread = settled_alone(tr_do_read(narrow(fd), buf, narrow(nbytes)))
end function

integer function dowrite(fd, buf, nbytes)
  use tailrace_donio, only: c_int8_t, tr_do_write, narrow, settled_alone
  implicit none
  integer, intent(in) :: fd, nbytes
  integer(c_int8_t), intent(in) :: buf(*)
  dowrite = settled_alone(tr_do_write(narrow(fd), buf, narrow(nbytes)))
end function

integer function doflush(fd)
  use tailrace_donio, only: tr_do_flush, narrow, settled_together
  implicit none
  integer, intent(in) :: fd
  doflush = settled_together(tr_do_flush(narrow(fd)))
end function

integer function doclose(fd)
  use tailrace_donio, only: tr_do_close, narrow, settled_together
  implicit none
  integer, intent(in) :: fd
  doclose = settled_together(tr_do_close(narrow(fd)))
end function

integer function dogsync()
  use tailrace_donio, only: tr_do_gsync, settled_together
  implicit none
  dogsync = settled_together(tr_do_gsync())
end function
