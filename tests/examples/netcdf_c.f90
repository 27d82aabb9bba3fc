! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! The calls of NetCDF's C library that twins in Fortran need.
module netcdf_c
  use, intrinsic :: iso_c_binding
  implicit none
  integer(c_int), parameter :: nc_char = 2, nc_int = 4, nc_float = 5, nc_double = 6, nc_global = -1, nc_64bit_data = 32
  interface
    integer(c_int) function nc_create(path, mode, file) bind(c)
      import :: c_int, c_char
      character(kind=c_char), intent(in) :: path(*)
      integer(c_int), value :: mode
      integer(c_int), intent(out) :: file
    end function
    integer(c_int) function nc_def_dim(file, name, length, dimension) bind(c)
      import :: c_int, c_char, c_size_t
      integer(c_int), value :: file
      character(kind=c_char), intent(in) :: name(*)
      integer(c_size_t), value :: length
      integer(c_int), intent(out) :: dimension
    end function
    integer(c_int) function nc_def_var(file, name, type, ndims, dimensions, variable) bind(c)
      import :: c_int, c_char
      integer(c_int), value :: file, type, ndims
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int), intent(in) :: dimensions(*)
      integer(c_int), intent(out) :: variable
    end function
    integer(c_int) function nc_put_att_text(file, variable, name, length, text) bind(c)
      import :: c_int, c_char, c_size_t
      integer(c_int), value :: file, variable
      character(kind=c_char), intent(in) :: name(*), text(*)
      integer(c_size_t), value :: length
    end function
    integer(c_int) function nc_put_att_double(file, variable, name, type, length, values) bind(c)
      import :: c_int, c_char, c_size_t, c_double
      integer(c_int), value :: file, variable, type
      character(kind=c_char), intent(in) :: name(*)
      integer(c_size_t), value :: length
      real(c_double), intent(in) :: values(*)
    end function
    integer(c_int) function nc_enddef(file) bind(c)
      import :: c_int
      integer(c_int), value :: file
    end function
    integer(c_int) function nc_put_vara_double(file, variable, start, count, values) bind(c)
      import :: c_int, c_size_t, c_double
      integer(c_int), value :: file, variable
      integer(c_size_t), intent(in) :: start(*), count(*)
      real(c_double), intent(in) :: values(*)
    end function
    integer(c_int) function nc_put_vara_text(file, variable, start, count, text) bind(c)
      import :: c_int, c_char, c_size_t
      integer(c_int), value :: file, variable
      integer(c_size_t), intent(in) :: start(*), count(*)
      character(kind=c_char), intent(in) :: text(*)
    end function
    integer(c_int) function nc_close(file) bind(c)
      import :: c_int
      integer(c_int), value :: file
    end function
  end interface
contains

  subroutine must(code)
    integer(c_int), intent(in) :: code
    if (code /= 0) error stop 1
  end subroutine
end module
