! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! Writes the list of elements of a finite-element grid into one file, from all ranks, and reads it back: the test
! program of DONIO (Oak Ridge, 1994), with DONIO's own names. Its calls are external procedures without interfaces, as
! in programs of that time: doread and dowrite take variables of any type. fem.c is the same with tailrace's names.
program fem
  use, intrinsic :: iso_fortran_env, only: error_unit, int32, int64
  use mpi_f08
  implicit none
  integer, external :: donio, doopen, dolsize, dolseek, doread, dowrite, doclose, dogsync
  integer, parameter :: o_rdonly = 0, o_wronly = 1, o_creat = 512, seek_set = 0
  integer, parameter :: element_bytes = 32
  integer, parameter :: dx(8) = [0, 1, 1, 0, 0, 1, 1, 0], dy(8) = [0, 0, 1, 1, 0, 0, 1, 1], &
    dz(8) = [0, 0, 0, 0, 1, 1, 1, 1]
  character(*), parameter :: names(6) = [character(6) :: 'wopen', 'write', 'wclose', 'ropen', 'read', 'rclose']
  integer :: nnx, nny, nnz, nex, ney, nez, myid, nproc, status
  integer(int64) :: wrong = 0
  integer(int32), allocatable :: column(:,:)
  double precision :: seconds(6)
  character(:), allocatable :: path

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, myid)
  call MPI_Comm_size(MPI_COMM_WORLD, nproc)
  call read_arguments(status)
  if (status < 0) then
    if (donio(myid, nproc) /= 0) call give_up_together()
    allocate (column(8, nez))
    call write_and_read()
    call print_seconds()
    status = merge(1, 0, wrong /= 0)
  end if
  call MPI_Finalize()
  if (status > 0) stop status, quiet=.true.

