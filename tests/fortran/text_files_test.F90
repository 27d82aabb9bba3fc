! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! Formatted collective files: the bytes are those that this compiler writes for the same list and format, and
! the compiler's files can be read.
module text_cases
  use file_fixture
  implicit none

contains

  subroutine write_theirs()
    integer :: u
    real(real64) :: a(nx, ny)
    a = whole()
    open (newunit=u, file=theirs('text'), form='formatted', status='replace')
    write (u, *) 42
    write (u, *) a
    write (u, '(5f12.4)') a(3:nx - 2, 2:ny - 1)
    write (u, *) 'step', 7_int8, 2.5_real32, .true., (1.0_real64, -2.0_real64), 12345678901_int64, a(1:nx:2, 3:3)
    write (u, '(a,i5,3(1x,es12.4),/,l2,2a4)') 'n =', 9, 1.5, 2.5, 3.5, .false., [character(4) :: 'abcd', 'ef']
    write (u, '()')
    write (u, '(a)') 'the last line'
    close (u)
  end subroutine

  subroutine write_ours(grid, a)
    type(tr_layout), intent(in) :: grid
    real(real64), intent(in) :: a(:,:)
    type(tr_file) :: f
    integer :: n
    n = 42
    if (rank > 0) n = -1
    call f%open(ours('text'), form='formatted', status='replace')
    call f%write(n)
    call f%write(a, grid)
    call f%write(a, grid, tr_section([3, 2], [nx - 2, ny - 1]), '(5f12.4)')
    call f%begin_write()
    call f%write('step')
    call f%write(7_int8)
    call f%write(2.5_real32)
    call f%write(.true.)
    call f%write((1.0_real64, -2.0_real64))
    call f%write(12345678901_int64)
    call f%write(a, grid, tr_section([1, 3], [nx, 3], [2, 1]))
    call f%end()
    call f%begin_write('(a,i5,3(1x,es12.4),/,l2,2a4)')
    call f%write('n =')
    call f%write(9)
    call f%write([1.5, 2.5, 3.5])
    call f%write(.false.)
    call f%write([character(4) :: 'abcd', 'ef'])
    call f%end()
    call f%begin_write('()')
    call f%end()
    call f%write('the last line', fmt='(a)')
    call f%close()
  end subroutine

  subroutine read_theirs(grid, a)
    type(tr_layout), intent(in) :: grid
    real(real64), allocatable, intent(inout) :: a(:,:)
    type(tr_file) :: f
    integer :: n, stat
    integer(int8) :: i8
    real(real32) :: r4
    character(13) :: line
    logical :: yes
    call f%open(theirs('text'), form='formatted', action='read')
    call f%read(n)
    call check(n == 42, 'a number on every rank')
    where (a > 0) a = 0
    call f%read(a, grid)
    call check(arrived(grid, a, whole()), 'a whole array')
    where (a > 0) a = 0
    call f%read(a, grid, tr_section([3, 2], [nx - 2, ny - 1]), '(5f12.4)')
    call check_inner(grid, a)
    call f%begin_read()
    call f%read(line)
    call f%read(i8)
    call f%read(r4)
    call f%read(yes)
    call f%end()
    call check(line == 'step' .and. i8 == 7 .and. abs(r4 - 2.5) < 1e-6 .and. yes, 'a list of several types')
    call f%read(line, fmt='(///,a)')
    call check(line == 'the last line', 'the last line, got '//line)
    call f%read(line, iostat=stat)
    call check(stat == iostat_end, 'the end of the file')
    call f%backspace()
    call f%backspace()
    call f%read(n, iostat=stat)
    call check(stat > 0, 'a text that is no number')
    call f%rewind()
    call f%read(n)
    call check(n == 42, 'after rewind')
    call f%close()
  end subroutine

  subroutine check_inner(grid, a)
    type(tr_layout), intent(in) :: grid
    real(real64), allocatable, intent(in) :: a(:,:)
    real(real64) :: wanted(nx, ny)
    integer :: i, j
    wanted = 0
    do j = 2, ny - 1
      do i = 3, nx - 2
        wanted(i, j) = value(i, j)
      end do
    end do
    call check(arrived(grid, a, wanted), 'a section by a format')
  end subroutine

  ! An empty value of a list keeps what the variable has; append and endfile are Fortran's own.
  subroutine lists_and_positions(grid)
    type(tr_layout), intent(in) :: grid
    type(tr_file) :: f
    real(real64), allocatable :: a(:,:)
    integer :: pair(2), stat
    character(200) :: message
    call fill(grid, a)
    call f%open(ours('list'), form='formatted', status='replace')
    call f%write('1*, 5', fmt='(a)')
    call f%write('one too many', fmt='(a)')
    call f%backspace()
    call f%endfile()
    call f%close()
    call f%open(ours('list'), form='formatted', position='append', status='old')
    call f%write(' 1000*')
    call f%close()
    call f%open(ours('list'), form='formatted', action='read')
    pair = [3, 4]
    call f%read(pair)
    call check(all(pair == [3, 5]), 'an empty value')
    call f%read(a, grid)
    call check(arrived(grid, a, whole()), 'empty values for an array')
    call f%read(pair, iostat=stat, iomsg=message)
    call check(stat == iostat_end .and. len_trim(message) > 0, 'the end of the file, and its text')
    call f%close(status='delete')
    call f%open(ours('list'), form='formatted', status='old', iostat=stat)
    call check(stat > 0, 'a deleted file')
    call f%open(ours('list'), form='formatted', mode='p', iostat=stat)
    call check(stat > 0, 'a mode for a formatted file')
  end subroutine

  ! A full disk is told: at once if much is written, otherwise by flush, and by close.
  subroutine a_full_disk_is_told(by)
    character(*), intent(in) :: by
    type(tr_file) :: f
    integer :: i, stat
    character(200) :: message
    message = ''
    stat = 0
    call f%open(ours('full'), form='formatted', status='replace')
    do i = 1, 100
      call f%write(i, iostat=stat)
      call check(stat == 0, 'a record before the disk is full')
    end do
    call f%flush()
    call limit_files(2000_int64)
    if (by == 'write') then
      do i = 1, 1000
        call f%write(i, iostat=stat, iomsg=message)
        if (stat /= 0) exit
      end do
      call check(stat > 0 .and. i < 1000, 'many records that a full disk does not take')
      call check(index(message, 'are lost') > 0, 'and the text: '//trim(message))
    else
      do i = 1, 100
        call f%write(i, iostat=stat)
        call check(stat == 0, 'a record that waits in a buffer')
      end do
    end if
    if (by /= 'close') then
      call f%flush(iostat=stat)
      call check(stat > 0, by//': flush tells')
    end if
    call limit_files(-1_int64)
    if (by /= 'close') then
      call f%write(1, iostat=stat)
      call check(stat > 0, by//': nothing is written behind what is lost')
    else
      call limit_files(2000_int64)
    end if
    call f%close(iostat=stat, iomsg=message)
    call check(stat > 0 .and. index(message, 'are lost') > 0, by//': close tells: '//trim(message))
    call limit_files(-1_int64)
    call f%open(ours('full'), form='formatted', status='replace')
    call f%write(1)
    call f%close(status='delete', iostat=stat)
    call check(stat == 0, 'a file that is opened anew')
  end subroutine

end module text_cases

program text_files_test
  use text_cases
  implicit none
  type(tr_layout) :: grid
  real(real64), allocatable :: a(:,:)
  call start()
  call grid%block([nx, ny], halo=[2, 1])
  call fill(grid, a)
  if (rank == 0) call write_theirs()
  call write_ours(grid, a)
  call read_theirs(grid, a)
  call check_same('text')
  call lists_and_positions(grid)
  call a_full_disk_is_told('write')
  call a_full_disk_is_told('flush')
  call a_full_disk_is_told('close')
  call finish()
end program text_files_test
