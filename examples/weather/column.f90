! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! The column over each cell: rain that gathers through the forecast, and temperature and wind on hybrid
! levels, diagnosed from the shallow-water state and the ground below. A barotropic flow knows no vertical
! structure: it gets that of an equivalent-barotropic atmosphere, with hydrostatic temperatures and a
! frictional layer.
module column
  use, intrinsic :: iso_fortran_env, only: real32
  use area,     only: dp, gravity, rotated_longitude, rotated_latitude, east_in_grid
  use domain,   only: nx, ny, ilo, ihi, jlo, jhi, halo
  use dynamics, only: state, rim, ground, vorticity, divergence, cell_width, cell_height, calm_height
  implicit none
  private
  public :: column_setup, gather_rain, diagnose_surface, diagnose_levels, diagnose_winds
  public :: t, u, v, surface_pressure, precipitation, height_500, u_500, v_500, half_a, half_b, rain

  real(dp), parameter :: lapse = 0.0065_dp, gas = 287.05_dp, kappa = gas * lapse / gravity
  real(dp), parameter :: level_500 = 50000.0_dp, standard = 101300.0_dp        ! Pa
  real(dp), parameter :: log_250 = log(25000.0_dp)
  real(dp), allocatable :: half_a(:), half_b(:)                 ! p = a + b * surface pressure, at half levels
  real(real32), allocatable :: t(:,:,:), u(:,:,:), v(:,:,:)     ! K, m/s along the grid's axes
  real(real32), allocatable :: surface_pressure(:,:)            ! Pa
  real(real32), allocatable :: precipitation(:,:)               ! kg/m2 since the start
  real(real32), allocatable :: height_500(:,:)                  ! m
  real(real32), allocatable :: u_500(:,:), v_500(:,:)           ! m/s, of the shallow-water layer
  real(dp), allocatable, target :: rain(:,:)
  real(dp), allocatable :: north_x(:,:), north_y(:,:), sea_level_pressure(:,:), warmth(:,:)
  integer :: levels = 0

