! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! Unformatted collective files: the bytes are those that this compiler writes, and the compiler's files can be
! read. CMakeLists.txt runs the same cases in every mode.
module file_cases
  use file_fixture
  implicit none

contains

  ! What the compiler writes and reads.

  ! Writes the records of the first cases, by the compiler.
  subroutine write_theirs(case, access, convert)
    character(*), intent(in) :: case, access, convert
    integer :: u
    real(real64) :: a(nx, ny)
    if (rank == 0) then
      a = whole()
      open (newunit=u, file=theirs(case), access=access, form='unformatted', convert=convert, status='replace')
      write (u) 42
      write (u) a
      write (u) 7_int8, 3.5_real32, 'a text', (1.0_real64, -2.0_real64), .true., 12345678901_int64
      write (u)
      write (u) nx, a(3:nx - 2, 2:ny - 1), ny, a(1:nx:3, ny:ny)
      write (u) [1.5_real32, 2.5_real32, -3.5_real32], [character(3) :: 'abc', 'de']
      write (u) a(5:4, :)
      write (u) a, a(2:2, :), 99_int16
      close (u)
    end if
    call barrier()
  end subroutine

  subroutine write_ours(case, access, convert, grid)
    character(*), intent(in) :: case, access, convert
    type(tr_layout), intent(in) :: grid
    type(tr_file) :: f
    real(real64), allocatable :: a(:,:)
    integer :: n
    call fill(grid, a)
    n = 42
    if (rank > 0) n = -1  ! the I/O rank's value counts
    call open_ours(f, case, access, convert, status='replace')
    call f%write(n)
    call f%write(a, grid)
    call f%begin_write()
    call f%write(7_int8)
    call f%write(3.5_real32)
    call f%write('a text')
    call f%write((1.0_real64, -2.0_real64))
    call f%write(.true.)
    call f%write(12345678901_int64)
    call f%end()
    call f%begin_write()
    call f%end()
    call f%begin_write()
    call f%write(nx)
    call f%write(a, grid, tr_section([3, 2], [nx - 2, ny - 1]))
    call f%write(ny)
    call f%write(a, grid, tr_section([1, ny], [nx, ny], [3, 1]))
    call f%end()
    call f%begin_write()
    call f%write([1.5_real32, 2.5_real32, -3.5_real32])
    call f%write([character(3) :: 'abc', 'de'])
    call f%end()
    call f%write(a, grid, tr_section([5, 1], [4, ny]))
    call f%begin_write()
    call f%write(a, grid)
    call f%write(a, grid, tr_section([2, 1], [2, ny]))
    call f%write(99_int16)
    call f%end()
    call f%close()
  end subroutine

  subroutine read_ours(name, access, convert, grid)
    character(*), intent(in) :: name, access, convert
    type(tr_layout), intent(in) :: grid
    type(tr_file) :: f
    real(real64), allocatable :: a(:,:), b(:,:)
    real(real64) :: wanted(nx, ny)
    integer :: n, m, stat
    integer(int8) :: i8
    integer(int16) :: i16
    integer(int64) :: i64
    real(real32) :: r4, r(3)
    complex(real64) :: z
    logical :: yes
    character(6) :: text
    character(3) :: texts(2)
    call fill(grid, a)
    call fill(grid, b)
    call f%open(name, access=access, form='unformatted', convert=convert, action='read', mode=letters)
    call f%read(n)
    call check(n == 42, name//': a number on every rank')
    where (a > 0) a = 0
    call f%read(a, grid)
    call f%wait()
    call check(arrived(grid, a, whole()), name//': a whole array')
    call f%begin_read()
    call f%read(i8)
    call f%read(r4)
    call f%read(text)
    call f%read(z)
    call f%read(yes)
    call f%read(i64)
    call f%end()
    call check(i8 == 7 .and. abs(r4 - 3.5) < 1e-6 .and. text == 'a text' .and. yes .and. &
               abs(z - (1, -2)) < 1e-12 .and. i64 == 12345678901_int64, name//': numbers of all types')
    call f%begin_read()
    call f%end()
    where (a > 0) a = 0
    call f%begin_read()
    call f%read(n)
    call f%read(a, grid, tr_section([3, 2], [nx - 2, ny - 1]))
    call f%read(m)
    call f%read(a, grid, tr_section([1, ny], [nx, ny], [3, 1]))
    call f%end()
    call f%wait()
    wanted = 0
    wanted(3:nx - 2, 2:ny - 1) = section_of(whole(), 3, nx - 2, 2, ny - 1)
    b(:, :) = a
    call check(n == nx .and. m == ny, name//': numbers between sections')
    n = 0
    do m = 1, nx, 3
      wanted(m, ny) = value(m, ny)
    end do
    call check(arrived(grid, b, wanted), name//': two sections')
    call f%begin_read()
    call f%read(r)
    call f%read(texts)
    call f%end()
    call check(all(abs(r - [1.5, 2.5, -3.5]) < 1e-6) .and. all(texts == [character(3) :: 'abc', 'de']), &
               name//': small arrays on every rank')
    call f%read(a, grid, tr_section([5, 1], [4, ny]))
    where (a >= 0) a = 0
    call f%begin_read()
    call f%read(a, grid)
    call f%read(b, grid, tr_section([2, 1], [2, ny]))
    call f%read(i16)
    call f%end()
    call f%wait()
    call check(arrived(grid, a, whole()) .and. i16 == 99, name//': the last record')
    call f%read(n, iostat=stat)
    call check(stat == iostat_end, name//': the end of the file')
    call f%close()
  end subroutine

  function section_of(a, i1, i2, j1, j2) result(part)
    integer, intent(in) :: i1, i2, j1, j2
    real(real64), intent(in) :: a(nx, ny)
    real(real64) :: part(i2 - i1 + 1, j2 - j1 + 1)
    part = a(i1:i2, j1:j2)
  end function

  ! What is written has the compiler's bytes, and what the compiler has written is read.
  subroutine bytes_are_the_compilers(access, convert)
    character(*), intent(in) :: access, convert
    type(tr_layout) :: grid
    character(:), allocatable :: case
    case = 'bytes_'//access//'_'//convert
    call grid%block([nx, ny], halo=[2, 1])
    call write_theirs(case, access, convert)
    call write_ours(case, access, convert, grid)
    call read_ours(theirs(case), access, convert, grid)
    call read_ours(ours(case), access, convert, grid)
    call check_same(case)
    call grid%free()
  end subroutine

  ! Records.

  ! A read of fewer items skips the rest. A read of more is an error, and the next record is read.
  subroutine lengths_may_differ()
    type(tr_layout) :: grid
    type(tr_file) :: f
    real(real64), allocatable :: a(:,:)
    integer :: n, u, stat, big(4)
    character(200) :: message
    call grid%block([nx, ny], halo=[2, 1])
    call fill(grid, a)
    if (rank == 0) then
      open (newunit=u, file=theirs('lengths'), form='unformatted', status='replace')
      write (u) 1, 2, 3
      write (u) 4, whole()
      write (u) 5
      write (u) 6
      write (u) 7
      close (u)
    end if
    call barrier()
    call f%open(theirs('lengths'), form='unformatted', action='read', mode=letters)
    call f%read(n)
    call check(n == 1, 'the first of a record')
    call f%read(n)
    call check(n == 4, 'the first of the next record')
    message = ''
    call f%read(big, iostat=stat, iomsg=message)
    call check(stat > 0 .and. index(message, 'the record has') > 0, 'more than a record has: '//trim(message))
    call f%read(a, grid, iostat=stat)
    call check(stat > 0, 'an array that is longer than the record')
    call f%begin_read()
    call f%read(n)
    call f%read(big, iostat=stat)
    call check(stat > 0, 'the second item is too much')
    call f%read(big)
    call f%end(iostat=stat)
    call check(stat > 0, 'the error is kept until the end of the record')
    call f%read(n, iostat=stat)
    call check(stat == iostat_end, 'the end of the file')
    call f%read(n, iostat=stat)
    call check(stat > 0, 'behind the end')
    call f%close()
    call barrier()
    if (rank == 0) call remove(theirs('lengths'))
    call grid%free()
  end subroutine

  ! backspace, rewind and endfile do what the compiler's do: the same program for both.
  subroutine positions_are_the_compilers()
    type(tr_file) :: f
    integer :: u, n, stat
    if (rank == 0) then
      open (newunit=u, file=theirs('positions'), form='unformatted', status='replace')
      write (u) 1
      write (u) spread(2, 1, 50)
      write (u) 3
      write (u) 4
      backspace (u)
      backspace (u)
      write (u) 33
      rewind (u)
      read (u) n
      read (u) n
      write (u) 5, 6
      endfile (u)
      backspace (u)
      write (u) 7
      backspace (u)
      backspace (u)
      read (u) n
      call check(n == 5, 'the compiler steps back over two records')
      close (u)
    end if
    call open_ours(f, 'positions', status='replace')
    call f%write(1)
    call f%write(spread(2, 1, 50))
    call f%write(3)
    call f%write(4)
    call f%backspace()
    call f%backspace()
    call f%write(33)
    call f%rewind()
    call f%read(n)
    call check(n == 1, 'after rewind')
    call f%read(n)
    call check(n == 2, 'the second')
    call f%begin_write()
    call f%write(5)
    call f%write(6)
    call f%end()
    call f%endfile()
    call f%write(8, iostat=stat)
    call check(stat > 0, 'behind endfile nothing is written')
    call f%backspace()
    call f%write(7)
    call f%backspace()
    call f%backspace()
    call f%read(n)
    call check(n == 5, 'two records back')
    call f%read(n)
    call f%read(n, iostat=stat)
    call check(stat == iostat_end, 'the end of the file')
    call f%backspace()
    call f%backspace()
    call f%read(n)
    call check(n == 7, 'before the last record, from behind the end')
    call f%close()
    call check_same('positions')
  end subroutine

  ! endfile cuts the file where it stands, and inquire tells so at once.
  subroutine endfile_makes_the_file_shorter()
    type(tr_file) :: f
    integer(int64) :: size
    integer :: n
    call open_ours(f, 'shorter', status='replace')
    do n = 1, 3
      call f%write(n)
    end do
    call f%backspace()
    call f%backspace()
    call f%endfile()
    call f%inquire(size=size)
    call check(size == 8 + storage_size(n) / 8, 'the size behind endfile')
    call f%close()
  end subroutine

  ! A sequential file is cut behind a record written within it; append goes on at the end.
  subroutine statuses_are_fortrans()
    type(tr_file) :: f
    integer :: u, stat, n
    character(200) :: message
    integer(int64) :: pos, size
    logical :: opened
    if (rank == 0) call remove(ours('status'))
    call barrier()
    call f%open(ours('status'), form='unformatted', status='old', mode=letters, iostat=stat)
    call check(stat > 0, 'an old file that is not there')
    call f%inquire(opened=opened)
    call check(.not. opened, 'a failed open opens nothing')
    call f%open(ours('status'), form='unformatted', status='new', mode=letters)
    call f%write(1)
    call f%write(2)
    call f%close()
    call f%open(ours('status'), form='unformatted', status='new', mode=letters, iostat=stat)
    call check(stat > 0, 'a new file that is there already')
    call open_ours(f, 'status', status='old', position='append')
    call f%write(3)
    call f%close()
    call open_ours(f, 'status', action='readwrite')
    call f%read(n)
    call f%write(22)
    call f%inquire(opened=opened, pos=pos, size=size)
    call check(opened .and. pos == 2 * (8 + storage_size(n) / 8) + 1, 'where the file stands')
    call check(size == 3 * (8 + storage_size(n) / 8), 'how long it was when it was opened')
    call f%begin_write()
    call f%read(n)
    call f%write(5)
    call f%end(iostat=stat)
    call check(stat > 0, 'an item of the wrong direction')
    call f%close()
    if (rank == 0) then
      open (newunit=u, file=theirs('status'), form='unformatted', status='replace')
      write (u) 1
      write (u) 22
      close (u)
    end if
    call open_ours(f, 'status', action='read')
    call f%write(1, iostat=stat, iomsg=message)
    call check(stat > 0 .and. index(message, 'for reading only') > 0, 'writing to what was opened for reading')
    call f%close()
    call f%open(ours('status'), form='unformatted', access='random', iostat=stat, iomsg=message)
    call check(stat > 0 .and. index(message, 'random') > 0, 'an access that is none')
    call check_same('status')
  end subroutine

  ! Stream files have positions.
  subroutine streams_have_positions()
    type(tr_file) :: f
    integer(int32) :: n
    integer :: u, stat
    integer(int64) :: pos
    call open_ours(f, 'pos', access='stream', status='replace')
    call f%write([1_int32, 2_int32, 3_int32, 4_int32])
    call f%seek(5)
    call f%write(22_int32)
    call f%inquire(pos=pos)
    call check(pos == 9, 'behind what was written')
    call f%read(n)
    call check(n == 3, 'what follows')
    call f%seek(1_int64)
    call f%read(n)
    call check(n == 1, 'the first')
    call f%seek(13)
    call f%read(n)
    call f%read(n, iostat=stat)
    call check(stat == iostat_end, 'the end of a stream')
    call f%backspace(iostat=stat)
    call check(stat > 0, 'a stream has no records')
    call f%close()
    if (rank == 0) then
      open (newunit=u, file=theirs('pos'), form='unformatted', access='stream', status='replace')
      write (u) 1_int32, 22_int32, 3_int32, 4_int32
      close (u)
    end if
    call check_same('pos')
  end subroutine

  ! Arrays.

  ! Layouts of all sorts, memory with and without halo, wider memory, and other ranks than 2.
  subroutine layouts_are_written()
    type(tr_layout) :: grid, cube, line
    type(tr_file) :: f
    real(real64), allocatable :: a(:,:)
    real(real32), allocatable :: c(:,:,:), wide(:,:,:)
    integer(int32), allocatable :: own(:), back(:)
    integer, allocatable :: mine(:)
    integer :: i, lo(2), hi(2)
    call grid%block([nx, ny], halo=[2, 1])
    call cube%block([5, 4, 6])
    mine = pack([(i, i = 1, 30)], [(mod(i * 7, ranks) == rank, i = 1, 30)])
    call line%indexed([30], mine)
    call fill(grid, a)
    call fill_cube(cube, c)
    allocate (wide(size(c, 1), 2 * size(c, 2), size(c, 3)))
    wide = -1
    wide(:, ::2, :) = c
    own = int(mine * 3, int32)
    lo = grid%own_lower()
    hi = grid%own_upper()
    call open_ours(f, 'layouts', status='replace')
    call f%write(a(lo(1):hi(1), lo(2):hi(2)), grid)
    call f%write(c, cube)
    call f%write(wide(:, ::2, :), cube, tr_section([1, 2, 1], [5, 4, 6], [2, 1, 5]))
    call f%write(own, line)
    call f%close()
    if (rank == 0) call write_layouts_theirs()
    call barrier()
    call f%open(ours('layouts'), form='unformatted', action='read')
    wide = -1
    allocate (back(size(own)))
    where (a > 0) a = 0
    call f%read(a(lo(1):hi(1), lo(2):hi(2)), grid)
    call f%read(wide(:, ::2, :), cube)
    call check(all(abs(wide(:, ::2, :) - c) < 1e-6) .and. all(abs(wide(:, 2::2, :) + 1) < 1e-6), 'a strided array')
    call f%begin_read()
    call f%end()
    call f%read(back, line)
    call check(arrived(grid, a, whole()) .and. all(back == own), 'what was read')
    call f%close()
    call check_same('layouts')
  end subroutine

  subroutine fill_cube(cube, c)
    type(tr_layout), intent(in) :: cube
    real(real32), allocatable, intent(out) :: c(:,:,:)
    integer :: i, j, k, lo(3), hi(3)
    lo = cube%own_lower()
    hi = cube%own_upper()
    allocate (c(lo(1):hi(1), lo(2):hi(2), lo(3):hi(3)))
    do k = lo(3), hi(3)
      do j = lo(2), hi(2)
        do i = lo(1), hi(1)
          c(i, j, k) = real(i + 10 * j + 100 * k, real32)
        end do
      end do
    end do
  end subroutine

  subroutine write_layouts_theirs()
    real(real32) :: all(5, 4, 6)
    integer :: i, j, k, u
    do k = 1, 6
      do j = 1, 4
        do i = 1, 5
          all(i, j, k) = real(i + 10 * j + 100 * k, real32)
        end do
      end do
    end do
    open (newunit=u, file=theirs('layouts'), form='unformatted', status='replace')
    write (u) whole()
    write (u) all
    write (u) all(1:5:2, 2:4, 1:6:5)
    write (u) [(int(3 * i, int32), i = 1, 30)]
    close (u)
  end subroutine

  ! Numbers of every kind and arrays of every rank, the same on all ranks, with and without strides.
  subroutine replicated_variables_are_written_once()
    type(tr_file) :: f
    integer :: u, i
    integer(int16) :: a3(3, 2, 4)
    logical(int8) :: l(3)
    complex(real32) :: a7(2, 1, 2, 1, 2, 1, 2)
    complex(real32) :: b7(2, 1, 2, 1, 2, 1, 2)
    integer(int16) :: b3(3, 2, 4)
    logical(int8) :: m(3)
    character(4) :: words(3), more(3)
    a3 = reshape([(int(i, int16), i = 1, 24)], shape(a3))
    a7 = reshape([(cmplx(i, -i, real32), i = 1, 16)], shape(a7))
    l = [.true._int8, .false._int8, .true._int8]
    words = [character(4) :: 'ab', 'cdef', '']
    call open_ours(f, 'replicated', status='replace', convert='swap')
    call f%begin_write()
    call f%write(a3(3:1:-2, :, ::3))
    call f%write(a7)
    call f%write(l)
    call f%write(words)
    call f%write(a3(2, 1, :) + 1_int16)
    call f%end()
    call f%close()
    if (rank == 0) then
      open (newunit=u, file=theirs('replicated'), form='unformatted', status='replace', convert='swap')
      write (u) a3(3:1:-2, :, ::3), a7, l, words, a3(2, 1, :) + 1_int16
      close (u)
    end if
    b3 = 0
    call f%open(ours('replicated'), form='unformatted', convert='swap', action='read', mode=letters)
    call f%begin_read()
    call f%read(b3(3:1:-2, :, ::3))
    call f%read(b7)
    call f%read(m)
    call f%read(more)
    call f%end()
    call f%close()
    call check(all(b3(3:1:-2, :, ::3) == a3(3:1:-2, :, ::3)) .and. all(b3(2, :, :) == 0) .and. &
               all(abs(b7 - a7) < 1e-6) .and. all(m .eqv. l) .and. all(more == words), 'what was read')
    call check_same('replicated')
  end subroutine

  ! The bytes are those of gfortran -frecord-marker=8, which has no word for it in open.
  subroutine markers_may_have_8_bytes()
    type(tr_file) :: f
    integer :: u, stat
    integer(int32) :: n(2), m
    call f%open(ours('markers'), form='unformatted', status='replace', mode=letters, marker=8)
    call f%write([5_int32, 6_int32])
    call f%write(7_int32)
    call f%close()
    if (rank == 0) then
      open (newunit=u, file=theirs('markers'), form='unformatted', access='stream', status='replace')
      write (u) 8_int64, 5_int32, 6_int32, 8_int64, 4_int64, 7_int32, 4_int64
      close (u)
    end if
    call barrier()
    call f%open(theirs('markers'), form='unformatted', action='read', mode=letters)
    call f%read(n)
    call f%read(m)
    call f%close()
    call check(n(1) == 5 .and. n(2) == 6 .and. m == 7, 'records between markers of 8 bytes')
    call f%open(theirs('markers'), form='unformatted', action='read', mode=letters, marker=4)
    call f%read(n, iostat=stat)
    call check(stat > 0, 'markers of another length')
    call f%close()
    call f%open(theirs('markers'), form='unformatted', mode=letters, marker=5, iostat=stat)
    call check(stat > 0 .and. index(tr_error(), 'marker=8') > 0, 'markers have 4 or 8 bytes: '//tr_error())
    call check_same('markers')
  end subroutine

  ! Writes more than one stripe and more than one message: an array of 6 MB at an odd place. With small
  ! subrecords there are too many of them.
  subroutine large_arrays_are_written()
#ifdef SUBRECORD
    integer, parameter :: n = 40
#else
    integer, parameter :: n = 900
#endif
    type(tr_layout) :: grid
    type(tr_file) :: f
    real(real64), allocatable :: a(:,:), all(:,:)
    integer :: i, j, u, lo(2), hi(2)
    call grid%block([n, n])
    lo = grid%own_lower()
    hi = grid%own_upper()
    allocate (a(lo(1):hi(1), lo(2):hi(2)))
    do j = lo(2), hi(2)
      do i = lo(1), hi(1)
        a(i, j) = i + 0.001_real64 * j
      end do
    end do
    call open_ours(f, 'large', status='replace', convert='big_endian')
    do i = 1, 3
      call f%begin_write()
      call f%write('odd')
      call f%write(a, grid)
      if (i == 2) call f%write(a, grid)
      call f%write(int(i, int16))
      call f%end()
    end do
    call f%close()
    if (rank == 0) then
      allocate (all(n, n))
      do j = 1, n
        do i = 1, n
          all(i, j) = i + 0.001_real64 * j
        end do
      end do
      open (newunit=u, file=theirs('large'), form='unformatted', status='replace', convert='big_endian')
      write (u) 'odd', all, 1_int16
      write (u) 'odd', all, all, 2_int16
      write (u) 'odd', all, 3_int16
      close (u)
    end if
    call barrier()
    call f%open(theirs('large'), form='unformatted', action='read', convert='big_endian', mode=letters)
    call f%begin_read()
    call f%end()
    call check_large(f, grid, a)
    call f%close()
    call check_same('large')
  end subroutine

  ! Checks the second array of the second record, and the records behind it.
  subroutine check_large(f, grid, a)
    type(tr_file), intent(in) :: f
    type(tr_layout), intent(in) :: grid
    real(real64), intent(in) :: a(:,:)
    real(real64), allocatable :: b(:,:), c(:,:)
    character(3) :: odd
    integer(int16) :: number
    allocate (b(size(a, 1), size(a, 2)), c(size(a, 1), size(a, 2)))
    b = 0
    c = 0
    call f%begin_read()
    call f%read(odd)
    call f%read(b, grid)
    call f%read(c, grid)
    call f%read(number)
    call f%end()
    call f%wait()
    call check(odd == 'odd' .and. all(abs(b - a) < 1e-12) .and. all(abs(c - a) < 1e-12) .and. number == 2, &
               'what was read of a large record')
  end subroutine

  ! In the local mode each rank has a file of its own, which a serial program reads as any other.
  subroutine local_files_are_each_ranks_own()
    type(tr_layout) :: grid
    type(tr_file) :: f
    real(real64), allocatable :: a(:,:), b(:,:)
    integer :: u, n, lo(2), hi(2), stat
    character(4) :: number
    write (number, '(i0)') rank
    call grid%block([nx, ny], halo=[2, 1])
    call fill(grid, a)
    lo = grid%own_lower()
    hi = grid%own_upper()
    allocate (b(lo(1):hi(1), lo(2):hi(2)))
    call open_ours(f, 'local%d', status='replace', mode=trim(merge('ls', 'l ', index(letters, 's') > 0)))
    call f%begin_write()
    call f%write(rank)
    call f%write(a, grid)
    call f%end()
    call f%write(rank + 1)
    call f%close()
    open (newunit=u, file=ours('local'//trim(number)), form='unformatted', status='old', action='read')
    read (u) n, b
    call check(n == rank .and. all(abs(b - a(lo(1):hi(1), lo(2):hi(2))) < 1e-12), 'a rank''s own elements')
    read (u) n
    close (u)
    call check(n == rank + 1, 'a rank''s second record')
    where (a > 0) a = 0
    call f%open(ours('local%d'), form='unformatted', status='old', mode='l')
    call f%begin_read()
    call f%read(n)
    call f%read(a, grid)
    call f%end()
    call f%read(n)
    call f%read(n, iostat=stat)
    call check(arrived(grid, a, whole()) .and. n == rank + 1 .and. stat == iostat_end, 'read back')
    call f%close(status='delete')
    ! A name without a place for the rank gets it behind.
    call f%open(ours('DATA.DAT'), form='unformatted', status='replace', mode='l')
    call f%write(rank)
    call f%close()
    write (number, '(i4.4)') rank
    open (newunit=u, file=ours('DATA.DAT')//trim(merge('.'//number, '     ', ranks > 1)), form='unformatted', status='old', &
          action='read')
    n = -1
    read (u) n
    close (u, status='delete')
    call check(n == rank, 'the rank behind the name')
  end subroutine

  ! Errors.

  ! An error is the same on every rank, and everything written before it is there.
  subroutine errors_are_everybodys()
    type(tr_layout) :: grid, none
    type(tr_file) :: f
    real(real64), allocatable :: a(:,:)
    integer :: stat, u
    character(200) :: message
    call grid%block([nx, ny], halo=[2, 1])
    call fill(grid, a)
    call open_ours(f, 'errors', status='replace')
    call f%write(1)
    if (rank == ranks - 1) then
      call f%write(a(:, 1:1), grid, iostat=stat, iomsg=message)
    else
      call f%write(a, grid, iostat=stat, iomsg=message)
    end if
    call everybodys(stat, 'an array of the wrong shape on one rank')
    call f%write(a, none, iostat=stat)
    call everybodys(stat, 'no layout')
    call f%write(a, grid, tr_section([1], [2]), iostat=stat, iomsg=message)
    call everybodys(stat, 'a section with too few dimensions')
    call check(index(message, 'section') > 0, 'what is wrong with a section: '//trim(message))
    call f%write(a, grid, tr_section([0, 1], [2, 2]), iostat=stat)
    call everybodys(stat, 'a section outside of the array')
    call f%begin_write()
    call f%write(2)
    call f%write(a, none, iostat=stat)
    call f%write(3)
    call f%end(iostat=stat)
    call everybodys(stat, 'a record of which an item has failed')
    call f%write(4)
    call f%write(5, fmt='(i5)', iostat=stat)
    call everybodys(stat, 'a format for an unformatted file')
    call f%close()
    call f%write(1, iostat=stat)
    call everybodys(stat, 'a closed file')
    if (rank == 0) then
      open (newunit=u, file=theirs('errors'), form='unformatted', status='replace')
      write (u) 1
      write (u) 4
      close (u)
    end if
    call check_same('errors')
  end subroutine

  subroutine everybodys(stat, what)
    integer, intent(in) :: stat
    character(*), intent(in) :: what
    integer(int32) :: mine, least
    mine = int(stat, int32)
    call MPI_Allreduce(mine, least, 1_int32, MPI_INTEGER4, MPI_MIN, model)
    call check(stat > 0 .and. mine == least, what//': an error, the same on every rank')
  end subroutine

  ! A file that is no sequential one is told from one.
  subroutine damage_is_told()
    type(tr_file) :: f
    integer :: u, stat, n
    if (rank == 0) then
      open (newunit=u, file=theirs('damage'), form='unformatted', access='stream', status='replace')
      write (u) 4_int32, 1_int32, 4_int32, 8_int32, 1_int32, 9_int32
      close (u)
    end if
    call barrier()
    call f%open(theirs('damage'), form='unformatted', action='read', mode=letters)
    call f%begin_read()
    call f%end()
    call f%read(n, iostat=stat)
    call check(stat > 0 .and. index(tr_error(), 'cut off') > 0, 'a record that is cut off: '//tr_error())
    call f%close()
    call f%open(theirs('damage'), form='unformatted', action='read', mode=letters, convert='swap')
    call f%read(n, iostat=stat)
    call check(stat > 0, 'the other byte order')
    call f%close()
    call barrier()
    if (rank == 0) call remove(theirs('damage'))
  end subroutine

  ! An asynchronous read needs memory that is the caller's own.
  subroutine asynchronous_reads_take_contiguous_arrays()
    type(tr_layout) :: grid
    type(tr_file) :: f
    real(real64), allocatable, asynchronous :: a(:,:), wide(:,:)
    integer :: stat, waited, lo(2), hi(2)
    call grid%block([nx, ny])
    lo = grid%own_lower()
    hi = grid%own_upper()
    allocate (wide(2 * (hi(1) - lo(1) + 1), hi(2) - lo(2) + 1))
    call fill(grid, a)
    call f%open(ours('async'), form='unformatted', access='stream', status='replace', mode=trim(letters)//'s')
    call f%write(a, grid)
    call f%write(a, grid)
    call f%seek(1)
    wide = 0
    call f%read(wide(::2, :), grid, iostat=stat)
    call check(stat > 0 .or. size(a) == 0, 'a section of memory')
    call f%seek(1)
    a = 0
    call f%read(a, grid)
    call f%wait()
    call check(arrived(grid, a, whole()), 'an array, after wait')
    call f%read(a, grid)
    call f%wait()
    call f%read(a, grid, iostat=stat)
    ! A parallel file knows at once. The failure stays with the file until wait.
    call f%wait(iostat=waited)
    call check(waited == iostat_end .and. (stat == 0 .or. stat == iostat_end), 'an array behind the end, after wait')
    call f%close(status='delete')
    call f%open(ours('async'), form='unformatted', access='stream', status='old', iostat=stat)
    call check(stat > 0, 'a file that is deleted as it is closed')
  end subroutine

end module file_cases

program files_test
  use file_cases
  implicit none
  call start()
  call bytes_are_the_compilers('sequential', 'native')
  call bytes_are_the_compilers('sequential', 'big_endian')
  call bytes_are_the_compilers('stream', 'little_endian')
  call bytes_are_the_compilers('stream', 'swap')
  call lengths_may_differ()
  call positions_are_the_compilers()
  call endfile_makes_the_file_shorter()
  call statuses_are_fortrans()
  call streams_have_positions()
  call layouts_are_written()
  call replicated_variables_are_written_once()
  call markers_may_have_8_bytes()
  call large_arrays_are_written()
  call local_files_are_each_ranks_own()
  call errors_are_everybodys()
  call damage_is_told()
  if (index(letters, 's') == 0) call asynchronous_reads_take_contiguous_arrays()
  call finish()
end program files_test
