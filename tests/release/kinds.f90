! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! Writes one of each kind of file that Fortran programs write, into the working directory.
program kinds
  use mpi_f08
  use tailrace
  implicit none
  type(MPI_Comm) :: model
  call MPI_Init()
  call tr_init(MPI_COMM_WORLD, model)
  if (model /= MPI_COMM_NULL) call write_all()
  call tr_finalize()
  call MPI_Finalize()
contains
  subroutine write_all()
    type(tr_layout) :: grid
    type(tr_file) :: file
    real(8), allocatable :: field(:, :)
    integer :: lower(2), upper(2), i, j
    call grid%block([50, 23])
    lower = int(grid%own_lower()); upper = int(grid%own_upper())
    allocate (field(lower(1):upper(1), lower(2):upper(2)))
    do j = lower(2), upper(2)
      do i = lower(1), upper(1)
        field(i, j) = i + 1000d0*j
      end do
    end do
    call file%open('sequential.dat', form='unformatted', status='replace')
    call file%write(field, grid)
    call file%begin_write()
    call file%write(7)
    call file%write(field, grid, tr_section([3, 2], [49, 22]))
    call file%end()
    call file%close()
    call file%open('stream.dat', form='unformatted', access='stream', status='replace', mode='p')
    call file%write(field, grid)
    call file%close()
    call file%open('formatted.txt', status='replace')
    call file%write(1.5d0)
    call file%write('a line')
    call file%close()
    call grid%free()
  end subroutine
end program
