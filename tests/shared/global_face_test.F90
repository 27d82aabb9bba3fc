! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! The Fortran face of global arrays over the library.
program global_face_test
  use, intrinsic :: iso_fortran_env, only: int8, int16, int32, int64, real32, real64
  use mpi_f08
  use checks
  use tailrace
  implicit none
  type(MPI_Comm) :: comm
  type(tr_global) :: global
  integer :: other

  call MPI_Init()
  call tr_init(MPI_COMM_WORLD, comm)
  call MPI_Comm_rank(comm, rank)
  call MPI_Comm_size(comm, ranks)
  other = mod(rank + 1, ranks)
  call elements_pass()
  call all_types_pass()
  call sums_are_whole()
  call pages_are_memory()
  call some_ranks_make_an_array()
  call errors_come_back()
  call tr_finalize()
  call MPI_Finalize()
  if (failures > 0) stop 1

contains

  ! Each rank sets 10 elements, of which another rank reads some.
  subroutine elements_pass()
    real(real64) :: mine(10), three(3), range(4)
    integer :: k
    call global%create(TR_F64, 10*ranks, page=4096)
    call check(global%count() == 10*ranks, 'the count')
    mine = [(rank*100d0 + k, k=1,10)]
    call global%scatter([(10*rank + k, k=1,10)], mine)
    call global%sync()
    call global%gather([10_int64*other + 10, 10_int64*other + 1, 10_int64*other + 10], three)
    call check(all(abs(three - (other*100d0 + [10, 1, 10])) < 1d-9), 'gather with numbers of 8 bytes')
    call global%read(10*other + 7, range)
    call check(all(abs(range - (other*100d0 + [7, 8, 9, 10])) < 1d-9), 'read')
    call global%sync()
    call global%write(10*rank + 2, mine(1:7:3))
    call global%gather([10*rank + 1, 10*rank + 2, 10*rank + 4], three)
    call check(all(abs(three - (rank*100d0 + [1, 1, 7])) < 1d-9), 'write of a section')
    call global%resize(20*ranks)
    call global%read(20*ranks, range(1:1))
    call check(abs(range(1)) < 1d-9, 'a new element is zero')
    call global%free()
  end subroutine

  subroutine all_types_pass()
    integer(int8) :: a(2)
    integer(int16) :: b(2)
    integer(int32) :: c(2)
    integer(int64) :: d(2)
    real(real32) :: e(2)
    complex(real32) :: f(2)
    complex(real64) :: g(2)
    call global%create(TR_I8, 9, options='page=4KiB')
    if (rank == 0) call global%scatter([9, 1], [3_int8, 4_int8])
    call global%sync()
    call global%gather([1, 9], a)
    call check(all(a == [4, 3]), 'int8')
    call global%free()
    call global%create(TR_I16, 9)
    if (rank == 0) call global%scatter([9, 1], [3_int16, 4_int16])
    call global%sync()
    call global%gather([1, 9], b)
    call check(all(b == [4, 3]), 'int16')
    call global%free()
    call global%create(TR_I32, 9)
    call global%accumulate([9, 1], [3, 4])
    call global%sync()
    call global%gather([1, 9], c)
    call check(all(c == [4, 3]*ranks), 'int32')
    call global%free()
    call global%create(TR_I64, 9)
    call global%accumulate([9, 1], [3000000000_int64, 4_int64])
    call global%sync()
    call global%gather([1, 9], d)
    call check(all(d == [4_int64, 3000000000_int64]*ranks), 'int64')
    call global%free()
    call global%create(TR_F32, 9)
    if (rank == 0) call global%accumulate([9, 1], [0.5, 0.25], locked=.false.)
    call global%sync()
    call global%gather([1, 9], e)
    call check(all(abs(e - [0.25, 0.5]) < 1e-6), 'float32')
    call global%free()
    call global%create(TR_C64, 9)
    call global%accumulate([9, 1], [(1.0, 2.0), (3.0, 4.0)])
    call global%sync()
    call global%gather([1, 9], f)
    call check(all(abs(f - [(3.0, 4.0), (1.0, 2.0)]*ranks) < 1e-6), 'complex64')
    call global%free()
    call global%create(TR_C128, 9)
    call global%accumulate([9, 1], [(1d0, 2d0), (3d0, 4d0)])
    call global%sync()
    call global%gather([1, 9], g)
    call check(all(abs(g - [(3d0, 4d0), (1d0, 2d0)]*ranks) < 1d-9), 'complex128')
    call global%free()
  end subroutine

  subroutine sums_are_whole()
    real(real64) :: sums(3)
    integer :: k
    call global%create(TR_F64, 1000_int64)
    do k = 1, 100
      call global%accumulate([5, 1000, 5], [1d0, 2d0, 3d0])
    end do
    call global%sync()
    call global%gather([5, 1000, 6], sums)
    call check(all(abs(sums - [400d0, 200d0, 0d0]*ranks) < 1d-9), 'all ranks have added')
    call global%free()
  end subroutine

  subroutine pages_are_memory()
    integer(int64), pointer :: values(:)
    integer(int64) :: first, all(2000), k
    integer :: part
    call global%create(TR_I64, 2000, page=4096)
    part = 1
    do
      call global%local(part, values, first)
      if (.not. associated(values)) exit
      call check(mod((first - 1)/512, int(ranks, int64)) == rank, 'the page is the rank''s own')
      do k = 1, size(values)
        values(k) = first + k - 1
      end do
      part = part + 1
    end do
    call global%sync()
    call global%read(1, all)
    call check(count(all /= [(k, k=1,2000)]) == 0, 'what is stored in pages is read')
    call global%free()
  end subroutine

  ! Even and odd ranks have an array each.
  subroutine some_ranks_make_an_array()
    type(MPI_Comm) :: some
    integer(int32) :: sums(1)
    integer :: members, ierr
    call MPI_Comm_split(comm, mod(rank, 2), rank, some)
    call MPI_Comm_size(some, members)
    call global%create_comm(some, TR_I32, 10, page=4096)
    call global%accumulate([3], [1])
    call global%sync()
    call global%gather([3], sums)
    call check(sums(1) == members, 'the ranks of the communicator have added')
    call global%free()
    call global%create_comm(some%MPI_VAL, TR_I32, 7_int64, options='page=4KiB')
    call check(global%count() == 7, 'a communicator may be an integer')
    call global%free()
    call global%create_comm(some, TR_I32, -1, ierr=ierr)
    call check(ierr == TR_ERR_ARGUMENT, 'a count below 0')
    call MPI_Comm_free(some)
  end subroutine

  subroutine errors_come_back()
    real(real64) :: values(2)
    real(real32) :: others(2)
    integer :: ierr
    call global%create(TR_F64, -5, ierr=ierr)
    call check(ierr == TR_ERR_ARGUMENT, 'a count below 0')
    call global%create(TR_F64, 10, page=5000, ierr=ierr)
    call check(ierr == TR_ERR_SETTINGS, 'a page that is no power of 2')
    call global%create(TR_F64, 10)
    values = -1
    call global%gather([1, 11], values, ierr=ierr)
    call check(ierr == TR_ERR_ARGUMENT, 'behind the last element')
    call check(index(tr_error(), 'indices(2) is 11, but the array has 10 elements, numbered from 1') > 0, tr_error())
    call check(all(abs(values + 1) < 1d-9), 'nothing was done')
    call global%scatter([0, 1], values, ierr=ierr)
    call check(ierr == TR_ERR_ARGUMENT, 'before the first element')
    call global%gather([1, 2, 3], values, ierr=ierr)
    call check(ierr == TR_ERR_ARGUMENT, 'more numbers than values')
    call global%gather([1, 2], others, ierr=ierr)
    call check(ierr == TR_ERR_ARGUMENT, 'values of another type')
    call check(index(tr_error(), 'type') > 0, tr_error())
    call global%gather([1.0, 2.0], values, ierr=ierr)
    call check(ierr == TR_ERR_ARGUMENT, 'numbers that are no integers')
    call global%read(10, values, ierr=ierr)
    call check(ierr == TR_ERR_ARGUMENT, 'a range behind the last element')
    call global%free()
    call global%gather([1, 2], values, ierr=ierr)
    call check(ierr == TR_ERR_STATE, 'an array that is gone')
  end subroutine

end program