contains

  subroutine write_and_read()
    double precision :: begin
    integer :: fd
    if (dogsync() /= 0) call give_up_together()
    begin = MPI_Wtime()
    fd = doopen(path//char(0), o_wronly + o_creat, 420)        ! 420: rw-r--r--
    if (fd < 0) call give_up_together()
    if (dolsize(fd, nex*ney*nez*element_bytes) < 0) call give_up_together()
    call end_section(1, begin)
    call write_columns(fd)
    call end_section(2, begin)
    if (doclose(fd) /= 0) call give_up_together()
    call end_section(3, begin)
    fd = doopen(path//char(0), o_rdonly, 0)
    if (fd < 0) call give_up_together()
    call end_section(4, begin)
    call read_columns(fd)
    call end_section(5, begin)
    if (doclose(fd) /= 0) call give_up_together()
    call end_section(6, begin)
  end subroutine

  ! Columns of elements along z are dealt to the ranks in turn. A rank writes each of its own at once.
  subroutine write_columns(fd)
    integer, intent(in) :: fd
    integer :: ix, iy
    do iy = 1, ney
      do ix = 1, nex
        if (mod(ix + (iy - 1)*nex, nproc) /= myid) cycle
        call fill_column(ix, iy, column)
        if (dolseek(fd, (element(ix, iy, 1) - 1)*element_bytes, seek_set) < 0) call give_up()
        if (dowrite(fd, column, nez*element_bytes) /= nez*element_bytes) call give_up()
      end do
    end do
  end subroutine

  subroutine read_columns(fd)
    integer, intent(in) :: fd
    integer :: ix, iy
    integer(int32) :: expected(8, nez)
    do iy = 1, ney
      do ix = 1, nex
        if (mod(ix + (iy - 1)*nex, nproc) /= myid) cycle
        if (dolseek(fd, (element(ix, iy, 1) - 1)*element_bytes, seek_set) < 0) call give_up()
        if (doread(fd, column, nez*element_bytes) /= nez*element_bytes) call give_up()
        call fill_column(ix, iy, expected)
        wrong = wrong + count(column /= expected)
      end do
    end do
  end subroutine

  integer function element(ix, iy, iz)
    integer, intent(in) :: ix, iy, iz
    element = iz + (ix - 1)*nez + (iy - 1)*nez*nex
  end function

  ! The vertices of the elements of one column, from below.
  subroutine fill_column(ix, iy, vertices)
    integer, intent(in) :: ix, iy
    integer(int32), intent(out) :: vertices(8, nez)
    integer :: iz
    do iz = 1, nez
      vertices(:, iz) = iz + dz + (ix + dx - 1)*nnz + (iy + dy - 1)*nnz*nnx
    end do
  end subroutine

  ! Ends a section, which began at `begin`, and lets all ranks begin the next one together. They wait for each other
  ! in dogsync and not in MPI_Barrier: a rank that waits for MPI answers nobody who reads its part of the file from
  ! another node.
  subroutine end_section(section, begin)
    integer, intent(in) :: section
    double precision, intent(inout) :: begin
    seconds(section) = MPI_Wtime() - begin
    if (dogsync() /= 0) call give_up_together()
    begin = MPI_Wtime()
  end subroutine

  subroutine print_seconds()
    integer :: i
    call MPI_Allreduce(MPI_IN_PLACE, wrong, 1, MPI_INTEGER8, MPI_SUM, MPI_COMM_WORLD)
    call MPI_Allreduce(MPI_IN_PLACE, seconds, 6, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD)
    if (myid /= 0) return
    print '(3(i0,a),i0,4a,i0,a)', nex, ' x ', ney, ' x ', nez, ' elements from ', nproc, &
      trim(merge(' rank ', ' ranks', nproc == 1)), ': ', path, ', ', nex*ney*nez*element_bytes, ' bytes'
    print '(6a10,a)', (adjustr(names(i)), i=1,6), '   s, the longest of all ranks'
    print '(6f10.4)', seconds
    if (wrong == 0) print '(a)', 'checked: every number was read as it was written'
    if (wrong /= 0) write (error_unit, '(a,i0,3a)') 'fem_fortran: ', wrong, ' numbers in ', path, ' were read wrong'
  end subroutine

  ! A collective call has failed on all ranks, and has printed why. A launcher may lose the last lines of a job
  ! that aborts.
  subroutine give_up_together()
    call MPI_Finalize()
    stop 1, quiet=.true.
  end subroutine

  subroutine give_up()
    call MPI_Abort(MPI_COMM_WORLD, 1)
  end subroutine

  ! `status`: -1 to go on, or the program's exit status.
  subroutine read_arguments(status)
    integer, intent(out) :: status
    integer :: i, failed(3), counts(3)
    character(20) :: word
    status = 0
    do i = 1, command_argument_count()
      if (any(argument(i) == [character(6) :: '--help', '-h'])) then
        if (myid == 0) call print_help()
        return
      end if
    end do
    status = 2
    if (command_argument_count() < 3 .or. command_argument_count() > 4) then
      if (myid == 0) write (error_unit, '(a)') 'fem_fortran: expected NX NY NZ [FILE]; see fem_fortran --help'
      return
    end if
    do i = 1, 3
      counts(i) = 0
      word = argument(i)
      read (word, '(i20)', iostat=failed(i)) counts(i)
    end do
    ! Offsets in the file are default integers, as they were.
    if (any(failed /= 0) .or. any(counts < 2) .or. product(real(counts, kind(0d0)))*element_bytes > huge(1)) then
      if (myid == 0) write (error_unit, '(a)') 'fem_fortran: '//argument(1)//' '//argument(2)//' '//argument(3)// &
        ': expected 2 or more vertices along each side, and a file of less than 2 GiB'
      return
    end if
    nnx = counts(1); nny = counts(2); nnz = counts(3)
    nex = nnx - 1; ney = nny - 1; nez = nnz - 1
    path = 'fem.bin'
    if (command_argument_count() == 4) path = argument(4)
    status = -1
  end subroutine

  function argument(n) result(text)
    integer, intent(in) :: n
    character(:), allocatable :: text
    integer :: length
    call get_command_argument(n, length=length)
    allocate (character(length) :: text)
    if (length > 0) call get_command_argument(n, text)
  end function

  subroutine print_help()
    integer :: i
    character(*), parameter :: lines(18) = [character(101) :: &
      'fem_fortran: writes the elements of a grid of hexahedra into one file, from all ranks, and reads them', &
      'back, with the calls of DONIO. fem is the same in C, with those of tailrace.', &
      '', &
      'usage: mpirun -n N fem_fortran NX NY NZ [FILE]', &
      '', &
      '  NX NY NZ   vertices along each side, 2 or more', &
      '  FILE       the file; it stays                       (fem.bin)', &
      '  --help', &
      '', &
      'examples', &
      '  # the three grids of the study of 1994: files of 1.5, 12.3 and 41.5 MB', &
      '  mpirun -n 4 fem_fortran 41 41 31', &
      '  mpirun -n 4 fem_fortran 81 81 61', &
      '  mpirun -n 4 fem_fortran 121 121 91', &
      '', &
      'The file has 8 numbers of 4 bytes for each element: its vertices, counted from 1. It is below 2 GiB,', &
      'because positions are default integers in these calls.', &
      'Exit status: 0 done, 1 failed (the reason is printed), 2 a wrong argument.']
    do i = 1, size(lines)
      print '(a)', trim(lines(i))
    end do
  end subroutine
end program
