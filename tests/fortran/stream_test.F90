! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! Raw streams written from Fortran arrays: whatever the layout, the kind and the shape of the memory, the file
! holds the bytes of the global array in array element order, record by record.
module stream_cases
  use mpi_f08
  use, intrinsic :: iso_c_binding, only: c_ptr, c_loc
  use, intrinsic :: iso_fortran_env, only: int8, int16, int32, int64, real32, real64
  use checks
  use tailrace
  implicit none
  integer, parameter :: nx = 13, ny = 9, nlev = 3
  character(*), parameter :: base = '2026-03-01T00:00Z'
  integer(int8), parameter :: byte(1) = [0_int8]
  type(MPI_Comm) :: model
  character(40) :: run = ''

contains

  ! Returns the value of the field at a global index: different everywhere, exact in every kind but int8.
  elemental integer function value(i, j, k)
    integer, intent(in) :: i, j, k
    value = i + nx*(j - 1) + nx*ny*(k - 1)
  end function

  function whole() result(field)
    integer :: field(nx, ny, nlev), i, j, k
    do k = 1, nlev
      do j = 1, ny
        do i = 1, nx
          field(i, j, k) = value(i, j, k)
        end do
      end do
    end do
  end function

  function file_of(case) result(name)
    character(*), intent(in) :: case
    character(:), allocatable :: name
    name = trim(run)//'_'//case//'.raw'
  end function

  subroutine open_stream(stream, case)
    type(tr_stream), intent(out) :: stream
    character(*), intent(in) :: case
    call stream%create(file_of(case), base=base, format='raw', existing='replace')
  end subroutine

  ! Collective. Expects the file to hold exactly these bytes, and removes it.
  subroutine check_file(case, expected)
    character(*), intent(in) :: case
    integer(int8), intent(in) :: expected(:)
    integer(int8), allocatable :: got(:)
    integer :: unit, status
    integer(int64) :: bytes
    call MPI_Barrier(model)
    if (rank == 0) then
      open (newunit=unit, file=file_of(case), access='stream', form='unformatted', status='old', &
            iostat=status)
      call check(status == 0, case//': the file is there')
      if (status == 0) then
        inquire (unit, size=bytes)
        call check(bytes == size(expected), case//': the size of the file')
        if (bytes == size(expected)) then
          allocate (got(bytes))
          read (unit) got
          call check(all(got == expected), case//': the bytes of the file')
        end if
        close (unit, status='delete')
      end if
      open (newunit=unit, file=file_of(case)//'.trx', status='old', iostat=status)
      if (status == 0) close (unit, status='delete')
    end if
    call MPI_Barrier(model)
  end subroutine

  ! Interior arrays, arrays with halo, and interior sections of wider arrays give the same file.
  subroutine memory_shapes_do_not_matter()
    type(tr_layout) :: grid
    type(tr_stream) :: stream
    real(real32), allocatable :: halo(:,:,:), interior(:,:,:), wide(:,:,:)
    integer :: lo(2), hi(2), i, j, k
    call grid%block([nx, ny], halo=[2, 1])
    lo = grid%own_lower()
    hi = grid%own_upper()
    call check(all(grid%lower() == lo - [2, 1]), 'lower is own_lower less the halo')
    call check(all(grid%upper() == hi + [2, 1]), 'upper is own_upper and the halo')
    call check(grid%count() == product(int(hi - lo + 1, int64)), 'count')
    allocate (halo(lo(1)-2:hi(1)+2, lo(2)-1:hi(2)+1, nlev), interior(lo(1):hi(1), lo(2):hi(2), nlev))
    allocate (wide(2*lo(1):2*hi(1)+1, lo(2):hi(2), 2*nlev))
    halo = -1
    wide = -2
    do k = 1, nlev
      do j = lo(2), hi(2)
        do i = lo(1), hi(1)
          halo(i, j, k) = value(i, j, k)
          interior(i, j, k) = value(i, j, k)
          wide(2*i, hi(2) + lo(2) - j, 2*k) = value(i, j, k)
        end do
      end do
    end do
    call open_stream(stream, 'shapes')
    call stream%define('h', grid, tr_hybrid(nlev), type=TR_F32)
    call stream%define('s', grid, tr_surface(), type=TR_F32)
    call stream%begin(lead=0)
    call stream%put('h', halo)
    call stream%put('s', halo(:, :, 2))
    call stream%end()
    call stream%begin(lead=3600)
    call stream%put('h', interior)
    ! An expression: the compiler's temporary is gone before the step ends.
    call stream%put('s', 2*interior(:, :, 2) - interior(:, :, 2))
    call stream%end()
    call stream%begin(lead=7200_int64)
    call stream%put('h', wide(2*lo(1)::2, hi(2):lo(2):-1, 2::2))
    call stream%put('s', wide(2*lo(1)::2, hi(2):lo(2):-1, 4))
    call stream%end()
    call stream%wait(TR_DURABLE)
    call stream%close()
    call grid%free()
    call check_file('shapes', three_times(transfer([real(whole(), real32), real(level(2), real32)], byte)))
  end subroutine

  ! Files have a section of the global array, and ranks put theirs as ever: with a halo, or as any section of a
  ! wider one.
  subroutine sections_are_cut_out()
    type(tr_layout) :: grid
    type(tr_stream) :: stream
    real(real32), allocatable :: halo(:,:,:), wide(:,:,:)
    integer :: lo(2), hi(2), i, j, k, ierr, all(nx, ny, nlev)
    call grid%block([nx, ny], halo=[2, 1])
    lo = grid%own_lower()
    hi = grid%own_upper()
    allocate (halo(lo(1)-2:hi(1)+2, lo(2)-1:hi(2)+1, nlev), source=-1.0)
    allocate (wide(2*lo(1):2*hi(1)+1, lo(2):hi(2), nlev), source=-2.0)
    do k = 1, nlev
      do j = lo(2), hi(2)
        do i = lo(1), hi(1)
          halo(i, j, k) = value(i, j, k)
          wide(2*i, hi(2) + lo(2) - j, k) = value(i, j, k)
        end do
      end do
    end do
    all = whole()
    call open_stream(stream, 'sections')
    call stream%define('h', grid, tr_hybrid(nlev), type=TR_F32, section=tr_section([2, 1], [nx, ny], [3, 2]))
    call stream%define('c', grid, tr_hybrid(nlev), type=TR_F32, section=tr_section([nx, 1], [nx, 1]))
    call stream%define('e', grid, type=TR_F32, section=tr_section([1, 1], [nx + 1, ny]), ierr=ierr)
    call agreed(ierr, 'stops beyond its 13 elements')
    call stream%define('e', grid, type=TR_F32, section=tr_section([0, 1], [nx, ny]), ierr=ierr)
    call agreed(ierr, 'below 1')
    call stream%define('e', grid, type=TR_F32, section=tr_section([1], [nx]), ierr=ierr)
    call agreed(ierr, 'the layout has 2 dimensions (13 x 9')
    call stream%begin(lead=0)
    call stream%put('h', halo)
    call stream%put('c', halo(lo(1):hi(1), lo(2):hi(2), :))
    call stream%end()
    call stream%begin(lead=3600)
    call stream%put('h', wide(2*lo(1)::2, hi(2):lo(2):-1, :))
    call stream%put('c', wide(2*lo(1)::2, hi(2):lo(2):-1, :))
    call stream%end()
    call stream%close()
    associate (once => [transfer(real(all(2:nx:3, 1:ny:2, :), real32), byte), transfer(real(all(nx, 1, :), real32), byte)])
      call check_file('sections', [once, once])
    end associate
  end subroutine

  function three_times(bytes) result(all)
    integer(int8), intent(in) :: bytes(:)
    integer(int8) :: all(3*size(bytes))
    all = [bytes, bytes, bytes]
  end function

  function level(k) result(field)
    integer, intent(in) :: k
    integer :: field(nx, ny), all(nx, ny, nlev)
    all = whole()
    field = all(:, :, k)
  end function

  ! Every kind of number is written as it is.
  subroutine kinds_are_kept()
    type(tr_layout) :: grid
    type(tr_stream) :: stream
    integer, allocatable :: own(:,:)
    integer :: lo(2), hi(2), all(nx, ny)
    call grid%block([nx, ny], grid=[1, 0])
    lo = grid%lower()
    hi = grid%upper()
    all = level(1)
    own = all(lo(1):hi(1), lo(2):hi(2))
    call open_stream(stream, 'kinds')
    call stream%define('i1', grid, type=TR_I8)
    call stream%define('i2', grid, type=TR_I16)
    call stream%define('i4', grid, type=TR_I32)
    call stream%define('i8', grid, type=TR_I64)
    call stream%define('r8', grid, type=TR_F64)
    call stream%define('c4', grid, type=TR_C64)
    call stream%define('c8', grid, type=TR_C128)
    call stream%begin(lead=0)
    call put_kinds(own)
    call stream%end()
    call stream%close()
    call check_file('kinds', [transfer(int(all, int8), byte), transfer(int(all, int16), byte), &
                              transfer(int(all, int32), byte), transfer(int(all, int64), byte), &
                              transfer(real(all, real64) / 3, byte), &
                              transfer(cmplx(all, -all, real32), byte), &
                              transfer(cmplx(all, -all, real64), byte)])
  contains
    ! They are variables, not expressions: without a server they are read at end, so they outlive this
    ! procedure.
    subroutine put_kinds(own)
      integer, intent(in) :: own(:,:)
      integer(int8), allocatable, save :: i1(:,:)
      integer(int16), allocatable, save :: i2(:,:)
      integer(int32), allocatable, save :: i4(:,:)
      integer(int64), allocatable, save :: i8(:,:)
      real(real64), allocatable, save :: r8(:,:)
      complex(real32), allocatable, save :: c4(:,:)
      complex(real64), allocatable, save :: c8(:,:)
      i1 = int(own, int8)
      i2 = int(own, int16)
      i4 = int(own, int32)
      i8 = int(own, int64)
      r8 = real(own, real64) / 3
      c4 = cmplx(own, -own, real32)
      c8 = cmplx(own, -own, real64)
      call stream%put('i1', i1)
      call stream%put('i2', i2)
      call stream%put('i4', i4)
      call stream%put('i8', i8)
      call stream%put('r8', r8)
      call stream%put('c4', c4)
      call stream%put('c8', c8)
    end subroutine
  end subroutine

  ! The level dimension may lie anywhere in memory: (i,k,j) and (k,i,j).
  subroutine levels_lie_anywhere()
    type(tr_layout) :: grid
    type(tr_stream) :: stream
    real(real64), allocatable :: ikj(:,:,:), kij(:,:,:)
    integer :: lo(2), hi(2), i, j, k
    call grid%block([nx, ny], halo=[1, 0])
    lo = grid%lower()
    hi = grid%upper()
    allocate (ikj(lo(1):hi(1), nlev, lo(2):hi(2)), kij(nlev, lo(1):hi(1), lo(2):hi(2)))
    do k = 1, nlev
      do j = lo(2), hi(2)
        do i = lo(1), hi(1)
          ikj(i, k, j) = value(i, j, k)
          kij(k, i, j) = value(i, j, k)
        end do
      end do
    end do
    call open_stream(stream, 'levels')
    call stream%define('ikj', grid, tr_hybrid(nlev), type=TR_F64, level_dim=2)
    call stream%define('kij', grid, tr_hybrid(nlev), type=TR_F64, level_dim=1)
    call stream%begin(lead=0)
    call stream%put('ikj', ikj)
    call stream%put('kij', kij)
    call stream%end()
    call stream%close()
    call check_file('levels', [transfer(real(whole(), real64), byte), transfer(real(whole(), real64), byte)])
  end subroutine

  ! A list of elements is one dimension, whatever the layout has: (element, level) and (level, element).
  subroutine levels_of_lists_lie_anywhere()
    type(tr_layout) :: grid
    integer :: i, j
    call grid%indexed([nx, ny], [(i, i = nx*ny - rank, 1, -ranks)])
    call write_lists('indexed_levels', grid, [(i, i = nx*ny - rank, 1, -ranks)])
    call grid%callback([nx, ny], dealt)
    call write_lists('callback_levels', grid, [(i, i = 1 + rank, nx*ny, ranks)])
    call grid%block_cyclic([nx, ny], [nx, 2], grid=[1, ranks])
    call write_lists('cyclic_levels', grid, [((i + nx*(j - 1), i = 1, merge(nx, 0, mod((j - 1) / 2, ranks) == rank)), &
                                              j = 1, ny)])
  end subroutine

  subroutine write_lists(case, grid, indices)
    character(*), intent(in) :: case
    type(tr_layout), intent(in) :: grid
    integer, intent(in) :: indices(:)
    type(tr_stream) :: stream
    integer, allocatable :: nk(:,:), kn(:,:)
    integer :: k, ierr
    allocate (nk(size(indices), nlev), kn(nlev, size(indices)))
    do k = 1, nlev
      nk(:, k) = indices + nx*ny*(k - 1)
      kn(k, :) = indices + nx*ny*(k - 1)
    end do
    call open_stream(stream, case)
    call stream%define('nk', grid, tr_hybrid(nlev), type=TR_I32, level_dim=2)
    call stream%define('kn', grid, tr_hybrid(nlev), type=TR_I32, level_dim=1)
    do k = 0, 3, 3
      call stream%define('no', grid, tr_hybrid(nlev), type=TR_I32, level_dim=k, ierr=ierr)
      call agreed(ierr, 'expected 1 (fastest) to 2 (slowest)')
    end do
    call stream%begin(lead=0)
    call stream%put('nk', nk)
    call stream%put('kn', kn)
    call stream%end()
    call stream%close()
    call check_file(case, [transfer(whole(), byte), transfer(whole(), byte)])
  end subroutine

  ! An error in a layout is told as the program has written it.
  subroutine layouts_are_told_in_fortrans_order()
    type(tr_layout) :: grid
    integer :: ierr
    call grid%weighted([nx, ny], [1, ranks + 1], [1.0, spread(2.0, 1, ranks + 1)], ierr=ierr)
    call agreed(ierr, 'tr_layout_weighted(13x9, halo none, grid 1x')
    call agreed(ierr, ', weights 1 2 2')
  end subroutine

  ! NPROMA blocks (nproma, level, block): own elements in array element order, the last block short.
  subroutine nproma_blocks_are_unpacked()
    integer, parameter :: nproma = 4
    type(tr_layout) :: grid
    type(tr_stream) :: stream
    real(real32), allocatable :: blocks(:,:,:)
    integer :: lo(2), hi(2), i, j, k, n
    call grid%block([nx, ny])
    lo = grid%lower()
    hi = grid%upper()
    n = int(grid%count())
    allocate (blocks(nproma, nlev, (n + nproma - 1) / nproma))
    blocks = -1
    n = 0
    do j = lo(2), hi(2)
      do i = lo(1), hi(1)
        do k = 1, nlev
          blocks(mod(n, nproma) + 1, k, n / nproma + 1) = value(i, j, k)
        end do
        n = n + 1
      end do
    end do
    call open_stream(stream, 'nproma')
    call stream%define('f', grid, tr_hybrid(nlev), type=TR_F32, nproma=nproma)
    call stream%begin(lead=0)
    call stream%put('f', blocks)
    call stream%end()
    call stream%close()
    call check_file('nproma', transfer(real(whole(), real32), byte))
  end subroutine

  ! One field, put from any layout's memory, is one and the same file.
  subroutine layouts_do_not_matter()
    type(tr_layout) :: grid
    integer, allocatable :: rows(:)
    integer :: i, j, lo, hi
    lo = ny * rank / ranks + 1
    hi = ny * (rank + 1) / ranks
    call grid%box([1, lo], [nx, hi], [nx, ny])
    call write_box('box', grid)
    call grid%weighted([nx, ny], [1, ranks], [1.0, (real(i), i = 1, ranks)])
    call write_box('weighted', grid)
    call grid%replicated([nx, ny])
    call write_box('replicated', grid)
    ! The elements are dealt out like cards, each rank's share backwards.
    rows = [(i, i = nx*ny - rank, 1, -ranks)]
    call grid%indexed([nx, ny], rows)
    call write_indices('indexed', grid, rows)
    rows = [(i, i = 1 + rank, nx*ny, ranks)]
    call grid%callback([nx, ny], dealt)
    call write_indices('callback', grid, rows)
    ! Pairs of rows dealt out.
    rows = [((i + nx*(j - 1), i = 1, merge(nx, 0, mod((j - 1) / 2, ranks) == rank)), j = 1, ny)]
    call grid%block_cyclic([nx, ny], [nx, 2], grid=[1, ranks])
    call write_indices('cyclic', grid, rows)
  end subroutine

  integer function dealt(index) result(owner)
    integer(int64), intent(in) :: index(:)
    owner = int(mod(index(1) - 1 + nx*(index(2) - 1), int(ranks, int64)))
  end function

  subroutine write_box(case, grid)
    character(*), intent(in) :: case
    type(tr_layout), intent(in) :: grid
    integer :: lo(2), hi(2), all(nx, ny)
    integer, allocatable :: own(:,:)
    type(tr_stream) :: stream
    lo = grid%lower()
    hi = grid%upper()
    all = level(1)
    own = all(lo(1):hi(1), lo(2):hi(2))
    call open_stream(stream, case)
    call stream%define('f', grid, type=TR_I32)
    call stream%begin(lead=0)
    call stream%put('f', own)
    call stream%end()
    call stream%close()
    call check_file(case, transfer(all, byte))
  end subroutine

  subroutine write_indices(case, grid, indices)
    character(*), intent(in) :: case
    type(tr_layout), intent(in) :: grid
    integer, intent(in) :: indices(:)
    integer, allocatable :: own(:)
    type(tr_stream) :: stream
    own = indices
    call check(grid%count() == size(indices), case//': count')
    call open_stream(stream, case)
    call stream%define('f', grid, type=TR_I32)
    call stream%begin(lead=0)
    call stream%put('f', own)
    call stream%end()
    call stream%close()
    call check_file(case, transfer(level(1), byte))
  end subroutine

  ! Texts lie as they are in memory, also in sections, and come back with blanks at their ends.
  subroutine texts_are_read()
    type(tr_layout) :: grid, one
    type(tr_stream) :: out, in
    character(6), parameter :: names(4) = [character(6) :: 'Oslo', '', 'abcdef', 'a b']
    character(6), allocatable :: own(:), got(:), spaced(:)
    character(6) :: note
    integer :: lo(1), hi(1), i, ierr
    call grid%block([4])
    call one%replicated([integer ::])
    lo = grid%own_lower()
    hi = grid%own_upper()
    own = names(lo(1):hi(1))
    allocate (spaced(2*size(own)))
    spaced = 'x'
    spaced(1::2) = own
    call open_stream(out, 'texts')
    call out%define('name', grid, type=tr_text(6))
    call out%define('spaced', grid, type=tr_text(6))
    call out%define('note', one, type=tr_text(6))
    call out%define('mean', grid, type=tr_text(6), operation='mean', ierr=ierr)
    call agreed(ierr, 'its elements are texts')
    call out%begin(lead=0)
    call out%put('name', own)
    call out%put('spaced', spaced(1::2))
    call out%put('note', 'hello ')
    call out%end()
    call out%close()
    call in%open(file_of('texts'))
    call in%define('name', grid, type=tr_text(6))
    call in%define('spaced', grid, type=tr_text(6))
    call in%define('note', one, type=tr_text(6))
    allocate (got, mold=own)
    got = '?'
    spaced = 'x'
    call in%begin(lead=0)
    call in%get('name', got)
    call in%get('spaced', spaced(2::2))
    call in%get('note', note)
    call in%end()
    call check(all(got == own), 'texts')
    call check(all(spaced(2::2) == own) .and. all(spaced(1::2) == 'x'), 'texts in a section')
    call check(note == 'hello' .and. note(6:6) == ' ', 'a text of a step')
    do i = 1, size(got)
      call check(index(got(i), achar(0)) == 0, 'blanks behind texts')
    end do
    call in%close()
    call remove_file('texts')
  end subroutine

  ! A stream gives back what another one has written: with the halo where it lies inside of the grid, levels in the
  ! order asked for, another kind, steps in any order, and any section of an array.
  subroutine written_is_read()
    type(tr_layout) :: grid
    type(tr_stream) :: out, in
    real(real32), allocatable :: field(:,:,:), section(:,:,:)
    real(real64), allocatable :: got(:,:,:)
    integer(int16), allocatable :: counts(:,:), again(:,:)
    integer(int64), allocatable :: long(:,:)
    integer :: lo(2), hi(2), own_lo(2), own_hi(2), i, j, k, step, ierr
    call grid%block([nx, ny], halo=[2, 1])
    lo = grid%lower()
    hi = grid%upper()
    own_lo = grid%own_lower()
    own_hi = grid%own_upper()
    allocate (field(lo(1):hi(1), lo(2):hi(2), nlev), section(2*own_lo(1):2*own_hi(1)+1, own_lo(2):own_hi(2), 2))
    allocate (got(lo(1):hi(1), lo(2):hi(2), 2))
    call open_stream(out, 'read')
    call out%define('h', grid, tr_hybrid(nlev), type=TR_F32)
    call out%define('counts', grid, type=TR_I16)
    allocate (counts(lo(1):hi(1), lo(2):hi(2)))
    do step = 0, 2
      do k = 1, nlev
        do j = lo(2), hi(2)
          do i = lo(1), hi(1)
            field(i, j, k) = 1000*step + value(i, j, k)
          end do
        end do
      end do
      call out%begin(lead=3600*step)
      call out%put('h', field)
      do j = own_lo(2), own_hi(2)
        do i = own_lo(1), own_hi(1)
          counts(i, j) = int(-1000*step - value(i, j, 1), int16)
        end do
      end do
      call out%put('counts', counts)
      call out%end()
    end do
    call out%close()

    call in%open(file_of('read'), base=base, prefetch=1, between='linear')
    call in%define('counts', grid, type=TR_I16, ierr=ierr)
    call agreed(ierr, 'between=linear')
    call in%define('h', grid, tr_hybrid(nlev, levels=[3, 1]), type=TR_F64)
    got = -1
    call in%begin(lead=3600)
    call in%get('h', got)
    call in%end()
    call check_box('with halo', got, 1000)
    got = -1
    call in%begin(lead=5400)
    call in%get_address('h', c_loc_of(got))
    call in%end()
    call check_box('between two steps', got, 1500)
    call in%begin(lead=9000)
    call in%get('h', got)
    call in%end(ierr)
    call agreed(ierr, '9000')
    got = -1
    call in%seek(lead=0_int64)
    call in%begin(lead=0)
    call in%get('h', got)
    call in%end()
    call check_box('from the begin again', got, 0)
    call in%close()

    call in%open(file_of('read'))
    call in%define('h', grid, tr_hybrid(nlev, levels=[3, 1]), type=TR_F32)
    call in%define('counts', grid, type=TR_I16)
    call in%define('long', grid, type=TR_I64, name_in_file='counts')
    allocate (again, mold=counts)
    allocate (long(lo(1):hi(1), lo(2):hi(2)))
    section = -1
    call in%begin(lead=7200)
    call in%get('h', section(2*own_lo(1):2*own_hi(1):2, own_hi(2):own_lo(2):-1, :))
    call in%get('counts', again)
    call in%get('long', long)
    call in%end()
    associate (own => counts(own_lo(1):own_hi(1), own_lo(2):own_hi(2)))
      call check(all(again(own_lo(1):own_hi(1), own_lo(2):own_hi(2)) == own), 'integers of 16 bits')
      call check(all(long(own_lo(1):own_hi(1), own_lo(2):own_hi(2)) == own), 'integers of 16 bits, read as 64')
    end associate
    do j = own_lo(2), own_hi(2)
      do i = own_lo(1), own_hi(1)
        call check(nint(section(2*i, own_lo(2) + own_hi(2) - j, 1)) == 2000 + value(i, j, 3), 'a section, level 3')
        call check(nint(section(2*i, own_lo(2) + own_hi(2) - j, 2)) == 2000 + value(i, j, 1), 'a section, level 1')
        call check(all(nint(section(2*i + 1, j, :)) == -1), 'what lies between the elements of a section')
      end do
    end do
    call in%close()
    call remove_file('read')

  contains

    ! Outside of the grid nothing is stored.
    subroutine check_box(what, got, expected)
      character(*), intent(in) :: what
      real(real64), intent(in) :: got(lo(1):, lo(2):, :)
      integer, intent(in) :: expected
      do j = lo(2), hi(2)
        do i = lo(1), hi(1)
          if (i < 1 .or. i > nx .or. j < 1 .or. j > ny) then
            call check(all(nint(got(i, j, :)) == -1), what//': outside of the grid')
          else
            call check(nint(got(i, j, 1)) == expected + value(i, j, 3), what//': level 3')
            call check(nint(got(i, j, 2)) == expected + value(i, j, 1), what//': level 1')
          end if
        end do
      end do
    end subroutine

  end subroutine

  type(c_ptr) function c_loc_of(array)
    real(real64), intent(in), target, contiguous :: array(:,:,:)
    c_loc_of = c_loc(array)
  end function

  subroutine remove_file(case)
    character(*), intent(in) :: case
    integer :: unit, status
    call MPI_Barrier(model)
    if (rank /= 0) return
    open (newunit=unit, file=file_of(case), status='old', iostat=status)
    call check(status == 0, case//': the file is there')
    if (status == 0) close (unit, status='delete')
    open (newunit=unit, file=file_of(case)//'.trx', status='old', iostat=status)
    if (status == 0) close (unit, status='delete')
  end subroutine

  ! An array of another kind or shape is an error that names both, with one verdict on all ranks; the step is
  ! dropped and the stream goes on.
  subroutine wrong_arrays_are_refused()
    type(tr_layout) :: grid
    type(tr_stream) :: stream
    real(real64), allocatable :: double(:,:)
    real(real32), allocatable :: single(:,:)
    integer :: lo(2), hi(2), ierr
    call grid%block([nx, ny], halo=[1, 1])
    lo = grid%own_lower()
    hi = grid%own_upper()
    allocate (double(lo(1):hi(1), lo(2):hi(2)), single(lo(1):hi(1) + 1, lo(2):hi(2)))
    double = 0
    single = 0
    call open_stream(stream, 'wrong')
    call stream%define('f', grid, type=TR_F32)
    call stream%begin(lead=0)
    if (rank == ranks - 1) then
      call stream%put('f', double)
    else
      call stream%put('f', single(:hi(1), :))
    end if
    call stream%end(ierr)
    if (ierr == TR_OK) call stream%wait(TR_DURABLE, ierr)
    call agreed(ierr, 'float64')
    call stream%begin(lead=3600)
    call stream%put('f', single)
    call stream%end(ierr)
    if (ierr == TR_OK) call stream%wait(TR_DURABLE, ierr)
    call agreed(ierr, 'fastest dimension first')
    single = 7
    call stream%begin(lead=7200)
    call stream%put('f', single(:hi(1), :))
    call stream%end()
    call stream%close()
    call check_file('wrong', transfer(spread(7.0_real32, 1, nx*ny), byte))
  end subroutine

  ! Expects the verdict to be an error, the same on all ranks, with `part` in its text.
  subroutine agreed(ierr, part)
    integer, intent(in) :: ierr
    character(*), intent(in) :: part
    character(:), allocatable :: text
    integer :: least, most
    text = tr_error()
    call MPI_Allreduce(ierr, least, 1, MPI_INTEGER, MPI_MIN, model)
    call MPI_Allreduce(ierr, most, 1, MPI_INTEGER, MPI_MAX, model)
    call check(least == most, 'one verdict on all ranks')
    call check(ierr /= TR_OK, 'the wrong array is an error')
    call check(index(text, part) > 0, 'the text names '//part//'; got '//text)
  end subroutine

end module stream_cases

program stream_test
  use stream_cases
  implicit none
  character(8) :: servers
  integer :: all_failures
  call MPI_Init()
  call tr_init(MPI_COMM_WORLD, model)
  if (model /= MPI_COMM_NULL) then
    call MPI_Comm_rank(model, rank)
    call MPI_Comm_size(model, ranks)
    call get_environment_variable('TAILRACE_SERVERS', servers)
    write (run, '("fortran_",i0,"_",a)') ranks, trim(servers)
    call memory_shapes_do_not_matter()
    call sections_are_cut_out()
    call kinds_are_kept()
    call levels_lie_anywhere()
    call levels_of_lists_lie_anywhere()
    call layouts_are_told_in_fortrans_order()
    call nproma_blocks_are_unpacked()
    call layouts_do_not_matter()
    call texts_are_read()
    call written_is_read()
    call wrong_arrays_are_refused()
  end if
  call tr_finalize()
  call MPI_Allreduce(failures, all_failures, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  call MPI_Finalize()
  if (all_failures > 0) error stop 1
end program stream_test
