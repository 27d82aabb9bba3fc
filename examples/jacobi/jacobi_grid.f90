! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! This rank's block of the grid with a halo of one point, and the iteration on it. All indices are global.
module jacobi_grid
  use, intrinsic :: iso_fortran_env, only: dp => real64
  use mpi_f08
  use tailrace, only: tr_layout
  implicit none
  private
  public :: dp, grid_type, grid_create, grid_iterate, grid_copy

  type :: grid_type
    type(MPI_Comm) :: comm
    type(tr_layout) :: layout
    integer :: rank, ranks, cut(2), size
    integer :: lo(2), up(2)           ! this rank's block
    integer :: first(2), last(2)      ! the points of it that change: the rim of the whole grid stays
    integer :: left, right, down, up_neighbour
    real(dp), allocatable :: a(:,:), b(:,:)    ! the iterate before and the new one, halo included
  end type

contains

  ! Collective. Cuts size x size points into blocks, as square as the ranks allow, and sets the first iterate.
  subroutine grid_create(g, comm, size, problem)
    type(grid_type), intent(out) :: g
    type(MPI_Comm), intent(in) :: comm
    integer, intent(in) :: size
    character(:), allocatable, intent(out) :: problem
    integer :: i, j
    problem = ''
    g%comm = comm
    g%size = size
    call MPI_Comm_rank(comm, g%rank)
    call MPI_Comm_size(comm, g%ranks)
    g%cut = 0
    call MPI_Dims_create(g%ranks, 2, g%cut)
    if (size < 2 * maxval(g%cut)) then
      problem = '--size: at least two points for each rank and dimension'
      return
    end if
    call find_neighbours(g)
    ! MPI's first dimension is the slowest, Fortran's the fastest.
    call g%layout%block([size, size], halo=[1, 1], grid=[g%cut(2), g%cut(1)])
    g%lo = g%layout%own_lower()
    g%up = g%layout%own_upper()
    g%first = max(g%lo, 2)
    g%last = min(g%up, size - 1)
    allocate(g%a(g%lo(1)-1:g%up(1)+1, g%lo(2)-1:g%up(2)+1), source=0.0_dp)
    allocate(g%b(g%lo(1)-1:g%up(1)+1, g%lo(2)-1:g%up(2)+1), source=0.0_dp)
    do j = g%first(2), g%last(2)
      do i = g%first(1), g%last(1)
        g%b(i, j) = i + j
      end do
    end do
  end subroutine

  subroutine find_neighbours(g)
    type(grid_type), intent(inout) :: g
    type(MPI_Comm) :: cartesian
    call MPI_Cart_create(g%comm, 2, g%cut, [.false., .false.], .false., cartesian)
    call MPI_Cart_shift(cartesian, 0, 1, g%down, g%up_neighbour)
    call MPI_Cart_shift(cartesian, 1, 1, g%left, g%right)
    call MPI_Comm_free(cartesian)
  end subroutine

  ! Collective. Does one iteration. Returns the largest change, the same on every rank.
  function grid_iterate(g) result(largest)
    type(grid_type), intent(inout) :: g
    real(dp) :: largest, change
    integer :: i, j
    change = 0
    do j = g%first(2), g%last(2)
      do i = g%first(1), g%last(1)
        change = max(change, abs(g%b(i, j) - g%a(i, j)))
        g%a(i, j) = g%b(i, j)
      end do
    end do
    call exchange(g)
    ! It is one expression of the neighbours, the same for any number of ranks.
    do j = g%first(2), g%last(2)
      do i = g%first(1), g%last(1)
        g%b(i, j) = (g%a(i, j-1) + g%a(i-1, j) + g%a(i+1, j) + g%a(i, j+1)) / 4
      end do
    end do
    call MPI_Allreduce(change, largest, 1, MPI_DOUBLE_PRECISION, MPI_MAX, g%comm)
  end function

  ! The outermost rows and columns of the neighbours' a become halo. The corners are not needed.
  subroutine exchange(g)
    type(grid_type), intent(inout) :: g
    associate (a => g%a, l => g%lo, u => g%up)
      call shift(a(l(1):u(1), l(2)),   g%down,         a(l(1):u(1), u(2)+1), g%up_neighbour)
      call shift(a(l(1):u(1), u(2)),   g%up_neighbour, a(l(1):u(1), l(2)-1), g%down)
      call shift(a(l(1), l(2):u(2)),   g%left,         a(u(1)+1, l(2):u(2)), g%right)
      call shift(a(u(1), l(2):u(2)),   g%right,        a(l(1)-1, l(2):u(2)), g%left)
    end associate

  contains

    subroutine shift(sent, to, received, from)
      real(dp), intent(in) :: sent(:)
      real(dp), intent(inout) :: received(:)
      integer, intent(in) :: to, from
      real(dp) :: buffer(size(received))
      if (to /= MPI_PROC_NULL) buffer = sent
      if (to == MPI_PROC_NULL .and. from == MPI_PROC_NULL) return
      call MPI_Sendrecv_replace(buffer, size(buffer), MPI_DOUBLE_PRECISION, to, 0, from, 0, g%comm, MPI_STATUS_IGNORE)
      if (from /= MPI_PROC_NULL) received = buffer
    end subroutine
  end subroutine

  ! Local. Makes a plain copy of the block, with which saving is compared. Its size is limited, because memory
  ! is.
  subroutine grid_copy(g, room)
    type(grid_type), intent(in) :: g
    real(dp), intent(inout) :: room(:)
    integer :: j, used, width
    width = g%up(1) - g%lo(1) + 1
    used = 0
    do j = g%lo(2), g%up(2)
      if (used + width > size(room)) used = 0
      room(used+1:used+width) = g%b(g%lo(1):g%up(1), j)
      used = used + width
    end do
  end subroutine
end module
