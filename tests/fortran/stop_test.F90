! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! Makes one mistake without asking for ierr: see stops_together.sh. Arguments: the mistake, and the rank that
! makes it, if it is not all of them.
program stop_test
  use mpi_f08
  use tailrace
  implicit none
  type(MPI_Comm) :: model, group
  character(20) :: mistake, odd
  integer :: culprit, rank
  call get_command_argument(1, mistake)
  call get_command_argument(2, odd)
  read (odd, *) culprit
  call MPI_Init()
  group = MPI_COMM_WORLD
  call MPI_Comm_rank(group, rank)
  ! A group without rank 0 of the world.
  if (mistake == 'setting') call MPI_Comm_split(MPI_COMM_WORLD, min(rank, 1), rank, group)
  if (mistake == 'setting' .and. rank == 0) then
    call MPI_Barrier(MPI_COMM_WORLD)
  else if (mistake == 'setting') then
    call tr_init(group, model, options='stagign=1MiB')
  else
    call tr_init(group, model)
  end if
  if (mistake == 'server' .and. model == MPI_COMM_NULL) call in_a_step()
  if (model /= MPI_COMM_NULL) then
    call MPI_Comm_rank(model, rank)
    if (mistake == 'format') call never_made()
    if (mistake /= 'server') call in_a_step()
  end if
  call tr_finalize()
  if (mistake /= 'server') print '(a)', 'the program went on'
  call MPI_Finalize()
contains

  subroutine never_made()
    type(tr_stream) :: stream
    call stream%create('never.raw', base='2026-03-01T00:00Z', format='rwa')
    print '(a)', 'the program went on'
  end subroutine

  ! One rank makes another collective call than the others, which end the step.
  subroutine in_a_step()
    type(tr_stream) :: stream
    type(tr_layout) :: grid
    type(tr_checkpoint) :: checkpoint
    real, allocatable :: values(:,:)
    integer :: lower(2), upper(2)
    logical :: stop_now
    call grid%block([8, 8])
    lower = grid%own_lower()
    upper = grid%own_upper()
    allocate (values(lower(1):upper(1), lower(2):upper(2)), source=1.0)
    call stream%create('ends.raw', base='2026-03-01T00:00Z', format='raw')
    call stream%define('t', grid, type=TR_F32)
    call stream%begin(0)
    call stream%put('t', values)
    if (rank == culprit .and. mistake == 'create') call checkpoint%create('never')
    if (rank == culprit .and. mistake == 'stopping') stop_now = tr_should_stop()
    if (rank == culprit .and. mistake == 'close') call stream%close()
    if (rank == culprit .and. mistake == 'finalize') call tr_finalize()
    call stream%end()
    call stream%close()
  end subroutine
end program stop_test
