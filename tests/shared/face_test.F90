! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! The Fortran face of shared files over the library.
program shared_face_test
  use, intrinsic :: iso_fortran_env, only: int8, int32, int64, real32, real64
  use mpi_f08
  use checks
  use tailrace
  implicit none
  integer, parameter :: share = 1000  ! bytes of the file that a rank writes
  type(MPI_Comm) :: comm
  type(tr_shared) :: file
  integer :: other

  call MPI_Init()
  call tr_init(MPI_COMM_WORLD, comm)
  call MPI_Comm_rank(comm, rank)
  call MPI_Comm_size(comm, ranks)
  other = mod(rank + 1, ranks)
  call arrays_of_every_rank_pass()
  call sections_pass()
  call texts_pass()
  call positions_move()
  call pieces_pass_together()
  call ranks_append()
  call some_ranks_open_a_file()
  call sizes_change()
  call errors_come_back()
  call tr_finalize()
  call MPI_Finalize()
  if (failures > 0) stop 1

contains

  ! Writes arrays of every type and rank, of which another rank reads the elements one by one.
  subroutine arrays_of_every_rank_pass()
    integer(int32) :: i0, i7(2, 1, 2, 1, 2, 1, 2), j0
    integer(int64) :: i1(3), i6(1, 2, 1, 2, 1, 2), j1
    real(real32) :: f2(2, 3), f5(2, 1, 2, 1, 2), g2
    real(real64) :: f3(2, 3, 2), f4(1, 2, 2, 2), g3
    integer :: k
    call file%open('shared_face.bin', 'w+', page=4096, safety='rename')
    i0 = 70000 + rank
    i1 = [(5000000001_int64*k + rank, k=1,3)]
    f2 = reshape([(k/8.0 + rank, k=1,6)], [2, 3])
    f3 = reshape([(k/3d0 + rank, k=1,12)], [2, 3, 2])
    f4 = reshape([(k/5d0 + rank, k=1,8)], [1, 2, 2, 2])
    f5 = reshape([(k/4.0 + rank, k=1,8)], [2, 1, 2, 1, 2])
    i6 = reshape([(k*6_int64 + rank, k=1,8)], [1, 2, 1, 2, 1, 2])
    i7 = reshape([(k*7 + rank, k=1,16)], [2, 1, 2, 1, 2, 1, 2])
    call file%pwrite(i0, share*rank)
    call file%pwrite(i1, share*rank + 4_int64)
    call file%seek(share*rank + 28)
    call file%write(f2)
    call file%write(f3)
    call file%write(f4)
    call file%write(f5)
    call file%write(i6)
    call file%write(i7)
    call check(file%tell() == share*rank + 28 + 24 + 96 + 64 + 32 + 64 + 64, 'write moves the position')
    call file%sync()
    call file%pread(j0, share*other)
    call check(j0 == 70000 + other, 'a scalar')
    call file%pread(j1, share*other + 20)
    call check(j1 == 15000000003_int64 + other, 'rank 1')
    call file%pread(g2, share*other + 28 + 20)
    call check(abs(g2 - (6/8.0 + other)) < 1e-6, 'rank 2')
    call file%pread(g3, share*other + 52 + 88)
    call check(abs(g3 - (12/3d0 + other)) < 1d-12, 'rank 3')
    call file%pread(f4, share*other + 148)
    call check(all(abs(f4 - reshape([(k/5d0 + other, k=1,8)], [1, 2, 2, 2])) < 1d-12), 'rank 4')
    call file%seek(share*other + 212)
    call file%read(f5)
    call file%read(i6)
    call file%read(i7)
    call check(all(abs(f5 - reshape([(k/4.0 + other, k=1,8)], [2, 1, 2, 1, 2])) < 1e-6), 'rank 5')
    call check(all(i6 == reshape([(k*6_int64 + other, k=1,8)], [1, 2, 1, 2, 1, 2])), 'rank 6')
    call check(all(i7 == reshape([(k*7 + other, k=1,16)], [2, 1, 2, 1, 2, 1, 2])), 'rank 7')
    call file%close()
  end subroutine

  subroutine sections_pass()
    integer(int32) :: field(6, 5), back(6, 5), list(3)
    integer :: k
    field = reshape([(k + 100*rank, k=1,30)], [6, 5])
    call file%open('shared_face.bin', 'w+')
    call file%pwrite(field(2:6:2, 1:5:2), share*rank)
    call file%pwrite(field(1, 1:0), share*rank)
    call file%sync()
    call file%pread(list, share*other + 12)
    call check(all(list == [14, 16, 18] + 100*other), 'a section with strides is written element after element')
    back = -1
    call file%pread(back(2:6:2, 1:5:2), share*other)
    field = reshape([(k + 100*other, k=1,30)], [6, 5])
    call check(all(back(2:6:2, 1:5:2) == field(2:6:2, 1:5:2)), 'a section with strides is read')
    call check(all(back(1:5:2, :) == -1) .and. all(back(:, 2:4:2) == -1), 'and nothing beside it')
    call file%close()
  end subroutine

  subroutine texts_pass()
    character(6) :: word, words(3)
    call file%open('shared_face.txt', 'w+')
    write (word, '(a,i2)') 'rank', rank
    call file%pwrite(word, 30*rank)
    call file%pwrite(['one   ', 'two   ', 'three '], 30*rank + 6)
    call file%flush()
    call file%pread(word, 30*other)
    call check(word(1:4) == 'rank' .and. ichar(word(6:6)) == ichar('0') + other, 'a text')
    call file%seek(30*other + 6)
    call file%read(words)
    call check(all(words == [character(6) :: 'one', 'two', 'three']), 'texts')
    call file%close()
  end subroutine

  subroutine positions_move()
    integer(int32) :: number
    integer(int64) :: position, got
    call file%open('shared_face.bin', 'r')
    call file%seek(4)
    call file%seek(-1, TR_SEEK_CUR, position)
    call check(position == 3 .and. file%tell() == 3, 'seek from the position')
    call file%seek(-2_int64, TR_SEEK_END, position)
    call check(position == file%size() - 2, 'seek from the end')
    call file%read(number, got)
    call check(got == 2 .and. file%tell() == file%size(), 'read says how much there was')
    call file%pread(number, 0, got)
    call check(got == 4, 'pread says how much there was')
    call file%close()
  end subroutine

  subroutine pieces_pass_together()
    integer(int32) :: table(2, 3), back(2, 3), list(6)
    real(real64) :: one(1)
    character(4) :: words(2)
    integer(int64) :: got
    integer :: k, ierr
    call file%open('shared_face.bin', 'w+')
    table = reshape([(k + 100*rank, k=1,6)], [2, 3])
    call file%writev(table, share*rank + [200, 0, 100])
    call file%writev([8.5d0, 9.5d0, 10.5d0], share*rank + [300_int64, 400_int64], counts=[2, 1])
    call file%writev(['left', 'both'], share*rank + [500, 504])
    call file%sync()
    back = 0
    call file%readv(back, share*other + [200, 0, 100])
    call check(all(back == reshape([(k + 100*other, k=1,6)], [2, 3])), 'a column for each offset')
    call file%pread(back(:, 1), share*other)
    call check(all(back(:, 1) == [3, 4] + 100*other), 'each column is at its offset')
    call file%pread(one, share*other + 308)
    call check(abs(one(1) - 9.5) < 1d-12, 'the second element of the first piece')
    call file%readv(words, share*other + [504, 500], got=got)
    call check(words(1) == 'both' .and. words(2) == 'left' .and. got == 8, 'texts at offsets')
    list = -1
    call file%readv(list, share*other + [200, 100], counts=[1_int64, 5_int64], got=got)
    call check(list(1) == 1 + 100*other .and. all(list(2:3) == [5, 6] + 100*other) .and. got == 24, 'pieces of their own lengths')
    call file%readv(list(2:6:2), share*other + [200, 0, 100])
    call check(all(list(2:6:2) == [1, 3, 5] + 100*other), 'pieces of a section with strides')
    call file%readv(list(1:0), share*other + [integer :: ])
    call file%readv(list(1:4), share*other + [200, 100, 0], ierr=ierr)
    call check(ierr == TR_ERR_ARGUMENT .and. index(tr_error(), '4 elements, which do not make 3 pieces') > 0, tr_error())
    call file%writev(list, share*other + [200, 100], counts=[1, 4], ierr=ierr)
    call check(ierr == TR_ERR_ARGUMENT .and. index(tr_error(), '2 offsets and 2 counts') > 0, tr_error())
    call file%readv(list, share*other + [0, 100], counts=[-1, 7], ierr=ierr)
    call check(ierr == TR_ERR_ARGUMENT, 'a count below 0')
    call file%readv(list, [1.0, 2.0], ierr=ierr)
    call check(ierr == TR_ERR_ARGUMENT .and. index(tr_error(), 'offsets are no integers') > 0, tr_error())
    call file%readv(list, [0, -1], ierr=ierr)
    call check(ierr == TR_ERR_ARGUMENT, 'an offset below 0')
    call file%readv(list, share*ranks + [0, 100], ierr=ierr)
    call check(ierr == TR_ERR_IO, 'less than was asked for')
    call file%close()
  end subroutine

  ! Even and odd ranks have a file each.
  subroutine some_ranks_open_a_file()
    type(MPI_Comm) :: some
    character(16) :: name
    integer(int32) :: number
    integer :: members, ierr
    call MPI_Comm_split(comm, mod(rank, 2), rank, some)
    call MPI_Comm_size(some, members)
    write (name, '(a,i0)') 'shared_face.', mod(rank, 2)
    call file%open_comm(some, name, 'w+', page=4096, safety='journal')
    call file%append(rank)
    call file%sync()
    call check(file%size() == 4*members, 'the file is that of the communicator''s ranks')
    call file%close()
    call file%open_comm(some%MPI_VAL, name, 'r')
    call file%pread(number, 0)
    call check(mod(number, 2) == mod(rank, 2), 'a communicator may be an integer')
    call file%close()
    call file%open_comm(some, name, 'q', ierr=ierr)
    call check(ierr == TR_ERR_ARGUMENT, 'a mode that is none')
    call MPI_Comm_free(some)
  end subroutine

  ! No two ranks get the same place.
  subroutine ranks_append()
    integer(int64) :: place, count
    integer(int32) :: number
    logical :: seen(0:ranks - 1)
    integer :: k
    call file%open('shared_face.bin', 'w+')
    call file%append(rank + 1, place)
    call file%sync()
    call file%pread(number, place)
    call check(number == rank + 1, 'append says where it wrote')
    seen = .false.
    do k = 1, ranks
      call file%pread(number, 4*(k - 1), count)
      if (count == 4 .and. number >= 1 .and. number <= ranks) seen(number - 1) = .true.
    end do
    call check(all(seen), 'all ranks have appended')
    call check(file%size() == 4*ranks, 'the file ends behind all of them')
    call file%close()
  end subroutine

  subroutine sizes_change()
    call file%open('shared_face.bin', 'r+')
    call file%resize(100)
    call check(file%size() == 100, 'the file grows')
    call file%resize(10_int64)
    call check(file%size() == 10, 'the file is cut')
    call file%close()
    call file%open('shared_face.bin', 'r')
    call check(file%size() == 10, 'the file stays cut')
    call file%close()
  end subroutine

  subroutine errors_come_back()
    integer(int32) :: number
    integer :: ierr
    number = 0
    call file%open('shared_missing.bin', 'r', ierr=ierr)
    call check(ierr == TR_ERR_IO, 'a file that is missing')
    call file%open('shared_face.bin', 'r', options='page=1', ierr=ierr)
    call check(ierr /= TR_OK, 'a page of 1 byte')
    call file%open('shared_face.bin', 'r+', safety='rename', ierr=ierr)
    call check(ierr == TR_ERR_SETTINGS, 'safety that the mode cannot have')
    call file%open('shared_face.bin', 'r')
    call file%write(number, ierr)
    call check(ierr == TR_ERR_STATE, 'write to a file that is only read')
    call file%pread(number, 8, ierr=ierr)
    call check(ierr == TR_ERR_IO, 'less than was asked for')
    call file%pread(number, 1.5, ierr=ierr)
    call check(ierr == TR_ERR_ARGUMENT .and. index(tr_error(), 'no integer') > 0, 'an offset that is no integer')
    call file%seek(-1, ierr=ierr)
    call check(ierr == TR_ERR_ARGUMENT .and. index(tr_error(), 'no integer') == 0, 'a position before the begin')
    call file%close(ierr)
    call check(ierr == TR_OK, 'close')
    call file%read(number, ierr=ierr)
    call check(ierr == TR_ERR_STATE, 'a file that was closed')
  end subroutine
end program
