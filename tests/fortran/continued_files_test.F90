! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! Files that go on where a checkpoint has recorded them have the bytes of files that were never left.
! CMakeLists.txt runs it in every mode.
module continued_cases
  use file_fixture
  implicit none

contains

  function cp_name() result(name)
    character(:), allocatable :: name
    name = trim(run)//'_dir/cp'
  end function

  ! Returns the step that was loaded; 0: none.
  integer function loaded(cp, options)
    type(tr_checkpoint), intent(inout) :: cp
    character(*), intent(in), optional :: options
    logical :: found
    integer :: step
    step = 0
    call cp%create(cp_name(), options=options)
    call cp%begin(TR_LOAD, found=found)
    if (found) call cp%item('step', step)
    call cp%end()
    loaded = step
  end function

  ! Returns the code of a save, and checks the message.
  integer function saved(cp, step, message)
    type(tr_checkpoint), intent(inout) :: cp
    integer, intent(in) :: step
    character(*), intent(inout), optional :: message
    integer, target :: value
    integer :: ierr
    value = step
    call cp%begin(TR_SAVE)
    call cp%item('step', value)
    call cp%end(ierr)
    if (present(message)) message = tr_error()
    saved = ierr
  end function

  ! Unformatted.

  ! Writes records with the marker in front written before the record has ended, and others.
  subroutine put_records(f, grid, from, to, shift)
    type(tr_file), intent(in) :: f
    type(tr_layout), intent(in) :: grid
    integer, intent(in) :: from, to, shift
    real(real64), allocatable :: a(:,:)
    integer :: step
    call fill(grid, a)
    do step = from, to
      call f%write(step + shift)
      a = a + shift
      call f%write(a, grid)
      call f%begin_write()
      call f%write(step)
      call f%write(a, grid)
      call f%write(2 * step + shift)
      call f%write(a, grid, tr_section([2, 1], [nx, ny - 1]))
      call f%write('the end')
      call f%end()
      a = a - shift
    end do
  end subroutine

  subroutine unformatted_files_go_on(grid, access, first, again)
    type(tr_layout), intent(in) :: grid
    character(*), intent(in) :: access, first, again
    type(tr_file) :: f, whole
    type(tr_checkpoint) :: cp
    character(:), allocatable :: case
    case = 'records_'//access//'_'//first//again
    call open_ours(whole, case//'_whole', access=access, status='replace')
    call put_records(whole, grid, 1, 6, 0)
    call whole%close()
    ! A run that saves at 3 and is left at 5.
    call check(loaded(cp) == 0, case//': nothing is there yet')
    call open_ours(f, case, access=access, status=first)
    call put_records(f, grid, 1, 2, 0)
    call check(saved(cp, 2) == 0, case//': saved')
    call put_records(f, grid, 3, 3, 0)
    call check(saved(cp, 3) == 0, case//': saved again')
    call put_records(f, grid, 4, 5, 1000)
    call f%close()
    call cp%close()
    ! The run that goes on.
    call check(loaded(cp) == 3, case//': loaded')
    call open_ours(f, case, access=access, status=again)
    call put_records(f, grid, 4, 4, 0)
    call check(saved(cp, 4) == 0, case//': saved by the run that goes on')
    call put_records(f, grid, 5, 6, 0)
    call f%close()
    call cp%close()
    call same_files(case, case//'_whole')
    call forget_checkpoint()
  end subroutine

  ! Records behind the first step of a sequential file, and writes into the middle of one, keep their places.
  subroutine places_in_a_file_are_kept(grid)
    type(tr_layout), intent(in) :: grid
    type(tr_file) :: f
    type(tr_checkpoint) :: cp
    character(200) :: message
    integer :: step, ierr, record
    call check(loaded(cp) == 0, 'places: nothing is there yet')
    call open_ours(f, 'places', status='replace')
    call put_records(f, grid, 1, 2, 0)
    call f%rewind()
    call f%read(step)
    call check(saved(cp, 1) == 0, 'a file that is read is saved')
    call f%close()
    call cp%close()
    call check(loaded(cp) == 1, 'places: loaded')
    call open_ours(f, 'places', status='unknown')
    do record = 1, 2
      call f%begin_read()
      call f%end()
    end do
    call f%read(step)
    call check(step == 2, 'places: the record behind the place is read')
    ! It goes over the old contents.
    call f%write(step)
    call check(saved(cp, 2, message) == TR_ERR_STATE .and. index(message, 'was written over') > 0, &
               'a record in place of others is refused: '//trim(message))
    call f%close()
    ! Behind the end of the file.
    call open_ours(f, 'places', status='replace')
    call put_records(f, grid, 1, 1, 0)
    call f%endfile()
    call check(saved(cp, 3) == 0, 'a file behind its end is saved')
    call f%close()
    call cp%close()
    call check(loaded(cp) == 3, 'places: loaded behind the end')
    call open_ours(f, 'places', status='old')
    call f%write(7, iostat=ierr)
    call check(ierr == TR_ERR_STATE, 'behind the end backspace comes first')
    call f%backspace()
    call f%begin_write()
    call check(saved(cp, 4, message) == TR_ERR_STATE .and. index(message, 'has begun') > 0, &
               'within a record nothing is saved: '//trim(message))
    call f%write(2)
    call f%end()
    call check(saved(cp, 5) == 0, 'behind the record it is')
    call f%close(status='delete')
    call cp%close()
    call forget_checkpoint()
  end subroutine

  ! Formatted.

  subroutine put_lines(f, grid, from, to, text)
    type(tr_file), intent(in) :: f
    type(tr_layout), intent(in) :: grid
    integer, intent(in) :: from, to
    character(*), intent(in) :: text
    real(real64), allocatable :: a(:,:)
    integer :: step
    call fill(grid, a)
    do step = from, to
      call f%write(step)
      call f%begin_write('(a,i4,*(1x,f8.2))')
      call f%write(text)
      call f%write(step)
      call f%write(a, grid)
      call f%end()
    end do
  end subroutine

  subroutine formatted_files_go_on(grid, access, first, again)
    type(tr_layout), intent(in) :: grid
    character(*), intent(in) :: access, first, again
    type(tr_file) :: f
    type(tr_checkpoint) :: cp
    character(:), allocatable :: case
    case = 'lines_'//access//'_'//first//again
    call f%open(ours(case//'_whole'), form='formatted', access=access, status='replace')
    call put_lines(f, grid, 1, 6, 'step')
    call f%close()
    call check(loaded(cp) == 0, case//': nothing is there yet')
    call f%open(ours(case), form='formatted', access=access, status=first)
    call put_lines(f, grid, 1, 3, 'step')
    call check(saved(cp, 3) == 0, case//': saved')
    call put_lines(f, grid, 4, 5, 'a step that is lost')
    call f%close()
    call cp%close()
    call check(loaded(cp) == 3, case//': loaded')
    call f%open(ours(case), form='formatted', access=access, status=again)
    call put_lines(f, grid, 4, 4, 'step')
    call check(saved(cp, 4) == 0, case//': saved by the run that goes on')
    call put_lines(f, grid, 5, 6, 'step')
    call f%close()
    call cp%close()
    call same_files(case, case//'_whole')
    call forget_checkpoint()
  end subroutine

  ! A formatted file, whether it goes on or was left, is not written over if its records cannot be kept.
  subroutine formatted_files_are_written_over_once_their_records_are_kept(grid, rewinds)
    type(tr_layout), intent(in) :: grid
    logical, intent(in) :: rewinds
    type(tr_file) :: f
    type(tr_checkpoint) :: cp
    integer :: ierr
    call check(loaded(cp, 'overwritten=journal') == 0, 'kept: nothing is there yet')
    call f%open(ours('kept_whole'), form='formatted', status='replace')
    call put_lines(f, grid, 1, 3, 'step')
    call f%close()
    call f%open(ours('kept'), form='formatted', status='replace')
    call put_lines(f, grid, 1, 3, 'step')
    call check(saved(cp, 3) == 0, 'kept: saved')
    ! The save writes behind the program, into the directory that is about to be moved away.
    call cp%wait(ierr)
    call check(ierr == 0, 'kept: committed')
    if (rewinds) then
      call f%rewind()
    else
      call f%close()
      call f%open(ours('kept'), form='formatted', status='old')
    end if
    call move_directory('_dir', '_away')
    call f%write(8, iostat=ierr)
    call check(ierr /= 0, 'kept: there is no place for what is written over')
    call move_directory('_away', '_dir')
    call f%write(9, iostat=ierr)
    call check(ierr == 0, 'kept: now there is')
    call f%close()
    call cp%close()
    call check(loaded(cp, 'overwritten=journal') == 3, 'kept: loaded')
    call f%open(ours('kept'), form='formatted', status='unknown')
    call f%close()
    call cp%close()
    call same_files('kept', 'kept_whole')
    call forget_checkpoint()
  end subroutine

  subroutine move_directory(from, to)
    character(*), intent(in) :: from, to
    call barrier()
    if (rank == 0) call execute_command_line('mv '//trim(run)//from//' '//trim(run)//to)
    call barrier()
  end subroutine

  ! If a save cannot say where the file ends it must not cut it there.
  subroutine formatted_files_that_stand_elsewhere_keep_their_records(grid)
    type(tr_layout), intent(in) :: grid
    type(tr_file) :: f
    type(tr_checkpoint) :: cp
    character(200) :: message
    integer :: step, way
    call check(loaded(cp, 'overwritten=journal') == 0, 'elsewhere: nothing is there yet')
    do way = 1, 3
      call f%open(ours('elsewhere'), form='formatted', status='replace')
      call put_lines(f, grid, 1, 2, 'step')
      call f%rewind()
      call f%write(7)
      if (way == 1) call f%rewind()
      if (way == 2) call f%backspace()
      if (way == 3) then
        call f%rewind()
        call f%read(step)
      end if
      call check(saved(cp, way, message) == TR_ERR_STATE .and. index(message, 'elsewhere.ours does not stand') > 0, &
                 'a file that was written over and left there is refused: '//trim(message))
      call f%rewind()
      step = 0
      call f%read(step)
      call check(step == 7, 'elsewhere: the record is there')
      call f%close()
    end do
    call cp%close()
    call barrier()
    if (rank == 0) call remove(ours('elsewhere'))
    call forget_checkpoint()
  end subroutine

  ! Records that a full disk did not take are not recorded, even once there is room again.
  subroutine formatted_files_that_have_lost_records_are_refused(grid)
    type(tr_layout), intent(in) :: grid
    type(tr_file) :: f
    type(tr_checkpoint) :: cp
    character(200) :: message
    integer :: ierr
    call check(loaded(cp) == 0, 'lost: nothing is there yet')
    call f%open(ours('lost'), form='formatted', status='replace')
    call put_lines(f, grid, 1, 3, 'step')
    call check(saved(cp, 3) == 0, 'lost: saved')
    call cp%wait()
    call limit_files(100_int64)
    call f%write(7, iostat=ierr)
    call check(ierr == 0, 'lost: a record that waits in a buffer')
    call check(saved(cp, 4, message) /= 0 .and. index(message, 'lost.ours') > 0, &
               'a file that has lost a record is refused: '//trim(message))
    call limit_files(-1_int64)
    call check(saved(cp, 5, message) /= 0 .and. index(message, 'lost.ours') > 0, &
               'also once there is room: '//trim(message))
    call f%close(iostat=ierr)
    call check(ierr > 0, 'lost: close tells')
    call check(saved(cp, 6) == 0, 'lost: without it there is a save')
    call cp%close()
    call barrier()
    if (rank == 0) call remove(ours('lost'))
    call forget_checkpoint()
  end subroutine

  subroutine formatted_files_that_do_not_grow_are_refused(grid)
    type(tr_layout), intent(in) :: grid
    type(tr_file) :: f, input
    type(tr_checkpoint) :: cp
    character(200) :: message
    integer :: step, ierr
    call check(loaded(cp) == 0, 'refused: nothing is there yet')
    call f%open(ours('refused'), form='formatted', status='replace')
    call f%rewind()
    call put_lines(f, grid, 1, 2, 'step')
    call f%close()
    ! Input is none of its business.
    call input%open(ours('refused'), form='formatted', status='old')
    call input%read(step)
    call check(saved(cp, 1) == 0, 'a file that is only read is no output')
    call f%open(ours('other'), form='formatted', status='replace')
    call put_lines(f, grid, 1, 2, 'step')
    call f%begin_write()
    call check(saved(cp, 2, message) == TR_ERR_STATE .and. index(message, 'other.ours has a record that') > 0, &
               'within a record nothing is saved: '//trim(message))
    call f%write(3)
    call f%end()
    call check(saved(cp, 3) == 0, 'behind it something is')
    call f%rewind()
    call check(saved(cp, 4, message) == TR_ERR_STATE .and. index(message, 'other.ours does not stand') > 0, &
               'a file that stands elsewhere is refused: '//trim(message))
    call f%write(1)
    call check(saved(cp, 5, message) == TR_ERR_STATE .and. index(message, 'other.ours was written over') > 0, &
               'a file that was written over is refused: '//trim(message))
    call f%close()
    call input%close()
    call cp%close()
    ! The file is shorter now than when it was recorded.
    call check(loaded(cp) == 3, 'refused: loaded')
    call f%open(ours('other'), form='formatted', status='unknown', iostat=ierr, iomsg=message)
    call check(ierr == TR_ERR_CORRUPT .and. index(message, 'has recorded') > 0, &
               'a file that is too short is refused: '//trim(message))
    call cp%close()
    call barrier()
    if (rank == 0) call remove(ours('refused'))
    if (rank == 0) call remove(ours('other'))
    call forget_checkpoint()
  end subroutine

  ! Written over.

  ! Unformatted: writes over a record in the middle, behind which a sequential file ends, or over an item of a
  ! stream file.
  subroutine put_over(f, grid, access, step, shift)
    type(tr_file), intent(in) :: f
    type(tr_layout), intent(in) :: grid
    character(*), intent(in) :: access
    integer, intent(in) :: step, shift
    real(real64), allocatable :: a(:,:)
    integer :: record
    call fill(grid, a)
    a = a + 100 * step + shift
    if (access == 'stream') then
      call f%seek(9)
      call f%write(step + shift)
      call f%write(a, grid)
    else
      do record = 1, 2
        call f%backspace()
      end do
      call f%write(a, grid)
      call f%write(step + shift)
      call f%write(a, grid)
    end if
  end subroutine

  subroutine unformatted_files_that_are_written_over_go_on(grid, access)
    type(tr_layout), intent(in) :: grid
    character(*), intent(in) :: access
    type(tr_file) :: f, whole
    type(tr_checkpoint) :: cp
    character(:), allocatable :: case
    case = 'over_'//access
    call open_ours(whole, case//'_whole', access=access, status='replace')
    call put_records(whole, grid, 1, 2, 0)
    call put_over(whole, grid, access, 3, 0)
    call put_over(whole, grid, access, 4, 0)
    call whole%close()
    call check(loaded(cp, 'overwritten=journal') == 0, case//': nothing is there yet')
    call open_ours(f, case, access=access, status='replace')
    call put_records(f, grid, 1, 2, 0)
    call check(saved(cp, 2) == 0, case//': saved')
    call put_over(f, grid, access, 3, 0)
    call check(saved(cp, 3) == 0, case//': saved after it was written over')
    call put_over(f, grid, access, 5, 7)
    call put_over(f, grid, access, 6, 8)
    call f%rewind()
    call put_records(f, grid, 5, 5, 9)
    call f%close()
    call cp%close()
    call check(loaded(cp, 'overwritten=journal') == 3, case//': loaded')
    call open_ours(f, case, access=access, status='unknown')
    call put_over(f, grid, access, 4, 0)
    call f%close()
    call cp%close()
    call same_files(case, case//'_whole')
    call forget_checkpoint()
  end subroutine

  ! Formatted: writes over the last line, again and again, and over the whole file.
  subroutine formatted_files_that_are_written_over_go_on(grid, again)
    type(tr_layout), intent(in) :: grid
    character(*), intent(in) :: again
    type(tr_file) :: f, whole
    type(tr_checkpoint) :: cp
    character(:), allocatable :: case
    case = 'over_lines_'//again
    call whole%open(ours(case//'_whole'), form='formatted', status='replace')
    call put_lines(whole, grid, 1, 3, 'step')
    call whole%backspace()
    call put_lines(whole, grid, 4, 6, 'step')
    call whole%close()
    call check(loaded(cp, 'overwritten=journal') == 0, case//': nothing is there yet')
    call f%open(ours(case), form='formatted', status='replace')
    call put_lines(f, grid, 1, 3, 'step')
    call check(saved(cp, 3) == 0, case//': saved')
    call f%backspace()
    call put_lines(f, grid, 4, 4, 'step')
    call check(saved(cp, 4) == 0, case//': saved after it was written over')
    call put_lines(f, grid, 5, 5, 'step')
    call check(saved(cp, 5) == 0, case//': saved behind that')
    call f%rewind()
    call put_lines(f, grid, 8, 8, 'a step that is lost')
    call f%close()
    call f%open(ours(case), form='formatted', status=again)
    call put_lines(f, grid, 9, 9, 'another step that is lost')
    call f%close()
    call cp%close()
    call check(loaded(cp, 'overwritten=journal') == 5, case//': loaded')
    call f%open(ours(case), form='formatted', status='unknown')
    call put_lines(f, grid, 6, 6, 'step')
    call f%close()
    call cp%close()
    call same_files(case, case//'_whole')
    call forget_checkpoint()
  end subroutine

  ! Files.

  ! Collective. Expects both files to have the same bytes, and removes them.
  subroutine same_files(a, b)
    character(*), intent(in) :: a, b
    integer(int8), allocatable :: in_a(:), in_b(:)
    call barrier()
    if (rank == 0) then
      call slurp(ours(a), in_a)
      call slurp(ours(b), in_b)
      call check(size(in_b) > 1000, b//': has its bytes')
      call check(size(in_a) == size(in_b), a//': as long as the file that was never left')
      if (size(in_a) == size(in_b)) call check(all(in_a == in_b), a//': the bytes of the file that was never left')
      call remove(ours(a))
      call remove(ours(b))
    end if
    call barrier()
  end subroutine

  subroutine forget_checkpoint()
    call barrier()
    if (rank == 0) call execute_command_line('rm -r '//trim(run)//'_dir')
    call barrier()
  end subroutine

end module continued_cases

program continued_files_test
  use continued_cases
  implicit none
  type(tr_layout) :: grid
  call start()
  call grid%block([nx, ny], halo=[1, 2])
  call unformatted_files_go_on(grid, 'sequential', 'replace', 'replace')
  call unformatted_files_go_on(grid, 'sequential', 'new', 'new')
  call unformatted_files_go_on(grid, 'sequential', 'unknown', 'unknown')
  call unformatted_files_go_on(grid, 'stream', 'replace', 'old')
  call places_in_a_file_are_kept(grid)
  call formatted_files_go_on(grid, 'sequential', 'replace', 'replace')
  call formatted_files_go_on(grid, 'sequential', 'new', 'unknown')
  call formatted_files_go_on(grid, 'stream', 'unknown', 'old')
  call formatted_files_that_do_not_grow_are_refused(grid)
  call formatted_files_that_have_lost_records_are_refused(grid)
  call formatted_files_that_stand_elsewhere_keep_their_records(grid)
  call formatted_files_are_written_over_once_their_records_are_kept(grid, .true.)
  call formatted_files_are_written_over_once_their_records_are_kept(grid, .false.)
  call unformatted_files_that_are_written_over_go_on(grid, 'sequential')
  call unformatted_files_that_are_written_over_go_on(grid, 'stream')
  call formatted_files_that_are_written_over_go_on(grid, 'replace')
  call formatted_files_that_are_written_over_go_on(grid, 'unknown')
  call grid%free()
  call finish()
end program
