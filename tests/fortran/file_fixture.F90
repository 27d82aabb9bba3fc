! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! The parts that tests of collective Fortran files share. MPI's integers have their own kind here, because the
! default one may be promoted. SUBRECORD: the length of subrecords, which then is gfortran's too
! (-fmax-subrecord-length).
module file_fixture
  use mpi_f08
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int8, int16, int32, int64, real32, real64, error_unit, iostat_end
  use checks
  use tailrace
  implicit none
  integer, parameter :: nx = 11, ny = 7
  type(MPI_Comm) :: model
  character(4) :: letters = ''
  character(40) :: run = ''

  interface
    function tr_set_subrecord_f(file, bytes) bind(c) result(code)
      import :: c_ptr, c_int64_t, c_int
      type(c_ptr), value :: file
      integer(c_int64_t), value :: bytes
      integer(c_int) :: code
    end function
    function c_getrlimit(what, limits) bind(c, name='getrlimit') result(code)
      import :: c_int, c_int64_t
      integer(c_int), value :: what
      integer(c_int64_t), intent(out) :: limits(2)
      integer(c_int) :: code
    end function
    function c_setrlimit(what, limits) bind(c, name='setrlimit') result(code)
      import :: c_int, c_int64_t
      integer(c_int), value :: what
      integer(c_int64_t), intent(in) :: limits(2)
      integer(c_int) :: code
    end function
    function c_signal(number, handler) bind(c, name='signal') result(before)
      import :: c_int, c_intptr_t
      integer(c_int), value :: number
      integer(c_intptr_t), value :: handler
      integer(c_intptr_t) :: before
    end function
  end interface

contains

  ! Collective. From now on files of the I/O rank take this many bytes (-1: any number), as on a full disk.
  subroutine limit_files(bytes)
    integer(int64), intent(in) :: bytes
    integer(c_int), parameter :: rlimit_fsize = 1, sigxfsz = 25
    integer(c_int64_t) :: limits(2)
    integer(c_intptr_t) :: before
    integer(c_int) :: code
    call MPI_Barrier(model)
    if (rank == 0) then
      before = c_signal(sigxfsz, 1_c_intptr_t)  ! SIG_IGN
      code = c_getrlimit(rlimit_fsize, limits)
      limits(1) = limits(2)
      if (bytes >= 0) limits(1) = bytes
      code = c_setrlimit(rlimit_fsize, limits)
      call check(code == 0, 'the size of files is limited')
    end if
    call MPI_Barrier(model)
  end subroutine

  ! Arguments: the mode letters, or - for none.
  subroutine start()
    integer(int32) :: me, all
    call get_command_argument(1, letters)
    if (letters == '-') letters = ''
    call MPI_Init()
    call tr_init(MPI_COMM_WORLD, model)
    call MPI_Comm_rank(model, me)
    call MPI_Comm_size(model, all)
    rank = me
    ranks = all
    write (run, '("fortran_",a,"_",i0,"_",z0)') merge('small', 'large', small_subrecords()), ranks, kind(1) * 16 + &
      len_trim(letters) * 256 + iachar(letters(1:1))
    run = trim(run)//trim(letters)
  end subroutine

  subroutine finish()
    integer(int32) :: mine, all
    mine = int(failures, int32)
    call MPI_Allreduce(mine, all, 1_int32, MPI_INTEGER4, MPI_SUM, model)
    call tr_finalize()
    call MPI_Finalize()
    if (all > 0) error stop 1
  end subroutine

  subroutine barrier()
    call MPI_Barrier(model)
  end subroutine

  logical function small_subrecords()
#ifdef SUBRECORD
    small_subrecords = .true.
#else
    small_subrecords = .false.
#endif
  end function

  ! Opens a collective file whose subrecords are as long as those of this program's own files.
  subroutine open_ours(f, case, access, convert, action, status, position, mode)
    type(tr_file), intent(inout) :: f
    character(*), intent(in) :: case
    character(*), intent(in), optional :: access, convert, action, status, position, mode
    integer(c_int) :: code
    character(4) :: in_mode
    in_mode = letters
    if (present(mode)) in_mode = mode
    call f%open(ours(case), access=access, form='unformatted', convert=convert, action=action, status=status, &
                position=position, mode=in_mode)
    code = 0
