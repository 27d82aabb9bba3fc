! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! Everything that has to do with files: the part to copy. Errors end the program and say why.
module jacobi_saves
  use mpi_f08
  use tailrace, only: tr_file
  use jacobi_options, only: options_type
  use jacobi_grid, only: grid_type
  implicit none
  private
  public :: continue_saves, save_array, finish_saves, save_result, count_wrong

  type(tr_file) :: files(2)           ! of asynchronous saves that may be under way
  logical :: is_open(2) = .false.
  integer :: saves = 0

contains

  ! Local. Makes the files take turns as in one run, if an earlier run has computed that many iterations.
  subroutine continue_saves(options, done)
    type(options_type), intent(in) :: options
    integer, intent(in) :: done
    if (options%save_every > 0) saves = done / options%save_every
  end subroutine

  ! Collective. In the asynchronous modes b may change when this returns, and the file is complete two saves later,
  ! or after finish_saves.
  subroutine save_array(options, g, iteration)
    type(options_type), intent(in) :: options
    type(grid_type), intent(in) :: g
    integer, intent(in) :: iteration
    character(8) :: name
    integer :: n
    n = mod(saves, 2) + 1
    write(name, '(i4.4)') iteration
    if (.not. options%keep) name = merge('a', 'b', n == 1)
    call close_file(n)                        ! waits for what is still being written to it
    call files(n)%open(path(options, trim(name)), access='stream', form='unformatted', status='replace', &
                       action='write', mode=options%letters)
    is_open(n) = .true.
    call files(n)%write(g%b, g%layout)
    if (index(options%letters, 's') == 0) call close_file(n)
    saves = saves + 1
  end subroutine

  ! Collective. Returns when all saves are complete.
  subroutine finish_saves()
    call close_file(mod(saves, 2) + 1)
    call close_file(mod(saves + 1, 2) + 1)
  end subroutine

  ! Collective. Saves b once more as the result, until other programs see it.
  subroutine save_result(options, g)
    type(options_type), intent(in) :: options
    type(grid_type), intent(in) :: g
    type(tr_file) :: f
    call f%open(path(options, 'result'), access='stream', form='unformatted', status='replace', action='write', &
                mode=options%letters)
    call f%write(g%b, g%layout)
    call f%close()
  end subroutine

  ! Collective. Reads the result into the grid's a. Returns how many points of all ranks differ from b.
  function count_wrong(options, g) result(wrong)
    type(options_type), intent(in) :: options
    type(grid_type), intent(inout) :: g
    integer :: wrong, mine
    type(tr_file) :: f
    call f%open(path(options, 'result'), access='stream', form='unformatted', status='old', action='read', &
                mode=options%letters)
    call f%read(g%a, g%layout)
    call f%wait()                             ! asynchronous reading has delivered now
    call f%close()
    associate (l => g%lo, u => g%up)
      mine = count(g%a(l(1):u(1), l(2):u(2)) /= g%b(l(1):u(1), l(2):u(2)))
    end associate
    call MPI_Allreduce(mine, wrong, 1, MPI_INTEGER, MPI_SUM, g%comm)
  end function

  subroutine close_file(n)
    integer, intent(in) :: n
    if (is_open(n)) call files(n)%close()
    is_open(n) = .false.
  end subroutine

  function path(options, name)
    type(options_type), intent(in) :: options
    character(*), intent(in) :: name
    character(:), allocatable :: path
    path = options%out//'/jacobi_'//name//'.dat'
    if (index(options%letters, 'l') > 0) path = options%out//'/jacobi_'//name//'.%04d.dat'
  end function
end module
