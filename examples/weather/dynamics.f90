! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! The shallow-water equations on a C-grid: Sadourny's scheme that conserves potential enstrophy, three-stage
! Runge-Kutta steps (Wicker and Skamarock), a fourth-order diffusion against grid-scale noise, and a
! relaxation in the outermost cells (Davies): towards the jet, or in a nested forecast towards that of the area
! around it. The height field stands for that of the 500 hPa surface.
!
! Each value is computed by one expression from values at fixed neighbours, and nothing is summed over
! ranks: the result is the same bits for any number of ranks.
module dynamics
  use area,   only: dp, gravity, earth_radius, earth_rotation, rotated_longitude, rotated_latitude, true_position
  use domain, only: state_type, exchange, maximum, nx, ny, ilo, ihi, jlo, jhi, halo
  use jet
  implicit none
  private
  public :: dynamics_setup, advance, time_step, state, ground, rim, cell_width, cell_height
  public :: vorticity, divergence, calm_height, hold_boundary

  real(dp), parameter :: damping_steps = 25.0_dp     ! e-folding of the shortest wave, in steps
  integer, parameter  :: rim = 10                    ! cells of relaxation
  integer, parameter  :: physics_interval = 600      ! s; steps divide it

  type(state_type), target :: state
  type(state_type) :: stage, boundary, slow
  real(dp), allocatable :: ground(:,:)               ! m
  real(dp), allocatable :: calm_height(:,:)          ! m, of the jet alone: the height that a calm day would show
  real(dp), allocatable :: coriolis(:,:)             ! at the north-eastern corner of a cell
  real(dp), allocatable :: cell_width(:), face_width(:)  ! m, of cells and of their northern faces, by row
  real(dp) :: cell_height = 0.0_dp
  integer  :: time_step = 0                          ! s
  real(dp), allocatable :: pull(:,:)                 ! of the relaxation, share in a step
  real(dp), allocatable :: flux_x(:,:), flux_y(:,:), potential_vorticity(:,:), energy(:,:)