#ifdef SUBRECORD
    code = tr_set_subrecord_f(f%is%handle, int(SUBRECORD, c_int64_t))
#endif
    call check(code == 0, 'the length of subrecords is set')
  end subroutine

  function ours(case) result(name)
    character(*), intent(in) :: case
    character(:), allocatable :: name
    name = trim(run)//'_'//case//'.ours'
  end function

  function theirs(case) result(name)
    character(*), intent(in) :: case
    character(:), allocatable :: name
    name = trim(run)//'_'//case//'.theirs'
  end function

  ! Returns the value of the global array at an index.
  elemental real(real64) function value(i, j)
    integer, intent(in) :: i, j
    value = i + 100 * j + 0.25_real64
  end function

  function whole() result(field)
    real(real64) :: field(nx, ny)
    integer :: i, j
    do j = 1, ny
      do i = 1, nx
        field(i, j) = value(i, j)
      end do
    end do
  end function

  ! Fills this rank's part of the global array, with halo (which gets another value).
  subroutine fill(grid, field)
    type(tr_layout), intent(in) :: grid
    real(real64), allocatable, intent(out) :: field(:,:)
    integer :: lo(2), hi(2), i, j
    lo = grid%lower()
    hi = grid%upper()
    allocate (field(lo(1):hi(1), lo(2):hi(2)))
    field = -1
    lo = grid%own_lower()
    hi = grid%own_upper()
    do j = lo(2), hi(2)
      do i = lo(1), hi(1)
        field(i, j) = value(i, j)
      end do
    end do
  end subroutine

  ! Returns true if this rank's own elements are those of `expected`, and the halo is untouched.
  logical function arrived(grid, field, expected)
    type(tr_layout), intent(in) :: grid
    real(real64), allocatable, intent(in) :: field(:,:)
    real(real64), intent(in) :: expected(nx, ny)
    integer :: lo(2), hi(2), i, j
    lo = grid%own_lower()
    hi = grid%own_upper()
    arrived = .true.
    do j = lbound(field, 2), ubound(field, 2)
      do i = lbound(field, 1), ubound(field, 1)
        if (all([i, j] >= lo) .and. all([i, j] <= hi)) then
          arrived = arrived .and. abs(field(i, j) - expected(i, j)) < 1e-12_real64
        else
          arrived = arrived .and. abs(field(i, j) + 1) < 1e-12_real64
        end if
      end do
    end do
  end function

  ! Collective. Expects both files to have the same bytes, and removes them.
  subroutine check_same(case)
    character(*), intent(in) :: case
    integer(int8), allocatable :: a(:), b(:)
    integer :: at
    call barrier()
    if (rank == 0) then
      call slurp(ours(case), a)
      call slurp(theirs(case), b)
      call check(size(a) == size(b), case//': as long as the file that the compiler writes')
      do at = 1, min(size(a), size(b))
        if (a(at) == b(at)) cycle
        call check(.false., case//': the bytes that the compiler writes')
        write (error_unit, '("  first difference at byte ",i0," of ",i0," and ",i0)') at, size(a), size(b)
        exit
      end do
      if (failures == 0) then
        call remove(ours(case))
        call remove(theirs(case))
      end if
    end if
    call barrier()
  end subroutine

  subroutine slurp(name, bytes)
    character(*), intent(in) :: name
    integer(int8), allocatable, intent(out) :: bytes(:)
    integer :: unit
    integer(int64) :: length
    open (newunit=unit, file=name, access='stream', form='unformatted', status='old', action='read')
    inquire (unit, size=length)
    allocate (bytes(length))
    read (unit) bytes
    close (unit)
  end subroutine

  subroutine remove(name)
    character(*), intent(in) :: name
    integer :: unit, stat
    open (newunit=unit, file=name, status='old', iostat=stat)
    if (stat == 0) close (unit, status='delete')
  end subroutine

end module file_fixture
