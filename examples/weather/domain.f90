! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! This rank's part of the grid, and the exchange of halos with its neighbours. The cut itself is Tailrace's
! layout: the model asks for its bounds and only finds out its neighbours.
module domain
  use mpi_f08
  use area, only: dp
  implicit none
  private
  public :: domain_setup, exchange, maximum, state_type
  public :: comm, rank, ranks, nx, ny, ilo, ihi, jlo, jhi, halo, boxes

  integer, parameter :: halo = 2
  type(MPI_Comm) :: comm
  integer :: rank = 0, ranks = 1
  integer :: nx = 0, ny = 0              ! the whole grid
  integer :: ilo, ihi, jlo, jhi          ! the points that this rank owns, in global indices
  integer, allocatable :: boxes(:,:)     ! ilo, ihi, jlo, jhi of every rank
  integer :: west, east, south, north

  ! Depth at the centre of a cell, u on its eastern and v on its northern face, all with a halo. Halo points
  ! outside of the grid keep the boundary state that they are given at the start.
  type state_type
    real(dp), allocatable :: h(:,:), u(:,:), v(:,:)
  contains
    procedure :: allocate => allocate_state
  end type

contains

  ! Collective. `lower` and `upper` are the bounds of the memory of this rank, halo included. ok is the same
  ! on every rank: false if a rank has too few points for a halo.
  subroutine domain_setup(communicator, shape, lower, upper, ok)
    type(MPI_Comm), intent(in) :: communicator
    integer, intent(in)  :: shape(2), lower(2), upper(2)
    logical, intent(out) :: ok
    integer :: r
    comm = communicator
    call MPI_Comm_rank(comm, rank)
    call MPI_Comm_size(comm, ranks)
    nx = shape(1)
    ny = shape(2)
    ilo = lower(1) + halo
    ihi = upper(1) - halo
    jlo = lower(2) + halo
    jhi = upper(2) - halo
    allocate(boxes(4, 0:ranks-1))
    call MPI_Allgather([ilo, ihi, jlo, jhi], 4, MPI_INTEGER, boxes, 4, MPI_INTEGER, comm)
    ok = all(boxes(2,:) - boxes(1,:) + 1 >= halo) .and. all(boxes(4,:) - boxes(3,:) + 1 >= halo)
    west = MPI_PROC_NULL
    east = MPI_PROC_NULL
    south = MPI_PROC_NULL
    north = MPI_PROC_NULL
    do r = 0, ranks - 1
      if (boxes(3,r) == jlo .and. boxes(2,r) == ilo - 1) west = r
      if (boxes(3,r) == jlo .and. boxes(1,r) == ihi + 1) east = r
      if (boxes(1,r) == ilo .and. boxes(4,r) == jlo - 1) south = r
      if (boxes(1,r) == ilo .and. boxes(3,r) == jhi + 1) north = r
    end do
  end subroutine

  subroutine allocate_state(state)
    class(state_type), intent(inout) :: state
    allocate(state%h(ilo-halo:ihi+halo, jlo-halo:jhi+halo), source=0.0_dp)
    allocate(state%u(ilo-halo:ihi+halo, jlo-halo:jhi+halo), source=0.0_dp)
    allocate(state%v(ilo-halo:ihi+halo, jlo-halo:jhi+halo), source=0.0_dp)
  end subroutine

  ! Fills the halo from the neighbours: first west and east, then whole rows south and north, which carries
  ! the corners along.
  subroutine exchange(state)
    class(state_type), intent(inout) :: state
    integer, parameter :: w = halo
    call swap(state, ilo, ilo+w-1, jlo, jhi, west, ihi+1, ihi+w, jlo, jhi, east)
    call swap(state, ihi-w+1, ihi, jlo, jhi, east, ilo-w, ilo-1, jlo, jhi, west)
    call swap(state, ilo-w, ihi+w, jlo, jlo+w-1, south, ilo-w, ihi+w, jhi+1, jhi+w, north)
    call swap(state, ilo-w, ihi+w, jhi-w+1, jhi, north, ilo-w, ihi+w, jlo-w, jlo-1, south)
  end subroutine

  ! Sends the box i1..i2 x j1..j2 of the three fields to `to` and receives the box k1..k2 x l1..l2 from `from`.
  subroutine swap(state, i1, i2, j1, j2, to, k1, k2, l1, l2, from)
    class(state_type), intent(inout) :: state
    integer, intent(in) :: i1, i2, j1, j2, to, k1, k2, l1, l2, from
    real(dp) :: outgoing(i1:i2, j1:j2, 3), incoming(k1:k2, l1:l2, 3)
    if (to == MPI_PROC_NULL .and. from == MPI_PROC_NULL) return
    outgoing(:,:,1) = state%h(i1:i2, j1:j2)
    outgoing(:,:,2) = state%u(i1:i2, j1:j2)
    outgoing(:,:,3) = state%v(i1:i2, j1:j2)
    call MPI_Sendrecv(outgoing, size(outgoing), MPI_DOUBLE_PRECISION, to, 1, &
                      incoming, size(incoming), MPI_DOUBLE_PRECISION, from, 1, comm, MPI_STATUS_IGNORE)
    if (from == MPI_PROC_NULL) return
    state%h(k1:k2, l1:l2) = incoming(:,:,1)
    state%u(k1:k2, l1:l2) = incoming(:,:,2)
    state%v(k1:k2, l1:l2) = incoming(:,:,3)
  end subroutine

  ! Collective. A maximum is exact: unlike a sum it does not depend on the number of ranks.
  real(dp) function maximum(mine)
    real(dp), intent(in) :: mine
    call MPI_Allreduce(mine, maximum, 1, MPI_DOUBLE_PRECISION, MPI_MAX, comm)
  end function
end module