contains

  ! Collective. The caller has set `ground` before.
  subroutine dynamics_setup()
    integer :: i, j
    real(dp) :: lon, lat, per_column
    call state%allocate()
    call stage%allocate()
    call boundary%allocate()
    call slow%allocate()
    allocate(calm_height, pull, coriolis, flux_x, flux_y, potential_vorticity, energy, mold=state%h)
    flux_x = 0.0_dp
    flux_y = 0.0_dp
    potential_vorticity = 0.0_dp
    energy = 0.0_dp
    allocate(cell_width(jlo-halo:jhi+halo), face_width(jlo-halo:jhi+halo))
    cell_height = earth_radius * (rotated_latitude(2.0_dp) - rotated_latitude(1.0_dp))
    per_column = earth_radius * (rotated_longitude(2.0_dp) - rotated_longitude(1.0_dp))
    do j = jlo - halo, jhi + halo
      cell_width(j) = per_column * cos(rotated_latitude(real(j, dp)))
      face_width(j) = per_column * cos(rotated_latitude(j + 0.5_dp))
      do i = ilo - halo, ihi + halo
        call true_position(rotated_longitude(i + 0.5_dp), rotated_latitude(j + 0.5_dp), lon, lat)
        coriolis(i,j) = 2.0_dp * earth_rotation * sin(lat)
      end do
    end do
    call choose_pull()
    call initial_state()
    call choose_time_step()
  end subroutine

  subroutine initial_state()
    integer :: i, j
    real(dp) :: x, y, u, v, unused
    call jet_setup()
    do j = jlo - halo, jhi + halo
      do i = ilo - halo, ihi + halo
        x = i
        y = j
        boundary%h(i,j) = jet_height(x, y) - ground(i,j)
        call jet_wind(x + 0.5_dp, y, boundary%u(i,j), unused)
        call jet_wind(x, y + 0.5_dp, unused, boundary%v(i,j))
        state%h(i,j) = boundary%h(i,j)
        state%u(i,j) = boundary%u(i,j)
        state%v(i,j) = boundary%v(i,j)
        if (i < 1 .or. i > nx .or. j < 1 .or. j > ny) cycle
        state%h(i,j) = state%h(i,j) + disturbance_height(x, y)
        call disturbance_wind(x + 0.5_dp, y, u, unused)
        call disturbance_wind(x, y + 0.5_dp, unused, v)
        state%u(i,j) = state%u(i,j) + u
        state%v(i,j) = state%v(i,j) + v
      end do
    end do
    stage = state
    calm_height(:,:) = boundary%h + ground
  end subroutine

  ! Sets what the rims are pulled to, from heights and winds at the centres of cells, halo included. Halo points
  ! outside of the grid become the boundary themselves.
  subroutine hold_boundary(height, wind_x, wind_y)
    real(dp), intent(in), dimension(ilo-halo:, jlo-halo:) :: height, wind_x, wind_y
    integer :: i, j
    do j = jlo - halo, jhi + halo
      do i = ilo - halo, ihi + halo
        boundary%h(i,j) = height(i,j) - ground(i,j)
        ! The outermost faces have a centre on one side alone. Nothing that this rank computes depends on them.
        boundary%u(i,j) = 0.5_dp * (wind_x(i,j) + wind_x(min(i + 1, ihi + halo),j))
        boundary%v(i,j) = 0.5_dp * (wind_y(i,j) + wind_y(i,min(j + 1, jhi + halo)))
        if (i >= 1 .and. i <= nx .and. j >= 1 .and. j <= ny) cycle
        state%h(i,j) = boundary%h(i,j)
        state%u(i,j) = boundary%u(i,j)
        state%v(i,j) = boundary%v(i,j)
        stage%h(i,j) = boundary%h(i,j)
        stage%u(i,j) = boundary%u(i,j)
        stage%v(i,j) = boundary%v(i,j)
      end do
    end do
  end subroutine

  ! The longest step that divides the physics interval and keeps the fastest gravity wave, with a tenth to spare
  ! for what the flow adds, inside of the scheme's limit of sqrt(3) on a C-grid.
  subroutine choose_time_step()
    real(dp) :: fastest, shortest, limit
    fastest = maximum(sqrt(gravity * maxval(state%h))) + maximum(sqrt(maxval(state%u**2) + maxval(state%v**2)))
    shortest = min(-maximum(-minval(face_width)), cell_height)
    limit = 0.9_dp * sqrt(3.0_dp) / (2.0_dp * sqrt(2.0_dp)) * shortest / fastest
    time_step = 1
    do while (next_divisor(time_step) <= limit .and. time_step < physics_interval)
      time_step = next_divisor(time_step)
    end do
  end subroutine

  pure integer function next_divisor(n)
    integer, intent(in) :: n
    next_divisor = n + 1
    do while (mod(physics_interval, next_divisor) /= 0 .and. next_divisor < physics_interval)
      next_divisor = next_divisor + 1
    end do
  end function

  ! Collective. One time step.
  subroutine advance()
    real(dp) :: dt
    dt = time_step
    call exchange(state)
    call slow_terms()
    call diagnose(state)
    call step_forward(dt / 3.0_dp)
    call exchange(stage)
    call diagnose(stage)
    call step_forward(dt / 2.0_dp)
    call exchange(stage)
    call diagnose(stage)
    call step_forward(dt)
    call swap(state%h, stage%h)
    call swap(state%u, stage%u)
    call swap(state%v, stage%v)
    call relax()
  end subroutine

  subroutine swap(a, b)
    real(dp), allocatable, intent(inout) :: a(:,:), b(:,:)
    real(dp), allocatable :: c(:,:)
    call move_alloc(a, c)
    call move_alloc(b, a)
    call move_alloc(c, b)
  end subroutine

  ! Fourth-order diffusion at the start of a step, held through its stages; of the height and not of the depth,
  ! so that water does not creep down the mountains.
  subroutine slow_terms()
    real(dp) :: strength
    strength = 1.0_dp / (64.0_dp * damping_steps * time_step)
    flux_x = state%h + ground
    call diffuse(flux_x, slow%h)
    call diffuse(state%u, slow%u)
    call diffuse(state%v, slow%v)
  contains
    subroutine diffuse(a, tendency)
      real(dp), intent(in)    :: a(ilo-halo:, jlo-halo:)
      real(dp), intent(inout) :: tendency(ilo-halo:, jlo-halo:)
      integer :: i, j
      do j = jlo - 1, jhi + 1
        do i = ilo - 1, ihi + 1
          energy(i,j) = ((a(i-1,j) + a(i+1,j)) + (a(i,j-1) + a(i,j+1))) - 4.0_dp * a(i,j)
        end do
      end do
      do j = jlo, jhi
        do i = ilo, ihi
          tendency(i,j) = -strength * (((energy(i-1,j) + energy(i+1,j)) + (energy(i,j-1) + energy(i,j+1))) &
                                       - 4.0_dp * energy(i,j))
        end do
      end do
    end subroutine
  end subroutine

  ! Mass fluxes, potential vorticity at corners, and the Bernoulli function, one cell beyond what is owned.
  subroutine diagnose(s)
    type(state_type), intent(in) :: s
    integer :: i, j
    real(dp) :: per_area, depth, turning
    do j = jlo - 1, jhi + 1
      per_area = 1.0_dp / (face_width(j) * cell_height)
      do i = ilo - 1, ihi + 1
        flux_x(i,j) = 0.5_dp * (s%h(i,j) + s%h(i+1,j)) * s%u(i,j)
        flux_y(i,j) = 0.5_dp * (s%h(i,j) + s%h(i,j+1)) * s%v(i,j)
        turning = ((s%v(i+1,j) - s%v(i,j)) * cell_height &
                 - (s%u(i,j+1) * cell_width(j+1) - s%u(i,j) * cell_width(j))) * per_area
        depth = 0.25_dp * ((s%h(i,j) + s%h(i+1,j)) + (s%h(i,j+1) + s%h(i+1,j+1)))
        potential_vorticity(i,j) = (coriolis(i,j) + turning) / depth
        energy(i,j) = gravity * (s%h(i,j) + ground(i,j)) &
                    + 0.25_dp * ((s%u(i,j)**2 + s%u(i-1,j)**2) + (s%v(i,j)**2 + s%v(i,j-1)**2))
      end do
    end do
  end subroutine

  ! stage = state + dt * tendency, with the state for which diagnose() was called.
  subroutine step_forward(dt)
    real(dp), intent(in) :: dt
    integer :: i, j
    real(dp) :: per_width, per_height, per_area, gain_u, gain_v, gain_h
    per_height = 1.0_dp / cell_height
    do j = jlo, jhi
      per_width = 1.0_dp / cell_width(j)
      per_area = per_width * per_height
      do i = ilo, ihi
        gain_u = 0.5_dp * (potential_vorticity(i,j) + potential_vorticity(i,j-1)) &
               * 0.25_dp * ((flux_y(i,j) + flux_y(i+1,j)) + (flux_y(i,j-1) + flux_y(i+1,j-1))) &
               - (energy(i+1,j) - energy(i,j)) * per_width
        gain_v = -0.5_dp * (potential_vorticity(i,j) + potential_vorticity(i-1,j)) &
               * 0.25_dp * ((flux_x(i,j) + flux_x(i,j+1)) + (flux_x(i-1,j) + flux_x(i-1,j+1))) &
               - (energy(i,j+1) - energy(i,j)) * per_height
        gain_h = -((flux_x(i,j) - flux_x(i-1,j)) * cell_height &
                 + (flux_y(i,j) * face_width(j) - flux_y(i,j-1) * face_width(j-1))) * per_area
        stage%u(i,j) = state%u(i,j) + dt * (gain_u + slow%u(i,j))
        stage%v(i,j) = state%v(i,j) + dt * (gain_v + slow%v(i,j))
        stage%h(i,j) = state%h(i,j) + dt * (gain_h + slow%h(i,j))
      end do
    end do
  end subroutine

  ! Sets how far a step pulls a cell to the boundary state: backward in time, so that it is stable however
  ! strong.
  subroutine choose_pull()
    integer :: i, j
    real(dp) :: strength
    do j = jlo, jhi
      do i = ilo, ihi
        strength = max(0, rim + 1 - min(i, nx + 1 - i, j, ny + 1 - j))
        strength = 0.5_dp * (strength / rim)**3
        pull(i,j) = strength / (1.0_dp + strength)
      end do
    end do
  end subroutine

  subroutine relax()
    integer :: i, j
    do j = jlo, jhi
      do i = ilo, ihi
        state%h(i,j) = state%h(i,j) + pull(i,j) * (boundary%h(i,j) - state%h(i,j))
        state%u(i,j) = state%u(i,j) + pull(i,j) * (boundary%u(i,j) - state%u(i,j))
        state%v(i,j) = state%v(i,j) + pull(i,j) * (boundary%v(i,j) - state%v(i,j))
      end do
    end do
  end subroutine

  ! Returns the vorticity of the flow at the last exchange of halos, at the centre of an owned cell, 1/s.
  real(dp) function vorticity(i, j)
    integer, intent(in) :: i, j
    vorticity = 0.25_dp * ((corner(i,j) + corner(i-1,j)) + (corner(i,j-1) + corner(i-1,j-1)))
  contains
    pure real(dp) function corner(k, l)
      integer, intent(in) :: k, l
      corner = (state%v(k+1,l) - state%v(k,l)) / face_width(l) - (state%u(k,l+1) - state%u(k,l)) / cell_height
    end function
  end function

  real(dp) function divergence(i, j)
    integer, intent(in) :: i, j
    divergence = (state%u(i,j) - state%u(i-1,j)) / cell_width(j) + (state%v(i,j) - state%v(i,j-1)) / cell_height
  end function
end module
