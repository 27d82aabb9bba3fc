! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! The data that a Fortran program saved is there when it loads: in memory of another shape, over another
! layout, for every kind, and on ranks that own nothing. Default kinds may be promoted.
module checkpoint_run
  use mpi_f08
  use, intrinsic :: iso_fortran_env, only: int8, int16, int32, int64, real32, real64
  use checks
  use tailrace
  implicit none
  integer, parameter :: nx = 13, ny = 9
  type(MPI_Comm) :: model
  character(40) :: run = ''

contains

  elemental integer function value(i, j)
    integer, intent(in) :: i, j
    value = i + nx * (j - 1)
  end function

  function name_of(case) result(name)
    character(*), intent(in) :: case
    character(:), allocatable :: name
    name = trim(run)//'_'//case
  end function

  subroutine remove(case)
    character(*), intent(in) :: case
    integer :: k, unit, status
    character(1) :: digit
    call MPI_Barrier(model)
    do k = 0, 1
      write (digit, '(i1)') k
      if (rank /= 0) cycle
      open (newunit=unit, file=name_of(case)//'.'//digit, status='old', iostat=status)
      if (status == 0) close (unit, status='delete')
    end do
    call MPI_Barrier(model)
  end subroutine

  subroutine fill(grid, field)
    type(tr_layout), intent(in) :: grid
    real(real64), allocatable, intent(inout) :: field(:,:)
    integer :: lo(2), hi(2), i, j
    lo = grid%lower()
    hi = grid%upper()
    if (allocated(field)) deallocate (field)
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

  subroutine check_field(grid, field, halo, what)
    type(tr_layout), intent(in) :: grid
    real(real64), allocatable, intent(in) :: field(:,:)
    real(real64), intent(in) :: halo
    character(*), intent(in) :: what
    integer :: lo(2), hi(2), i, j
    logical :: whole, own
    whole = .true.
    lo = grid%own_lower()
    hi = grid%own_upper()
    do j = lbound(field, 2), ubound(field, 2)
      do i = lbound(field, 1), ubound(field, 1)
        own = i >= lo(1) .and. i <= hi(1) .and. j >= lo(2) .and. j <= hi(2)
        whole = whole .and. nint(field(i, j) - merge(real(value(i, j), real64), halo, own)) == 0
      end do
    end do
    call check(whole, what)
  end subroutine

  ! Arrays are saved with a halo over one layout. They are loaded over another one, into memory with a halo,
  ! without one, and with strides. The halo and the gaps are left alone.
  subroutine memory_and_layout_do_not_matter()
    type(tr_checkpoint) :: cp
    type(tr_layout) :: rows, columns
    real(real64), allocatable, target :: saved(:,:), loaded(:,:), wide(:,:), plain(:,:)
    integer, target :: step
    logical, target :: flag
    logical :: found
    integer :: lo(2), hi(2), save
    call rows%block([nx, ny], halo=[2, 1], grid=[1, 0])
    call columns%block([nx, ny], halo=[1, 2], grid=[0, 1])
    call fill(rows, saved)
    call cp%create(name_of('state'), keep=2)
    call cp%begin(TR_LOAD, found=found)
    call check(.not. found, 'nothing is found at first')
    call cp%end()
    call check(cp%status() == TR_SAVE_NONE, 'nothing was saved')
    step = 7 + rank
    flag = .true.
    do save = 1, 3
      call cp%begin(TR_SAVE)
      call cp%item('step', step)
      call cp%item('flag', flag)
      call cp%item('t', saved, rows)
      call cp%end()
      saved = -5
      if (save < 3) call fill(rows, saved)
    end do
    call cp%wait()
    call check(cp%status() == TR_SAVE_COMMITTED, 'the save is committed')
    call check(cp%generation() == 3_int64, 'three generations')
    call cp%close()

    call cp%create(name_of('state'))
    lo = columns%own_lower()
    hi = columns%own_upper()
    call fill(columns, loaded)
    loaded = 7
    allocate (plain(lo(1):hi(1), lo(2):hi(2)), wide(2*lo(1):2*hi(1)+1, lo(2):hi(2)))
    plain = 0
    wide = 7
    step = 0
    flag = .false.
    call cp%begin(TR_LOAD, found)
    call check(found, 'the save is found')
    call cp%item('t', loaded, columns)
    call cp%item('flag', flag)
    call cp%item('step', step)
    call cp%end()
    call check(step == 7 .and. flag, 'the first rank''s scalars are everybody''s')
    call check_field(columns, loaded, 7.0_real64, 'the array with halo')
    call load_one(plain)
    call check_field(columns, plain, 0.0_real64, 'the array without halo')
    call load_one(wide(2*lo(1)::2, hi(2):lo(2):-1))
    plain = wide(2*lo(1)::2, hi(2):lo(2):-1)
    call check_field(columns, plain, 0.0_real64, 'the array with strides')
    call check(all(nint(wide(2*lo(1)+1::2, :)) == 7), 'what lies between the strides')
    call cp%close()
    call rows%free()
    call columns%free()
    call remove('state')
  contains
    subroutine load_one(array)
      real(real64), intent(inout), target, asynchronous :: array(:,:)
      call cp%begin(TR_LOAD)
      call cp%item('step', step)
      call cp%item('flag', flag)
      call cp%item('t', array, columns)
      call cp%end()
    end subroutine
  end subroutine

  ! Every kind comes back; ranks may own nothing.
  subroutine kinds_are_kept()
    type(tr_checkpoint) :: cp
    type(tr_layout) :: grid
    integer(int8), allocatable, target :: i1(:)
    integer(int16), allocatable, target :: i2(:)
    integer(int32), allocatable, target :: i4(:)
    integer(int64), allocatable, target :: i8(:)
    real(real32), allocatable, target :: r4(:)
    complex(real32), allocatable, target :: c4(:)
    complex(real64), allocatable, target :: c8(:)
    logical, allocatable, target :: l(:)
    integer :: lo(1), hi(1), i
    call grid%box([1 + 5 * min(rank, 1)], [merge(5, 5 * min(rank, 1), rank == 0) + merge(2, 0, rank == 1)], &
                  [merge(5, 7, ranks == 1)])
    lo = grid%lower()
    hi = grid%upper()
    i1 = [(int(i, int8), i = lo(1), hi(1))]
    i2 = [(int(300 * i, int16), i = lo(1), hi(1))]
    i4 = [(70001_int32 * int(i, int32), i = lo(1), hi(1))]
    i8 = [(5000000001_int64 * i, i = lo(1), hi(1))]
    r4 = [(real(i, real32) / 8, i = lo(1), hi(1))]
    c4 = [(cmplx(i, -i, real32), i = lo(1), hi(1))]
    c8 = [(cmplx(i, -i, real64), i = lo(1), hi(1))]
    l = [(mod(i, 3) == 2, i = lo(1), hi(1))]
    call cp%create(name_of('kinds'), async=.false.)
    call cp%begin(TR_SAVE)
    call state()
    call cp%end()
    i1 = 0
    i2 = 0
    i4 = 0
    i8 = 0
    r4 = 0
    c4 = 0
    c8 = 0
    l = .not. l
    call cp%begin(TR_LOAD)
    call state()
    call cp%end()
    call cp%close()
    call check(all([(i1(i - lo(1) + 1) == i, i = lo(1), hi(1))]), 'int8')
    call check(all([(i2(i - lo(1) + 1) == 300 * i, i = lo(1), hi(1))]), 'int16')
    call check(all([(i4(i - lo(1) + 1) == 70001 * i, i = lo(1), hi(1))]), 'int32')
    call check(all([(i8(i - lo(1) + 1) == 5000000001_int64 * i, i = lo(1), hi(1))]), 'int64')
    call check(all([(nint(8 * r4(i - lo(1) + 1)) == i, i = lo(1), hi(1))]), 'real32')
    call check(all([(nint(-aimag(c4(i - lo(1) + 1))) == i, i = lo(1), hi(1))]), 'complex of real32')
    call check(all([(nint(-aimag(c8(i - lo(1) + 1))) == i, i = lo(1), hi(1))]), 'complex of real64')
    call check(all([(l(i - lo(1) + 1) .eqv. mod(i, 3) == 2, i = lo(1), hi(1))]), 'logical')
    call grid%free()
    call remove('kinds')
  contains
    subroutine state()
      call cp%item('i1', i1, grid)
      call cp%item('i2', i2, grid)
      call cp%item('i4', i4, grid)
      call cp%item('i8', i8, grid)
      call cp%item('r4', r4, grid)
      call cp%item('c4', c4, grid)
      call cp%item('c8', c8, grid)
      call cp%item('l', l, grid)
    end subroutine
  end subroutine

  subroutine sections_and_registered_variables()
    type(tr_checkpoint) :: cp
    type(tr_layout) :: grid
    real(real64), allocatable, target :: field(:,:)
    integer, target :: step
    character(80) :: files(2)
    integer :: i, j, ierr, lo(2), hi(2)
    logical :: found, right
    call grid%block([nx, ny], halo=[1, 1])
    call fill(grid, field)
    call cp%create(name_of('section'))
    call cp%begin(TR_SAVE)
    call cp%item('t', field, grid, tr_section([2, 3], [nx, 8], [3, 1]))
    call cp%end()
    field = 7
    call cp%begin(TR_LOAD)
    call cp%item('t', field, grid, tr_section([2, 3], [nx, 8], [3, 1]))
    call cp%end()
    right = .true.
    lo = grid%own_lower()
    hi = grid%own_upper()
    do j = lo(2), hi(2)
      do i = lo(1), hi(1)
        right = right .and. nint(field(i, j)) == merge(value(i, j), 7, mod(i, 3) == 2 .and. j >= 3 .and. j <= 8)
      end do
    end do
    call check(right, 'the section, and nothing else')
    call cp%begin(TR_LOAD)
    call cp%item('t', field(:ubound(field, 1) - 1, :), grid, tr_section([2, 3], [nx, 8], [3, 1]))
    call cp%end(ierr)
    call check(ierr == TR_ERR_ARGUMENT .and. index(tr_error(), 'contiguous') > 0, 'sections need the whole array')
    call cp%close()
    call remove('section')

    call fill(grid, field)
    step = 3
    call cp%register('step', step)
    call cp%register('t', field, grid)
    files(1) = name_of('older.0')
    files(2) = name_of('older.1')
    call cp%create_registered(name_of('older'), files=files)
    call cp%load(found)
    call check(.not. found, 'nothing is found at first')
    call cp%save(async=.true.)
    call cp%save()
    field = 7
    step = 0
    call cp%load(found)
    call check(found .and. step == 3, 'the registered scalar')
    call check_field(grid, field, 7.0_real64, 'the registered array')
    call cp%close()
    call grid%free()
    call remove('older')
  end subroutine

end module checkpoint_run

program checkpoint_test
  use checkpoint_run
  implicit none
  integer(int32) :: me, all, mine, sum
  call MPI_Init()
  call tr_init(MPI_COMM_WORLD, model)
  if (model /= MPI_COMM_NULL) then
    call MPI_Comm_rank(model, me)
    call MPI_Comm_size(model, all)
    rank = me
    ranks = all
    write (run, '("fortran_checkpoint_",i0,"_",i0)') ranks, kind(1)
    call memory_and_layout_do_not_matter()
    call kinds_are_kept()
    call sections_and_registered_variables()
  end if
  call tr_finalize()
  mine = int(failures, int32)
  call MPI_Allreduce(mine, sum, 1_int32, MPI_INTEGER4, MPI_SUM, MPI_COMM_WORLD)
  call MPI_Finalize()
  if (sum > 0) error stop 1
end program checkpoint_test
