! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! Compares what recorder.c has kept with what a test expects.
module recorder_checks
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int8
  use checks
  use tailrace
  implicit none
  integer(int8), parameter :: byte(1) = [0_int8]

  interface
    function recorder_line() bind(c) result(text)
      import :: c_ptr
      type(c_ptr) :: text
    end function
    function recorder_packed(bytes) bind(c) result(at)
      import :: c_ptr, c_int64_t
      integer(c_int64_t), intent(out) :: bytes
      type(c_ptr) :: at
    end function
    function c_strlen(text) bind(c, name='strlen') result(length)
      import :: c_ptr, c_size_t
      type(c_ptr), value :: text
      integer(c_size_t) :: length
    end function
  end interface

contains

  function recorded() result(text)
    character(:), allocatable :: text
    character(kind=c_char), pointer :: letters(:)
    type(c_ptr) :: at
    integer :: i
    at = recorder_line()
    call c_f_pointer(at, letters, [int(c_strlen(at))])
    allocate (character(size(letters)) :: text)
    do i = 1, size(letters)
      text(i:i) = letters(i)
    end do
  end function

  subroutine expect(line)
    character(*), intent(in) :: line
    call check(recorded() == line, 'the library was called with'//new_line('a')//'  '//line// &
               new_line('a')//'but was called with'//new_line('a')//'  '//recorded())
  end subroutine

  subroutine refused(got, code, part)
    integer, intent(in) :: got, code
    character(*), intent(in) :: part
    character(:), allocatable :: text
    text = tr_error()
    call check(got == code, 'the code of: '//part)
    call check(index(text, part) > 0, 'the error text contains "'//part//'"; got "'//text//'"')
  end subroutine

end module recorder_checks
