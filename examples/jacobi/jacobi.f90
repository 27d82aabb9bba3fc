! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! The Jacobi iteration, saving its array every few iterations: the time of computing, how long saving blocks
! it, and the time of a plain copy of as many bytes. Everything that has to do with files stands in
! jacobi_saves.f90 and jacobi_checkpoints.f90.
program jacobi
  use, intrinsic :: iso_c_binding, only: c_char, c_long, c_null_char
  use, intrinsic :: iso_fortran_env, only: error_unit
  use mpi_f08
  use tailrace, only: tr_init, tr_finalize
  use jacobi_options
  use jacobi_grid
  use jacobi_saves
  use jacobi_checkpoints
  implicit none

  interface  ! progress.c
    subroutine progress_start(how) bind(c)
      import :: c_char
      character(kind=c_char), intent(in) :: how(*)
    end subroutine
    subroutine progress_show(iteration, iterations) bind(c)
      import :: c_long
      integer(c_long), value :: iteration, iterations
    end subroutine
  end interface

  ! Seconds; each the longest of all ranks in the end.
  real(dp) :: total = 0, blocked = 0, copy = 0, last = 0, result = 0, checkpoints = 0, change = 0
  character(:), allocatable :: problem, how
  type(MPI_Comm) :: comm
  type(options_type) :: options
  type(grid_type), target :: g
  integer :: rank, done = 0, status = 0

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call read_options(options, problem)
  if (problem /= '') then
    if (rank == 0) write(error_unit, '(a)') 'jacobi_fortran: '//problem
    status = 2
  else if (options%help) then
    if (rank == 0) call print_help()
  else
    call tr_init(MPI_COMM_WORLD, comm)
    if (comm /= MPI_COMM_NULL) call iterate_and_tell()
    call tr_finalize()
  end if
  call MPI_Finalize()
  if (status /= 0) stop status, quiet=.true.

contains

  subroutine iterate_and_tell()
    integer :: wrong
    real(dp) :: begin
    call grid_create(g, comm, options%size, problem)
    if (problem /= '') then
      if (g%rank == 0) write(error_unit, '(a)') 'jacobi_fortran: '//problem
      status = 1
      return
    end if
    call open_checkpoint(options, g)
    call load_checkpoint(options, g, done, change)
    how = options%progress//c_null_char
    if (g%rank == 0) call progress_start(how)
    call iterate()
    call MPI_Barrier(comm)
    begin = MPI_Wtime()
    call save_result(options, g)
    result = MPI_Wtime() - begin
    wrong = 0
    if (options%verify) wrong = count_wrong(options, g)
    call tell()
    if (wrong == 0) return
    if (g%rank == 0) write(error_unit, '(a,i0,a)') 'jacobi_fortran: ', wrong, ' points were read back wrong'
    status = 1
  end subroutine

  subroutine iterate()
    real(dp), allocatable :: room(:)
    real(dp) :: begin, start
    integer :: i
    ! The memory is touched before it is measured.
    allocate(room(min(size(g%b), 2**25)), source=0.0_dp)
    call continue_saves(options, done)
    call MPI_Barrier(comm)
    begin = MPI_Wtime()
    do i = done + 1, options%iterations
      change = grid_iterate(g)
      if (g%rank == 0) call progress_show(int(i, c_long), int(options%iterations, c_long))
      start = MPI_Wtime()
      call save_checkpoint(options, i, change)
      checkpoints = checkpoints + MPI_Wtime() - start
      if (options%save_every == 0) cycle
      start = MPI_Wtime()
      if (mod(i, options%save_every) == 0) then
        call save_array(options, g, i)
        blocked = blocked + MPI_Wtime() - start
      end if
      ! The copy comes between two saves, so that neither finds what the other left in the processor's caches.
      if (mod(i, options%save_every) /= options%save_every / 2) cycle
      start = MPI_Wtime()
      call grid_copy(g, room)
      copy = copy + MPI_Wtime() - start
    end do
    start = MPI_Wtime()
    call finish_saves()
    last = MPI_Wtime() - start
    start = MPI_Wtime()
    call close_checkpoint()
    checkpoints = checkpoints + MPI_Wtime() - start
    total = MPI_Wtime() - begin
  end subroutine

  subroutine tell()
    real(dp) :: mine(6), all(6), megabytes
    mine = [total, blocked, copy, last, result, checkpoints]
    call MPI_Reduce(mine, all, 6, MPI_DOUBLE_PRECISION, MPI_MAX, 0, comm)
    if (g%rank /= 0) return
    megabytes = 8e-6_dp * real(options%size, dp)**2
    print '(3(i0,a),i0,3a,f0.1,a)', options%size, ' x ', options%size, ' points on ', g%cut(1), ' x ', g%cut(2), &
      ' ranks, mode ', options%mode, ': saves of ', megabytes, ' MB'
    print '(a,f10.3,a)', '  whole run       ', all(1), ' s'
    print '(a,f10.3,a)', '  computing       ', all(1) - all(2) - all(3) - all(4) - all(6), ' s'
    print '(a,f10.3,a,f5.3,a)', '  blocked in I/O  ', all(2), ' s   in saves, and ', all(4), &
      ' s at the end until the last were complete'
    print '(a,f10.3,a)', '  of which copy   ', all(3), ' s   as a plain copy of the array takes it'
    if (options%checkpoint_every > 0) &
      print '(a,f10.3,a)', '  in checkpoints  ', all(6), ' s   blocked, and waiting for the last'
    print '(a,f10.1,a)', '  written at      ', megabytes / all(5), ' MB/s the result, saved once more'
    print '(a,g0.17)', '  change          ', change
  end subroutine
end program
