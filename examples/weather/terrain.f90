! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! The height of the ground: rank 0 reads one GRIB message through ecCodes, makes it fit for the model, and
! scatters to each rank its box with its halo.
module terrain
  use, intrinsic :: iso_fortran_env, only: real64
  use mpi_f08
  use eccodes
  use area,   only: dp, pi, rotated_longitude, rotated_latitude
  use domain, only: comm, rank, ranks, nx, ny, halo, boxes
  implicit none
  private
  public :: terrain_read

contains

  ! Collective. `height`: metres over sea level, 0 at sea, allocated as the state. If it fails, `problem` says
  ! why, the same on every rank; otherwise it is empty.
  subroutine terrain_read(file, height, problem)
    character(*), intent(in) :: file
    real(dp), intent(out) :: height(:,:)
    character(:), allocatable, intent(out) :: problem
    real(dp), allocatable :: whole(:,:)
    character(600) :: text
    text = ''
    allocate(whole(nx, ny))
    if (rank == 0) then
      call read_message(file, whole, text)
      if (text == '') call prepare(whole)
    end if
    call MPI_Bcast(text, len(text), MPI_CHARACTER, 0, comm)
    problem = trim(text)
    if (problem == '') call scatter(whole, height)
  end subroutine

  subroutine read_message(file, whole, text)
    character(*), intent(in) :: file
    real(dp), intent(out) :: whole(:,:)
    character(*), intent(out) :: text
    integer :: channel, message, status, ni, nj, upward, missing
    real(dp) :: first(2)
    real(dp), allocatable :: values(:)
    text = ''
    call codes_open_file(channel, file, 'r', status)
    if (status /= CODES_SUCCESS) then
      text = 'cannot open the terrain "'//file//'"; --help shows the two commands that make it'
      return
    end if
    call codes_grib_new_from_file(channel, message, status)
    if (status /= CODES_SUCCESS) then
      text = 'the terrain "'//file//'" holds no GRIB message'
      call codes_close_file(channel)
      return
    end if
    call codes_get(message, 'Ni', ni)
    call codes_get(message, 'Nj', nj)
    call codes_get(message, 'jScansPositively', upward)
    call codes_get(message, 'longitudeOfFirstGridPointInDegrees', first(1))
    call codes_get(message, 'latitudeOfFirstGridPointInDegrees', first(2))
    call codes_get(message, 'numberOfMissing', missing)
    if (ni /= size(whole, 1) .or. nj /= size(whole, 2)) then
      write(text, '(3a,i0,a,i0,a,i0,a,i0)') 'the terrain "', file, '" has ', ni, 'x', nj, &
        ' points, the model ', size(whole, 1), 'x', size(whole, 2)
    else if (missing > 0 .or. upward /= 1 .or. .not. same_corner(first)) then
      text = 'the terrain "'//file//'" lies on another grid than the model; --help shows how to make it'
    else
      call codes_get(message, 'values', values)
      whole = reshape(values, shape(whole))
    end if
    call codes_release(message)
    call codes_close_file(channel)
  end subroutine

  logical function same_corner(degrees)
    real(dp), intent(in) :: degrees(2)
    real(dp) :: off(2)
    off = degrees - [rotated_longitude(1.0_dp), rotated_latitude(1.0_dp)] * 180.0_dp / pi
    off(1) = modulo(off(1) + 180.0_dp, 360.0_dp) - 180.0_dp
    same_corner = all(abs(off) < 1.0e-4_dp)
  end function

  ! The sea is flat. Ridges one cell wide would only make noise: two passes of a 1-2-1 filter remove them.
  subroutine prepare(whole)
    real(dp), intent(inout) :: whole(:,:)
    integer :: pass, n, m
    n = size(whole, 1)
    m = size(whole, 2)
    whole = max(whole, 0.0_dp)
    do pass = 1, 2
      whole(2:n-1,:) = 0.25_dp * (whole(1:n-2,:) + 2.0_dp * whole(2:n-1,:) + whole(3:n,:))
      whole(:,2:m-1) = 0.25_dp * (whole(:,1:m-2) + 2.0_dp * whole(:,2:m-1) + whole(:,3:m))
    end do
  end subroutine

  ! Points outside of the grid take the height of the nearest point inside.
  subroutine scatter(whole, height)
    real(dp), intent(in)  :: whole(:,:)
    real(dp), intent(out) :: height(:,:)
    integer :: counts(0:ranks-1), starts(0:ranks-1), r, i, j, n
    real(dp), allocatable :: packed(:)
    starts(0) = 0
    do r = 0, ranks - 1
      counts(r) = (boxes(2,r) - boxes(1,r) + 1 + 2*halo) * (boxes(4,r) - boxes(3,r) + 1 + 2*halo)
      if (r > 0) starts(r) = starts(r-1) + counts(r-1)
    end do
    allocate(packed(merge(sum(counts), 0, rank == 0)))
    if (rank == 0) then
      n = 0
      do r = 0, ranks - 1
        do j = boxes(3,r) - halo, boxes(4,r) + halo
          do i = boxes(1,r) - halo, boxes(2,r) + halo
            n = n + 1
            packed(n) = whole(max(1, min(nx, i)), max(1, min(ny, j)))
          end do
        end do
      end do
    end if
    call MPI_Scatterv(packed, counts, starts, MPI_DOUBLE_PRECISION, &
                      height, counts(rank), MPI_DOUBLE_PRECISION, 0, comm)
  end subroutine
end module
