! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! A Fortran 77 program over tailrace.inc: rows of an array, written as a raw stream, are read back.
      program f77
      implicit none
      include 'mpif.h'
      include 'tailrace.inc'
      integer nx, ny
      parameter (nx=6, ny=11)
      integer world, model, ierr, code, rank, ranks, i, j
      integer extents(2), halo(2), lower(2), upper(2)
      integer first, last
      integer*8 layout, stream, file
      integer back(2)
      double precision field(nx, ny), whole(nx, ny)
      double precision whole2(nx, ny)
      character*40 name
      character*200 text
      data extents /nx, ny/, halo /0, 0/
      code = 0
      call MPI_INIT(ierr)
      world = MPI_COMM_WORLD
      call TRF_INIT(world, model, 'servers=0 time_limit=off', ierr)
      if (ierr .ne. TR_OK) goto 900
      call MPI_COMM_RANK(model, rank, ierr)
      call MPI_COMM_SIZE(model, ranks, ierr)
      write (name, '(a,i1,a)') 'f77_ranks', ranks, '.raw'
      lower(1) = 1
      upper(1) = nx
      lower(2) = ny*rank/ranks + 1
      upper(2) = ny*(rank + 1)/ranks
      call TRF_LAYOUT_BOX(2, extents, halo, lower, upper, layout, ierr)
      if (ierr .ne. TR_OK) goto 900
      call TRF_LAYOUT_BOUNDS(layout, 2, 1, lower, upper, ierr)
      if (ierr .ne. TR_OK) goto 900
      first = lower(2)
      last = upper(2)
      do 20 j = first, last
        do 10 i = 1, nx
          field(i, j - first + 1) = 100*j + i
   10   continue
   20 continue
      call TRF_STREAM_CREATE(name, 'format=raw existing=replace '//
     &  'base=2026-03-01T00:00Z', stream, ierr)
      if (ierr .ne. TR_OK) goto 900
      call TRF_STREAM_DEFINE(stream, 't', layout, TR_F64, ' ', ierr)
      if (ierr .ne. TR_OK) goto 900
      call TRF_FILE_OPEN(name(1:10)//'.unf', 'sequential', 'readwrite',
     &  'replace', 'big_endian', ' ', file, ierr)
      if (ierr .ne. 0) goto 900
      call TRF_FILE_BEGIN_WRITE(file, ierr)
      call TRF_FILE_WRITE_SAME(file, extents, TR_I32, 2, ierr)
      call TRF_FILE_WRITE(file, field, TR_F64, layout, ierr)
      call TRF_FILE_END(file, ierr)
      if (ierr .ne. 0) goto 900
      call TRF_FILE_REWIND(file, ierr)
      call TRF_FILE_READ_SAME(file, back, TR_I32, 2, ierr)
      if (ierr .ne. 0) goto 900
      if (back(1) .ne. nx .or. back(2) .ne. ny) code = 1
      call TRF_FILE_READ_SAME(file, back, TR_I32, 2, ierr)
      if (ierr .ge. 0) code = 1
      call TRF_FILE_CLOSE(file, ierr)
      if (ierr .ne. 0) goto 900
      call TRF_LAYOUT_FREE(layout, ierr)
      if (TRF_SHOULD_STOP()) code = 1
      call TRF_STREAM_BEGIN(stream, 3600, ierr)
      call TRF_STREAM_PUT(stream, 't', field, ierr)
      call TRF_STREAM_END(stream, ierr)
      if (ierr .ne. TR_OK) goto 900
      call TRF_STREAM_WAIT(stream, TR_DURABLE, ierr)
      if (ierr .ne. TR_OK) goto 900
      call TRF_STREAM_CLOSE(stream, ierr)
      if (ierr .ne. TR_OK) goto 900
      if (rank .ne. 0) goto 910
      open (unit=21, file=name, form='unformatted', access='direct',
     &  recl=8*nx*ny, status='old')
      read (21, rec=1) whole
      close (21, status='delete')
      open (unit=23, file=name(1:10)//'.unf', form='unformatted',
     &  status='old', convert='big_endian')
      read (23) back, whole2
      close (23, status='delete')
      open (unit=22, file=name(1:14)//'.trx', status='old')
      close (22, status='delete')
      do 40 j = 1, ny
        do 30 i = 1, nx
          if (whole(i, j) .ne. 100*j + i) code = 1
          if (whole2(i, j) .ne. 100*j + i) code = 1
   30   continue
   40 continue
      if (code .ne. 0) print *, 'the file differs from the field'
      goto 910
  900 call TRF_ERROR(text)
      print *, text
      code = 1
  910 call TRF_FINALIZE(ierr)
      if (ierr .ne. TR_OK) code = 1
      call MPI_FINALIZE(ierr)
      if (code .ne. 0) stop 1
      end
