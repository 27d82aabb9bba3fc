! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! A section of one array and the whole of another go into a stream file in one statement, and come back.
! Argument: size.
program sections
  implicit none
  integer :: l, i, j, wrong
  double precision, allocatable :: a(:,:), b(:,:)
  character(len=32) :: word
  !DVM$ DISTRIBUTE (BLOCK, BLOCK) :: b
  !DVM$ ALIGN a(i, j) WITH b(i, j)
  call get_command_argument(1, word)
  read (word, *) l
  allocate (b(l, l))
  allocate (a(l, l))
  !DVM$ PARALLEL (j, i) ON b(i, j)
  do j = 1, l
    do i = 1, l
      a(i, j) = 1000 * i + j
      b(i, j) = -i - 1000 * j
    end do
  end do
  !DVM$ IO_MODE (PARALLEL, ASYNC)
  open (21, file='sections.dat', access='stream', form='unformatted', status='replace', err=100)
  write (21, err=100) l, a(3:l-2, 2:l-1), b
  close (21)
  !DVM$ PARALLEL (j, i) ON b(i, j)
  do j = 1, l
    do i = 1, l
      a(i, j) = 0
      b(i, j) = 0
    end do
  end do
  !DVM$ IO_MODE (PARALLEL, ASYNC)
  open (21, file='sections.dat', access='stream', form='unformatted', status='old', err=100)
  read (21, err=100, end=100) l, a(3:l-2, 2:l-1), b
  close (21)
  wrong = 0
  !DVM$ PARALLEL (j, i) ON b(i, j), REDUCTION(SUM(wrong))
  do j = 1, l
    do i = 1, l
      if (b(i, j) /= -i - 1000 * j) wrong = wrong + 1
      if (i > 2 .and. i < l - 1 .and. j > 1 .and. j < l .and. a(i, j) /= 1000 * i + j) wrong = wrong + 1
    end do
  end do
  print *, 'wrong elements: ', wrong
  stop
100 print *, 'the file could not be written or read'
  stop 1
end program
