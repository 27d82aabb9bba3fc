! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! Writes one raw field of 10 x 12 values, 100 * row + column, into the directory given.
program from_fortran
  use mpi_f08
  use tailrace
  implicit none
  type(MPI_Comm) :: model
  call MPI_Init()
  call tr_init(MPI_COMM_WORLD, model)
  if (model /= MPI_COMM_NULL) call write_field()
  call tr_finalize()
  call MPI_Finalize()
contains
  subroutine write_field()
    type(tr_layout) :: grid
    type(tr_stream) :: out
    real, allocatable :: field(:, :)
    character(4096) :: directory
    integer :: lower(2), upper(2), row, column
    call get_command_argument(1, directory)
    call grid%block([12, 10])
    lower = int(grid%lower())
    upper = int(grid%upper())
    allocate (field(lower(1):upper(1), lower(2):upper(2)))
    do row = lower(2), upper(2)
      do column = lower(1), upper(1)
        field(column, row) = 100.0*real(row - 1) + real(column - 1)
      end do
    end do
    call out%create(trim(directory)//'/field.raw', format='raw', base='2026-03-01T00:00Z')
    call out%define('t', grid)
    call out%begin(lead=0)
    call out%put('t', field)
    call out%end()
    call out%close()
    call grid%free()
  end subroutine
end program