contains

  subroutine column_setup(number_of_levels)
    integer, intent(in) :: number_of_levels
    integer :: i, j, k
    real(dp) :: s, p, east_x, east_y
    levels = number_of_levels
    allocate(half_a(0:levels), half_b(0:levels))
    do k = 0, levels
      s = real(k, dp) / levels
      p = 1000.0_dp + (standard - 1000.0_dp) * (0.5_dp * s * s + 0.5_dp * s * (2.0_dp - s) * s)
      half_b(k) = (max(0.0_dp, s - 0.2_dp) / 0.8_dp)**2 * (2.0_dp - s)
      half_a(k) = p - half_b(k) * standard
    end do
    half_a(levels) = 0.0_dp
    half_b(levels) = 1.0_dp
    allocate(t(ilo-halo:ihi+halo, jlo-halo:jhi+halo, levels), source=0.0_real32)
    allocate(u, v, mold=t)
    u = 0.0_real32
    v = 0.0_real32
    allocate(surface_pressure(ilo-halo:ihi+halo, jlo-halo:jhi+halo), source=0.0_real32)
    allocate(precipitation, height_500, u_500, v_500, mold=surface_pressure)
    precipitation = 0.0_real32
    height_500 = 0.0_real32
    u_500 = 0.0_real32
    v_500 = 0.0_real32
    allocate(rain(ilo:ihi, jlo:jhi), source=0.0_dp)
    allocate(north_x, north_y, sea_level_pressure, warmth, mold=rain)
    do j = jlo, jhi
      do i = ilo, ihi
        call east_in_grid(rotated_longitude(real(i, dp)), rotated_latitude(real(j, dp)), east_x, east_y)
        north_x(i,j) = -east_y
        north_y(i,j) = east_x
      end do
    end do
  end subroutine

  ! The wind of the shallow-water layer at the centre of a cell.
  pure subroutine wind_at(i, j, along_x, along_y)
    integer, intent(in)   :: i, j
    real(dp), intent(out) :: along_x, along_y
    along_x = 0.5_dp * (state%u(i-1,j) + state%u(i,j))
    along_y = 0.5_dp * (state%v(i,j-1) + state%v(i,j))
  end subroutine

  ! Pressure and temperature at sea level: lows below troughs; the mean temperature up to 500 hPa is what the
  ! hypsometric equation asks for, and winds from the south bring some warmth.
  subroutine sea_level()
    integer :: i, j
    real(dp) :: height, calm, wind_x, wind_y
    do j = jlo, jhi
      do i = ilo, ihi
        height = state%h(i,j) + ground(i,j)
        calm = calm_height(i,j)
        sea_level_pressure(i,j) = standard + 6.5_dp * (height - calm) + 1.2_dp * (calm - 5500.0_dp)
        call wind_at(i, j, wind_x, wind_y)
        warmth(i,j) = gravity * height / (gas * log(sea_level_pressure(i,j) / level_500)) + 0.5_dp * lapse * height &
                    + 0.12_dp * (wind_x * north_x(i,j) + wind_y * north_y(i,j))
      end do
    end do
  end subroutine

  ! Rain of the last `seconds`: moist air rises over slopes, in the friction of lows, and where the flow converges.
  ! The halo of the state must be up to date, here and below.
  subroutine gather_rain(seconds)
    real(dp), intent(in) :: seconds
    integer :: i, j, inside
    real(dp) :: wind_x, wind_y, rise, vapour
    call sea_level()
    do j = jlo, jhi
      do i = ilo, ihi
        inside = min(i, nx + 1 - i, j, ny + 1 - j) - rim             ! the pull to the boundary is no weather
        if (inside <= 0) cycle
        call wind_at(i, j, wind_x, wind_y)
        rise = 0.55_dp * (wind_x * (ground(i+1,j) - ground(i-1,j)) / (2.0_dp * cell_width(j)) &
                        + wind_y * (ground(i,j+1) - ground(i,j-1)) / (2.0_dp * cell_height)) &
             + 450.0_dp * vorticity(i, j) - 0.15_dp * state%h(i,j) * divergence(i, j) - 0.006_dp
        if (rise <= 0.0_dp) cycle
        vapour = 0.0028_dp * exp(0.065_dp * (warmth(i,j) - lapse * ground(i,j) - 273.15_dp))
        rain(i,j) = rain(i,j) + seconds * 1.2_dp * vapour * min(rise, 0.15_dp) * min(1.0_dp, inside / 12.0_dp)
      end do
    end do
  end subroutine

  subroutine diagnose_surface()
    integer :: i, j
    call sea_level()
    do j = jlo, jhi
      do i = ilo, ihi
        surface_pressure(i,j) = real(pressure_at_ground(i, j), real32)
        precipitation(i,j) = real(rain(i,j), real32)
        height_500(i,j) = real(state%h(i,j) + ground(i,j), real32)
      end do
    end do
  end subroutine

  ! The wind that carries the 500 hPa surface along, at the centres of cells.
  subroutine diagnose_winds()
    integer :: i, j
    real(dp) :: wind_x, wind_y
    do j = jlo, jhi
      do i = ilo, ihi
        call wind_at(i, j, wind_x, wind_y)
        u_500(i,j) = real(wind_x, real32)
        v_500(i,j) = real(wind_y, real32)
      end do
    end do
  end subroutine

  pure real(dp) function pressure_at_ground(i, j)
    integer, intent(in) :: i, j
    pressure_at_ground = sea_level_pressure(i,j) * (1.0_dp - lapse * ground(i,j) / warmth(i,j))**(1.0_dp / kappa)
  end function

  ! After diagnose_surface. The jet is strongest at 250 hPa; friction slows and backs the wind in the lowest kilometre.
  subroutine diagnose_levels()
    integer :: i, j, k
    real(dp) :: a, b, ps, logarithm, warm, cold, growth, layer
    real(dp), dimension(ilo:ihi, jlo:jhi) :: wind_x, wind_y, sea_level_logarithm, stratosphere
    do j = jlo, jhi
      do i = ilo, ihi
        call wind_at(i, j, wind_x(i,j), wind_y(i,j))
        sea_level_logarithm(i,j) = log(sea_level_pressure(i,j))
        stratosphere(i,j) = 215.0_dp - 0.012_dp * (state%h(i,j) + ground(i,j) - 5500.0_dp)
      end do
    end do
    do k = 1, levels
      a = 0.5_dp * (half_a(k-1) + half_a(k))
      b = 0.5_dp * (half_b(k-1) + half_b(k))
      do j = jlo, jhi
        do i = ilo, ihi
          ps = surface_pressure(i,j)
          logarithm = log(a + b * ps)
          warm = warmth(i,j) * exp(kappa * (logarithm - sea_level_logarithm(i,j)))
          cold = stratosphere(i,j)
          t(i,j,k) = real(0.5_dp * (warm + cold + sqrt((warm - cold)**2 + 25.0_dp)), real32)
          growth = 0.35_dp + 1.25_dp / (1.0_dp + 1.4_dp * (logarithm - log_250)**2)
          layer = 1.0_dp / (1.0_dp + (14.0_dp * (1.0_dp - (a + b * ps) / ps))**2)
          growth = growth * (1.0_dp - 0.4_dp * layer)
          u(i,j,k) = real(growth * (wind_x(i,j) - 0.4_dp * layer * wind_y(i,j)), real32)
          v(i,j,k) = real(growth * (wind_y(i,j) + 0.4_dp * layer * wind_x(i,j)), real32)
        end do
      end do
    end do
  end subroutine
end module
