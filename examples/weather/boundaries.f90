! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! The boundaries of a nested forecast: files of the forecast around it, interpolated to this grid, that are read
! ahead while the model computes.
module boundaries
  use mpi_f08, only: MPI_Wtime
  use tailrace
  use area,     only: dp
  use domain,   only: nx, ny, ilo, ihi, jlo, jhi, halo
  use dynamics, only: hold_boundary
  use options,  only: options_type
  use output,   only: base, grid
  implicit none
  private
  public :: boundaries_open, boundaries_at, boundaries_close, boundary_seconds

  ! This rank's part of the fields of a file at one lead, halo included.
  type fields_type
    real(dp), allocatable :: height(:,:), wind_x(:,:), wind_y(:,:)
  end type

  type(tr_stream) :: stream
  type(fields_type) :: now
  type(fields_type), allocatable :: kept(:)        ! of all files, if they are held in memory
  integer  :: interval = 0                         ! s between files
  logical  :: reading = .false.
  real(dp) :: boundary_seconds = 0.0_dp            ! in calls of this module, since the start

contains

  ! Collective.
  subroutine boundaries_open(chosen)
    type(options_type), intent(in) :: chosen
    character(:), allocatable :: between, follow, timeout    ! those that are not asked for stay absent
    real(dp) :: since
    integer  :: n
    since = MPI_Wtime()
    interval = chosen%boundaries_every * 3600
    if (.not. chosen%in_memory) between = 'linear'
    if (chosen%follow /= '') then
      follow = 'on'
      timeout = chosen%follow
    end if
    call stream%open(chosen%boundaries, base=base, prefetch=chosen%prefetch, between=between, follow=follow, timeout=timeout)
    call stream%define('gh', grid, tr_pressure(500), type=TR_F64)
    call stream%define('u',  grid, tr_pressure(500), type=TR_F64)
    call stream%define('v',  grid, tr_pressure(500), type=TR_F64)
    reading = .true.
    call allocate_fields(now)
    if (chosen%in_memory) then
      allocate(kept(0:(chosen%hours * 3600 + interval - 1) / interval))
      do n = 0, ubound(kept, 1)
        call allocate_fields(kept(n))
        call read_fields(n * interval, kept(n))
      end do
      call boundaries_close()
    end if
    boundary_seconds = boundary_seconds + (MPI_Wtime() - since)
  end subroutine

  ! Collective. Holds the rims of the model to the boundary at this lead.
  subroutine boundaries_at(lead)
    integer, intent(in) :: lead
    real(dp) :: since
    since = MPI_Wtime()
    if (allocated(kept)) then
      call interpolate(lead)
    else
      call read_fields(lead, now)
    end if
    call hold_boundary(now%height, now%wind_x, now%wind_y)
    boundary_seconds = boundary_seconds + (MPI_Wtime() - since)
  end subroutine

  ! Without its boundary the forecast makes no sense: errors stop it, on all ranks.
  subroutine read_fields(lead, fields)
    integer, intent(in) :: lead
    type(fields_type), intent(inout) :: fields
    call stream%begin(lead=lead)
    call stream%get('gh', fields%height)             ! my part and its halo; waits only if the file comes late
    call stream%get('u', fields%wind_x)
    call stream%get('v', fields%wind_y)
    call stream%end()
    call extend(fields%height)
    call extend(fields%wind_x)
    call extend(fields%wind_y)
  end subroutine

  ! Linear in time, as between=linear has it.
  subroutine interpolate(lead)
    integer, intent(in) :: lead
    integer  :: n
    real(dp) :: weight
    n = lead / interval
    weight = real(lead - n * interval, dp) / interval
    if (mod(lead, interval) == 0) then
      now = kept(n)
    else
      now%height = (1.0_dp - weight) * kept(n)%height + weight * kept(n+1)%height
      now%wind_x = (1.0_dp - weight) * kept(n)%wind_x + weight * kept(n+1)%wind_x
      now%wind_y = (1.0_dp - weight) * kept(n)%wind_y + weight * kept(n+1)%wind_y
    end if
  end subroutine

  ! Points outside of the grid take the value of the nearest point inside. Files have none for them.
  subroutine extend(a)
    real(dp), intent(inout) :: a(ilo-halo:, jlo-halo:)
    integer :: i, j
    do j = max(1, jlo - halo), min(ny, jhi + halo)
      do i = ilo - halo, 0
        a(i,j) = a(1,j)
      end do
      do i = nx + 1, ihi + halo
        a(i,j) = a(nx,j)
      end do
    end do
    do j = jlo - halo, 0
      a(:,j) = a(:,1)
    end do
    do j = ny + 1, jhi + halo
      a(:,j) = a(:,ny)
    end do
  end subroutine

  subroutine allocate_fields(fields)
    type(fields_type), intent(inout) :: fields
    allocate(fields%height(ilo-halo:ihi+halo, jlo-halo:jhi+halo), source=0.0_dp)
    allocate(fields%wind_x, fields%wind_y, source=fields%height)
  end subroutine

  ! Collective.
  subroutine boundaries_close()
    if (reading) call stream%close()
    reading = .false.
  end subroutine
end module
